//! Argo CD: `status.resources` of an Application lists the objects, and an annotation or label on
//! each object names its application (Argo CD, `util/argo/resource_tracking.go`).

use serde::Deserialize;
use serde_json::Value;

use super::{FoundInventory, Mark, Unusable, object_key};
use crate::model::identity::ObjectKey;

const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";

/// Argo CD applies as the first, client-side or server-side (`ArgoCDSSAManager` in `common/common.go`);
/// objects that it replaced, and old versions, have the name of the program.
pub(super) const FIELD_MANAGERS: [&str; 2] = ["argocd-controller", "argocd-application-controller"];
/// The label of the tracking method that was the default before Argo CD 3.0, and which Helm's charts set, too.
const INSTANCE: &str = "app.kubernetes.io/instance";

/// The `ConfigMap` that names the tracking method (`util/settings/settings.go`).
pub(super) const SETTINGS: &str = "argocd-cm";
const METHOD: &str = "application.resourceTrackingMethod";
const INSTANCE_KEY: &str = "application.instanceLabelKey";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    #[serde(default)]
    group: String,
    kind: String,
    #[serde(default)]
    namespace: String,
    name: String,
    #[serde(default)]
    hook: bool,
}

/// The URL and the name that Argo CD gives to its own cluster, which has to be that of the application
/// (`pkg/apis/application/v1alpha1/application_defaults.go`).
const OWN_ADDRESS: &str = "https://kubernetes.default.svc";
const OWN_NAME: &str = "in-cluster";

/// Reads the objects of an application, without hooks: each sync creates those again.
pub(super) fn read(application: &Value) -> Result<Vec<ObjectKey>, Unusable> {
    let destination = |field: &str| {
        let text = application.pointer(&format!("/spec/destination/{field}"));
        text.and_then(Value::as_str).filter(|text| !text.is_empty())
    };
    let server = destination("server").filter(|server| server.trim_end_matches('/') != OWN_ADDRESS);
    let name = destination("name").filter(|name| *name != OWN_NAME);
    if let Some(elsewhere) = server.or(name) {
        return Err(Unusable::InAnotherCluster(elsewhere.to_owned()));
    }
    let resources = application.pointer("/status/resources");
    let resources = resources
        .ok_or_else(|| Unusable::new("no resources in its status: it may not have been synced yet"))
        .and_then(|resources| {
            Vec::<Resource>::deserialize(resources)
                .map_err(|error| Unusable::new(format!("its status cannot be read: {error}")))
        })?;
    let resources = resources.into_iter().filter(|resource| !resource.hook);
    Ok(resources
        .map(|resource| object_key(resource.group, resource.kind, &resource.namespace, resource.name))
        .collect())
}

/// Returns the label by which the Argo CD with these settings tracks objects; `None` if that is not known.
///
/// The settings have to name the method `label`, or a label that only Argo CD sets. Without a method, the version decides,
/// which is not known here; so the label that Helm's charts also set does not count.
fn tracking_label(settings: Option<&Value>) -> Option<&str> {
    let setting = |key: &str| {
        let text = settings.and_then(|settings| settings["data"][key].as_str());
        text.filter(|text| !text.is_empty())
    };
    let key = setting(INSTANCE_KEY);
    match setting(METHOD) {
        Some("label") => Some(key.unwrap_or(INSTANCE)),
        Some(_) => None,
        None => key.filter(|key| *key != INSTANCE),
    }
}

