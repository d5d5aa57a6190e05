//! Stale fields: fields that only a former owner owns, and that the manifest lacks. The object loses them when their
//! ownership moves to our manager.
//!
//! A run moves the ownership with one request and applies with another, which removes the fields that the manifest
//! lacks. A dry run of the second request does not see the result of the first, so the result is computed here.

use serde_json::{Map, Value, json};

use super::CLIENT_SIDE_APPLY;
use super::managed_fields::{entries, is_apply_of};
use super::migration::{
    OwnershipMigration, has_fields_that_move, string_data_entries, take_fields_that_stay,
};
use crate::compare::field_paths::{child_mut, is_empty_container, remove_child};

/// Returns the object without stale fields; `None` if it has none.
///
/// `applied` is the object as a dry run of our apply shows it: the entry of our manager
/// has the fields of the manifest, and the former owners still have theirs. `live_secret` is the live object if it is a
/// Secret: only its managedFields show which keys were applied as `stringData` before.
pub fn remove_stale_fields(
    applied: &Value,
    live_secret: Option<&Value>,
    former: &OwnershipMigration,
) -> Option<Value> {
    let (mut moved_entries, mut kept_entries): (Vec<Value>, Vec<Value>) = entries(&applied["metadata"])
        .iter()
        .cloned()
        .partition(|entry| has_fields_that_move(entry, former));
    kept_entries.extend(
        moved_entries
            .iter_mut()
            .filter_map(|entry| take_fields_that_stay(entry, former.last_applied))
            .map(|fields| json!({"fieldsV1": fields})),
    );
    if let Some(secret) = live_secret {
        moved_entries.extend(string_data_entries(&secret["metadata"], former));
    }
    let mut object = applied.clone();
    remove_moved_fields(&mut object, &trees(&moved_entries), &trees(&kept_entries));
    (object != *applied).then_some(object)
}

/// Makes our manager own exactly the fields of a manifest, and client-side apply, as a former owner, the fields that
/// our manager has applied before.
pub fn replace_own_entry_and_keep_former(
    metadata: &mut Value,
    former: &OwnershipMigration,
    manifest: &Value,
) {
    let Some(entries) = metadata["managedFields"].as_array_mut() else {
        return;
    };
    for entry in entries.iter_mut() {
        if is_apply_of(entry, former.manager) {
            entry["manager"] = CLIENT_SIDE_APPLY.into();
            entry["operation"] = "Update".into();
        }
    }
    entries.push(json!({
        "manager": former.manager,
        "operation": "Apply",
        "fieldsV1": field_set(manifest),
    }));
}

/// Returns the field set of a manifest. It owns lists as a whole: only the server knows which lists
/// have keys.
fn field_set(manifest: &Value) -> Value {
    Value::Object(
        manifest
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (format!("f:{name}"), field_set(value)))
            .collect(),
    )
}

type Tree = Map<String, Value>;

fn trees(entries: &[Value]) -> Vec<&Tree> {
    entries
        .iter()
        .filter_map(|entry| entry["fieldsV1"].as_object())
        .collect()
}

/// Returns the nodes to which a key of these trees leads.
fn nodes_at(key: &str, trees: &[&Tree]) -> Vec<Tree> {
    trees
        .iter()
        .filter_map(|tree| tree.get(key)?.as_object())
        .cloned()
        .collect()
}

