//! The judgement of a live object that the manifests do not hold, with all rules. A run judges each object when the
//! plan is made, and again before the write if the object has changed by then.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::iter;

use super::containers::{ContainerIndex, KeptObjects, group_of_api_service};
use super::data_loss::DeletedObjects;
use super::dependencies::{find_live_dependencies, find_manifest_dependencies};
use super::dependents::{Dependent, Dependents, Detachment};
use super::{
    Judgement, Plan, Policy, Pruning, ReasonToKeep, Refusal, Risk, Skip, data_loss, holds_parent_of,
    prune_rules,
};
use crate::manifest::HookManifest;
use crate::manifest::desired::Desired;
use crate::model::containers::{Contents, HeldObject};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::set::Set;

/// Everything that the judgement of one object depends on.
#[derive(Debug, Clone)]
pub struct Judge<'a> {
    pub(super) set: &'a Set,
    pub(super) policy: &'a Policy,
    desired: HashSet<&'a ObjectKey>,
    /// UIDs of desired objects. Two API groups can serve one object, such as an Event or an Ingress. If the manifests
    /// hold it in one group, it is not pruned in the other.
    desired_uids: HashSet<String>,
    /// The desired objects and the parent's manifest, by the containers that they are in.
    desired_index: ContainerIndex<'a>,
    /// Hooks among the manifests that are not applied.
    hooks: &'a [HookManifest],
    /// The contents of namespaces and CRDs when the plan was made.
    contents: &'a BTreeMap<ObjectKey, Contents>,
    /// The objects that stay in the cluster although the manifests do not hold them.
    kept: KeptObjects,
    /// Key: an object that a kept object depends on. Value: one such kept object.
    needed_by_kept: BTreeMap<ObjectKey, ObjectKey>,
    /// Key: an object that a desired object depends on, by its manifest or in the cluster. Value: one such
    /// desired object.
    needed_by_desired: BTreeMap<ObjectKey, ObjectKey>,
    /// The objects that the run deletes. If a container holds one, that is not a loss.
    deleted: DeletedObjects,
    /// Key: a pruned object. Value: desired or kept objects with an owner reference to the pruned object, or to an
    /// object that is deleted with it.
    attached: HashMap<ObjectKey, BTreeMap<ObjectKey, Dependent>>,
    /// Key: a pruned object. Value: the objects that this run cannot keep; see [`Dependents::undetachable`].
    undetachable: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// Key: an object. Value: the losses with this object that the user has confirmed.
    accepted: HashMap<ObjectKey, Vec<Refusal>>,
    /// The treatment of objects that a namespace or CRD has gained since the plan was made.
    gained_objects: Risk,
}

impl<'a> Judge<'a> {
    /// Creates the judge of a plan that is still to be made. `desired_uids` are the UIDs of live objects
    /// that the manifests hold.
    pub(super) fn new(
        set: &'a Set,
        policy: &'a Policy,
        desired: &'a Desired,
        contents: &'a BTreeMap<ObjectKey, Contents>,
        desired_uids: HashSet<String>,
    ) -> Self {
        let objects = desired.members.iter().chain(&desired.parent);
        Self {
            set,
            policy,
            desired: desired.members.iter().map(|object| &object.key).collect(),
            desired_uids,
            desired_index: ContainerIndex::new(objects.map(|object| &object.key)),
            hooks: &desired.hooks,
            contents,
            kept: KeptObjects::default(),
            needed_by_kept: BTreeMap::new(),
            needed_by_desired: find_manifest_dependencies(desired),
            deleted: DeletedObjects::default(),
            attached: HashMap::new(),
            undetachable: BTreeMap::new(),
            accepted: HashMap::new(),
            gained_objects: policy.data_loss,
        }
    }

    /// Creates the judge for carrying out a plan. It has the same rules as the judge with which the plan was made.
    /// `desired_uids` are the UIDs of the objects that were applied or are unchanged.
    pub fn for_plan(
        set: &'a Set,
        policy: &'a Policy,
        desired: &'a Desired,
        contents: &'a BTreeMap<ObjectKey, Contents>,
        plan: &Plan,
        desired_uids: HashSet<String>,
    ) -> Self {
        let mut judge = Self::new(set, policy, desired, contents, desired_uids);
        judge.note_dependencies_of_desired(&plan.edges.needed);
        judge.replace_kept_and_needed_by_kept(&plan.skips);
        judge.replace_deleted_and_dependents(plan.all_prunes(), &plan.dependents);
        for refusal in &plan.accepted {
            if let Some(object) = refusal.object() {
                let accepted = judge.accepted.entry(object.clone()).or_default();
                accepted.push(refusal.clone());
            }
        }
        // A saved plan is carried out as it was approved, or not at all.
        if plan.preconditions.is_of_saved_plan() {
            judge.gained_objects = Risk::Refused;
        }
        judge
    }

