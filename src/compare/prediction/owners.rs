//! The field managers of an object before and after a predicted apply.

use serde_json::{Value, json};

use super::merge::{Fields, Path};
use crate::compare::changes::METADATA_NEVER_RECORDED;
use crate::compare::field_paths::ItemKey;
use crate::compare::ownership::{apply_entry, entries, is_apply_of};

/// A field that an apply changes although another manager owns it, in the words of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PredictedConflict {
    /// `.spec.containers[name="web"].image`
    pub field: String,
    /// `conflict with "helm" using apps/v1`
    pub message: String,
}

/// The manager to which the server assigns all fields of an object without managed fields
/// (`managedfields/internal/skipnonapplied.go`).
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The managers of an object, before and after our manager has applied it.
pub(super) struct FieldOwners<'a> {
    manager: &'a str,
    /// managedFields before the apply.
    before: &'a [Value],
    /// The field set of our manager before the apply.
    pub(super) last_applied: Option<&'a Fields>,
    /// The field set of our manager after the apply.
    applied: Fields,
}

impl<'a> FieldOwners<'a> {
    /// `applied` is the field set of the whole manifest.
    pub(super) fn new(metadata: &'a Value, manager: &'a str, applied: Fields) -> Self {
        Self {
            manager,
            before: entries(metadata),
            last_applied: apply_entry(metadata, manager).and_then(|entry| entry["fieldsV1"].as_object()),
            applied: remove_unowned_fields(applied),
        }
    }

    /// Returns the field set of our manager after the apply, and those of the other managers before it: they still have
    /// what the apply takes from them.
    pub(super) fn our_new_and_others_old_field_sets(&self) -> Vec<&Fields> {
        self.entries_but_our_apply()
            .filter_map(|entry| entry["fieldsV1"].as_object())
            .chain([&self.applied])
            .collect()
    }

    /// Returns the values of these paths that other managers own.
    pub(super) fn conflicts(&self, changed: &[Path]) -> Vec<PredictedConflict> {
        self.entries_but_our_apply()
            .flat_map(|entry| {
                changed
                    .iter()
                    .filter(|path| owns(&entry["fieldsV1"], path))
                    .map(|path| PredictedConflict {
                        field: path.iter().map(|key| server_path_element(key)).collect(),
                        message: conflict_message(entry),
                    })
            })
            .collect()
    }

    /// Returns managedFields after the apply: other managers lose what it has changed and removed.
    pub(super) fn managed_fields_after_apply(
        &self,
        api_version: &Value,
        changed: &[Path],
        removed: &[Path],
    ) -> Value {
        let mut entries = self.before.to_vec();
        for entry in &mut entries {
            if is_apply_of(entry, self.manager) {
                entry["apiVersion"] = api_version.clone();
                entry["fieldsV1"] = Value::Object(self.applied.clone());
            } else if let Some(fields) = entry["fieldsV1"].as_object_mut() {
                for path in changed {
                    remove_from(fields, path, remove_value);
                }
                for path in removed {
                    remove_from(fields, path, remove_with_parts);
                }
            }
        }
        if self.last_applied.is_none() {
            entries.push(new_entry(self.manager, "Apply", api_version, &self.applied));
        }
        entries.retain(|entry| {
            entry["fieldsV1"]
                .as_object()
                .is_some_and(|fields| !fields.is_empty())
        });
        Value::Array(entries)
    }

    fn entries_but_our_apply(&self) -> impl Iterator<Item = &'a Value> {
        let manager = self.manager;
        self.before
            .iter()
            .filter(move |entry| !is_apply_of(entry, manager))
    }
}

/// Returns managed fields in which one manager owns all fields of an object, as the server makes them for an object
/// that has none.
pub(super) fn managed_fields_before_first_apply(api_version: &Value, all: Fields) -> Value {
    let mut all = remove_unowned_fields(all);
    all.remove("f:status");
    json!([new_entry(BEFORE_FIRST_APPLY, "Update", api_version, &all)])
}

fn new_entry(manager: &str, operation: &str, api_version: &Value, fields: &Fields) -> Value {
    json!({
        "manager": manager,
        "operation": operation,
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    })
}

fn remove_unowned_fields(mut fields: Fields) -> Fields {
    fields.retain(|key, _| key != "f:apiVersion" && key != "f:kind");
    if let Some(metadata) = fields.get_mut("f:metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| {
            key != "f:managedFields"
                && key
                    .strip_prefix("f:")
                    .is_none_or(|name| !METADATA_NEVER_RECORDED.contains(&name))
        });
        if metadata.is_empty() {
            fields.remove("f:metadata");
        }
    }
    fields
}

/// Returns whether a field set has this path itself, and not only fields below it.
fn owns(fields: &Value, path: &Path) -> bool {
    path.iter()
        .try_fold(fields, |node, key| node.get(key))
        .and_then(Value::as_object)
        .is_some_and(|node| node.is_empty() || node.contains_key("."))
}

/// Changes a field set at a path with `remove`, and removes the nodes that become empty on the way.
fn remove_from(fields: &mut Fields, path: &[String], remove: fn(&mut Fields, &String)) {
    match path {
        [] => {}
        [key] => remove(fields, key),
        [key, rest @ ..] => {
            let Some(Value::Object(below)) = fields.get_mut(key) else {
                return;
            };
            if below.is_empty() {
                return;
            }
            remove_from(below, rest, remove);
            if below.is_empty() {
                fields.remove(key);
            } else if below.keys().eq(["."]) {
                below.clear();
            }
        }
    }
}

fn remove_with_parts(fields: &mut Fields, key: &String) {
    fields.remove(key);
}

fn remove_value(fields: &mut Fields, key: &String) {
    if let Some(Value::Object(node)) = fields.get_mut(key)
        && node.remove(".").is_none()
        && node.is_empty()
    {
        fields.remove(key);
    }
}

/// Writes a key of a field set as the server does in messages: `.ports`, `[port=80,protocol="TCP"]`, `[="a"]`.
fn server_path_element(key: &str) -> String {
    match (ItemKey::parse(key), key.strip_prefix("f:")) {
        (_, Some(name)) => format!(".{name}"),
        (Some(ItemKey::Fields(keys)), None) => {
            let pairs: Vec<String> = keys
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            format!("[{}]", pairs.join(","))
        }
        (Some(ItemKey::Value(value)), None) => format!("[={value}]"),
        (Some(ItemKey::Position(position)), None) => format!("[{position}]"),
        (None, None) => key.to_owned(),
    }
}

/// Returns the message of a conflict with the manager of this entry (`managedfields/internal/conflict.go`).
fn conflict_message(entry: &Value) -> String {
    let subresource = match entry["subresource"].as_str() {
        None | Some("") => String::new(),
        Some(name) => format!(" with subresource {name:?}"),
    };
    let version = match (entry["operation"].as_str(), entry["apiVersion"].as_str()) {
        (Some("Update"), Some(version)) => format!(" using {version}"),
        _ => String::new(),
    };
    format!("conflict with {}{subresource}{version}", entry["manager"])
}
