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
    Terminating,
    /// It belongs to another object, whose controller or garbage collection sees to it.
    Owned(OwnerReference),
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
            Self::Terminating => f.write_str("already being deleted"),
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
        return Judgement::Skip(SkipReason::Terminating);
    }
    if policy.pruning == Pruning::Disabled {
        return Judgement::Skip(SkipReason::PruningDisabled);
    }
    if let Some(owner) = live.owners.iter().find(|owner| !is_parent_of(set, owner)) {
        return Judgement::Skip(SkipReason::Owned(owner.clone()));
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
