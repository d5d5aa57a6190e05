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
    let spec = &manifest["spec"];
    let names = &spec["names"];
    let is_definition =
        manifest["apiVersion"] == "apiextensions.k8s.io/v1" && manifest["kind"] == "CustomResourceDefinition";
    let (true, Some(group), Some(kind), Some(plural), Ok(scope)) = (
        is_definition,
        read_text(&spec["group"]),
        read_text(&names["kind"]),
        read_text(&names["plural"]),
        Scope::deserialize(&spec["scope"]),
    ) else {
        return Vec::new();
    };
    let versions = spec["versions"].as_array().into_iter().flatten();
    let mut served_versions: Vec<(String, &Value)> = versions
        .filter(|version| version["served"] == true)
        .filter_map(|version| Some((read_text(&version["name"])?, version)))
        .collect();
    served_versions.sort_by_key(|(name, _)| std::cmp::Reverse(Version::parse(name).priority()));
    served_versions
        .into_iter()
        .map(|(name, version)| Resource {
            // Only live objects are scaled, and the kind can have none yet.
            scale: Subresource::Unlisted,
            group: group.clone(),
            version: name,
            kind: kind.clone(),
            plural: plural.clone(),
            singular: read_text(&names["singular"]).unwrap_or_else(|| kind.to_lowercase()),
            short_names: Vec::deserialize(&names["shortNames"]).unwrap_or_default(),
            scope,
            verbs: VERBS.map(str::to_owned).to_vec(),
            origin: Origin::NotYetServed,
            status: match version["subresources"]["status"] {
                Value::Null => Subresource::Unlisted,
                _ => Subresource::Listed,
            },
        })
        .collect()
}

/// Reads a text; `None` if it is missing or empty.
fn read_text(field: &Value) -> Option<String> {
    field.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}
