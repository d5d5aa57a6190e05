//! The one judgement of a live object that the manifests do not ask for: with all rules, when a
//! plan is made, and again before the write if the object has changed by then.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::inside::{Inside, Kept};
use super::owners::{Dependant, Dependants, Detachment};
use super::{
    DataLoss, Judgement, Plan, Policy, Pruning, Refusal, Skip, SkipReason, contents, is_home_of, prune,
};
use crate::event::Operation;
use crate::manifest::desired::Desired;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::set::Set;
use crate::read::{Contents, Held};

/// Everything that the judgement of one object depends on.
#[derive(Debug)]
pub struct Judge<'a> {
    set: &'a Set,
    policy: &'a Policy,
    desired: HashSet<&'a ObjectKey>,
    /// Two groups can serve one object: what is desired under one name is not pruned under the
    /// other.
    desired_uids: BTreeSet<String>,
    desired_inside: Inside<'a>,
    /// What namespaces and definitions of kinds held when the plan was made.
    contents: &'a BTreeMap<ObjectKey, Contents>,
    /// Those of them that a mark keeps, by what holds them.
    marked: HashMap<&'a ObjectKey, Vec<&'a Held>>,
    kept: Kept,
    /// The UIDs of what goes, and so is no loss.
    going: BTreeSet<String>,
    /// By pruned objects: the desired or kept objects that are still owned by what goes with them.
    /// With the annotation or label of each that keeps it.
    attached: HashMap<ObjectKey, BTreeMap<ObjectKey, Option<String>>>,
    bound: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// Losses that a person has confirmed, by the object.
    accepted: HashMap<&'a ObjectKey, Vec<&'a Refusal>>,
}

impl<'a> Judge<'a> {
    /// Judges for a plan that is still to be made. `desired_uids` are the UIDs of live objects
    /// that the manifests ask for.
    pub(super) fn new(
        set: &'a Set,
        policy: &'a Policy,
        desired: &'a Desired,
        contents: &'a BTreeMap<ObjectKey, Contents>,
        desired_uids: BTreeSet<String>,
    ) -> Self {
        let members = || desired.members.iter().map(|object| &object.key);
        let parent = desired.parent.iter().map(|object| &object.key);
        Self {
            set,
            policy,
            desired: members().collect(),
            desired_uids,
            desired_inside: Inside::of(members().chain(parent)),
            contents,
            marked: contents
                .iter()
                .map(|(container, held)| (container, contents::marked(held).collect()))
                .collect(),
            kept: Kept::default(),
            going: BTreeSet::new(),
            attached: HashMap::new(),
            bound: BTreeMap::new(),
            accepted: HashMap::new(),
        }
    }

    /// Judges while a plan is carried out, by the same rules as when it was made.
    /// `desired_uids` are the UIDs of the objects that were applied or are unchanged.
    pub fn of_plan(
        set: &'a Set,
        policy: &'a Policy,
        desired: &'a Desired,
        contents: &'a BTreeMap<ObjectKey, Contents>,
        plan: &'a Plan,
        desired_uids: BTreeSet<String>,
    ) -> Self {
        let mut judge = Self::new(set, policy, desired, contents, desired_uids);
        judge.keep_all(&plan.skips);
        judge.let_go(plan.prunes.iter().flatten(), &plan.dependants);
        for refusal in &plan.accepted {
            if let Some(object) = refusal.object() {
                judge.accepted.entry(object).or_default().push(refusal);
            }
        }
        judge
    }

    /// Divides members into those that are pruned and those that are kept, each by itself and by
    /// what it holds.
    pub(super) fn divide(&mut self, members: &[Live]) -> (Vec<Live>, Vec<Skip>) {
        let mut seen = BTreeSet::new();
        let mut prunes = Vec::new();
        let mut skips = Vec::new();
        for live in members {
            if !seen.insert(live.uid.as_str()) {
                continue;
            }
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
        // What is kept may keep what it lives in.
        loop {
            self.keep_all(&skips);
            self.going = prunes.iter().map(|live| live.uid.clone()).collect();
            let before = prunes.len();
            let mut left = Vec::with_capacity(before);
            for live in prunes {
                match self.keep(&live) {
                    Some(reason) => skips.push(Skip { live, reason }),
                    None => left.push(live),
                }
            }
            prunes = left;
            if prunes.len() == before {
                return (prunes, skips);
            }
        }
    }

    fn keep_all(&mut self, skips: &[Skip]) {
        let kept = skips.iter().filter(|skip| skip.is_kept());
        self.kept = kept.map(|skip| &skip.live.key).collect();
    }

    /// Takes note of what goes.
    pub(super) fn let_go<'l>(&mut self, prunes: impl Iterator<Item = &'l Live>, dependants: &Dependants) {
        // The parent of a set that goes as a whole goes before what it lives in.
        let parent = self.set.parent_uid.iter();
        let parent = parent.filter(|_| self.policy.pruning == Pruning::WholeSet);
        self.going = prunes
            .map(|live| live.uid.clone())
            .chain(parent.cloned())
            .collect();
        self.renew(dependants);
    }

    /// Takes note of the desired and kept objects that are owned by what goes, and of no others.
    pub fn renew(&mut self, dependants: &Dependants) {
        self.bound.clone_from(&dependants.bound);
        self.attached.clear();
        for detachment in &dependants.detachments {
            self.attach(detachment);
        }
    }

    /// Takes note of a desired or kept object that is owned by what goes.
    fn attach(&mut self, detachment: &Detachment) {
        for pruned in &detachment.pruned {
            let attached = self.attached.entry(pruned.clone()).or_default();
            let dependant = &detachment.dependant;
            attached.insert(dependant.key.clone(), dependant.protection.clone());
        }
    }

