//! Helm: a labeled Secret holds each revision of a release (Helm, `pkg/storage/driver/secrets.go`;
//! `pkg/storage/storage.go` for the names), and since 3.2 annotations on each object name its release
//! (`pkg/action/validate.go`).
//!
//! Every user who may create Secrets can forge a release. So a release is trusted only if the Secret and its payload
//! agree, and an object is adopted only if its annotations name the release.

mod payload;

use std::collections::BTreeSet;

use serde_json::Value;

use self::payload::Payload;
use super::{FoundInventory, InventoryError, InventoryPlace, Mark};
use crate::manifest;
use crate::model::identity::{GroupKind, ObjectKey};

/// The type of a release's Secret.
const SECRET_TYPE: &str = "helm.sh/release.v1";
/// Annotations on an object that name its release.
const RELEASE_NAME: &str = "meta.helm.sh/release-name";
const RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";

/// Helm's field manager, under which it updates objects and, since version 4, applies them (`cmd/helm/helm.go`).
pub(super) const FIELD_MANAGERS: [&str; 1] = ["helm"];

/// Returns the place of a release: its Secrets.
pub(super) fn build_place_of_release(release: &str) -> InventoryPlace {
    InventoryPlace::Selected {
        group_kind: GroupKind::new("", "Secret"),
        selector: format!("owner=helm,name={release}"),
    }
}

/// Selects the Secret of the newest revision.
pub(super) fn select_newest_revision(secrets: Vec<Value>) -> Option<Value> {
    secrets.into_iter().max_by_key(read_revision_number)
}

/// Reads the objects of the newest revision, without hooks. The revision has to be deployed: after a failed upgrade, the
/// cluster has objects of both revisions, and which of them belong together only Helm can say.
pub(super) fn read_deployed_objects(found: &FoundInventory) -> Result<Vec<ObjectKey>, InventoryError> {
    let status = label_of(&found.object, "status");
    if status != "deployed" {
        return Err(InventoryError::NotDeployed(format!(
            "{} is {status}",
            read_revision_number(&found.object)
        )));
    }
    read_objects_of_revision(found, &found.object)
}

fn label_of<'s>(secret: &'s Value, key: &str) -> &'s str {
    secret["metadata"]["labels"][key].as_str().unwrap_or_default()
}

/// Returns the number of the revision. A Secret without a valid one counts as the oldest.
fn read_revision_number(secret: &Value) -> u64 {
    label_of(secret, "version").parse().unwrap_or(0)
}

/// Reads the objects of one revision, each once. Errors begin with the name of the Secret.
fn read_objects_of_revision(
    found: &FoundInventory,
    secret: &Value,
) -> Result<Vec<ObjectKey>, InventoryError> {
    let name = secret["metadata"]["name"].as_str().unwrap_or_default();
    let unusable = |reason: String| InventoryError::new(format!("secret/{name}: {reason}"));
    let payload = decode_and_check_payload(found, name, secret).map_err(unusable)?;
    let mut seen = BTreeSet::new();
    let mut objects = Vec::new();
    let read = manifest::read_each_manifest(&payload.manifest, |manifest| {
        let key = ObjectKey {
            group_kind: manifest.gvk.group_kind(),
            namespace: Some(manifest.namespace.unwrap_or_else(|| payload.namespace.clone())),
            name: manifest.name,
        };
        if seen.insert(key.clone()) {
            objects.push(key);
        }
    });
    read.map_err(|error| unusable(format!("the manifest of its release cannot be read: {error}")))?;
    Ok(objects)
}

/// Decodes the payload of the Secret called `secret_name`. Its type, name, labels and payload have to agree.
fn decode_and_check_payload(
    found: &FoundInventory,
    secret_name: &str,
    secret: &Value,
) -> Result<Payload, String> {
    let secret_type = secret["type"].as_str().unwrap_or_default();
    if secret_type != SECRET_TYPE {
        return Err(format!("its type is {secret_type:?}, not {SECRET_TYPE}"));
    }
    let version = label_of(secret, "version");
    let expected = format!("sh.helm.release.v1.{}.v{version}", found.name);
    if secret_name != expected {
        return Err(format!(
            "its labels say release {} at version {version}, whose name is {expected}",
            label_of(secret, "name")
        ));
    }
    let value = secret["data"]["release"]
        .as_str()
        .ok_or_else(|| "it contains no release".to_owned())?;
    let payload = Payload::decode(value)?;
    for (field, actual, expected) in [
        ("name", &payload.name, found.name.as_str()),
        ("namespace", &payload.namespace, &found.namespace),
        ("version", &payload.version.to_string(), version),
    ] {
        if actual != expected {
            return Err(format!(
                "the release has {field} {actual:?}, but its Secret has {expected:?}"
            ));
        }
    }
    Ok(payload)
}

