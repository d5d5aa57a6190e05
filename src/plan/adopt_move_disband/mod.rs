//! The plan of `adopt`, `move` and `disband`: the objects whose part-of label is written, the fields that
//! move to our field manager with it, and the reasons to keep the other objects as they are.
//!
//! Kept objects are reported. An object of another set stops the run.

mod objects_outside_inventory_namespace;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub use self::objects_outside_inventory_namespace::judge_inventory;
use super::{OtherParents, Refusal, Risk, label_written_by};
use crate::compare::ownership::Creator;
use crate::import::Mark;
use crate::model::applyset::Record;
use crate::model::identity::ObjectKey;
use crate::model::live::{Live, OwnerReference, Presence, Tracking};
use crate::model::resource::Resource;
use crate::model::set::Set;

/// The change to the membership of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MembershipChange {
    /// Its part-of label is written, and the ownership of its fields changes like this.
    Write(FieldOwnership),
    /// Its part-of label is already correct.
    Settled,
    /// It is kept as it is.
    Leave(MembershipKeepReason),
    /// It is a member of the set with this id, which stops the run.
    OfAnotherSet(String),
}

/// The change to the ownership of an object's fields when it becomes a member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FieldOwnership {
    /// It stays as it is.
    #[default]
    Kept,
    /// The fields of the tool that the object is adopted from become ours: its new
    /// `metadata.managedFields`.
    Moved(Value),
}

/// The reason to keep an object as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MembershipKeepReason {
    /// The user named it, and it does not exist.
    NotFound,
    /// An inventory lists it, and it does not exist.
    Missing,
    /// It is being deleted.
    Terminating,
    /// Another object owns it; a controller or the garbage collector deletes it with its owner.
    Owned(OwnerReference),
    /// It is the parent of the set that it would be in.
    IsParent,
    /// A label selector found it, and neither a user nor an apply created it: a controller may have copied
    /// the labels.
    MadeByOthers {
        /// The field managers that may have created it; empty if none is known.
        managers: Vec<String>,
    },
    /// No applier wrote its part-of label.
    CopiedLabel {
        /// The field managers that own the label; empty if none does.
        writers: Vec<String>,
    },
    /// It no longer has the labels by which it was selected.
    NotSelected,
    /// It is not in the set that it would leave.
    NotAMember,
    /// The tool that it would be taken from does not manage it, for this reason.
    TrackedElsewhere(String),
    /// It is listed in an inventory and does not point back at it, for this reason.
    Unmarked(String),
}

impl fmt::Display for MembershipKeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("not found"),
            Self::Missing => f.write_str("it does not exist"),
            Self::Terminating => f.write_str("it is being deleted"),
            Self::Owned(owner) => write!(f, "owned by {} {}", owner.kind, owner.name),
            Self::IsParent => f.write_str("it is the set's parent"),
            Self::MadeByOthers { managers } if managers.is_empty() => f.write_str(
                "no field manager shows its creator, so its labels may be copies; adopt it with -f",
            ),
            Self::MadeByOthers { managers } => write!(
                f,
                "created by {}, not by kubectl or an apply, so its labels may be copies; adopt it with -f",
                managers.join(" or ")
            ),
            Self::CopiedLabel { writers } if writers.is_empty() => {
                write!(f, "{}; remove the label", label_written_by(writers))
            }
            Self::CopiedLabel { writers } => write!(
                f,
                "{}; if that is the applier of the set, pass it to --field-manager",
                label_written_by(writers)
            ),
            Self::NotSelected => f.write_str("its labels do not match the selector"),
            Self::NotAMember => f.write_str("it is not a member of the set"),
            Self::TrackedElsewhere(reason) | Self::Unmarked(reason) => f.write_str(reason),
        }
    }
}

/// The way in which a candidate was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundBy {
    /// The user named it.
    Named,
    /// A label selector matches it.
    Selected(Creator),
    /// The inventory of another tool lists it, and it has this mark.
    Tracked(Mark),
}

/// A candidate for adoption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// As it was read.
    pub live: Live,
    /// The way in which it was found.
    pub way: FoundBy,
    /// The ownership of its fields once it is adopted.
    pub fields: FieldOwnership,
}

/// The changes of a run to the membership of objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MembershipPlan {
    /// Objects whose part-of label is written.
    pub changes: Vec<Live>,
    /// The new `metadata.managedFields` of those of them whose fields move to our field manager, by UID.
    pub moved_fields: BTreeMap<String, Value>,
    /// Objects whose part-of label is already correct.
    pub settled: Vec<Live>,
    /// Objects that are kept as they are.
    pub left: Vec<Left>,
    /// Reasons for which the plan may not be carried out.
    pub refusals: Vec<Refusal>,
}

