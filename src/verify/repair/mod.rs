//! The repair of a parent, which `--fix` writes.
//!
//! A repair writes only the ApplySet metadata of a set of this program, and only what is certain. A
//! record is widened to cover what was seen. It is narrowed, or replaced if it cannot be read, only
//! after a look at the whole cluster. No object is deleted, and no member is changed.

mod repairable;
mod target_record;

use std::collections::BTreeSet;
use std::slice;
use std::sync::Arc;

use repairable::check_repairable;
use target_record::target_record;

use super::lenient_record::tooling;
use super::parent_findings::annotations_size;
use super::record_findings::served_record;
use super::{Examined, RunsUnderWay, Surroundings};
use crate::model::applyset::parent::{ANNOTATIONS_LIMIT, Pairs, read};
use crate::model::applyset::{
    ADDITIONAL_NAMESPACES_ANNOTATION, GROUP_KINDS_ANNOTATION, GROUP_RESOURCES_ANNOTATION, ID_LABEL,
    PART_OF_LABEL, Record, TOOLING_ANNOTATION, Tooling,
};
use crate::model::history_annotation::Run;
use crate::model::list_targets::ListTargets;
use crate::model::resource::Resource;
use crate::model::set::{ParentObject, Set};
use crate::read::found_set;

/// The repair of one parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The set whose metadata are written.
    pub set: Set,
    /// The resource of the parent.
    pub resource: Arc<Resource>,
    /// Precondition: the parent as it was judged.
    pub parent: ParentObject,
    /// The record so far, as far as it makes sense and its kinds are served.
    pub recorded: Record,
    /// The record to write.
    pub record: Record,
    /// The collections that the record covers so far.
    pub places: ListTargets,
    /// Labels and annotations to remove.
    pub removals: Vec<Removal>,
    /// The ids of the runs under way that end as if they had been killed.
    pub ended: Vec<String>,
    /// The changes in words, a line for each key and each run.
    pub changes: Vec<String>,
}

/// A key to remove from a parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    Annotation(&'static str),
    Label(&'static str),
}

/// Plans the repair of a parent; `None` if nothing would change, and the reason if it may not be
/// repaired.
pub(super) fn repair(set: &Examined, surroundings: Surroundings<'_>) -> Result<Option<Repair>, String> {
    check_repairable(set, surroundings)?;
    let parent = &set.parent;
    let discovery = surroundings.discovery;
    let applyset_record = set.found.recorded();
    let recorded = applyset_record.map_or_else(Record::default, |found| served_record(found, discovery));
    let record = match target_record(set, surroundings)? {
        record if !parent.object.is_being_added_to() => record,
        // Members that a run is about to write are not there yet.
        record => record.union(&recorded),
    };
    // An older version of this program in the tooling annotation is not a fault, and is kept.
    let keeper = tooling(&parent.object.annotations).unwrap_or_else(Tooling::this_program);
    let mut changes = Vec::new();
    changes.extend(describe_change(&parent.labels, ID_LABEL, set.found.id.as_str()));
    let current = &parent.object.annotations;
    for (key, value) in annotations(&keeper, &record) {
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
    let ended: &[Run] = match surroundings.runs_under_way {
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
            parent: parent.identity.clone(),
            parent_uid: Some(parent.object.uid.clone()),
            tooling: keeper,
        },
        resource: Arc::clone(&parent.resource),
        parent: parent.object.clone(),
        recorded,
        places: found_set::places(slice::from_ref(&set.found), discovery),
        record,
        removals,
        ended: ended.iter().map(|run| run.id.clone()).collect(),
        changes,
    };
    let size = annotations_size(&repair.apply_to(set).parent.object.annotations);
    if size > ANNOTATIONS_LIMIT {
        return Err(format!(
            "its annotations would take {size} bytes, and the server allows {ANNOTATIONS_LIMIT}"
        ));
    }
    Ok(Some(repair))
}

impl Repair {
    /// Returns the set after the repair.
    pub(super) fn apply_to(&self, set: &Examined) -> Examined {
        let mut parent = set.parent.clone();
        let object = &mut parent.object;
        parent.labels.insert(ID_LABEL.to_owned(), self.set.id.to_string());
        for (key, value) in annotations(&self.set.tooling, &self.record) {
            object.annotations.insert(key.to_owned(), value);
        }
        for removal in &self.removals {
            match removal {
                Removal::Annotation(key) => object.annotations.remove(*key),
                Removal::Label(key) => parent.labels.remove(*key),
            };
        }
        object.reading = read(&parent.identity, &parent.labels, &object.annotations);
        let mut repaired = Examined::new(parent, set.kind);
        repaired.found.members.clone_from(&set.found.members);
        repaired.found.unread.clone_from(&set.found.unread);
        repaired
    }
}

/// Returns the annotations that a repair writes.
fn annotations(tooling: &Tooling, record: &Record) -> [(&'static str, String); 3] {
    [
        (TOOLING_ANNOTATION, tooling.to_string()),
        (GROUP_KINDS_ANNOTATION, record.group_kinds_value()),
        (ADDITIONAL_NAMESPACES_ANNOTATION, record.namespaces_value()),
    ]
}

/// Describes in words the change of the label or annotation `key` to `value`; `None` if it has that value already.
fn describe_change(current: &Pairs, key: &str, value: &str) -> Option<String> {
    let Some(found) = current.get(key) else {
        return Some(format!("add {key} {value:?}"));
    };
    if found == value {
        return None;
    }
    let becomes = format!("change {key} from {found:?} to {value:?}");
    if key == ID_LABEL || key == TOOLING_ANNOTATION {
        return Some(becomes);
    }
    let (lost, gained) = (beyond(found, value), beyond(value, found));
    Some(match (lost.is_empty(), gained.is_empty()) {
        (true, true) => becomes,
        (false, true) => format!("remove {lost} from {key}"),
        (true, false) => format!("add {gained} to {key}"),
        (false, false) => format!("remove {lost} from {key} and add {gained}"),
    })
}

/// Lists the entries of the one list that the other lacks.
fn beyond(one: &str, other: &str) -> String {
    let known: BTreeSet<&str> = other.split(',').collect();
    let mut missing = Vec::new();
    for entry in one
        .split(',')
        .filter(|entry| !known.contains(entry) && !one.is_empty())
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
