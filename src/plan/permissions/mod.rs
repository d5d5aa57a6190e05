//! Permissions that a planned run needs (`planned_run`, `relabeling`), permissions that a set needs for its whole life
//! (`set_lifetime`), and the RBAC objects that grant them (`rbac_objects`).
//!
//! Pure: `session/permissions` has them checked before the first write, and `read/permissions` asks the server whether
//! the user has them.

mod object_content;
mod planned_run;
mod rbac_objects;
mod set_lifetime;

use std::collections::BTreeSet;

pub use planned_run::{needed_for_dry_run, needed_for_plan, needed_to_delete};
pub use rbac_objects::{RbacSubject, name, objects};
pub use set_lifetime::{Past, needed_for_set, to_recreate};

use crate::model::applyset::Record;
use crate::model::live::Live;
use crate::model::permission::{Permission, Verb};
use crate::model::resource::Resource;
use crate::model::set::{ParentObject, Set};

/// Permissions to write the labels of these objects. One that has changed is read again.
pub fn to_relabel(objects: &[Live]) -> BTreeSet<Permission> {
    let rights = objects.iter().flat_map(|live| {
        [Verb::Get, Verb::Patch].map(|verb| Permission::on_object(verb, &live.resource, &live.key))
    });
    rights.collect()
}

/// The permissions to write the parent of a run that takes in these objects; none if it writes nothing.
pub fn to_record(
    set: &Set,
    resource: &Resource,
    parent: Option<&ParentObject>,
    record: &Record,
    changes: &[Live],
) -> Vec<Permission> {
    let patch = on_parent(set, resource);
    match parent {
        // A bare parent is created by POST, which names no object.
        None => vec![
            Permission::on(Verb::Create, resource, set.parent.namespace.as_deref()),
            patch,
        ],
        Some(parent) if changes.is_empty() && parent.has_record(&set.tooling, record) => Vec::new(),
        Some(_) => vec![patch],
    }
}

/// The permission to narrow or remove the record of an existing parent.
pub fn on_parent(set: &Set, resource: &Resource) -> Permission {
    Permission::on_object(Verb::Patch, resource, &set.parent)
}

/// Permissions to end the set of an existing parent. Only in the end is it known if the parent is deleted
/// or has to record kept members.
pub fn to_release(set: &Set, resource: &Resource) -> [Permission; 2] {
    [Verb::Delete, Verb::Patch].map(|verb| Permission::on_object(verb, resource, &set.parent))
}

#[cfg(test)]
mod tests;
