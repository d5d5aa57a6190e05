//! Whether an object that carries the set's part-of label, and that no manifest asks
//! for, is deleted or kept.
//!
//! When in doubt, it is kept, and the reason is told.

use std::collections::BTreeSet;
use std::fmt;

use super::refusal::losses;
use super::{Policy, Pruning, Refusal};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::{Live, OwnerReference, Presence};
use crate::model::set::Set;
use crate::model::text::shell_word;

/// What becomes of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It is deleted.
    Prune,
    /// It is kept, and stays recorded.
    Skip(SkipReason),
    /// It is none of this set's business, or already on its way out.
    Ignore,
    /// It may not be deleted, for this reason.
    Refuse(Refusal),
}

/// Why a candidate is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// The user said `--prune=false`.
    PruningDisabled,
    /// Somebody has already asked for its deletion.
    Terminating {
        /// What it waits for; empty where that is not known.
        waits_for: Vec<String>,
    },
    /// It belongs to another object, whose controller or garbage collection sees to it.
    Owned {
        /// That object.
        owner: OwnerReference,
        /// Its own annotation or label that keeps it as well, as `key: value`.
        mark: Option<String>,
    },
    /// The same, and its part-of label was written by no applier: a controller made it and
    /// copied the labels of what it was made for. It is no member, and holds nothing.
    OwnedCopy(OwnerReference),
    /// A mark of its own says that it is to be kept.
    Protected {
        /// The annotation or label, as `key: value`.
        mark: String,
    },
    /// It is the namespace that the set's parent lives in, or the definition of its kind.
    HoldsParent,
    /// It holds an object that is kept.
    HoldsKept {
        /// That object.
        kept: ObjectKey,
    },
    /// It holds an object of no set, or of another one, that a mark keeps.
    HoldsMarked {
        /// That object.
        marked: ObjectKey,
        /// The annotation or label, as `key: value`.
        mark: String,
    },
    /// It holds what it did not hold when its deletion was decided, or may do so.
    FilledMeanwhile {
        /// Objects that would be lost with it.
        lost: Vec<ObjectKey>,
        /// Resources that could not be listed.
        unknown: Vec<String>,
    },
    /// Its part-of label was written by no applier: a controller copied it.
    CopiedLabel {
        /// The field managers that own the label; empty where nobody does.
        writers: Vec<String>,
    },
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PruningDisabled => f.write_str("pruning is switched off"),
            Self::Terminating { waits_for } if waits_for.is_empty() => f.write_str("already being deleted"),
            Self::Terminating { waits_for } => {
                write!(f, "already being deleted, and waiting: {}", waits_for.join("; "))
            }
            Self::Protected { mark } => write!(f, "kept by its mark {mark}"),
            Self::HoldsKept { kept } => write!(f, "it holds {kept}, which is kept"),
            Self::HoldsMarked { marked, mark } => {
                write!(f, "it holds {marked}, which is kept by its mark {mark}")
            }
            Self::HoldsParent => f.write_str("it holds the set's parent"),
            Self::FilledMeanwhile { lost, unknown } => {
                write!(f, "deleting it would by now take along {}", losses(lost, unknown))
            }
            Self::Owned { owner, mark } => {
                write!(f, "owned by {} {}", owner.kind, owner.name)?;
                mark.iter()
                    .try_for_each(|mark| write!(f, ", and kept by its mark {mark}"))
            }
            Self::OwnedCopy(owner) => write!(f, "owned by {} {}", owner.kind, owner.name),
            Self::CopiedLabel { writers } => {
                let cause = label_written_by(writers);
                match writers.iter().find(|writer| !writer.starts_with("kubectl")) {
                    Some(writer) => write!(
                        f,
                        "{cause}; if {writer} applies members of this set, use --field-manager {}, \
                         else delete the object by hand, or remove the label to take it out of the set",
                        shell_word(writer)
                    ),
                    None => write!(
                        f,
                        "{cause}; delete the object by hand, or remove the label to take it out of the set"
                    ),
                }
            }
        }
    }
}

/// Names the field managers that own the part-of label of an object which no applier labelled.
pub fn label_written_by(writers: &[String]) -> String {
    if writers.is_empty() {
        "no field manager owns its part-of label".to_owned()
    } else {
        format!(
            "its part-of label was written by {}, not by an applier",
            writers.join(" and ")
        )
    }
}

