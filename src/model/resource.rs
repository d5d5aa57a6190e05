//! One resource of the API server: its names, its scope and the paths of its objects. `Discovery` finds the resources
//! of a server.

use serde::{Deserialize, Serialize};

use crate::model::identity::{GroupKind, GroupVersionKind, ObjectKey};

/// A resource: a kind in one version, as discovery describes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: String,
    /// API version, such as `v1`.
    pub version: String,
    /// CamelCase kind.
    pub kind: String,
    /// The name in paths and RBAC rules, such as `deployments`.
    pub plural: String,
    /// The name of one object, such as `deployment`, which kubectl accepts in place of the plural.
    pub singular: String,
    /// Abbreviations, such as `deploy`.
    pub short_names: Vec<String>,
    /// Whether the objects are namespaced or cluster-scoped.
    pub scope: Scope,
    /// The verbs that the server offers, such as `list`.
    pub verbs: Vec<String>,
    /// Whether the server serves the resource already, or only after a CRD is applied.
    pub origin: Origin,
    /// The subresource `status`, in which controllers report.
    #[serde(default)]
    pub status: Subresource,
    /// The subresource `scale`, through which autoscalers write.
    #[serde(default)]
    pub scale: Subresource,
}

/// Whether the server has a subresource of the resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Subresource {
    /// Discovery lists the subresource.
    Listed,
    /// Discovery does not list the subresource, or discovery was not read.
    #[default]
    Unlisted,
}

/// The scope of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// Each object is in a namespace.
    Namespaced,
    /// Objects have no namespace.
    Cluster,
}

/// The source from which this program knows a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Origin {
    /// Discovery lists the resource.
    Served,
    /// A CRD among the manifests defines the resource. Until the CRD is applied and established, the server answers
    /// every request for the resource with 404.
    NotYetServed,
}

impl Resource {
    /// Creates a served resource with regular names: the singular is the kind in lower case, and the plural has an `s`.
    /// It has no verbs. It is for built-in kinds that are read without discovery.
    pub fn with_regular_names(group: &str, version: &str, kind: &str, scope: Scope) -> Self {
        let singular = kind.to_lowercase();
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: format!("{singular}s"),
            singular,
            short_names: Vec::new(),
            scope,
            verbs: Vec::new(),
            origin: Origin::Served,
            status: Subresource::Unlisted,
            scale: Subresource::Unlisted,
        }
    }

    /// Returns the resource of CRDs.
    pub fn crd_resource() -> Self {
        let GroupKind { group, kind } = GroupKind::custom_resource_definition();
        Self::with_regular_names(&group, "v1", &kind, Scope::Cluster)
    }

    /// Returns the name that the CRD of this resource has, if a CRD defines it: `widgets.example.com`.
    pub fn crd_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// Returns the group, version and kind.
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind {
            group: self.group.clone(),
            version: self.version.clone(),
            kind: self.kind.clone(),
        }
    }

    /// Returns the group and kind.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(&self.group, &self.kind)
    }

    /// Writes the name of the resource with its group: `services`, `deployments.apps`.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Returns the field `apiVersion` of the objects: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns whether the server offers this verb (`list`, `patch`, …) for the resource.
    pub fn supports(&self, verb: &str) -> bool {
        self.verbs.iter().any(|offered| offered == verb)
    }

    /// Returns the path of the object with this key. The key must be of the resource's kind.
    pub fn path_of(&self, key: &ObjectKey) -> String {
        self.path(key.namespace.as_deref(), Some(&key.name))
    }

    /// Returns the path of one object, or of the collection if `name` is `None`.
    ///
    /// If `namespace` is `None`, the collection of a namespaced resource spans all namespaces. For a
    /// cluster-scoped resource, `namespace` is ignored. Every part of the path is percent-encoded, so that a name
    /// cannot add a segment or a query.
    pub fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let mut path = if self.group.is_empty() {
            "/api".to_owned()
        } else {
            format!("/apis/{}", percent_encode(&self.group))
        };
        push_segment(&mut path, &self.version);
        if let (Scope::Namespaced, Some(namespace)) = (self.scope, namespace) {
            push_segment(&mut path, "namespaces");
            push_segment(&mut path, namespace);
        }
        push_segment(&mut path, &self.plural);
        if let Some(name) = name {
            push_segment(&mut path, name);
        }
        path
    }
}

fn push_segment(path: &mut String, segment: &str) {
    path.push('/');
    path.push_str(&percent_encode(segment));
}

/// Percent-encodes every byte of a path segment that RFC 3986 does not allow in one (`pchar`).
pub fn percent_encode(segment: &str) -> String {
    let mut encoded = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            for digit in [byte >> 4, byte & 0xf] {
                encoded.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(group: &str, plural: &str, scope: Scope) -> Resource {
        Resource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: "Kind".to_owned(),
            plural: plural.to_owned(),
            singular: "kind".to_owned(),
            short_names: Vec::new(),
            scope,
            verbs: vec!["list".to_owned()],
            origin: Origin::Served,
            status: Subresource::Unlisted,
            scale: Subresource::Unlisted,
        }
    }

    #[test]
    fn paths_of_objects_and_collections() {
        let config_maps = resource("", "configmaps", Scope::Namespaced);
        let deployments = resource("apps", "deployments", Scope::Namespaced);
        let roles = resource("rbac.authorization.k8s.io", "clusterroles", Scope::Cluster);
        for (resource, namespace, name, expected) in [
            (
                &config_maps,
                Some("x"),
                Some("name"),
                "/api/v1/namespaces/x/configmaps/name",
            ),
            (&config_maps, Some("x"), None, "/api/v1/namespaces/x/configmaps"),
            (&deployments, None, None, "/apis/apps/v1/deployments"),
            (
                &deployments,
                Some("x"),
                Some("web"),
                "/apis/apps/v1/namespaces/x/deployments/web",
            ),
            (
                &roles,
                None,
                Some("system:node"),
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
            ),
            (
                &roles,
                Some("x"),
                None,
                "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            ),
        ] {
            assert_eq!(resource.path(namespace, name), expected);
        }
    }

    #[test]
    fn no_name_can_leave_its_path_segment() {
        let config_maps = resource("", "configmaps", Scope::Namespaced);
        for (name, expected) in [
            ("a/b", "a%2Fb"),
            ("a%2Fb", "a%252Fb"),
            ("a?dryRun=All", "a%3FdryRun=All"),
            ("a#b", "a%23b"),
            ("a b", "a%20b"),
            ("ü", "%C3%BC"),
        ] {
            let path = config_maps.path(Some(name), Some(name));
            assert_eq!(
                path,
                format!("/api/v1/namespaces/{expected}/configmaps/{expected}")
            );
        }
    }
}
