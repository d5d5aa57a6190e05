//! Containers: namespaces and definitions of kinds, which hold other objects, and their owners.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::identity::{GroupKind, ObjectKey};
use super::namespace::NamespaceState;
use super::resource::Resource;

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
