//! The plan of `adopt`, `move` and `disband`: the objects whose part-of label is written, the fields that
//! move to our field manager, and the reasons to keep the other objects as they are.
//!
//! A run reports the objects that are kept as they are. An object of another set stops the run.

mod objects_outside_inventory_namespace;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub use self::objects_outside_inventory_namespace::refuse_empty_or_unconfirmed_adoption;
use super::reason_to_keep::is_merged;
use super::{OtherParents, Refusal, Risk, describe_label_writers};
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
    /// The part-of label is written, and the ownership of the object's fields changes as given.
    Write(FieldOwnership),
    /// The part-of label is already correct.
    Settled,
    /// The object is kept as it is, for this reason.
    Keep(MembershipKeepReason),
    /// The object is a member of the set with this id, which stops the run.
    OfAnotherSet(String),
}

/// The change to the ownership of an object's fields when it becomes a member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FieldOwnership {
    /// The ownership stays as it is.
    #[default]
    Kept,
    /// The fields of the tool that the object is adopted from move to our field manager. The value is the object's new
    /// `metadata.managedFields`.
    Moved(Value),
}

/// The reason to keep an object as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MembershipKeepReason {
    /// The user named the object, and it does not exist. The run fails because of it.
    NotFound,
    /// An inventory lists the object, and it does not exist.
    Missing,
    /// The object is being deleted.
    Terminating,
    /// Another object owns the object; a controller or the garbage collector deletes it with its owner.
    Owned(OwnerReference),
    /// The object is the parent of the set that it would become a member of.
    IsParent,
    /// A label selector found the object, and neither a user nor an apply created it: a controller may have copied
    /// the labels.
    MadeByOthers {
        /// The field managers that may have created the object; empty if none is known.
        managers: Vec<String>,
    },
    /// No applier wrote the object's part-of label.
    CopiedLabel {
        /// The field managers that own the label; empty if none does.
        writers: Vec<String>,
    },
    /// The object no longer has the labels by which it was selected.
    NotSelected,
    /// The object is not in the set that it would leave.
    NotAMember,
    /// An inventory lists the object, and the object does not refer back to the inventory, for this reason.
    NotOfInventory(String),
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
                write!(f, "{}; remove the label", describe_label_writers(writers))
            }
            Self::CopiedLabel { writers } if is_merged(writers) => {
                write!(f, "{}; apply the object first", describe_label_writers(writers))
            }
            Self::CopiedLabel { writers } => write!(
                f,
                "{}; if that is the applier of the set, pass it to --field-manager",
                describe_label_writers(writers)
            ),
            Self::NotSelected => f.write_str("its labels do not match the selector"),
            Self::NotAMember => f.write_str("it is not a member of the set"),
            Self::NotOfInventory(reason) => f.write_str(reason),
        }
    }
}

/// The way in which a candidate was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundBy {
    /// The user named the candidate.
    Named,
    /// A label selector matches the candidate, which has this creator.
    Selected(Creator),
    /// The inventory of another tool lists the candidate, which has this mark of the tool.
    Tracked(Mark),
}

/// A candidate for adoption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The object as it was read.
    pub live: Live,
    /// The way in which the candidate was found.
    pub found_by: FoundBy,
    /// The change to the ownership of the object's fields if it is adopted.
    pub fields: FieldOwnership,
}

/// The changes of a run to the membership of objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MembershipPlan {
    /// Objects whose part-of label is written.
    pub changes: Vec<Live>,
    /// The objects of `changes` whose fields move to our field manager. Key: the UID. Value: the new
    /// `metadata.managedFields`.
    pub moved_fields: BTreeMap<String, Value>,
    /// Objects whose part-of label is already correct.
    pub settled: Vec<Live>,
    /// Objects that are kept as they are.
    pub skips: Vec<MembershipSkip>,
    /// Reasons for which the plan may not be carried out.
    pub refusals: Vec<Refusal>,
}

/// One object that is kept as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MembershipSkip {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// The resource through which the object is read.
    pub resource: Arc<Resource>,
    /// `metadata.uid`; `None` if the object does not exist.
    pub uid: Option<String>,
    pub reason: MembershipKeepReason,
}

impl MembershipSkip {
    fn new(live: &Live, reason: MembershipKeepReason) -> Self {
        Self {
            key: live.key.clone(),
            resource: Arc::clone(&live.resource),
            uid: Some(live.uid.clone()),
            reason,
        }
    }

    /// Returns whether the run fails because of this object.
    pub fn is_failure(&self) -> bool {
        self.reason == MembershipKeepReason::NotFound
    }
}

impl MembershipPlan {
    /// Returns the record that the parent needs before the first label is written.
    pub fn build_record_of_members(&self, set: &Set) -> Record {
        let live = self.changes.iter().chain(&self.settled);
        Record::from_members(live.map(|live| &live.key), &set.parent)
    }

    /// Returns the number of objects that the user named and that do not exist.
    pub fn count_not_found(&self) -> usize {
        self.skips.iter().filter(|skip| skip.is_failure()).count()
    }

    /// Returns the number of objects that a run reports.
    pub fn count_reported_objects(&self) -> usize {
        self.changes.len() + self.settled.len() + self.skips.len()
    }

    /// Returns whether at least one of the objects is a member of the set after the run. If none is, the run creates no
    /// parent.
    pub fn has_member_after_run(&self) -> bool {
        !(self.changes.is_empty() && self.settled.is_empty())
    }

