//! Permissions that a set with these manifests needs for its whole life: to create, change, wait, prune,
//! resume after an interruption, and delete.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::object_content;
use crate::cluster::discovery::{Discovery, KindLookup};
use crate::compare::ownership::ReplicasPath;
use crate::manifest::desired::Desired;
use crate::model::built_in_kinds::is_built_in;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::list_targets::ListTargets;
use crate::model::live::Live;
use crate::model::permission::{Permission, Verb};
use crate::model::resource::{Resource, Scope, Subresource};
use crate::model::set::Set;
use crate::plan::member_scope::list_namespaces;
use crate::plan::{Recreate, autoscaler_kinds, autoscalers_by_target};

/// Verbs that writing one member may need: reading it again, applying and pruning it.
const VERBS_ON_MEMBERS: [Verb; 4] = [Verb::Get, Verb::Create, Verb::Patch, Verb::Delete];

/// State of a set from earlier runs; empty for a new set. Anyone who may write the parent, or an object with the label
/// of the set, may have made it.
#[derive(Debug, Clone, Default)]
pub struct Past {
    /// Recorded kinds and namespaces.
    pub places: ListTargets,
    pub members: Vec<Live>,
    /// Recorded kinds that the server does not list.
    pub undiscovered: BTreeSet<GroupKind>,
}

/// Returns the permissions that runs with these manifests need, whatever the state of the set is when
/// they begin.
///
/// For namespaced objects, these are for all objects of the kind in each namespace of the set, so that
/// manifests may gain objects of the same kinds. For cluster-scoped objects, they are by name: permissions
/// for all namespaces or cluster roles of a cluster are far more than a set needs.
///
/// To list all namespaces is optional: a run that creates the parent finds members of a lost one with it.
pub fn needed_for_set(
    set: &Set,
    parent_resource: &Resource,
    desired: &Desired,
    past: &Past,
    discovery: &Discovery,
) -> BTreeSet<Permission> {
    let mut rights = BTreeSet::new();
    rights.extend(on_parent(set, parent_resource, desired));
    let namespaces = list_namespaces(set, desired, &past.places.namespaces);
    rights.extend(namespaces.iter().map(|namespace| read_namespace(namespace)));
    rights.extend(to_list(&namespaces, desired, past));
    rights.extend(to_see_what_is_gone(desired, past));
    let of_manifests = desired
        .members
        .iter()
        .map(|member| (&member.key, &member.resource));
    let live = past.members.iter().map(|live| (&live.key, &live.resource));
    for (key, resource) in of_manifests.chain(live) {
        rights.extend(VERBS_ON_MEMBERS.map(|verb| on_member(verb, key, resource)));
        // A watch cannot be limited to names, and shows only what the LIST shows.
        rights.insert(Permission::on(Verb::Watch, resource, key.namespace.as_deref()));
        rights.extend(to_see_what_goes_along(key));
    }
    for member in desired.members.iter().chain(&desired.parent) {
        rights.extend(object_content::permissions(member, desired, discovery));
    }
    rights.extend(to_read_dependencies(desired, discovery));
    rights.extend(to_find_autoscalers(desired, discovery));
    rights
}

/// Returns the permissions to recreate objects. The dry run that proves an object valid is a POST, which
/// names no object, so a permission by name does not allow it.
pub fn to_recreate(desired: &Desired, recreate: &Recreate) -> BTreeSet<Permission> {
    let mut rights = BTreeSet::new();
    for member in desired.members.iter().filter(|member| recreate.chooses(member)) {
        let namespace = member.key.namespace.as_deref();
        rights.insert(Permission::on(Verb::Create, &member.resource, namespace));
        rights.insert(on_member(Verb::Delete, &member.key, &member.resource));
    }
    rights
}

/// Returns the permission for a member. That for a cluster-scoped one is limited to its name.
fn on_member(verb: Verb, key: &ObjectKey, resource: &Resource) -> Permission {
    match resource.scope {
        Scope::Namespaced => Permission::on(verb, resource, key.namespace.as_deref()),
        Scope::Cluster => Permission::on_object(verb, resource, key),
    }
}

/// Permissions to read the objects that the manifests depend on and do not hold: they are read before
/// the first write, and one by one until they are Current.
fn to_read_dependencies(desired: &Desired, discovery: &Discovery) -> BTreeSet<Permission> {
    let held: BTreeSet<&ObjectKey> = desired.members.iter().map(|member| &member.key).collect();
    let named = desired.members.iter().flat_map(|member| &member.depends_on);
    let outside = named.filter(|key| !held.contains(key));
    let rights = outside.filter_map(|key| match discovery.preferred(&key.group_kind) {
        KindLookup::Found(resource) => Some(Permission::on_object(Verb::Get, resource, key)),
        KindLookup::Absent | KindLookup::GroupFailed(_) => None,
    });
    rights.collect()
}

