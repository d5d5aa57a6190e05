//! The way of field ownership from client-side to server-side apply.
//!
//! Pure: metadata in, a patch out. The rule is that of client-go's `csaupgrade`
//! (`UpgradeManagedFieldsPatch`): what client-side apply owns is moved to the manager of
//! server-side apply, so that a field that leaves the manifest leaves the object, too.

use serde_json::{Map, Value, json};

/// The field manager of `kubectl apply` without `--server-side`.
pub const CLIENT_SIDE_APPLY: &str = "kubectl-client-side-apply";

/// Whether fields of the object are owned by client-side apply.
pub fn has_client_side_apply(metadata: &Value) -> bool {
    entries(metadata).iter().any(is_client_side)
}

/// A JSON patch that moves what client-side apply owns to `manager`; `None` where it
/// owns nothing. Bound to the resourceVersion of `metadata`.
pub fn migration(metadata: &Value, manager: &str) -> Option<Value> {
    let (client_side, mut others): (Vec<Value>, Vec<Value>) =
        entries(metadata).iter().cloned().partition(is_client_side);
    let first = client_side.first()?.clone();
    let is_ours = |entry: &&mut Value| {
        entry["manager"] == manager && entry["operation"] == "Apply" && is_whole_object(entry)
    };
    if let Some(ours) = others.iter_mut().find(is_ours) {
        for entry in &client_side {
            ours["fieldsV1"] = union(&ours["fieldsV1"], &entry["fieldsV1"]);
        }
    } else {
        let mut ours = first;
        ours["manager"] = json!(manager);
        ours["operation"] = json!("Apply");
        for entry in &client_side[1..] {
            ours["fieldsV1"] = union(&ours["fieldsV1"], &entry["fieldsV1"]);
        }
        others.push(ours);
    }
    Some(json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": others},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
    ]))
}

fn entries(metadata: &Value) -> &[Value] {
    metadata["managedFields"].as_array().map_or(&[], Vec::as_slice)
}

fn is_client_side(entry: &Value) -> bool {
    entry["manager"] == CLIENT_SIDE_APPLY && entry["operation"] == "Update" && is_whole_object(entry)
}

fn is_whole_object(entry: &Value) -> bool {
    entry["subresource"].as_str().unwrap_or_default().is_empty()
}

/// The union of two FieldsV1 trees. An empty node owns its path; a node with children
/// owns its path only where it has the child `.`.
fn union(one: &Value, other: &Value) -> Value {
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
    fn client_side_ownership_moves_to_server_side_apply() {
        let metadata = json!({"resourceVersion": "5", "managedFields": [
            {"manager": CLIENT_SIDE_APPLY, "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:old": {}}}},
            {"manager": "ours", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:new": {}}}},
            {"manager": "controller", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
        ]});
        assert!(has_client_side_apply(&metadata));
        let patch = migration(&metadata, "ours").expect("something to move");
        assert_eq!(patch[1]["value"], "5");
        let fields = &patch[0]["value"];
        assert_eq!(fields.as_array().map(Vec::len), Some(2));
        assert_eq!(
            fields[0]["fieldsV1"],
            json!({"f:data": {"f:old": {}, "f:new": {}}})
        );
    }

    #[test]
    fn an_entry_of_server_side_apply_is_made_where_there_is_none() {
        let metadata = json!({"resourceVersion": "5", "managedFields": [
            {"manager": CLIENT_SIDE_APPLY, "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:old": {}}}},
        ]});
        let patch = migration(&metadata, "ours").expect("something to move");
        let entry = &patch[0]["value"][0];
        assert_eq!(
            (&entry["manager"], &entry["operation"]),
            (&json!("ours"), &json!("Apply"))
        );
    }

    #[test]
    fn other_managers_are_left_alone() {
        for entry in [
            json!({"manager": "kubectl", "operation": "Apply", "fieldsV1": {}}),
            json!({"manager": CLIENT_SIDE_APPLY, "operation": "Update", "subresource": "status", "fieldsV1": {}}),
        ] {
            let metadata = json!({"resourceVersion": "5", "managedFields": [entry]});
            assert_eq!(migration(&metadata, "ours"), None);
        }
    }
}
