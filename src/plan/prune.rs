//! Whether an object that carries the set's part-of label, and that no manifest asks
//! for, is deleted or kept.
//!
//! When in doubt, it is kept, and the reason is told.

use std::fmt;

use super::{Policy, Pruning, Set};
use crate::observe::{Live, OwnerReference, Presence};

/// What becomes of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It is deleted.
    Prune,
    /// It is kept, and stays recorded.
    Skip(SkipReason),
    /// It is none of this set's business, or already on its way out.
    Ignore,
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
    Owned(OwnerReference),
    /// An annotation of its own says that it is to be kept.
    Protected {
        /// The annotation, as `key: value`.
        annotation: String,
    },
    /// It is the namespace that the set's parent lives in.
    HoldsParent,
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
            Self::Protected { annotation } => write!(f, "kept by its annotation {annotation}"),
            Self::HoldsParent => f.write_str("it holds the set's parent"),
            Self::Owned(owner) => write!(f, "owned by {} {}", owner.kind, owner.name),
            Self::CopiedLabel { writers } if writers.is_empty() => {
                f.write_str("nobody is known to have written its part-of label")
            }
            Self::CopiedLabel { writers } => {
                write!(
                    f,
                    "its part-of label was written by {}, not by an applier",
                    writers.join(" and ")
                )
            }
        }
    }
}

/// Judges one object that the manifests do not ask for.
pub fn judge(live: &Live, set: &Set, policy: &Policy) -> Judgement {
    let is_parent = live.key == set.parent;
    if is_parent || live.part_of.as_deref() != Some(set.id.as_str()) {
        return Judgement::Ignore;
    }
    if live.presence == Presence::Terminating {
        return Judgement::Skip(SkipReason::Terminating {
            waits_for: live.waits_for.clone(),
        });
    }
    if policy.pruning == Pruning::Disabled {
        return Judgement::Skip(SkipReason::PruningDisabled);
    }
    if let Some(owner) = live.owners.iter().find(|owner| !is_parent_of(set, owner)) {
        return Judgement::Skip(SkipReason::Owned(owner.clone()));
    }
    if let Some(annotation) = protection(live) {
        return Judgement::Skip(SkipReason::Protected { annotation });
    }
    if is_home_of(set, live) {
        return Judgement::Skip(SkipReason::HoldsParent);
    }
    if !live
        .part_of_writers
        .iter()
        .any(|writer| policy.appliers.contains(writer))
    {
        return Judgement::Skip(SkipReason::CopiedLabel {
            writers: live.part_of_writers.clone(),
        });
    }
    Judgement::Prune
}

/// An owner reference to the set's own parent says nothing new: the object is the set's.
fn is_parent_of(set: &Set, owner: &OwnerReference) -> bool {
    let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    owner.name == set.parent.name
        && owner.kind == set.parent.group_kind.kind
        && group == set.parent.group_kind.group
}

/// Annotations by which people keep objects from being deleted, with any of the values
/// that mean so. Each is another tool's, and is honoured because whoever wrote it meant
/// every tool that prunes.
const PROTECTIONS: [(&str, &[&str]); 8] = [
    ("helm.sh/resource-policy", &["keep"]),
    (
        "argocd.argoproj.io/sync-options",
        &["Prune=false", "Delete=false"],
    ),
    ("kustomize.toolkit.fluxcd.io/prune", &["disabled", "Disabled"]),
    ("helm.toolkit.fluxcd.io/prune", &["disabled"]),
    ("cli-utils.sigs.k8s.io/on-remove", &["keep"]),
    ("client.lifecycle.config.k8s.io/deletion", &["detach"]),
    ("kapp.k14s.io/delete-strategy", &["orphan"]),
    ("kluctl.io/skip-delete", &["true"]),
];

/// The annotation that protects an object, if it has one. Values may be lists, as Argo
/// CD and Helm have them.
fn protection(live: &Live) -> Option<String> {
    PROTECTIONS.iter().find_map(|(key, values)| {
        let value = live.annotations.get(*key)?;
        let protects = |entry: &str| values.contains(&entry.trim());
        value.split(',').any(protects).then(|| format!("{key}: {value}"))
    })
}

fn is_home_of(set: &Set, live: &Live) -> bool {
    let kind = &live.key.group_kind;
    kind.group.is_empty() && kind.kind == "Namespace" && Some(&live.key.name) == set.parent.namespace.as_ref()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{live, policy, set};
    use super::*;

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
    }

    #[test]
    fn owned_objects_are_left_to_their_owner() {
        let service = owner("v1", "Service", "web");
        assert_eq!(
            reason(judged(|live| live.owners.push(service.clone()))),
            SkipReason::Owned(service)
        );
    }

    #[test]
    fn an_owner_reference_to_the_own_parent_does_not_protect() {
        assert_eq!(
            judged(|live| live.owners.push(owner("v1", "Secret", "web"))),
            Judgement::Prune
        );
        for other in [
            owner("v1", "Secret", "else"),
            owner("v1", "ConfigMap", "web"),
            owner("x/v1", "Secret", "web"),
        ] {
            assert!(matches!(
                judged(|live| live.owners.push(other)),
                Judgement::Skip(SkipReason::Owned(_))
            ));
        }
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
    fn protection_annotations_of_the_whole_field_keep_objects() {
        let table = [
            ("helm.sh/resource-policy", "keep", true),
            ("helm.sh/resource-policy", "delete", false),
            ("argocd.argoproj.io/sync-options", "Prune=false", true),
            (
                "argocd.argoproj.io/sync-options",
                "Validate=false, Delete=false",
                true,
            ),
            ("argocd.argoproj.io/sync-options", "Prune=true", false),
            ("kustomize.toolkit.fluxcd.io/prune", "disabled", true),
            ("kustomize.toolkit.fluxcd.io/prune", "enabled", false),
            ("cli-utils.sigs.k8s.io/on-remove", "keep", true),
            ("client.lifecycle.config.k8s.io/deletion", "detach", true),
            ("kapp.k14s.io/delete-strategy", "orphan", true),
            ("kluctl.io/skip-delete", "true", true),
            ("kluctl.io/skip-delete", "false", false),
        ];
        for (key, value, keeps) in table {
            let judgement = judged(|live| {
                live.annotations.insert(key.to_owned(), value.to_owned());
            });
            assert_eq!(judgement != Judgement::Prune, keeps, "{key}: {value}");
        }
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
