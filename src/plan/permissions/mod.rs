//! Permissions that a planned run needs (`planned_run`), permissions that a set needs for its whole life
//! (`set_lifetime`), and the RBAC objects that grant them (`rbac_objects`).
//!
//! This module only computes the permissions. `session/permissions` has them checked before the first write, and
//! `read/permissions` asks the server whether the user has them.

mod object_content;
mod planned_run;
mod rbac_objects;
mod set_lifetime;

use std::collections::BTreeSet;

pub use planned_run::{needed_for_dry_run, needed_for_plan, needed_to_delete_set};
pub use rbac_objects::{Grant, RbacSubject, comment_on_secrets, name_for_set, objects_that_grant};
pub use set_lifetime::{Past, needed_for_every_run, needed_to_compare, needed_to_recreate};

use crate::model::applyset::Record;
use crate::model::live::Live;
use crate::model::permission::{Permission, Verb};
use crate::model::resource::Resource;
use crate::model::set::{ParentObject, Set};

/// Returns the permissions to write the labels of these objects. `get` is needed to read an object again if it has
/// changed.
pub fn needed_to_relabel(objects: &[Live]) -> BTreeSet<Permission> {
    let permissions = objects.iter().flat_map(|live| {
        [Verb::Get, Verb::Patch].map(|verb| Permission::on_object(verb, &live.resource, &live.key))
    });
    permissions.collect()
}

/// Returns the permissions to write the parent in a run that labels `labeled` as members and needs `record`. Returns
/// none if the run does not write the parent.
pub fn needed_to_record(
    set: &Set,
    parent_resource: &Resource,
    parent: Option<&ParentObject>,
    record: &Record,
    labeled: &[Live],
) -> Vec<Permission> {
    let patch = needed_to_patch_parent(set, parent_resource);
    match parent {
        // A parent without a manifest is created by POST. For RBAC, a POST names no object.
        None => vec![
            Permission::on_all_objects(Verb::Create, parent_resource, set.parent.namespace.as_deref()),
            patch,
        ],
        Some(parent) if labeled.is_empty() && parent.has_tooling_and_record(&set.tooling, record) => {
            Vec::new()
        }
        Some(_) => vec![patch],
    }
}

/// Returns the permission to narrow or remove the record of an existing parent.
pub fn needed_to_patch_parent(set: &Set, parent_resource: &Resource) -> Permission {
    Permission::on_object(Verb::Patch, parent_resource, &set.parent)
}

/// Returns the permissions to end the set of an existing parent: to delete the parent, and to patch it if it has to be
/// kept. Which of them is needed is known only once the members are deleted.
pub fn needed_to_end_set(set: &Set, parent_resource: &Resource) -> [Permission; 2] {
    [Verb::Delete, Verb::Patch].map(|verb| Permission::on_object(verb, parent_resource, &set.parent))
}

#[cfg(test)]
mod tests;
