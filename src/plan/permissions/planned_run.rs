//! Permissions for the writes, reads and dry runs of a plan.

use std::collections::BTreeSet;

use super::to_release;
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::applyset::ParentIdentity;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::permission::{NeededPermissions, Permission, Verb};
use crate::model::resource::Resource;
use crate::model::set::{ParentObject, Set};
use crate::plan::{Apply, Detachment, LiveMembership, Plan, is_not_yet_served, may_hold_record};

/// Returns the permissions for everything that carrying out `plan` writes. `parent` is the parent as it
/// was read, and `field_manager` applies members.
///
/// The verbs `escalate` and `bind` are not among them. The server does not need them if the user has the
/// permissions of the role, which is expensive to find out.
pub fn needed_for_plan(
    set: &Set,
    parent_resource: &Resource,
    parent: Option<&ParentObject>,
    desired: &Desired,
    plan: &Plan,
    field_manager: &str,
) -> NeededPermissions {
    let mut needed = NeededPermissions::default();
    let grants_permissions = applies_with_objects(desired, plan).any(|(_, object)| is_rbac(object));
    for (apply, object) in applies_with_objects(desired, plan) {
        needed.expect_namespace(apply, object);
        // Roles of the manifests, such as aggregated ones, may grant the permissions for a kind that
        // the manifests define.
        if !(grants_permissions && is_not_yet_served(object)) {
            needed.apply(apply, object);
            let is_read = may_hold_record(object, &apply.live_membership, field_manager);
            if is_read || !object.ignored.is_empty() {
                needed.read(&object.key, &object.resource);
            }
        }
    }
    for (key, resource) in &plan.edges.known.outside {
        needed.read(key, resource);
    }
    needed.delete(plan);
    for verb in verbs_on_parent(set, parent, desired, plan) {
        let right = Permission::on_object(verb, parent_resource, &set.parent);
        // A bare parent is created by POST, which names no object.
        let is_posted = verb == Verb::Create && desired.parent.is_none();
        needed
            .rights
            .insert(if is_posted { right.on_all() } else { right });
    }
    needed
}

/// Returns the permissions for everything that deleting a set writes. `parent` is the parent, if it exists
/// and has a record.
pub fn needed_to_delete(
    set: &Set,
    parent_resource: &Resource,
    parent: Option<&ParentObject>,
    plan: &Plan,
) -> NeededPermissions {
    let mut needed = NeededPermissions::default();
    needed.delete(plan);
    if parent.is_some() {
        needed.rights.extend(to_release(set, parent_resource));
    }
    needed
}

/// Returns the permissions for the dry runs and reads that predict a plan. A dry run needs the permissions
/// of its write. Prunes have no dry run and need none.
pub fn needed_for_dry_run(parent: &ParentIdentity, desired: &Desired, plan: &Plan) -> NeededPermissions {
    let mut needed = NeededPermissions::default();
    for (apply, object) in applies_with_objects(desired, plan) {
        needed.expect_namespace(apply, object);
        if is_not_yet_served(object) {
            continue;
        }
        needed.apply(apply, object);
        needed.read(&object.key, &object.resource);
    }
    for live in plan.all_prunes() {
        needed.read(&live.key, &live.resource);
    }
    for detachment in &plan.dependents.detachments {
        needed.read(&detachment.dependent.key, &detachment.dependent.resource);
    }
    if let Some(object) = desired
        .parent
        .as_ref()
        .filter(|object| !is_not_yet_served(object))
    {
        let right = Permission::on_object(Verb::Patch, &object.resource, parent);
        needed.rights.insert(right);
    }
    needed
}

/// Returns the applies of a plan with their objects.
fn applies_with_objects<'p>(
    desired: &'p Desired,
    plan: &'p Plan,
) -> impl Iterator<Item = (&'p Apply, &'p DesiredObject)> {
    plan.all_applies()
        .map(|apply| (apply, &desired.members[apply.index]))
}

impl NeededPermissions {
    /// Notes a namespace that the run creates: permissions in it cannot be checked before.
    fn expect_namespace(&mut self, apply: &Apply, object: &DesiredObject) {
        let is_namespace = object.key.group_kind == GroupKind::new("", "Namespace");
        if is_namespace && apply.live_membership == LiveMembership::NotAMember {
            self.brought_namespaces.insert(object.key.name.clone());
        }
    }

    fn read(&mut self, key: &ObjectKey, resource: &Resource) {
        self.rights
            .insert(Permission::on_object(Verb::Get, resource, key));
    }

    fn apply(&mut self, apply: &Apply, object: &DesiredObject) {
        let key = &object.key;
        let verbs: &[Verb] = match apply.live_membership {
            LiveMembership::Terminating => &[],

            LiveMembership::Member {
                client_side_apply: true,
                ..
            } => &[Verb::Patch, Verb::Get],
            LiveMembership::Member { .. } | LiveMembership::OfAnotherSet => &[Verb::Patch],
            LiveMembership::NotAMember => &[Verb::Patch, Verb::Create],
        };
        for verb in verbs {
            let right = Permission::on_object(*verb, &object.resource, key);
            if *verb == Verb::Create && !is_not_yet_served(object) {
                let path = object.resource.path_of(key);
                self.unless_present.insert(right.clone(), path);
            }
            self.rights.insert(right);
        }
    }

    /// Adds the permissions to delete the prunes, and to remove owner references before. An object that
    /// has changed is read again before either.
    fn delete(&mut self, plan: &Plan) {
        for live in plan.all_prunes() {
            self.read_and(Verb::Delete, &live.key, &live.resource);
        }
        for Detachment { dependent, .. } in &plan.dependents.detachments {
            self.read_and(Verb::Patch, &dependent.key, &dependent.resource);
        }
    }

    fn read_and(&mut self, verb: Verb, key: &ObjectKey, resource: &Resource) {
        self.read(key, resource);
        self.rights.insert(Permission::on_object(verb, resource, key));
    }
}

/// Returns the verbs of the writes to the parent. It was read already.
fn verbs_on_parent(
    set: &Set,
    parent: Option<&ParentObject>,
    desired: &Desired,
    plan: &Plan,
) -> BTreeSet<Verb> {
    let narrows = plan.record_during != plan.record_after;
    let mut verbs = BTreeSet::new();
    if parent.is_none() {
        verbs.insert(Verb::Create);
    }
    if desired.parent.is_some()
        || plan.applies() + plan.deletions() > 0
        || narrows
        || parent.is_some_and(|parent| !parent.has_record(&set.tooling, &plan.record_during))
    {
        verbs.insert(Verb::Patch);
    }
    verbs
}

fn is_rbac(object: &DesiredObject) -> bool {
    object.key.group_kind.group == "rbac.authorization.k8s.io"
}
