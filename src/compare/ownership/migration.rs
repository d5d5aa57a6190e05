//! The migration of field ownership to the manager of server-side apply.
//!
//! The rule is that of client-go's `csaupgrade` (`UpgradeManagedFieldsPatch`): what client-side
//! apply owns is moved, so that a field that leaves the manifest leaves the object, too.

use serde_json::{Map, Value, json};

use super::LAST_APPLIED;
use super::applyset_metadata::{take_applyset_metadata, take_owned};
use super::managed_fields::{entries, is_apply_of, is_client_side, is_whole_object, union, union_of_all};
use crate::compare::field_paths::{has_other_fields, has_parts};
use crate::model::applyset::{PART_OF_LABEL, Tooling};

/// The key of `stringData` in a field set. The server records an apply of `stringData` under this key, and not under
/// `data`, into which it writes the values.
const STRING_DATA: &str = "f:stringData";

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
pub fn has_client_side_apply(metadata: &Value) -> bool {
    entries(metadata)
        .iter()
        .any(|entry| is_client_side(entry) && has_something_to_move(entry))
}

/// Returns whether this manager has applied `stringData` to a Secret.
pub fn has_applied_string_data(metadata: &Value, manager: &str) -> bool {
    entries(metadata)
        .iter()
        .any(|entry| is_apply_of(entry, manager) && entry["fieldsV1"].get(STRING_DATA).is_some())
}

/// Returns a JSON patch that moves to `manager` the fields that client-side apply owns, and those that `former` has
/// applied server-side; `None` if there are none. ApplySet metadata of a parent stays with its owner: if `manager`
/// owned it, the next apply would remove it. The server accepts the patch only for the resourceVersion of `metadata`.
pub fn migration_patch(
    metadata: &Value,
    manager: &str,
    former: Option<&str>,
    last_applied: LastAppliedTreatment,
) -> Option<Value> {
    let former = OwnershipMigration {
        manager,
        tool: former,
        writers: &[],
        last_applied,
    };
    Some(replacement_patch(
        &migrate_managed_fields(metadata, &former)?,
        metadata,
    ))
}

/// Returns `metadata.managedFields` after the fields of the former owners have moved; `None` if nothing
/// moves.
pub fn migrate_managed_fields(metadata: &Value, former: &OwnershipMigration) -> Option<Value> {
    let (moved, mut others): (Vec<Value>, Vec<Value>) = entries(metadata)
        .iter()
        .cloned()
        .partition(|entry| is_moved(entry, former));
    if moved.is_empty() {
        return None;
    }
    let manager = former.manager;
    let mut ours = match others.iter().position(|entry| is_apply_of(entry, manager)) {
        Some(place) => others.remove(place),
        None => empty_entry(&moved[0], manager),
    };
    for mut entry in moved {
        if let Some(kept) = take_kept(&mut entry, former.last_applied) {
            let mut rest = entry.clone();
            rest["fieldsV1"] = kept;
            others.push(rest);
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
    others.push(ours);
    Some(Value::Array(others))
}

/// Returns the JSON patch that writes the entries of [`migrate_secret_managed_fields`]; `None` if nothing moves.
pub fn secret_migration_patch(metadata: &Value, former: &OwnershipMigration) -> Option<Value> {
    Some(replacement_patch(
        &migrate_secret_managed_fields(metadata, former)?,
        metadata,
    ))
}

/// Returns `metadata.managedFields` of a Secret as [`migrate_managed_fields`] does, and turns fields of `stringData`
/// into fields of `data`, where the server has stored the values. So an apply removes a key that has left the manifest.
pub fn migrate_secret_managed_fields(metadata: &Value, former: &OwnershipMigration) -> Option<Value> {
    let mut owned = metadata.clone();
    let entries = owned["managedFields"].as_array_mut().into_iter().flatten();
    let mut has_string_data = false;
    for entry in entries.filter(|entry| is_apply_of(entry, former.manager) || is_moved(entry, former)) {
        has_string_data |= move_string_data(entry);
    }
    migrate_managed_fields(&owned, former).or_else(|| has_string_data.then(|| owned["managedFields"].take()))
}

/// Returns a JSON patch that replaces managedFields with these entries, bound to the resourceVersion of
/// `metadata`.
pub fn replacement_patch(entries: &Value, metadata: &Value) -> Value {
    json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
    ])
}

