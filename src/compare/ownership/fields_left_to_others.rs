//! Fields that a set leaves to others, and fields that others have changed, by `managedFields`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::managed_fields::{entries, is_apply_of};
use super::owned_fields::decided_fields;
use super::replicas::HANDOVER_FIELD_MANAGER;
use crate::compare::field_paths::{ItemKey, has_parts, leaf_paths, readable, value_at};
use crate::model::pointer::{Pointer, index};

/// Returns the fields that a hand-over owns, or that were written through the subresource `scale`.
pub fn scaled_fields(metadata: &Value) -> Vec<Pointer> {
    let is_scaled = |entry: &&Value| {
        is_apply_of(entry, HANDOVER_FIELD_MANAGER) || entry["subresource"].as_str() == Some("scale")
    };
    let paths = entries(metadata).iter().filter(is_scaled);
    let paths = paths.flat_map(|entry| leaf_paths(&entry["fieldsV1"]));
    let names = paths.filter_map(|path| {
        let names = path.iter().map(|key| key.strip_prefix("f:").map(str::to_owned));
        names.collect::<Option<Vec<String>>>()
    });
    names.map(Pointer::of).collect()
}

/// Returns a field set of the object without these fields. Nodes that become empty are removed as well.
pub(super) fn without_fields(fields: &Value, object: &Value, left: &[Pointer]) -> Value {
    let mut fields = fields.clone();
    for pointer in left {
        remove(&mut fields, object, pointer.segments());
    }
    fields
}

fn remove(node: &mut Value, value: &Value, segments: &[String]) {
    let (Some((segment, rest)), Some(tree)) = (segments.split_first(), node.as_object_mut()) else {
        return;
    };
    let (key, below) = match value {
        Value::Array(items) => {
            let Some((place, item)) = index(segment).and_then(|place| Some((place, items.get(place)?)))
            else {
                return;
            };
            let Some(key) = tree.keys().find(|key| is_key_of(key, place, item)) else {
                return;
            };
            (key.clone(), item)
        }
        value => (format!("f:{segment}"), value.get(segment).unwrap_or(&Value::Null)),
    };
    if rest.is_empty() {
        tree.remove(&key);
        return;
    }
    let Some(child) = tree.get_mut(&key) else { return };
    if !has_parts(child) {
        return;
    }
    remove(child, below, rest);
    if !has_parts(child) {
        tree.remove(&key);
    }
}

/// Returns the fields that field managers other than `manager` own in the live object, and did not own
/// with the same value in the object as it `was`, by the names of these managers.
pub fn changed_by_others(
    was: Option<&Value>,
    live: &Value,
    manager: &str,
    left: &[Pointer],
) -> BTreeMap<String, Vec<String>> {
    let mut changed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in entries(&live["metadata"]) {
        let name = entry["manager"].as_str().unwrap_or_default();
        let Some(fields) = decided_fields(entry, live, left).filter(|_| name != manager) else {
            continue;
        };
        let is_same = |other: &&Value| {
            let names = ["manager", "operation", "subresource"];
            names.iter().all(|name| other[name] == entry[name])
        };
        let before = was.and_then(|was| Some((was, entries(&was["metadata"]).iter().find(is_same)?)));
        let is_as_before = |path: &[String]| {
            before.is_some_and(|(was, entry)| {
                let is_owned = node_at(&entry["fieldsV1"], path).is_some();
                is_owned && value_at(was, path) == value_at(live, path)
            })
        };
        let paths = leaf_paths(&fields).into_iter();
        let paths = paths
            .filter(|path| !is_as_before(path))
            .map(|path| readable(path.iter().map(String::as_str)));
        changed.entry(name.to_owned()).or_default().extend(paths);
    }
    changed.retain(|_, fields| !fields.is_empty());
    changed
}

fn is_key_of(key: &str, position: usize, item: &Value) -> bool {
    ItemKey::parse(key).is_some_and(|key| key.selects(position, item))
}

