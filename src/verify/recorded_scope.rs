//! Kinds and namespaces of a set: recorded, needed by its members, and accounted for by all objects
//! with its label. `record_findings` compares them, and `repair` writes them.

use std::collections::BTreeSet;

use crate::cluster::discovery::Discovery;
use crate::model::applyset::Record;
use crate::model::applyset::parent::ApplySetRecord;
use crate::model::live::{Live, Presence};
use crate::plan::reason_not_a_member;
use crate::plan::recorded_kinds::RecordedKind;
use crate::read::found_set::{FoundSet, entries};

/// Returns the record with its kinds as they are served. A kind that is not served has no members.
pub(super) fn served_record(recorded: &ApplySetRecord, discovery: &Discovery) -> Record {
    let kinds = entries(recorded, discovery).into_iter();
    Record {
        group_kinds: kinds
            .filter_map(|(_, entry)| match entry {
                RecordedKind::Served(resource) | RecordedKind::Misspelled(resource) => {
                    Some(resource.group_kind())
                }
                RecordedKind::Gone
                | RecordedKind::Kept(_)
                | RecordedKind::UnexpectedlyMissing(_)
                | RecordedKind::Unknowable(_) => None,
            })
            .collect(),
        additional_namespaces: recorded.additional_namespaces.clone(),
    }
}

/// Returns the record that the members need. An object with a copied label is not a member: a
/// controller that mirrors Services would widen the record of every set that has one.
pub(super) fn needed_record(set: &FoundSet, appliers: &BTreeSet<String>) -> Record {
    Record::from_members(members(set, appliers).map(|live| &live.key), &set.identity)
}

/// Returns the members without those that are being deleted.
pub(super) fn members<'s>(
    set: &'s FoundSet,
    appliers: &'s BTreeSet<String>,
) -> impl Iterator<Item = &'s Live> {
    set.members.iter().filter(|live| {
        live.presence == Presence::Present
            && reason_not_a_member(live, Some(&set.parent_uid), appliers).is_none()
    })
}

/// Returns the record that all objects with the label account for. These include objects that are
/// being deleted, and copies of the label, which an apply finds and keeps.
pub(super) fn labeled_record(set: &FoundSet) -> Record {
    Record::from_members(set.members.iter().map(|live| &live.key), &set.identity)
}
