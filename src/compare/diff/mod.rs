//! Differences between live objects and their predictions, field by field and as text, without
//! fields that change by themselves and without the values of Secrets.
//!
//! `execute` predicts objects by a dry run; `report` prints the differences.

mod hide_secret_values;
mod ownership_change;
mod parent;
mod unified;

use serde::Serialize;
use serde_json::{Map, Value};

pub use hide_secret_values::{AFTER, BEFORE};
pub use ownership_change::OwnershipChange;
pub use parent::compare_parent;
pub use unified::compare_lines;

use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::pointer::escape_segment;
use crate::model::resource::Resource;
use crate::model::text::escape_as_one_line;

/// One object before and after a run, as it may be shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Difference {
    /// The name that kubectl gives the file of this object, such as
    /// `apps.v1.Deployment.shop.web`.
    pub file: String,
    /// The live object; `None` if it does not exist.
    pub live: Option<Value>,
    /// The prediction; `None` if the run deletes the object.
    pub predicted: Option<Value>,
    /// What `live` is.
    pub old_side: OldSide,
}

/// The state that a prediction is compared with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OldSide {
    /// The live object.
    #[default]
    Live,
    /// The object of `diff --base`.
    Base,
}

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The path of the field: a JSON pointer (RFC 6901), such as `/spec/replicas`.
    pub field: String,
    /// The value before; absent if the field is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value after; absent if the field is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Fields of metadata that every write changes. Only the server sets them, so no manifest has them.
const SERVER_FIELDS: [&str; 4] = ["managedFields", "resourceVersion", "generation", "selfLink"];

/// Fields of metadata that each object has for itself. A dry run invents them for an object that does not exist yet.
const INSTANCE_FIELDS: [&str; 2] = ["creationTimestamp", "uid"];

impl Difference {
    /// Compares the two states of an object as the server sends them. `resource` is the resource through which both
    /// were read.
    pub fn new(
        resource: &Resource,
        key: &ObjectKey,
        live: Option<&Value>,
        predicted: Option<&Value>,
    ) -> Self {
        let mut difference = Self {
            file: kubectl_diff_file_name(resource, key),
            live: live.cloned(),
            predicted: predicted.cloned(),
            old_side: OldSide::Live,
        };
        remove_server_fields(&mut difference.live, &mut difference.predicted);
        if key.group_kind == GroupKind::new("", "Secret") {
            hide_secret_values::hide(&mut difference.live, &mut difference.predicted);
        }
        difference
    }

    /// Returns whether the two states are equal.
    pub fn is_empty(&self) -> bool {
        self.live == self.predicted
    }

    /// Returns the fields that differ, in the order of their paths; none for an object that
    /// exists only before or only after.
    pub fn changes(&self) -> Vec<Change> {
        match (&self.live, &self.predicted) {
            (Some(live), Some(predicted)) => find_changes(live, predicted),
            _ => Vec::new(),
        }
    }

    /// Returns the difference between the live object of `self` and the predicted object of `new`, which replaces it.
    ///
    /// The values of Secrets are hidden already, so they cannot be compared. Each is shown as changed, because it may
    /// be.
    #[must_use]
    pub fn as_replacement_by(&self, new: &Self) -> Self {
        let mut live = self.live.clone();
        let mut predicted = new.predicted.clone();
        remove_instance_fields(&mut live);
        hide_secret_values::replace_hidden_by_placeholder(&mut live, BEFORE);
        hide_secret_values::replace_hidden_by_placeholder(&mut predicted, AFTER);
        Self {
            file: new.file.clone(),
            live,
            predicted,
            old_side: self.old_side,
        }
    }

    /// Returns the lines that differ, with three lines of context; empty if nothing differs.
    pub fn hunks(&self) -> String {
        unified::format_hunks(
            &format_as_yaml(self.live.as_ref()),
            &format_as_yaml(self.predicted.as_ref()),
        )
    }

    /// Returns the text that `kubectl diff` prints; empty if nothing differs.
    pub fn unified(&self) -> String {
        unified::diff_with_file_header(
            [self.old_side.heading(), "MERGED"].map(|side| format!("{side}/{}", self.file)),
            &format_as_yaml(self.live.as_ref()),
            &format_as_yaml(self.predicted.as_ref()),
        )
    }
}

impl OldSide {
    /// Returns the name of the directory that stands for this side in texts and for external programs.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Live => "LIVE",
            Self::Base => "BASE",
        }
    }
}

/// Returns an object as YAML; an empty text for `None`.
///
/// Strings of several lines are blocks, so that their lines can be compared. Long lines are not folded.
pub fn format_as_yaml(object: Option<&Value>) -> String {
    let options = serde_saphyr::ser_options! {
        folded_wrap_chars: usize::MAX,
    };
    object.map_or_else(String::new, |object| {
        serde_saphyr::to_string_with_options(object, options)
            .unwrap_or_else(|error| format!("error: {:?}\n", error.to_string()))
    })
}

/// Returns `[GROUP.]VERSION.KIND.NAMESPACE.NAME` (kubectl, `pkg/cmd/diff`, `InfoObject.Name`).
fn kubectl_diff_file_name(resource: &Resource, key: &ObjectKey) -> String {
    let Resource {
        group, version, kind, ..
    } = resource;
    let dot = if group.is_empty() { "" } else { "." };
    let namespace = key.namespace.as_deref().unwrap_or_default();
    escape_as_one_line(&format!("{group}{dot}{version}.{kind}.{namespace}.{}", key.name))
}

/// Removes the fields that only the server sets from the metadata of both states.
fn remove_server_fields(live: &mut Option<Value>, predicted: &mut Option<Value>) {
    let is_new = live.is_none();
    for object in [live, predicted] {
        let Some(metadata) = object.as_mut().and_then(metadata_mut) else {
            continue;
        };
        for field in SERVER_FIELDS {
            metadata.remove(field);
        }
        if is_new {
            for field in INSTANCE_FIELDS {
                metadata.remove(field);
            }
        }
        metadata.retain(|_, value| !value.is_null());
    }
}

/// Removes the fields that each object has for itself from its metadata.
fn remove_instance_fields(object: &mut Option<Value>) {
    if let Some(metadata) = object.as_mut().and_then(metadata_mut) {
        metadata.retain(|field, _| !INSTANCE_FIELDS.contains(&field.as_str()));
    }
}

fn metadata_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.as_object_mut()
}

/// Returns the smallest fields that differ. Items of lists are compared by their positions.
fn find_changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    collect_changes(String::new(), Some(before), Some(after), &mut changes);
    changes
}

fn collect_changes(field: String, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let new_keys = after.keys().filter(|key| !before.contains_key(*key));
            for key in before.keys().chain(new_keys) {
                collect_changes(
                    format!("{field}/{}", escape_segment(key)),
                    before.get(key),
                    after.get(key),
                    changes,
                );
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            for index in 0..before.len().max(after.len()) {
                collect_changes(
                    format!("{field}/{index}"),
                    before.get(index),
                    after.get(index),
                    changes,
                );
            }
        }
        (before, after) if before == after => {}
        (before, after) => changes.push(Change {
            field,
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

/// Returns a JSON merge patch (RFC 7386) that turns `before` into `after`.
pub fn create_merge_patch(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return after.clone();
    };
    let mut patch = Map::new();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in after {
        match before.get(key) {
            Some(old) if old == value => {}
            Some(old) => {
                patch.insert(key.clone(), create_merge_patch(old, value));
            }
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests;
