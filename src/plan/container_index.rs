//! The index of objects by namespace and kind: it finds what a container holds without a look at every
//! object.

use std::collections::HashMap;

use super::container_kinds::{Container, container_kind};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::Live;

/// Index of all objects that a container holds.
#[derive(Debug, Clone, Default)]
pub(super) struct ContainerIndex<'a> {
    in_namespace: HashMap<&'a str, Vec<&'a ObjectKey>>,
    of_kind: HashMap<&'a GroupKind, Vec<&'a ObjectKey>>,
}

impl<'a> ContainerIndex<'a> {
    pub(super) fn new(keys: impl Iterator<Item = &'a ObjectKey>) -> Self {
        let mut index = Self::default();
        for key in keys {
            if let Some(namespace) = &key.namespace {
                index.in_namespace.entry(namespace).or_default().push(key);
            }
            index.of_kind.entry(&key.group_kind).or_default().push(key);
        }
        index
    }

    /// Returns the objects that deleting this container would delete; none if it is not a container.
    pub(super) fn objects_in(&self, container: &Live) -> &[&'a ObjectKey] {
        let held = match container_kind(&container.key) {
            Some(Container::Namespace) => self.in_namespace.get(container.key.name.as_str()),
            Some(Container::CustomResourceDefinition) => {
                container.defines.as_ref().and_then(|kind| self.of_kind.get(kind))
            }
            None => None,
        };
        held.map_or(&[], Vec::as_slice)
    }
}
