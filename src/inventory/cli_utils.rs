//! The inventories of cli-utils, which are kpt's: a `ResourceGroup`, or a `ConfigMap` whose
//! keys name objects in a form that others use, too (cli-utils, `pkg/object/objmetadata.go`,
//! and `pkg/inventory/policy.go` for whose an object is).

use serde::Deserialize;
use serde_json::Value;

use super::Unusable;
use crate::identity::{GroupKind, ObjectKey};

/// Label by which cli-utils knows an inventory.
const INVENTORY_LABEL: &str = "cli-utils.sigs.k8s.io/inventory-id";

/// Annotation by which an object says whose it is.
const OWNER: &str = "config.k8s.io/owning-inventory";

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

/// kpt deletes only what has the id of the inventory that it works on.
pub(super) fn tracked_elsewhere(inventory: &Value, metadata: &Value) -> Option<String> {
    let id = inventory["metadata"]["labels"][INVENTORY_LABEL].as_str()?;
    match metadata["annotations"][OWNER].as_str() {
        Some(owner) if owner == id => None,
        Some(owner) => Some(format!("it belongs to another inventory: its {OWNER} is {owner}")),
        None => Some(format!("it belongs to no inventory: it has no {OWNER}")),
    }
}

fn key(resource: Resource) -> ObjectKey {
    ObjectKey {
        group_kind: GroupKind::new(resource.group, resource.kind),
        namespace: Some(resource.namespace).filter(|namespace| !namespace.is_empty()),
        name: resource.name,
    }
}

/// `namespace_name_group_kind`, where a colon of the name is written as `__`.
pub(super) fn parse(entry: &str) -> Result<ObjectKey, Unusable> {
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
    fn objects_belong_to_the_inventory_whose_id_they_have() {
        let inventory = json!({"metadata": {"labels": {INVENTORY_LABEL: "x"}}});
        let object = |owner: &str| json!({"annotations": {OWNER: owner}});
        assert_eq!(tracked_elsewhere(&inventory, &object("x")), None);
        assert!(tracked_elsewhere(&inventory, &object("y")).is_some());
        assert!(tracked_elsewhere(&inventory, &json!({})).is_some());
        // Without an id nothing can be told.
        assert_eq!(tracked_elsewhere(&json!({}), &object("y")), None);
    }
}
