//! Decides how one object is undone: only if it is as it was before the run, or as the run left it.

use serde_json::Value;

use super::{Change, RecordedRun, UndoItem, Values, Written};
use crate::compare::ignore::{self, Purpose};
use crate::compare::ownership::{changed_by_others, manifest_of, other_deciders, scaled_fields};
use crate::model::applyset::parent::is_applyset_key;
use crate::model::applyset::{IS_PARENT_TYPE_LABEL, PART_OF_LABEL};
use crate::model::object::Object;
use crate::plan::SkipReason;

/// The way to undo one object.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is as it was, and exists.
    AsBefore,
    /// There is nothing to undo, and no object.
    Absent,
    /// This manifest is applied to it.
    Restore(Value),
    /// It is created with this manifest, once it is gone if it is still being deleted.
    Create(Value),
    /// It is deleted.
    Delete,
    /// It is left as it is, for this reason.
    Skip(String),
    /// It depends on what the server says.
    Ask(Question),
}

/// A question to the server: would an apply of this manifest change the object? If not, the first
/// verdict holds, else the other one.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The manifest.
    pub manifest: Value,
    unchanged: Box<Verdict>,
    changed: Box<Verdict>,
}

/// Returns the verdict once the server has answered.
pub fn answered(question: Question, is_unchanged: bool) -> Verdict {
    if is_unchanged {
        *question.unchanged
    } else {
        *question.changed
    }
}

/// Judges an object as it is now. `written` is what the `run` noted of it.
pub fn judge(item: &UndoItem, written: Option<&Written>, live: Option<&Value>, run: &RecordedRun) -> Verdict {
    let (manager, id) = (run.field_manager.as_str(), run.set.id.as_str());
    let Some(live) = live else {
        return absent(item, run);
    };
    if live["metadata"]["deletionTimestamp"].is_string() {
        return going(item, live, run);
    }
    let now = Written::of(live, &item.left(), &run.salt);
    if item.state.is_some() && now == item.state {
        return Verdict::AsBefore;
    }
    let is_left_by_run = written.is_some() && now.as_ref() == written;
    match item.change {
        Change::Create if is_left_by_run => left_by_run(item, live, manager),
        Change::Create => unlike_created(item, written, live, manager),
        Change::Change | Change::Prune => {
            let Some(was) = &item.was else {
                return Verdict::Skip("its state before the run is not recorded".to_owned());
            };
            if item.values == Values::Omitted {
                return Verdict::Skip(OMITTED.to_owned());
            }
            let restored = || over(item, &manifest_of(was, Some(live), manager), live, manager);
            match item.change {
                Change::Change if is_left_by_run => restore(item, restored(), id),
                Change::Change => unlike_changed(item, written, live, restored(), run),
                // It was not pruned after all.
                _ if was["metadata"]["uid"] == live["metadata"]["uid"] => {
                    Verdict::Skip(changed_since(item, written, live, manager))
                }
                _ => ask(
                    over(item, &manifest_of(was, None, manager), live, manager),
                    Verdict::AsBefore,
                    Verdict::Skip("it exists again, with different content".to_owned()),
                ),
            }
        }
    }
}

/// Returns a manifest with the live values of the fields that the run left to others.
fn over(item: &UndoItem, manifest: &Value, live: &Value, manager: &str) -> Value {
    let left = item.left();
    ignore::body(&Object::from(manifest), &left, live, manager, Purpose::Send).value()
}

const OMITTED: &str = "its values are not in the file (--undo-secrets=omit)";

fn absent(item: &UndoItem, run: &RecordedRun) -> Verdict {
    match (item.change, &item.was) {
        (Change::Create, _) => Verdict::Absent,
        (Change::Change, _) if !may_be_recreated(item, run) => {
            Verdict::Skip("it was deleted after the run".to_owned())
        }
        (_, None) => Verdict::Skip("its state before the run is not recorded".to_owned()),
        _ if item.values == Values::Omitted => Verdict::Skip(OMITTED.to_owned()),
        (_, Some(was)) => Verdict::Create(without_metadata(manifest_of(was, None, &run.field_manager))),
    }
}

/// Judges an object that is still being deleted: a member that the undo creates again is waited for.
fn going(item: &UndoItem, live: &Value, run: &RecordedRun) -> Verdict {
    let is_member = live["metadata"]["labels"][PART_OF_LABEL] == *run.set.id.as_str();
    match absent(item, run) {
        create @ Verdict::Create(_) if is_member => create,
        _ => {
            let finalizers = live["metadata"]["finalizers"].as_array().into_iter().flatten();
            let names = finalizers.filter_map(Value::as_str);
            let waits_for = names.map(|name| format!("finalizer {name}")).collect();
            let going = SkipReason::Terminating { waits_for };
            Verdict::Skip(format!("{going}; run the same command again when it is gone"))
        }
    }
}

