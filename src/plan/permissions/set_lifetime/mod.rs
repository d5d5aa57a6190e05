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
use crate::plan::{Recreate, autoscalers, desired_autoscalers_by_target};

/// Verbs that writing one member needs: to apply it and to prune it.
const WRITES_OF_MEMBERS: [Verb; 3] = [Verb::Create, Verb::Patch, Verb::Delete];

/// State of a set from earlier runs; empty for a new set.
///
/// Do not trust it: anyone who may write the parent, or label an object as a member, can change it, and so ask for
/// permissions that no manifest needs.
#[derive(Debug, Clone, Default)]
pub struct Past {
    /// The recorded kinds and namespaces.
    pub places: ListTargets,
    pub members: Vec<Live>,
    /// The recorded kinds that discovery does not list.
    pub undiscovered: BTreeSet<GroupKind>,
}

/// Returns the permissions that runs with these manifests need, whatever the state of the set is when
/// they begin.
///
/// For a namespaced kind, the permissions hold for all its objects in each namespace of the set, so that manifests may
/// gain objects of the same kinds. For a cluster-scoped kind, they hold for single objects by name: a set does not need
/// permissions for all namespaces or cluster roles of a cluster.
///
/// The permission to list all namespaces is not among them, because runs work without it. If a parent was lost, a run
/// that creates it again uses that permission to find the members in namespaces that the manifests do not name.
pub fn needed_for_every_run(
    set: &Set,
    parent_resource: &Resource,
    desired: &Desired,
    past: &Past,
    discovery: &Discovery,
) -> BTreeSet<Permission> {
    let mut needed = needed_to_compare(set, parent_resource, desired, past, discovery);
    needed.extend(needed_for_parent(set, parent_resource, desired));
    for (key, resource) in members_of_manifests_and_past(desired, past) {
        needed.extend(WRITES_OF_MEMBERS.map(|verb| needed_for_member(verb, key, resource)));
    }
    needed.extend(needed_to_judge_pods(desired, discovery));
    for member in desired.members.iter().chain(&desired.parent) {
        needed.extend(object_content::needed_for_content(member));
    }
    needed
}

/// Returns the permissions that a read-only comparison with these manifests needs, whatever the state of the set is when
/// it begins: to get and list what a run reads.
pub fn needed_to_compare(
    set: &Set,
    parent_resource: &Resource,
    desired: &Desired,
    past: &Past,
    discovery: &Discovery,
) -> BTreeSet<Permission> {
    let for_parent = needed_for_parent(set, parent_resource, desired).into_iter();
    let mut needed: BTreeSet<Permission> = for_parent
        .filter(|permission| permission.verb == Verb::Get)
        .collect();
    let namespaces = list_namespaces(set, desired, &past.places.namespaces);
    needed.extend(
        namespaces
            .iter()
            .map(|namespace| needed_to_read_namespace(namespace)),
    );
    needed.extend(needed_to_list_members(&namespaces, desired, past));
    needed.extend(needed_to_explain_missing_kinds(desired, past));
    for (key, resource) in members_of_manifests_and_past(desired, past) {
        needed.insert(needed_for_member(Verb::Get, key, resource));
        needed.extend(needed_to_list_objects_of_crd(key));
    }
    needed.extend(needed_to_read_dependencies(desired, discovery));
    needed.extend(needed_to_list_autoscalers(desired, discovery));
    needed
}

fn members_of_manifests_and_past<'a>(
    desired: &'a Desired,
    past: &'a Past,
) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Resource>)> {
    let of_manifests = desired.members.iter();
    let live = past.members.iter().map(|live| (&live.key, &live.resource));
    of_manifests
        .map(|member| (&member.key, &member.resource))
        .chain(live)
}

/// Returns the permissions to recreate the objects that `recreate` chooses.
///
/// Before the delete, a dry run of a POST proves that the new object is valid. For RBAC, a POST names no object, so
/// `create` is needed for all objects of the kind, even of a cluster-scoped one.
pub fn needed_to_recreate(desired: &Desired, recreate: &Recreate) -> BTreeSet<Permission> {
    let mut needed = BTreeSet::new();
    for member in desired.members.iter().filter(|member| recreate.chooses(member)) {
        let namespace = member.key.namespace.as_deref();
        needed.insert(Permission::on_all_objects(
            Verb::Create,
            &member.resource,
            namespace,
        ));
        needed.insert(needed_for_member(Verb::Delete, &member.key, &member.resource));
    }
    needed
}

/// Returns the permission for a member: by name for a cluster-scoped member, and otherwise for all objects of its kind
/// in its namespace.
fn needed_for_member(verb: Verb, key: &ObjectKey, resource: &Resource) -> Permission {
    match resource.scope {
        Scope::Namespaced => Permission::on_all_objects(verb, resource, key.namespace.as_deref()),
        Scope::Cluster => Permission::on_object(verb, resource, key),
    }
}

/// Returns the permissions to read the objects that the manifests depend on and do not hold. A run reads them before
/// the first write, and then again and again, each on its own, until they are Current.
fn needed_to_read_dependencies(desired: &Desired, discovery: &Discovery) -> BTreeSet<Permission> {
    let desired_keys: BTreeSet<&ObjectKey> = desired.members.iter().map(|member| &member.key).collect();
    let dependencies = desired.members.iter().flat_map(|member| &member.depends_on);
    let outside = dependencies.filter(|key| !desired_keys.contains(key));
    let needed = outside.filter_map(|key| match discovery.find_preferred(&key.group_kind) {
        KindLookup::Found(resource) => Some(Permission::on_object(Verb::Get, resource, key)),
        // Without its resource, there is nothing to grant.
        KindLookup::Absent | KindLookup::GroupFailed(_) => None,
    });
    needed.collect()
}