    /// Takes note that an object is no longer owned by what goes.
    pub fn detach(&mut self, detachment: &Detachment) {
        for pruned in &detachment.pruned {
            if let Some(attached) = self.attached.get_mut(pruned) {
                attached.remove(&detachment.dependant.key);
            }
        }
    }

    /// Returns whether the manifests ask for this object, under whichever name.
    pub fn is_desired(&self, live: &Live) -> bool {
        self.desired.contains(&live.key) || self.desired_uids.contains(&live.uid)
    }

    /// Judges one object as it is now. A refusal is the first that nobody has lifted.
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
        prune::judge(live, self.set, self.policy)
    }

    /// Why an object is kept because of others that are kept.
    fn keep(&self, live: &Live) -> Option<SkipReason> {
        if let Some(kept) = self.kept.held_by(live) {
            return Some(SkipReason::HoldsKept { kept: kept.clone() });
        }
        let marked = self.marked.get(&live.key).into_iter().flatten().copied();
        if let Some(reason) = self.holds_marked(live, marked) {
            return Some(reason);
        }
        // What the parent lives in stays with the parent, and that with what is kept.
        (!self.kept.is_empty() && is_home_of(self.set, live)).then_some(SkipReason::HoldsParent)
    }

    /// The reason for which a container is kept that holds `marked` objects. What is owned by an
    /// object that goes is deleted after it, whether the container is kept or not.
    fn holds_marked<'h>(
        &self,
        container: &Live,
        marked: impl Iterator<Item = &'h Held>,
    ) -> Option<SkipReason> {
        let is_going = |uid: &String| *uid != container.uid && self.going.contains(uid);
        let is_desired =
            |held: &Held| self.desired.contains(&held.key) || self.desired_uids.contains(&held.uid);
        let mut kept = marked
            .filter(|held| !is_desired(held) && !is_going(&held.uid) && !held.owners.iter().any(is_going));
        kept.find_map(|held| {
            Some(SkipReason::HoldsMarked {
                marked: held.key.clone(),
                mark: held.mark.clone()?,
            })
        })
    }

    /// Why the object may not be deleted, although nothing keeps it.
    pub(super) fn refusals(&self, live: &Live) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        let desired = self.desired_inside.held_by(live);
        if !desired.is_empty() {
            refusals.push(Refusal::HoldsWanted {
                container: live.key.clone(),
                wanted: desired.iter().map(|key| (*key).clone()).collect(),
            });
        }
        if let Some(dependants) = self.bound.get(&live.key) {
            refusals.push(Refusal::OwnsBound {
                object: live.key.clone(),
                dependants: dependants.iter().cloned().collect(),
            });
        }
        if !refusals.is_empty() {
            return refusals;
        }
        if self.policy.data_loss == DataLoss::Refused {
            refusals.extend(contents::loss(live, self.contents.get(&live.key), &self.going));
            refusals.retain(|refusal| !self.is_accepted(refusal));
        }
        // Allowed or not: what is still attached would be lost.
        refusals.extend(self.owns(live));
        refusals
    }

    /// The desired or kept objects that the garbage collector would delete after this one.
    fn owns(&self, live: &Live) -> Option<Refusal> {
        let attached = self.attached.get(&live.key)?;
        (!attached.is_empty()).then(|| Refusal::OwnsDependants {
            object: live.key.clone(),
            dependants: attached.keys().cloned().collect(),
            marks: attached
                .iter()
                .filter_map(|(key, mark)| Some((key.clone(), mark.clone()?)))
                .collect(),
            operation: self.operation(),
        })
    }

    /// Without any desired object there are no manifests to put anything back into.
    fn operation(&self) -> Operation {
        if self.desired.is_empty() {
            Operation::Delete
        } else {
            Operation::Apply
        }
    }

    /// Returns whether the object is the parent of a set that goes as a whole. It is detached from
    /// members to go after them, and so needs no permission.
    pub fn goes_last(&self, dependant: &Dependant) -> bool {
        self.policy.pruning == Pruning::WholeSet && self.set.parent_uid.as_ref() == Some(&dependant.uid)
    }

    /// Returns whether detaching this object was allowed: by the policy, by a person, or because
    /// it goes last.
    pub fn may_detach(&self, detachment: &Detachment) -> bool {
        if self.goes_last(&detachment.dependant) {
            return true;
        }
        let is_accepted = |pruned: &ObjectKey| {
            self.is_accepted(&Refusal::OwnsDependants {
                object: pruned.clone(),
                dependants: vec![detachment.dependant.key.clone()],
                marks: BTreeMap::new(),
                operation: self.operation(),
            })
        };
        self.policy.data_loss == DataLoss::Allowed || detachment.pruned.iter().all(is_accepted)
    }

    fn is_accepted(&self, refusal: &Refusal) -> bool {
        let shown = refusal.object().and_then(|object| self.accepted.get(object));
        let mut shown = shown.into_iter().flatten();
        shown.any(|shown| refusal.is_within(shown))
    }

    /// Why a namespace or the definition of a kind, which holds `now` right before it is deleted,
    /// is not deleted although that was decided: what came into it since would go along. `None`
    /// if it may go.
    pub fn filled(&self, container: &Live, now: &Contents) -> Option<SkipReason> {
        let marked = contents::marked(now);
        self.holds_marked(container, marked)
            .or_else(|| match self.policy.data_loss {
                DataLoss::Allowed => None,
                DataLoss::Refused => contents::filled(self.contents.get(&container.key), now, &self.going),
            })
    }
}

#[cfg(test)]
mod tests;
