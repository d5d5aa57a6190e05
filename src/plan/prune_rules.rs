//! Rules for pruning that need only the object itself: its owners, its keep annotation, and the writers of its label.
//!
//! If a rule cannot decide, the object is kept, with the reason. `judge` adds the rules that depend on
//! other objects.

use std::collections::BTreeSet;

use super::{Policy, Pruning, ReasonToKeep, Refusal, holds_parent_of};
use crate::model::live::{Live, Presence};
use crate::model::set::Set;

/// The judgement of an object that might be pruned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// The object is deleted.
    Prune,
    /// The object is kept, and its kind and namespace stay in the record.
    Skip(ReasonToKeep),
    /// The set does not delete the object: it is desired, the set's parent, or not labeled as a member.
    Ignore,
    /// The object may not be deleted, for this reason.
    Refuse(Refusal),
}

/// Judges an object that the manifests do not hold by its own metadata. [`super::Judge`] adds the rules
/// about other objects.
pub(super) fn judge_by_metadata(live: &Live, set: &Set, policy: &Policy) -> Judgement {
    if set.is_parent(live) || live.part_of.as_deref() != Some(set.id.as_str()) {
        return Judgement::Ignore;
    }
    // An object that is already being deleted is reported as such, even if pruning is disabled.
    if policy.pruning == Pruning::Disabled && live.presence == Presence::Present {
        return Judgement::Skip(ReasonToKeep::PruningDisabled);
    }
    let would_delete_parent = policy.pruning != Pruning::WholeSet && holds_parent_of(set, live);
    match reason_to_keep_by_metadata(live, set, &policy.appliers) {
        // The advice for a copied label is to delete the object, and that would delete the parent.
        None | Some(ReasonToKeep::CopiedLabel { .. }) if would_delete_parent => {
            Judgement::Skip(ReasonToKeep::HoldsParent)
        }
        None => Judgement::Prune,
        Some(reason) => Judgement::Skip(reason),
    }
}

/// Returns the reason to keep an object with the set's part-of label, whatever the run does to other objects: it is
/// already being deleted, another object owns it, it has a keep annotation, or its label is a copy.
pub(super) fn reason_to_keep_by_metadata(
    live: &Live,
    set: &Set,
    appliers: &BTreeSet<String>,
) -> Option<ReasonToKeep> {
    if live.presence == Presence::Terminating {
        return Some(ReasonToKeep::Terminating {
            waits_for: live.waits_for.clone(),
        });
    }
    let copied = reason_for_copied_label(live, appliers);
    if let Some(owner) = live.foreign_owner(set.parent_uid.as_deref()) {
        return Some(match copied {
            Some(_) => ReasonToKeep::OwnedCopy(owner.clone()),
            None => ReasonToKeep::Owned {
                owner: owner.clone(),
                keep_annotation: live.keep_annotation.clone(),
            },
        });
    }
    let keep_annotation = live.keep_annotation.clone();
    keep_annotation
        .map(|keep_annotation| ReasonToKeep::Protected { keep_annotation })
        .or(copied)
}

/// Returns whether the object is owned by another object and its part-of label is a copy. Such an object is not a
/// member, and is deleted with its owner.
pub fn is_owned_copy(live: &Live, set: &Set, appliers: &BTreeSet<String>) -> bool {
    live.is_copy_with_foreign_owner(set.parent_uid.as_deref(), appliers)
}

/// Returns the reason for which an object with a part-of label is not a member: another object owns it,
/// or its label is a copy. `None` for a member.
pub fn reason_not_a_member(
    live: &Live,
    parent_uid: Option<&str>,
    appliers: &BTreeSet<String>,
) -> Option<ReasonToKeep> {
    let owned = live.foreign_owner(parent_uid).map(|owner| ReasonToKeep::Owned {
        owner: owner.clone(),
        keep_annotation: None,
    });
    owned.or_else(|| reason_for_copied_label(live, appliers))
}

