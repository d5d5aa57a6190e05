//! Phrases in the messages of refusals.

use std::collections::BTreeMap;

use super::super::OtherParent;
use crate::model::applyset::Tooling;
use crate::model::identity::ObjectKey;
use crate::model::text::{counted, first_listed, listed};

/// The number of members that are named of a whole set.
const FEW: usize = 3;

pub(super) fn this_is(tooling: &Tooling) -> String {
    if tooling.is_same_program(&Tooling::of_this_program()) {
        format!("{tooling}")
    } else {
        format!("{tooling} of --tooling")
    }
}

pub(super) fn other_set(parent: &OtherParent, id: &str) -> String {
    match parent {
        OtherParent::Found(parent) => format!("{parent}"),
        OtherParent::Gone => format!("a set without a parent ({id})"),
        OtherParent::Unlisted => format!("a set whose parent is gone or not visible to you ({id})"),
    }
}

pub(super) fn outside(namespace: Option<&str>, objects: &[ObjectKey]) -> String {
    let count = counted(objects.len(), "object");
    match namespace {
        Some(namespace) => format!("{count} outside namespace {namespace}"),
        None => count,
    }
}

/// Lists objects, each with the annotation or label that keeps it.
pub fn with_keep_annotations(
    objects: &[ObjectKey],
    keep_annotations: &BTreeMap<ObjectKey, String>,
) -> String {
    listed(objects.iter().map(|key| match keep_annotations.get(key) {
        Some(keep_annotation) => format!("{key} (kept by {keep_annotation})"),
        None => key.to_string(),
    }))
}

/// Says that these members would be pruned, and no other is left; nothing if there are none.
pub(super) fn describe_prune_of_all(objects: &[ObjectKey]) -> String {
    if objects.is_empty() {
        return String::new();
    }
    format!("; all members would be pruned: {}", listed(objects))
}

/// What becomes of the members of a set that is disbanded, and of objects with a copy of its label.
pub(super) fn describe_release(members: usize, copies: &[ObjectKey]) -> String {
    let mut parts = Vec::new();
    if members > 0 || copies.is_empty() {
        parts.push(format!("{} kept", counted(members, "object")));
    }
    parts.extend(describe_released_copies(copies));
    parts.join("; ")
}

/// `the label is also removed from 1 object that is not a member: configmap/a`
pub fn describe_released_copies(copies: &[ObjectKey]) -> Option<String> {
    let objects = match copies.len() {
        0 => return None,
        1 => "1 object that is not a member".to_owned(),
        count => format!("{count} objects that are not members"),
    };
    Some(format!(
        "the label is also removed from {objects}: {}",
        listed(copies)
    ))
}

pub(super) fn with_objects(objects: &[ObjectKey]) -> String {
    if objects.is_empty() {
        return String::new();
    }
    let count = counted(objects.len(), "object");
    format!(" with {count}: {}", first_listed(FEW, objects))
}

/// Describes the objects that would be lost with a container.
pub(in super::super) fn losses(lost: &[ObjectKey], unknown: &[String]) -> String {
    let mut losses = Vec::new();
    if !lost.is_empty() {
        let objects = counted(lost.len(), "object");
        losses.push(format!(
            "{objects} that this run does not prune: {}",
            listed(lost)
        ));
    }
    if !unknown.is_empty() {
        losses.push(format!("objects that cannot be listed: {}", listed(unknown)));
    }
    losses.join(", and ")
}
