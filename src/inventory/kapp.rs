//! kapp's apps: a `ConfigMap` that tells by which label, and of which kinds, the objects of
//! the app are found (kapp, `pkg/kapp/app/recorded_app.go` and `meta.go`).

use serde::Deserialize;
use serde_json::Value;

use super::{Inventory, Place, Unusable};
use crate::identity::GroupKind;

/// What the name of an app's `ConfigMap` ends in since kapp 0.47.
const SUFFIX: &str = ".apps.k14s.io";

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
