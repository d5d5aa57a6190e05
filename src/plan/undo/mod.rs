//! What `apply --undo-out` records of a run, and what `apply --plan` makes of it: the objects as they
//! were, what the run made of them, and for each the way back.
//!
//! `file` is the text of the record, `verdict` decides about one object, and `losses` names what cannot
//! be restored. Pure: `execute` writes the file.

mod file;
mod losses;
mod verdict;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use file::{Entry, Unreadable, begin, is_undo_file, line, read};
pub(super) use losses::data;
pub use losses::{Loss, LossCase, losses};
pub use verdict::{Question, Verdict, answered, judge};

use super::preconditions::{Salt, Seen};
use super::recreation::Recreate;
use super::saved::{SavedCluster, SavedSet};
use crate::compare::diff::SECRET_FIELDS;
use crate::compare::ownership::{content_by_manager, scaled_fields};
use crate::model::applyset::PART_OF_LABEL;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::pointer::Pointer;
use crate::model::resource::Resource;
use crate::model::text::HIDDEN;

/// Everything that undoing a run needs.
#[derive(Debug, Clone, PartialEq)]
pub struct UndoRecord {
    /// The run.
    pub run: RecordedRun,
    /// The objects that the run was going to write, in the order of its plan.
    pub items: Vec<UndoItem>,
    /// What the run has made of them: the last write of each, by its place in `items`.
    pub written: Vec<Option<Written>>,
}

/// The run that is recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedRun {
    /// The cluster.
    pub cluster: SavedCluster,
    /// The set.
    pub set: SavedSet,
    /// Field manager of members.
    pub field_manager: String,
    /// The members that it recreated if the server refused to update them; an undo does the same.
    #[serde(default)]
    pub recreate: Recreate,
    /// The salt of all digests.
    pub salt: Salt,
    /// What an undo cannot restore.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
}

/// How much of a recorded run a plan undoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoScope {
    /// All of it.
    Whole,
    /// Not the objects that are skipped.
    Partial,
}

/// One object that the run was going to write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UndoItem {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// The resource that it was read through.
    pub resource: Resource,
    /// What the run was going to do.
    pub change: Change,
    /// The object before the run; `None` if it did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<Value>,
    /// The digest of what it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Written>,
    /// The manifest that the run was going to apply; `None` if it was not recorded, or if the run ended
    /// before it began to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Value>,
    /// Whether the values of a Secret are in the record.
    #[serde(default)]
    pub values: Values,
    /// The fields that the run left to others, as JSON pointers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_to_others: Vec<String>,
}

/// What a run was going to do with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// To create it.
    Create,
    /// To change it.
    Change,
    /// To delete it.
    Prune,
}

/// Whether the values of a Secret are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Values {
    /// They are, or it is not a Secret.
    #[default]
    Kept,
    /// They are left out.
    Omitted,
}

/// The state in which a write left an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Written {
    /// `metadata.uid`.
    pub uid: String,
    /// The digest of its content. See [`Written::of`].
    pub digest: String,
}

impl Written {
    /// Returns the state of a live object; `None` if it is not a JSON object.
    ///
    /// The digest is over the fields and values of every field manager that has decided anything, so that
    /// what controllers derive does not count. Neither do the fields that the run has `left` to others. An
    /// object without owned fields counts as a whole.
    pub fn of(object: &Value, left: &[Pointer], salt: &Salt) -> Option<Self> {
        let seen = Seen::without(object, left, salt)?;
        Some(Self {
            uid: seen.uid,
            digest: content_by_manager(object, left)
                .map_or(seen.digest, |content| salt.digest("content", &content)),
        })
    }
}

impl UndoItem {
    /// Returns the record of an object that the run is going to apply or prune, as it `was` right before.
    /// `manifest` is what is applied; `None` for a prune. `None` if there is nothing to undo: an object
    /// to prune is gone. `left` are the fields that the run leaves to others; those that an autoscaler
    /// had before, and that the run does not apply, are added.
    pub fn new(
        key: ObjectKey,
        resource: &Resource,
        was: Option<Value>,
        manifest: Option<Value>,
        values: Values,
        left: &[Pointer],
        salt: &Salt,
    ) -> Option<Self> {
        let change = match (&was, &manifest) {
            (None, None) => return None,
            (None, Some(_)) => Change::Create,
            (Some(_), Some(_)) => Change::Change,
            (Some(_), None) => Change::Prune,
        };
        let is_secret = key.group_kind == GroupKind::new("", "Secret");
        let values = if is_secret { values } else { Values::Kept };
        let mut left = left.to_vec();
        if let (Some(was), Some(manifest)) = (&was, &manifest) {
            let scaled = scaled_fields(&was["metadata"]).into_iter();
            left.extend(scaled.filter(|field| !field.is_in(manifest)));
            left.sort();
            left.dedup();
        }
        let state = was.as_ref().and_then(|was| Written::of(was, &left, salt));
        let mut was = was;
        if let Some(was) = was.as_mut().and_then(Value::as_object_mut) {
            was.remove("status");
            was.insert("apiVersion".to_owned(), json!(resource.api_version()));
            was.insert("kind".to_owned(), json!(resource.kind));
        }
        if values == Values::Omitted
            && let Some(was) = &mut was
        {
            omit_values(was);
        }
        Some(Self {
            manifest: manifest.filter(|_| values == Values::Kept),
            key,
            resource: resource.clone(),
            change,
            was,
            state,
            values,
            left_to_others: left.iter().map(Pointer::to_string).collect(),
        })
    }

    /// Returns the fields that the run left to others.
    pub fn left(&self) -> Vec<Pointer> {
        let left = self.left_to_others.iter();
        left.filter_map(|text| Pointer::parse(text).ok()).collect()
    }

    /// Returns whether the object existed and was not in the set with this id.
    pub fn was_outside(&self, id: &str) -> bool {
        self.was.is_some() && self.former_set() != Some(id)
    }

    /// The id of the set that the object was in before the run.
    pub fn former_set(&self) -> Option<&str> {
        self.was.as_ref()?["metadata"]["labels"][PART_OF_LABEL].as_str()
    }

    /// Returns whether the object may be recreated by its kind, or by an annotation that it had or that its
    /// manifest has.
    fn is_chosen_for_recreation(&self, recreate: &Recreate) -> bool {
        let states = [&self.was, &self.manifest].into_iter().flatten();
        let mut metadata = states.filter_map(|object| object["metadata"].as_object());
        metadata.any(|metadata| recreate.chooses_one(&self.key.group_kind, metadata))
    }
}

/// Removes the values of a Secret, but not their keys. Annotations of several tools hold the values, too.
fn omit_values(secret: &mut Value) {
    for field in SECRET_FIELDS {
        if let Some(values) = secret.get_mut(field) {
            match values.as_object_mut() {
                Some(values) => values.values_mut().for_each(|value| *value = json!(HIDDEN)),
                None => *values = Value::Null,
            }
        }
    }
    if let Some(annotations) = secret["metadata"]["annotations"].as_object_mut() {
        annotations.values_mut().for_each(|value| *value = json!(HIDDEN));
    }
}

#[cfg(test)]
mod tests;
