//! The entries of `metadata.managedFields`: ours, and the entries of other managers.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Reason;
use crate::compare::field_paths::contains_or_owns_whole;
use crate::model::applyset::PART_OF_LABEL;

/// The entries of managedFields from the point of view of one applying manager.
pub(super) struct OwnAndOtherEntries<'a> {
    /// The field set of our `Apply` entry, and the part-of label if an update by our manager has written it.
    pub(super) ours: Cow<'a, Map<String, Value>>,
    /// Our manager has an `Apply` entry. Otherwise the part-of label is all that we own.
    pub(super) has_applied: bool,
    other_field_sets: Vec<&'a Map<String, Value>>,
    applied_by_others: bool,
    has_status_subresource: bool,
}

impl<'a> OwnAndOtherEntries<'a> {
    /// Reads managedFields; fails on entries that an apply would change: entries that the server cannot decode, empty
    /// entries and entries of other versions.
    pub(super) fn read(
        managed_fields: &'a Value,
        api_version: &str,
        field_manager: &str,
    ) -> Result<Self, Reason> {
        let unreadable = || Reason::Unreadable("metadata.managedFields".to_owned());
        let list = match managed_fields {
            Value::Null => return Err(Reason::NotOwnedByUs),
            Value::Array(list) => list,
            _ => return Err(unreadable()),
        };
        let mut ours = None;
        let mut has_label = false;
        let mut other_field_sets = Vec::with_capacity(list.len());
        let mut applied_by_others = false;
        let mut has_status_subresource = false;
        let mut has_other_version = false;
        for entry in list {
            let text = |name: &str| entry[name].as_str().unwrap_or_default();
            let fields = match entry.get("fieldsV1") {
                Some(Value::Object(fields)) if !fields.is_empty() => fields,
                _ => return Err(unreadable()),
            };
            if text("fieldsType") != "FieldsV1" || text("apiVersion").is_empty() {
                return Err(unreadable());
            }
            has_other_version |= text("apiVersion") != api_version;
            let is_apply = match text("operation") {
                "Apply" => true,
                "Update" => false,
                _ => return Err(unreadable()),
            };
            let subresource = text("subresource");
            if is_apply && subresource.is_empty() && text("manager") == field_manager {
                if ours.replace(fields).is_some() {
                    return Err(unreadable());
                }
                continue;
            }
            applied_by_others |= is_apply;
            has_label |= !is_apply
                && subresource.is_empty()
                && text("manager") == field_manager
                && owns_part_of_label(fields);
            has_status_subresource |= subresource == "status";
            other_field_sets.push(fields);
        }
        if ours.is_none() && !has_label {
            return Err(Reason::NotOwnedByUs);
        }
        if has_other_version {
            return Err(Reason::OtherVersion);
        }
        Ok(Self {
            has_applied: ours.is_some(),
            ours: match ours {
                Some(fields) if !has_label || owns_part_of_label(fields) => Cow::Borrowed(fields),
                fields => Cow::Owned(add_part_of_label(fields)),
            },
            other_field_sets,
            applied_by_others,
            has_status_subresource,
        })
    }

    /// Returns whether no other manager has an `Apply` entry. If one has, a new time in our entry may change the order
    /// of the entries.
    pub(super) fn is_sole_applier(&self) -> bool {
        !self.applied_by_others
    }

    /// Returns whether a manager has written the status through its subresource, and owns fields
    /// in it.
    pub(super) fn has_subresource_status(&self) -> bool {
        self.has_status_subresource
            && self.other_field_sets.iter().any(|fields| {
                fields
                    .get("f:status")
                    .and_then(Value::as_object)
                    .is_some_and(|status| !status.is_empty())
            })
    }

    /// Returns whether another entry has this path, or a whole value that it is part of.
    pub(super) fn others_have<'k>(&self, path: &(impl Iterator<Item = &'k str> + Clone)) -> bool {
        self.other_field_sets
            .iter()
            .any(|fields| contains_or_owns_whole(fields, path.clone()))
    }
}

const METADATA: &str = "f:metadata";
const LABELS: &str = "f:labels";

/// Returns the key of the part-of label in a field set.
fn part_of_label_key() -> String {
    format!("f:{PART_OF_LABEL}")
}

fn owns_part_of_label(fields: &Map<String, Value>) -> bool {
    fields
        .get(METADATA)
        .and_then(|metadata| metadata.get(LABELS)?.get(part_of_label_key()))
        .is_some()
}

/// Adds the part-of label to a field set, unless a leaf is in the way.
fn add_part_of_label(fields: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut fields = fields.cloned().unwrap_or_default();
    let mut node = &mut fields;
    for key in [METADATA, LABELS] {
        let is_leaf = node
            .get(key)
            .is_some_and(|below| below.as_object().is_none_or(Map::is_empty));
        let Some(below) = node
            .entry(key)
            .or_insert_with(|| Value::Object(Map::new()))
            .as_object_mut()
            .filter(|_| !is_leaf)
        else {
            return fields;
        };
        node = below;
    }
    node.insert(part_of_label_key(), Value::Object(Map::new()));
    fields
}
