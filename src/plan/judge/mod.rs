//! The one judgement of a live object that the manifests do not hold: with all rules, when a plan is
//! made, and again before the write if the object has changed by then.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::iter;

use super::containers::{ContainerIndex, KeptObjects};
use super::data_loss::Going;
use super::dependencies::list_dependencies;
use super::dependents::{Dependent, Dependents, Detachment};
use super::{
    Judgement, Plan, Policy, Pruning, Refusal, Risk, Skip, SkipReason, data_loss, holds_parent_of,
    prune_rules,
};
use crate::event::Operation;
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
    /// UIDs of desired objects. Two API groups can serve one object: one that is desired under one name
    /// is not pruned under the other.
    desired_uids: HashSet<String>,
    desired_index: ContainerIndex<'a>,
    /// Hooks among the manifests that are not applied.
    hooks: &'a [HookManifest],
    /// The contents of namespaces and CRDs when the plan was made.
    contents: &'a BTreeMap<ObjectKey, Contents>,
    /// The objects in them that a keep annotation keeps, by container.
    annotated: HashMap<&'a ObjectKey, Vec<&'a HeldObject>>,
    kept: KeptObjects,
    /// Key: an object that a kept object depends on. Value: one such kept object.
    needed: HashMap<ObjectKey, ObjectKey>,
    /// Key: an object that a desired object depends on, by its manifest or in the cluster. Value: one such
    /// desired object.
    needed_by_desired: HashMap<&'a ObjectKey, &'a ObjectKey>,
    /// The objects that are deleted, and so are not a loss.
    going: Going,
    /// Key: a pruned object. Value: desired or kept objects with an owner reference to it, or to something
    /// deleted with it.
    attached: HashMap<ObjectKey, BTreeMap<ObjectKey, Dependent>>,
    /// Key: a pruned object. Value: the objects that this run cannot keep; see [`Dependents::bound`].
    bound: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// Losses that the user has confirmed, by the object.
    accepted: HashMap<&'a ObjectKey, Vec<&'a Refusal>>,
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
            annotated: contents
                .iter()
                .map(|(container, held)| (container, data_loss::objects_with_keep_annotation(held).collect()))
                .collect(),
            kept: KeptObjects::default(),
            needed: HashMap::new(),
            needed_by_desired: dependencies(desired).collect(),
            going: Going::default(),
            attached: HashMap::new(),
            bound: BTreeMap::new(),
            accepted: HashMap::new(),
        }
    }

    /// Creates the judge for carrying out a plan, with the same rules as when it was made.
    /// `desired_uids` are the UIDs of the objects that were applied or are unchanged.
    pub fn for_plan(
        set: &'a Set,
        policy: &'a Policy,
        desired: &'a Desired,
        contents: &'a BTreeMap<ObjectKey, Contents>,
        plan: &'a Plan,
        desired_uids: HashSet<String>,
    ) -> Self {
        let mut judge = Self::new(set, policy, desired, contents, desired_uids);
        judge.need(plan.edges.needed.iter());
        judge.keep_all(&plan.skips);
        judge.let_go(plan.all_prunes(), &plan.dependents);
        for refusal in &plan.accepted {
            if let Some(object) = refusal.object() {
                judge.accepted.entry(object).or_default().push(refusal);
            }
        }
        judge
    }

    /// Adds pairs of a dependency in the cluster and a desired object that depends on it.
    pub(super) fn need(&mut self, needed: impl Iterator<Item = (&'a ObjectKey, &'a ObjectKey)>) {
        for (key, dependent) in needed {
            self.needed_by_desired.entry(key).or_insert(dependent);
        }
    }

    /// Divides members into prunes and kept ones, each by itself and by what it holds.
    pub(super) fn divide(&mut self, members: &[Live]) -> (Vec<Live>, Vec<Skip>) {
        self.divide_with(members, Vec::new())
    }

    /// Divides members as [`Self::divide`] does, where others are kept already.
    pub(super) fn divide_with(&mut self, members: &[Live], mut skips: Vec<Skip>) -> (Vec<Live>, Vec<Skip>) {
        let mut prunes = Vec::new();
        for live in members {
            match self.by_itself(live) {
                Judgement::Skip(reason) => skips.push(Skip {
                    live: live.clone(),
                    reason,
                }),
                Judgement::Prune => prunes.push(live.clone()),
                Judgement::Ignore | Judgement::Refuse(_) => {}
            }
        }
        skips.sort_by(|one, other| one.live.key.cmp(&other.live.key));
        // A kept object keeps its container.
        loop {
            self.keep_all(&skips);
            self.going = Going::new(prunes.iter());
            let before = prunes.len();
            let mut rest = Vec::with_capacity(before);
            for live in prunes {
                match self.keep(&live) {
                    Some(reason) => skips.push(Skip { live, reason }),
                    None => rest.push(live),
                }
            }
            prunes = rest;
            if prunes.len() == before {
                return (prunes, skips);
            }
        }
    }

    fn keep_all(&mut self, skips: &[Skip]) {
        let kept = skips.iter().filter(|skip| skip.stays_in_cluster());
        self.kept = kept.clone().map(|skip| &skip.live.key).collect();
        let needed = list_dependencies(kept.map(|skip| &skip.live));
        self.needed = needed
            .map(|(key, dependent)| (key.clone(), dependent.clone()))
            .collect();
    }

    /// Notes the objects that are deleted.
    pub(super) fn let_go<'l>(&mut self, prunes: impl Iterator<Item = &'l Live>, dependents: &Dependents) {
        // The parent of a set that is deleted as a whole is deleted before its own namespace or CRD.
        self.going = Going::new(prunes);
        if self.policy.pruning == Pruning::WholeSet {
            self.going.uids.extend(self.set.parent_uid.clone());
        }
        self.replace_dependents(dependents);
    }

    /// Replaces the desired and kept objects that are owned by deleted ones.
    pub fn replace_dependents(&mut self, dependents: &Dependents) {
        self.bound.clone_from(&dependents.bound);
        self.attached.clear();
        for detachment in &dependents.detachments {
            self.attach(detachment);
        }
    }

    /// Notes a desired or kept object that is owned by a deleted one.
    fn attach(&mut self, detachment: &Detachment) {
        for pruned in &detachment.pruned {
            let attached = self.attached.entry(pruned.clone()).or_default();
            let dependent = &detachment.dependent;
            attached.insert(dependent.key.clone(), dependent.clone());
        }
    }

    /// Notes that the owner references of an object to deleted ones are removed.
    pub fn note_owner_reference_removed(&mut self, detachment: &Detachment) {
        for pruned in &detachment.pruned {
            if let Some(attached) = self.attached.get_mut(pruned) {
                attached.remove(&detachment.dependent.key);
            }
        }
    }

    /// Returns whether the manifests hold this object, also if another API group serves it there.
    pub fn is_desired(&self, live: &Live) -> bool {
        self.has_desired(&live.key, &live.uid)
    }

    fn has_desired(&self, key: &ObjectKey, uid: &str) -> bool {
        self.desired.contains(key) || self.desired_uids.contains(uid)
    }

    /// Judges one object as it is now. A refusal is the first that is not overridden.
    pub fn judge(&self, live: &Live) -> Judgement {
        match self.by_itself(live) {
            Judgement::Prune => {}
            judgement => return judgement,
        }
        if let Some(reason) = self.keep(live) {
            return Judgement::Skip(reason);
        }
        match self.refusals(live).into_iter().next() {
            Some(refusal) => Judgement::Refuse(refusal),
            None => Judgement::Prune,
        }
    }

    fn by_itself(&self, live: &Live) -> Judgement {
        if self.is_desired(live) {
            return Judgement::Ignore;
        }
        match prune_rules::judge(live, self.set, self.policy) {
            judgement @ (Judgement::Prune | Judgement::Skip(SkipReason::PruningDisabled)) => {
                self.kept_hook(live).map_or(judgement, Judgement::Skip)
            }
            judgement => judgement,
        }
    }

    /// Returns the reason to keep a member that the manifests still hold as a hook.
    fn kept_hook(&self, live: &Live) -> Option<SkipReason> {
        let hook = self.hooks.iter().find(|hook| hook.is_of(&live.key))?;
        let hook_annotation = hook.hook.annotation.clone();
        Some(SkipReason::Hook { hook_annotation })
    }

    /// Returns the reason to keep an object because of other objects that are kept.
    fn keep(&self, live: &Live) -> Option<SkipReason> {
        if let Some(kept) = self.kept.kept_object_in(live) {
            return Some(SkipReason::HoldsKept { kept: kept.clone() });
        }
        let dependent = self.needed.get(&live.key);
        if let Some(dependent) = dependent.or_else(|| self.needed_by_desired.get(&live.key).copied()) {
            return Some(SkipReason::Needed {
                dependent: dependent.clone(),
            });
        }
        let annotated = self.annotated.get(&live.key).into_iter().flatten().copied();
        if let Some(reason) = self.holds_annotated(live, annotated) {
            return Some(reason);
        }
        // The parent is kept with its members, and its namespace and CRD with the parent.
        (!self.kept.is_empty() && holds_parent_of(self.set, live)).then_some(SkipReason::HoldsParent)
    }

    /// Returns the reason to keep a container that holds `annotated` objects. An object is deleted after the
    /// last of its owners, whether the container is kept or not.
    fn holds_annotated<'h>(
        &self,
        container: &Live,
        annotated: impl Iterator<Item = &'h HeldObject>,
    ) -> Option<SkipReason> {
        let is_going = |uid: &String| *uid != container.uid && self.going.uids.contains(uid);
        for held in annotated {
            let is_left_without_owners = !held.owners.is_empty() && held.owners.iter().all(is_going);
            let is_deleted = is_going(&held.uid) || is_left_without_owners;
            if !is_deleted
                && !self.has_desired(&held.key, &held.uid)
                && let Some(keep_annotation) = held.keep_annotation.clone()
            {
                return Some(SkipReason::HoldsAnnotated {
                    annotated: held.key.clone(),
                    keep_annotation,
                });
            }
        }
        None
    }

    /// Returns the reasons for which the object may not be deleted although nothing keeps it.
    pub(super) fn refusals(&self, live: &Live) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        let desired = self.desired_index.objects_in(live);
        if !desired.is_empty() {
            refusals.push(Refusal::HoldsDesired {
                container: live.key.clone(),
                desired: desired.iter().map(|key| (*key).clone()).collect(),
            });
        }
        if let Some(dependents) = self.bound.get(&live.key) {
            refusals.push(Refusal::OwnsBound {
                object: live.key.clone(),
                dependents: dependents.iter().cloned().collect(),
            });
        }
        if !refusals.is_empty() {
            return refusals;
        }
        if self.policy.data_loss == Risk::Refused {
            let contents = self.contents.get(&live.key);
            refusals.extend(data_loss::loss(live, contents, &self.going, self.operation()));
            refusals.retain(|refusal| !self.is_accepted(refusal));
        }
        // Also if the loss is allowed: an object that is still attached would be lost.
        refusals.extend(self.owns(live));
        refusals
    }

    /// Refuses to delete the object if the garbage collector would delete desired or kept ones after it.
    fn owns(&self, live: &Live) -> Option<Refusal> {
        let attached = self.attached.get(&live.key)?;
        (!attached.is_empty()).then(|| self.owns_dependents(&live.key, attached.values()))
    }

    fn owns_dependents<'d>(
        &self,
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
            operation: self.operation(),
        }
    }

    /// Returns `Delete` without desired objects: there are no manifests to put an object back into.
    fn operation(&self) -> Operation {
        if self.desired.is_empty() {
            Operation::Delete
        } else {
            Operation::Apply
        }
    }

    /// Returns whether the object is the parent of a set that is deleted as a whole. It is detached from
    /// members to be deleted after them, which needs no consent.
    pub fn goes_last(&self, dependent: &Dependent) -> bool {
        self.policy.pruning == Pruning::WholeSet && self.set.parent_uid.as_ref() == Some(&dependent.uid)
    }

    /// Returns whether detaching this object was allowed: by the policy, by the user, or because it is
    /// deleted last.
    pub fn may_detach(&self, detachment: &Detachment) -> bool {
        if self.goes_last(&detachment.dependent) {
            return true;
        }
        self.policy.data_loss == Risk::Allowed
            || detachment.pruned.iter().all(|pruned| {
                self.is_accepted(&self.owns_dependents(pruned, iter::once(&detachment.dependent)))
            })
    }

    fn is_accepted(&self, refusal: &Refusal) -> bool {
        let accepted = refusal.object().and_then(|object| self.accepted.get(object));
        accepted.is_some_and(|shown| refusal.is_within_any_of(shown.iter().copied()))
    }

    /// Returns the reason to keep a namespace or CRD that was to be deleted and holds `now` right before
    /// that: objects that it has gained since would be deleted with it.
    pub fn reason_to_keep_filled(&self, container: &Live, now: &Contents) -> Option<SkipReason> {
        let annotated = data_loss::objects_with_keep_annotation(now);
        self.holds_annotated(container, annotated)
            .or_else(|| match self.policy.data_loss {
                Risk::Allowed => None,
                Risk::Refused => {
                    data_loss::reason_to_keep_filled(self.contents.get(&container.key), now, &self.going)
                }
            })
    }
}

/// Pairs of a dependency by manifest and the desired object that depends on it.
fn dependencies(desired: &Desired) -> impl Iterator<Item = (&ObjectKey, &ObjectKey)> {
    desired.members.iter().flat_map(|member| {
        let depends_on = member.depends_on.iter();
        depends_on.map(|key| (key, &member.key))
    })
}

#[cfg(test)]
mod tests;
