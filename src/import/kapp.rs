//! kapp: a `ConfigMap` names the label and the kinds of an app's objects (kapp,
//! `pkg/kapp/app/recorded_app.go` and `meta.go`), and an annotation distinguishes the objects that
//! kapp applied from copies of them (`pkg/kapp/resources/identity_annotation.go`).

use serde::Deserialize;
use serde_json::Value;

use super::{FoundInventory, Inventory, InventoryError, InventoryPlace, Mark};
use crate::model::identity::{GroupKind, ObjectKey};

/// Suffix of the name of an app's `ConfigMap`, since kapp 0.47.
const SUFFIX: &str = ".apps.k14s.io";

/// The label of an app's objects, with a value that only this app has (`recorded_app.go`).
const APP_LABEL: &str = "kapp.k14s.io/app";

/// The label of an app's `ConfigMap` (`apps.go`).
const IS_APP: &str = "kapp.k14s.io/is-app";

/// `v1;NAMESPACE/GROUP/KIND/NAME;APIVERSION` of the object that kapp has applied.
const IDENTITY: &str = "kapp.k14s.io/identity";

/// kapp does not set a field manager: the server takes the name of the program from the user agent.
pub(super) const FIELD_MANAGERS: [&str; 2] = ["kapp", "kapp.exe"];

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

/// Returns the places of an app: its `ConfigMap`, by the name that kapp gives it since 0.47, and by the earlier name.
pub(super) fn list_places_of_app(app: &str) -> Vec<InventoryPlace> {
    [format!("{app}{SUFFIX}"), app.to_owned()]
        .map(|name| InventoryPlace::Named {
            group_kind: GroupKind::new("", "ConfigMap"),
            name,
        })
        .to_vec()
}

/// Reads the label selector and the kinds of the app's objects.
pub(super) fn read_selector_and_kinds(config_map: &Value) -> Result<Inventory, InventoryError> {
    let meta = read_and_check_meta(config_map)?;
    let kinds = meta.used_kinds.map(|kinds| {
        kinds
            .into_iter()
            .map(|UsedKind { group, kind }| GroupKind::new(group, kind))
            .collect()
    });
    Ok(Inventory::Selector {
        selector: format!("{APP_LABEL}={}", meta.label_value),
        kinds,
    })
}

/// Reads the label and the kinds that the `ConfigMap` of an app records. Refuses any other label than kapp's, which
/// objects outside of the app may have, and a value that is not a label value: as part of a selector, it might select
/// by other labels.
fn read_and_check_meta(config_map: &Value) -> Result<Meta, InventoryError> {
    if config_map["metadata"]["labels"].get(IS_APP).is_none() {
        return Err(InventoryError::new(format!(
            "its ConfigMap is not a kapp app: it has no label {IS_APP}"
        )));
    }
    let spec = config_map["data"]["spec"]
        .as_str()
        .ok_or_else(|| InventoryError::new("its ConfigMap is not a kapp app"))?;
    let meta: Meta = serde_json::from_str(spec)
        .map_err(|error| InventoryError::new(format!("its ConfigMap cannot be read: {error}")))?;
    if meta.label_key != APP_LABEL {
        return Err(InventoryError::new(format!(
            "its ConfigMap has the label {:?}, expected {APP_LABEL}",
            meta.label_key
        )));
    }
    if !is_label_value(&meta.label_value) {
        return Err(InventoryError::new(format!(
            "its ConfigMap has {:?}, which is not a label value",
            meta.label_value
        )));
    }
    Ok(meta)
}

fn is_label_value(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= 63
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.ends_with(|last: char| last.is_ascii_alphanumeric())
}

/// Compares the label and the identity annotation of an object with this app and this object. If an object has the
/// app's label and no identity annotation that names the object itself, a controller has copied the label from an
/// object of the app. kapp does not manage such a copy.
pub(super) fn compare_mark(found: &FoundInventory, key: &ObjectKey, metadata: &Value) -> Mark {
    let app = read_and_check_meta(&found.object).ok();
    match (metadata["labels"][APP_LABEL].as_str(), app) {
        (Some(label), Some(app)) if label == app.label_value => {}
        (Some(label), _) => {
            return Mark::Other(format!("it belongs to another app: its {APP_LABEL} is {label}"));
        }
        (None, _) => return Mark::Missing(format!("it does not belong to an app: it has no {APP_LABEL}")),
    }
    let identity = metadata["annotations"][IDENTITY].as_str().unwrap_or_default();
    let parts: Vec<&str> = identity.split(';').collect();
    let own_identity = format!(
        "{}/{}/{}/{}",
        key.namespace.as_deref().unwrap_or_default(),
        key.group_kind.group,
        key.group_kind.kind,
        key.name
    );
    match parts[..] {
        ["v1", named, _] if named == own_identity => Mark::Own,
        ["v1", named, _] => Mark::Other(format!("kapp did not apply it: its {IDENTITY} names {named}")),
        _ => Mark::Missing(format!("kapp did not apply it: it has no {IDENTITY}")),
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
        let inventory = Inventory::Selector {
            selector: "kapp.k14s.io/app=1657185600".to_owned(),
            kinds: Some(vec![
                GroupKind::new("", "ConfigMap"),
                GroupKind::new("apps", "Deployment"),
            ]),
        };
        assert_eq!(read_selector_and_kinds(&app(spec)), Ok(inventory));
    }

    #[test]
    fn old_apps_name_no_kinds() {
        let spec = r#"{"labelKey":"kapp.k14s.io/app","labelValue":"1","usedGVs":[]}"#;
        assert!(matches!(
            read_selector_and_kinds(&app(spec)),
            Ok(Inventory::Selector { kinds: None, .. })
        ));
    }

    fn found(spec: &str) -> FoundInventory {
        FoundInventory {
            name: "web".to_owned(),
            namespace: "shop".to_owned(),
            kind: GroupKind::new("", "ConfigMap"),
            object: app(spec),
        }
    }

    #[test]
    fn objects_without_an_identity_of_their_own_are_copies() {
        let found = found(r#"{"labelKey":"kapp.k14s.io/app","labelValue":"1"}"#);
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
            let of = |label: Option<&str>| {
                let metadata = json!({
                    "labels": {APP_LABEL: label}, "annotations": {IDENTITY: identity},
                });
                compare_mark(&found, &key(namespace), &metadata)
            };
            assert_eq!(of(Some("1")) == Mark::Own, is_own, "{identity}");
            assert!(matches!(of(Some("2")), Mark::Other(_)), "{identity}");
            assert!(matches!(of(None), Mark::Missing(_)), "{identity}");
        }
        let bare = json!({"labels": {APP_LABEL: "1"}});
        assert!(matches!(
            compare_mark(&found, &key(None), &bare),
            Mark::Missing(_)
        ));
    }

    #[test]
    fn what_is_not_an_app_is_refused() {
        for object in [
            json!({}),
            app("{}"),
            app(r#"{"labelKey":"","labelValue":""}"#),
            app("x"),
            // Foreign labels, and selectors with more than one label.
            app(r#"{"labelKey":"app","labelValue":"shop"}"#),
            app(r#"{"labelKey":"kapp.k14s.io/app","labelValue":"1,app=shop"}"#),
            app(r#"{"labelKey":"kapp.k14s.io/app","labelValue":"1 "}"#),
            app(r#"{"labelKey":"kapp.k14s.io/app,app","labelValue":"1"}"#),
            json!({"data": {"spec": r#"{"labelKey":"kapp.k14s.io/app","labelValue":"1"}"#}}),
        ] {
            assert!(read_selector_and_kinds(&object).is_err(), "{object}");
        }
    }
}
