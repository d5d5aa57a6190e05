//! Flux: the status of a Kustomization or a `HelmRelease`, and the labels by which Flux knows
//! its own objects (kustomize-controller, `deleteObjects`; helm-controller,
//! `internal/postrender/common_renderer.go`).

use serde_json::Value;

use super::{Found, Unusable, cli_utils};
use crate::identity::ObjectKey;

/// Reads `status.inventory.entries`, which name objects as cli-utils does.
pub(super) fn read(object: &Value) -> Result<Vec<ObjectKey>, Unusable> {
    if !object["spec"]["kubeConfig"].is_null() {
        return Err(Unusable::InAnotherCluster("its spec.kubeConfig".to_owned()));
    }
    let entries = object.pointer("/status/inventory/entries");
    let entries = entries
        .and_then(Value::as_array)
        .ok_or_else(|| Unusable::new("it has no inventory in its status; has it been reconciled?"))?;
    entries
        .iter()
        .map(|entry| cli_utils::parse(entry["id"].as_str().unwrap_or_default()))
        .collect()
}

/// A Kustomization deletes only what has its labels. A `HelmRelease` is deleted by Helm, which
/// knows nothing of them, so that only the labels of another one tell.
pub(super) fn tracked_elsewhere(found: &Found, metadata: &Value) -> Option<String> {
    let Found {
        name,
        namespace,
        kind,
        ..
    } = found;
    let label = |key: &str| metadata["labels"][format!("{}/{key}", kind.group)].as_str();
    match (label("name"), label("namespace")) {
        (Some(owner), Some(place)) if owner == name && place == namespace => None,
        (None, None) if kind.kind != "Kustomization" => None,
        (None, None) => Some(format!(
            "Flux does not know it for its own: it has no label {}/name",
            kind.group
        )),
        (owner, place) => Some(format!(
            "it belongs to another {} of Flux: {}/{}",
            kind.kind,
            place.unwrap_or_default(),
            owner.unwrap_or_default()
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::identity::GroupKind;

    #[test]
    fn the_status_is_read() {
        let status = json!({"inventory": {"entries": [
            {"id": "shop_web_apps_Deployment", "v": "v1"}, {"id": "_shop__Namespace", "v": "v1"},
        ]}});
        let names = |object: &Value| -> Vec<String> {
            let keys = read(object).expect("an inventory");
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
            assert!(read(&status).is_err(), "{status}");
        }
        let remote = json!({"spec": {"kubeConfig": {"secretRef": {"name": "prod"}}}, "status": status});
        assert!(matches!(read(&remote), Err(Unusable::InAnotherCluster(_))));
    }

    #[test]
    fn objects_are_known_by_their_labels() {
        let table = [
            (Some("apps"), Some("flux-system"), [true, true]),
            (Some("other"), Some("flux-system"), [false, false]),
            (Some("apps"), Some("team"), [false, false]),
            (Some("apps"), None, [false, false]),
            (None, None, [false, true]),
        ];
        for (name, namespace, expected) in table {
            let kinds = [
                GroupKind::new("kustomize.toolkit.fluxcd.io", "Kustomization"),
                GroupKind::new("helm.toolkit.fluxcd.io", "HelmRelease"),
            ];
            let found = kinds.map(|kind| {
                let labels = json!({
                    (format!("{}/name", kind.group)): name,
                    (format!("{}/namespace", kind.group)): namespace,
                });
                let found = Found {
                    name: "apps".to_owned(),
                    namespace: "flux-system".to_owned(),
                    kind,
                    objects: Vec::new(),
                };
                tracked_elsewhere(&found, &json!({"labels": labels})).is_none()
            });
            assert_eq!(found, expected, "{name:?} {namespace:?}");
        }
    }
}
