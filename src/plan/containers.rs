//! Containers, which are namespaces and CRDs: deleting a container deletes the objects in it. If the garbage collector
//! deletes the container of a desired or kept object, that object is deleted, too.
//!
//! An `APIService` holds the objects of its group in a similar way: deleting it deletes none of them, but afterwards
//! nobody can read or delete them.
//!
//! The indexes find the objects of a container without a look at every object.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::{Plan, Skip};
use crate::manifest::desired::Desired;
use crate::model::built_in_kinds::is_built_in;
use crate::model::containers::Containers;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::model::set::Set;

/// Returns whether deleting this object deletes the objects in it.
pub fn is_namespace_or_crd(live: &Live) -> bool {
    is_namespace_or_crd_kind(&live.key.group_kind)
}

/// Returns whether deleting an object of this kind deletes the objects in it.
pub fn is_namespace_or_crd_kind(kind: &GroupKind) -> bool {
    matches!(
        (kind.group.as_str(), kind.kind.as_str()),
        ("", "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition")
    )
}

/// Returns the group that this `APIService` serves, whose name is `VERSION.GROUP`; `None` for any other object.
pub(super) fn group_of_api_service(key: &ObjectKey) -> Option<&str> {
    let (_, group) = key.name.split_once('.')?;
    key.group_kind.is_api_service().then_some(group)
}

/// Returns whether deleting the object would delete the set's parent: it is the parent's namespace, or
/// the CRD of its kind.
pub fn holds_parent_of(set: &Set, live: &Live) -> bool {
    let is_parent_namespace =
        live.key.group_kind.is_namespace() && Some(&live.key.name) == set.parent.namespace.as_ref();
    is_parent_namespace || live.defines.as_ref() == Some(&set.parent.group_kind)
}

/// Returns the kind that a CRD defines; `None` for an object that is not a CRD but has the fields of one.
fn kind_defined_by_live_crd(live: &Live) -> Option<&GroupKind> {
    live.defines.as_ref().filter(|_| is_namespace_or_crd(live))
}

/// Index of all objects that a container holds.
#[derive(Debug, Clone, Default)]
pub(super) struct ContainerIndex<'a> {
    in_namespace: HashMap<&'a str, Vec<&'a ObjectKey>>,
    in_group: HashMap<&'a str, Vec<&'a ObjectKey>>,
    of_kind: HashMap<&'a GroupKind, Vec<&'a ObjectKey>>,
}

impl<'a> ContainerIndex<'a> {
    pub(super) fn new(keys: impl Iterator<Item = &'a ObjectKey>) -> Self {
        let mut index = Self::default();
        for key in keys {
            if let Some(namespace) = &key.namespace {
                index.in_namespace.entry(namespace).or_default().push(key);
            }
            index.in_group.entry(&key.group_kind.group).or_default().push(key);
            index.of_kind.entry(&key.group_kind).or_default().push(key);
        }
        index
    }

    /// Returns the objects that would be lost with this container or `APIService`; none if the object is neither.
    pub(super) fn objects_in(&self, container: &Live) -> &[&'a ObjectKey] {
        let held = if container.key.group_kind.is_namespace() {
            self.in_namespace.get(container.key.name.as_str())
        } else if let Some(group) = group_of_api_service(&container.key) {
            self.in_group.get(group)
        } else {
            kind_defined_by_live_crd(container).and_then(|kind| self.of_kind.get(kind))
        };
        held.map_or(&[], Vec::as_slice)
    }
}

/// Kept objects. For each namespace and each kind, the first that was added is the one to report.
#[derive(Debug, Clone, Default)]
pub struct KeptObjects {
    keys: HashSet<ObjectKey>,
    in_namespace: HashMap<String, ObjectKey>,
    of_kind: HashMap<GroupKind, ObjectKey>,
}

