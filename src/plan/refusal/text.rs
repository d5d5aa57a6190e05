//! Phrases in the messages of refusals.

use std::collections::BTreeMap;

use super::super::OtherParent;
use crate::model::applyset::Tooling;
use crate::model::identity::ObjectKey;
use crate::model::text::{counted, listed};

pub(super) fn this_is(tooling: &Tooling) -> String {
    if tooling.is_same_program(&Tooling::ours()) {
        format!("this is {tooling}")
    } else {
        format!("--tooling names {tooling}")
    }
}

pub(super) fn other_set(parent: &OtherParent, id: &str) -> String {
    match parent {
        OtherParent::Found(parent) => format!("the set of {parent}"),
        OtherParent::Gone => format!("another set, {id}, whose parent is gone"),
        OtherParent::Unlisted => format!("another set, {id}, whose parent is gone or not yours to see"),
    }
}

pub(super) fn outside(namespace: Option<&str>, objects: &[ObjectKey]) -> String {
    let count = counted(objects.len(), "object");
    match namespace {
        Some(namespace) => format!("{count} outside of namespace {namespace}"),
        None => count,
    }
}

/// Lists objects, each with the annotation or label that keeps it.
pub fn with_marks(objects: &[ObjectKey], marks: &BTreeMap<ObjectKey, String>) -> String {
    listed(objects.iter().map(|key| match marks.get(key) {
        Some(mark) => format!("{key} (kept by its mark {mark})"),
        None => key.to_string(),
    }))
}

/// The objects after a colon; nothing if there are none.
pub(super) fn after_colon(objects: &[ObjectKey]) -> String {
    if objects.is_empty() {
        return String::new();
    }
    format!(": {}", listed(objects))
}

pub(super) fn with_objects(objects: &[ObjectKey]) -> String {
    if objects.is_empty() {
        return String::new();
    }
    let count = counted(objects.len(), "object");
    format!(", and with it {count}: {}", listed(objects))
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
        losses.push(format!(
            "whatever there is of these, which could not be listed: {}",
            listed(unknown)
        ));
    }
    losses.join(", and ")
}
