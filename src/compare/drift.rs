//! Drift: fields that this set has applied and that another field manager has changed since.
//!
//! When another manager changes the value of a field, the server moves the field from our `Apply` entry to the entry of
//! that manager, which gets the time of the write. The time of our entry stays. So a field is drift if an apply would
//! take it back, with another value, from a manager that has written after our last apply.
//!
//! A live object does not show three cases correctly:
//!
//! - A field that another manager removed, and a deleted object, leave no trace. They look like an addition to the
//!   manifest.
//! - A field that is new in the manifest, and that another manager has set after our last apply, looks like drift.
//! - Times have a resolution of one second. A write in the second of our apply counts as later, and so does a write
//!   without a time.

use std::collections::BTreeSet;

use serde_json::{Deserializer, Value};

use super::field_paths::{contains_or_owns_whole, format_readable_path, leaf_paths, value_at};
use super::ownership::{apply_entry, entries, is_apply_of};

/// A field that another manager has changed since the set's last apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriftedField {
    /// The field as a manifest has it, such as `spec.replicas`.
    pub field: String,
    /// The manager that owns the field now.
    pub manager: String,
}

/// Returns the fields that an apply by `manager` would take back. `predicted` is the object after that apply.
pub fn drifted_fields(live: &Value, predicted: &Value, manager: &str) -> Vec<DriftedField> {
    let [Some(ours), Some(after)] = [live, predicted].map(|object| apply_entry(&object["metadata"], manager))
    else {
        return Vec::new();
    };
    leaf_paths(&after["fieldsV1"])
        .into_iter()
        .filter_map(|path| {
            if owns(&ours["fieldsV1"], &path) || value_at(live, &path) == value_at(predicted, &path) {
                return None;
            }
            let owner =
                later_entries_of_others(live, ours, manager).find(|entry| owns(&entry["fieldsV1"], &path))?;
            Some(DriftedField {
                field: format_readable_path(path.iter().map(String::as_str)),
                manager: owner["manager"].as_str().unwrap_or("unknown").to_owned(),
            })
        })
        .collect()
}

/// Returns the fields of a conflict that their owners have written since the last apply by `manager`.
/// Fields and owners are written as the server does in its refusal: `.spec.replicas`, `"kubectl"`.
pub fn drifted_fields_of_conflict<'c>(
    live: &Value,
    conflicts: impl IntoIterator<Item = (&'c str, &'c str)>,
    manager: &str,
) -> Vec<DriftedField> {
    let Some(ours) = apply_entry(&live["metadata"], manager) else {
        return Vec::new();
    };
    let writers: BTreeSet<&str> = later_entries_of_others(live, ours, manager)
        .filter_map(|entry| entry["manager"].as_str())
        .collect();
    conflicts
        .into_iter()
        .filter_map(|(field, owner)| {
            // The text may be `"kubectl" with subresource "scale"`; only the name at its beginning is read.
            let owner: String = Deserializer::from_str(owner).into_iter().next()?.ok()?;
            writers.contains(owner.as_str()).then(|| DriftedField {
                field: field.trim_start_matches('.').to_owned(),
                manager: owner,
            })
        })
        .collect()
}

/// Returns the entries of other managers that were written after our entry. Entries of the subresource `status` do not
/// count: a controller that reports a status takes no field from us.
fn later_entries_of_others<'o>(
    live: &'o Value,
    ours: &'o Value,
    manager: &'o str,
) -> impl Iterator<Item = &'o Value> {
    entries(&live["metadata"]).iter().filter(move |entry| {
        !is_apply_of(entry, manager)
            && entry["subresource"] != "status"
            && is_written_since(entry, write_time(ours))
    })
}

/// Returns the time of an entry. The server writes RFC 3339 in UTC, so texts compare as times.
fn write_time(entry: &Value) -> &str {
    entry["time"].as_str().unwrap_or_default()
}

/// Returns whether an entry may have been written since this time. An entry without a time counts as later: the server
/// writes no time into an entry that it makes for the subresource `scale`.
fn is_written_since(entry: &Value, since: &str) -> bool {
    entry["time"].is_null() || write_time(entry) >= since
}

