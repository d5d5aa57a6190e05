//! Determines the resources that a `CustomResourceDefinition` among the manifests will define once it is applied.
//!
//! An invalid definition defines no resources here, and is no error: the server reports what is wrong
//! with it.

use kube::core::Version;
use serde::Deserialize;
use serde_json::Value;

use crate::model::resource::{Origin, Resource, Scope, Subresource};

/// The verbs of every custom resource.
const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// Returns one resource for each served version of the definition, in the order in which the server will prefer them;
/// none if the object is not a definition.
pub(super) fn from_definition(manifest: &Value) -> Vec<Resource> {
    let Some(spec) = read_definition(manifest) else {
        return Vec::new();
    };
    let mut versions = spec.versions;
    versions.retain(|version| version.served.unwrap_or_default() && !version.name.is_empty());
    versions.sort_by_key(|version| std::cmp::Reverse(Version::parse(&version.name).priority()));
    let names = spec.names;
    let singular = names
        .singular
        .filter(|singular| !singular.is_empty())
        .unwrap_or_else(|| names.kind.to_lowercase());
    versions
        .into_iter()
        .map(|version| Resource {
            // Only live objects are scaled, and the kind can have none yet.
            scale: Subresource::Unlisted,
            group: spec.group.clone(),
            version: version.name,
            kind: names.kind.clone(),
            plural: names.plural.clone(),
            singular: singular.clone(),
            short_names: names.short_names.clone().unwrap_or_default(),
            scope: spec.scope,
            verbs: VERBS.map(str::to_owned).to_vec(),
            origin: Origin::NotYetServed,
            status: match version.subresources.and_then(|subresources| subresources.status) {
                Some(_) => Subresource::Listed,
                None => Subresource::Unlisted,
            },
        })
        .collect()
}

fn read_definition(manifest: &Value) -> Option<Spec> {
    let api_version = manifest.get("apiVersion")?.as_str()?;
    if api_version != "apiextensions.k8s.io/v1" || manifest.get("kind")? != "CustomResourceDefinition" {
        return None;
    }
    let spec = Spec::deserialize(manifest.get("spec")?).ok()?;
    let is_complete = !spec.group.is_empty() && !spec.names.kind.is_empty() && !spec.names.plural.is_empty();
    is_complete.then_some(spec)
}

/// `spec` of a definition. A field that may be missing may be null as well.
#[derive(Deserialize)]
struct Spec {
    group: String,
    names: SpecNames,
    scope: Scope,
    versions: Vec<SpecVersion>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpecNames {
    kind: String,
    plural: String,
    singular: Option<String>,
    short_names: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct SpecVersion {
    name: String,
    served: Option<bool>,
    subresources: Option<Subresources>,
}

#[derive(Deserialize)]
struct Subresources {
    status: Option<Value>,
}
