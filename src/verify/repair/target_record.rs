//! The record that a repair writes.

use std::collections::BTreeSet;

use super::super::lenient_record::{read_leniently, read_valid_additional_namespaces};
use super::super::record_findings::{labeled_record, needed_record};
use super::super::{CheckContext, ExaminedSet, Extent, NewNamespaces, record_covers};
use crate::cluster::discovery::Discovery;
use crate::model::applyset::Record;
use crate::model::applyset::parent::{ParentAnnotations, RecordedKinds};
use crate::model::live::Live;
use crate::plan::recorded_kinds::{self, RecordedKind};
use crate::read::found_set::{FoundSet, served_record};

/// Returns the record to write. If the whole cluster was listed, the record has the kinds and namespaces of the objects
/// with the label, of lost members, and of kinds that cannot be listed. Otherwise, it has the recorded kinds and
/// namespaces, and the kinds and namespaces of the members that were seen.
///
/// # Errors
///
/// The reason for which the record is not certain.
pub(super) fn compute_target_record(set: &ExaminedSet, context: CheckContext<'_>) -> Result<Record, String> {
    let incomplete = |what: &str| format!("{what}, and not everything in the cluster can be listed");
    let lenient = read_leniently(&set.parent);
    let lenient_extent = lenient.as_ref().map_or(Extent::Part, |lenient| lenient.extent);
    let recordable_set = keep_recordable_members(set, context.new_namespaces, lenient_extent)?;
    let needed = needed_record(&recordable_set, context.appliers);
    let Some(lenient) = lenient else {
        return match context.extent {
            Extent::Whole => Ok(needed),
            Extent::Part => Err(incomplete("the kinds are not recorded")),
        };
    };
    if context.extent == Extent::Whole {
        let recorded = served_record(&lenient.record, context.discovery);
        let unlisted = unlistable_record(&lenient.record, context.discovery)?;
        let accounted = intersection(&recorded, &labeled_record(&recordable_set));
        let lost = lost_members_record(&recordable_set, &recorded, context.lost);
        return Ok(needed.union(&accounted).union(&unlisted).union(&lost));
    }
    if lenient.extent == Extent::Part {
        return Err(incomplete("part of the record is invalid"));
    }
    let recorded = record_without_gone_kinds(&lenient.record, context.discovery)?;
    Ok(recorded.union(&needed))
}

/// Returns the set with the members whose namespaces may be recorded. `lenient_extent` says how much of the record
/// could be read.
///
/// # Errors
///
/// A member is in a namespace that is not recorded, and an invalid entry of the record may have named this namespace.
fn keep_recordable_members(
    set: &ExaminedSet,
    new_namespaces: NewNamespaces,
    lenient_extent: Extent,
) -> Result<FoundSet, String> {
    if new_namespaces == NewNamespaces::Included {
        return Ok(set.found.clone());
    }
    let recordable_set = within_namespaces(set.found.clone(), &read_valid_additional_namespaces(&set.parent));
    if lenient_extent == Extent::Part && recordable_set.members.len() < set.found.members.len() {
        return Err(
            "part of the record is invalid; add --include-namespaces to trust the labels of members in other namespaces"
                .to_owned(),
        );
    }
    Ok(recordable_set)
}

/// Returns the set with only the members that are cluster-scoped, in the parent's namespace, or in one of the recorded
/// namespaces.
fn within_namespaces(mut set: FoundSet, recorded_namespaces: &BTreeSet<String>) -> FoundSet {
    let parent_namespace = set.identity.namespace.clone();
    set.members.retain(|live| {
        live.key.namespace.as_ref().is_none_or(|namespace| {
            parent_namespace.as_ref() == Some(namespace) || recorded_namespaces.contains(namespace)
        })
    });
    set
}

/// Returns the record without the kinds that are certainly gone: they have no members.
fn record_without_gone_kinds(recorded: &ParentAnnotations, discovery: &Discovery) -> Result<Record, String> {
    Ok(served_record(recorded, discovery).union(&unlistable_record(recorded, discovery)?))
}

/// Returns the recorded kinds that cannot be listed, together with all recorded namespaces, since any of these may have
/// objects of the kinds. Returns an empty record if all kinds can be listed.
///
/// # Errors
///
/// The record names a resource instead of a kind, and nothing shows the kind of this resource.
fn unlistable_record(recorded: &ParentAnnotations, discovery: &Discovery) -> Result<Record, String> {
    let mut record = Record::default();
    for (name, entry) in recorded_kinds::classify_recorded_kinds(&recorded.kinds, discovery) {
        let kind = match entry {
            RecordedKind::Served(_) | RecordedKind::Misspelled(_) | RecordedKind::Gone => {
                continue;
            }
            RecordedKind::Kept(kept) => kept.kind.clone(),
            RecordedKind::UnexpectedlyMissing(_) | RecordedKind::Unknowable(_) => match recorded.kinds {
                RecordedKinds::GroupKinds(_) => Some(name.clone()),
                RecordedKinds::GroupResources(_) => None,
            },
        };
        let kind = kind.ok_or_else(|| format!("kind {name} is ambiguous"))?;
        record.group_kinds.insert(kind);
    }
    if !record.group_kinds.is_empty() {
        record
            .additional_namespaces
            .clone_from(&recorded.additional_namespaces);
    }
    Ok(record)
}

/// Returns the record of the lost members that the set's record covers. They have no label, so if their kinds and
/// namespaces were removed from the record, `verify` would not find them any more.
fn lost_members_record(set: &FoundSet, recorded: &Record, lost: &[Live]) -> Record {
    Record::from_members(
        lost.iter()
            .filter(|live| record_covers(live, recorded, set))
            .map(|live| &live.key),
        &set.identity,
    )
}

fn intersection(one: &Record, other: &Record) -> Record {
    Record {
        group_kinds: one
            .group_kinds
            .intersection(&other.group_kinds)
            .cloned()
            .collect(),
        additional_namespaces: one
            .additional_namespaces
            .intersection(&other.additional_namespaces)
            .cloned()
            .collect(),
    }
}
