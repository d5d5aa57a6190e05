//! kpt, and other tools that use cli-utils: a `ResourceGroup` or a `ConfigMap` lists the objects, and
//! an annotation on each object names its inventory (cli-utils, `pkg/inventory/policy.go`).

use serde::Deserialize;
use serde_json::Value;

use super::{FoundInventory, InventoryError, Mark, object_key};
use crate::model::identity::ObjectKey;

/// Label with the id of an inventory, on the object that holds the inventory.
const INVENTORY_LABEL: &str = "cli-utils.sigs.k8s.io/inventory-id";

/// Annotation on an object with the id of its inventory.
const OWNER: &str = "config.k8s.io/owning-inventory";

/// The default of `kpt live apply --field-manager`, under which kpt also patches in client-side apply (cli-utils,
/// `pkg/common/common.go` and `pkg/apply/task/apply_task.go`).
pub(super) const FIELD_MANAGERS: [&str; 1] = ["kubectl"];

#[derive(Deserialize)]
struct ResourceGroupEntry {
    #[serde(default)]
    group: String,
    kind: String,
    #[serde(default)]
    namespace: String,
    name: String,
}

/// Reads a `ResourceGroup` (`spec.resources`) or a `ConfigMap` (keys of `data`).
pub(super) fn read_objects(inventory_object: &Value) -> Result<Vec<ObjectKey>, InventoryError> {
    if inventory_id(inventory_object).is_none() {
        return Err(InventoryError::new(format!(
            "it has no label {INVENTORY_LABEL}, so it is not an inventory"
        )));
    }
    if let Some(spec) = inventory_object.get("spec") {
        let resources = spec.get("resources").unwrap_or(&Value::Null);
        let resources = Option::<Vec<ResourceGroupEntry>>::deserialize(resources)
            .map_err(|error| InventoryError::new(format!("its ResourceGroup cannot be read: {error}")))?;
        return Ok(resources
            .unwrap_or_default()
            .into_iter()
            .map(ObjectKey::from)
            .collect());
    }
    let data = inventory_object["data"].as_object();
    data.into_iter()
        .flatten()
        .map(|(entry, _)| parse_object_id(entry))
        .collect()
}

/// Reads the id of an object in an inventory of kpt or Flux, as cli-utils writes it (`pkg/object/objmetadata.go`):
/// `namespace_name_group_kind`, where a colon of the name is written as `__`.
pub(super) fn parse_object_id(entry: &str) -> Result<ObjectKey, InventoryError> {
    let invalid = || InventoryError::new(format!("its entry {entry:?} is not an object"));
    let (namespace, rest) = entry.split_once('_').ok_or_else(invalid)?;
    let (rest, kind) = rest.rsplit_once('_').ok_or_else(invalid)?;
    let (name, group) = rest.rsplit_once('_').ok_or_else(invalid)?;
    let name = name.replace("__", ":");
    if name.is_empty() || kind.is_empty() || name.contains('_') {
        return Err(invalid());
    }
    Ok(object_key(group, kind, namespace, name))
}

/// Compares the inventory id in the annotation of an object with the id of this inventory. kpt itself deletes only
/// objects on which both are equal.
pub(super) fn compare_mark(found: &FoundInventory, metadata: &Value) -> Mark {
    match metadata["annotations"][OWNER].as_str() {
        Some(owner) if inventory_id(&found.object) == Some(owner) => Mark::Own,
        Some(owner) => Mark::Other(format!("it belongs to another inventory: its {OWNER} is {owner}")),
        None => Mark::Missing(format!("it does not belong to an inventory: it has no {OWNER}")),
    }
}

/// Returns the id of the inventory. An empty id counts as none, because it identifies nothing.
fn inventory_id(inventory: &Value) -> Option<&str> {
    let id = inventory["metadata"]["labels"][INVENTORY_LABEL].as_str();
    id.filter(|id| !id.is_empty())
}

impl From<ResourceGroupEntry> for ObjectKey {
    fn from(resource: ResourceGroupEntry) -> Self {
        object_key(resource.group, resource.kind, &resource.namespace, resource.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::identity::GroupKind;

    fn names(keys: Result<Vec<ObjectKey>, InventoryError>) -> Vec<String> {
        keys.expect("an inventory")
            .iter()
            .map(ToString::to_string)
            .collect()
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
            names(read_objects(&object)),
            ["deployment.apps/web in namespace shop", "namespace/shop"]
        );
        let of = |spec: Value| {
            let labels = json!({INVENTORY_LABEL: "x"});
            read_objects(&json!({"metadata": {"labels": labels}, "spec": spec}))
        };
        assert_eq!(names(of(json!({}))), Vec::<String>::new());
        assert!(of(json!({"resources": [{"kind": 1}]})).is_err());
        for labels in [json!({}), json!({INVENTORY_LABEL: ""})] {
            let mut object = object.clone();
            object["metadata"]["labels"] = labels;
            assert!(read_objects(&object).is_err(), "{object}");
        }
    }

    #[test]
    fn config_maps_are_read_where_they_are_inventories() {
        let object = json!({
            "metadata": {"labels": {INVENTORY_LABEL: "x"}},
            "data": {"shop_one__ConfigMap": "", "_shop__Namespace": "{\"strategy\":\"Apply\"}"},
        });
        assert_eq!(
            names(read_objects(&object)),
            ["namespace/shop", "configmap/one in namespace shop"]
        );
        assert!(read_objects(&json!({"metadata": {}, "data": {"shop_one__ConfigMap": ""}})).is_err());
    }

    #[test]
    fn objects_belong_to_the_inventory_whose_id_they_have() {
        let inventory = |labels: Value| FoundInventory {
            name: "inventory".to_owned(),
            namespace: "shop".to_owned(),
            kind: GroupKind::new("kpt.dev", "ResourceGroup"),
            object: json!({"metadata": {"labels": labels}}),
        };
        let own = inventory(json!({INVENTORY_LABEL: "x"}));
        let object = |owner: &str| json!({"annotations": {OWNER: owner}});
        assert_eq!(compare_mark(&own, &object("x")), Mark::Own);
        assert!(matches!(compare_mark(&own, &object("y")), Mark::Other(_)));
        assert!(matches!(compare_mark(&own, &json!({})), Mark::Missing(_)));
        // An inventory without an id has no objects.
        for labels in [json!({}), json!({INVENTORY_LABEL: ""})] {
            let without_id = inventory(labels);
            for owner in ["x", ""] {
                let mark = compare_mark(&without_id, &object(owner));
                assert!(matches!(mark, Mark::Other(_)));
            }
        }
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
            let read = parse_object_id(entry).ok().map(|key| key.to_string());
            assert_eq!(read.as_deref(), expected, "{entry}");
        }
    }
}
