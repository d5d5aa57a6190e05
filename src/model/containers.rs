//! Containers, which are namespaces and the definitions of kinds: what they hold, which is deleted with them, and their
//! owners.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::identity::{GroupKind, ObjectKey};
use super::live::Presence;
use super::resource::Resource;

/// What a namespace or the definition of a kind holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// Objects in it that are not being deleted.
    pub objects: Vec<HeldObject>,
    /// Resources that could not be listed.
    pub unknown: Vec<String>,
    /// Aggregated APIs that do not answer, by the names of their `APIService`s, with the reason. A namespace may hold
    /// objects of theirs.
    pub unanswering: BTreeMap<String, String>,
}

/// An object in a namespace or of a defined kind, as far as decisions need to know it: a
/// namespace may hold any number of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldObject {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: String,
    /// The UIDs of its owners.
    pub owners: Vec<String>,
    /// The annotation or label that keeps it from being deleted, as `key: value`.
    pub keep_annotation: Option<String>,
}

impl Contents {
    /// Each object once, under whichever group it was seen first, in a settled order.
    pub fn settle(&mut self) {
        self.objects.sort_by(|one, other| one.uid.cmp(&other.uid));
        self.objects.dedup_by(|one, other| one.uid == other.uid);
        self.objects.sort_by(|one, other| one.key.cmp(&other.key));
        self.objects.shrink_to_fit();
        self.unknown.sort();
    }
}

/// What is known of a namespace that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceState {
    /// Its UID; `None` where the user may not read it.
    pub uid: Option<String>,
    /// The set that it is a member of.
    pub part_of: Option<String>,
    /// Whether it is being deleted, with everything in it.
    pub presence: Presence,
    /// The UIDs of its owners.
    pub owners: Vec<String>,
}

/// Containers whose owners matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Containers {
    /// Names of namespaces.
    pub namespaces: BTreeSet<String>,
    /// The resources that are defined, by their definitions. A resource may turn out to have none.
    pub definitions: BTreeMap<ObjectKey, Arc<Resource>>,
}

/// The owners of one namespace or definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owners {
    /// Their UIDs.
    Known(Vec<String>),
    /// The user may not read them.
    Forbidden,
}

impl Owners {
    /// The owners of a namespace.
    pub fn from_namespace(namespace: &NamespaceState) -> Self {
        match namespace.uid {
            Some(_) => Self::Known(namespace.owners.clone()),
            None => Self::Forbidden,
        }
    }
}

impl Containers {
    /// The key of a namespace.
    pub fn namespace_key(name: &str) -> ObjectKey {
        cluster_key(GroupKind::namespace(), name.to_owned())
    }

    /// The key that the definition of a resource has, if there is one.
    pub fn definition_key(resource: &Resource) -> ObjectKey {
        let name = resource.definition_name();
        cluster_key(GroupKind::custom_resource_definition(), name)
    }
}

fn cluster_key(group_kind: GroupKind, name: String) -> ObjectKey {
    ObjectKey {
        group_kind,
        namespace: None,
        name,
    }
}
