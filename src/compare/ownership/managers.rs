//! Names of field managers: ours, kubectl's, and those of the tools that a set belongs to.

use crate::model::applyset::Tooling;

/// The field manager of `kubectl apply` without `--server-side`.
pub const CLIENT_SIDE_APPLY: &str = "kubectl-client-side-apply";

/// The field manager of members, unless `--field-manager` or `--tooling` names another one. It
/// owns no ApplySet metadata of a parent, so a member that is the parent of another set can be
/// applied under it.
pub const MEMBER_FIELD_MANAGER: &str = "applyset";

/// The field manager under which kubectl writes the ApplySet metadata of its parents. It applies
/// members as `kubectl`, so no part-of label of a member is written under this name.
pub const KUBECTL_PARENT_FIELD_MANAGER: &str = "kubectl-applyset";

/// The field manager of the ApplySet metadata of parents whose sets this tool manages.
pub const PARENT_FIELD_MANAGER: &str = "kubectl-applyset-parent";

/// The field manager of the ApplySet metadata of parents whose sets stay another tool's. It shows that
/// a parent without a tooling annotation belongs to another tool.
pub const FOREIGN_PARENT_FIELD_MANAGER: &str = "kubectl-applyset-foreign-parent";

/// The field manager of kubectl's server-side apply. For this one manager, the server copies what is sent into
/// the annotation of client-side apply (`managedfields/internal/lastappliedupdater.go`).
pub const KUBECTL_FIELD_MANAGER: &str = "kubectl";

/// Field managers whose part-of labels are those of an applier: ours and kubectl's.
pub const APPLIERS: [&str; 3] = [MEMBER_FIELD_MANAGER, KUBECTL_FIELD_MANAGER, CLIENT_SIDE_APPLY];

/// Returns the field manager of the ApplySet metadata of a parent with this tooling.
pub fn parent_field_manager(tooling: &Tooling) -> &'static str {
    if tooling.is_same_program(&Tooling::this_program()) {
        PARENT_FIELD_MANAGER
    } else {
        FOREIGN_PARENT_FIELD_MANAGER
    }
}

/// Returns the field manager under which a tool applies the members of its sets. Other tools,
/// kubectl among them, apply under their own name; fields stay free of conflicts only if the
/// same name is used for a set that such a tool also operates.
pub fn member_field_manager(tooling: &Tooling) -> &str {
    if tooling.is_same_program(&Tooling::this_program()) {
        MEMBER_FIELD_MANAGER
    } else {
        &tooling.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_applied_under_the_name_of_the_tool() {
        let table = [
            (Tooling::this_program().to_string(), "applyset"),
            ("kubectl-applyset/v0.0.1".to_owned(), "applyset"),
            ("kubectl/v1.36.3".to_owned(), "kubectl"),
            ("example.com/tool/v2".to_owned(), "example.com/tool"),
        ];
        for (tooling, manager) in table {
            let tooling = Tooling::parse(&tooling).expect("a valid value");
            assert_eq!(member_field_manager(&tooling), manager);
        }
    }
}
