//! The manifest of a live member, as its set has last applied it.
//!
//! Like client-go's extract functions, it takes the fields that the field manager owns. `session/export_members` decides what
//! is exported, and how, and which objects an autoscaler scales.

use serde_json::{Value, json};

use super::changes::CrdVersion;
use super::field_paths::has_other_fields;
use super::ownership::{
    LAST_APPLIED, ReplicasPath, manifest_applied_by, manifest_applied_by_any, manifest_of_all_managers,
    manifest_owned_by, manifest_to_undo_apply, was_created_and_not_changed_by,
};
use crate::model::applyset::parent::is_applyset_key;
use crate::model::expiry::is_own_key;
use crate::model::identity::GroupVersionKind;

/// The manifest of a live object, with the source of its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
    /// The object, without the fields that the server and this program set.
    pub manifest: Value,
    /// The source of the fields.
    pub fields: ExportedFields,
}

/// The source of the fields of an exported manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportedFields {
    /// The manifest has the fields that the field manager of the set owns.
    Applied,
    /// The manifest has all fields of the live object, because the set has only labeled the object and never applied
    /// it.
    Live,
}

impl Exported {
    /// Removes the number of replicas, which an autoscaler writes. An apply of the number would take the field from the
    /// autoscaler.
    pub fn leave_out_replicas(&mut self, path: &ReplicasPath) {
        let pointer = path.pointer().to_string();
        let parent = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
        remove_fields(&mut self.manifest, parent, |field| field == path.name());
    }
}

/// Returns the manifest of an object that `manager` has applied or labeled. `desired` is the object that a run is going
/// to apply, `definition` the CRD of a custom resource.
///
/// If `manager` has only labeled the object, nothing shows which fields belong to a manifest. Then all fields are
/// exported, because a manifest with too many fields can still restore the object.
pub fn export(
    object: &Value,
    manager: &str,
    desired: Option<Value>,
    definition: Option<CrdVersion<'_>>,
) -> Exported {
    if !was_applied_beyond_label_or_created_by(object, manager) {
        return export_live(object);
    }
    let manifest = match desired {
        Some(desired) => manifest_to_undo_apply(object, manager, &desired, definition),
        None => manifest_owned_by(object, manager, definition),
    };
    Exported {
        manifest: remove_tool_metadata(manifest),
        fields: ExportedFields::Applied,
    }
}

/// Returns the manifest of an object that a run is going to delete. It is like the manifest of [`export`], but has the
/// fields of all managers, since the deletion removes them, too. `desired` is the object that the run creates in its
/// place.
pub fn export_before_deletion(
    object: &Value,
    manager: &str,
    desired: Option<Value>,
    definition: Option<CrdVersion<'_>>,
) -> Exported {
    if !was_applied_beyond_label_or_created_by(object, manager) {
        return export_live(object);
    }
    let mut fields = manifest_of_all_managers(object, definition);
    if let Some(desired) = desired {
        add_missing(
            &mut fields,
            manifest_to_undo_apply(object, manager, &desired, definition),
        );
    }
    Exported {
        manifest: add_applied_fields(fields, object, definition),
        fields: ExportedFields::Applied,
    }
}

/// Returns the manifest of an object with all of its fields.
pub fn export_live(object: &Value) -> Exported {
    Exported {
        manifest: add_applied_fields(object.clone(), object, None),
        fields: ExportedFields::Live,
    }
}

/// Returns a manifest with the chosen fields and all fields that a manager has applied. It has a field that the server
/// fills in only if a manager has applied it.
fn add_applied_fields(chosen_fields: Value, object: &Value, definition: Option<CrdVersion<'_>>) -> Value {
    let mut manifest = remove_server_fields(chosen_fields);
    let mut applied_fields = manifest_applied_by_any(object, definition);
    // When the object is created again, its owner may be another object.
    remove_fields(&mut applied_fields, "/metadata", |field| {
        field == "ownerReferences"
    });
    add_missing(&mut manifest, applied_fields);
    remove_tool_metadata(manifest)
}

/// Adds the applied fields that a manifest lacks. Lists are not merged.
fn add_missing(manifest: &mut Value, applied: Value) {
    let (Value::Object(manifest), Value::Object(applied)) = (manifest, applied) else {
        return;
    };
    for (name, value) in applied {
        match manifest.get_mut(&name) {
            Some(manifest_value) => add_missing(manifest_value, value),
            None => drop(manifest.insert(name, value)),
        }
    }
}

