//! Field ownership (`metadata.managedFields`): the names under which the fields of members and
//! parents are owned, and its migration from client-side to server-side apply.

mod applyset_metadata;
mod fields_taken_by_apply;
mod managed_fields;
mod migration;
mod owned_fields;
mod owners_of_invalid_fields;
mod replicas_dropped_by_apply;
mod unusable_versions;

pub use applyset_metadata::add_live_applyset_metadata;
pub use fields_taken_by_apply::manifest_to_undo_apply;
pub use managed_fields::{
    Creator, annotation_writers, content_writers, creator, was_created_and_not_changed_by,
};
pub(in crate::compare) use managed_fields::{apply_entry, entries, is_apply_of};
pub use migration::{
    LastAppliedTreatment, OwnershipMigration, has_applied_string_data, has_fields_of_client_side_apply,
    migrated_managed_fields, migrated_managed_fields_of_kind, patch_to_replace_managed_fields,
};
pub use owned_fields::{
    applied_api_version, manifest_applied_by, manifest_applied_by_any, manifest_of_all_managers,
    manifest_owned_by, needs_definition_for_owned_fields,
};
pub use owners_of_invalid_fields::owners_if_only_others;
pub use replicas_dropped_by_apply::{ReplicasPath, dropped_replicas};
pub use unusable_versions::{managed_fields_with_usable_versions, may_have_unusable_version};

use crate::model::applyset::Tooling;
pub use crate::model::secret_value::LAST_APPLIED;

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

/// Field managers that write part-of labels by applying: ours and kubectl's.
pub const APPLIERS: [&str; 3] = [MEMBER_FIELD_MANAGER, KUBECTL_FIELD_MANAGER, CLIENT_SIDE_APPLY];

/// Returns the field manager of the ApplySet metadata of a parent with this tooling.
pub fn parent_field_manager(tooling: &Tooling) -> &'static str {
    if tooling.is_same_program(&Tooling::this_program()) {
        PARENT_FIELD_MANAGER
    } else {
        FOREIGN_PARENT_FIELD_MANAGER
    }
}

/// Returns the field manager under which a tool applies the members of its sets. Other tools, such as kubectl, apply
/// under their own name. We use that name for their sets, too; under another name, our applies would conflict with
/// theirs.
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
