//! The migration of field ownership to the manager of server-side apply.
//!
//! The rule is the same as in client-go's `csaupgrade` (`UpgradeManagedFieldsPatch`): what client-side
//! apply owns is moved, so that a field that leaves the manifest leaves the object, too.

use serde_json::{Map, Value, json};

use super::LAST_APPLIED;
use super::applyset_metadata::{take_owned_pairs, take_parent_metadata};
use super::managed_fields::{
    STRING_DATA, entries, is_apply_of, is_client_side_apply, is_not_of_subresource, move_string_data_keys,
    union, unite_all,
};
use crate::compare::field_paths::{has_other_fields, has_parts_owned_separately};
use crate::model::applyset::{PART_OF_LABEL, Tooling};
use crate::model::identity::GroupKind;

/// The field managers that lose fields in a migration, and the manager that gets the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnershipMigration<'a> {
    /// The manager that gets the fields.
    pub manager: &'a str,
    /// The field manager of a tool that a set is taken over from: the fields that it has applied move.
    pub tool: Option<&'a str>,
    /// The field managers of a tool that objects are adopted from: all their fields move, whether
    /// applied or updated.
    pub writers: &'a [&'a str],
    /// The treatment of the annotation of client-side apply.
    pub last_applied: LastAppliedTreatment,
}

/// The treatment of the annotation `last-applied-configuration` of client-side apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastAppliedTreatment {
    /// The annotation moves with the other fields, and the next apply removes it from the object.
    Moved,
    /// The annotation stays with its owner, because kubectl continues to apply this object client-side.
    LeftToItsOwner,
}

impl LastAppliedTreatment {
    /// Returns the treatment of the annotation in a set that this tool manages.
    pub fn for_tooling(tooling: &Tooling) -> Self {
        if tooling.is_same_program(&Tooling::this_program()) {
            Self::Moved
        } else {
            Self::LeftToItsOwner
        }
    }
}

/// Returns whether client-side apply owns fields of the object, other than its own annotation and the ApplySet metadata
/// of a parent.
pub fn has_fields_of_client_side_apply(metadata: &Value) -> bool {
    entries(metadata)
        .iter()
        .any(|entry| is_client_side_apply(entry) && has_something_to_move(entry))
}

/// Returns whether this manager has applied `stringData` to a Secret.
pub fn has_applied_string_data(metadata: &Value, manager: &str) -> bool {
    entries(metadata)
        .iter()
        .any(|entry| is_apply_of(entry, manager) && entry["fieldsV1"].get(STRING_DATA).is_some())
}

/// Returns `metadata.managedFields` of an object of this kind after the fields of the former owners have moved; `None`
/// if nothing moves. In the entries of a Secret, the fields of `stringData` become fields of `data`.
pub fn migrated_managed_fields_of_kind(
    kind: &GroupKind,
    metadata: &Value,
    former: &OwnershipMigration,
) -> Option<Value> {
    if *kind == GroupKind::new("", "Secret") {
        migrated_secret_managed_fields(metadata, former)
    } else {
        migrated_managed_fields(metadata, former)
    }
}

/// Returns `metadata.managedFields` after the fields of the former owners have moved; `None` if nothing
/// moves. ApplySet metadata of a parent stays with its owner: if the new manager owned it, its next apply would remove
/// it.
pub fn migrated_managed_fields(metadata: &Value, former: &OwnershipMigration) -> Option<Value> {
    let (moved_entries, mut other_entries): (Vec<Value>, Vec<Value>) = entries(metadata)
        .iter()
        .cloned()
        .partition(|entry| has_fields_that_move(entry, former));
    if moved_entries.is_empty() {
        return None;
    }
    let manager = former.manager;
    let mut ours = match other_entries.iter().position(|entry| is_apply_of(entry, manager)) {
        Some(position) => other_entries.remove(position),
        None => empty_entry(&moved_entries[0], manager),
    };
    for mut entry in moved_entries {
        if let Some(fields) = take_fields_that_stay(&mut entry, former.last_applied) {
            let mut kept_entry = entry.clone();
            kept_entry["fieldsV1"] = fields;
            other_entries.push(kept_entry);
        }
        let has_fields = ours["fieldsV1"]
            .as_object()
            .is_some_and(|fields| !fields.is_empty());
        ours["fieldsV1"] = if has_fields {
            union(&ours["fieldsV1"], &entry["fieldsV1"])
        } else {
            entry["fieldsV1"].clone()
        };
    }
    other_entries.push(ours);
    Some(Value::Array(other_entries))
}

