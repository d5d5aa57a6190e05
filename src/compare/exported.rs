//! The manifest of a live member, as its set has last applied it.
//!
//! Like client-go's extract functions, it takes the fields that the field manager owns. Pure.

use serde_json::{Value, json};

use super::ignore;
use super::ownership::{LAST_APPLIED, manifest_of, manifest_of_all, was_created_by};
use crate::model::applyset::parent::is_applyset_key;
use crate::model::identity::GroupVersionKind;
use crate::model::pointer::Pointer;

/// A manifest, and where its fields are from.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
    /// The object, without what the server and this program set.
    pub manifest: Value,
    /// Where its fields are from.
    pub fields: ExportedFields,
}

/// The fields of an exported manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportedFields {
    /// Those that the field manager of the set owns.
    Applied,
    /// Those of all field managers: the set has never applied the object, only taken it in.
    Live,
}

/// Returns the manifest of an object, which `manager` has applied or only labeled.
pub fn exported(object: &Value, manager: &str) -> Exported {
    let applied = without_applyset_metadata(manifest_of(object, manager));
    if has_fields(&applied) || was_created_by(&object["metadata"], manager) {
        return Exported {
            manifest: applied,
            fields: ExportedFields::Applied,
        };
    }
    Exported {
        manifest: without_server_fields(without_applyset_metadata(manifest_of_all(object))),
        fields: ExportedFields::Live,
    }
}

/// Returns whether a manifest has more than what identifies its object.
fn has_fields(manifest: &Value) -> bool {
    let has_more = |value: &Value, identity: &[&str]| {
        let fields = value.as_object();
        fields.is_some_and(|fields| fields.keys().any(|field| !identity.contains(&field.as_str())))
    };
    has_more(manifest, &["apiVersion", "kind", "metadata"])
        || has_more(&manifest["metadata"], &["name", "namespace"])
}

/// Removes the label of the set, and the record of one: they are not part of any manifest.
fn without_applyset_metadata(mut manifest: Value) -> Value {
    let Some(metadata) = manifest["metadata"].as_object_mut() else {
        return manifest;
    };
    for field in ["labels", "annotations"] {
        let Some(pairs) = metadata.get_mut(field).and_then(Value::as_object_mut) else {
            continue;
        };
        let before = pairs.len();
        pairs.retain(|key, _| !is_applyset_key(key) && key != LAST_APPLIED);
        if pairs.is_empty() && before > 0 {
            metadata.remove(field);
        }
    }
    manifest
}

/// The fields outside of the status that the server or a controller fills, by kind. One that is sent again to an
/// object that was created again would be refused, or refer to what is gone.
const FILLED: [(&str, &str, &[&str]); 7] = [
    ("", "Namespace", &["/spec"]),
    (
        "",
        "PersistentVolumeClaim",
        &["/spec/volumeName", "/metadata/annotations"],
    ),
    (
        "",
        "PersistentVolume",
        &["/spec/claimRef/uid", "/spec/claimRef/resourceVersion"],
    ),
    ("", "Pod", &["/spec/nodeName"]),
    (
        "",
        "Service",
        &["/spec/clusterIP", "/spec/clusterIPs", "/spec/healthCheckNodePort"],
    ),
    ("", "ServiceAccount", &["/secrets"]),
    (
        "batch",
        "Job",
        &["/spec/selector", "/spec/template/metadata/labels"],
    ),
];

/// Returns a live object without what a new one gets from the server.
fn without_server_fields(mut object: Value) -> Value {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let gvk = GroupVersionKind::from_api_version(text("apiVersion"), text("kind"));
    let is_headless = object.pointer("/spec/clusterIP") == Some(&json!("None"));
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|field, _| matches!(field.as_str(), "name" | "namespace" | "labels" | "annotations"));
    }
    let filled = FILLED
        .iter()
        .filter(|(group, kind, _)| *group == gvk.group && *kind == gvk.kind);
    let filled: Vec<Pointer> = filled
        .flat_map(|(.., pointers)| *pointers)
        .filter(|pointer| !(is_headless && pointer.starts_with("/spec/clusterIP")))
        .filter_map(|pointer| Pointer::parse(pointer).ok())
        .collect();
    ignore::without(&object, &filled)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::applyset::PART_OF_LABEL;

    fn object(fields: Value, entries: &[(&str, &str, Value)]) -> Value {
        let entries: Vec<Value> = entries
            .iter()
            .map(|(manager, operation, fields)| {
                json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields})
            })
            .collect();
        let mut object = fields;
        object["metadata"]["managedFields"] = json!(entries);
        object
    }

    #[test]
    fn a_manifest_has_neither_the_label_nor_what_others_own() {
        let live = object(
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "a", "namespace": "b", "uid": "u", "labels": {(PART_OF_LABEL): "x"}},
                "data": {"a": "1", "b": "2"},
            }),
            &[
                (
                    "us",
                    "Apply",
                    json!({"f:metadata": {"f:labels": {(format!("f:{PART_OF_LABEL}")): {}}}, "f:data": {"f:a": {}}}),
                ),
                ("them", "Update", json!({"f:data": {"f:b": {}}})),
            ],
        );
        let expected = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}, "data": {"a": "1"},
        });
        let found = exported(&live, "us");
        assert_eq!(
            (found.manifest, found.fields),
            (expected, ExportedFields::Applied)
        );
    }

    #[test]
    fn an_object_that_was_only_labeled_is_exported_as_it_is() {
        let labeled = json!({"f:metadata": {"f:labels": {(format!("f:{PART_OF_LABEL}")): {}}}});
        let live = object(
            json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "a", "uid": "u", "labels": {(PART_OF_LABEL): "x"}, "annotations": {"note": "1"}},
                "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "type": "ClusterIP"}, "status": {},
            }),
            &[
                ("us", "Apply", labeled.clone()),
                (
                    "them",
                    "Update",
                    json!({"f:metadata": {"f:annotations": {".": {}, "f:note": {}}}, "f:spec": {"f:clusterIP": {}, "f:type": {}}}),
                ),
            ],
        );
        let expected = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "annotations": {"note": "1"}},
            "spec": {"type": "ClusterIP"},
        });
        let found = exported(&live, "us");
        assert_eq!((found.manifest, found.fields), (expected, ExportedFields::Live));

        // One that the set has created has no fields of its own.
        let mut bare = live;
        let metadata = &mut bare["metadata"];
        metadata["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        metadata["managedFields"][0]["time"] = json!("2026-01-01T00:00:00Z");
        let expected = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}});
        let found = exported(&bare, "us");
        assert_eq!(
            (found.manifest, found.fields),
            (expected, ExportedFields::Applied)
        );
    }
}
