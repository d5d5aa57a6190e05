//! The prunes of a plan, judged again after a wait, with the members as they are by then.
//!
//! While a run waits, another client may add a dependency on an object that is to be pruned, or a keep annotation. Such
//! an object is kept, as if the plan were made after the wait. A prune that is gone by then stays in the plan, and is
//! reported as pruned (`execute/deletion/delete`).

use std::collections::{BTreeMap, HashMap, HashSet};

use super::dependencies::list_live_dependencies_with_dependents;
use super::prune_rules::is_owned_copy;
use super::{Judge, Plan, Policy, PruneSteps, ReasonToKeep, Skip};
use crate::manifest::desired::Desired;
use crate::model::containers::Contents;
use crate::model::identity::ObjectKey;
use crate::model::live::{Live, Presence};
use crate::model::set::Set;

/// The input for judging prunes again.
#[derive(Debug, Clone, Copy)]
pub struct StateAfterWait<'a> {
    pub set: &'a Set,
    /// The policy of the plan.
    pub policy: &'a Policy,
    /// The desired objects.
    pub desired: &'a Desired,
    /// The UIDs of the desired objects that were applied or are unchanged.
    pub desired_uids: &'a HashSet<String>,
    /// The contents of namespaces and CRDs when the plan was made.
    pub contents: &'a BTreeMap<ObjectKey, Contents>,
    /// The members as they are now, read as whole objects, without those that the run has deleted.
    pub members: &'a [Live],
}

impl StateAfterWait<'_> {
    /// Returns the plan with all its prunes judged again, also those that the run has deleted. Objects that are kept now
    /// are added to the skips.
    ///
    /// An object that is not among the members stays as it was planned: the run has deleted it, or its delete finds out
    /// whether it is gone. The objects of a saved plan stay as planned, too, so that each delete compares the object
    /// with the saved one.
    pub fn plan_with_prunes_judged_again(&self, plan: &Plan) -> Plan {
        let planned: Vec<&Live> = plan.all_prunes().collect();
        let members: HashMap<&str, &Live> = self.members.iter().map(|live| (&*live.uid, live)).collect();
        let candidates: Vec<Live> = planned
            .iter()
            .map(|live| find_read_again_or_planned(&members, live))
            .collect();
        let (mut skips, needed) = self.find_skips_and_dependencies_beside_prunes(plan, &planned);
        for skip in &mut skips {
            skip.live = find_read_again_or_planned(&members, &skip.live);
        }
        let uids = self.desired_uids.clone();
        let mut judge = Judge::new(self.set, self.policy, self.desired, self.contents, uids);
        judge.note_dependencies_of_desired(needed.iter());
        let (mut prunes, skips) = judge.divide_with_kept(&candidates, skips);
        // The judge ignores prunes that turned out to be desired objects. They stay in the plan, so that each is
        // reported when its delete is due.
        prunes.extend(candidates.iter().filter(|live| judge.is_desired(live)).cloned());
        let mut steps = PruneSteps::new(self.set, prunes, &skips);
        if plan.preconditions.is_of_saved_plan() {
            let planned: HashMap<&str, &Live> = planned.iter().map(|live| (&*live.uid, *live)).collect();
            for live in steps.regular.iter_mut().chain(&mut steps.last).flatten() {
                live.clone_from(planned[live.uid.as_str()]);
            }
        }
        let mut judged = plan.clone();
        (judged.prunes, judged.last_prunes) = (steps.regular, steps.last);
        judged.skips = skips;
        judged.edges.prune_after = steps.after;
        judged.edges.needed = needed;
        judged.edges.ignored = steps.ignored;
        judged
    }

    /// Returns the desired objects that are not members any more, after all of them were applied: another client has
    /// deleted them, or removed their label. An object that is being deleted has left already. Returns none if each
    /// object that was applied is a member under another key, as one that two API groups serve may be.
    pub fn desired_that_left(&self) -> Vec<&ObjectKey> {
        let present = || {
            self.members
                .iter()
                .filter(|live| live.presence != Presence::Terminating)
        };
        let uids: HashSet<&str> = present().map(|live| &*live.uid).collect();
        if self.desired_uids.iter().all(|uid| uids.contains(uid.as_str())) {
            return Vec::new();
        }
        let keys: HashSet<&ObjectKey> = present().map(|live| &live.key).collect();
        let desired = self.desired.members.iter().map(|object| &object.key);
        desired.filter(|key| !keys.contains(key)).collect()
    }

    /// Divides the members other than `prunes`. Returns those that are kept or being deleted, and the dependencies of
    /// the rest, each with one dependent.
    ///
    /// The rest are the desired objects, and members that another run has added. These count like desired objects, so
    /// what they depend on is kept.
    fn find_skips_and_dependencies_beside_prunes(
        &self,
        plan: &Plan,
        prunes: &[&Live],
    ) -> (Vec<Skip>, BTreeMap<ObjectKey, ObjectKey>) {
        let prune_uids: HashSet<&str> = prunes.iter().map(|live| live.uid.as_str()).collect();
        let mut skips: Vec<Skip> = plan.skips.clone();
        let skip_uids: HashSet<String> = skips.iter().map(|skip| skip.live.uid.clone()).collect();
        let desired_keys: HashSet<&ObjectKey> =
            self.desired.members.iter().map(|object| &object.key).collect();
        let mut rest = Vec::new();
        for live in self.members {
            if prune_uids.contains(live.uid.as_str()) || skip_uids.contains(&live.uid) {
                continue;
            }
            let is_desired = desired_keys.contains(&live.key) || self.desired_uids.contains(&live.uid);
            if live.presence == Presence::Terminating && !is_desired {
                let waits_for = live.waits_for.clone();
                skips.push(Skip {
                    live: live.clone(),
                    reason: ReasonToKeep::Terminating { waits_for },
                });
            } else if is_desired || !is_owned_copy(live, self.set, &self.policy.appliers) {
                rest.push(live);
            }
        }
        let needed = list_live_dependencies_with_dependents(rest.into_iter())
            .map(|(key, dependent)| (key.clone(), dependent.clone()))
            .collect();
        (skips, needed)
    }
}

/// Returns the object as it is among the `members` by UID, or as it was planned if it is not among them. A member with
/// the same UID and another key is the same object in another API group, so the planned one is used.
fn find_read_again_or_planned(members: &HashMap<&str, &Live>, planned: &Live) -> Live {
    match members.get(planned.uid.as_str()) {
        Some(member) if member.key == planned.key => (*member).clone(),
        _ => planned.clone(),
    }
}

#[cfg(test)]
mod tests;
