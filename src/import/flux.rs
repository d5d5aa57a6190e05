//! Flux: the status of a Kustomization or a `HelmRelease` lists the objects, and labels on each
//! object name its owner (kustomize-controller, `deleteObjects`; helm-controller,
//! `internal/postrender/common_renderer.go`).

use serde_json::Value;

use super::{FoundInventory, InventoryError, Mark, kpt};
use crate::model::identity::{GroupKind, ObjectKey};

/// Returns the field managers of the controller that reconciles this kind (`controllerName` in `main.go` of
/// kustomize-controller and helm-controller). helm-controller takes over releases that Helm has installed, so objects
/// of a `HelmRelease` may also have Helm's field manager.
pub(super) fn field_managers(kind: &GroupKind) -> &'static [&'static str] {
    match kind.kind.as_str() {
        "HelmRelease" => &["helm-controller", "helm"],
        _ => &["kustomize-controller"],
    }
}

/// Reads `status.inventory.entries`, in which objects have the ids of cli-utils.
pub(super) fn read_objects(inventory_object: &Value) -> Result<Vec<ObjectKey>, InventoryError> {
    // With a kubeconfig of its own, the object is applied to the cluster of that kubeconfig.
    if !inventory_object["spec"]["kubeConfig"].is_null() {
        return Err(InventoryError::InAnotherCluster("its spec.kubeConfig".to_owned()));
    }
    let entries = inventory_object
        .pointer("/status/inventory/entries")
        .and_then(Value::as_array)
        .ok_or_else(|| {
            InventoryError::new("no inventory in its status: it may not have been reconciled yet")
        })?;
    entries
        .iter()
        .map(|entry| kpt::parse_object_id(entry["id"].as_str().unwrap_or_default()))
        .collect()
}

/// Compares the labels of an object with this Kustomization or `HelmRelease`. Flux labels every object that it applies
/// for either of them.
pub(super) fn compare_mark(found: &FoundInventory, metadata: &Value) -> Mark {
    let FoundInventory {
        name,
        namespace,
        kind,
        ..
    } = found;
    let label = |key: &str| metadata["labels"][format!("{}/{key}", kind.group)].as_str();
    match (label("name"), label("namespace")) {
        (Some(owner), Some(owner_namespace)) if owner == name && owner_namespace == namespace => Mark::Own,
        (None, None) => Mark::Missing(format!(
            "Flux does not manage it: it has no label {}/name",
            kind.group
        )),
        (owner, owner_namespace) => Mark::Other(format!(
            "it belongs to another {} of Flux: {}/{}",
            kind.kind,
            owner_namespace.unwrap_or_default(),
            owner.unwrap_or_default()
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_status_is_read() {
        let status = json!({"inventory": {"entries": [
            {"id": "shop_web_apps_Deployment", "v": "v1"}, {"id": "_shop__Namespace", "v": "v1"},
        ]}});
        let names = |object: &Value| -> Vec<String> {
            let keys = read_objects(object).expect("an inventory");
            keys.iter().map(ToString::to_string).collect()
        };
        for spec in [json!({}), json!({"kubeConfig": null})] {
            assert_eq!(
                names(&json!({"spec": spec, "status": status})),
                ["deployment.apps/web in namespace shop", "namespace/shop"]
            );
        }
        for status in [
            json!({}),
            json!({"status": {"inventory": {"entries": [{"id": "x"}]}}}),
        ] {
            assert!(read_objects(&status).is_err(), "{status}");
        }
        let remote = json!({"spec": {"kubeConfig": {"secretRef": {"name": "prod"}}}, "status": status});
        assert!(matches!(
            read_objects(&remote),
            Err(InventoryError::InAnotherCluster(_))
        ));
    }

    #[test]
    fn objects_are_known_by_their_labels() {
        let table = [
            (Some("apps"), Some("flux-system"), "own"),
            (Some("other"), Some("flux-system"), "other"),
            (Some("apps"), Some("team"), "other"),
            (Some("apps"), None, "other"),
            (None, Some("flux-system"), "other"),
            (None, None, "missing"),
        ];
        let kinds = [
            GroupKind::new("kustomize.toolkit.fluxcd.io", "Kustomization"),
            GroupKind::new("helm.toolkit.fluxcd.io", "HelmRelease"),
        ];
        for kind in kinds {
            let found = FoundInventory {
                name: "apps".to_owned(),
                namespace: "flux-system".to_owned(),
                kind,
                object: Value::Null,
            };
            let group = &found.kind.group;
            for (name, namespace, expected) in table {
                let labels = json!({
                    (format!("{group}/name")): name,
                    (format!("{group}/namespace")): namespace,
                });
                let mark = match compare_mark(&found, &json!({"labels": labels})) {
                    Mark::Own => "own",
                    Mark::Missing(_) => "missing",
                    Mark::Other(_) => "other",
                };
                assert_eq!(mark, expected, "{group} {name:?} {namespace:?}");
            }
            // The labels of the other controller do not count.
            let others = json!({"labels": {
                "kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "other",
                "helm.toolkit.fluxcd.io/name": "apps", "helm.toolkit.fluxcd.io/namespace": "other",
            }});
            assert!(matches!(compare_mark(&found, &others), Mark::Other(_)));
        }
    }
}