/// Returns the reason to keep an object whose part-of label no applier wrote; `None` if an applier wrote it.
fn reason_for_copied_label(live: &Live, appliers: &BTreeSet<String>) -> Option<ReasonToKeep> {
    (!live.has_part_of_label_written_by(appliers)).then(|| ReasonToKeep::CopiedLabel {
        writers: live.part_of_writers.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::identity::GroupKind;
    use crate::model::live::OwnerReference;
    use crate::plan::fixtures::{live, policy, set};

    fn judged(change: impl FnOnce(&mut Live)) -> Judgement {
        let mut candidate = live("ConfigMap", Some("shop"), "a");
        change(&mut candidate);
        judge_by_metadata(&candidate, &set(), &policy())
    }

    fn reason(judgement: Judgement) -> ReasonToKeep {
        match judgement {
            Judgement::Skip(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    fn owner(api_version: &str, kind: &str, name: &str) -> OwnerReference {
        OwnerReference {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            uid: "owner".to_owned(),
        }
    }

    #[test]
    fn a_member_that_an_applier_labeled_is_pruned() {
        assert_eq!(judged(|_| {}), Judgement::Prune);
        assert_eq!(
            judged(|live| live.part_of_writers.push("controller".to_owned())),
            Judgement::Prune
        );
    }

    #[test]
    fn objects_of_other_sets_are_ignored() {
        assert_eq!(
            judged(|live| live.part_of = Some("other".to_owned())),
            Judgement::Ignore
        );
        assert_eq!(judged(|live| live.part_of = None), Judgement::Ignore);
    }

    #[test]
    fn the_parent_is_never_pruned() {
        assert_eq!(judged(|live| live.key = set().parent), Judgement::Ignore);
        // The parent, as another API group serves it: with another key and the same UID.
        let uid = set().parent_uid.expect("a UID");
        assert_eq!(judged(|live| live.uid = uid), Judgement::Ignore);
    }

    #[test]
    fn owned_objects_are_kept_for_their_owner() {
        let service = owner("v1", "Service", "web");
        assert_eq!(
            reason(judged(|live| live.owners.push(service.clone()))),
            ReasonToKeep::Owned {
                owner: service,
                keep_annotation: None
            }
        );
    }

    #[test]
    fn an_owned_object_with_a_copied_label_is_not_a_member() {
        let service = owner("v1", "Service", "web");
        let copied = |live: &mut Live| {
            live.owners.push(service.clone());
            live.part_of_writers = vec!["endpoint-slice-controller".to_owned()];
        };
        assert_eq!(reason(judged(copied)), ReasonToKeep::OwnedCopy(service.clone()));
        let is_copy = |change: &dyn Fn(&mut Live)| {
            let mut candidate = live("ConfigMap", Some("shop"), "a");
            change(&mut candidate);
            is_owned_copy(&candidate, &set(), &policy().appliers)
        };
        assert!(is_copy(&copied));
        assert!(!is_copy(&|live| live.owners.push(service.clone())));
        assert!(!is_copy(&|live| live.part_of_writers.clear()));
    }

    #[test]
    fn an_owner_reference_to_the_own_parent_does_not_protect() {
        let mut parent = owner("v1", "Secret", "web");
        parent.uid = "uid-of-parent".to_owned();
        assert_eq!(judged(|live| live.owners.push(parent)), Judgement::Prune);
        let namesake = owner("v1", "Secret", "web");
        assert_eq!(
            reason(judged(|live| live.owners.push(namesake.clone()))),
            ReasonToKeep::Owned {
                owner: namesake,
                keep_annotation: None
            }
        );
    }

    #[test]
    fn copied_labels_do_not_make_members() {
        for writers in [
            vec![],
            vec!["endpoint-controller".to_owned()],
            vec!["kubectl-label".to_owned()],
        ] {
            let judgement = judged(|live| live.part_of_writers.clone_from(&writers));
            assert_eq!(reason(judgement), ReasonToKeep::CopiedLabel { writers });
        }
    }

    #[test]
    fn objects_with_a_keep_annotation_are_kept() {
        let keep_annotation = "helm.sh/resource-policy: keep".to_owned();
        let judgement = judged(|live| live.keep_annotation = Some(keep_annotation.clone()));
        assert_eq!(reason(judgement), ReasonToKeep::Protected { keep_annotation });
    }

    #[test]
    fn the_crd_of_the_parents_kind_is_kept() {
        let mut custom = set();
        custom.parent.group_kind = GroupKind::new("company.com", "ApplySet");
        let mut definition = live(
            "CustomResourceDefinition.apiextensions.k8s.io",
            None,
            "applysets.company.com",
        );
        definition.defines = Some(custom.parent.group_kind.clone());
        definition.part_of = Some(custom.id.to_string());
        assert_eq!(
            reason(judge_by_metadata(&definition, &custom, &policy())),
            ReasonToKeep::HoldsParent
        );
    }

    #[test]
    fn the_namespace_of_the_parent_is_deleted_with_the_whole_set() {
        let policy = Policy {
            pruning: Pruning::WholeSet,
            ..policy()
        };
        let namespace = live("Namespace", None, "shop");
        assert_eq!(judge_by_metadata(&namespace, &set(), &policy), Judgement::Prune);
    }

    #[test]
    fn what_is_being_deleted_is_not_deleted_again() {
        let judgement = judged(|live| {
            live.presence = Presence::Terminating;
            live.waits_for.push("finalizer x".to_owned());
        });
        assert_eq!(
            reason(judgement),
            ReasonToKeep::Terminating {
                waits_for: vec!["finalizer x".to_owned()]
            }
        );
    }

    #[test]
    fn without_pruning_everything_is_kept() {
        let policy = Policy {
            pruning: Pruning::Disabled,
            ..policy()
        };
        let judgement = judge_by_metadata(&live("ConfigMap", Some("shop"), "a"), &set(), &policy);
        assert_eq!(reason(judgement), ReasonToKeep::PruningDisabled);
    }

    #[test]
    fn the_namespace_of_the_parent_is_kept() {
        let mut namespace = live("Namespace", None, "shop");
        assert_eq!(
            reason(judge_by_metadata(&namespace, &set(), &policy())),
            ReasonToKeep::HoldsParent
        );
        namespace.key.name = "other".to_owned();
        assert_eq!(judge_by_metadata(&namespace, &set(), &policy()), Judgement::Prune);
    }
}
