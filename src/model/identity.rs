//! Identities in Kubernetes: group-kind, group-version-kind and the key of one object.
//!
//! Whether a kind is served, and whether it is namespaced, is known to `cluster::discovery` only.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::text::shell_word;

/// A group and a kind, without a version; the core group is the empty string.
///
/// `Display` writes the canonical form of KEP-3659: `Kind.group`, and `Kind` for the core group. `Ord` sorts by the
/// bytes of that form, so that a sorted set is in the order of the annotation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GroupKind {
    /// CamelCase kind, as discovery spells it.
    pub kind: String,
    /// API group; empty for the core group.
    pub group: String,
}

impl GroupKind {
    /// Creates a group-kind of the given group (empty for core) and CamelCase kind.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            group: group.into(),
        }
    }

    /// Returns the kind `Namespace` of the core group.
    pub fn for_namespaces() -> Self {
        Self::new("", "Namespace")
    }

    /// Returns whether this is the kind `Namespace` of the core group.
    pub fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.kind == "Namespace"
    }

    /// Returns whether this is the kind `APIService`.
    pub fn is_api_service(&self) -> bool {
        self.group == "apiregistration.k8s.io" && self.kind == "APIService"
    }

    /// Returns the kind `CustomResourceDefinition`.
    pub fn custom_resource_definition() -> Self {
        Self::new("apiextensions.k8s.io", "CustomResourceDefinition")
    }

    /// Returns the kind that a CRD defines; `None` if the object lacks the fields of a CRD.
    pub fn defined_by_crd(definition: &Value) -> Option<Self> {
        let spec = &definition["spec"];
        Some(Self::new(
            spec["group"].as_str()?,
            spec["names"]["kind"].as_str()?,
        ))
    }

    /// Writes the name of an object of this kind as kubectl prints it: `deployment.apps/web`.
    pub fn object_name(&self, name: &str) -> String {
        let kind = self.kind.to_lowercase();
        if self.group.is_empty() {
            format!("{kind}/{name}")
        } else {
            format!("{kind}.{}/{name}", self.group)
        }
    }

    fn display_bytes(&self) -> impl Iterator<Item = u8> {
        let dot = if self.group.is_empty() { "" } else { "." };
        self.kind.bytes().chain(dot.bytes()).chain(self.group.bytes())
    }
}

impl Ord for GroupKind {
    fn cmp(&self, other: &Self) -> Ordering {
        // Equal kinds are the usual case, since a large set has few kinds, and this comparison is faster.
        if self == other {
            return Ordering::Equal;
        }
        self.display_bytes().cmp(other.display_bytes())
    }
}

impl PartialOrd for GroupKind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.kind)
        } else {
            write!(f, "{}.{}", self.kind, self.group)
        }
    }
}

/// A group, a version and a kind, as a manifest names them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupVersionKind {
    /// API group; empty for the core group.
    pub group: String,
    /// API version, such as `v1` or `v1beta1`.
    pub version: String,
    /// CamelCase kind.
    pub kind: String,
}

impl GroupVersionKind {
    /// Creates the identity from the fields `apiVersion` (`v1`, `apps/v1`) and `kind` of a manifest.
    pub fn from_api_version(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    /// Returns the field `apiVersion` of an object of this kind.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns the group and the kind, without the version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(&self.group, &self.kind)
    }
}

/// The identity of one object in a cluster, in any version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    #[serde(flatten)]
    pub group_kind: GroupKind,
    /// Namespace; `None` for a cluster-scoped object.
    pub namespace: Option<String>,
    /// `metadata.name`.
    pub name: String,
}

impl ObjectKey {
    /// Writes the name without the namespace: `deployment.apps/web`.
    pub fn object_name(&self) -> String {
        self.group_kind.object_name(&self.name)
    }

    /// Writes the object as arguments of a command, quoted for a shell: `deployment.apps/web -n shop`.
    pub fn shell_arguments(&self) -> String {
        let name = shell_word(&self.object_name());
        match &self.namespace {
            Some(namespace) => format!("{name} -n {namespace}"),
            None => name,
        }
    }
}

impl fmt::Display for ObjectKey {
    /// Writes `deployment.apps/web in namespace shop`, the form that all messages use.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.object_name())?;
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_group_kinds_is_that_of_their_canonical_bytes() {
        let mut kinds = [
            GroupKind::new("", "Service"),
            GroupKind::new("example.com", "Service"),
            GroupKind::new("", "ServiceAccount"),
            GroupKind::new("apps", "Deployment"),
            GroupKind::new("", "ConfigMap"),
            GroupKind::new("example.com", "Config-Map"),
            GroupKind::new("example.com", "Config"),
        ];
        let mut texts: Vec<String> = kinds.iter().map(ToString::to_string).collect();
        kinds.sort();
        texts.sort();
        let sorted: Vec<String> = kinds.iter().map(ToString::to_string).collect();
        assert_eq!(sorted, texts);
    }

    #[test]
    fn api_version_is_read_and_written_back() {
        for (api_version, group, version) in [("v1", "", "v1"), ("apps/v1", "apps", "v1")] {
            let kind = GroupVersionKind::from_api_version(api_version, "X");
            assert_eq!((kind.group.as_str(), kind.version.as_str()), (group, version));
            assert_eq!(kind.api_version(), api_version);
        }
    }
}
