//! Permissions on the API server, in terms of RBAC.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::authorization::v1::{ResourceRule, SubjectRulesReviewStatus};
use serde::Serialize;

use super::identity::ObjectKey;
use super::resource::Resource;

/// The hint about a missing permission. `rbac` prints those to apply a set, and other commands may need others.
pub const ASK_AN_ADMINISTRATOR: &str =
    "ask a cluster administrator for this permission; `kubectl auth can-i --list` shows yours";

/// A verb of RBAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
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
}

impl fmt::Display for Verb {
    /// Writes the verb as in RBAC rules.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One permission. `Ord` sorts by namespace, group, resource, verb and name, with `None` first: permissions on the
/// whole cluster come before those in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permission {
    /// The namespace; `None` for a cluster-scoped resource or for all namespaces.
    pub namespace: Option<String>,
    /// API group; empty for the core group.
    pub group: String,
    /// The plural name, such as `deployments`.
    pub resource: String,
    pub verb: Verb,
    /// The name of the object that the permission is limited to; `None` for all objects.
    pub name: Option<String>,
}

impl Permission {
    /// Creates the permission on all objects of this resource, in all namespaces.
    pub fn cluster_wide(verb: Verb, group: &str, resource: &str) -> Self {
        Self {
            namespace: None,
            group: group.to_owned(),
            resource: resource.to_owned(),
            verb,
            name: None,
        }
    }

    /// Creates the permission on all objects of a resource in a namespace; `None` as for [`Self::namespace`].
    pub fn on_all_objects(verb: Verb, resource: &Resource, namespace: Option<&str>) -> Self {
        Self {
            namespace: namespace.map(str::to_owned),
            group: resource.group.clone(),
            resource: resource.plural.clone(),
            verb,
            name: None,
        }
    }

    /// Creates the permission on one object only.
    pub fn on_object(verb: Verb, resource: &Resource, key: &ObjectKey) -> Self {
        Self {
            name: Some(key.name.clone()),
            ..Self::on_all_objects(verb, resource, key.namespace.as_deref())
        }
    }

    /// Returns the permission without its limitation to one object.
    #[must_use]
    pub fn without_name(&self) -> Self {
        Self {
            name: None,
            ..self.clone()
        }
    }
}

impl Permission {
    /// Writes the resource or the object of the permission, without the verb: `deployments.apps in namespace shop`,
    /// `secrets/web in namespace shop`.
    pub fn describe_object(&self) -> String {
        let group = (!self.group.is_empty()).then_some(&self.group);
        [
            self.resource.clone(),
            prefixed(".", group),
            prefixed("/", self.name.as_ref()),
            prefixed(" in namespace ", self.namespace.as_ref()),
        ]
        .concat()
    }

    /// Writes the denial in the words of the API server: `cannot delete resource "deployments" in API group
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
            self.verb, self.resource, self.group
        )
    }
}

/// Returns the text after a prefix; empty if there is no text.
fn prefixed(prefix: &str, text: Option<&String>) -> String {
    text.map_or_else(String::new, |text| format!("{prefix}{text}"))
}

impl fmt::Display for Permission {
    /// `delete deployments.apps in namespace shop`, `patch secrets/web in namespace shop`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.describe_object())
    }
}

/// The permissions that a run needs, as they can be checked before its first write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NeededPermissions {
    /// The permissions that the run needs in any case, each on one object, as the server checks them.
    pub permissions: BTreeSet<Permission>,
    /// The permissions to create objects that may exist already without being members, each with the path of its
    /// object. The permission is needed only if the path answers 404.
    pub unless_present: BTreeMap<Permission, String>,
    /// The namespaces that the run creates, unless they exist. A controller may grant the creator of a namespace
    /// permissions in it. Before the namespace exists, a missing permission in it is therefore no reason to refuse the
    /// run.
    pub created_namespaces: BTreeSet<String>,
}

/// Returns whether the rules of a user in one namespace grant the permission. The server may not list all rules
/// (`incomplete`), so `false` does not prove that the permission is missing. The rules match as RBAC does (kubernetes,
/// `pkg/apis/rbac/v1/evaluation_helpers.go`), with the additional wildcards of `ResourceRule` in authorization.k8s.io.
pub fn rules_allow(rules: &SubjectRulesReviewStatus, permission: &Permission) -> bool {
    rules
        .resource_rules
        .iter()
        .any(|rule| rule_allows(rule, permission))
}

fn rule_allows(rule: &ResourceRule, permission: &Permission) -> bool {
    let groups = rule.api_groups.as_deref().unwrap_or_default();
    let resources = rule.resources.as_deref().unwrap_or_default();
    let names = rule.resource_names.as_deref().unwrap_or_default();
    // A permission on all objects is not granted by a rule with names.
    let name = permission.name.as_deref().unwrap_or("*");
    allows_value(&rule.verbs, &permission.verb.to_string())
        && allows_value(groups, &permission.group)
        && allows_value(resources, &permission.resource)
        && (names.is_empty() || allows_value(names, name))
}

/// Returns whether a list of a rule has this value or the wildcard.
fn allows_value(allowed: &[String], wanted: &str) -> bool {
    allowed.iter().any(|entry| entry == "*" || entry == wanted)
}
