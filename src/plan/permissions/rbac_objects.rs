//! RBAC objects that grant exactly the given permissions: a `ClusterRole` for cluster-wide ones and a
//! `Role` for each namespace, each with its binding.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::model::applyset::ParentIdentity;
use crate::model::permission::{Permission, Verb};

const GROUP: &str = "rbac.authorization.k8s.io";
const SECRETS: &str = "secrets";

/// Subject that permissions are granted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RbacSubject {
    /// A user, by the name that the server knows after authentication.
    User(String),
    /// All users of a group.
    Group(String),
    /// A service account.
    ServiceAccount {
        /// The namespace of the service account; `None` for the namespace of the set.
        namespace: Option<String>,
        name: String,
    },
}

/// What a subject may do with a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// Everything that runs do.
    Runs,
    /// Compare, with reads alone.
    ReadOnly,
}

/// Returns the name of all RBAC objects of a set: `applyset:NAMESPACE:NAME`, or `applyset-read-only:NAMESPACE:NAME`. If
/// the parent is not a Secret, its kind stands before its name.
///
/// The name includes the namespace of the set, because cluster roles have none, and because two sets may need roles in
/// the same namespace. Otherwise two sets of the same name would overwrite each other's permissions. No part can
/// contain a colon, so different sets have different names.
pub fn name_for_set(parent: &ParentIdentity, grant: Grant) -> String {
    let kind = &parent.group_kind;
    let prefix = match grant {
        Grant::Runs => "applyset",
        Grant::ReadOnly => "applyset-read-only",
    };
    let mut parts = vec![prefix.to_owned()];
    parts.extend(parent.namespace.clone());
    if !kind.group.is_empty() {
        parts.push(format!("{}.{}", kind.kind.to_lowercase(), kind.group));
    } else if kind.kind != "Secret" {
        parts.push(kind.kind.to_lowercase());
    }
    parts.push(parent.name.clone());
    parts.join(":")
}

/// Returns the objects that grant these permissions to the subjects, in a fixed order: cluster-wide ones
/// first, then by namespace, each role before its binding. `default_namespace` is the namespace of a service
/// account without one.
pub fn objects_that_grant(
    name: &str,
    permissions: &BTreeSet<Permission>,
    subjects: &[RbacSubject],
    default_namespace: &str,
) -> Vec<Value> {
    let mut by_namespace: BTreeMap<Option<&str>, Vec<&Permission>> = BTreeMap::new();
    for permission in permissions {
        let namespace = permission.namespace.as_deref();
        by_namespace.entry(namespace).or_default().push(permission);
    }
    let subjects: Vec<Value> = subjects
        .iter()
        .map(|subject| subject.to_json(default_namespace))
        .collect();
    by_namespace
        .into_iter()
        .flat_map(|(namespace, permissions)| {
            new_role_and_binding(name, namespace, &group_into_rules(&permissions), &subjects)
        })
        .collect()
}

/// Returns the comment on an object that grants reading Secrets; `None` for any other.
pub fn comment_on_secrets(object: &Value) -> Option<&'static str> {
    let rules = object["rules"].as_array()?.iter();
    let mut on_secrets = rules
        .filter(|rule| rule["apiGroups"] == json!([""]) && rule["resources"] == json!([SECRETS]))
        .peekable();
    on_secrets.peek()?;
    Some(if on_secrets.all(|rule| rule["resourceNames"].is_array()) {
        "The only Secret that this role can read is the parent of the set."
    } else {
        "This role can read the values of all Secrets in its namespace, because the set has Secrets."
    })
}

impl RbacSubject {
    fn to_json(&self, default_namespace: &str) -> Value {
        match self {
            Self::User(name) => json!({"apiGroup": GROUP, "kind": "User", "name": name}),
            Self::Group(name) => json!({"apiGroup": GROUP, "kind": "Group", "name": name}),
            Self::ServiceAccount { namespace, name } => json!({
                "kind": "ServiceAccount",
                "namespace": namespace.as_deref().unwrap_or(default_namespace),
                "name": name,
            }),
        }
    }
}

/// Creates a role with its binding; a `ClusterRole` with its `ClusterRoleBinding` if `namespace` is `None`.
fn new_role_and_binding(
    name: &str,
    namespace: Option<&str>,
    rules: &[Value],
    subjects: &[Value],
) -> [Value; 2] {
    let role_kind = if namespace.is_some() {
        "Role"
    } else {
        "ClusterRole"
    };
    let mut metadata = json!({"name": name});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    let api_version = format!("{GROUP}/v1");
    [
        json!({"apiVersion": api_version, "kind": role_kind, "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": api_version,
            "kind": format!("{role_kind}Binding"),
            "metadata": metadata,
            "roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": name},
            "subjects": subjects,
        }),
    ]
}

type Verbs = BTreeSet<Verb>;

/// Groups permissions of one namespace into few rules. Resources of a group share a rule if they have the same verbs,
/// except Secrets, which a reader should not overlook; names of a resource share one, too. A verb that holds for all objects of a resource is not repeated for
/// single objects.
fn group_into_rules(permissions: &[&Permission]) -> Vec<Value> {
    // Key: group and resource.
    let mut on_all: BTreeMap<(&str, &str), Verbs> = BTreeMap::new();
    for permission in permissions.iter().filter(|permission| permission.name.is_none()) {
        let verbs = on_all
            .entry((&permission.group, &permission.resource))
            .or_default();
        verbs.insert(permission.verb);
    }
    // Key: group, resource and name.
    let mut on_one: BTreeMap<(&str, &str, &str), Verbs> = BTreeMap::new();
    for permission in permissions {
        let (group, resource) = (permission.group.as_str(), permission.resource.as_str());
        let is_covered = on_all
            .get(&(group, resource))
            .is_some_and(|verbs| verbs.contains(&permission.verb));
        if let (Some(name), false) = (&permission.name, is_covered) {
            let verbs = on_one.entry((group, resource, name)).or_default();
            verbs.insert(permission.verb);
        }
    }
    let mut resources_by_verbs: BTreeMap<(&str, Verbs, bool), Vec<&str>> = BTreeMap::new();
    for ((group, resource), verbs) in on_all {
        let is_secrets = group.is_empty() && resource == SECRETS;
        let resources = resources_by_verbs.entry((group, verbs, is_secrets)).or_default();
        resources.push(resource);
    }
    let mut names_by_verbs: BTreeMap<(&str, &str, Verbs), Vec<&str>> = BTreeMap::new();
    for ((group, resource, name), verbs) in on_one {
        let names = names_by_verbs.entry((group, resource, verbs)).or_default();
        names.push(name);
    }
    let unnamed = resources_by_verbs
        .iter()
        .map(|((group, verbs, _), resources)| new_rule(group, resources, None, verbs));
    let named = names_by_verbs
        .iter()
        .map(|((group, resource, verbs), names)| new_rule(group, &[resource], Some(names), verbs));
    unnamed.chain(named).collect()
}

fn new_rule(group: &str, resources: &[&str], names: Option<&[&str]>, verbs: &Verbs) -> Value {
    let mut rule = json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    if let Some(names) = names {
        rule["resourceNames"] = json!(names);
    }
    rule
}