/// Returns `metadata.managedFields` of a Secret as [`migrated_managed_fields`] does, and turns fields of `stringData`
/// into fields of `data`, where the server has stored the values. So an apply removes a key that has left the manifest.
fn migrated_secret_managed_fields(metadata: &Value, former: &OwnershipMigration) -> Option<Value> {
    let mut metadata = metadata.clone();
    let mut has_string_data = false;
    for entry in metadata["managedFields"].as_array_mut().into_iter().flatten() {
        if is_apply_of(entry, former.manager) || has_fields_that_move(entry, former) {
            has_string_data |= move_string_data_keys(&mut entry["fieldsV1"]);
        }
    }
    migrated_managed_fields(&metadata, former)
        .or_else(|| has_string_data.then(|| metadata["managedFields"].take()))
}

/// Returns a JSON patch that replaces managedFields with these entries, bound to the resourceVersion of
/// `metadata`.
pub fn patch_to_replace_managed_fields(entries: &Value, metadata: &Value) -> Value {
    json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
    ])
}

/// Returns whether fields of this entry move.
fn has_fields_that_move(entry: &Value, former: &OwnershipMigration) -> bool {
    let is_applied_by_tool = former
        .tool
        .is_some_and(|tool| tool != former.manager && is_apply_of(entry, tool));
    let belongs_to_former_owner =
        is_client_side_apply(entry) || is_applied_by_tool || belongs_to_adopted_tool(entry, former);
    belongs_to_former_owner && has_something_to_move(entry)
}

/// Returns whether an entry belongs to a tool that the object is adopted from. If the tool updates objects under the
/// name of our manager, an entry with only the part-of label is our own.
fn belongs_to_adopted_tool(entry: &Value, former: &OwnershipMigration) -> bool {
    let is_writer = entry["manager"]
        .as_str()
        .is_some_and(|manager| former.writers.contains(&manager));
    if !is_writer || !is_not_of_subresource(entry) || is_apply_of(entry, former.manager) {
        return false;
    }
    let mut unlabeled_entry = entry.clone();
    take_owned_pairs(&mut unlabeled_entry, "labels", |key| key == PART_OF_LABEL);
    entry["manager"] != former.manager || has_something_to_move(&unlabeled_entry)
}

fn empty_entry(like: &Value, manager: &str) -> Value {
    json!({
        "manager": manager,
        "operation": "Apply",
        "apiVersion": like["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": {},
    })
}

/// Returns whether an entry has more than the annotation of client-side apply and ApplySet
/// metadata.
fn has_something_to_move(entry: &Value) -> bool {
    let mut moved_entry = entry.clone();
    take_fields_that_stay(&mut moved_entry, LastAppliedTreatment::LeftToItsOwner);
    let fields = &moved_entry["fieldsV1"];
    let metadata = &fields["f:metadata"];
    has_other_fields(fields, &["f:metadata"])
        || has_other_fields(metadata, &["f:labels", "f:annotations"])
        || has_parts_owned_separately(&metadata["f:labels"])
        || has_parts_owned_separately(&metadata["f:annotations"])
}

/// Removes the fields that stay with their owner from an entry, and returns them as a field set; `None` if there are
/// none.
fn take_fields_that_stay(entry: &mut Value, last_applied: LastAppliedTreatment) -> Option<Value> {
    let annotation = match last_applied {
        LastAppliedTreatment::LeftToItsOwner => {
            take_owned_pairs(entry, "annotations", |key| key == LAST_APPLIED)
        }
        LastAppliedTreatment::Moved => None,
    };
    let kept_fields = unite_all(annotation.into_iter().chain(take_parent_metadata(entry)));
    // An empty node would own all metadata.
    if let Some(fields) = entry["fieldsV1"].as_object_mut()
        && fields
            .get("f:metadata")
            .and_then(Value::as_object)
            .is_some_and(Map::is_empty)
    {
        fields.remove("f:metadata");
    }
    kept_fields
}

#[cfg(test)]
mod tests;
