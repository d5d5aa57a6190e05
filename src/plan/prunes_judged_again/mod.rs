//! The prunes of a plan, judged again right before they begin and after each wait, by what the members are by then.
//!
//! By its UID, each object of a set is in one of three groups: the run has deleted it, it is still to be deleted, or it
//! stays. Every rule looks at these groups: losses, keep annotations, dependencies and owner references. In a run that
//! takes minutes, another client may add a member, a dependency or a keep annotation, or a delete may fail: what then
//! stays keeps what it needs, as if the plan were made now. A prune that is gone by then stays in the plan, and is
//! reported as pruned (`execute/deletion/delete`).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::dependencies::find_live_dependencies;
use super::{DependencyEdges, Judge, Judgement, KeptObjects, Plan, Policy, ReasonToKeep, Skip};
use crate::manifest::desired::Desired;
use crate::model::containers::Contents;
use crate::model::identity::ObjectKey;
use crate::model::live::{Live, Presence};
use crate::model::set::Set;

/// The input for judging prunes again.
#[derive(Debug, Clone, Copy)]
pub struct StateBeforeDeletes<'a> {
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
    /// The UIDs of the objects that the run has deleted.
    pub deleted: &'a BTreeSet<String>,
    /// The objects that the run was to delete and has not deleted.
    pub not_deleted: &'a KeptObjects,
}

impl StateBeforeDeletes<'_> {
    /// Returns a plan of nothing but the prunes, judged again, in no order. Those that the run has deleted are among
    /// them. Objects that stay are added to the skips.
    ///
    /// An object that is not among the members stays as it was planned: the run has deleted it, or its delete finds out
    /// whether it is gone.
    pub fn plan_with_prunes_judged_again(&self, plan: &Plan) -> Plan {
        let members: HashMap<&str, &Live> = self.members.iter().map(|live| (&*live.uid, live)).collect();
        let mut skips = plan.skips.clone();
        for skip in &mut skips {
            skip.live = find_read_again_or_planned(&members, &skip.live);
        }
        let (mut deleted, mut candidates) = (Vec::new(), Vec::new());
        for planned in plan.all_prunes() {
            let live = find_read_again_or_planned(&members, planned);
            if self.deleted.contains(&live.uid) {
                deleted.push(live);
            } else if self.not_deleted.contains(&live.key) {
                skips.push(new_skip_of_staying(live));
            } else {
                candidates.push(live);
            }
        }
        let uids = self.desired_uids.clone();
        let mut judge = Judge::new(self.set, self.policy, self.desired, self.contents, uids);
        let needed = self.divide_further_members(plan, &judge, &mut skips);
        judge.note_dependencies_of_desired(&needed);
        let (mut prunes, skips) = judge.divide_with_kept(&candidates, skips, &deleted);
        // The judge ignores prunes that turned out to be desired objects. They stay in the plan, so that each is
        // reported when its delete is due.
        prunes.extend(candidates.into_iter().filter(|live| judge.is_desired(live)));
        prunes.extend(deleted);
        Plan {
            prunes: vec![prunes],
            edges: DependencyEdges {
                needed,
                ..DependencyEdges::default()
            },
            skips,
            dependents: plan.dependents.clone(),
            accepted: plan.accepted.clone(),
            preconditions: plan.preconditions.clone(),
            ..Plan::default()
        }
    }

    /// Returns the desired objects that are not members any more, after all of them were applied: another client has
    /// deleted them, or removed their label. An object that is being deleted has left already; one that deletes itself
    /// once it has finished has not left. Returns none if each object that was applied is a member under another key, as
    /// one that two API groups serve may be.
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
        let desired = self.desired.members.iter();
        desired
            .filter(|object| !keys.contains(&object.key) && !object.is_deleted_once_finished())
            .map(|object| &object.key)
            .collect()
    }

    /// Adds the members that are neither desired nor in the plan, because another run has added them, to `skips`.
    /// Returns the dependencies of the desired objects, each with one dependent.
    fn divide_further_members(
        &self,
        plan: &Plan,
        judge: &Judge<'_>,
        skips: &mut Vec<Skip>,
    ) -> BTreeMap<ObjectKey, ObjectKey> {
        let in_plan: HashSet<&str> = plan
            .all_prunes()
            .chain(plan.skips.iter().map(|skip| &skip.live))
            .map(|live| live.uid.as_str())
            .collect();
        let mut desired = Vec::new();
        for live in self.members {
            if in_plan.contains(live.uid.as_str()) {
                continue;
            }
            match judge.judge_by_itself(live) {
                Judgement::Ignore => desired.push(live),
                // It is being deleted, or it is a copy that a controller has made.
                Judgement::Skip(reason)
                    if matches!(reason, ReasonToKeep::Terminating { .. }) || !reason.is_of_member() =>
                {
                    skips.push(Skip {
                        live: live.clone(),
                        reason,
                    });
                }
                Judgement::Skip(_) | Judgement::Prune | Judgement::Refuse(_) => {
                    skips.push(new_skip_of_staying(live.clone()));
                }
            }
        }
        find_live_dependencies(desired.into_iter())
    }
}

fn new_skip_of_staying(live: Live) -> Skip {
    Skip {
        live,
        reason: ReasonToKeep::NotDeletedByRun,
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