/// Returns the permissions to list the autoscalers of objects whose number of replicas is not in their manifests: the
/// number may have been removed from the manifest since the last run (`plan::autoscalers`). Without these permissions,
/// a run keeps the number.
fn needed_to_list_autoscalers(desired: &Desired, discovery: &Discovery) -> BTreeSet<Permission> {
    let known = desired_autoscalers_by_target(desired);
    let mut namespaces: BTreeSet<Option<&str>> = BTreeSet::new();
    for member in &desired.members {
        if member.resource.scale == Subresource::Listed
            && !known.contains_key(&member.key)
            && ReplicasPath::spec_replicas()
                .value_in(&member.object.value())
                .is_none()
        {
            namespaces.insert(member.key.namespace.as_deref());
        }
    }
    let mut needed = BTreeSet::new();
    for kind in autoscalers() {
        if let KindLookup::Found(resource) = discovery.find_preferred(&kind) {
            for namespace in &namespaces {
                needed.insert(Permission::on_all_objects(Verb::List, resource, *namespace));
            }
        }
    }
    needed
}

/// Returns the permissions to find out during a wait why a workload is not ready, and whether it has failed: to list its
/// Pods, the events about them, and the ReplicaSets of a Deployment. Without them, the wait continues until its time
/// is over.
fn needed_to_judge_pods(desired: &Desired, discovery: &Discovery) -> BTreeSet<Permission> {
    let mut needed = BTreeSet::new();
    for member in &desired.members {
        let GroupKind { group, kind } = &member.key.group_kind;
        let lists: &[(&str, &str)] = match (group.as_str(), kind.as_str()) {
            ("apps", "Deployment") => &[("", "Pod"), ("", "Event"), ("apps", "ReplicaSet")],
            ("apps", "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") => {
                &[("", "Pod"), ("", "Event")]
            }
            _ => &[],
        };
        for (group, kind) in lists {
            if let KindLookup::Found(resource) = discovery.find_preferred(&GroupKind::new(*group, *kind)) {
                let namespace = member.key.namespace.as_deref();
                needed.insert(Permission::on_all_objects(Verb::List, resource, namespace));
            }
        }
    }
    needed
}

/// Returns the permissions to find out why discovery does not list a kind: the kind is gone only if neither a CRD nor
/// an `APIService` defines it (`read::kinds_missing_from_discovery`).
///
/// A set needs them if a kind is missing now, or may be missing in a later run: any kind that is not built into the API
/// server may be. A set with a namespace needs them, too: before a run prunes the namespace, it lists the contents, and
/// these are known only if discovery lists every kind.
fn needed_to_explain_missing_kinds(desired: &Desired, past: &Past) -> Vec<Permission> {
    let of_manifests = desired.members.iter().map(|member| &member.resource);
    let mut resources = of_manifests.chain(&past.places.resources);
    let namespace = GroupKind::for_namespaces();
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
    .map(|(verb, group, resource)| Permission::cluster_wide(verb, group, resource))
    .to_vec()
}

/// Returns the permission to list the objects of a CRD; `None` if the object is not a CRD. Before a run prunes the CRD,
/// it lists its objects: all of them have to be members that are pruned with it (`plan::data_loss`).
fn needed_to_list_objects_of_crd(key: &ObjectKey) -> Option<Permission> {
    if key.group_kind != GroupKind::custom_resource_definition() {
        return None;
    }
    // A CRD is named after its resource: `PLURAL.GROUP`.
    let (plural, group) = key.name.split_once('.')?;
    Some(Permission::cluster_wide(Verb::List, group, plural))
}

/// Returns the permissions for the parent.
///
/// A parent with a manifest is created by an apply, so `create` is limited to its name. A parent without a manifest is
/// created by POST. For RBAC, a POST names no object, so `create` holds for all objects of the kind. A custom resource
/// is never created without a manifest.
fn needed_for_parent(set: &Set, parent_resource: &Resource, desired: &Desired) -> Vec<Permission> {
    let on_parent = |verb| Permission::on_object(verb, parent_resource, &set.parent);
    let mut needed = vec![
        on_parent(Verb::Get),
        on_parent(Verb::Patch),
        // To delete the set. That grants little more than `patch`, with which a user can already remove the record.
        on_parent(Verb::Delete),
    ];
    let is_custom_resource = !parent_resource.group.is_empty();
    if desired.parent.is_some() {
        needed.push(on_parent(Verb::Create));
    } else if !is_custom_resource {
        needed.push(on_parent(Verb::Create).without_name());
    }
    if is_custom_resource {
        // The CRD has the label that permits its objects to be parents.
        needed.push(Permission {
            name: Some(format!("{}.{}", parent_resource.plural, parent_resource.group)),
            ..Permission::cluster_wide(Verb::Get, "apiextensions.k8s.io", "customresourcedefinitions")
        });
    }
    needed
}

/// Returns the permission to read a namespace, which a role in that namespace can grant: the API server treats the name
/// in the path `/api/v1/namespaces/NAME` as the namespace of the request.
fn needed_to_read_namespace(namespace: &str) -> Permission {
    Permission {
        namespace: Some(namespace.to_owned()),
        name: Some(namespace.to_owned()),
        ..Permission::cluster_wide(Verb::Get, "", "namespaces")
    }
}

/// Returns the permissions to list members: objects of each kind in each namespace of the set.
fn needed_to_list_members(
    namespaces: &BTreeSet<String>,
    desired: &Desired,
    past: &Past,
) -> BTreeSet<Permission> {
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
            Scope::Cluster => vec![Permission::on_all_objects(Verb::List, resource, None)],
            Scope::Namespaced => namespaces
                .iter()
                .map(|namespace| Permission::on_all_objects(Verb::List, resource, Some(namespace)))
                .collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests;
