//! Members that may be parents of other sets. The run reads such a member before it applies it, because the apply could
//! remove the record of the other set.

use super::LiveMembership;
use crate::compare::ownership::MEMBER_FIELD_MANAGER;
use crate::manifest::desired::DesiredObject;
use crate::model::built_in_kinds::is_built_in;
use crate::model::identity::GroupKind;

/// Returns whether an apply of the object by `field_manager` may remove the record of another set from it.
///
/// An apply removes only fields that its own manager owns. The default manager owns no record, so its applies are safe.
/// The exception is a member whose labels show that it is a parent: another client may have written the record under
/// the name of the default manager.
pub fn apply_may_remove_record(
    object: &DesiredObject,
    live_membership: &LiveMembership,
    field_manager: &str,
) -> bool {
    let is_default = field_manager == MEMBER_FIELD_MANAGER;
    match live_membership {
        LiveMembership::Terminating => false,
        LiveMembership::Member { is_parent: true, .. } => true,
        LiveMembership::Member { .. } | LiveMembership::NotAMember | LiveMembership::OfAnotherSet { .. } => {
            !is_default && may_be_parent(object)
        }
    }
}

/// Returns whether objects of this kind may be parents. A custom resource may be one only if its CRD has the label that
/// permits it. That label is not read here, so every custom resource counts.
fn may_be_parent(object: &DesiredObject) -> bool {
    let kind = &object.key.group_kind;
    let is_secret_or_config_map = ["Secret", "ConfigMap"]
        .iter()
        .any(|name| *kind == GroupKind::new("", *name));
    is_secret_or_config_map || !is_built_in(&object.resource.api_version(), &kind.kind)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::desired;
    use super::*;

    #[test]
    fn only_what_may_be_a_parent_is_read_first() {
        let member = |is_parent| LiveMembership::Member {
            uid: "u".to_owned(),
            resource_version: "1".to_owned(),
            reason: None,
            client_side_apply: false,
            is_parent,
            deletes_data: false,
        };
        let new = LiveMembership::NotAMember;
        let of_another_set = LiveMembership::OfAnotherSet {
            uid: "uid".to_owned(),
            resource_version: "1".to_owned(),
        };
        let table = [
            ("Secret", new.clone(), "applyset", false),
            ("Secret", member(false), "applyset", false),
            ("Secret", member(true), "applyset", true),
            ("Secret", new.clone(), "ci", true),
            ("Secret", member(false), "ci", true),
            ("ConfigMap", new.clone(), "ci", true),
            ("ConfigMap", of_another_set, "ci", true),
            ("ConfigMap", LiveMembership::Terminating, "ci", false),
            ("Service", new.clone(), "ci", false),
            ("Deployment.apps", new.clone(), "ci", false),
            ("Widget.example.com", new, "ci", true),
        ];
        for (kind, live_membership, manager, expected) in table {
            let object = desired(kind, Some("shop"), "a");
            assert_eq!(
                apply_may_remove_record(&object, &live_membership, manager),
                expected,
                "{kind} {live_membership:?} {manager}"
            );
        }
    }
}
