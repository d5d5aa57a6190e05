//! Indexes of objects by namespace and kind: they find what a container holds without a look at every
//! object.

use std::collections::{HashMap, HashSet};

use super::container::{Container, container};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::Live;

/// Index of all objects that a container holds.
#[derive(Debug, Default)]
pub(super) struct ContainerIndex<'a> {
    in_namespace: HashMap<&'a str, Vec<&'a ObjectKey>>,
    of_kind: HashMap<&'a GroupKind, Vec<&'a ObjectKey>>,
}

impl<'a> ContainerIndex<'a> {
    /// Indexes these objects.
    pub(super) fn of(keys: impl Iterator<Item = &'a ObjectKey>) -> Self {
        let mut index = Self::default();
        for key in keys {
            if let Some(namespace) = &key.namespace {
                index.in_namespace.entry(namespace).or_default().push(key);
            }
            index.of_kind.entry(&key.group_kind).or_default().push(key);
        }
        index
    }

    /// Returns the objects that deleting `live` would delete.
    pub(super) fn held_by(&self, live: &Live) -> &[&'a ObjectKey] {
        let held = match container(&live.key) {
            Some(Container::Namespace) => self.in_namespace.get(live.key.name.as_str()),
            Some(Container::CustomResourceDefinition) => {
                live.defines.as_ref().and_then(|kind| self.of_kind.get(kind))
            }
            None => None,
        };
        held.map_or(&[], Vec::as_slice)
    }
}

/// Kept objects, with one of them for each namespace and each kind.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    keys: HashSet<ObjectKey>,
    in_namespace: HashMap<String, ObjectKey>,
    of_kind: HashMap<GroupKind, ObjectKey>,
}

impl Kept {
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
    pub fn held_by(&self, live: &Live) -> Option<&ObjectKey> {
        match container(&live.key)? {
            Container::Namespace => self.in_namespace.get(&live.key.name),
            Container::CustomResourceDefinition => self.of_kind.get(live.defines.as_ref()?),
        }
    }
}

impl<'a> FromIterator<&'a ObjectKey> for Kept {
    fn from_iter<I: IntoIterator<Item = &'a ObjectKey>>(keys: I) -> Self {
        let mut kept = Self::default();
        keys.into_iter().for_each(|key| kept.add(key));
        kept
    }
}
