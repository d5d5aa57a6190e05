//! RBAC objects that grant exactly the given permissions: a `ClusterRole` for cluster-wide ones and a
//! `Role` for each namespace, each with its binding.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::model::applyset::ParentIdentity;
use crate::model::permission::{Permission, Verb};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Subject that permissions are granted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RbacSubject {
    /// A user, by the name that authentication gives.
    User(String),
    /// All users of a group.
    Group(String),
    /// A service account.
    ServiceAccount {
        /// Its namespace; by default that of the set.
        namespace: Option<String>,
        name: String,
    },
}

/// The name of all RBAC objects of a set: `applyset:NAMESPACE:NAME`, with the parent's
/// kind before its name unless that is a Secret.
///
/// Sets share the names of cluster roles, and those of roles in a common namespace. Without the namespace
/// in the name, two sets of the same name would overwrite each other's permissions. No part can contain a
/// colon.
pub fn name(parent: &ParentIdentity) -> String {
    let kind = &parent.group_kind;
    let mut parts = vec!["applyset".to_owned()];
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
/// first, then by namespace, each role before its binding. `namespace` is the default for a service
/// account.
pub fn objects(
    name: &str,
    rights: &BTreeSet<Permission>,
    subjects: &[RbacSubject],
    namespace: &str,
) -> Vec<Value> {
    let mut places: BTreeMap<Option<&str>, Vec<&Permission>> = BTreeMap::new();
    for right in rights {
        places.entry(right.namespace.as_deref()).or_default().push(right);
    }
    let subjects: Vec<Value> = subjects
        .iter()
        .map(|subject| subject.document(namespace))
        .collect();
    places
        .into_iter()
        .flat_map(|(place, rights)| role_and_binding(name, place, &rules(&rights), &subjects))
        .collect()
}

impl RbacSubject {
    fn document(&self, default_namespace: &str) -> Value {
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

fn role_and_binding(name: &str, namespace: Option<&str>, rules: &[Value], subjects: &[Value]) -> [Value; 2] {
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

/// Returns the fewest rules: names with the same verbs share one, and so do resources of a group. Verbs
/// that hold for all objects of a resource are not repeated for single ones.
fn rules(rights: &[&Permission]) -> Vec<Value> {
    let mut on_all: BTreeMap<(&str, &str), Verbs> = BTreeMap::new();
    for right in rights.iter().filter(|right| right.name.is_none()) {
        let verbs = on_all.entry((&right.group, &right.resource)).or_default();
        verbs.insert(right.verb);
    }
    let mut on_one: BTreeMap<(&str, &str, &str), Verbs> = BTreeMap::new();
    for right in rights {
        let is_covered = on_all
            .get(&(&right.group, &right.resource))
            .is_some_and(|verbs| verbs.contains(&right.verb));
        if let (Some(name), false) = (&right.name, is_covered) {
            let verbs = on_one.entry((&right.group, &right.resource, name)).or_default();
            verbs.insert(right.verb);
        }
    }
    let mut resources: BTreeMap<(&str, Verbs), Vec<&str>> = BTreeMap::new();
    for ((group, resource), verbs) in on_all {
        resources.entry((group, verbs)).or_default().push(resource);
    }
    let mut same_verbs: BTreeMap<(&str, &str, Verbs), Vec<&str>> = BTreeMap::new();
    for ((group, resource, name), verbs) in on_one {
        same_verbs.entry((group, resource, verbs)).or_default().push(name);
    }
    let unnamed = resources
        .iter()
        .map(|((group, verbs), resources)| rule(group, resources, None, verbs));
    let named = same_verbs
        .iter()
        .map(|((group, resource, verbs), names)| rule(group, &[resource], Some(names), verbs));
    unnamed.chain(named).collect()
}

fn rule(group: &str, resources: &[&str], names: Option<&[&str]>, verbs: &Verbs) -> Value {
    let verbs: Vec<&str> = verbs.iter().map(|verb| verb.as_str()).collect();
    let mut rule = json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    if let Some(names) = names {
        rule["resourceNames"] = json!(names);
    }
    rule
}
