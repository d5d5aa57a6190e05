//! Argo CD: `status.resources` of an Application lists the objects, and an annotation on each object names its
//! application (Argo CD, `util/argo/resource_tracking.go`).

use serde::Deserialize;
use serde_json::Value;

use super::{FoundInventory, InventoryError, Mark, object_key};
use crate::model::identity::ObjectKey;

/// The annotation by which Argo CD tracks objects.
const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";

/// Argo CD applies objects as `argocd-controller`, client-side or server-side (`ArgoCDSSAManager` in
/// `common/common.go`). Objects that it replaced, or that old versions wrote, have the name of the program.
pub(super) const FIELD_MANAGERS: [&str; 2] = ["argocd-controller", "argocd-application-controller"];

/// The namespace in which Argo CD is installed by convention. Applications in other namespaces may be those of tenants.
pub(super) const USUAL_NAMESPACE: &str = "argocd";

/// The fields of `metadata` and the keys in them by which other tools mark their objects.
const MARKS_OF_OTHERS: [(&str, &str); 5] = [
    ("annotations", "meta.helm.sh/release-name"),
    ("labels", "kapp.k14s.io/app"),
    ("annotations", "config.k8s.io/owning-inventory"),
    ("labels", "kustomize.toolkit.fluxcd.io/name"),
    ("labels", "helm.toolkit.fluxcd.io/name"),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApplicationResource {
    #[serde(default)]
    group: String,
    kind: String,
    #[serde(default)]
    namespace: String,
    name: String,
    #[serde(default)]
    hook: bool,
}

/// The URL and the name that Argo CD gives to the cluster in which it runs
/// (`pkg/apis/application/v1alpha1/application_defaults.go`).
const OWN_CLUSTER_URL: &str = "https://kubernetes.default.svc";
const OWN_CLUSTER_NAME: &str = "in-cluster";

/// Reads the objects of an application whose destination is the cluster of Argo CD itself. Hooks are left out: Argo CD
/// creates them again in each sync.
pub(super) fn read_objects_except_hooks(application: &Value) -> Result<Vec<ObjectKey>, InventoryError> {
    let destination = |field: &str| {
        let text = application.pointer(&format!("/spec/destination/{field}"));
        text.and_then(Value::as_str).filter(|text| !text.is_empty())
    };
    let server = destination("server").filter(|server| server.trim_end_matches('/') != OWN_CLUSTER_URL);
    let name = destination("name").filter(|name| *name != OWN_CLUSTER_NAME);
    if let Some(other_cluster) = server.or(name) {
        return Err(InventoryError::InAnotherCluster(other_cluster.to_owned()));
    }
    let listed = application
        .pointer("/status/resources")
        .ok_or_else(|| InventoryError::new("no resources in its status: it may not have been synced yet"))?;
    let resources = Vec::<ApplicationResource>::deserialize(listed)
        .map_err(|error| InventoryError::new(format!("its status cannot be read: {error}")))?;
    Ok(resources
        .into_iter()
        .filter(|resource| !resource.hook)
        .map(|resource| object_key(resource.group, resource.kind, &resource.namespace, resource.name))
        .collect())
}

/// Compares the tracking annotation of an object with this application and this object. An object with the mark of another
/// tool counts as the other tool's. The label by which Argo CD can track objects proves nothing: charts of Helm set it,
/// too.
///
/// The annotation has the form `APPLICATION:GROUP/KIND:NAMESPACE/NAME`, where:
///
/// - `APPLICATION` is the name of the application, or `NAMESPACE_NAME` if the application is outside of Argo CD's own
///   namespace. Outside of the usual namespace, a bare name does not count: a tenant may have given the application the
///   name of one in the usual namespace.
/// - `GROUP/KIND:NAMESPACE/NAME` is the object. If it is another one, the annotation was copied from that object. For
///   an object without a namespace, `NAMESPACE` is that of the application's destination.
pub(super) fn compare_mark(found: &FoundInventory, key: &ObjectKey, metadata: &Value) -> Mark {
    let mark_of_other = MARKS_OF_OTHERS
        .iter()
        .find(|(field, mark)| metadata[field][mark].is_string());
    if let Some((_, mark)) = mark_of_other {
        return Mark::Other(format!(
            "it has {mark}, so another tool may manage it, too; if none does any more, {ADOPT_BY_MANIFEST}"
        ));
    }
    let FoundInventory { name, namespace, .. } = found;
    let is_in_usual_namespace = namespace == USUAL_NAMESPACE;
    let application = if is_in_usual_namespace {
        name.clone()
    } else {
        format!("{namespace}_{name}")
    };
    match metadata["annotations"][TRACKING_ID].as_str() {
        Some(id) if !is_in_usual_namespace && id.split(':').next() == Some(name.as_str()) => {
            Mark::Other(format!(
                "its {TRACKING_ID} names {name} without a namespace, which may be an application in namespace {USUAL_NAMESPACE}; if this Argo CD is in namespace {namespace}, {ADOPT_BY_MANIFEST}"
            ))
        }
        Some(id) => compare_tracking_id(id, &application, key),
        None => Mark::Missing(format!("it has no {TRACKING_ID}; {ADOPT_BY_MANIFEST}")),
    }
}

/// The advice for an object whose marks are not trusted.
const ADOPT_BY_MANIFEST: &str = "adopt it with -f MANIFESTS";

fn compare_tracking_id(id: &str, application: &str, key: &ObjectKey) -> Mark {
    let mut parts = id.splitn(3, ':');
    let named = parts.next().unwrap_or_default();
    if named != application {
        return Mark::Other(format!(
            "it is part of Argo CD's application {named}, not of {application}"
        ));
    }
    let kind = format!("{}/{}", key.group_kind.group, key.group_kind.kind);
    let is_itself = parts.next() == Some(kind.as_str())
        && parts
            .next()
            .and_then(|rest| rest.split_once('/'))
            .is_some_and(|(namespace, name)| {
                name == key.name && key.namespace.as_deref().is_none_or(|own| own == namespace)
            });
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
        let names: Vec<String> = read_objects_except_hooks(&application)
            .expect("an application")
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(names, ["deployment.apps/web in namespace shop", "namespace/shop"]);
        for application in [json!({}), json!({"status": {"resources": [{}]}})] {
            assert!(read_objects_except_hooks(&application).is_err(), "{application}");
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
            match read_objects_except_hooks(&application) {
                Ok(_) => assert!(is_here, "{destination}"),
                Err(error) => {
                    assert!(!is_here, "{destination}");
                    assert!(matches!(error, InventoryError::InAnotherCluster(_)), "{error}");
                }
            }
        }
    }

    /// Compares the mark of an object with the application `shop-web` in this namespace.
    fn mark_in(namespace: &str, key: &ObjectKey, metadata: &Value) -> Mark {
        let found = FoundInventory {
            name: "shop-web".to_owned(),
            namespace: namespace.to_owned(),
            kind: GroupKind::new("argoproj.io", "Application"),
            object: Value::Null,
        };
        compare_mark(&found, key, metadata)
    }

    fn deployment() -> ObjectKey {
        ObjectKey {
            group_kind: GroupKind::new("apps", "Deployment"),
            namespace: Some("shop".to_owned()),
            name: "web".to_owned(),
        }
    }

    #[test]
    fn objects_are_tracked_by_their_annotation() {
        for (id, is_of_argocd, is_of_team) in [
            ("shop-web:apps/Deployment:shop/web", true, false),
            ("team_shop-web:apps/Deployment:shop/web", false, true),
            ("other:apps/Deployment:shop/web", false, false),
            ("other_shop-web:apps/Deployment:shop/web", false, false),
            ("shop-web:apps/Deployment:shop/other", false, false),
            ("team_shop-web:apps/Deployment:other/web", false, false),
            ("shop-web:/Service:shop/web", false, false),
            ("shop-web", false, false),
            ("", false, false),
        ] {
            let metadata = json!({"annotations": {TRACKING_ID: id}});
            for (namespace, is_own) in [(USUAL_NAMESPACE, is_of_argocd), ("team", is_of_team)] {
                let mark = mark_in(namespace, &deployment(), &metadata);
                assert_eq!(mark == Mark::Own, is_own, "{namespace} {id}");
                assert!(!matches!(mark, Mark::Missing(_)), "{id}");
            }
        }
        let everywhere = ObjectKey {
            group_kind: GroupKind::new("", "Namespace"),
            namespace: None,
            name: "web".to_owned(),
        };
        for id in ["shop-web:/Namespace:shop/web", "shop-web:/Namespace:/web"] {
            let metadata = json!({"annotations": {TRACKING_ID: id}});
            assert_eq!(
                mark_in(USUAL_NAMESPACE, &everywhere, &metadata),
                Mark::Own,
                "{id}"
            );
        }
    }

    /// Argo CD may be installed in a namespace of another name, and then writes applications there without a namespace,
    /// too; but this program does not know that. A Helm release may be gone, although its mark is still there.
    #[test]
    fn reasons_say_how_to_adopt_what_may_be_argo_cds() {
        let tracked = json!({"annotations": {TRACKING_ID: "shop-web:apps/Deployment:shop/web"}});
        let labeled = json!({"labels": {"app.kubernetes.io/instance": "shop-web"}});
        let released = json!({"annotations": {"meta.helm.sh/release-name": "web"}});
        for (metadata, expected) in [
            (
                tracked,
                "names shop-web without a namespace, which may be an application in namespace argocd",
            ),
            (labeled, "it has no argocd.argoproj.io/tracking-id"),
            (
                released,
                "it has meta.helm.sh/release-name, so another tool may manage it, too",
            ),
        ] {
            let mark = mark_in("openshift-gitops", &deployment(), &metadata);
            let (Mark::Other(reason) | Mark::Missing(reason)) = mark else {
                panic!("{metadata}: {mark:?}");
            };
            assert!(reason.contains(expected), "{reason}");
            assert!(reason.ends_with("adopt it with -f MANIFESTS"), "{reason}");
        }
    }

    #[test]
    fn objects_of_another_tool_are_not_argo_cds_alone() {
        let id = "shop-web:apps/Deployment:shop/web";
        for (field, other) in MARKS_OF_OTHERS {
            let mut metadata = json!({"annotations": {TRACKING_ID: id}});
            assert_eq!(
                mark_in(USUAL_NAMESPACE, &deployment(), &metadata),
                Mark::Own,
                "{other}"
            );
            metadata[field][other] = json!("web");
            let mark = mark_in(USUAL_NAMESPACE, &deployment(), &metadata);
            assert!(matches!(mark, Mark::Other(_)), "{other}: {mark:?}");
        }
    }
}