fn node_at<'v>(fields: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(fields, |node, key| node.get(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::compare::ownership::content_by_manager;

    fn pointers(texts: &[&str]) -> Vec<Pointer> {
        let pointers = texts.iter().map(|text| Pointer::parse(text).expect("a pointer"));
        pointers.collect()
    }

    fn entry(manager: &str, operation: &str, subresource: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": fields})
    }

    #[test]
    fn what_others_write_in_fields_that_are_left_to_them_does_not_count() {
        let rest = json!({"f:image": {}});
        let object = |replicas: u8, note: Option<&str>, tag: &str, entries: &[Value]| {
            let containers = json!([{"name": "app", "image": "a", "tag": tag}]);
            let mut object = json!({
                "metadata": {"name": "a", "managedFields": entries, "annotations": {}},
                "spec": {"replicas": replicas, "image": "b", "containers": containers},
            });
            if let Some(note) = note {
                object["metadata"]["annotations"]["note"] = json!(note);
            }
            object
        };
        let mut ours = rest.clone();
        ours["f:replicas"] = json!({});
        let tag = json!({"k:{\"name\":\"app\"}": {".": {}, "f:name": {}, "f:image": {}, "f:tag": {}}});
        let untagged = json!({"k:{\"name\":\"app\"}": {".": {}, "f:name": {}, "f:image": {}}});
        let spec = |mut fields: Value, containers: &Value| {
            fields["f:containers"] = containers.clone();
            json!({"f:spec": fields})
        };
        let replicas = json!({"f:spec": {"f:replicas": {}}});
        let left = pointers(&[
            "/spec/replicas",
            "/spec/containers/0/tag",
            "/metadata/annotations/note",
        ]);
        let before = object(1, None, "1", &[entry("us", "Apply", "", &spec(ours, &tag))]);
        let without = || entry("us", "Apply", "", &spec(rest.clone(), &untagged));
        let note = json!({"f:metadata": {"f:annotations": {".": {}, "f:note": {}}}});
        let theirs = json!({"f:spec": {"f:containers": {"k:{\"name\":\"app\"}": {"f:tag": {}}}}});
        let table = [
            (vec![without(), entry("hpa", "Update", "scale", &replicas)], true),
            (
                vec![without(), entry(HANDOVER_FIELD_MANAGER, "Apply", "", &replicas)],
                true,
            ),
            (
                vec![
                    without(),
                    entry("us", "Apply", "scale", &replicas),
                    entry("x", "Update", "", &note),
                ],
                true,
            ),
            (vec![without(), entry("x", "Update", "", &theirs)], true),
            (
                vec![
                    without(),
                    entry("x", "Update", "", &json!({"f:spec": {"f:image": {}}})),
                ],
                false,
            ),
            (vec![], false),
        ];
        for (entries, is_same) in table {
            let after = object(5, Some("x"), "2", &entries);
            assert_eq!(
                content_by_manager(&after, &left) == content_by_manager(&before, &left),
                is_same,
                "{after}"
            );
            assert_ne!(content_by_manager(&after, &[]), content_by_manager(&before, &[]));
        }
    }

    #[test]
    fn scaled_fields_are_those_of_the_hand_over_and_of_scale() {
        let replicas = json!({"f:spec": {"f:replicas": {}}});
        for (manager, operation, subresource, expected) in [
            (HANDOVER_FIELD_MANAGER, "Apply", "", pointers(&["/spec/replicas"])),
            ("keda", "Update", "scale", pointers(&["/spec/replicas"])),
            ("kubectl", "Update", "", vec![]),
        ] {
            let metadata = json!({"managedFields": [entry(manager, operation, subresource, &replicas)]});
            assert_eq!(scaled_fields(&metadata), expected, "{manager}");
        }
    }

    #[test]
    fn changed_fields_are_named_with_their_managers() {
        let object = |data: Value, entries: Vec<Value>| {
            json!({
                "metadata": {"managedFields": entries, "labels": {"a.b/c": "d"}}, "data": data,
                "list": [{"name": "app", "x": 1}],
            })
        };
        let ours = entry("us", "Apply", "", &json!({"f:data": {"f:key": {}}}));
        let old = entry(
            "old",
            "Update",
            "",
            &json!({"f:data": {"f:same": {}, "f:other": {}}}),
        );
        let was = object(
            json!({"key": "1", "same": "1", "other": "1"}),
            vec![ours, old.clone()],
        );
        let new = json!({
            "f:data": {"f:key": {}}, "f:metadata": {"f:labels": {"f:a.b/c": {}}},
            "f:list": {"k:{\"name\":\"app\"}": {"f:x": {}}},
        });
        let live = object(
            json!({"key": "2", "same": "1", "other": "2"}),
            vec![
                old,
                entry("new", "Update", "", &new),
                entry("s", "Update", "status", &new),
            ],
        );
        let changed = changed_by_others(Some(&was), &live, "us", &[]);
        let expected = [
            (
                "new",
                vec!["data.key", "list[name=app].x", "metadata.labels[a.b/c]"],
            ),
            ("old", vec!["data.other"]),
        ];
        let expected = expected.map(|(name, fields)| {
            (
                name.to_owned(),
                fields.into_iter().map(str::to_owned).collect::<Vec<_>>(),
            )
        });
        assert_eq!(changed, BTreeMap::from(expected));
        assert_eq!(changed_by_others(None, &live, "us", &[])["old"].len(), 2);
    }
}
