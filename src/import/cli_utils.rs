//! The inventories of cli-utils, which are kpt's: a `ResourceGroup`, or a `ConfigMap` whose
//! keys name objects in a form that others use, too (cli-utils, `pkg/object/objmetadata.go`,
//! and `pkg/inventory/policy.go` for whose an object is).

use serde::Deserialize;
use serde_json::Value;

use super::{Found, Mark, Unusable};
use crate::model::identity::{GroupKind, ObjectKey};

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
    if id(object).is_none() {
        return Err(Unusable::new(format!(
            "it has no label {INVENTORY_LABEL}, so it is not an inventory"
        )));
    }
    if let Some(spec) = object.get("spec") {
        let resources = spec.get("resources").unwrap_or(&Value::Null);
        let resources = Option::<Vec<Resource>>::deserialize(resources)
            .map_err(|error| Unusable::new(format!("its ResourceGroup cannot be read: {error}")))?;
        return Ok(resources.unwrap_or_default().into_iter().map(key).collect());
    }
    let data = object["data"].as_object();
    data.into_iter()
        .flatten()
        .map(|(entry, _)| parse(entry))
        .collect()
}

/// kpt deletes only what has the id of the inventory that it works on.
pub(super) fn mark(found: &Found, metadata: &Value) -> Mark {
    match metadata["annotations"][OWNER].as_str() {
        Some(owner) if found.objects.first().and_then(id) == Some(owner) => Mark::Own,
        Some(owner) => Mark::Other(format!("it belongs to another inventory: its {OWNER} is {owner}")),
        None => Mark::Missing(format!("it belongs to no inventory: it has no {OWNER}")),
    }
}

/// An empty id would be that of every object without one.
fn id(inventory: &Value) -> Option<&str> {
    let id = inventory["metadata"]["labels"][INVENTORY_LABEL].as_str();
    id.filter(|id| !id.is_empty())
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
        let of = |spec: Value| {
            let labels = json!({INVENTORY_LABEL: "x"});
            read_inventory(&json!({"metadata": {"labels": labels}, "spec": spec}))
        };
        assert_eq!(names(of(json!({}))), Vec::<String>::new());
        assert!(of(json!({"resources": [{"kind": 1}]})).is_err());
        for labels in [json!({}), json!({INVENTORY_LABEL: ""})] {
            let mut object = object.clone();
            object["metadata"]["labels"] = labels;
            assert!(read_inventory(&object).is_err(), "{object}");
        }
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
        let inventory = |labels: Value| Found {
            name: "inventory".to_owned(),
            namespace: "shop".to_owned(),
            kind: GroupKind::new("kpt.dev", "ResourceGroup"),
            objects: vec![json!({"metadata": {"labels": labels}})],
        };
        let own = inventory(json!({INVENTORY_LABEL: "x"}));
        let object = |owner: &str| json!({"annotations": {OWNER: owner}});
        assert_eq!(mark(&own, &object("x")), Mark::Own);
        assert!(matches!(mark(&own, &object("y")), Mark::Other(_)));
        assert!(matches!(mark(&own, &json!({})), Mark::Missing(_)));
        // An inventory without an id has no objects.
        for labels in [json!({}), json!({INVENTORY_LABEL: ""})] {
            let nobody = inventory(labels);
            for owner in ["x", ""] {
                assert!(matches!(mark(&nobody, &object(owner)), Mark::Other(_)));
            }
        }
    }
}