/// One object that is kept as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// The resource that it is or would be read through.
    pub resource: Arc<Resource>,
    /// `metadata.uid`, if it exists.
    pub uid: Option<String>,
    pub reason: MembershipKeepReason,
}

impl Left {
    fn new(live: &Live, reason: MembershipKeepReason) -> Self {
        Self {
            key: live.key.clone(),
            resource: Arc::clone(&live.resource),
            uid: Some(live.uid.clone()),
            reason,
        }
    }

    /// Returns whether the run fails because of it.
    pub fn is_failure(&self) -> bool {
        self.reason == MembershipKeepReason::NotFound
    }
}

impl MembershipPlan {
    /// Returns the record that the parent needs before the first label is written.
    pub fn record(&self, set: &Set) -> Record {
        let live = self.changes.iter().chain(&self.settled);
        Record::from_members(live.map(|live| &live.key), &set.parent)
    }

    /// Returns the number of objects that the user named and that do not exist.
    pub fn count_not_found(&self) -> usize {
        self.left.iter().filter(|left| left.is_failure()).count()
    }

    /// Returns the number of objects that a run reports.
    pub fn objects(&self) -> usize {
        self.changes.len() + self.settled.len() + self.left.len()
    }

    /// Returns whether the set has a member after the run: without one, no parent is created.
    pub fn takes_any(&self) -> bool {
        !(self.changes.is_empty() && self.settled.is_empty())
    }

    /// Returns the refusal of a disband that the user has not confirmed; `None` if it releases nothing. An
    /// object that an apply would keep because its label is a copy does not count as a member.
    pub fn forgets(&self, set: &Set, appliers: &BTreeSet<String>) -> Option<Refusal> {
        let (members, copies): (Vec<&Live>, Vec<&Live>) =
            self.changes.iter().partition(|live| live.is_labeled_by(appliers));
        (!self.changes.is_empty()).then(|| Refusal::ForgetsSet {
            parent: set.parent.clone(),
            members: members.len(),
            copies: copies.into_iter().map(|live| live.key.clone()).collect(),
        })
    }

    fn add(&mut self, live: &Live, change: MembershipChange, parents: &OtherParents) {
        match change {
            MembershipChange::Write(fields) => {
                if let FieldOwnership::Moved(fields) = fields {
                    self.moved_fields.insert(live.uid.clone(), fields);
                }
                self.changes.push(live.clone());
            }
            MembershipChange::Settled => self.settled.push(live.clone()),
            MembershipChange::Leave(reason) => self.left.push(Left::new(live, reason)),
            MembershipChange::OfAnotherSet(id) => self.refusals.push(Refusal::OfAnotherSet {
                object: live.key.clone(),
                parent: parents.get(&id),
                id,
            }),
        }
    }
}

/// Judges one object that is to become a member unchanged.
pub fn judge_adoption(candidate: &Candidate, set: &Set, take_ownership: Risk) -> MembershipChange {
    let live = &candidate.live;
    if set.is_parent(live) {
        return MembershipChange::Leave(MembershipKeepReason::IsParent);
    }
    if live.presence == Presence::Terminating {
        return MembershipChange::Leave(MembershipKeepReason::Terminating);
    }
    let is_tracked = live.tracking != Tracking::Off;
    // A label without a field manager would never let the object be pruned.
    if live.part_of.as_deref() == Some(set.id.as_str()) && is_tracked {
        return match &candidate.fields {
            // An earlier run left them with the tool; they move now.
            FieldOwnership::Moved(_) if candidate.way == FoundBy::Tracked(Mark::Own) => {
                MembershipChange::Write(candidate.fields.clone())
            }
            FieldOwnership::Moved(_) | FieldOwnership::Kept => MembershipChange::Settled,
        };
    }
    if let Some(owner) = live.foreign_owner(set.parent_uid.as_deref()) {
        return MembershipChange::Leave(MembershipKeepReason::Owned(owner.clone()));
    }
    match &candidate.way {
        FoundBy::Selected(Creator::Others(managers)) => {
            let managers = managers.clone();
            return MembershipChange::Leave(MembershipKeepReason::MadeByOthers { managers });
        }
        FoundBy::Tracked(Mark::Other(reason)) => {
            return MembershipChange::Leave(MembershipKeepReason::TrackedElsewhere(reason.clone()));
        }
        FoundBy::Tracked(Mark::Missing(reason)) => {
            return MembershipChange::Leave(MembershipKeepReason::Unmarked(reason.clone()));
        }
        FoundBy::Named | FoundBy::Selected(Creator::Person) | FoundBy::Tracked(Mark::Own) => {}
    }
    match &live.part_of {
        Some(other) if other != set.id.as_str() && take_ownership == Risk::Refused => {
            MembershipChange::OfAnotherSet(other.clone())
        }
        Some(_) | None => MembershipChange::Write(candidate.fields.clone()),
    }
}

