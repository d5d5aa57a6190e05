//! The repair of a parent, which `--fix` writes.
//!
//! A repair writes only the ApplySet metadata of a set of this program, and only values that are certain. It widens the
//! record to cover the members that were seen. It narrows the record, or replaces an invalid one, only if the whole
//! cluster was listed: otherwise, members that were not seen would be lost. It deletes no object and changes no member.

mod repairable;
mod target_record;

use std::collections::BTreeSet;
use std::slice;
use std::sync::Arc;

use repairable::check_repairable;
use target_record::compute_target_record;

use super::lenient_record::read_tooling;
use super::parent_findings::annotations_size;
use super::{CheckContext, ExaminedSet, RunsUnderWay};
use crate::model::applyset::parent::{ANNOTATIONS_LIMIT, Pairs, read_labels_and_annotations};
use crate::model::applyset::{
    ADDITIONAL_NAMESPACES_ANNOTATION, GROUP_KINDS_ANNOTATION, GROUP_RESOURCES_ANNOTATION, ID_LABEL,
    PART_OF_LABEL, Record, TOOLING_ANNOTATION, Tooling,
};
use crate::model::history_annotation::Run;
use crate::model::list_targets::ListTargets;
use crate::model::resource::Resource;
use crate::model::set::{ParentObject, Set};
use crate::read::found_set::{self, served_record};

/// The repair of one parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The set whose ApplySet metadata is written.
    pub set: Set,
    /// The resource of the parent.
    pub resource: Arc<Resource>,
    /// The parent as the rules saw it. The repair is written only if the parent has not changed since.
    pub parent: ParentObject,
    /// The valid entries of the record before the repair, without kinds that are not served.
    pub recorded: Record,
    /// The record to write.
    pub record: Record,
    /// The collections that the record covers before the repair.
    pub places: ListTargets,
    /// Labels and annotations to remove.
    pub removals: Vec<Removal>,
    /// The ids of the runs under way that the parent lists as killed after the repair.
    pub ended: Vec<String>,
    /// The changes in words, one line for each label, annotation and run.
    pub changes: Vec<String>,
}

impl Repair {
    /// Returns the set as it is after the repair.
    pub(super) fn repaired_set(&self, set: &ExaminedSet) -> ExaminedSet {
        let mut parent = set.parent.clone();
        let object = &mut parent.object;
        parent.labels.insert(ID_LABEL.to_owned(), self.set.id.to_string());
        for (key, value) in annotations_to_write(&self.set.tooling, &self.record) {
            object.annotations.insert(key.to_owned(), value);
        }
        for removal in &self.removals {
            match removal {
                Removal::Annotation(key) => object.annotations.remove(*key),
                Removal::Label(key) => parent.labels.remove(*key),
            };
        }
        object.reading = read_labels_and_annotations(&parent.live.key, &parent.labels, &object.annotations);
        let mut repaired = ExaminedSet::new(parent, set.eligibility);
        repaired.found.members.clone_from(&set.found.members);
        repaired.found.unread.clone_from(&set.found.unread);
        repaired
    }
}

/// A key to remove from a parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    Annotation(&'static str),
    Label(&'static str),
}