/// Returns whether the run, or an undo of it, deletes the object to create it again if the server refuses
/// to update it. Either can end in between.
fn may_be_recreated(item: &UndoItem, run: &RecordedRun) -> bool {
    let is_of_another_set = item.former_set().is_some_and(|set| set != run.set.id.as_str());
    !is_of_another_set && item.is_chosen_for_recreation(&run.recreate)
}

/// Judges an object that the run created, and that is as the run left it but for the fields that are left to
/// others. An autoscaler's number goes with it; what else others have written there does not.
fn left_by_run(item: &UndoItem, live: &Value, manager: &str) -> Verdict {
    if item.left_to_others.is_empty() {
        return Verdict::Delete;
    }
    let changed = changed_by_others(None, live, manager, &scaled_fields(&live["metadata"]));
    match changed.first_key_value() {
        None => Verdict::Delete,
        Some((other, fields)) => Verdict::Skip(format!(
            "it was changed after the run: {other} wrote {}",
            fields.join(", ")
        )),
    }
}

/// Judges an object that the run was going to create, and that is not known to be as the run left it.
fn unlike_created(item: &UndoItem, written: Option<&Written>, live: &Value, manager: &str) -> Verdict {
    if written.is_some() {
        return Verdict::Skip(changed_since(item, written, live, manager));
    }
    let unknown = "it exists, and the file does not show that the run created it";
    match &item.manifest {
        // The run ended between the write and its note.
        Some(manifest) if other_deciders(&live["metadata"], manager).is_empty() => ask(
            over(item, manifest, live, manager),
            Verdict::Delete,
            Verdict::Skip(unknown.to_owned()),
        ),
        _ => Verdict::Skip(unknown.to_owned()),
    }
}

/// Judges an object that the run was going to change, and that is not known to be as the run left it.
fn unlike_changed(
    item: &UndoItem,
    written: Option<&Written>,
    live: &Value,
    restored: Value,
    run: &RecordedRun,
) -> Verdict {
    let manager = run.field_manager.as_str();
    let changed = Verdict::Skip(changed_since(item, written, live, manager));
    let was = item.was.as_ref();
    let is_same = was.is_some_and(|was| was["metadata"]["uid"] == live["metadata"]["uid"]);
    let restore = restore(item, restored.clone(), run.set.id.as_str());
    let otherwise = match &item.manifest {
        // The run ended between the write and its note.
        Some(manifest) if written.is_none() && (is_same || may_be_recreated(item, run)) => {
            ask(over(item, manifest, live, manager), restore, changed)
        }
        _ => changed,
    };
    ask(restored, Verdict::AsBefore, otherwise)
}

/// An object of another set is not given back: that set's record may not cover it any more.
fn restore(item: &UndoItem, manifest: Value, id: &str) -> Verdict {
    match item.former_set() {
        Some(other) if other != id => Verdict::Skip(format!(
            "it was taken from ApplySet {other}; to return it, apply that set with --take-ownership"
        )),
        _ => Verdict::Restore(without_metadata(manifest)),
    }
}

/// Removes ApplySet metadata: a run adds the label of the set itself, and keeps the record of a member
/// that is a parent.
fn without_metadata(mut manifest: Value) -> Value {
    let is_kept = |key: &String| !is_applyset_key(key) || key == IS_PARENT_TYPE_LABEL;
    let Some(metadata) = manifest["metadata"].as_object_mut() else {
        return manifest;
    };
    for field in ["labels", "annotations"] {
        let Some(pairs) = metadata.get_mut(field).and_then(Value::as_object_mut) else {
            continue;
        };
        let had_any = !pairs.is_empty();
        pairs.retain(|key, _| is_kept(key));
        if had_any && pairs.is_empty() {
            metadata.remove(field);
        }
    }
    manifest
}

fn changed_since(item: &UndoItem, written: Option<&Written>, live: &Value, manager: &str) -> String {
    if written.is_some_and(|written| live["metadata"]["uid"] != *written.uid) {
        return "it was deleted and created again after the run".to_owned();
    }
    let mut named = 0;
    let mut hidden = 0;
    let mut changes = Vec::new();
    for (other, mut fields) in changed_by_others(item.was.as_ref(), live, manager, &item.left()) {
        let shown = fields.len().min(NAMED_FIELDS - named);
        named += shown;
        hidden += fields.len() - shown;
        fields.truncate(shown);
        if shown > 0 {
            changes.push(format!("{other} changed {}", fields.join(", ")));
        }
    }
    if hidden > 0 {
        changes.push(format!("{hidden} more"));
    }
    let changes = changes.join("; ");
    let separator = if changes.is_empty() { "" } else { ": " };
    format!("it was changed after the run{separator}{changes}")
}

/// The most fields that a reason names.
const NAMED_FIELDS: usize = 5;

fn ask(manifest: Value, unchanged: Verdict, changed: Verdict) -> Verdict {
    Verdict::Ask(Question {
        manifest,
        unchanged: Box::new(unchanged),
        changed: Box::new(changed),
    })
}
