//! Argo CD's applications: `status.resources`, and the annotation by which it knows its own
//! objects (Argo CD, `util/argo/resource_tracking.go`).

use serde::Deserialize;
use serde_json::Value;

use super::Unusable;
use crate::identity::{GroupKind, ObjectKey};

const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";

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

/// The address and the name by which Argo CD knows the cluster that it runs in, and with it the
/// application (`pkg/apis/application/v1alpha1/application_defaults.go`).
const OWN_ADDRESS: &str = "https://kubernetes.default.svc";
const OWN_NAME: &str = "in-cluster";

/// Reads the objects of an application; hooks are made anew by each sync and are none.
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
        .ok_or_else(|| Unusable::new("it has no resources in its status; has it been synced?"))
        .and_then(|resources| {
            Vec::<Resource>::deserialize(resources)
                .map_err(|error| Unusable::new(format!("its status cannot be read: {error}")))
        })?;
    let resources = resources.into_iter().filter(|resource| !resource.hook);
    Ok(resources
        .map(|resource| ObjectKey {
            group_kind: GroupKind::new(resource.group, resource.kind),
            namespace: Some(resource.namespace).filter(|namespace| !namespace.is_empty()),
            name: resource.name,
        })
        .collect())
}

/// The annotation reads `APPLICATION:GROUP/KIND:NAMESPACE/NAME`, the application of another
/// namespace than Argo CD's own being `NAMESPACE_NAME`. A copied annotation names another object.
pub(super) fn tracked_elsewhere(
    namespace: &str,
    application: &str,
    key: &ObjectKey,
    metadata: &Value,
) -> Option<String> {
    let id = metadata["annotations"][TRACKING_ID].as_str()?;
    let mut parts = id.splitn(3, ':');
    let found = parts.next().unwrap_or_default();
    let qualified = format!("{namespace}_{application}");
    if found != application && found != qualified {
        return Some(format!("it is part of Argo CD's application {found}"));
    }
    let kind = format!("{}/{}", key.group_kind.group, key.group_kind.kind);
    let is_name = |text: &str| text.rsplit('/').next() == Some(key.name.as_str());
    let is_itself = parts.next() == Some(kind.as_str()) && parts.next().is_some_and(is_name);
    (!is_itself).then(|| format!("Argo CD tracks it as {id}, which is another object"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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

    #[test]
    fn objects_are_tracked_by_their_annotation() {
        let key = ObjectKey {
            group_kind: GroupKind::new("apps", "Deployment"),
            namespace: Some("shop".to_owned()),
            name: "web".to_owned(),
        };
        let elsewhere = |id: &str| {
            let metadata = json!({"annotations": {TRACKING_ID: id}});
            tracked_elsewhere("argocd", "shop-web", &key, &metadata).is_some()
        };
        for (id, is_elsewhere) in [
            ("shop-web:apps/Deployment:shop/web", false),
            ("argocd_shop-web:apps/Deployment:shop/web", false),
            ("other:apps/Deployment:shop/web", true),
            ("team_shop-web:apps/Deployment:shop/web", true),
            ("shop-web:apps/Deployment:shop/other", true),
            ("shop-web:/Service:shop/web", true),
            ("shop-web", true),
        ] {
            assert_eq!(elsewhere(id), is_elsewhere, "{id}");
        }
        assert_eq!(tracked_elsewhere("argocd", "shop-web", &key, &json!({})), None);
    }
}
