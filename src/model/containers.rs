//! Namespaces and CRDs, called containers here: when one is deleted, the server deletes its contents, too. These are
//! the contents and the owners of containers, as plans need them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::identity::{GroupKind, ObjectKey};
use super::live::Presence;
use super::resource::Resource;

/// The contents of a namespace or of a CRD.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// The objects in the container, except objects that are being deleted.
    pub objects: Vec<HeldObject>,
    /// The resources that could not be listed, so that it is unknown whether the container has objects of them.
    pub unknown: Vec<String>,
    /// The aggregated APIs that do not answer: the reason by the name of the `APIService`. A namespace may have objects
    /// of these APIs.
    pub unanswering: BTreeMap<String, String>,
}

/// An object in a container, reduced to the fields that plans need: a namespace may have any number of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldObject {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: String,
    /// The UIDs of the object's owners.
    pub owners: Vec<String>,
    /// The label or annotation by which the user asks not to delete the object, as `key: value`.
    pub keep_annotation: Option<String>,
}

impl Contents {
    /// Sorts the contents, and keeps each object once. An object that is served in two API groups (Ingress was) has two
    /// keys and one UID; the key that was read first is kept.
    pub fn sort_and_deduplicate(&mut self) {
        self.objects.sort_by(|one, other| one.uid.cmp(&other.uid));
        self.objects.dedup_by(|one, other| one.uid == other.uid);
        self.objects.sort_by(|one, other| one.key.cmp(&other.key));
        self.objects.shrink_to_fit();
        self.unknown.sort();
    }
}

/// The state of an existing namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceState {
    /// The UID of the namespace; `None` if the user may not read the namespace.
    pub uid: Option<String>,
    /// The id of the set that the namespace is a member of.
    pub part_of: Option<String>,
    /// The state of the namespace: present, or being deleted, and its contents with it.
    pub presence: Presence,
    /// The UIDs of the namespace's owners.
    pub owners: Vec<String>,
}

/// The containers of objects whose owners a plan needs to know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Containers {
    /// The names of the namespaces.
    pub namespaces: BTreeSet<String>,
    /// The resources by the keys of their CRDs. A resource of an aggregated API has no CRD: no object has its key.
    pub definitions: BTreeMap<ObjectKey, Arc<Resource>>,
}

/// The owners of one container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owners {
    /// The UIDs of the owners.
    Known(Vec<String>),
    /// The user may not read the container, or the server does not say whether it exists.
    Forbidden,
}

impl Owners {
    /// Returns the owners of a namespace.
    pub fn from_namespace(namespace: &NamespaceState) -> Self {
        match namespace.uid {
            Some(_) => Self::Known(namespace.owners.clone()),
            None => Self::Forbidden,
        }
    }
}

impl Containers {
    /// Returns the key of a namespace.
    pub fn namespace_key(name: &str) -> ObjectKey {
        cluster_scoped_key(GroupKind::for_namespaces(), name.to_owned())
    }

    /// Returns the key of the CRD of a resource, if it has one.
    pub fn crd_key(resource: &Resource) -> ObjectKey {
        let name = resource.crd_name();
        cluster_scoped_key(GroupKind::custom_resource_definition(), name)
    }
}

fn cluster_scoped_key(group_kind: GroupKind, name: String) -> ObjectKey {
    ObjectKey {
        group_kind,
        namespace: None,
        name,
    }
}