/// Judges one object that is to leave `from` for `to`. An object that no applier labeled, or that has
/// an owner, is kept: it became a member by accident, and a copied label follows its original.
pub fn judge_move(live: &Live, from: &Set, to: &Set, appliers: &BTreeSet<String>) -> MembershipChange {
    let set_id = live.part_of.as_deref();
    if set_id == Some(to.id.as_str()) {
        return MembershipChange::Settled;
    }
    let reason = if set_id != Some(from.id.as_str()) {
        MembershipKeepReason::NotAMember
    } else if to.is_parent(live) {
        MembershipKeepReason::IsParent
    } else if live.presence == Presence::Terminating {
        MembershipKeepReason::Terminating
    } else if let Some(owner) = live.owners.first() {
        // With an owner reference to the old parent, the object would be deleted with it.
        MembershipKeepReason::Owned(owner.clone())
    } else if live.is_labeled_by(appliers) {
        return MembershipChange::Write(FieldOwnership::Kept);
    } else {
        MembershipKeepReason::CopiedLabel {
            writers: live.part_of_writers.clone(),
        }
    };
    MembershipChange::Leave(reason)
}

/// Judges one object that is to leave its set.
pub fn judge_release(live: &Live, set: &Set) -> MembershipChange {
    if live.part_of.as_deref() == Some(set.id.as_str()) {
        MembershipChange::Write(FieldOwnership::Kept)
    } else {
        MembershipChange::Settled
    }
}

/// Decides which objects are adopted. `missing` were asked for and do not exist; `parents` are those of
/// other sets.
pub fn plan_adoption(
    set: &Set,
    candidates: &[Candidate],
    missing: Vec<Left>,
    parents: &OtherParents,
    take_ownership: Risk,
) -> MembershipPlan {
    let mut plan = MembershipPlan {
        left: missing,
        ..MembershipPlan::default()
    };
    let mut seen = BTreeSet::new();
    for candidate in candidates {
        // Two groups can serve one object.
        if seen.insert(candidate.live.uid.as_str()) {
            let change = judge_adoption(candidate, set, take_ownership);
            plan.add(&candidate.live, change, parents);
        }
    }
    plan
}

/// Decides which of `members` move. `asked` limits the move to these objects; those of them that are in
/// neither set are reported.
pub fn plan_move(
    from: &Set,
    to: &Set,
    members: &[Live],
    asked: Option<Vec<Left>>,
    appliers: &BTreeSet<String>,
) -> MembershipPlan {
    let mut plan = MembershipPlan::default();
    let keys: Option<BTreeSet<ObjectKey>> = asked
        .as_ref()
        .map(|asked| asked.iter().map(|left| left.key.clone()).collect());
    let mut seen = BTreeSet::new();
    for live in members {
        let is_asked = keys.as_ref().is_none_or(|keys| keys.contains(&live.key));
        if is_asked && seen.insert(live.uid.as_str()) {
            plan.add(
                live,
                judge_move(live, from, to, appliers),
                &OtherParents::default(),
            );
        }
    }
    let found: BTreeSet<&ObjectKey> = members.iter().map(|live| &live.key).collect();
    let strangers = asked.into_iter().flatten();
    plan.left
        .extend(strangers.filter(|left| !found.contains(&left.key)));
    plan
}

/// Decides which objects are released: all with the set's label. An object that no applier labeled
/// comes last: as a copy, it may be deleted with its original.
pub fn plan_release(set: &Set, members: Vec<Live>, appliers: &BTreeSet<String>) -> MembershipPlan {
    let mut changes: Vec<Live> = members
        .into_iter()
        .filter(|live| judge_release(live, set) != MembershipChange::Settled)
        .collect();
    changes.sort_by_key(|live| (!live.is_labeled_by(appliers), live.key.clone()));
    MembershipPlan {
        changes,
        ..MembershipPlan::default()
    }
}

#[cfg(test)]
mod tests;
