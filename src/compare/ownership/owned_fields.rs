//! The part of an object that a field manager owns, as its manifest: what an apply under this manager
//! has to send for the object to be as it was.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::LAST_APPLIED;
use super::fields_left_to_others::without_fields;
use super::managed_fields::{entries, is_apply_of, is_client_side, is_whole_object, union};
use crate::compare::field_paths::{ItemKey, has_parts};
use crate::compare::ignore;
use crate::model::pointer::Pointer;

/// Field managers of Kubernetes' own controllers. What they write follows from the rest of the object.
const CONTROLLERS: [&str; 5] = [
    "cloud-controller-manager",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
];

/// Returns the manifest that `manager` would apply for its fields to be as they are in `was`. `live` is
/// the object as it is now: fields of others that `manager` has taken since belong to the manifest, too,
/// since no other manager would restore their values. So do those of client-side apply, which each apply
/// takes over, and removes if the manifest lacks them.
pub fn manifest_of(was: &Value, live: Option<&Value>, manager: &str) -> Value {
    let is_own = |entry: &Value| is_apply_of(entry, manager) || is_client_side(entry);
    let own = fields_of(&was["metadata"], is_own).map(without_last_applied);
    let taken = live.map(|live| {
        let of_others = |entry: &Value| is_whole_object(entry) && !is_apply_of(entry, manager);
        let ours = fields_of(&live["metadata"], |entry| is_apply_of(entry, manager));
        let theirs = fields_of(&was["metadata"], of_others);
        common(ours.as_ref(), theirs.as_ref())
    });
    let fields = match taken.flatten() {
        Some(taken) => Some(own.map_or(taken.clone(), |own| union(&own, &taken))),
        None => own,
    };
    let all = fields_of(&was["metadata"], |_| true).unwrap_or_default();
    let mut manifest = fields
        .and_then(|fields| part(was, &fields, Some(&all)))
        .unwrap_or_else(|| json!({}));
    for field in ["apiVersion", "kind"] {
        manifest[field] = was[field].clone();
    }
    for field in ["name", "namespace"] {
        if !was["metadata"][field].is_null() {
            manifest["metadata"][field] = was["metadata"][field].clone();
        }
    }
    manifest
}

/// Returns what field managers have made of an object: the fields and values of each entry. The status,
/// finalizers that were added, and what Kubernetes' own controllers write are left out: they change
/// without a decision. So are the fields that the set has `left` to others. `None` if nothing is known.
pub fn content_by_manager(object: &Value, left: &[Pointer]) -> Option<Value> {
    let mut contents = Vec::new();
    let all = fields_of(&object["metadata"], |_| true).unwrap_or_default();
    let counted = ignore::without(object, left);
    for entry in entries(&object["metadata"]) {
        let Some(fields) = decided_fields(entry, object, left) else {
            continue;
        };
        let values = part(&counted, &fields, Some(&all));
        let names = ["manager", "operation", "subresource", "apiVersion"];
        let names = names.map(|name| entry[name].as_str().unwrap_or_default().to_owned());
        let content = json!([names, fields, values]);
        contents.push((names, content));
    }
    contents.sort_by(|(one, _), (other, _)| one.cmp(other));
    let contents: Vec<Value> = contents.into_iter().map(|(_, content)| content).collect();
    (!contents.is_empty()).then_some(Value::Array(contents))
}

/// Returns the fields of an entry that count as decided by its manager; `None` if none do.
pub(super) fn decided_fields(entry: &Value, object: &Value, left: &[Pointer]) -> Option<Value> {
    if !is_decision(entry) {
        return None;
    }
    let mut fields = without_fields(&entry["fieldsV1"], object, left);
    if entry["operation"] == "Update" {
        remove_finalizers(&mut fields);
    }
    let is_empty = fields.as_object().is_some_and(Map::is_empty);
    (!is_empty).then_some(fields)
}