fn owns(fields: &Value, path: &[String]) -> bool {
    let keys = path.iter().map(String::as_str);
    fields
        .as_object()
        .is_some_and(|fields| contains_or_owns_whole(fields, keys))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    const THEN: &str = "2026-01-01T00:00:00Z";
    const BEFORE: &str = "2025-12-31T00:00:00Z";
    const SINCE: &str = "2026-01-02T00:00:00Z";

    fn entry(manager: &str, operation: &str, time: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "time": time, "fieldsV1": fields})
    }

    fn object(data: &Value, entries: &[Value]) -> Value {
        json!({"metadata": {"managedFields": entries}, "data": data})
    }

    /// Our entry, with these keys of the data.
    fn ours(keys: &[&str]) -> Value {
        entry("us", "Apply", THEN, &fields(keys))
    }

    fn fields(keys: &[&str]) -> Value {
        let keys: Map<String, Value> = keys.iter().map(|key| (format!("f:{key}"), json!({}))).collect();
        json!({"f:data": keys})
    }

    #[test]
    fn fields_that_another_manager_has_changed_since_are_drift() {
        let all = object(&json!({"a": "1", "b": "1"}), &[ours(&["a", "b"])]);
        let edited = |time: &str| entry("kubectl-edit", "Update", time, &fields(&["b"]));
        let mut status = edited(SINCE);
        status["subresource"] = json!("status");
        let mut scaled = edited(SINCE);
        scaled["subresource"] = json!("scale");
        let mut timeless = scaled.clone();
        timeless["time"] = Value::Null;
        let b = |live: &str, entries: &[Value]| object(&json!({"a": "1", "b": live}), entries);
        let table = [
            ("a change since", b("2", &[ours(&["a"]), edited(SINCE)]), true),
            ("by a subresource", b("2", &[ours(&["a"]), scaled]), true),
            ("without a time", b("2", &[ours(&["a"]), timeless]), true),
            ("in the same second", b("2", &[ours(&["a"]), edited(THEN)]), true),
            (
                "under our own name",
                b(
                    "2",
                    &[ours(&["a"]), entry("us", "Update", SINCE, &fields(&["b"]))],
                ),
                true,
            ),
            (
                "new in the manifest",
                b("2", &[ours(&["a"]), edited(BEFORE)]),
                false,
            ),
            ("the same value", b("1", &[ours(&["a"]), edited(SINCE)]), false),
            ("our own field", b("2", &[ours(&["a", "b"])]), false),
            ("a status", b("2", &[ours(&["a"]), status]), false),
            ("a field without an owner", b("2", &[ours(&["a"])]), false),
            ("not applied by us", b("2", &[edited(SINCE)]), false),
            (
                "no trace of a removal",
                object(&json!({"a": "1"}), &[ours(&["a"])]),
                false,
            ),
        ];
        for (case, live, is_drift) in table {
            let drift = drifted_fields(&live, &all, "us");
            assert_eq!(!drift.is_empty(), is_drift, "{case}");
            if let Some(taken) = drift.first() {
                assert_eq!(taken.field, "data.b", "{case}");
            }
        }
    }

    #[test]
    fn items_of_lists_are_found_by_their_keys() {
        let key = r#"k:{"name":"web"}"#;
        let fields = |more: &Value| json!({"f:spec": {(key): more}});
        let whole = fields(&json!({".": {}, "f:name": {}, "f:image": {}}));
        let object = |image: &str, entries: &[Value]| {
            json!({"metadata": {"managedFields": entries},
                "spec": [{"name": "other", "image": "x"}, {"name": "web", "image": image}]})
        };
        let live = [
            entry("us", "Apply", THEN, &fields(&json!({".": {}, "f:name": {}}))),
            entry("kubectl-set", "Update", SINCE, &fields(&json!({"f:image": {}}))),
        ];
        let drift = drifted_fields(
            &object("2", &live),
            &object("1", &[entry("us", "Apply", THEN, &whole)]),
            "us",
        );
        let expected = DriftedField {
            field: "spec[name=web].image".to_owned(),
            manager: "kubectl-set".to_owned(),
        };
        assert_eq!(drift, [expected]);
    }

    #[test]
    fn a_conflict_is_drift_if_its_owner_has_written_since() {
        let owner = r#""kubectl" with subresource "scale""#;
        for (time, is_drift) in [(SINCE, true), (THEN, true), (BEFORE, false)] {
            let live = object(
                &json!({}),
                &[ours(&["a"]), entry("kubectl", "Update", time, &fields(&["b"]))],
            );
            let drift = drifted_fields_of_conflict(&live, [(".data.b", owner)], "us");
            assert_eq!(!drift.is_empty(), is_drift, "{time}");
        }
        let strange = object(&json!({}), &[entry("kubectl", "Update", SINCE, &fields(&["b"]))]);
        assert_eq!(
            drifted_fields_of_conflict(&strange, [(".data.b", owner)], "us"),
            []
        );
    }
}
