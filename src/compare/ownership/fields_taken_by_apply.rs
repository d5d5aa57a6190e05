//! The fields that an apply takes over: fields whose values it changes, and fields without an owner. A manifest that is
//! to undo the apply must have these fields with their former values, because nothing else would restore them.

use serde_json::{Map, Value, json};

use super::managed_fields::unite_all;
use super::owned_fields::{field_set_owned_by, manifest_from_field_set, unite_entries};
use crate::compare::changes::CrdVersion;
use crate::compare::field_paths::{ItemKey, has_parts_owned_separately};

/// Returns the manifest that restores a live object after `manager` has applied `desired`. It has the fields that
/// `manager` owns now, and the fields that the apply takes over.
pub fn manifest_to_undo_apply(
    object: &Value,
    manager: &str,
    desired: &Value,
    definition: Option<CrdVersion<'_>>,
) -> Value {
    let all = unite_entries(&object["metadata"], |_| true);
    let taken_fields = fields_taken_by_apply(object, desired, all.as_ref());
    let fields = unite_all(
        field_set_owned_by(object, manager)
            .into_iter()
            .chain(taken_fields),
    );
    manifest_from_field_set(object, fields, definition)
}

/// Returns the fields of a live value that an apply of `desired` takes over, as a field set: the fields that it
/// changes, and the fields without an owner. `None` if there are none. `owned` is the node of the value in the field
/// set of all managers; `None` if no manager owns the value.
fn fields_taken_by_apply(live: &Value, desired: &Value, owned: Option<&Value>) -> Option<Value> {
    let is_owned_in_parts = owned.is_none_or(has_parts_owned_separately);
    let parts: Map<String, Value> = match (live, desired, owned) {
        (Value::Object(live), Value::Object(desired), _) if is_owned_in_parts => desired
            .iter()
            .filter_map(|(name, desired)| {
                let key = format!("f:{name}");
                let live = live.get(name).filter(|live| !live.is_null())?;
                let below = fields_taken_by_apply(live, desired, owned.and_then(|owned| owned.get(&key)))?;
                Some((key, below))
            })
            .collect(),
        (Value::Array(live), Value::Array(desired), Some(owned)) if is_owned_in_parts => owned
            .as_object()?
            .iter()
            .filter_map(|(key, below)| {
                let [live, desired] = [live, desired].map(|items| {
                    let position = ItemKey::parse(key)?.position_in(items)?;
                    items.get(position)
                });
                Some((key.clone(), fields_taken_by_apply(live?, desired?, Some(below))?))
            })
            .collect(),
        _ => return (owned.is_none() || live != desired).then(|| json!({})),
    };
    (!parts.is_empty()).then_some(Value::Object(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The manifest that restores an object of which `us` and `ops` own these fields.
    fn restored(live: &Value, us: &Value, ops: &Value, desired: &Value) -> Value {
        let mut object = live.clone();
        object["apiVersion"] = json!("example.com/v1");
        object["kind"] = json!("Widget");
        object["metadata"]["managedFields"] = json!([
            {"manager": "us", "operation": "Apply", "apiVersion": "example.com/v1", "fieldsV1": us},
            {"manager": "ops", "operation": "Update", "apiVersion": "example.com/v1", "fieldsV1": ops},
        ]);
        let mut manifest = manifest_to_undo_apply(&object, "us", desired, None);
        let fields = manifest.as_object_mut().expect("an object");
        fields.retain(|name, _| name != "apiVersion" && name != "kind");
        manifest
    }

    #[test]
    fn values_that_a_run_takes_come_back_and_no_others() {
        let port = r#"k:{"port":8080,"protocol":"TCP"}"#;
        let variable = r#"k:{"name":"LOG"}"#;
        for (live, us, ops, desired, expected) in [
            // Of maps, only the key that changes.
            (
                json!({"data": {"a": "1", "theirs": "2", "more": "3"}}),
                json!({"f:data": {"f:a": {}}}),
                json!({"f:data": {"f:theirs": {}, "f:more": {}}}),
                json!({"data": {"a": "9", "theirs": "9"}}),
                json!({"data": {"a": "1", "theirs": "2"}}),
            ),
            // None of a map of others to which the run adds a key.
            (
                json!({"metadata": {"labels": {"team": "blue"}}}),
                json!({}),
                json!({"f:metadata": {"f:labels": {".": {}, "f:team": {}}}}),
                json!({"metadata": {"labels": {"part": "x"}}}),
                json!({}),
            ),
            // What others own stays theirs if its value is the same.
            (
                json!({"spec": {"replicas": 4}}),
                json!({}),
                json!({"f:spec": {"f:replicas": {}}}),
                json!({"spec": {"replicas": 4}}),
                json!({}),
            ),
            // What nobody owns would be a default after the run.
            (
                json!({"spec": {"replicas": 4, "paused": true}}),
                json!({"f:spec": {"f:paused": {}}}),
                json!({}),
                json!({"spec": {"replicas": 4}}),
                json!({"spec": {"replicas": 4, "paused": true}}),
            ),
            // Of lists, the items that are named by their keys.
            (
                json!({"env": [{"name": "LOG", "value": "debug"}, {"name": "X", "value": "1"}]}),
                json!({}),
                json!({"f:env": {variable: {".": {}, "f:name": {}, "f:value": {}}, r#"k:{"name":"X"}"#: {"f:value": {}}}}),
                json!({"env": [{"name": "Y", "value": "1"}, {"name": "LOG", "value": "info"}]}),
                json!({"env": [{"name": "LOG", "value": "debug"}]}),
            ),
            (
                json!({"ports": [{"port": 8080, "protocol": "TCP", "name": "w", "targetPort": 9090}]}),
                json!({"f:ports": {port: {".": {}, "f:port": {}}}}),
                json!({"f:ports": {port: {"f:name": {}, "f:targetPort": {}}}}),
                json!({"ports": [{"port": 8080, "protocol": "TCP", "targetPort": 80}]}),
                json!({"ports": [{"port": 8080, "protocol": "TCP", "targetPort": 9090}]}),
            ),
            // What is owned as a whole comes back as a whole.
            (
                json!({"args": ["a", "b"], "nodes": {"a": "b"}}),
                json!({}),
                json!({"f:args": {}, "f:nodes": {}}),
                json!({"args": ["a"], "nodes": {"a": "b"}}),
                json!({"args": ["a", "b"]}),
            ),
        ] {
            assert_eq!(restored(&live, &us, &ops, &desired), expected, "{desired}");
        }
    }
}
