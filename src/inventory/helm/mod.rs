//! Helm's releases: Secrets with labels, whose one value is the release as JSON, compressed
//! and encoded (Helm, `pkg/storage/driver/secrets.go` and `util.go`).

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;

use super::{LeftOut, Place, Unusable};
use crate::identity::{GroupKind, ObjectKey};
use crate::manifest::{self, Recursion, Source};

/// A Secret holds at most 1 MiB; no real release is a hundred times that when it is unpacked.
const MOST_BYTES: u64 = 100 * 1024 * 1024;
/// Where Helm says of an object whose it is.
const RELEASE_NAME: &str = "meta.helm.sh/release-name";
const RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";

pub(super) fn place(release: &str) -> Place {
    Place::Labelled(GroupKind::new("", "Secret"), format!("owner=helm,name={release}"))
}

/// Reads the newest of the deployed revisions; hooks are not among its objects.
pub(super) fn read(secrets: &[Value]) -> Result<Vec<ObjectKey>, Unusable> {
    let Some(deployed) = newest_deployed(secrets) else {
        let newest = secrets.iter().max_by_key(|secret| version(secret));
        let state = newest.map_or_else(String::new, |secret| format!("; {}", revision(secret)));
        return Err(Unusable::new(format!("it has no deployed revision{state}")));
    };
    objects(deployed)
}

/// Objects of revisions that are newer than the deployed one, as after an upgrade that failed,
/// and not in it.
pub(super) fn newer(secrets: &[Value]) -> Vec<LeftOut> {
    let deployed = newest_deployed(secrets);
    let known = deployed
        .and_then(|secret| objects(secret).ok())
        .unwrap_or_default();
    let mut newer: Vec<&Value> = secrets
        .iter()
        .filter(|secret| version(secret) > deployed.map_or(0, version))
        .collect();
    newer.sort_by_key(|secret| version(secret));
    let left_out = newer.into_iter().filter_map(|secret| {
        let place = revision(secret);
        let Ok(mut objects) = objects(secret) else {
            return Some(LeftOut {
                place: format!("{place}, and cannot be read"),
                objects: Vec::new(),
            });
        };
        objects.retain(|key| !known.contains(key));
        (!objects.is_empty()).then_some(LeftOut { place, objects })
    });
    left_out.collect()
}

fn newest_deployed(secrets: &[Value]) -> Option<&Value> {
    let deployed = secrets
        .iter()
        .filter(|secret| label(secret, "status") == "deployed");
    deployed.max_by_key(|secret| version(secret))
}

fn label<'s>(secret: &'s Value, key: &str) -> &'s str {
    secret["metadata"]["labels"][key].as_str().unwrap_or_default()
}

fn version(secret: &Value) -> u64 {
    label(secret, "version").parse().unwrap_or(0)
}

fn revision(secret: &Value) -> String {
    format!("revision {} is {}", version(secret), label(secret, "status"))
}

fn objects(secret: &Value) -> Result<Vec<ObjectKey>, Unusable> {
    let data = secret["data"]["release"].as_str();
    let data = data.ok_or_else(|| Unusable::new("its Secret holds no release"))?;
    let release = decode(data).ok_or_else(|| Unusable::new("its Secret cannot be decoded"))?;
    let text = release["manifest"].as_str().unwrap_or_default();
    let namespace = release["namespace"].as_str();
    let manifests = manifest::read_with(&[Source::StandardInput], Recursion::Flat, text.as_bytes())
        .map_err(|_| Unusable::new("the manifest of its release cannot be read"))?;
    Ok(manifests
        .into_iter()
        .map(|manifest| ObjectKey {
            group_kind: manifest.gvk.group_kind(),
            namespace: manifest.namespace.or_else(|| namespace.map(str::to_owned)),
            name: manifest.name,
        })
        .collect())
}

/// Base64 of the Secret around base64 of Helm around JSON, which old releases do not compress.
fn decode(data: &str) -> Option<Value> {
    let outer = STANDARD.decode(data).ok()?;
    let inner = STANDARD.decode(outer).ok()?;
    if !inner.starts_with(&[0x1f, 0x8b]) {
        return serde_json::from_slice(&inner).ok();
    }
    let mut unpacked = Vec::new();
    let mut reader = GzDecoder::new(inner.as_slice()).take(MOST_BYTES);
    reader.read_to_end(&mut unpacked).ok()?;
    serde_json::from_slice(&unpacked).ok()
}