/// Returns entries with the fields of `data` that a run is about to own because they were applied as `stringData`.
pub(super) fn data_entries_from_string_data(metadata: &Value, former: &OwnershipMigration) -> Vec<Value> {
    entries(metadata)
        .iter()
        .filter(|entry| is_apply_of(entry, former.manager) || is_moved(entry, former))
        .filter_map(|entry| entry["fieldsV1"].get(STRING_DATA))
        .filter(|typed| typed.as_object().is_some_and(|typed| !typed.is_empty()))
        .map(|typed| json!({"fieldsV1": {"f:data": typed}}))
        .collect()
}

/// Turns the fields of `stringData` in an entry into fields of `data`. Returns whether the entry had `stringData`.
fn move_string_data(entry: &mut Value) -> bool {
    let Some(fields) = entry["fieldsV1"].as_object_mut() else {
        return false;
    };
    let Some(typed) = fields.remove(STRING_DATA) else {
        return false;
    };
    let is_empty = typed.as_object().is_none_or(Map::is_empty);
    if !is_empty {
        let data = match fields.get("f:data") {
            Some(data) => union(data, &typed),
            None => typed,
        };
        fields.insert("f:data".to_owned(), data);
    }
    true
}

/// Returns whether fields of this entry move.
pub(super) fn is_moved(entry: &Value, former: &OwnershipMigration) -> bool {
    let is_of_tool = former
        .tool
        .is_some_and(|tool| tool != former.manager && is_apply_of(entry, tool));
    let is_former = is_client_side(entry) || is_of_tool || is_of_writer(entry, former);
    is_former && has_something_to_move(entry)
}

/// Returns whether an entry belongs to a tool that the object is adopted from. If the tool updates objects under the
/// name of our manager, an entry with only the part-of label is our own.
fn is_of_writer(entry: &Value, former: &OwnershipMigration) -> bool {
    let is_writer = entry["manager"]
        .as_str()
        .is_some_and(|manager| former.writers.contains(&manager));
    if !is_writer || !is_whole_object(entry) || is_apply_of(entry, former.manager) {
        return false;
    }
    let mut rest = entry.clone();
    take_owned(&mut rest, "labels", |key| key == PART_OF_LABEL);
    entry["manager"] != former.manager || has_something_to_move(&rest)
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
    let mut rest = entry.clone();
    take_kept(&mut rest, LastAppliedTreatment::LeftToItsOwner);
    let fields = &rest["fieldsV1"];
    let metadata = &fields["f:metadata"];
    has_other_fields(fields, &["f:metadata"])
        || has_other_fields(metadata, &["f:labels", "f:annotations"])
        || has_parts(&metadata["f:labels"])
        || has_parts(&metadata["f:annotations"])
}