    /// Notes dependencies of live objects: objects, each with a desired object that depends on it.
    pub(super) fn note_dependencies_of_desired(&mut self, needed: &BTreeMap<ObjectKey, ObjectKey>) {
        for (key, dependent) in needed {
            let by_key = self.needed_by_desired.entry(key.clone());
            by_key.or_insert_with(|| dependent.clone());
        }
    }

    /// Divides members into prunes and kept objects. Members that the manifests hold are in neither list.
    pub(super) fn divide_into_prunes_and_skips(&mut self, members: &[Live]) -> (Vec<Live>, Vec<Skip>) {
        self.divide_with_kept(members, Vec::new(), &[])
    }

    /// Divides members as [`Self::divide_into_prunes_and_skips`] does, if the objects of `skips` are kept already, and
    /// those of `deleted` are deleted. Returns the former with the kept members.
    pub(super) fn divide_with_kept(
        &mut self,
        members: &[Live],
        mut skips: Vec<Skip>,
        deleted: &[Live],
    ) -> (Vec<Live>, Vec<Skip>) {
        let mut prunes = Vec::new();
        for live in members {
            match self.judge_by_itself(live) {
                Judgement::Skip(reason) => skips.push(Skip {
                    live: live.clone(),
                    reason,
                }),
                Judgement::Prune => prunes.push(live.clone()),
                Judgement::Ignore | Judgement::Refuse(_) => {}
            }
        }
        skips.sort_by(|one, other| one.live.key.cmp(&other.live.key));
        // A kept object keeps its container and its dependencies, and these may keep others: repeat until nothing
        // changes.
        loop {
            self.replace_kept_and_needed_by_kept(&skips);
            self.deleted = DeletedObjects::new(prunes.iter().chain(deleted));
            let before = prunes.len();
            let mut rest = Vec::with_capacity(before);
            for live in prunes {
                match self.reason_to_keep_for_others(&live) {
                    Some(reason) => skips.push(Skip { live, reason }),
                    None => rest.push(live),
                }
            }
            prunes = rest;
            if prunes.len() == before {
                self.replace_reasons_of_owned(&mut skips);
                return (prunes, skips);
            }
        }
    }

    /// Gives objects that are kept because another object owns them the other reason to keep them, if there is one: the
    /// owner may be deleted, and then the object has to stay for that reason.
    fn replace_reasons_of_owned(&self, skips: &mut [Skip]) {
        for Skip { live, reason } in skips {
            if let ReasonToKeep::Owned { .. } = reason
                && let Some(other) = self
                    .reason_to_keep_hook(live)
                    .or_else(|| self.reason_to_keep_for_others(live))
            {
                *reason = other;
            }
        }
    }

    /// Replaces the set of kept objects, and the set of objects that these depend on. Objects outside the set that a
    /// desired or kept object depends on count as kept, too.
    fn replace_kept_and_needed_by_kept(&mut self, skips: &[Skip]) {
        let kept = skips.iter().filter(|skip| skip.stays_despite_pruning());
        self.needed_by_kept = find_live_dependencies(kept.clone().map(|skip| &skip.live));
        let needed = self.needed_by_kept.keys().chain(self.needed_by_desired.keys());
        let outside = needed.filter(|key| !self.desired.contains(*key));
        self.kept = kept.map(|skip| &skip.live.key).chain(outside).collect();
    }