/// Judges one object that the manifests do not ask for by itself alone. The whole judgement is
/// that of [`super::Judge`].
pub(super) fn judge(live: &Live, set: &Set, policy: &Policy) -> Judgement {
    if set.is_parent(live) || live.part_of.as_deref() != Some(set.id.as_str()) {
        return Judgement::Ignore;
    }
    let reason = reason_to_stay(live, set, &policy.appliers);
    if policy.pruning == Pruning::Disabled && live.presence == Presence::Present {
        return Judgement::Skip(SkipReason::PruningDisabled);
    }
    let is_home = policy.pruning != Pruning::WholeSet && is_home_of(set, live);
    match reason {
        None | Some(SkipReason::CopiedLabel { .. }) if is_home => Judgement::Skip(SkipReason::HoldsParent),
        None => Judgement::Prune,
        Some(reason) => Judgement::Skip(reason),
    }
}

/// The reason of its own for which an object with the set's part-of label is not deleted,
/// whatever the run is about: it is being deleted already, is another's, marked or a copy.
pub(super) fn reason_to_stay(live: &Live, set: &Set, appliers: &BTreeSet<String>) -> Option<SkipReason> {
    if live.presence == Presence::Terminating {
        return Some(SkipReason::Terminating {
            waits_for: live.waits_for.clone(),
        });
    }
    let copied = copied_label(live, appliers);
    if let Some(owner) = foreign_owner(live, set.parent_uid.as_deref()) {
        return Some(match copied {
            Some(_) => SkipReason::OwnedCopy(owner.clone()),
            None => SkipReason::Owned {
                owner: owner.clone(),
                mark: live.protection.clone(),
            },
        });
    }
    let mark = live.protection.clone();
    mark.map(|mark| SkipReason::Protected { mark }).or(copied)
}

/// Whether the object is a copy of a member's labels that some other object owns. It is no
/// member, on its way out or not, and goes when its owner does.
pub fn is_owned_copy(live: &Live, set: &Set, appliers: &BTreeSet<String>) -> bool {
    foreign_owner(live, set.parent_uid.as_deref()).is_some() && copied_label(live, appliers).is_some()
}

/// Why an object that carries a part-of label is none that anybody applied as a member: it
/// belongs to another object, or its label is a copy. `None` for a member.
pub fn copied(live: &Live, parent_uid: Option<&str>, appliers: &BTreeSet<String>) -> Option<SkipReason> {
    let owned = foreign_owner(live, parent_uid).map(|owner| SkipReason::Owned {
        owner: owner.clone(),
        mark: None,
    });
    owned.or_else(|| copied_label(live, appliers))
}

/// An owner reference to the set's own parent says nothing new: the object is the set's.
/// Another object of the parent's name and kind, elsewhere or since deleted, is not it.
fn foreign_owner<'l>(live: &'l Live, parent_uid: Option<&str>) -> Option<&'l OwnerReference> {
    let mut owners = live.owners.iter();
    owners.find(|owner| parent_uid != Some(owner.uid.as_str()))
}

fn copied_label(live: &Live, appliers: &BTreeSet<String>) -> Option<SkipReason> {
    (!live.is_labelled_by(appliers)).then(|| SkipReason::CopiedLabel {
        writers: live.part_of_writers.clone(),
    })
}

