//! Parses the answers of the discovery endpoints into parts of a `Discovery`.
//!
//! `fetch` sends the requests. The format is aggregated discovery (`apidiscovery.k8s.io`, KEP-3352, v2
//! and v2beta1, which look alike).

use serde::{Deserialize, Deserializer};

use super::FailedVersion;
use crate::model::resource::{Origin, Resource, Scope, Subresource};

/// A group-version with its resources, or the reason why they are unknown.
pub(super) type VersionResult = Result<Vec<Resource>, FailedVersion>;

/// One of the two roots of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// `/api`: the core group.
    Core,
    /// `/apis`: every other group.
    Groups,
}

/// An answer that is not a discovery document.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParseError {
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    #[error("kind {0:?} instead of APIGroupDiscoveryList, which servers have since Kubernetes 1.27")]
    Kind(String),
    // Every server serves at least v1 and a few groups. If an empty answer were accepted, each recorded kind would seem
    // to be gone.
    #[error("no API version")]
    Empty,
}

/// Reads the answer of `/api` or `/apis`: every group-version with its resources, in the server's order of preference.
pub(super) fn parse_root(root: Root, body: &[u8]) -> Result<Vec<VersionResult>, ParseError> {
    let document: RootDocument = serde_json::from_slice(body)?;
    if document.kind != "APIGroupDiscoveryList" {
        return Err(ParseError::Kind(document.kind));
    }
    let mut versions = Vec::new();
    for group in document.items {
        let name = group.metadata.name;
        // A group without a name under /apis would count as the core group, so it is left out.
        if name.is_empty() != (root == Root::Core) {
            continue;
        }
        versions.extend(
            group
                .versions
                .into_iter()
                .map(|version| version.into_version_result(&name)),
        );
    }
    if versions.is_empty() {
        return Err(ParseError::Empty);
    }
    Ok(versions)
}

fn listed_or_unlisted(is_listed: bool) -> Subresource {
    if is_listed {
        Subresource::Listed
    } else {
        Subresource::Unlisted
    }
}

/// Completes a resource; `None` for a subresource, or a resource without a kind, since these have no objects.
fn complete_or_drop_resource(mut resource: Resource) -> Option<Resource> {
    if resource.kind.is_empty() || resource.plural.is_empty() || resource.plural.contains('/') {
        return None;
    }
    // An aggregated API may name no singular.
    if resource.singular.is_empty() {
        resource.singular = resource.kind.to_lowercase();
    }
    Some(resource)
}

/// `APIGroupDiscoveryList`.
#[derive(Deserialize)]
struct RootDocument {
    #[serde(default)]
    kind: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    items: Vec<GroupDocument>,
}

/// `APIGroupDiscovery`.
#[derive(Deserialize)]
struct GroupDocument {
    #[serde(default)]
    metadata: GroupMetadata,
    #[serde(default, deserialize_with = "null_is_empty")]
    versions: Vec<VersionDocument>,
}

#[derive(Default, Deserialize)]
struct GroupMetadata {
    #[serde(default)]
    name: String,
}

/// `APIVersionDiscovery`.
#[derive(Deserialize)]
struct VersionDocument {
    #[serde(default)]
    version: String,
    #[serde(default)]
    freshness: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    resources: Vec<ResourceDocument>,
}

impl VersionDocument {
    fn into_version_result(self, group: &str) -> VersionResult {
        // The list of a stale version is an old answer of its server; client-go does not use it
        // either.
        if !matches!(self.freshness.as_str(), "" | "Current") {
            return Err(FailedVersion {
                group: group.to_owned(),
                version: self.version,
                reason: format!(
                    "the API server behind it does not answer (discovery is {})",
                    self.freshness.to_lowercase()
                ),
            });
        }
        let resources = self.resources.into_iter().map(|document| Resource {
            group: group.to_owned(),
            version: self.version.clone(),
            status: listed_or_unlisted(document.has_subresource("status")),
            scale: listed_or_unlisted(document.has_subresource("scale")),
            kind: document.response_kind.unwrap_or_default().kind,
            plural: document.resource,
            singular: document.singular_resource,
            short_names: document.short_names,
            scope: if document.scope == "Namespaced" {
                Scope::Namespaced
            } else {
                Scope::Cluster
            },
            verbs: document.verbs,
            origin: Origin::Served,
        });
        Ok(resources.filter_map(complete_or_drop_resource).collect())
    }
}

/// `APIResourceDiscovery`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDocument {
    #[serde(default)]
    resource: String,
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    singular_resource: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    short_names: Vec<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    verbs: Vec<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    subresources: Vec<SubresourceDocument>,
}

impl ResourceDocument {
    fn has_subresource(&self, name: &str) -> bool {
        self.subresources
            .iter()
            .any(|subresource| subresource.subresource == name)
    }
}

/// `APISubresourceDiscovery`.
#[derive(Deserialize)]
struct SubresourceDocument {
    #[serde(default)]
    subresource: String,
}

#[derive(Default, Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

/// Reads a list, map or text that Go may have written as `null`.
pub fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests;