/// Removes the fields that stay with their owner from an entry, and returns them as a field set; `None` if there are
/// none.
pub(super) fn take_kept(entry: &mut Value, last_applied: LastAppliedTreatment) -> Option<Value> {
    let annotation = match last_applied {
        LastAppliedTreatment::LeftToItsOwner => take_owned(entry, "annotations", |key| key == LAST_APPLIED),
        LastAppliedTreatment::Moved => None,
    };
    let kept = union_of_all(annotation.into_iter().chain(take_applyset_metadata(entry)));
    // An empty node would own all metadata.
    if let Some(fields) = entry["fieldsV1"].as_object_mut()
        && fields
            .get("f:metadata")
            .and_then(Value::as_object)
            .is_some_and(Map::is_empty)
    {
        fields.remove("f:metadata");
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::ownership::CLIENT_SIDE_APPLY;

    /// The annotation as a key of a field set.
    const OWNED_LAST_APPLIED: &str = "f:kubectl.kubernetes.io/last-applied-configuration";

    #[test]
    fn client_side_ownership_moves_to_server_side_apply() {
        let metadata = json!({"resourceVersion": "5", "managedFields": [
            {"manager": CLIENT_SIDE_APPLY, "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:old": {}}}},
            {"manager": "ours", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:new": {}}}},
            {"manager": "controller", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
        ]});
        assert!(has_client_side_apply(&metadata));
        let patch =
            migration_patch(&metadata, "ours", None, LastAppliedTreatment::Moved).expect("something to move");
        assert_eq!(patch[1]["value"], "5");
        let fields = &patch[0]["value"];
        assert_eq!(fields.as_array().map(Vec::len), Some(2));
        assert_eq!(
            fields[1]["fieldsV1"],
            json!({"f:data": {"f:old": {}, "f:new": {}}})
        );
    }

    #[test]
    fn an_entry_of_server_side_apply_is_made_where_there_is_none() {
        let metadata = json!({"resourceVersion": "5", "managedFields": [
            {"manager": CLIENT_SIDE_APPLY, "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:old": {}}}},
        ]});
        let patch =
            migration_patch(&metadata, "ours", None, LastAppliedTreatment::Moved).expect("something to move");
        let entry = &patch[0]["value"][0];
        assert_eq!(
            (&entry["manager"], &entry["operation"]),
            (&json!("ours"), &json!("Apply"))
        );
    }

    #[test]
    fn what_a_former_tool_applied_is_taken_from_it() {
        let metadata = json!({"resourceVersion": "5", "managedFields": [
            {"manager": "kubectl", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:old": {}}}},
        ]});
        assert_eq!(
            migration_patch(&metadata, "ours", None, LastAppliedTreatment::Moved),
            None
        );
        assert_eq!(
            migration_patch(&metadata, "kubectl", Some("kubectl"), LastAppliedTreatment::Moved),
            None
        );
        let patch = migration_patch(&metadata, "ours", Some("kubectl"), LastAppliedTreatment::Moved)
            .expect("something to move");
        assert_eq!(patch[0]["value"].as_array().map(Vec::len), Some(1));
        assert_eq!(patch[0]["value"][0]["manager"], "ours");
        assert_eq!(patch[0]["value"][0]["fieldsV1"], json!({"f:data": {"f:old": {}}}));
    }

    #[test]
    fn kubectl_keeps_the_annotation_that_it_still_needs() {
        let metadata = json!({"resourceVersion": "5", "managedFields": [
            {"manager": CLIENT_SIDE_APPLY, "operation": "Update", "apiVersion": "v1", "fieldsV1": {
                "f:metadata": {"f:annotations": {".": {}, (OWNED_LAST_APPLIED): {}}}, "f:data": {"f:old": {}},
            }},
        ]});
        let patch = migration_patch(&metadata, "kubectl", None, LastAppliedTreatment::LeftToItsOwner)
            .expect("something to move");
        let migrated = json!({"managedFields": patch[0]["value"]});
        assert_eq!(migrated["managedFields"].as_array().map(Vec::len), Some(2));
        assert!(!has_client_side_apply(&migrated), "nothing is left to move");
        assert_eq!(
            migration_patch(&migrated, "kubectl", None, LastAppliedTreatment::LeftToItsOwner),
            None
        );
    }

    #[test]
    fn applyset_metadata_stays_with_its_owner() {
        let id = json!({"f:metadata": {"f:labels": {"f:applyset.kubernetes.io/id": {}}}});
        let with = |more: &Value| union(&id, more);
        let note = json!({"f:metadata": {"f:annotations": {".": {}, (OWNED_LAST_APPLIED): {}}}});
        let data = json!({"f:data": {"f:a": {}}});
        let table = [
            (id.clone(), None),
            (with(&note), None),
            (with(&data), Some((data.clone(), id.clone()))),
            (
                with(&union(&data, &note)),
                Some((union(&data, &note), id.clone())),
            ),
        ];
        for (manager, operation) in [(CLIENT_SIDE_APPLY, "Update"), ("tool", "Apply")] {
            for (fields, expected) in &table {
                let metadata = json!({"resourceVersion": "5", "managedFields": [
                    {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields},
                ]});
                let patch = migration_patch(&metadata, "ours", Some("tool"), LastAppliedTreatment::Moved);
                let moved = patch.map(|patch| {
                    let entries = &patch[0]["value"];
                    assert_eq!(
                        (&entries[0]["manager"], &entries[1]["manager"]),
                        (&json!(manager), &json!("ours"))
                    );
                    (entries[1]["fieldsV1"].clone(), entries[0]["fieldsV1"].clone())
                });
                assert_eq!(&moved, expected, "{metadata}");
            }
        }
    }

    #[test]
    fn string_data_that_was_applied_is_owned_as_data() {
        let former = OwnershipMigration {
            manager: "ours",
            tool: Some("tool"),
            writers: &[],
            last_applied: LastAppliedTreatment::Moved,
        };
        let entry = |manager: &str, fields: &Value| json!({"manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields});
        let typed = json!({"f:stringData": {"f:a": {}}});
        let table = [
            (vec![entry("ours", &typed)], Some(json!({"f:data": {"f:a": {}}}))),
            (
                vec![entry(
                    "ours",
                    &json!({"f:stringData": {"f:a": {}}, "f:data": {"f:b": {}}}),
                )],
                Some(json!({"f:data": {"f:a": {}, "f:b": {}}})),
            ),
            (
                vec![
                    entry("ours", &json!({"f:data": {"f:b": {}}})),
                    entry("tool", &typed),
                ],
                Some(json!({"f:data": {"f:a": {}, "f:b": {}}})),
            ),
            (vec![entry("ours", &json!({"f:stringData": {}}))], Some(json!({}))),
            (vec![entry("ours", &json!({"f:data": {}}))], None),
            (vec![entry("another", &typed)], None),
        ];
        for (entries, expected) in table {
            let metadata = json!({"resourceVersion": "5", "managedFields": entries});
            let patch = secret_migration_patch(&metadata, &former);
            let fields = patch.map(|patch| patch[0]["value"][0]["fieldsV1"].clone());
            assert_eq!(fields, expected, "{metadata}");
        }
    }

    #[test]
    fn what_the_managers_of_a_former_tool_own_is_taken_whatever_they_did() {
        let fields = |name: &str| json!({"f:data": {(format!("f:{name}")): {}}});
        let entry = |manager: &str, operation: &str, fields: Value| json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields});
        let mut status = entry("helm", "Update", json!({"f:status": {}}));
        status["subresource"] = json!("status");
        let label = json!({"f:metadata": {"f:labels": {(format!("f:{PART_OF_LABEL}")): {}}}});
        let table = [
            (entry("helm", "Update", fields("a")), "ours", true),
            (entry("helm", "Apply", fields("a")), "ours", true),
            (entry("kubectl", "Update", fields("a")), "ours", true),
            (entry("kubectl", "Update", fields("a")), "kubectl", true),
            (entry("kubectl", "Apply", fields("a")), "kubectl", false),
            (entry("kubectl", "Update", label.clone()), "kubectl", false),
            (entry("helm", "Update", label), "ours", true),
            (entry(CLIENT_SIDE_APPLY, "Update", fields("a")), "ours", true),
            (status, "ours", false),
            (
                entry("kube-controller-manager", "Update", fields("a")),
                "ours",
                false,
            ),
        ];
        for (entry, manager, expected) in table {
            let metadata = json!({"resourceVersion": "5", "managedFields": [entry]});
            let former = OwnershipMigration {
                manager,
                tool: None,
                writers: &["helm", "kubectl"],
                last_applied: LastAppliedTreatment::Moved,
            };
            let moved = migrate_managed_fields(&metadata, &former);
            assert_eq!(moved.is_some(), expected, "{metadata}");
            if let Some(moved) = moved {
                assert_eq!(moved[0]["manager"], manager, "{metadata}");
                assert_eq!(moved[0]["operation"], "Apply", "{metadata}");
                let again = json!({"managedFields": moved});
                assert_eq!(migrate_managed_fields(&again, &former), None, "{metadata}");
            }
        }
    }

    #[test]
    fn other_managers_are_left_alone() {
        for entry in [
            json!({"manager": "kubectl", "operation": "Apply", "fieldsV1": {}}),
            json!({"manager": CLIENT_SIDE_APPLY, "operation": "Update", "subresource": "status", "fieldsV1": {}}),
        ] {
            let metadata = json!({"resourceVersion": "5", "managedFields": [entry]});
            assert_eq!(
                migration_patch(&metadata, "ours", None, LastAppliedTreatment::Moved),
                None
            );
        }
    }
}
