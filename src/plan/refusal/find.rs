//! The refusals of a plan: every rule that stops a run before its first write.

use super::super::{
    Judge, Observed, Plan, Policy, Risk, Unowned, annotations_too_large, overlap, refuse_to_prune_all,
    unowned_objects,
};
use super::Refusal;
use crate::manifest::HookKind;
use crate::manifest::desired::Desired;
use crate::model::set::Set;
use crate::model::write_settings::Hooks;

/// Finds the reasons for which the plan may not be carried out.
pub(in super::super) fn find(
    plan: &Plan,
    judge: &Judge<'_>,
    set: &Set,
    desired: &Desired,
    observed: &Observed,
    policy: &Policy,
) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    refusals.extend(refuse_hooks(desired, policy.hooks));
    refusals.extend(refuse_to_prune_all::refusal(plan, desired, observed, policy));
    if policy.take_ownership == Risk::Refused {
        refusals.extend(overlap::refusals(set, desired, observed));
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

/// Refuses hooks that are neither tests nor excluded, unless the user has said what to do with them.
pub fn refuse_hooks(desired: &Desired, hooks: Hooks) -> Option<Refusal> {
    if hooks != Hooks::Refused {
        return None;
    }
    let hooks: Vec<String> = desired
        .hooks
        .iter()
        .filter(|manifest| manifest.hook.kind == HookKind::Lifecycle)
        .map(|manifest| format!("{}: {manifest}", manifest.position))
        .collect();
    (!hooks.is_empty()).then_some(Refusal::HoldsHooks { hooks })
}