/// Compares the object's annotation, or without one the label by which Argo CD tracks objects, with this application
/// and object.
///
/// The annotation reads `APPLICATION:GROUP/KIND:NAMESPACE/NAME`. An application outside of Argo CD's
/// own namespace is written as `NAMESPACE_NAME`. A copied annotation names another object. On an
/// object without a namespace, it has the namespace of the application's destination. The label
/// holds the application alone.
pub(super) fn mark(found: &FoundInventory, key: &ObjectKey, metadata: &Value) -> Mark {
    let qualified = format!("{}_{}", found.namespace, found.name);
    let is_application = |text: &str| text == found.name || text == qualified;
    let Some(id) = metadata["annotations"][TRACKING_ID].as_str() else {
        let Some(label) = tracking_label(found.settings.as_ref()) else {
            return Mark::Missing(format!(
                "it has no {TRACKING_ID}, and the ConfigMap {SETTINGS} in namespace {} does not say that Argo CD tracks by a label, or cannot be read",
                found.namespace
            ));
        };
        return match metadata["labels"][label].as_str() {
            Some(instance) if is_application(instance) => Mark::Own,
            Some(instance) => Mark::Other(format!(
                "it belongs to another application: its {label} is {instance}"
            )),
            None => Mark::Missing(format!("it has neither {TRACKING_ID} nor {label}")),
        };
    };
    let mut parts = id.splitn(3, ':');
    let application = parts.next().unwrap_or_default();
    if !is_application(application) {
        return Mark::Other(format!("it is part of Argo CD's application {application}"));
    }
    let kind = format!("{}/{}", key.group_kind.group, key.group_kind.kind);
    let is_place = |text: &str| key.namespace.as_deref().is_none_or(|own| own == text);
    let is_itself = parts.next() == Some(kind.as_str())
        && parts
            .next()
            .and_then(|rest| rest.split_once('/'))
            .is_some_and(|(namespace, name)| name == key.name && is_place(namespace));
    if is_itself {
        Mark::Own
    } else {
        Mark::Other(format!("Argo CD tracks another object as {id}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::identity::GroupKind;

    #[test]
    fn the_resources_of_an_application_are_read() {
        let application = json!({"status": {"resources": [
            {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "web", "status": "Synced", "health": {"status": "Healthy"}},
            {"version": "v1", "kind": "Namespace", "name": "shop", "status": "OutOfSync", "requiresPruning": true},
            {"group": "batch", "version": "v1", "kind": "Job", "namespace": "shop", "name": "migrate", "hook": true},
        ]}});
        let names: Vec<String> = read(&application)
            .expect("an application")
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(names, ["deployment.apps/web in namespace shop", "namespace/shop"]);
        for application in [json!({}), json!({"status": {"resources": [{}]}})] {
            assert!(read(&application).is_err(), "{application}");
        }
    }

    #[test]
    fn only_the_cluster_of_the_application_is_this_one() {
        let table = [
            (json!({}), true),
            (json!({"namespace": "shop"}), true),
            (json!({"server": "https://kubernetes.default.svc"}), true),
            (json!({"server": "https://kubernetes.default.svc/"}), true),
            (json!({"name": "in-cluster"}), true),
            (json!({"name": "in-cluster", "server": ""}), true),
            (json!({"server": "https://prod.example.com"}), false),
            (json!({"name": "prod"}), false),
        ];
        for (destination, is_here) in table {
            let application = json!({"spec": {"destination": destination}, "status": {"resources": []}});
            match read(&application) {
                Ok(_) => assert!(is_here, "{destination}"),
                Err(error) => {
                    assert!(!is_here, "{destination}");
                    assert!(matches!(error, Unusable::InAnotherCluster(_)), "{error}");
                }
            }
        }
    }

    /// The mark of an object with these values, if any.
    fn mark_of(key: &ObjectKey, id: Option<&str>, labels: &Value, settings: Option<Value>) -> Mark {
        let found = FoundInventory {
            name: "shop-web".to_owned(),
            namespace: "argocd".to_owned(),
            kind: GroupKind::new("argoproj.io", "Application"),
            objects: Vec::new(),
            settings: settings.map(|data| json!({"data": data})),
        };
        let metadata = json!({"annotations": {TRACKING_ID: id}, "labels": labels});
        mark(&found, key, &metadata)
    }

    #[test]
    fn objects_are_tracked_by_their_annotation() {
        let key = ObjectKey {
            group_kind: GroupKind::new("apps", "Deployment"),
            namespace: Some("shop".to_owned()),
            name: "web".to_owned(),
        };
        for (id, is_own) in [
            ("shop-web:apps/Deployment:shop/web", true),
            ("argocd_shop-web:apps/Deployment:shop/web", true),
            ("other:apps/Deployment:shop/web", false),
            ("team_shop-web:apps/Deployment:shop/web", false),
            ("shop-web:apps/Deployment:shop/other", false),
            ("shop-web:apps/Deployment:other/web", false),
            ("shop-web:/Service:shop/web", false),
            ("shop-web", false),
            ("", false),
        ] {
            for instance in [None, Some("shop-web"), Some("other")] {
                let mark = mark_of(&key, Some(id), &json!({INSTANCE: instance}), None);
                assert_eq!(mark == Mark::Own, is_own, "{id} {instance:?}");
                assert!(!matches!(mark, Mark::Missing(_)), "{id}");
            }
        }
        let everywhere = ObjectKey {
            group_kind: GroupKind::new("", "Namespace"),
            namespace: None,
            name: "web".to_owned(),
        };
        for id in ["shop-web:/Namespace:shop/web", "shop-web:/Namespace:/web"] {
            assert_eq!(
                mark_of(&everywhere, Some(id), &json!({}), None),
                Mark::Own,
                "{id}"
            );
        }
    }

    /// Charts of Helm set the label, too, so it proves nothing by itself.
    #[test]
    fn objects_are_tracked_by_their_label_only_if_the_settings_say_so() {
        let key = ObjectKey {
            group_kind: GroupKind::new("", "Service"),
            namespace: Some("shop".to_owned()),
            name: "web".to_owned(),
        };
        let own_label = "argocd.argoproj.io/instance";
        let labels = |instance: &str| json!({INSTANCE: instance, own_label: "shop-web"});
        let mark = |instance: &str, settings| mark_of(&key, None, &labels(instance), settings);
        let by_label = json!({METHOD: "label"});
        for (instance, is_own) in [
            ("shop-web", true),
            ("argocd_shop-web", true),
            ("team_shop-web", false),
            ("web", false),
        ] {
            assert_eq!(
                mark(instance, Some(by_label.clone())) == Mark::Own,
                is_own,
                "{instance}"
            );
        }
        for settings in [
            None,
            Some(json!({})),
            Some(json!({METHOD: ""})),
            Some(json!({METHOD: "annotation"})),
            Some(json!({METHOD: "annotation+label", INSTANCE_KEY: own_label})),
            Some(json!({INSTANCE_KEY: INSTANCE})),
        ] {
            let mark = mark("shop-web", settings.clone());
            assert!(matches!(mark, Mark::Missing(_)), "{settings:?}: {mark:?}");
        }
        for settings in [
            json!({METHOD: "label", INSTANCE_KEY: own_label}),
            json!({INSTANCE_KEY: own_label}),
        ] {
            assert_eq!(mark("other", Some(settings.clone())), Mark::Own, "{settings}");
        }
        assert!(matches!(
            mark_of(&key, None, &json!({}), Some(by_label)),
            Mark::Missing(_)
        ));
    }
}