    /// Replaces the objects that the run deletes, and the dependents of these objects.
    pub(super) fn replace_deleted_and_dependents<'l>(
        &mut self,
        prunes: impl Iterator<Item = &'l Live>,
        dependents: &Dependents,
    ) {
        self.deleted = DeletedObjects::new(prunes);
        if self.policy.pruning == Pruning::WholeSet {
            // The parent is deleted before its own namespace or CRD, so it is not a loss in them.
            self.deleted.uids.extend(self.set.parent_uid.clone());
        }
        self.replace_dependents(dependents);
    }

    /// Replaces the desired and kept objects that have owner references to deleted objects.
    pub fn replace_dependents(&mut self, dependents: &Dependents) {
        self.undetachable.clone_from(&dependents.undetachable);
        self.attached.clear();
        for detachment in &dependents.detachments {
            self.note_dependent(detachment);
        }
    }

    /// Notes a desired or kept object that has owner references to deleted objects.
    fn note_dependent(&mut self, detachment: &Detachment) {
        for pruned in &detachment.pruned {
            let attached = self.attached.entry(pruned.clone()).or_default();
            let dependent = &detachment.dependent;
            attached.insert(dependent.key.clone(), dependent.clone());
        }
    }

    /// Notes that the owner references of this detachment are removed, so that its object outlives its owners.
    pub fn note_owner_reference_removed(&mut self, detachment: &Detachment) {
        for pruned in &detachment.pruned {
            if let Some(attached) = self.attached.get_mut(pruned) {
                attached.remove(&detachment.dependent.key);
            }
        }
    }

    /// Notes that these objects, which the run was to delete, were not deleted.
    pub fn note_not_deleted<'l>(&mut self, objects: impl Iterator<Item = &'l Live>) {
        self.deleted.remove(objects);
    }

    /// Returns whether the manifests hold this object, in the same API group or in another one that serves it.
    pub fn is_desired(&self, live: &Live) -> bool {
        self.is_key_or_uid_desired(&live.key, &live.uid)
    }

    fn is_key_or_uid_desired(&self, key: &ObjectKey, uid: &str) -> bool {
        self.desired.contains(key) || self.desired_uids.contains(uid)
    }

    /// Judges one object as it is now. If there are several refusals, the judgement has the first.
    pub fn judge(&self, live: &Live) -> Judgement {
        match self.judge_by_itself(live) {
            Judgement::Prune => {}
            judgement => return judgement,
        }
        if let Some(reason) = self.reason_to_keep_for_others(live) {
            return Judgement::Skip(reason);
        }
        match self.refuse_to_delete(live).into_iter().next() {
            Some(refusal) => Judgement::Refuse(refusal),
            None => Judgement::Prune,
        }
    }

    /// Judges one object without regard to the other objects of the cluster.
    pub(super) fn judge_by_itself(&self, live: &Live) -> Judgement {
        if self.is_desired(live) {
            return Judgement::Ignore;
        }
        match prune_rules::judge_by_metadata(live, self.set, self.policy) {
            judgement @ (Judgement::Prune | Judgement::Skip(ReasonToKeep::PruningDisabled)) => {
                self.reason_to_keep_hook(live).map_or(judgement, Judgement::Skip)
            }
            judgement => judgement,
        }
    }

    /// Returns the reason to keep a member that the manifests still hold as a hook.
    fn reason_to_keep_hook(&self, live: &Live) -> Option<ReasonToKeep> {
        let hook = self.hooks.iter().find(|hook| hook.is_of_object(&live.key))?;
        let hook_annotation = hook.hook.annotation.clone();
        Some(ReasonToKeep::Hook { hook_annotation })
    }

    /// Returns the reason to keep an object because other objects stay: it contains them, or they depend on it.
    fn reason_to_keep_for_others(&self, live: &Live) -> Option<ReasonToKeep> {
        if let Some(kept) = self.kept.kept_object_in(live)
            && !self.is_replaced_api_service(live)
        {
            return Some(ReasonToKeep::HoldsKept { kept: kept.clone() });
        }
        let dependent = self.needed_by_kept.get(&live.key);
        if let Some(dependent) = dependent.or_else(|| self.needed_by_desired.get(&live.key)) {
            return Some(ReasonToKeep::Needed {
                dependent: dependent.clone(),
            });
        }
        let contents = self.contents.get(&live.key).into_iter();
        let annotated = contents.flat_map(data_loss::objects_with_keep_annotation);
        if let Some(reason) = self.reason_to_keep_for_annotated(live, annotated) {
            return Some(reason);
        }
        // As long as any member is kept, the parent is kept to record it, and with the parent its namespace and CRD.
        (!self.kept.is_empty() && holds_parent_of(self.set, live)).then_some(ReasonToKeep::HoldsParent)
    }

    /// Returns whether the manifests hold another `APIService` of the same group: it serves the objects of this one.
    fn is_replaced_api_service(&self, live: &Live) -> bool {
        let group = group_of_api_service(&live.key);
        group.is_some() && self.desired.iter().any(|key| group_of_api_service(key) == group)
    }

    /// Returns the reason to keep a container because of the objects with a keep annotation in it.
    ///
    /// An annotated object that the run deletes anyway is not a reason. Neither is an object whose owners are all
    /// deleted: the garbage collector deletes it, whether the container is kept or not.
    fn reason_to_keep_for_annotated<'h>(
        &self,
        container: &Live,
        annotated: impl Iterator<Item = &'h HeldObject>,
    ) -> Option<ReasonToKeep> {
        let is_deleted_anyway = |uid: &String| *uid != container.uid && self.deleted.uids.contains(uid);
        for held in annotated {
            let has_lost_all_owners = !held.owners.is_empty() && held.owners.iter().all(is_deleted_anyway);
            if !is_deleted_anyway(&held.uid)
                && !has_lost_all_owners
                && !self.is_key_or_uid_desired(&held.key, &held.uid)
                && let Some(keep_annotation) = held.keep_annotation.clone()
            {
                return Some(ReasonToKeep::HoldsAnnotated {
                    annotated: held.key.clone(),
                    keep_annotation,
                });
            }
        }
        None
    }

    /// Returns the reasons for which the object may not be deleted although nothing keeps it.
    pub(super) fn refuse_to_delete(&self, live: &Live) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        let desired = self.desired_index.objects_in(live);
        if !desired.is_empty() && !self.is_replaced_api_service(live) {
            refusals.push(Refusal::HoldsDesired {
                container: live.key.clone(),
                desired: desired.iter().map(|key| (*key).clone()).collect(),
            });
        }
        if let Some(dependents) = self.undetachable.get(&live.key) {
            refusals.push(Refusal::OwnsUndetachable {
                object: live.key.clone(),
                dependents: dependents.iter().cloned().collect(),
            });
        }
        // No flag overrides the refusals so far, so the ones that a flag overrides are not reported with them.
        if !refusals.is_empty() {
            return refusals;
        }
        if self.policy.data_loss == Risk::Refused {
            refusals.extend(self.find_losses_even_if_allowed(live));
            refusals.retain(|refusal| !self.is_confirmed_loss(refusal));
        }
        // Even if data loss is allowed or accepted: the run first has to remove the owner references. An object that
        // still has them would be deleted by the garbage collector.
        refusals.extend(self.refuse_to_delete_owner(live));
        refusals
    }

    /// Returns what would be lost beyond the object, as refusals, even if the policy allows the loss.
    pub(super) fn find_losses_even_if_allowed(&self, live: &Live) -> Vec<Refusal> {
        let contents = self.contents.get(&live.key);
        data_loss::refuse_losses(live, contents, &self.deleted)
    }

    /// Refuses to delete the object if the garbage collector would then delete desired or kept objects.
    fn refuse_to_delete_owner(&self, live: &Live) -> Option<Refusal> {
        let attached = self.attached.get(&live.key)?;
        (!attached.is_empty()).then(|| new_refusal_to_delete_owner(&live.key, attached.values()))
    }

    /// Returns whether the object is the parent of a set that is deleted as a whole. Its owner references to members
    /// are removed, so that it is deleted after them. That needs no consent: the user wants the parent to be deleted.
    pub fn is_parent_deleted_last(&self, dependent: &Dependent) -> bool {
        self.policy.pruning == Pruning::WholeSet && self.set.parent_uid.as_ref() == Some(&dependent.uid)
    }

    /// Returns whether detaching this object was allowed: by the policy, by the user, or because it is
    /// deleted last.
    pub fn may_detach(&self, detachment: &Detachment) -> bool {
        if self.is_parent_deleted_last(&detachment.dependent) {
            return true;
        }
        self.policy.data_loss == Risk::Allowed
            || detachment.pruned.iter().all(|pruned| {
                self.is_confirmed_loss(&new_refusal_to_delete_owner(
                    pruned,
                    iter::once(&detachment.dependent),
                ))
            })
    }

    /// Returns whether the user has confirmed this loss, or a larger one of the same object.
    fn is_confirmed_loss(&self, refusal: &Refusal) -> bool {
        let accepted = refusal.object().and_then(|object| self.accepted.get(object));
        accepted.is_some_and(|shown| refusal.is_covered_by_consent_to(shown.iter()))
    }

    /// Returns the reason to keep a namespace or CRD that is about to be deleted and contains `contents_now`: objects
    /// that it has gained since the plan was made would be deleted with it.
    pub fn reason_to_keep_container_with_contents(
        &self,
        container: &Live,
        contents_now: &Contents,
    ) -> Option<ReasonToKeep> {
        let annotated = data_loss::objects_with_keep_annotation(contents_now);
        self.reason_to_keep_for_annotated(container, annotated)
            .or_else(|| match self.gained_objects {
                Risk::Allowed => None,
                Risk::Refused => {
                    let planned = self.contents.get(&container.key);
                    data_loss::reason_to_keep_filled_since_plan(planned, contents_now, &self.deleted)
                }
            })
    }
}

/// Creates the refusal to delete `object`, which owns `dependents`.
fn new_refusal_to_delete_owner<'d>(
    object: &ObjectKey,
    dependents: impl Iterator<Item = &'d Dependent> + Clone,
) -> Refusal {
    let keep_annotations = dependents
        .clone()
        .filter_map(|dependent| Some((dependent.key.clone(), dependent.keep_annotation.clone()?)));
    Refusal::OwnsDependents {
        object: object.clone(),
        keep_annotations: keep_annotations.collect(),
        uids: dependents
            .clone()
            .map(|dependent| dependent.uid.clone())
            .collect(),
        dependents: dependents.map(|dependent| dependent.key.clone()).collect(),
    }
}

#[cfg(test)]
mod tests;
