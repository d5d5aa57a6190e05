//! The entries of managedFields, each with a field set (`FieldsV1`), and the writers of an object
//! that they show.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{CLIENT_SIDE_APPLY, LAST_APPLIED};
use crate::compare::field_paths::has_other_fields;

/// Returns the entries that metadata has.
pub(in crate::compare) fn entries(metadata: &Value) -> &[Value] {
    metadata["managedFields"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the entry that `manager` has as an applier of the whole object.
pub(in crate::compare) fn apply_entry<'m>(metadata: &'m Value, manager: &str) -> Option<&'m Value> {
    entries(metadata).iter().find(|entry| is_apply_of(entry, manager))
}

/// Returns whether an entry is the one that `manager` has as an applier of the whole object.
pub(in crate::compare) fn is_apply_of(entry: &Value, manager: &str) -> bool {
    entry["manager"] == manager && is_apply(entry)
}

/// Returns whether an entry is that of server-side apply of the whole object.
pub(super) fn is_apply(entry: &Value) -> bool {
    entry["operation"] == "Apply" && is_whole_object(entry)
}

/// Returns whether an entry is that of client-side apply.
pub(super) fn is_client_side(entry: &Value) -> bool {
    entry["manager"] == CLIENT_SIDE_APPLY && entry["operation"] == "Update" && is_whole_object(entry)
}

/// Returns whether an entry was written through the object itself, not a subresource.
pub(super) fn is_whole_object(entry: &Value) -> bool {
    entry["subresource"].as_str().unwrap_or_default().is_empty()
}

/// Returns the field managers that own anything of the object outside of its metadata and its
/// status; each once, sorted.
pub fn content_writers(metadata: &Value) -> Vec<String> {
    managers(
        entries(metadata)
            .iter()
            .filter(|entry| is_whole_object(entry) && has_other_fields(&entry["fieldsV1"], &["f:metadata"])),
    )
}

/// Returns the field managers that own one of these annotations; each once, sorted.
pub fn annotation_writers(metadata: &Value, annotations: &[&str]) -> Vec<String> {
    managers(entries(metadata).iter().filter(|entry| {
        let owned = &entry["fieldsV1"]["f:metadata"]["f:annotations"];
        annotations
            .iter()
            .any(|annotation| owned.get(format!("f:{annotation}")).is_some())
    }))
}

/// Returns the field managers of these entries; each once, sorted.
fn managers<'e>(entries: impl Iterator<Item = &'e Value>) -> Vec<String> {
    let managers = entries.filter_map(|entry| entry["manager"].as_str().map(str::to_owned));
    managers.collect::<BTreeSet<String>>().into_iter().collect()
}

/// Returns whether this field manager has created the object by server-side apply and not changed it
/// since. Neither the run that created it nor the order of writes within one second can be seen.
pub fn was_created_by(metadata: &Value, manager: &str) -> bool {
    let created = &metadata["creationTimestamp"];
    created.is_string()
        && entries(metadata)
            .iter()
            .any(|entry| is_apply_of(entry, manager) && entry["time"] == *created)
}

/// Returns whether any manager has applied the object, client-side or server-side. Labels that a
/// controller copied do not show that.
pub(super) fn was_applied(metadata: &Value) -> bool {
    metadata["annotations"].get(LAST_APPLIED).is_some() || entries(metadata).iter().any(is_apply)
}

/// Returns the union of these field sets; `None` if there is none.
pub(super) fn union_of_all(fields: impl Iterator<Item = Value>) -> Option<Value> {
    fields.reduce(|one, other| union(&one, &other))
}

/// Returns the union of two field sets. An empty node owns its path; a node with children
/// owns its path only if it has the child `.`.
pub(super) fn union(one: &Value, other: &Value) -> Value {
    let empty = Map::new();
    let one = one.as_object().unwrap_or(&empty);
    let other = other.as_object().unwrap_or(&empty);
    let mut merged = one.clone();
    if one.is_empty() != other.is_empty() {
        merged.insert(".".to_owned(), json!({}));
    }
    for (key, child) in other {
        let merged_child = match one.get(key) {
            Some(mine) if key != "." => union(mine, child),
            _ => child.clone(),
        };
        merged.insert(key.clone(), merged_child);
    }
    Value::Object(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_made_by_who_applied_it_when_it_was_created() {
        let made = |created: &str, manager: &str, operation: &str, time: &str| {
            let entry = json!({"manager": manager, "operation": operation, "time": time});
            was_created_by(
                &json!({"creationTimestamp": created, "managedFields": [entry]}),
                "us",
            )
        };
        let (then, later) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
        assert!(made(then, "us", "Apply", then));
        assert!(!made(then, "us", "Apply", later));
        assert!(!made(then, "us", "Update", then));
        assert!(!made(then, "them", "Apply", then));
        assert!(!was_created_by(&json!({}), "us"));
    }

    #[test]
    fn fields_are_united_by_path() {
        let table = [
            (
                json!({"f:a": {}}),
                json!({"f:b": {}}),
                json!({"f:a": {}, "f:b": {}}),
            ),
            (json!({"f:a": {}}), json!({"f:a": {}}), json!({"f:a": {}})),
            (
                json!({"f:a": {}}),
                json!({"f:a": {"f:b": {}}}),
                json!({"f:a": {".": {}, "f:b": {}}}),
            ),
            (
                json!({"f:a": {".": {}, "f:b": {}}}),
                json!({"f:a": {"f:c": {}}}),
                json!({"f:a": {".": {}, "f:b": {}, "f:c": {}}}),
            ),
        ];
        for (one, other, united) in table {
            assert_eq!(union(&one, &other), united);
            assert_eq!(union(&other, &one), united);
        }
    }

    #[test]
    fn who_applies_leaves_a_trace() {
        let table = [
            (json!({}), false),
            (json!({"annotations": {(LAST_APPLIED): "{}"}}), true),
            (
                json!({"managedFields": [{"manager": "a", "operation": "Apply", "fieldsV1": {}}]}),
                true,
            ),
            (
                json!({"managedFields": [{"manager": "a", "operation": "Update", "fieldsV1": {}}]}),
                false,
            ),
            (
                json!({"managedFields": [{"manager": "a", "operation": "Apply", "subresource": "status"}]}),
                false,
            ),
        ];
        for (metadata, expected) in table {
            assert_eq!(was_applied(&metadata), expected, "{metadata}");
        }
    }
}
