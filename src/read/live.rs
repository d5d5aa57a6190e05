//! Reduces objects of the server to the fields that decisions need.
//!
//! Each page of a LIST is dropped once its objects are reduced, so memory grows with the number of members and not with
//! their size.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize as _;
use serde_json::Value;

use crate::compare::ownership;
use crate::model::applyset::{ID_LABEL, PART_OF_LABEL};
use crate::model::deletion_obstacles::list_deletion_obstacles;
use crate::model::depends_on::Dependencies;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::{Live, OwnerReference, Presence, Tracking};
use crate::model::resource::Resource;
use crate::model::user_annotations::{PruneOrder, keep_annotation};

impl Live {
    /// Reduces an object that a GET returned, or an item of a LIST.
    ///
    /// Returns `None` if the object lacks a name, UID or resourceVersion, or if its owner references cannot be read.
    /// Such an answer is invalid, so `list` and `objects` return an error for it.
    pub fn from_object(object: &Value, resource: &Arc<Resource>) -> Option<Self> {
        let metadata = object.get("metadata")?;
        let text = |field: &str| metadata.get(field).and_then(Value::as_str).map(str::to_owned);
        let label = |key: &str| metadata.get("labels")?.get(key)?.as_str().map(str::to_owned);
        Some(Self {
            key: ObjectKey {
                group_kind: resource.group_kind(),
                namespace: text("namespace"),
                name: text("name")?,
            },
            resource: Arc::clone(resource),
            uid: text("uid")?,
            resource_version: text("resourceVersion")?,
            presence: read_presence(metadata),
            waits_for: list_deletion_obstacles(object),
            part_of: label(PART_OF_LABEL),
            parent_of: label(ID_LABEL),
            part_of_writers: find_part_of_writers(metadata),
            tracking: read_field_tracking(metadata, resource),
            defines: read_defined_kind(object),
            deletes_claims: deletes_persistent_volume_claims(object),
            client_side_apply: ownership::has_fields_of_client_side_apply(metadata),
            owners: read_owners(metadata).ok()?,
            keep_annotation: keep_annotation(
                &read_string_map(metadata, "labels"),
                &read_string_map(metadata, "annotations"),
            ),
            prune_order: PruneOrder::from_annotations(&read_string_map(metadata, "annotations")),
            dependencies: Dependencies::from_annotations(&read_string_map(metadata, "annotations")),
        })
    }
}

/// Reads the owner references of an object; none if the field is null.
pub(super) fn read_owners(metadata: &Value) -> serde_json::Result<Vec<OwnerReference>> {
    let owners = metadata
        .get("ownerReferences")
        .map(Option::<Vec<OwnerReference>>::deserialize);
    Ok(owners.transpose()?.flatten().unwrap_or_default())
}

fn read_presence(metadata: &Value) -> Presence {
    match metadata.get("deletionTimestamp") {
        None | Some(Value::Null) => Presence::Present,
        Some(_) => Presence::Terminating,
    }
}

/// Returns whether deleting the object, a `StatefulSet`, also deletes its `PersistentVolumeClaim`s.
fn deletes_persistent_volume_claims(object: &Value) -> bool {
    object["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Delete"
}

/// Reads the kind that the object defines; `None` if it lacks the fields of a CRD. Objects of other kinds may have
/// these fields, too, such as a `CompositeResourceDefinition` of Crossplane.
fn read_defined_kind(object: &Value) -> Option<GroupKind> {
    object["spec"]["scope"].as_str()?;
    GroupKind::defined_by_crd(object)
}

fn read_string_map<'o>(metadata: &'o Value, field: &str) -> BTreeMap<&'o str, &'o str> {
    let pairs = metadata.get(field).and_then(Value::as_object);
    let texts = pairs.into_iter().flatten();
    texts
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect()
}

/// Reads whether the server tracks the owners of the object's fields.
fn read_field_tracking(metadata: &Value, resource: &Resource) -> Tracking {
    let entries = metadata.get("managedFields").and_then(Value::as_array);
    if entries.is_none_or(Vec::is_empty) {
        Tracking::Off
    } else if ownership::may_have_unusable_version(metadata, resource) {
        Tracking::OnInOtherVersions
    } else {
        Tracking::On
    }
}

