//! Permissions for the writes, reads and dry runs of a plan.

use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;

use super::needed_to_end_set;
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::applyset::ParentIdentity;
use crate::model::identity::ObjectKey;
use crate::model::permission::{NeededPermissions, Permission, Verb};
use crate::model::resource::Resource;
use crate::model::set::{ParentObject, Set};
use crate::model::write_settings::WriteSettings;
use crate::plan::{Apply, Detachment, LiveMembership, Plan, apply_may_remove_record, is_not_yet_served};

/// Returns the permissions for all writes of `plan`, and for the reads that go with them. `parent` is the parent as it
/// was read, `writing` are the settings of the run, and `now` is the time by the clock of the server.
///
/// The permissions do not include `escalate` and `bind`. A user who has all permissions of a role can write that role
/// and its binding without `escalate` and `bind`, and it is expensive to find out whether a user has them all.
pub fn needed_for_plan(
    set: &Set,
    parent_resource: &Resource,
    parent: Option<&ParentObject>,
    desired: &Desired,
    plan: &Plan,
    writing: &WriteSettings,
    now: Timestamp,
) -> NeededPermissions {
    let mut needed = NeededPermissions::default();
    let applies_rbac = pair_applies_with_objects(desired, plan).any(|(_, object)| is_rbac(object));
    for (apply, object) in pair_applies_with_objects(desired, plan) {
        needed.note_created_namespace(apply, object);
        // If the run applies both a CRD and a role, the role may grant the permissions for the new kind. Then a check
        // before the run could refuse what the user may do later, so it leaves the kind out.
        if applies_rbac && is_not_yet_served(object) {
            continue;
        }
        needed.add_apply(apply, object);
        let is_read_for_record =
            apply_may_remove_record(object, &apply.live_membership, &writing.field_manager);
        if is_read_for_record || !object.ignored.is_empty() {
            needed.add_read(&object.key, &object.resource);
        }
    }
    for (key, live) in &plan.edges.known.outside {
        needed.add_read(key, &live.resource);
    }
    needed.add_deletes_and_detachments(plan);
    for verb in verbs_on_parent(set, parent, desired, plan, writing, now) {
        let permission = Permission::on_object(verb, parent_resource, &set.parent);
        // A parent without a manifest is created by POST. For RBAC, a POST names no object.
        let is_posted = verb == Verb::Create && desired.parent.is_none();
        needed.permissions.insert(if is_posted {
            permission.without_name()
        } else {
            permission
        });
    }
    needed
}

/// Returns the permissions for all writes of a run that deletes a set. `parent` is the parent, if it exists
/// and has a record.
pub fn needed_to_delete_set(
    set: &Set,
    parent_resource: &Resource,
    parent: Option<&ParentObject>,
    plan: &Plan,
) -> NeededPermissions {
    let mut needed = NeededPermissions::default();
    needed.add_deletes_and_detachments(plan);
    if parent.is_some() {
        needed.permissions.extend(needed_to_end_set(set, parent_resource));
    }
    needed
}

/// Returns the permissions for the dry runs and reads that predict a plan. The dry run of an apply needs the same
/// permissions as the apply. Prunes are only read: they have no dry run, so `delete` is not needed.
pub fn needed_for_dry_run(parent: &ParentIdentity, desired: &Desired, plan: &Plan) -> NeededPermissions {
    let mut needed = NeededPermissions::default();
    for (apply, object) in pair_applies_with_objects(desired, plan) {
        needed.note_created_namespace(apply, object);
        if is_not_yet_served(object) {
            continue;
        }
        needed.add_apply(apply, object);
        needed.add_read(&object.key, &object.resource);
    }
    for live in plan.all_prunes() {
        needed.add_read(&live.key, &live.resource);
    }
    for detachment in &plan.dependents.detachments {
        needed.add_read(&detachment.dependent.key, &detachment.dependent.resource);
    }
    if let Some(object) = desired
        .parent
        .as_ref()
        .filter(|object| !is_not_yet_served(object))
    {
        let patch = Permission::on_object(Verb::Patch, &object.resource, parent);
        needed.permissions.insert(patch);
    }
    needed
}

/// Returns the applies of a plan with their objects.
fn pair_applies_with_objects<'p>(
    desired: &'p Desired,
    plan: &'p Plan,
) -> impl Iterator<Item = (&'p Apply, &'p DesiredObject)> {
    plan.all_applies()
        .map(|apply| (apply, &desired.members[apply.index]))
}

impl NeededPermissions {
    /// Notes a namespace that the run may create. Permissions in it cannot be checked before it exists.
    fn note_created_namespace(&mut self, apply: &Apply, object: &DesiredObject) {
        if object.key.group_kind.is_namespace() && apply.live_membership == LiveMembership::NotAMember {
            self.created_namespaces.insert(object.key.name.clone());
        }
    }

    fn add_read(&mut self, key: &ObjectKey, resource: &Resource) {
        self.permissions
            .insert(Permission::on_object(Verb::Get, resource, key));
    }

    fn add_apply(&mut self, apply: &Apply, object: &DesiredObject) {
        let key = &object.key;
        let verbs: &[Verb] = match apply.live_membership {
            // The run does not apply the object.
            LiveMembership::Terminating => &[],
            // The object is read to find the fields that client-side apply owns.
            LiveMembership::Member {
                client_side_apply: true,
                ..
            } => &[Verb::Patch, Verb::Get],
            LiveMembership::Member { .. } | LiveMembership::OfAnotherSet { .. } => &[Verb::Patch],
            LiveMembership::NotAMember => &[Verb::Patch, Verb::Create],
        };
        for verb in verbs {
            let permission = Permission::on_object(*verb, &object.resource, key);
            if *verb == Verb::Create && !is_not_yet_served(object) {
                let path = object.resource.path_of(key);
                self.unless_present.insert(permission.clone(), path);
            }
            self.permissions.insert(permission);
        }
    }

    /// Adds the permissions to delete the prunes, and to remove owner references before the deletes. Both include
    /// `get`: an object that has changed since the plan is read again.
    fn add_deletes_and_detachments(&mut self, plan: &Plan) {
        for live in plan.all_prunes() {
            self.add_read_and(Verb::Delete, &live.key, &live.resource);
        }
        for Detachment { dependent, .. } in &plan.dependents.detachments {
            self.add_read_and(Verb::Patch, &dependent.key, &dependent.resource);
        }
    }

    fn add_read_and(&mut self, verb: Verb, key: &ObjectKey, resource: &Resource) {
        self.add_read(key, resource);
        self.permissions
            .insert(Permission::on_object(verb, resource, key));
    }
}

/// Returns the verbs of the writes to the parent. `get` is not among them: the parent was read before the plan.
fn verbs_on_parent(
    set: &Set,
    parent: Option<&ParentObject>,
    desired: &Desired,
    plan: &Plan,
    writing: &WriteSettings,
    now: Timestamp,
) -> BTreeSet<Verb> {
    // The end of a run that has begun on the parent is a PATCH.
    let is_begun_on = parent.is_none_or(|parent| plan.has_to_begin_on(parent, set, writing, now));
    let narrows = plan.record_during != plan.record_after;
    let is_patched = desired.parent.is_some() || is_begun_on || narrows;
    let created = parent.is_none().then_some(Verb::Create);
    let patched = is_patched.then_some(Verb::Patch);
    created.into_iter().chain(patched).collect()
}

fn is_rbac(object: &DesiredObject) -> bool {
    object.key.group_kind.group == "rbac.authorization.k8s.io"
}
