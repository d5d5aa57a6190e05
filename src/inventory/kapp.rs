//! kapp's apps: a `ConfigMap` that tells by which label, and of which kinds, the objects of
//! the app are found (kapp, `pkg/kapp/app/recorded_app.go` and `meta.go`), and the annotation
//! that tells what kapp applied from copies (`pkg/kapp/resources/identity_annotation.go`).

use serde::Deserialize;
use serde_json::Value;

use super::{Inventory, Place, Unusable};
use crate::identity::{GroupKind, ObjectKey};

/// What the name of an app's `ConfigMap` ends in since kapp 0.47.
const SUFFIX: &str = ".apps.k14s.io";

/// `v1;NAMESPACE/GROUP/KIND/NAME;APIVERSION` of the object that kapp has applied.
const IDENTITY: &str = "kapp.k14s.io/identity";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    label_key: String,
    label_value: String,
    #[serde(default, rename = "usedGKs")]
    used_kinds: Option<Vec<UsedKind>>,
}

/// Go's `schema.GroupKind`, which has no names of its own for JSON.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UsedKind {
    group: String,
    kind: String,
}

pub(super) fn places(app: &str) -> Vec<Place> {
    [format!("{app}{SUFFIX}"), app.to_owned()]
        .map(|name| Place::Object(GroupKind::new("", "ConfigMap"), name))
        .to_vec()
}

pub(super) fn read(config_map: &Value) -> Result<Inventory, Unusable> {
    let spec = config_map["data"]["spec"].as_str();
    let spec = spec.ok_or_else(|| Unusable::new("its ConfigMap is not that of a kapp app"))?;
    let meta: Meta = serde_json::from_str(spec)
        .map_err(|error| Unusable::new(format!("its ConfigMap cannot be read: {error}")))?;
    if meta.label_key.is_empty() || meta.label_value.is_empty() {
        return Err(Unusable::new("its ConfigMap names no label"));
    }
    let kinds = meta.used_kinds.map(|kinds| {
        let kinds = kinds.into_iter();
        kinds
            .map(|UsedKind { group, kind }| GroupKind::new(group, kind))
            .collect()
    });
    Ok(Inventory::Labelled {
        selector: format!("{}={}", meta.label_key, meta.label_value),
        kinds,
    })
}

/// What has the app's label and no identity of its own is a copy that some controller made,
/// and kapp leaves it to that controller.
pub(super) fn tracked_elsewhere(key: &ObjectKey, metadata: &Value) -> Option<String> {
    let identity = metadata["annotations"][IDENTITY].as_str().unwrap_or_default();
    let parts: Vec<&str> = identity.split(';').collect();
    let own = format!(
        "{}/{}/{}/{}",
        key.namespace.as_deref().unwrap_or_default(),
        key.group_kind.group,
        key.group_kind.kind,
        key.name
    );
    match parts[..] {
        ["v1", found, _] if found == own => None,
        ["v1", found, _] => Some(format!(
            "kapp did not apply it: its {IDENTITY} is that of {found}"
        )),
        _ => Some(format!("kapp did not apply it: it has no {IDENTITY}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn app(spec: &str) -> Value {
        json!({"metadata": {"name": "web", "labels": {"kapp.k14s.io/is-app": ""}}, "data": {"spec": spec}})
    }

    #[test]
    fn the_label_and_the_kinds_are_read() {
        let spec = r#"{"labelKey":"kapp.k14s.io/app","labelValue":"1657185600","lastChangeName":"web-change-x","lastChange":{"startedAt":"2024-07-07T09:20:00Z","finishedAt":"2024-07-07T09:20:01Z","successful":true,"description":"update: Op: 1 create","namespaces":["shop"]},"usedGKs":[{"Group":"","Kind":"ConfigMap"},{"Group":"apps","Kind":"Deployment"}]}"#;
        let inventory = Inventory::Labelled {
            selector: "kapp.k14s.io/app=1657185600".to_owned(),
            kinds: Some(vec![
                GroupKind::new("", "ConfigMap"),
                GroupKind::new("apps", "Deployment"),
            ]),
        };
        assert_eq!(read(&app(spec)), Ok(inventory));
    }

    #[test]
    fn old_apps_name_no_kinds() {
        let spec = r#"{"labelKey":"kapp.k14s.io/app","labelValue":"1","usedGVs":[]}"#;
        assert!(matches!(
            read(&app(spec)),
            Ok(Inventory::Labelled { kinds: None, .. })
        ));
    }

    #[test]
    fn objects_without_an_identity_of_their_own_are_copies() {
        let key = |namespace: Option<&str>| ObjectKey {
            group_kind: GroupKind::new("apps", "Deployment"),
            namespace: namespace.map(str::to_owned),
            name: "web".to_owned(),
        };
        for (namespace, identity, is_own) in [
            (Some("shop"), "v1;shop/apps/Deployment/web;apps/v1", true),
            (Some("shop"), "v1;shop/apps/Deployment/web;apps/v1beta1", true),
            (None, "v1;/apps/Deployment/web;apps/v1", true),
            (Some("shop"), "v1;other/apps/Deployment/web;apps/v1", false),
            (Some("shop"), "v1;shop//Service/web;v1", false),
            (Some("shop"), "v2;shop/apps/Deployment/web;apps/v1", false),
            (Some("shop"), "shop/apps/Deployment/web", false),
        ] {
            let metadata = json!({"annotations": {IDENTITY: identity}});
            assert_eq!(
                tracked_elsewhere(&key(namespace), &metadata).is_none(),
                is_own,
                "{identity}"
            );
        }
        assert!(tracked_elsewhere(&key(None), &json!({})).is_some());
    }

    #[test]
    fn what_is_no_app_is_told() {
        for object in [
            json!({}),
            app("{}"),
            app(r#"{"labelKey":"","labelValue":""}"#),
            app("x"),
        ] {
            assert!(read(&object).is_err(), "{object}");
        }
    }
}
