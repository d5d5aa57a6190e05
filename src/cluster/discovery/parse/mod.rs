//! Parses the answers of the discovery endpoints into parts of a `Discovery`.
//!
//! Sends nothing; `fetch` sends the requests. Two formats are read: aggregated discovery (`apidiscovery.k8s.io`,
//! KEP-3352, v2 and v2beta1, which look alike) and the older index of group-versions with a resource
//! list for each.

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

/// The answer of a root.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RootAnswer {
    /// Every group-version with its resources, in the server's order of preference.
    Aggregated(Vec<VersionResult>),
    /// The names of the group-versions, in the server's order of preference; their resources take
    /// one request each.
    Index(Vec<GroupVersion>),
}

/// The name of a group-version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupVersion {
    /// API group; empty for the core group.
    pub(super) group: String,
    /// API version, such as `v1`.
    pub(super) version: String,
}

/// An answer that is not a discovery document.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParseError {
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    #[error("kind {found:?} instead of {expected}")]
    Kind { found: String, expected: &'static str },
    // Every server serves at least v1 and a few groups. If an empty answer were accepted, each recorded kind would seem
    // to be gone.
    #[error("no API version")]
    Empty,
}

/// Reads the answer of `/api` or `/apis`.
pub(super) fn parse_root(root: Root, body: &[u8]) -> Result<RootAnswer, ParseError> {
    let document: RootDocument = serde_json::from_slice(body)?;
    match document.kind.as_str() {
        "APIGroupDiscoveryList" => parse_aggregated(root, document.items),
        "APIVersions" if root == Root::Core => non_empty_index(core_index(document.versions)),
        "APIGroupList" if root == Root::Groups => non_empty_index(groups_index(document.groups)),
        _ => Err(ParseError::Kind {
            found: document.kind,
            expected: "APIGroupDiscoveryList",
        }),
    }
}

/// Reads the answer of `/api/VERSION` or `/apis/GROUP/VERSION`.
///
/// The resources get the group and version of the path, as in client-go's REST mapper. The answer may name another
/// group and version for a resource, but these describe only the bodies of its requests.
pub(super) fn parse_resource_list(
    group_version: &GroupVersion,
    body: &[u8],
) -> Result<Vec<Resource>, ParseError> {
    let document: ResourceListDocument = serde_json::from_slice(body)?;
    if document.kind != "APIResourceList" {
        return Err(ParseError::Kind {
            found: document.kind,
            expected: "APIResourceList",
        });
    }
    let [with_status, with_scale] = ["/status", "/scale"].map(|subresource| {
        let names = document.resources.iter().map(|listed| &listed.name);
        let parents = names.filter_map(|name| Some(name.strip_suffix(subresource)?.to_owned()));
        parents.collect::<Vec<_>>()
    });
    let resources = document.resources.into_iter().map(|listed| Resource {
        status: listed_or_unlisted(with_status.contains(&listed.name)),
        scale: listed_or_unlisted(with_scale.contains(&listed.name)),
        group: group_version.group.clone(),
        version: group_version.version.clone(),
        kind: listed.kind,
        plural: listed.name,
        singular: listed.singular_name,
        short_names: listed.short_names,
        scope: if listed.namespaced {
            Scope::Namespaced
        } else {
            Scope::Cluster
        },
        verbs: listed.verbs,
        origin: Origin::Served,
    });
    Ok(resources.filter_map(complete_or_drop_resource).collect())
}

fn parse_aggregated(root: Root, groups: Vec<GroupDocument>) -> Result<RootAnswer, ParseError> {
    let mut versions = Vec::new();
    for group in groups {
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
    Ok(RootAnswer::Aggregated(versions))
}

fn non_empty_index(group_versions: Vec<GroupVersion>) -> Result<RootAnswer, ParseError> {
    if group_versions.is_empty() {
        return Err(ParseError::Empty);
    }
    Ok(RootAnswer::Index(group_versions))
}

fn core_index(versions: Vec<String>) -> Vec<GroupVersion> {
    versions
        .into_iter()
        .filter(|version| !version.is_empty())
        .map(|version| GroupVersion {
            group: String::new(),
            version,
        })
        .collect()
}

fn groups_index(groups: Vec<IndexedGroup>) -> Vec<GroupVersion> {
    let mut index = Vec::new();
    for group in groups.into_iter().filter(|group| !group.name.is_empty()) {
        let mut versions: Vec<String> = group.versions.into_iter().map(|named| named.version).collect();
        versions.retain(|version| !version.is_empty());
        // The sort is stable: it puts the preferred version first, and keeps the order of the others.
        versions.sort_by_key(|version| *version != group.preferred_version.version);
        index.extend(versions.into_iter().map(|version| GroupVersion {
            group: group.name.clone(),
            version,
        }));
    }
    index
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
    // Servers before v1.27 name no singular for built-in resources.
    if resource.singular.is_empty() {
        resource.singular = resource.kind.to_lowercase();
    }
    Some(resource)
}

/// All fields of the three documents with which a root may answer. So one pass over the body both tells the documents
/// apart and reads them.
#[derive(Deserialize)]
struct RootDocument {
    #[serde(default)]
    kind: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    items: Vec<GroupDocument>,
    #[serde(default, deserialize_with = "null_is_empty")]
    versions: Vec<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    groups: Vec<IndexedGroup>,
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
        let mut subresources = self.subresources.iter();
        subresources.any(|subresource| subresource.subresource == name)
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

/// `metav1.APIGroup`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IndexedGroup {
    #[serde(default)]
    name: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    versions: Vec<NamedVersion>,
    #[serde(default)]
    preferred_version: NamedVersion,
}

#[derive(Default, Deserialize)]
struct NamedVersion {
    #[serde(default)]
    version: String,
}

/// `metav1.APIResourceList`.
#[derive(Deserialize)]
struct ResourceListDocument {
    #[serde(default)]
    kind: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    resources: Vec<ListedResource>,
}

/// `metav1.APIResource`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedResource {
    #[serde(default)]
    name: String,
    #[serde(default)]
    singular_name: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    kind: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    short_names: Vec<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    verbs: Vec<String>,
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