/// Compares the annotations of an object with this release. As in Helm, both annotations have to name it.
pub(super) fn compare_mark(found: &FoundInventory, metadata: &Value) -> Mark {
    let annotation = |key: &str| metadata["annotations"][key].as_str();
    match (annotation(RELEASE_NAME), annotation(RELEASE_NAMESPACE)) {
        (Some(name), Some(namespace)) if name == found.name && namespace == found.namespace => Mark::Own,
        (None, None) => Mark::Missing(format!("it has no annotation {RELEASE_NAME}")),
        (Some(name), Some(namespace)) => {
            Mark::Other(format!("it is part of Helm's release {namespace}/{name}"))
        }
        (Some(_), None) => Mark::Other(format!("it has no annotation {RELEASE_NAMESPACE}")),
        (None, Some(_)) => Mark::Other(format!("it has no annotation {RELEASE_NAME}")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::json;

    use super::*;

    fn packed(json: &Value) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(json.to_string().as_bytes()).expect("written");
        encoder.finish().expect("packed")
    }

    fn holding(version: u64, release: &[u8]) -> Value {
        json!({
            "type": SECRET_TYPE,
            "metadata": {
                "name": format!("sh.helm.release.v1.web.v{version}"),
                "labels": {
                    "owner": "helm", "name": "web", "version": version.to_string(), "status": "deployed",
                },
            },
            "data": {"release": STANDARD.encode(STANDARD.encode(release))},
        })
    }

    fn in_state(status: &str, version: u64, manifest: &str) -> Value {
        let mut secret = holding(version, &packed(&release(version, manifest)));
        secret["metadata"]["labels"]["status"] = status.into();
        secret
    }

    fn release(version: u64, manifest: &str) -> Value {
        json!({
            "name": "web", "namespace": "shop", "version": version, "manifest": manifest,
            "hooks": [{"name": "job"}],
        })
    }

    fn found(secret: Value) -> FoundInventory {
        FoundInventory {
            name: "web".to_owned(),
            namespace: "shop".to_owned(),
            kind: GroupKind::new("", "Secret"),
            object: secret,
        }
    }

    const MANIFEST: &str = "---\n# Source: web/templates/one.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: other\n";

    fn names(keys: &[ObjectKey]) -> Vec<String> {
        keys.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_newest_revision_is_read_if_it_is_deployed() {
        let old = "apiVersion: v1\nkind: Secret\nmetadata: {name: old}\n";
        let mut secrets = vec![in_state("superseded", 9, old), in_state("deployed", 10, MANIFEST)];
        let newest = select_newest_revision(secrets.clone()).expect("a revision");
        assert_eq!(
            names(&read_deployed_objects(&found(newest)).expect("a release")),
            [
                "configmap/one in namespace shop",
                "deployment.apps/web in namespace other"
            ]
        );
        let twice = in_state("deployed", 1, &format!("{MANIFEST}{MANIFEST}"));
        assert_eq!(read_deployed_objects(&found(twice)).expect("a release").len(), 2);
        secrets.push(in_state("failed", 11, MANIFEST));
        let newest = select_newest_revision(secrets).expect("a revision");
        let error = read_deployed_objects(&found(newest)).expect_err("not deployed");
        assert_eq!(
            error.to_string(),
            "its newest revision 11 is failed, not deployed"
        );
        assert_eq!(select_newest_revision(Vec::new()), None);
    }

    #[test]
    fn releases_from_before_compression_are_read() {
        let secret = holding(1, release(1, MANIFEST).to_string().as_bytes());
        assert_eq!(read_deployed_objects(&found(secret)).expect("a release").len(), 2);
    }

    #[test]
    fn the_error_names_the_secret_that_is_not_a_release() {
        let mut without_value = holding(1, b"");
        without_value["data"] = json!({});
        for secret in [
            without_value,
            holding(1, b"no json"),
            in_state("deployed", 1, "kind: [}"),
        ] {
            let error = read_deployed_objects(&found(secret)).expect_err("no release");
            let error = error.to_string();
            assert!(error.starts_with("secret/sh.helm.release.v1.web.v1: "), "{error}");
        }
    }

    #[test]
    fn a_secret_agrees_with_its_payload() {
        let table = [
            ("/type", json!("Opaque")),
            ("/type", Value::Null),
            ("/metadata/name", json!("sh.helm.release.v1.web.v2")),
            ("/metadata/name", json!("web")),
            ("/metadata/labels/version", json!("01")),
            ("/metadata/labels/version", json!("2")),
            ("/payload/name", json!("other")),
            ("/payload/name", Value::Null),
            ("/payload/namespace", json!("kube-system")),
            ("/payload/namespace", Value::Null),
            ("/payload/version", json!(2)),
            ("/payload/version", json!("1")),
        ];
        for (pointer, value) in table {
            let mut payload = release(1, MANIFEST);
            if let Some(field) = pointer.strip_prefix("/payload") {
                *payload.pointer_mut(field).expect("a field") = value.clone();
            }
            let mut secret = holding(1, &packed(&payload));
            if let Some(field) = secret.pointer_mut(pointer) {
                *field = value.clone();
            }
            assert!(
                read_deployed_objects(&found(secret)).is_err(),
                "{pointer} {value}"
            );
        }
        let mut of_another = found(holding(1, &packed(&release(1, MANIFEST))));
        of_another.namespace = "other".to_owned();
        assert!(read_deployed_objects(&of_another).is_err());
    }

    #[test]
    fn objects_point_back_at_their_release() {
        let found = found(Value::Null);
        let table = [
            (Some("web"), Some("shop"), "own"),
            (Some("other"), Some("shop"), "other"),
            (Some("web"), Some("other"), "other"),
            (Some("web"), None, "other"),
            (None, Some("shop"), "other"),
            (None, None, "missing"),
        ];
        for (name, namespace, expected) in table {
            let metadata = json!({"annotations": {RELEASE_NAME: name, RELEASE_NAMESPACE: namespace}});
            let mark = match compare_mark(&found, &metadata) {
                Mark::Own => "own",
                Mark::Missing(_) => "missing",
                Mark::Other(_) => "other",
            };
            assert_eq!(mark, expected, "{name:?} {namespace:?}");
        }
        assert!(matches!(compare_mark(&found, &json!({})), Mark::Missing(_)));
    }
}
