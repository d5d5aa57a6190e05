//! The rights that a set with these manifests needs for all its life: to be made, to
//! change, to be waited for, to lose objects, to go on after an interruption, and to be deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::beyond;
use crate::cluster::discovery::Discovery;
use crate::compare::changes::is_built_in;
use crate::manifest::desired::Desired;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::Live;
use crate::model::permission::{Right, Verb};
use crate::model::resource::{Resource, Scope};
use crate::model::set::Set;
use crate::read::Places;

/// What writing one member may take: reading it again, applying and pruning it.
const VERBS_ON_MEMBERS: [Verb; 4] = [Verb::Get, Verb::Create, Verb::Patch, Verb::Delete];

/// What a set has from earlier runs; nothing for one that is not there yet.
#[derive(Debug, Clone, Default)]
pub struct Past {
    /// Where members may be, after its parent's record.
    pub places: Places,
    /// Its live members.
    pub members: Vec<Live>,
    /// Recorded kinds that the server does not list.
    pub unlisted: BTreeSet<GroupKind>,
}

/// Finds the rights that runs with these manifests need, whatever the state of the set
/// is when they begin.
///
/// Namespaced objects: every object of the kind in each namespace where one lives or is
/// to live, so that manifests may gain objects of the same kinds. Cluster-scoped ones:
/// by name, because a right on all namespaces or on all cluster roles of a cluster is
/// far more than a set needs.
pub fn needed_ever(
    set: &Set,
    parent_resource: &Resource,
    desired: &Desired,
    past: &Past,
    discovery: &Discovery,
) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    rights.extend(on_parent(set, parent_resource, desired));
    let namespaces = namespaces(set, desired, past);
    rights.extend(namespaces.iter().map(|namespace| read_namespace(namespace)));
    rights.extend(to_list(&namespaces, desired, past));
    rights.extend(to_see_what_is_gone(desired, past));
    let wanted = desired
        .members
        .iter()
        .map(|member| (&member.key, &member.resource));
    let live = past.members.iter().map(|live| (&live.key, &live.resource));
    for (key, resource) in wanted.chain(live) {
        let right = |verb| Right::on(verb, resource, key.namespace.as_deref());
        rights.extend(VERBS_ON_MEMBERS.map(|verb| match resource.scope {
            Scope::Namespaced => right(verb),
            Scope::Cluster => right(verb).named(&key.name),
        }));
        // A watch cannot be bound to names, and shows no more than the LIST does.
        rights.insert(right(Verb::Watch));
        rights.extend(to_see_what_goes_along(key));
    }
    for member in desired.members.iter().chain(&desired.parent) {
        rights.extend(beyond::rights(member, desired, discovery));
    }
    rights
}

/// A kind that discovery does not list is gone only if no definition and no delegated API has it
/// (`observe::unserved`), and what a namespace holds is known only if discovery lists every kind.
/// Kinds of the API server itself do not come and go between two runs.
fn to_see_what_is_gone(desired: &Desired, past: &Past) -> Vec<Right> {
    let wanted = desired.members.iter().map(|member| &member.resource);
    let resources = wanted.chain(&past.places.resources);
    let namespace = GroupKind::new("", "Namespace");
    let may_be_missing = |resource: &Arc<Resource>| {
        !is_built_in(&resource.api_version(), &resource.kind) || resource.group_kind() == namespace
    };
    if past.unlisted.is_empty() && !resources.into_iter().any(may_be_missing) {
        return Vec::new();
    }
    let right = |verb, group: &str, resource: &str| Right {
        namespace: None,
        group: group.to_owned(),
        resource: resource.to_owned(),
        verb,
        name: None,
    };
    vec![
        right(Verb::Get, "apiextensions.k8s.io", "customresourcedefinitions"),
        right(Verb::List, "apiextensions.k8s.io", "customresourcedefinitions"),
        right(Verb::List, "apiregistration.k8s.io", "apiservices"),
    ]
}

/// The definition of a kind is pruned only when all objects of that kind are known to
/// go with the set (`plan::contents`). Its name is made of theirs.
fn to_see_what_goes_along(key: &ObjectKey) -> Option<Right> {
    let definition = GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");
    let (plural, group) = key
        .name
        .split_once('.')
        .filter(|_| key.group_kind == definition)?;
    Some(Right {
        namespace: None,
        group: group.to_owned(),
        resource: plural.to_owned(),
        verb: Verb::List,
        name: None,
    })
}

/// `execute::parent`: a bare parent is created by POST, which names no object; one with
/// a manifest by an apply, which does. A custom resource is never made up.
fn on_parent(set: &Set, resource: &Resource, desired: &Desired) -> Vec<Right> {
    let parent = &set.parent;
    let right = |verb| Right::on(verb, resource, parent.namespace.as_deref());
    let mut rights = vec![
        right(Verb::Get).named(&parent.name),
        right(Verb::Patch).named(&parent.name),
        // With the set. Whoever may patch the parent can already take the set's record off.
        right(Verb::Delete).named(&parent.name),
    ];
    let is_custom = !resource.group.is_empty();
    if desired.parent.is_some() {
        rights.push(right(Verb::Create).named(&parent.name));
    } else if !is_custom {
        rights.push(right(Verb::Create));
    }
    if is_custom {
        rights.push(Right {
            namespace: None,
            group: "apiextensions.k8s.io".to_owned(),
            resource: "customresourcedefinitions".to_owned(),
            verb: Verb::Get,
            name: Some(format!("{}.{}", resource.plural, resource.group)),
        });
    }
    rights
}

fn namespaces(set: &Set, desired: &Desired, past: &Past) -> BTreeSet<String> {
    let wanted = desired
        .members
        .iter()
        .filter_map(|member| member.key.namespace.clone());
    past.places
        .namespaces
        .iter()
        .cloned()
        .chain(set.parent.namespace.clone())
        .chain(wanted)
        .collect()
}

/// A namespace itself can be read with a right inside of it: the server takes the name
/// in its path for the namespace of the request.
fn read_namespace(namespace: &str) -> Right {
    Right {
        namespace: Some(namespace.to_owned()),
        group: String::new(),
        resource: "namespaces".to_owned(),
        verb: Verb::Get,
        name: Some(namespace.to_owned()),
    }
}

/// Members are looked for in every namespace of the set, whatever their kind.
fn to_list(namespaces: &BTreeSet<String>, desired: &Desired, past: &Past) -> BTreeSet<Right> {
    let wanted = desired.members.iter().map(|member| &member.resource);
    let kinds: BTreeMap<GroupKind, &Arc<Resource>> = past
        .places
        .resources
        .iter()
        .chain(wanted)
        .map(|resource| (resource.group_kind(), resource))
        .collect();
    kinds
        .into_values()
        .flat_map(|resource| match resource.scope {
            Scope::Cluster => vec![Right::on(Verb::List, resource, None)],
            Scope::Namespaced => namespaces
                .iter()
                .map(|namespace| Right::on(Verb::List, resource, Some(namespace)))
                .collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests;