/// Another release may have adopted the object since.
pub(super) fn tracked_elsewhere(namespace: &str, release: &str, metadata: &Value) -> Option<String> {
    let annotation = |key: &str| metadata["annotations"][key].as_str();
    let found = annotation(RELEASE_NAME)?;
    let found_in = annotation(RELEASE_NAMESPACE).unwrap_or(namespace);
    ((found, found_in) != (release, namespace))
        .then(|| format!("it is part of Helm's release {found_in}/{found}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::json;

    use super::*;

    fn packed(json: &Value) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(json.to_string().as_bytes()).expect("written");
        encoder.finish().expect("packed")
    }

    fn secret(version: &str, release: &[u8]) -> Value {
        in_state("deployed", version, release)
    }

    fn in_state(status: &str, version: &str, release: &[u8]) -> Value {
        json!({
            "metadata": {"labels": {"version": version, "status": status}},
            "data": {"release": STANDARD.encode(STANDARD.encode(release))},
        })
    }

    fn release(manifest: &str) -> Value {
        json!({"name": "web", "namespace": "shop", "manifest": manifest, "hooks": [{"name": "job"}]})
    }

    const MANIFEST: &str = "---\n# Source: web/templates/one.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: other\n";

    fn names(keys: &[ObjectKey]) -> Vec<String> {
        keys.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_newest_deployed_revision_is_read() {
        let old = release("apiVersion: v1\nkind: Secret\nmetadata: {name: old}\n");
        let secrets = [
            secret("9", &packed(&old)),
            secret("10", &packed(&release(MANIFEST))),
        ];
        assert_eq!(
            names(&read(&secrets).expect("a release")),
            [
                "configmap/one in namespace shop",
                "deployment.apps/web in namespace other"
            ]
        );
    }

    #[test]
    fn what_only_newer_revisions_have_is_left_out() {
        let more = format!("{MANIFEST}---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: new\n");
        let secrets = [
            in_state("superseded", "8", &packed(&release("kind: [}"))),
            secret("9", &packed(&release(MANIFEST))),
            in_state("failed", "10", &packed(&release(&more))),
            in_state("pending-upgrade", "11", &packed(&release(MANIFEST))),
        ];
        assert_eq!(read(&secrets).expect("a release").len(), 2);
        let left_out = newer(&secrets);
        assert_eq!(left_out.len(), 1);
        assert_eq!(left_out[0].place, "revision 10 is failed");
        assert_eq!(names(&left_out[0].objects), ["secret/new in namespace shop"]);
        assert_eq!(newer(&secrets[..2]), []);
    }

    #[test]
    fn a_release_that_was_never_deployed_is_told_by_its_state() {
        let error = read(&[in_state("failed", "1", &packed(&release(MANIFEST)))]).expect_err("no inventory");
        assert_eq!(
            error.to_string(),
            "it has no deployed revision; revision 1 is failed"
        );
    }

    #[test]
    fn releases_from_before_compression_are_read() {
        let secrets = [secret("1", release(MANIFEST).to_string().as_bytes())];
        assert_eq!(read(&secrets).expect("a release").len(), 2);
    }

    #[test]
    fn what_is_no_release_is_told() {
        for secret in [
            json!({}),
            json!({"data": {"release": "?"}}),
            secret("1", b"no json"),
            secret("1", &packed(&release("kind: [}"))),
        ] {
            assert!(read(std::slice::from_ref(&secret)).is_err(), "{secret}");
        }
    }

    #[test]
    fn objects_of_another_release_are_told_from_its_own() {
        let metadata = |name: &str, namespace: &str| json!({"annotations": {RELEASE_NAME: name, RELEASE_NAMESPACE: namespace}});
        assert_eq!(tracked_elsewhere("shop", "web", &metadata("web", "shop")), None);
        assert_eq!(tracked_elsewhere("shop", "web", &json!({})), None);
        for (name, namespace) in [("other", "shop"), ("web", "other")] {
            assert!(tracked_elsewhere("shop", "web", &metadata(name, namespace)).is_some());
        }
    }
}