    /// Returns whether all objects stay where they are, although there are some.
    pub fn takes_none(&self) -> bool {
        !self.has_member_after_run() && !self.skips.is_empty()
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
            MembershipChange::Keep(reason) => self.skips.push(MembershipSkip::new(live, reason)),
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
        return MembershipChange::Keep(MembershipKeepReason::IsParent);
    }
    if live.presence == Presence::Terminating {
        return MembershipChange::Keep(MembershipKeepReason::Terminating);
    }
    let is_tracked = live.tracking != Tracking::Off;
    // If no field manager owns the label, it is written again: the object would never be pruned with such a label.
    if live.part_of.as_deref() == Some(set.id.as_str()) && is_tracked {
        return match &candidate.fields {
            // An earlier run wrote the label, but did not move the fields of the tool. They move now.
            FieldOwnership::Moved(_) if candidate.found_by == FoundBy::Tracked(Mark::Own) => {
                MembershipChange::Write(candidate.fields.clone())
            }
            FieldOwnership::Moved(_) | FieldOwnership::Kept => MembershipChange::Settled,
        };
    }
    if let Some(owner) = live.foreign_owner(set.parent_uid.as_deref()) {
        return MembershipChange::Keep(MembershipKeepReason::Owned(owner.clone()));
    }
    match &candidate.found_by {
        FoundBy::Selected(Creator::Others(managers)) => {
            return MembershipChange::Keep(MembershipKeepReason::MadeByOthers {
                managers: managers.clone(),
            });
        }
        FoundBy::Tracked(Mark::Other(reason) | Mark::Missing(reason)) => {
            return MembershipChange::Keep(MembershipKeepReason::NotOfInventory(reason.clone()));
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

/// Judges one object that is to leave `from` for `to`.
///
/// An object that no applier labeled, or that has an owner, is kept as it is. A controller probably made it and copied
/// the label from another object; once that object has moved, the controller copies the new label.
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
        // This includes an owner reference to the parent of `from`: if the move deletes that parent, the object would
        // be deleted with it.
        MembershipKeepReason::Owned(owner.clone())
    } else if live.has_part_of_label_written_by(appliers) {
        return MembershipChange::Write(FieldOwnership::Kept);
    } else {
        MembershipKeepReason::CopiedLabel {
            writers: live.part_of_writers.clone(),
        }
    };
    MembershipChange::Keep(reason)
}

/// Judges one object that is to leave its set.
pub fn judge_disband(live: &Live, set: &Set) -> MembershipChange {
    if live.part_of.as_deref() == Some(set.id.as_str()) {
        MembershipChange::Write(FieldOwnership::Kept)
    } else {
        MembershipChange::Settled
    }
}

/// Decides which objects are adopted. `missing` are the requested objects that do not exist, and `parents` are the
/// parents of other sets.
pub fn plan_adoption(
    set: &Set,
    candidates: &[Candidate],
    missing: Vec<MembershipSkip>,
    parents: &OtherParents,
    take_ownership: Risk,
) -> MembershipPlan {
    let mut plan = MembershipPlan {
        skips: missing,
        ..MembershipPlan::default()
    };
    let mut seen = BTreeSet::new();
    for candidate in candidates {
        // Two API groups can serve one object, which is then read twice.
        if seen.insert(candidate.live.uid.as_str()) {
            let change = judge_adoption(candidate, set, take_ownership);
            plan.add(&candidate.live, change, parents);
        }
    }
    plan
}

/// Decides which of `members_of_both` move: the members of both sets.
///
/// `requested` limits the move to these objects; with `None`, all members of `from` move. A requested object that is in
/// neither set is reported with the reason that it has in `requested`.
pub fn plan_move(
    from: &Set,
    to: &Set,
    members_of_both: &[Live],
    requested: Option<Vec<MembershipSkip>>,
    appliers: &BTreeSet<String>,
) -> MembershipPlan {
    let mut plan = MembershipPlan::default();
    let requested_keys: Option<BTreeSet<ObjectKey>> = requested
        .as_ref()
        .map(|requested| requested.iter().map(|object| object.key.clone()).collect());
    let mut seen = BTreeSet::new();
    for live in members_of_both {
        let is_requested = requested_keys
            .as_ref()
            .is_none_or(|keys| keys.contains(&live.key));
        if is_requested && seen.insert(live.uid.as_str()) {
            plan.add(
                live,
                judge_move(live, from, to, appliers),
                &OtherParents::default(),
            );
        }
    }
    let found: BTreeSet<&ObjectKey> = members_of_both.iter().map(|live| &live.key).collect();
    let not_found = requested
        .into_iter()
        .flatten()
        .filter(|object| !found.contains(&object.key));
    plan.skips.extend(not_found);
    plan
}

/// Decides which objects are released: all objects with the set's label. If there are any, the user has to confirm it.
///
/// An object whose label is a copy comes last: it may be deleted together with the object that the label was copied
/// from.
pub fn plan_disband(set: &Set, members: Vec<Live>, appliers: &BTreeSet<String>) -> MembershipPlan {
    let mut changes: Vec<Live> = members
        .into_iter()
        .filter(|live| judge_disband(live, set) != MembershipChange::Settled)
        .collect();
    changes.sort_by_key(|live| (!live.has_part_of_label_written_by(appliers), live.key.clone()));
    let copies = changes
        .iter()
        .filter(|live| !live.has_part_of_label_written_by(appliers));
    let copies: Vec<ObjectKey> = copies.map(|live| live.key.clone()).collect();
    let disbands = Refusal::DisbandsSet {
        parent: set.parent.clone(),
        members: changes.len() - copies.len(),
        copies,
    };
    MembershipPlan {
        refusals: if changes.is_empty() {
            Vec::new()
        } else {
            vec![disbands]
        },
        changes,
        ..MembershipPlan::default()
    }
}

#[cfg(test)]
mod tests;