/// Permissions to list the autoscalers of objects whose number of replicas is not in their manifests: it
/// may have just left them (`plan::autoscalers`). A run without them keeps the number.
fn to_find_autoscalers(desired: &Desired, discovery: &Discovery) -> BTreeSet<Permission> {
    let known = autoscalers_by_target(desired);
    let mut namespaces: BTreeSet<Option<&str>> = BTreeSet::new();
    for member in &desired.members {
        if member.resource.scale == Subresource::Listed
            && !known.contains_key(&member.key)
            && ReplicasPath::default().value_in(&member.object.value()).is_none()
        {
            namespaces.insert(member.key.namespace.as_deref());
        }
    }
    let mut rights = BTreeSet::new();
    for kind in autoscaler_kinds() {
        if let KindLookup::Found(resource) = discovery.preferred(&kind) {
            for namespace in &namespaces {
                rights.insert(Permission::on(Verb::List, resource, *namespace));
            }
        }
    }
    rights
}

/// Permissions to find out why discovery does not list a kind: it is gone only if neither a CRD nor an
/// APIService has it (`read::kinds_missing_from_discovery`). The contents of a namespace are known only if
/// discovery lists every kind. Kinds that are built into the API server do not change between two runs.
fn to_see_what_is_gone(desired: &Desired, past: &Past) -> Vec<Permission> {
    let of_manifests = desired.members.iter().map(|member| &member.resource);
    let mut resources = of_manifests.chain(&past.places.resources);
    let namespace = GroupKind::namespace();
    let may_be_missing = resources.any(|resource| {
        !is_built_in(&resource.api_version(), &resource.kind) || resource.group_kind() == namespace
    });
    if past.undiscovered.is_empty() && !may_be_missing {
        return Vec::new();
    }
    [
        (Verb::Get, "apiextensions.k8s.io", "customresourcedefinitions"),
        (Verb::List, "apiextensions.k8s.io", "customresourcedefinitions"),
        (Verb::List, "apiregistration.k8s.io", "apiservices"),
    ]
    .map(|(verb, group, resource)| Permission {
        namespace: None,
        group: group.to_owned(),
        resource: resource.to_owned(),
        verb,
        name: None,
    })
    .to_vec()
}

/// The permission to list the objects of a CRD before it is pruned: all of them have to be deleted with
/// the set (`plan::data_loss`). The name of the CRD names their resource.
fn to_see_what_goes_along(key: &ObjectKey) -> Option<Permission> {
    let definition = GroupKind::custom_resource_definition();
    let (plural, group) = key
        .name
        .split_once('.')
        .filter(|_| key.group_kind == definition)?;
    Some(Permission {
        namespace: None,
        group: group.to_owned(),
        resource: plural.to_owned(),
        verb: Verb::List,
        name: None,
    })
}

/// Permissions for the parent. Without a manifest, it is created by POST, which names no object; with one,
/// by an apply, which does. A custom resource is never created without a manifest.
fn on_parent(set: &Set, resource: &Resource, desired: &Desired) -> Vec<Permission> {
    let right = |verb| Permission::on_object(verb, resource, &set.parent);
    let mut rights = vec![
        right(Verb::Get),
        right(Verb::Patch),
        // To delete the set. A user who may patch the parent can remove the set's record anyway.
        right(Verb::Delete),
    ];
    let is_custom = !resource.group.is_empty();
    if desired.parent.is_some() {
        rights.push(right(Verb::Create));
    } else if !is_custom {
        rights.push(right(Verb::Create).on_all());
    }
    if is_custom {
        rights.push(Permission {
            namespace: None,
            group: "apiextensions.k8s.io".to_owned(),
            resource: "customresourcedefinitions".to_owned(),
            verb: Verb::Get,
            name: Some(format!("{}.{}", resource.plural, resource.group)),
        });
    }
    rights
}

/// The permission to read a namespace, inside of itself: for the server, the name in the path is the
/// namespace of the request.
fn read_namespace(namespace: &str) -> Permission {
    Permission {
        namespace: Some(namespace.to_owned()),
        group: String::new(),
        resource: "namespaces".to_owned(),
        verb: Verb::Get,
        name: Some(namespace.to_owned()),
    }
}

/// Permissions to list members: of every kind in every namespace of the set.
fn to_list(namespaces: &BTreeSet<String>, desired: &Desired, past: &Past) -> BTreeSet<Permission> {
    let of_manifests = desired.members.iter().map(|member| &member.resource);
    let kinds: BTreeMap<GroupKind, &Arc<Resource>> = past
        .places
        .resources
        .iter()
        .chain(of_manifests)
        .map(|resource| (resource.group_kind(), resource))
        .collect();
    kinds
        .into_values()
        .flat_map(|resource| match resource.scope {
            Scope::Cluster => vec![Permission::on(Verb::List, resource, None)],
            Scope::Namespaced => namespaces
                .iter()
                .map(|namespace| Permission::on(Verb::List, resource, Some(namespace)))
                .collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests;
