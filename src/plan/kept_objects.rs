//! Objects that a run keeps, and so the containers that must stay for them.

use std::collections::{HashMap, HashSet};

use super::container_kinds::{Container, container_kind};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::Live;

/// Kept objects, with one of them for each namespace and each kind.
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

    /// Returns whether the object is one of them.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.keys.contains(key)
    }

    /// Returns whether no object is kept.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns a kept object that deleting this container would delete.
    pub fn kept_object_in(&self, container: &Live) -> Option<&ObjectKey> {
        match container_kind(&container.key)? {
            Container::Namespace => self.in_namespace.get(&container.key.name),
            Container::CustomResourceDefinition => self.of_kind.get(container.defines.as_ref()?),
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