impl KeptObjects {
    /// Adds an object.
    pub fn add(&mut self, key: &ObjectKey) {
        if !self.keys.insert(key.clone()) {
            return;
        }
        if let Some(namespace) = &key.namespace
            && !self.in_namespace.contains_key(namespace)
        {
            self.in_namespace.insert(namespace.clone(), key.clone());
        }
        if !self.of_kind.contains_key(&key.group_kind) {
            self.of_kind.insert(key.group_kind.clone(), key.clone());
        }
    }

    /// Returns whether this object is kept.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.keys.contains(key)
    }

    /// Returns whether no object is kept.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns whether this object is kept, or is a container of a kept object.
    pub fn contains_object_or_content(&self, live: &Live) -> bool {
        self.contains(&live.key) || self.kept_object_in(live).is_some()
    }

    /// Returns a kept object that would be lost with this container or `APIService`.
    pub fn kept_object_in(&self, container: &Live) -> Option<&ObjectKey> {
        if container.key.group_kind.is_namespace() {
            self.in_namespace.get(&container.key.name)
        } else if let Some(group) = group_of_api_service(&container.key) {
            let kept = self.of_kind.values();
            kept.filter(|key| key.group_kind.group == group).min()
        } else {
            self.of_kind.get(kind_defined_by_live_crd(container)?)
        }
    }
}

impl<'a> FromIterator<&'a ObjectKey> for KeptObjects {
    fn from_iter<I: IntoIterator<Item = &'a ObjectKey>>(keys: I) -> Self {
        let mut kept = Self::default();
        keys.into_iter().for_each(|key| kept.add(key));
        kept
    }
}

/// Returns the containers that hold the parent, desired objects or kept objects, and that the plan does not prune.
/// Returns none if the plan deletes nothing that can own a container. `parent` is the resource of the parent, if there
/// is one.
pub fn find_containers_of_staying_objects_in_plan(
    set: &Set,
    parent: Option<&Arc<Resource>>,
    desired: &Desired,
    plan: &Plan,
) -> Containers {
    containers_that_stay(set, parent, desired, plan.all_prunes(), &plan.skips)
}

/// Returns the containers of the parent, of desired objects and of `skips`, for a run that deletes `prunes`. Returns
/// none if no prune is cluster-scoped: a namespaced object cannot own a namespace or a CRD.
pub(super) fn containers_that_stay<'p>(
    set: &Set,
    parent: Option<&Arc<Resource>>,
    desired: &Desired,
    prunes: impl Iterator<Item = &'p Live> + Clone,
    skips: &[Skip],
) -> Containers {
    let mut found = Containers::default();
    if prunes.clone().all(|live| live.key.namespace.is_some()) {
        return found;
    }
    let mut staying: Vec<(&ObjectKey, &Arc<Resource>)> = Vec::new();
    staying.extend(
        desired
            .members
            .iter()
            .map(|object| (&object.key, &object.resource)),
    );
    let kept = skips.iter().filter(|skip| skip.stays_despite_pruning());
    staying.extend(kept.map(|skip| (&skip.live.key, &skip.live.resource)));
    staying.extend(parent.map(|resource| (&set.parent, resource)));
    // The owners of a pruned container need not be read: because of the objects that stay in it, the run is refused, or
    // keeps the container.
    let pruned: BTreeSet<&ObjectKey> = prunes.map(|live| &live.key).collect();
    for (key, resource) in staying {
        if let Some(name) = &key.namespace
            && !pruned.contains(&Containers::namespace_key(name))
        {
            found.namespaces.insert(name.clone());
        }
        if may_have_crd(resource) {
            let key = Containers::crd_key(resource);
            if !pruned.contains(&key) {
                found
                    .definitions
                    .entry(key)
                    .or_insert_with(|| Arc::clone(resource));
            }
        }
    }
    found
}

/// Returns whether a CRD may define this resource: it is in a group, and not built into the API server.
fn may_have_crd(resource: &Resource) -> bool {
    !resource.group.is_empty() && !is_built_in(&resource.api_version(), &resource.kind)
}
