//! Whether this run may write the set of a parent: is it one, can its bookkeeping be
//! trusted, and who manages it.

use std::collections::BTreeSet;

use super::{Refusal, Set};
use crate::applyset::Tooling;
use crate::applyset::parent::{Bookkeeping, Reading, RecordedKinds};
use crate::identity::GroupKind;
use crate::observe::{ParentObject, Presence};

/// What the user has confirmed about the parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParentPolicy {
    /// Whether the parent may be another tool's, or no parent so far.
    pub take_over: Confirmation,
}

/// Whether the user asked for something dangerous by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// No.
    Missing,
    /// Yes.
    Given,
}

/// A parent that this run may write, as far as it exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// There is nothing to keep: no parent, or one without bookkeeping.
    New,
    /// It records a set.
    Recorded(Bookkeeping),
}

impl Standing {
    /// What is known of a set whose first run ended between making the parent's
    /// namespace, as a member, and the parent itself.
    pub fn resumed(set: &Set) -> Self {
        Self::Recorded(Bookkeeping {
            tooling: set.tooling.clone(),
            kinds: RecordedKinds::GroupKinds(BTreeSet::from([GroupKind::new("", "Namespace")])),
            additional_namespaces: BTreeSet::new(),
        })
    }
}

/// Judges the parent as it was read.
pub fn judge(
    set: &Set,
    found: Option<&ParentObject>,
    policy: ParentPolicy,
) -> Result<Standing, Vec<Refusal>> {
    let Some(found) = found else {
        return Ok(Standing::New);
    };
    let parent = || set.parent.clone();
    if found.presence == Presence::Terminating {
        return Err(vec![Refusal::ParentTerminating { parent: parent() }]);
    }
    let is_plain = set.parent.group_kind.group.is_empty();
    let may_take_over = policy.take_over == Confirmation::Given;
    let foreign = |tooling: &Tooling| !tooling.is_same_program(&set.tooling) && !may_take_over;
    match &found.reading {
        Reading::NoBookkeeping if is_plain && !may_take_over => {
            Err(vec![Refusal::NotAParent { parent: parent() }])
        }
        Reading::Parent(Bookkeeping { tooling, .. }) | Reading::Unfinished(tooling) if foreign(tooling) => {
            Err(vec![Refusal::OtherTooling {
                parent: parent(),
                found: tooling.clone(),
                ours: set.tooling.clone(),
            }])
        }
        Reading::NoBookkeeping | Reading::Unfinished(_) => Ok(Standing::New),
        Reading::Parent(bookkeeping) => Ok(Standing::Recorded(bookkeeping.clone())),
        Reading::Faulty(faults) => Err(faults
            .iter()
            .map(|fault| Refusal::FaultyParent {
                parent: parent(),
                fault: fault.clone(),
            })
            .collect()),
    }
}
