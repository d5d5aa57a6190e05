//! The prunes of a plan, judged again among the members as they are after a wait.
//!
//! While a run waits, a member may come to depend on an object that is to be pruned, or get a keep annotation. What
//! it depends on is kept then, as if the plan had been made now. A prune that has vanished stays in the plan, and is
//! reported as pruned (`execute/deletion/delete`).

use std::collections::{BTreeMap, HashMap, HashSet};

use super::dependencies::list_dependencies;
use super::prune_rules::is_owned_copy;
use super::{Judge, Plan, Policy, PruneSteps, Skip, SkipReason};
use crate::manifest::desired::Desired;
use crate::model::containers::Contents;
use crate::model::identity::ObjectKey;
use crate::model::live::{Live, Presence};
use crate::model::set::Set;
use crate::model::user_annotations::PruneOrder;

/// The judgement of prunes after a wait: what it depends on.
#[derive(Debug, Clone, Copy)]
pub struct PrunesJudgedAgain<'a> {
    pub set: &'a Set,
    /// The policy of the plan.
    pub policy: &'a Policy,
    /// The desired objects.
    pub desired: &'a Desired,
    /// The UIDs of those that were applied or are unchanged.
    pub desired_uids: &'a HashSet<String>,
    /// The contents of namespaces and CRDs when the plan was made.
    pub contents: &'a BTreeMap<ObjectKey, Contents>,
    /// The members as they are now, read as whole objects.
    pub members: &'a [Live],
}

impl PrunesJudgedAgain<'_> {
    /// Returns the plan with the prunes of this order, and those that follow, judged again. Objects that
    /// are kept now are added to its skips. An object that is not among the members is left as planned:
    /// its delete finds out what has become of it. So is what a saved plan prunes.
    pub fn in_plan(&self, plan: &Plan, order: PruneOrder) -> Plan {
        let planned: Vec<&Live> = match order {
            PruneOrder::Regular => plan.all_prunes().collect(),
            PruneOrder::Last => plan.last_prunes.iter().flatten().collect(),
        };
        let now: HashMap<&str, &Live> = self.members.iter().map(|live| (&*live.uid, live)).collect();
        let candidates: Vec<Live> = planned.iter().map(|live| current(&now, live)).collect();
        let (mut skips, needed) = self.others(plan, &planned);
        for skip in &mut skips {
            skip.live = current(&now, &skip.live);
        }
        let uids = self.desired_uids.clone();
        let mut judge = Judge::new(self.set, self.policy, self.desired, self.contents, uids);
        judge.need(needed.iter());
        let (mut prunes, skips) = judge.divide_with(&candidates, skips);
        // They are reported when their turn comes.
        prunes.extend(candidates.iter().filter(|live| judge.is_desired(live)).cloned());
        let mut steps = PruneSteps::new(self.set, prunes, &skips);
        let planned: HashMap<&str, &Live> = planned.iter().map(|live| (&*live.uid, *live)).collect();
        if plan.preconditions.require_unchanged() {
            for live in steps.regular.iter_mut().chain(&mut steps.last).flatten() {
                live.clone_from(planned[live.uid.as_str()]);
            }
        }
        let (regular, last) = (steps.regular, steps.last);
        let mut judged = plan.clone();
        (judged.prunes, judged.last_prunes) = match order {
            PruneOrder::Regular => (regular, last),
            PruneOrder::Last => (Vec::new(), [regular, last].concat()),
        };
        judged.skips = skips;
        judged.edges.prune_after = steps.after;
        judged.edges.needed = needed;
        judged.edges.ignored = steps.ignored;
        judged
    }

    /// Returns the members other than these prunes: those that are kept or being deleted, and what all
    /// others depend on. One that another run has added is as good as desired.
    fn others(&self, plan: &Plan, prunes: &[&Live]) -> (Vec<Skip>, BTreeMap<ObjectKey, ObjectKey>) {
        let prunes: HashSet<&str> = prunes.iter().map(|live| live.uid.as_str()).collect();
        let mut skips: Vec<Skip> = plan.skips.clone();
        let known: HashSet<String> = skips.iter().map(|skip| skip.live.uid.clone()).collect();
        let keys: HashSet<&ObjectKey> = self.desired.members.iter().map(|object| &object.key).collect();
        let mut others = Vec::new();
        for live in self.members {
            if prunes.contains(live.uid.as_str()) || known.contains(&live.uid) {
                continue;
            }
            let is_desired = keys.contains(&live.key) || self.desired_uids.contains(&live.uid);
            if live.presence == Presence::Terminating && !is_desired {
                let waits_for = live.waits_for.clone();
                skips.push(Skip {
                    live: live.clone(),
                    reason: SkipReason::Terminating { waits_for },
                });
            } else if is_desired || !is_owned_copy(live, self.set, &self.policy.appliers) {
                others.push(live);
            }
        }
        let needed = list_dependencies(others.into_iter())
            .map(|(key, dependent)| (key.clone(), dependent.clone()))
            .collect();
        (skips, needed)
    }
}

/// Returns the object as it is now; as it was planned if it is not among the members any more.
fn current(now: &HashMap<&str, &Live>, planned: &Live) -> Live {
    match now.get(planned.uid.as_str()) {
        Some(now) if now.key == planned.key => (*now).clone(),
        _ => planned.clone(),
    }
}

#[cfg(test)]
mod tests;
