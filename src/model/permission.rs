//! Permissions on the API server, in terms of RBAC.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;

use super::identity::ObjectKey;
use super::resource::Resource;

/// The hint about a missing permission. `rbac` prints those to apply a set, and other commands may need others.
pub const ASK_AN_ADMINISTRATOR: &str =
    "ask a cluster administrator for this permission; `kubectl auth can-i --list` shows yours";

/// A verb of RBAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Watch a collection.
    Watch,
    /// Create an object, by POST or by an apply of one that does not exist.
    Create,
    /// Apply.
    Patch,
    /// Delete one object.
    Delete,
    /// Refer to a role in a binding without having its permissions.
    Bind,
    /// Write permissions into a role without having them.
    Escalate,
    /// Vouch for a signer in a `ClusterTrustBundle`.
    Attest,
}

impl Verb {
    /// The verb as in RBAC rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::Bind => "bind",
            Self::Escalate => "escalate",
            Self::Attest => "attest",
        }
    }
}

/// One permission. Sorts by namespace, resource, verb and name, permissions on the whole cluster
/// first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permission {
    /// The namespace; `None` for a cluster-scoped resource or for all namespaces.
    pub namespace: Option<String>,
    /// API group; empty for the core group.
    pub group: String,
    /// The plural name, such as `deployments`.
    pub resource: String,
    pub verb: Verb,
    /// The name of the only object; `None` for all objects.
    pub name: Option<String>,
}

impl Permission {
    /// The permission on all objects of a resource in a namespace.
    pub fn on(verb: Verb, resource: &Resource, namespace: Option<&str>) -> Self {
        Self {
            namespace: namespace.map(str::to_owned),
            group: resource.group.clone(),
            resource: resource.plural.clone(),
            verb,
            name: None,
        }
    }

    /// The permission on one object only.
    pub fn on_object(verb: Verb, resource: &Resource, key: &ObjectKey) -> Self {
        Self {
            name: Some(key.name.clone()),
            ..Self::on(verb, resource, key.namespace.as_deref())
        }
    }

    /// The same permission on all objects.
    #[must_use]
    pub fn on_all(&self) -> Self {
        Self {
            name: None,
            ..self.clone()
        }
    }
}

impl Permission {
    /// What the permission is on: `deployments.apps in namespace shop`, `secrets/web in namespace shop`.
    pub fn object(&self) -> String {
        let group = (!self.group.is_empty()).then_some(&self.group);
        [
            self.resource.clone(),
            part(".", group),
            part("/", self.name.as_ref()),
            part(" in namespace ", self.namespace.as_ref()),
        ]
        .concat()
    }

    /// The denial in the words of the API server: `cannot delete resource "deployments" in API group
    /// "apps" in the namespace "shop"`.
    pub fn denial(&self) -> String {
        let name = self
            .name
            .as_ref()
            .map_or_else(String::new, |name| format!(" {name:?}"));
        let namespace = match &self.namespace {
            Some(namespace) => format!("in the namespace {namespace:?}"),
            None => "at the cluster scope".to_owned(),
        };
        format!(
            "cannot {} resource {:?}{name} in API group {:?} {namespace}",
            self.verb.as_str(),
            self.resource,
            self.group
        )
    }
}

fn part(sign: &str, text: Option<&String>) -> String {
    text.map_or_else(String::new, |text| format!("{sign}{text}"))
}

impl fmt::Display for Permission {
    /// `delete deployments.apps in namespace shop`, `patch secrets/web in namespace shop`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb.as_str(), self.object())
    }
}

/// The permissions that a run needs, without those that only the run itself can bring about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NeededPermissions {
    /// The permissions, each on one object, as the server checks them.
    pub rights: BTreeSet<Permission>,
    /// Permissions that are needed only if no object has this path: `create` of an object that may
    /// exist without being a member.
    pub unless_present: BTreeMap<Permission, String>,
    /// Namespaces that the run creates, unless they exist. The creator of a namespace may get
    /// permissions in it at that moment, so missing ones prove nothing before.
    pub brought_namespaces: BTreeSet<String>,
}

/// The rules of a user in one namespace: `status` of a `SelfSubjectRulesReview`. Matching is that of RBAC (kubernetes,
/// `pkg/apis/rbac/v1/evaluation_helpers.go`), with the additional wildcards of `ResourceRule` in authorization.k8s.io.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubjectRules {
    /// Rules for resources; those for other paths are not needed.
    #[serde(default)]
    pub resource_rules: Vec<ResourceRule>,
}

/// `ResourceRule`: every verb on every resource of every group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceRule {
    /// Verbs; `*` is all.
    pub verbs: Vec<String>,
    /// API groups, the core group being empty; `*` is all.
    pub api_groups: Vec<String>,
    /// Resources; `*` is all, `pods/log` a subresource.
    pub resources: Vec<String>,
    /// Names of objects; none is all, and so is `*`.
    pub resource_names: Vec<String>,
}

impl SubjectRules {
    /// Returns whether these rules grant the permission. Rules may be incomplete: `false` is not a
    /// proof.
    pub fn allow(&self, permission: &Permission) -> bool {
        self.resource_rules.iter().any(|rule| rule.allows(permission))
    }
}

impl ResourceRule {
    fn allows(&self, permission: &Permission) -> bool {
        let names = &self.resource_names;
        has(&self.verbs, permission.verb.as_str())
            && has(&self.api_groups, &permission.group)
            && has(&self.resources, &permission.resource)
            && (names.is_empty()
                || permission
                    .name
                    .as_ref()
                    .map_or_else(|| has(names, "*"), |name| has(names, name)))
    }
}

fn has(allowed: &[String], wanted: &str) -> bool {
    allowed.iter().any(|entry| entry == "*" || entry == wanted)
}
