//! The inventories of cli-utils: kpt's `ResourceGroup` and `ConfigMap`, and the status of
//! Flux' Kustomizations and `HelmRelease`s, which name objects in the same way
//! (cli-utils, `pkg/object/objmetadata.go`).

use serde::Deserialize;
use serde_json::Value;

use super::Unusable;
use crate::identity::{GroupKind, ObjectKey};

/// Label by which cli-utils knows an inventory.
const INVENTORY_LABEL: &str = "cli-utils.sigs.k8s.io/inventory-id";

#[derive(Deserialize)]
struct Resource {
    #[serde(default)]
    group: String,
    kind: String,
    #[serde(default)]
    namespace: String,
    name: String,
}

/// Reads a `ResourceGroup` (`spec.resources`) or a `ConfigMap` (keys of `data`).
pub(super) fn read_inventory(object: &Value) -> Result<Vec<ObjectKey>, Unusable> {
    if let Some(spec) = object.get("spec") {
        let resources = spec.get("resources").unwrap_or(&Value::Null);
        let resources = Option::<Vec<Resource>>::deserialize(resources)
            .map_err(|error| Unusable::new(format!("its ResourceGroup cannot be read: {error}")))?;
        return Ok(resources.unwrap_or_default().into_iter().map(key).collect());
    }
    if object["metadata"]["labels"].get(INVENTORY_LABEL).is_none() {
        return Err(Unusable::new(format!(
            "it has no label {INVENTORY_LABEL}, so it is no inventory"
        )));
    }
    let data = object["data"].as_object();
    data.into_iter()
        .flatten()
        .map(|(entry, _)| parse(entry))
        .collect()
}

/// Reads `status.inventory.entries` of Flux.
pub(super) fn read_status(object: &Value) -> Result<Vec<ObjectKey>, Unusable> {
    let entries = object.pointer("/status/inventory/entries");
    let entries = entries
        .and_then(Value::as_array)
        .ok_or_else(|| Unusable::new("it has no inventory in its status; has it been reconciled?"))?;
    entries
        .iter()
        .map(|entry| parse(entry["id"].as_str().unwrap_or_default()))
        .collect()
}

fn key(resource: Resource) -> ObjectKey {
    ObjectKey {
        group_kind: GroupKind::new(resource.group, resource.kind),
        namespace: Some(resource.namespace).filter(|namespace| !namespace.is_empty()),
        name: resource.name,
    }
}

/// `namespace_name_group_kind`, where a colon of the name is written as `__`.
fn parse(entry: &str) -> Result<ObjectKey, Unusable> {
    let invalid = || Unusable::new(format!("its entry {entry:?} names no object"));
    let (namespace, rest) = entry.split_once('_').ok_or_else(invalid)?;
    let (rest, kind) = rest.rsplit_once('_').ok_or_else(invalid)?;
    let (name, group) = rest.rsplit_once('_').ok_or_else(invalid)?;
    let name = name.replace("__", ":");
    if name.is_empty() || kind.is_empty() || name.contains('_') {
        return Err(invalid());
    }
    Ok(key(Resource {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(keys: Result<Vec<ObjectKey>, Unusable>) -> Vec<String> {
        keys.expect("an inventory")
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn entries_name_objects() {
        let table = [
            (
                "shop_web_apps_Deployment",
                Some("deployment.apps/web in namespace shop"),
            ),
            ("shop_one__ConfigMap", Some("configmap/one in namespace shop")),
            ("_shop__Namespace", Some("namespace/shop")),
            (
                "_system__node_rbac.authorization.k8s.io_ClusterRole",
                Some("clusterrole.rbac.authorization.k8s.io/system:node"),
            ),
            ("", None),
            ("a_b_c", None),
            ("shop___ConfigMap", None),
            ("a_b_c_d_e", None),
        ];
        for (entry, expected) in table {
            let read = parse(entry).ok().map(|key| key.to_string());
            assert_eq!(read.as_deref(), expected, "{entry}");
        }
    }

    #[test]
    fn resource_groups_are_read() {
        let object = json!({
            "apiVersion": "kpt.dev/v1alpha1", "kind": "ResourceGroup",
            "metadata": {"name": "inventory-1", "labels": {INVENTORY_LABEL: "x"}},
            "spec": {"resources": [
                {"group": "apps", "kind": "Deployment", "name": "web", "namespace": "shop"},
                {"group": "", "kind": "Namespace", "name": "shop"},
            ]},
        });
        assert_eq!(
            names(read_inventory(&object)),
            ["deployment.apps/web in namespace shop", "namespace/shop"]
        );
        assert_eq!(names(read_inventory(&json!({"spec": {}}))), Vec::<String>::new());
        assert!(read_inventory(&json!({"spec": {"resources": [{"kind": 1}]}})).is_err());
    }

    #[test]
    fn config_maps_are_read_where_they_are_inventories() {
        let object = json!({
            "metadata": {"labels": {INVENTORY_LABEL: "x"}},
            "data": {"shop_one__ConfigMap": "", "_shop__Namespace": "{\"strategy\":\"Apply\"}"},
        });
        assert_eq!(
            names(read_inventory(&object)),
            ["namespace/shop", "configmap/one in namespace shop"]
        );
        assert!(read_inventory(&json!({"metadata": {}, "data": {"shop_one__ConfigMap": ""}})).is_err());
    }

    #[test]
    fn the_status_of_flux_is_read() {
        let object = json!({"status": {"inventory": {"entries": [
            {"id": "shop_web_apps_Deployment", "v": "v1"}, {"id": "_shop__Namespace", "v": "v1"},
        ]}}});
        assert_eq!(
            names(read_status(&object)),
            ["deployment.apps/web in namespace shop", "namespace/shop"]
        );
        for status in [
            json!({}),
            json!({"status": {"inventory": {"entries": [{"id": "x"}]}}}),
        ] {
            assert!(read_status(&status).is_err(), "{status}");
        }
    }
}