/// Returns whether `manager` has applied or created the object, and not only labeled it.
fn was_applied_beyond_label_or_created_by(object: &Value, manager: &str) -> bool {
    has_more_than_identity(&remove_tool_metadata(manifest_applied_by(object, manager)))
        || was_created_and_not_changed_by(&object["metadata"], manager)
}

/// Returns whether a manifest has more fields than the ones that identify its object.
fn has_more_than_identity(manifest: &Value) -> bool {
    has_other_fields(manifest, &["apiVersion", "kind", "metadata"])
        || has_other_fields(&manifest["metadata"], &["name", "namespace"])
}

/// Removes ApplySet labels and annotations, the annotation of client-side apply and the history from a manifest.
fn remove_tool_metadata(mut manifest: Value) -> Value {
    let Some(metadata) = manifest["metadata"].as_object_mut() else {
        return manifest;
    };
    for field in ["labels", "annotations"] {
        let Some(pairs) = metadata.get_mut(field).and_then(Value::as_object_mut) else {
            continue;
        };
        let had_pairs = !pairs.is_empty();
        pairs.retain(|key, _| !is_applyset_key(key) && key != LAST_APPLIED && !is_own_key(key));
        if pairs.is_empty() && had_pairs {
            metadata.remove(field);
        }
    }
    manifest
}

/// Returns a live object without the fields that the server or a controller sets in a new object. If they were sent
/// again, the server would refuse the object, or the fields would refer to objects that are gone.
fn remove_server_fields(mut object: Value) -> Value {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let gvk = GroupVersionKind::from_api_version(text("apiVersion"), text("kind"));
    let Some(fields) = object.as_object_mut() else {
        return object;
    };
    fields.remove("status");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| matches!(field.as_str(), "name" | "namespace" | "labels" | "annotations"));
    }
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Namespace") => drop(fields.remove("spec")),
        ("", "ServiceAccount") => drop(fields.remove("secrets")),
        // The account that is created again has another UID, and the controller deletes a Secret with the former one.
        ("", "Secret") if fields.get("type") == Some(&json!("kubernetes.io/service-account-token")) => {
            remove_fields(&mut object, "/metadata/annotations", |key| {
                key == "kubernetes.io/service-account.uid"
            });
            remove_fields(&mut object, "/data", |key| {
                matches!(key, "token" | "ca.crt" | "namespace")
            });
        }
        ("", "Pod") => remove_fields(&mut object, "/spec", |field| field == "nodeName"),
        ("", "Service") if object.pointer("/spec/clusterIP") != Some(&json!("None")) => {
            remove_fields(&mut object, "/spec", |field| {
                matches!(field, "clusterIP" | "clusterIPs" | "healthCheckNodePort")
            });
        }
        ("", "PersistentVolume") => {
            remove_fields(&mut object, "/spec/claimRef", |field| {
                matches!(field, "uid" | "resourceVersion")
            });
        }
        ("", "PersistentVolumeClaim") => remove_binding_chosen_by_controller(&mut object),
        ("apps", "StatefulSet") => {
            if let Some(Value::Array(templates)) = object.pointer_mut("/spec/volumeClaimTemplates") {
                for template in templates {
                    remove_fields(template, "", |field| field == "status");
                }
            }
        }
        ("batch", "Job") if object.pointer("/spec/manualSelector") != Some(&json!(true)) => {
            remove_fields(&mut object, "/spec", |field| field == "selector");
            for labels in ["/metadata/labels", "/spec/template/metadata/labels"] {
                remove_fields(&mut object, labels, |key| {
                    let name = key.trim_start_matches("batch.kubernetes.io/");
                    matches!(name, "controller-uid" | "job-name")
                });
            }
        }
        _ => {}
    }
    object
}

/// Removes the binding of a claim, and the name of its volume if a controller has chosen the volume. For a new claim
/// the controller may choose another one.
fn remove_binding_chosen_by_controller(claim: &mut Value) {
    const BY_CONTROLLER: &str = "/metadata/annotations/pv.kubernetes.io~1bound-by-controller";
    if claim.pointer(BY_CONTROLLER).is_some() {
        remove_fields(claim, "/spec", |field| field == "volumeName");
    }
    remove_fields(claim, "/metadata/annotations", |key| {
        let domain = key.split('/').next().unwrap_or_default();
        matches!(
            domain,
            "pv.kubernetes.io" | "volume.kubernetes.io" | "volume.beta.kubernetes.io"
        )
    });
}