/// Plans the repair of a parent; `None` if nothing would change.
///
/// # Errors
///
/// The reason for which the parent may not be repaired.
pub(super) fn plan_repair(set: &ExaminedSet, context: CheckContext<'_>) -> Result<Option<Repair>, String> {
    check_repairable(set, context)?;
    let parent = &set.parent;
    let discovery = context.discovery;
    let applyset_record = set.found.recorded();
    let recorded =
        applyset_record.map_or_else(Record::default, |recorded| served_record(recorded, discovery));
    let record = match compute_target_record(set, context)? {
        record if !parent.object.is_being_added_to() => record,
        // A run is under way, whose members and CRDs may not exist yet: the repair removes nothing that the run has
        // recorded, not even a kind that is not served.
        record => applyset_record
            .map_or_else(Record::default, |recorded| {
                found_set::to_current_form(recorded, discovery)
            })
            .union(&record),
    };
    // If the annotation names another version of this program, the repair leaves it.
    let tooling = read_tooling(&parent.object.annotations).unwrap_or_else(Tooling::this_program);
    let mut changes = Vec::new();
    changes.extend(describe_change(&parent.labels, ID_LABEL, set.found.id.as_str()));
    let current = &parent.object.annotations;
    for (key, value) in annotations_to_write(&tooling, &record) {
        changes.extend(describe_change(current, key, &value));
    }
    let mut removals = Vec::new();
    if current.contains_key(GROUP_RESOURCES_ANNOTATION) {
        removals.push(Removal::Annotation(GROUP_RESOURCES_ANNOTATION));
        changes.push(format!("remove {GROUP_RESOURCES_ANNOTATION}"));
    }
    if parent.labels.get(PART_OF_LABEL).map(String::as_str) == Some(set.found.id.as_str()) {
        removals.push(Removal::Label(PART_OF_LABEL));
        changes.push(format!("remove {PART_OF_LABEL}"));
    }
    let ended: &[Run] = match context.runs_under_way {
        RunsUnderWay::Kept => &[],
        RunsUnderWay::Ended => &parent.object.running,
    };
    changes.extend(ended.iter().map(|run| {
        format!(
            "end {run} that began at {} and was last renewed at {}: answer yes only if you know that it was killed",
            run.time,
            run.last_renewal()
        )
    }));
    if changes.is_empty() {
        return Ok(None);
    }
    let repair = Repair {
        set: Set {
            id: set.found.id.clone(),
            parent: parent.live.key.clone(),
            parent_uid: Some(parent.object.uid.clone()),
            tooling,
        },
        resource: Arc::clone(&parent.live.resource),
        parent: parent.object.clone(),
        recorded,
        places: found_set::determine_places_of_sets(slice::from_ref(&set.found), discovery),
        record,
        removals,
        ended: ended.iter().map(|run| run.id.clone()).collect(),
        changes,
    };
    let size = annotations_size(&repair.repaired_set(set).parent.object.annotations);
    if size > ANNOTATIONS_LIMIT {
        return Err(format!(
            "its annotations would take {size} bytes, and the server allows {ANNOTATIONS_LIMIT}"
        ));
    }
    Ok(Some(repair))
}

/// Returns the annotations that a repair writes.
fn annotations_to_write(tooling: &Tooling, record: &Record) -> [(&'static str, String); 3] {
    [
        (TOOLING_ANNOTATION, tooling.to_string()),
        (GROUP_KINDS_ANNOTATION, record.group_kinds_value()),
        (ADDITIONAL_NAMESPACES_ANNOTATION, record.namespaces_value()),
    ]
}

/// Describes the change of the label or annotation `key` to `value`; `None` if it has that value already.
fn describe_change(current: &Pairs, key: &str, value: &str) -> Option<String> {
    let Some(current_value) = current.get(key) else {
        return Some(format!("add {key} {value:?}"));
    };
    if current_value == value {
        return None;
    }
    let change = format!("change {key} from {current_value:?} to {value:?}");
    if key == ID_LABEL || key == TOOLING_ANNOTATION {
        return Some(change);
    }
    let lost_entries = entries_beyond(current_value, value);
    let new_entries = entries_beyond(value, current_value);
    Some(match (lost_entries.is_empty(), new_entries.is_empty()) {
        (true, true) => change,
        (false, true) => format!("remove {lost_entries} from {key}"),
        (true, false) => format!("add {new_entries} to {key}"),
        (false, false) => format!("remove {lost_entries} from {key} and add {new_entries}"),
    })
}

/// Lists the entries of the list `one` that the list `other` lacks. Entries that are empty or have blanks are quoted.
fn entries_beyond(one: &str, other: &str) -> String {
    let other_entries: BTreeSet<&str> = other.split(',').collect();
    let mut missing = Vec::new();
    for entry in one
        .split(',')
        .filter(|entry| !other_entries.contains(entry) && !one.is_empty())
    {
        if entry.is_empty() || entry.contains(char::is_whitespace) {
            missing.push(format!("{entry:?}"));
        } else {
            missing.push(entry.to_owned());
        }
    }
    missing.join(", ")
}

#[cfg(test)]
mod tests;
