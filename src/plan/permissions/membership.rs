//! The rights that a run needs to write part-of labels, and the records that go with them.

use std::collections::BTreeSet;

use crate::model::applyset::Record;
use crate::model::applyset::parent::{Reading, annotations};
use crate::model::live::Live;
use crate::model::parent_object::ParentObject;
use crate::model::permission::{Right, Verb};
use crate::model::resource::Resource;
use crate::model::set::Set;

/// To write the labels of these objects. One that changed meanwhile is read again.
pub fn to_relabel(objects: &[Live]) -> BTreeSet<Right> {
    let rights = objects.iter().flat_map(|live| {
        [Verb::Get, Verb::Patch]
            .map(|verb| Right::on(verb, &live.resource, live.key.namespace.as_deref()).named(&live.key.name))
    });
    rights.collect()
}

/// To make the parent record at least these places; none where it does already.
pub fn to_record(
    set: &Set,
    resource: &Resource,
    parent: Option<&ParentObject>,
    record: &Record,
) -> Option<Right> {
    let Some(parent) = parent else {
        // A bare parent is created by POST, which names no object.
        return Some(Right::on(Verb::Create, resource, set.parent.namespace.as_deref()));
    };
    let target = annotations(&set.tooling, record);
    let has = |(key, value): (&String, &serde_json::Value)| {
        parent.annotations.get(key).map(String::as_str) == value.as_str()
    };
    let is_recorded = matches!(parent.reading, Reading::Parent(_))
        && target.as_object().is_some_and(|pairs| pairs.iter().all(has));
    (!is_recorded).then(|| on_parent(set, resource))
}

/// To write the record of a parent that is there: to narrow it, or to take it off.
pub fn on_parent(set: &Set, resource: &Resource) -> Right {
    Right::on(Verb::Patch, resource, set.parent.namespace.as_deref()).named(&set.parent.name)
}

/// To end the set of a parent that is there. Whether the parent is deleted or has to record what
/// is left is known only in the end.
pub fn to_release(set: &Set, resource: &Resource) -> [Right; 2] {
    [Verb::Delete, Verb::Patch]
        .map(|verb| Right::on(verb, resource, set.parent.namespace.as_deref()).named(&set.parent.name))
}