/// Removes the fields that are in one of the trees `moved` and in none of the trees `kept`.
fn remove_moved_fields(value: &mut Value, moved: &[&Tree], kept: &[&Tree]) {
    let mut keys: Vec<&String> = moved.iter().flat_map(|tree| tree.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys.into_iter().filter(|key| *key != ".") {
        let moved_nodes = nodes_at(key, moved);
        let kept_nodes = nodes_at(key, kept);
        // An empty node owns the value as a whole, with all that is in it.
        if kept_nodes.iter().any(Map::is_empty) {
            continue;
        }
        let is_owned = moved_nodes
            .iter()
            .any(|node| node.is_empty() || node.contains_key("."));
        if kept_nodes.is_empty() && is_owned {
            remove_child(value, key);
            continue;
        }
        let Some(child) = child_mut(value, key) else {
            continue;
        };
        remove_moved_fields(
            child,
            &moved_nodes.iter().collect::<Vec<_>>(),
            &kept_nodes.iter().collect::<Vec<_>>(),
        );
        if kept_nodes.is_empty() && is_empty_container(child) {
            remove_child(value, key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::ownership::{CLIENT_SIDE_APPLY, LAST_APPLIED, LastAppliedTreatment};

    fn left(
        mut object: Value,
        theirs: &Value,
        ours: &Value,
        last_applied: LastAppliedTreatment,
    ) -> Option<Value> {
        object["metadata"]["managedFields"] = json!([
            {"manager": CLIENT_SIDE_APPLY, "operation": "Update", "fieldsV1": theirs},
            {"manager": "ours", "operation": "Apply", "fieldsV1": ours},
        ]);
        let former = OwnershipMigration {
            manager: "ours",
            tool: None,
            writers: &[],
            last_applied,
        };
        let mut object_left = remove_stale_fields(&object, None, &former)?;
        object_left["metadata"].as_object_mut()?.remove("managedFields");
        Some(object_left)
    }

    #[test]
    fn what_an_earlier_run_typed_leaves_the_secret() {
        let secret = |fields: &Value| {
            json!({"data": {"a": "eA==", "b": "eA=="}, "metadata": {"managedFields": [
                {"manager": "ours", "operation": "Apply", "fieldsV1": fields},
            ]}})
        };
        let former = OwnershipMigration {
            manager: "ours",
            tool: None,
            writers: &[],
            last_applied: LastAppliedTreatment::Moved,
        };
        let live = secret(&json!({"f:stringData": {"f:a": {}, "f:b": {}}}));
        let object = secret(&json!({"f:data": {"f:a": {}}}));
        let object_left = remove_stale_fields(&object, Some(&live), &former).expect("something to lose");
        assert_eq!(object_left["data"], json!({"a": "eA=="}));
        assert_eq!(remove_stale_fields(&object, Some(&object), &former), None);
    }

    #[test]
    fn lists_of_a_manifest_are_owned_as_a_whole() {
        let manifest = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}], "empty": {}}});
        assert_eq!(
            field_set(&manifest),
            json!({"f:metadata": {"f:name": {}}, "f:spec": {"f:ports": {}, "f:empty": {}}})
        );
    }

    #[test]
    fn what_only_the_former_owner_has_leaves_the_object() {
        let table = [
            (
                json!({"data": {"a": "1", "b": "2"}, "metadata": {}}),
                json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}}),
                json!({"f:data": {"f:a": {}}}),
                Some(json!({"data": {"a": "1"}, "metadata": {}})),
            ),
            (
                json!({"spec": {"ports": [{"port": 80, "protocol": "TCP"}, {"port": 81, "protocol": "TCP"}]}, "metadata": {}}),
                json!({"f:spec": {"f:ports": {".": {}, "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}}, "k:{\"port\":81,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}}),
                json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}}}}}),
                Some(json!({"spec": {"ports": [{"port": 80, "protocol": "TCP"}]}, "metadata": {}})),
            ),
            (
                json!({"metadata": {"finalizers": ["a", "b"]}}),
                json!({"f:metadata": {"f:finalizers": {"v:\"a\"": {}, "v:\"b\"": {}}}}),
                json!({"f:metadata": {"f:finalizers": {"v:\"a\"": {}}}}),
                Some(json!({"metadata": {"finalizers": ["a"]}})),
            ),
            // The map is removed with its last field, unless a manager owns the map.
            (
                json!({"spec": {"map": {"a": 1}}, "metadata": {}}),
                json!({"f:spec": {"f:map": {"f:a": {}}}}),
                json!({"f:spec": {"f:other": {}}}),
                Some(json!({"spec": {}, "metadata": {}})),
            ),
            (
                json!({"spec": {"map": {"a": 1}}, "metadata": {}}),
                json!({"f:spec": {"f:map": {".": {}, "f:a": {}}}}),
                json!({"f:spec": {"f:map": {".": {}}}}),
                Some(json!({"spec": {"map": {}}, "metadata": {}})),
            ),
            // Our manager owns the value as a whole.
            (
                json!({"spec": {"map": {"a": 1}}, "metadata": {}}),
                json!({"f:spec": {"f:map": {"f:a": {}}}}),
                json!({"f:spec": {"f:map": {}}}),
                None,
            ),
        ];
        for (object, theirs, ours, expected) in table {
            assert_eq!(
                left(object, &theirs, &ours, LastAppliedTreatment::Moved),
                expected
            );
        }
    }

    #[test]
    fn the_annotation_of_client_side_apply_goes_with_it_unless_it_is_left_to_it() {
        let object = json!({"data": {"a": "1"}, "metadata": {"annotations": {(LAST_APPLIED): "{}"}}});
        let theirs = json!({"f:metadata": {"f:annotations": {".": {}, (format!("f:{LAST_APPLIED}")): {}}}, "f:data": {"f:a": {}}});
        let ours = json!({"f:data": {"f:a": {}}});
        let moved =
            left(object.clone(), &theirs, &ours, LastAppliedTreatment::Moved).expect("something to lose");
        assert_eq!(moved["metadata"].get("annotations"), None);
        assert_eq!(
            left(object, &theirs, &ours, LastAppliedTreatment::LeftToItsOwner),
            None
        );
    }
}