/// Returns the field managers that own the part-of label.
fn find_part_of_writers(metadata: &Value) -> Vec<String> {
    let path = format!("f:{PART_OF_LABEL}");
    let entries = metadata["managedFields"].as_array().into_iter().flatten();
    let mut writers: Vec<String> = entries
        .filter(|entry| entry["fieldsV1"]["f:metadata"]["f:labels"].get(&path).is_some())
        .filter_map(|entry| entry["manager"].as_str().map(str::to_owned))
        .collect();
    // Most objects have one writer, and a set may have very many objects: the spare capacity would add up.
    writers.shrink_to_fit();
    writers
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::resource::Scope;

    fn config_maps() -> Arc<Resource> {
        Arc::new(Resource::with_regular_names(
            "",
            "v1",
            "ConfigMap",
            Scope::Namespaced,
        ))
    }

    #[test]
    fn a_label_that_a_manager_owns_and_the_object_lacks_was_removed_on_the_way() {
        let owner = |manager: &str, label: &str| {
            json!([{"manager": manager, "operation": "Apply",
                "fieldsV1": {"f:metadata": {"f:labels": {(format!("f:{label}")): {}}}}}])
        };
        for (labels, managed_fields, expected) in [
            (json!({"app": "x"}), owner("ours", PART_OF_LABEL), true),
            (json!({}), owner("theirs", PART_OF_LABEL), true),
            (json!({PART_OF_LABEL: "any"}), owner("ours", PART_OF_LABEL), false),
            // Taken off, or released: no one owns it.
            (json!({}), owner("ours", "app"), false),
            (json!({}), json!(null), false),
        ] {
            let object = json!({"metadata": {
                "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7",
                "labels": labels, "managedFields": managed_fields,
            }});
            let live = Live::from_object(&object, &config_maps()).expect("a whole object");
            assert_eq!(live.has_lost_part_of_label(), expected, "{object}");
        }
    }

    #[test]
    fn an_object_is_reduced_to_what_decisions_need() {
        let object = json!({"metadata": {
            "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7",
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "labels": {PART_OF_LABEL: "set", ID_LABEL: "own"},
            "annotations": {"helm.sh/resource-policy": "keep"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": "s", "uid": "w", "controller": true}],
            "managedFields": [
                {"manager": "writer", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": {(format!("f:{PART_OF_LABEL}")): {}}}}},
                {"manager": "bystander", "operation": "Update", "fieldsV1": {"f:data": {}}},
            ],
        }});
        let live = Live::from_object(&object, &config_maps()).expect("a whole object");
        assert_eq!(live.presence, Presence::Terminating);
        assert_eq!(live.part_of.as_deref(), Some("set"));
        assert_eq!(live.parent_of.as_deref(), Some("own"));
        assert_eq!(live.part_of_writers, ["writer"]);
        assert_eq!(live.owners[0].name, "s");
        assert_eq!(
            live.keep_annotation.as_deref(),
            Some("helm.sh/resource-policy: keep")
        );
    }

    #[test]
    fn owner_references_are_read_as_a_whole_or_not_at_all() {
        let owner = json!({"apiVersion": "v1", "kind": "Service", "name": "s", "uid": "w"});
        let table = [
            (json!({}), Some(0)),
            (json!({"ownerReferences": null}), Some(0)),
            (json!({"ownerReferences": []}), Some(0)),
            (json!({"ownerReferences": [owner]}), Some(1)),
            (json!({"ownerReferences": {}}), None),
            (json!({"ownerReferences": [owner, null]}), None),
            (json!({"ownerReferences": [owner, {"name": "s"}]}), None),
        ];
        for (mut metadata, expected) in table {
            for field in ["name", "uid", "resourceVersion"] {
                metadata[field] = json!("a");
            }
            assert_eq!(
                read_owners(&metadata).ok().map(|owners| owners.len()),
                expected,
                "{metadata}"
            );
            let live = Live::from_object(&json!({"metadata": metadata}), &config_maps());
            assert_eq!(live.map(|live| live.owners.len()), expected, "{metadata}");
        }
    }

    #[test]
    fn an_object_without_identity_is_none() {
        for object in [json!({}), json!({"metadata": {"name": "a"}}), json!([])] {
            assert_eq!(Live::from_object(&object, &config_maps()), None);
        }
    }
}