/// Returns the field managers other than `manager` that have decided anything of the object.
pub fn other_deciders(metadata: &Value, manager: &str) -> BTreeSet<String> {
    let others = entries(metadata).iter();
    let others = others.filter(|entry| is_decision(entry) && entry["manager"] != manager);
    others
        .filter_map(|entry| entry["manager"].as_str().map(str::to_owned))
        .collect()
}

/// Returns the `apiVersion` in which `manager` has applied the object; its field set is of that version.
pub fn applied_version<'m>(metadata: &'m Value, manager: &str) -> Option<&'m str> {
    let mut entries = entries(metadata).iter();
    entries.find(|entry| is_apply_of(entry, manager))?["apiVersion"].as_str()
}

/// Returns whether an entry is of a person or a tool, not of the status or of a controller of
/// Kubernetes.
fn is_decision(entry: &Value) -> bool {
    let is_controller = entry["manager"]
        .as_str()
        .is_some_and(|manager| CONTROLLERS.contains(&manager));
    entry["subresource"] != "status" && !is_controller
}

fn remove_finalizers(fields: &mut Value) {
    let Some(fields) = fields.as_object_mut() else {
        return;
    };
    let Some(metadata) = fields.get_mut("f:metadata").and_then(Value::as_object_mut) else {
        return;
    };
    metadata.remove("f:finalizers");
    if metadata.is_empty() {
        fields.remove("f:metadata");
    }
}

