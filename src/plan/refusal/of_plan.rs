//! The refusals of a plan: every rule that stops a run before its first write.

use super::super::{
    Judge, Observed, Plan, Policy, TakeOwnership, Unowned, annotations_too_large, overlap, prune_all,
    unowned_objects,
};
use super::Refusal;
use crate::manifest::desired::Desired;
use crate::model::set::Set;

/// Finds the reasons for which the plan may not be carried out.
pub(in super::super) fn of_plan(
    plan: &Plan,
    judge: &Judge<'_>,
    set: &Set,
    desired: &Desired,
    observed: &Observed,
    policy: &Policy,
) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    refusals.extend(prune_all::refusal(plan, desired, observed, policy));
    if policy.take_ownership == TakeOwnership::Refused {
        refusals.extend(overlap::refusals(desired, observed));
    }
    if policy.unowned == Unowned::Refused {
        refusals.extend(unowned_objects::refusals(desired, observed));
    }
    refusals.extend(plan.all_prunes().flat_map(|live| judge.refusals(live)));
    if let Some(limit) = policy.max_prune
        && plan.deletions() > limit
    {
        refusals.push(Refusal::TooManyPrunes {
            objects: plan.all_prunes().map(|live| live.key.clone()).collect(),
            limit,
        });
    }
    refusals.extend(annotations_too_large(
        &plan.record_during,
        set,
        &observed.parent_annotations,
    ));
    refusals
}
