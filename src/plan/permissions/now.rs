//! The rights that a run needs for what its plan is about to write.

use std::collections::BTreeSet;

use super::to_release;
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::applyset::ParentIdentity;
use crate::model::applyset::parent::{Reading, annotations};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::Live;
use crate::model::parent_object::ParentObject;
use crate::model::permission::{Needed, Right, Verb};
use crate::model::resource::Resource;
use crate::model::set::Set;
use crate::plan::{Apply, Dependant, Detachment, MemberStanding, Plan, is_promised, may_hold_record};

/// Finds the rights for everything that carrying out `plan` writes; none where it
/// writes nothing. `parent` is the parent as it was read; `field_manager` applies members.
///
/// Rights to `escalate` and `bind` are not among them: the server does without them
/// where the user has what a role gives, which cannot be told cheaply.
pub fn needed_now(
    set: &Set,
    parent_resource: &Resource,
    parent: Option<&ParentObject>,
    desired: &Desired,
    plan: &Plan,
    field_manager: &str,
) -> Needed {
    let mut needed = Needed::default();
    let applies: Vec<(&Apply, &DesiredObject)> = plan
        .prerequisites
        .iter()
        .chain(plan.waves.iter().flatten())
        .map(|apply| (apply, &desired.members[apply.index]))
        .collect();
    let grants_rights = applies.iter().any(|(_, object)| grants_rights(object));
    for (apply, object) in applies {
        if brings_namespace(apply, object) {
            needed.brought_namespaces.insert(object.key.name.clone());
        }
        // Roles among the manifests may well give the rights on a kind that comes with
        // them, as aggregated ones do.
        if !(grants_rights && is_promised(object)) {
            needed.apply(apply, object);
            if may_hold_record(object, &apply.standing, field_manager) {
                needed.read(&object.key, &object.resource);
            }
        }
    }
    for live in plan.prunes.iter().flatten() {
        needed.prune(live);
    }
    needed.detach(plan);
    for verb in verbs_on_parent(set, parent, desired, plan) {
        let right = Right::on(verb, parent_resource, set.parent.namespace.as_deref());
        // A bare parent is created by POST, which names no object.
        let is_posted = verb == Verb::Create && desired.parent.is_none();
        needed.rights.insert(if is_posted {
            right
        } else {
            right.named(&set.parent.name)
        });
    }
    needed
}

/// Finds the rights for everything that deleting a set writes: `parent` is the parent with
/// bookkeeping, where there is one.
pub fn needed_to_delete(
    set: &Set,
    parent_resource: &Resource,
    parent: Option<&ParentObject>,
    plan: &Plan,
) -> Needed {
    let mut needed = Needed::default();
    for live in plan.prunes.iter().flatten() {
        needed.prune(live);
    }
    needed.detach(plan);
    if parent.is_some() {
        needed.rights.extend(to_release(set, parent_resource));
    }
    needed
}

/// Finds the rights for the dry runs and reads by which a plan is shown: a dry run takes the
/// rights of the write that it stands for. Nothing is pruned in one, so that takes none.
pub fn needed_to_foresee(parent: &ParentIdentity, desired: &Desired, plan: &Plan) -> Needed {
    let mut needed = Needed::default();
    let applies = plan.prerequisites.iter().chain(plan.waves.iter().flatten());
    for apply in applies {
        let object = &desired.members[apply.index];
        if brings_namespace(apply, object) {
            needed.brought_namespaces.insert(object.key.name.clone());
        }
        if is_promised(object) {
            continue;
        }
        needed.apply(apply, object);
        needed.read(&object.key, &object.resource);
    }
    for live in plan.prunes.iter().flatten() {
        needed.read(&live.key, &live.resource);
    }
    for detachment in &plan.dependants.detachments {
        needed.read(&detachment.dependant.key, &detachment.dependant.resource);
    }
    if let Some(object) = desired.parent.as_ref().filter(|object| !is_promised(object)) {
        let right = Right::on(Verb::Patch, &object.resource, parent.namespace.as_deref());
        needed.rights.insert(right.named(&parent.name));
    }
    needed
}

impl Needed {
    fn read(&mut self, key: &ObjectKey, resource: &Resource) {
        let right = Right::on(Verb::Get, resource, key.namespace.as_deref());
        self.rights.insert(right.named(&key.name));
    }

    fn apply(&mut self, apply: &Apply, object: &DesiredObject) {
        let key = &object.key;
        let right = |verb| Right::on(verb, &object.resource, key.namespace.as_deref()).named(&key.name);
        match apply.standing {
            MemberStanding::Terminating => {}
            MemberStanding::OfAnotherSet => {
                self.rights.insert(right(Verb::Patch));
            }
            MemberStanding::Member {
                client_side_apply, ..
            } => {
                self.rights.insert(right(Verb::Patch));
                if client_side_apply {
                    self.rights.insert(right(Verb::Get));
                }
            }
            MemberStanding::NotAMember => {
                self.rights.insert(right(Verb::Patch));
                self.rights.insert(right(Verb::Create));
                if !is_promised(object) {
                    let path = object.resource.path(key.namespace.as_deref(), Some(&key.name));
                    self.unless_present.insert(right(Verb::Create), path);
                }
            }
        }
    }

    /// Removing owner references from an object reads it again if it has changed.
    fn detach(&mut self, plan: &Plan) {
        for Detachment { dependant, .. } in &plan.dependants.detachments {
            let Dependant { key, resource, .. } = dependant;
            for verb in [Verb::Get, Verb::Patch] {
                let right = Right::on(verb, resource, key.namespace.as_deref());
                self.rights.insert(right.named(&key.name));
            }
        }
    }

    /// An object that changed since it was listed is read again before it is deleted.
    fn prune(&mut self, live: &Live) {
        let key = &live.key;
        for verb in [Verb::Get, Verb::Delete] {
            let right = Right::on(verb, &live.resource, key.namespace.as_deref());
            self.rights.insert(right.named(&key.name));
        }
    }
}

/// What `execute` sends to the parent. That it may be read was seen before.
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
    if desired.parent.is_some() || narrows || parent.is_some_and(|parent| widens(set, parent, plan)) {
        verbs.insert(Verb::Patch);
    }
    verbs
}

fn widens(set: &Set, parent: &ParentObject, plan: &Plan) -> bool {
    let target = annotations(&set.tooling, &plan.record_during);
    let has = |(key, value): (&String, &serde_json::Value)| {
        parent.annotations.get(key).map(String::as_str) == value.as_str()
    };
    !matches!(parent.reading, Reading::Parent(_))
        || !target.as_object().is_some_and(|pairs| pairs.iter().all(has))
}

fn brings_namespace(apply: &Apply, object: &DesiredObject) -> bool {
    apply.standing == MemberStanding::NotAMember && object.key.group_kind == GroupKind::new("", "Namespace")
}

fn grants_rights(object: &DesiredObject) -> bool {
    object.key.group_kind.group == "rbac.authorization.k8s.io"
}