/// Removes fields of the map to which a JSON pointer leads.
fn remove_fields(object: &mut Value, pointer: &str, is_removed: impl Fn(&str) -> bool) {
    if let Some(fields) = object.pointer_mut(pointer).and_then(Value::as_object_mut) {
        fields.retain(|field, _| !is_removed(field));
    }
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
        let exported = export(&live, "us", None, None);
        assert_eq!(
            (exported.manifest, exported.fields),
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
        let exported = export(&live, "us", None, None);
        assert_eq!(
            (exported.manifest, exported.fields),
            (expected.clone(), ExportedFields::Live)
        );

        // What someone has applied is kept, even if the server would choose it.
        let mut chosen = live.clone();
        chosen["metadata"]["finalizers"] = json!(["a.b/c"]);
        let entries = chosen["metadata"]["managedFields"]
            .as_array_mut()
            .expect("entries");
        entries[1]["manager"] = json!("kubectl-client-side-apply");
        entries[1]["fieldsV1"]["f:metadata"]["f:finalizers"] = json!({"v:\"a.b/c\"": {}});
        let mut expected_chosen = expected.clone();
        expected_chosen["metadata"]["finalizers"] = json!(["a.b/c"]);
        expected_chosen["spec"]["clusterIP"] = json!("10.0.0.1");
        assert_eq!(export(&chosen, "us", None, None).manifest, expected_chosen);

        // One that the set has created has no fields of its own.
        let mut minimal = live;
        let metadata = &mut minimal["metadata"];
        metadata["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        metadata["managedFields"][0]["time"] = json!("2026-01-01T00:00:00Z");
        let expected = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}});
        let exported = export(&minimal, "us", None, None);
        assert_eq!(
            (exported.manifest, exported.fields),
            (expected, ExportedFields::Applied)
        );
    }

    #[test]
    fn what_controllers_fill_is_left_out_and_what_people_chose_stays() {
        let export_manifest = |kind: &str, object: Value| {
            let mut object = object;
            let (api_version, kind) = kind.split_once(' ').expect("a kind");
            object["apiVersion"] = json!(api_version);
            object["kind"] = json!(kind);
            let mut manifest = export_live(&object).manifest;
            let fields = manifest.as_object_mut().expect("fields");
            fields.retain(|field, _| field != "apiVersion" && field != "kind");
            manifest
        };
        let labels = json!({"controller-uid": "u", "batch.kubernetes.io/job-name": "j", "app": "x"});
        let job = json!({"metadata": {}, "spec": {"selector": {"a": "b"}, "template": {"metadata": {"labels": labels}}}});
        let manual = json!({"metadata": {}, "spec": {"manualSelector": true, "selector": {"a": "b"}}});
        let annotations = json!({
            "pv.kubernetes.io/bound-by-controller": "yes", "volume.kubernetes.io/storage-provisioner": "p",
            "helm.sh/resource-policy": "keep",
        });
        let chosen = json!({"metadata": {}, "spec": {"volumeName": "v"}});
        let token = json!({"metadata": {}, "data": {"token": "dA=="}});
        for (kind, object, expected) in [
            (
                "batch/v1 Job",
                job,
                json!({"metadata": {}, "spec": {"template": {"metadata": {"labels": {"app": "x"}}}}}),
            ),
            ("batch/v1 Job", manual.clone(), manual),
            (
                "v1 PersistentVolumeClaim",
                json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": "v"}}),
                json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}, "spec": {}}),
            ),
            ("v1 PersistentVolumeClaim", chosen.clone(), chosen),
            (
                "v1 Secret",
                json!({
                    "metadata": {"annotations": {
                        "kubernetes.io/service-account.name": "a", "kubernetes.io/service-account.uid": "u",
                    }},
                    "type": "kubernetes.io/service-account-token",
                    "data": {"token": "dA==", "ca.crt": "Yw==", "namespace": "bg==", "more": "bQ=="},
                }),
                json!({
                    "metadata": {"annotations": {"kubernetes.io/service-account.name": "a"}},
                    "type": "kubernetes.io/service-account-token", "data": {"more": "bQ=="},
                }),
            ),
            ("v1 Secret", token.clone(), token),
            (
                "v1 Service",
                json!({"metadata": {}, "spec": {"clusterIP": "None", "clusterIPs": ["None"]}}),
                json!({"metadata": {}, "spec": {"clusterIP": "None", "clusterIPs": ["None"]}}),
            ),
        ] {
            assert_eq!(export_manifest(kind, object), expected, "{kind}");
        }
    }
}