/// The annotation of client-side apply is not part of a manifest.
fn without_last_applied(mut fields: Value) -> Value {
    let metadata = fields.get_mut("f:metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata
        && let Some(annotations) = metadata.get_mut("f:annotations").and_then(Value::as_object_mut)
        && annotations.remove(&format!("f:{LAST_APPLIED}")).is_some()
        && annotations.keys().all(|key| key == ".")
    {
        metadata.remove("f:annotations");
    }
    fields
}

fn fields_of(metadata: &Value, is_it: impl Fn(&Value) -> bool) -> Option<Value> {
    let entries = entries(metadata).iter().filter(|entry| is_it(entry));
    let fields = entries.map(|entry| entry["fieldsV1"].clone());
    fields.reduce(|one, other| union(&one, &other))
}

/// Returns the paths that both field sets have; `None` if there are none.
fn common(one: Option<&Value>, other: Option<&Value>) -> Option<Value> {
    let (one, other) = (one?.as_object()?, other?.as_object()?);
    // An empty node has the path itself, as the key `.` of another one.
    if one.is_empty() || other.is_empty() {
        let has_itself = |fields: &Map<String, Value>| fields.is_empty() || fields.contains_key(".");
        return (has_itself(one) && has_itself(other)).then(|| json!({}));
    }
    let both: Map<String, Value> = one
        .iter()
        .filter_map(|(key, child)| {
            let below = common(Some(child), other.get(key))?;
            Some((key.clone(), below))
        })
        .collect();
    (!both.is_empty()).then_some(Value::Object(both))
}

/// Returns the part of a value that a field set has; `None` if the value has none of it. `all` is the
/// node of all managers: an empty node is a whole value, unless another manager has something in it.
fn part(value: &Value, fields: &Value, all: Option<&Value>) -> Option<Value> {
    let fields = fields.as_object()?;
    let is_shared = all.is_some_and(has_parts);
    let is_itself = fields.contains_key(".") || fields.is_empty() && is_shared;
    match value {
        value if fields.is_empty() && !is_shared => Some(value.clone()),
        Value::Object(values) => {
            let parts = fields.iter().filter_map(|(key, below)| {
                let name = key.strip_prefix("f:")?;
                let all = all.and_then(|all| all.get(key));
                Some((name.to_owned(), part(values.get(name)?, below, all)?))
            });
            let parts: Map<String, Value> = parts.collect();
            (!parts.is_empty() || is_itself).then_some(Value::Object(parts))
        }
        Value::Array(items) => {
            let parts = items.iter().enumerate();
            let parts = parts.filter_map(|(position, item)| part_of_item(position, item, fields, all));
            let parts: Vec<Value> = parts.collect();
            (!parts.is_empty() || is_itself).then_some(Value::Array(parts))
        }
        value => Some(value.clone()),
    }
}

/// Returns the part of a list item that one of the keys of a field set selects.
fn part_of_item(
    position: usize,
    item: &Value,
    fields: &Map<String, Value>,
    all: Option<&Value>,
) -> Option<Value> {
    fields.iter().find_map(|(key, below)| {
        let key_of_item = ItemKey::parse(key).filter(|key| key.selects(position, item))?;
        let all = all.and_then(|all| all.get(key));
        match key_of_item {
            ItemKey::Fields(keys) => part_with_keys(item, below, &keys, all),
            ItemKey::Value(_) | ItemKey::Position(_) => part(item, below, all),
        }
    })
}

/// An item is found by its keys. The fields of those that have a default may be unowned, but not all.
fn part_with_keys(
    item: &Value,
    fields: &Value,
    keys: &Map<String, Value>,
    all: Option<&Value>,
) -> Option<Value> {
    let mut found = part(item, fields, all)?;
    if let Some(found) = found.as_object_mut()
        && keys.keys().all(|key| !found.contains_key(key))
    {
        found.extend(keys.clone());
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields})
    }

    fn with_entries(mut object: Value, entries: &[Value]) -> Value {
        object["metadata"]["managedFields"] = json!(entries);
        object
    }

    #[test]
    fn a_manifest_has_the_fields_of_its_manager() {
        let object = json!({
            "apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "b", "uid": "u", "labels": {"x": "1", "y": "2"}},
            "spec": {
                "ports": [{"port": 80, "protocol": "TCP", "name": "web"}, {"port": 81, "protocol": "TCP"}],
                "list": ["a", "b"], "atomic": {"q": [1, 2]}, "empty": {}, "unowned": true,
            },
        });
        let fields = json!({
            "f:metadata": {"f:labels": {"f:x": {}}},
            "f:spec": {
                "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}, "k:{\"port\":82,\"protocol\":\"TCP\"}": {".": {}}},
                "f:list": {"v:\"b\"": {}, "v:\"c\"": {}}, "f:atomic": {}, "f:empty": {".": {}}, "f:gone": {},
            },
        });
        let was = with_entries(
            object,
            &[
                entry("us", "Apply", &fields),
                entry("us", "Update", &json!({"f:spec": {"f:unowned": {}}})),
            ],
        );
        assert_eq!(
            manifest_of(&was, None, "us"),
            json!({
                "apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "b", "labels": {"x": "1"}},
                "spec": {"ports": [{"port": 80}], "list": ["b"], "atomic": {"q": [1, 2]}, "empty": {}},
            })
        );
        assert_eq!(
            manifest_of(&was, None, "them"),
            json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "b"}})
        );
    }

    #[test]
    fn an_empty_map_of_ours_does_not_have_what_others_put_in_it() {
        let ours = entry("us", "Apply", &json!({"f:data": {}, "f:atomic": {}}));
        let theirs = entry("them", "Update", &json!({"f:data": {".": {}, "f:a": {}}}));
        let object = json!({"metadata": {"name": "a"}, "data": {"a": "1"}, "atomic": {"b": 1}});
        let was = with_entries(object, &[ours, theirs]);
        let manifest = manifest_of(&was, None, "us");
        assert_eq!(
            (&manifest["data"], &manifest["atomic"]),
            (&json!({}), &json!({"b": 1}))
        );
    }

    #[test]
    fn fields_that_were_taken_since_come_back_with_their_values() {
        let was = with_entries(
            json!({"metadata": {"name": "a"}, "data": {"a": "1", "b": "2", "c": "3"}}),
            &[
                entry("us", "Apply", &json!({"f:data": {"f:a": {}}})),
                entry(
                    "them",
                    "Update",
                    &json!({"f:data": {".": {}, "f:b": {}, "f:c": {}}}),
                ),
            ],
        );
        let live = with_entries(
            json!({"metadata": {"name": "a"}, "data": {"a": "x", "b": "x", "c": "3", "d": "x"}}),
            &[
                entry(
                    "us",
                    "Apply",
                    &json!({"f:data": {"f:a": {}, "f:b": {}, "f:d": {}}}),
                ),
                entry("them", "Update", &json!({"f:data": {".": {}, "f:c": {}}})),
            ],
        );
        let manifest = manifest_of(&was, Some(&live), "us");
        assert_eq!(manifest["data"], json!({"a": "1", "b": "2"}));
    }

    #[test]
    fn fields_of_client_side_apply_are_part_of_the_manifest() {
        let annotated = |more: &str| json!({".": {}, (format!("f:{LAST_APPLIED}")): {}, (more): {}});
        for (annotations, expected) in [
            (annotated("."), Value::Null),
            (annotated("f:note"), json!({"note": "x"})),
        ] {
            let object = json!({
                "metadata": {"name": "a", "annotations": {(LAST_APPLIED): "{}", "note": "x"}},
                "data": {"a": "1", "b": "2"},
            });
            let fields =
                json!({"f:metadata": {"f:annotations": annotations}, "f:data": {".": {}, "f:b": {}}});
            let was = with_entries(object, &[entry("kubectl-client-side-apply", "Update", &fields)]);
            for live in [None, Some(&json!({"metadata": {}}))] {
                let manifest = manifest_of(&was, live, "us");
                assert_eq!(manifest["data"], json!({"b": "2"}));
                assert_eq!(manifest["metadata"]["annotations"], expected);
            }
        }
    }

    #[test]
    fn an_item_without_any_key_gets_all_of_them() {
        let item = json!({"name": "a", "value": "1"});
        let keys = json!({"name": "a"});
        let keys = keys.as_object().expect("a mapping");
        assert_eq!(
            part_with_keys(&item, &json!({"f:value": {}}), keys, None),
            Some(item.clone())
        );
        assert_eq!(
            part_with_keys(&item, &json!({".": {}, "f:name": {}}), keys, None),
            Some(json!({"name": "a"}))
        );
    }

    #[test]
    fn the_content_by_manager_ignores_what_follows_from_it() {
        let ours = entry("us", "Apply", &json!({"f:data": {"f:a": {}}}));
        let object = |data: Value, more: &[Value]| {
            let entries = [std::slice::from_ref(&ours), more].concat();
            with_entries(
                json!({"metadata": {"name": "a", "finalizers": ["x"]}, "data": data}),
                &entries,
            )
        };
        let base = object(json!({"a": "1"}), &[]);
        let status = json!({"manager": "m", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}});
        let finalizer = entry(
            "operator",
            "Update",
            &json!({"f:metadata": {"f:finalizers": {".": {}, "v:\"x\"": {}}}}),
        );
        let labeled = entry("kubectl-label", "Update", &json!({"f:data": {"f:b": {}}}));
        let revision = entry(
            "kube-controller-manager",
            "Update",
            &json!({"f:data": {"f:b": {}}}),
        );
        let table = [
            (object(json!({"a": "1", "unowned": "2"}), &[]), true),
            (object(json!({"a": "1"}), &[status]), true),
            (object(json!({"a": "1"}), &[finalizer]), true),
            (object(json!({"a": "1", "b": "2"}), &[revision]), true),
            (
                object(json!({"a": "1", "b": "2"}), std::slice::from_ref(&labeled)),
                false,
            ),
            (object(json!({"a": "2"}), &[]), false),
        ];
        for (other, is_same) in table {
            assert_eq!(
                content_by_manager(&other, &[]) == content_by_manager(&base, &[]),
                is_same,
                "{other}"
            );
        }
        assert_eq!(content_by_manager(&json!({"metadata": {}}), &[]), None);
        let metadata = object(json!({}), &[labeled])["metadata"].clone();
        assert_eq!(
            other_deciders(&metadata, "us"),
            ["kubectl-label".to_owned()].into()
        );
    }
}