/// Whether deleting the object would delete the set's parent: it is the parent's
/// namespace, or the definition of its kind.
pub fn is_home_of(set: &Set, live: &Live) -> bool {
    let is_namespace = live.key.group_kind == GroupKind::new("", "Namespace");
    let is_home = is_namespace && Some(&live.key.name) == set.parent.namespace.as_ref();
    is_home || live.defines.as_ref() == Some(&set.parent.group_kind)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{live, policy, set};
    use super::*;

    #[test]
    fn a_label_that_no_applier_wrote_is_reported_with_a_way_out() {
        for (writers, flag) in [
            (&[][..], None),
            (&["kubectl-label"], None),
            (&["zzz"], Some("use --field-manager zzz,")),
            (&["kubectl-label", "zzz"], Some("use --field-manager zzz,")),
        ] {
            let writers = writers.iter().map(|&writer| writer.to_owned()).collect();
            let text = SkipReason::CopiedLabel { writers }.to_string();
            assert!(text.contains("delete the object by hand"), "{text}");
            assert_eq!(text.contains("--field-manager"), flag.is_some(), "{text}");
            assert!(flag.is_none_or(|flag| text.contains(flag)), "{text}");
        }
    }

    fn judged(change: impl FnOnce(&mut Live)) -> Judgement {
        let mut candidate = live("ConfigMap", Some("shop"), "a");
        change(&mut candidate);
        judge(&candidate, &set(), &policy())
    }

    fn reason(judgement: Judgement) -> SkipReason {
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
    fn a_member_that_an_applier_labelled_is_pruned() {
        assert_eq!(judged(|_| {}), Judgement::Prune);
        assert_eq!(
            judged(|live| live.part_of_writers.push("controller".to_owned())),
            Judgement::Prune
        );
    }

    #[test]
    fn objects_of_other_sets_are_none_of_our_business() {
        assert_eq!(
            judged(|live| live.part_of = Some("other".to_owned())),
            Judgement::Ignore
        );
        assert_eq!(judged(|live| live.part_of = None), Judgement::Ignore);
    }

    #[test]
    fn the_parent_is_never_pruned() {
        assert_eq!(judged(|live| live.key = set().parent), Judgement::Ignore);
        // The same object as another group serves it.
        let uid = set().parent_uid.expect("a UID");
        assert_eq!(judged(|live| live.uid = uid), Judgement::Ignore);
    }

    #[test]
    fn owned_objects_are_left_to_their_owner() {
        let service = owner("v1", "Service", "web");
        assert_eq!(
            reason(judged(|live| live.owners.push(service.clone()))),
            SkipReason::Owned {
                owner: service,
                mark: None
            }
        );
    }

    #[test]
    fn a_copied_label_of_an_owned_object_is_no_members() {
        let service = owner("v1", "Service", "web");
        let copied = |live: &mut Live| {
            live.owners.push(service.clone());
            live.part_of_writers = vec!["endpoint-slice-controller".to_owned()];
        };
        assert_eq!(reason(judged(copied)), SkipReason::OwnedCopy(service.clone()));
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
            SkipReason::Owned {
                owner: namesake,
                mark: None
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
            assert_eq!(reason(judgement), SkipReason::CopiedLabel { writers });
        }
    }

    #[test]
    fn marked_objects_are_kept() {
        let mark = "helm.sh/resource-policy: keep".to_owned();
        let judgement = judged(|live| live.protection = Some(mark.clone()));
        assert_eq!(reason(judgement), SkipReason::Protected { mark });
    }

    #[test]
    fn the_definition_of_the_parents_kind_stays() {
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
            reason(judge(&definition, &custom, &policy())),
            SkipReason::HoldsParent
        );
    }

    #[test]
    fn what_the_parent_lives_in_goes_with_the_whole_set() {
        let policy = Policy {
            pruning: Pruning::WholeSet,
            ..policy()
        };
        let home = live("Namespace", None, "shop");
        assert_eq!(judge(&home, &set(), &policy), Judgement::Prune);
    }

    #[test]
    fn what_is_being_deleted_is_not_deleted_again() {
        let judgement = judged(|live| {
            live.presence = Presence::Terminating;
            live.waits_for.push("finalizer x".to_owned());
        });
        assert_eq!(
            reason(judgement),
            SkipReason::Terminating {
                waits_for: vec!["finalizer x".to_owned()]
            }
        );
    }

    #[test]
    fn without_pruning_everything_stays() {
        let policy = Policy {
            pruning: Pruning::Disabled,
            ..policy()
        };
        let judgement = judge(&live("ConfigMap", Some("shop"), "a"), &set(), &policy);
        assert_eq!(reason(judgement), SkipReason::PruningDisabled);
    }

    #[test]
    fn the_home_of_the_parent_stays() {
        let mut home = live("Namespace", None, "shop");
        assert_eq!(reason(judge(&home, &set(), &policy())), SkipReason::HoldsParent);
        home.key.name = "other".to_owned();
        assert_eq!(judge(&home, &set(), &policy()), Judgement::Prune);
    }
}
