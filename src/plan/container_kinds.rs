//! Containers: namespaces and CRDs. Deleting one deletes the objects in it.

use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::Live;
use crate::model::set::Set;

/// The kinds of containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Namespace,
    /// A CRD, which holds the objects of its kind.
    CustomResourceDefinition,
}

/// Returns whether deleting the object deletes others.
pub fn is_container(live: &Live) -> bool {
    container_kind(&live.key).is_some()
}

/// Returns whether deleting an object of this kind deletes others, so that it is never recreated.
pub fn is_container_kind(kind: &GroupKind) -> bool {
    container(kind).is_some()
}

/// Returns the kind of container that an object is, if it is one.
pub(super) fn container_kind(key: &ObjectKey) -> Option<Container> {
    container(&key.group_kind)
}

fn container(kind: &GroupKind) -> Option<Container> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Namespace") => Some(Container::Namespace),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Some(Container::CustomResourceDefinition),
        _ => None,
    }
}

/// Returns whether deleting the object would delete the set's parent: it is the parent's namespace, or
/// the CRD of its kind.
pub fn holds_parent_of(set: &Set, live: &Live) -> bool {
    let is_namespace = live.key.group_kind == GroupKind::new("", "Namespace");
    let is_parent_namespace = is_namespace && Some(&live.key.name) == set.parent.namespace.as_ref();
    is_parent_namespace || live.defines.as_ref() == Some(&set.parent.group_kind)
}
