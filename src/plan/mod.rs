//! The plan of a run as a value: every apply, prune, kept object and refusal, with its reason.
//!
//! `plan` is pure: it uses no client, no clock and no output. Each rule has a file of its own, and its tests are a
//! table of cases. `execute` carries the plan out.

mod adopt_move_disband;
mod applied_and_unchanged;
mod apply_graph;
mod apply_order_of_kinds;
mod apply_steps;
mod autoscalers;
mod consent;
mod containers;
mod data_loss;
mod delete_graph;
mod deletion_remains;
mod dependencies;
mod dependents;
mod existing_objects;
#[cfg(test)]
pub mod fixtures;
mod graph;
mod judge;
mod member_scope;
mod nested_parents;
mod observed;
mod parent_disposition;
mod parent_judgement;
pub mod permissions;
mod planned_items;
mod policy;
mod preconditions;
mod prune_rules;
mod prune_waves;
mod prunes_judged_again;
mod reason_to_keep;
pub mod recorded_kinds;
mod recreation;
mod refusal;
mod refuse_to_prune_all;
pub mod saved;

use std::collections::HashSet;
use std::sync::Arc;

pub use adopt_move_disband::{
    Candidate, FieldOwnership, FoundBy, MembershipChange, MembershipKeepReason, MembershipPlan,
    MembershipSkip, judge_adoption, judge_disband, judge_move, plan_adoption, plan_disband, plan_move,
    refuse_empty_or_unconfirmed_adoption,
};
pub use applied_and_unchanged::is_not_yet_served;
pub use apply_graph::ApplyAction;
pub use apply_order_of_kinds::apply_sort_key;
pub use autoscalers::{
    autoscalers, desired_autoscalers_by_target, find_autoscalers_gone_after_run, left_to_autoscalers_note,
    read_scale_target, removed_replicas_warning, unlisted_autoscalers_warning,
};
pub use consent::{Consent, Proposal, ProposedApplies, ProposedApply};
pub use containers::{
    KeptObjects, find_containers_of_staying_objects_in_plan, holds_parent_of, is_namespace_or_crd,
    is_namespace_or_crd_kind,
};
pub use data_loss::deletes_volume_data;
pub use delete_graph::DeleteAction;
pub use deletion_remains::Remains;
pub use dependencies::{DependencyEdges, KnownDependencies};
pub use dependents::{Dependent, Dependents, Detachment};
pub use existing_objects::{
    OtherParent, OtherParents, describe_joining_object, describe_taken_in_object, find_newcomers_to_read,
    scope_of_newcomers,
};
pub use graph::{Barrier, EdgeKind, Graph, NodeId, NodeKind};
pub use judge::Judge;
pub use member_scope::{MemberScope, determine_member_scope};
pub use nested_parents::apply_may_remove_record;
pub use observed::Observed;
pub use parent_disposition::{ParentDisposition, decide_parent_disposition};
pub use parent_judgement::{ParentJudgement, ParentStatus, judge_parent, judge_parent_for_deletion};
pub use planned_items::{Apply, LiveMembership, Plan, Skip, Unchanged};
pub use policy::{Policy, PruneWhen, Pruning, Risk, UnchangedMembers, Unowned};
pub use preconditions::{Preconditions, Seen};
pub use prune_rules::{Judgement, is_owned_copy, reason_not_a_member};
use prune_waves::PruneSteps;
pub use prunes_judged_again::StateBeforeDeletes;
pub use reason_to_keep::{ReasonToKeep, describe_label_writers};
pub use recreation::{
    Recreate, RecreationObstacle, claims_after_recreation, describe_lost_volume_data, loses_data,
};
pub use refusal::{
    Refusal, describe_released_copies, list_with_keep_annotations, refuse_hooks, refuse_large_annotations,
};

use crate::compare::changes::Verdict;
use crate::manifest::desired::Desired;
pub use crate::manifest::desired::kind_defined_by_crd;
use crate::model::containers::Containers;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::model::set::Set;

/// Decides what a run does.
pub fn plan(set: &Set, desired: &Desired, observed: &Observed, policy: &Policy) -> Plan {
    let with_dependencies = find_unchanged_members_with_dependencies(desired, observed);
    let mut judge = new_judge(set, desired, observed, policy, &with_dependencies);
    let (prunes, skips) = judge.divide_into_prunes_and_skips(&observed.members);
    let dependents = Dependents::find(
        desired,
        &HashSet::new(),
        observed,
        &prunes.iter().collect::<Vec<_>>(),
        &skips,
        policy,
    );
    judge.replace_deleted_and_dependents(prunes.iter(), &dependents);
    // Before its first delete, the run removes these owner references. The plan is judged as if they were removed.
    for detachment in &dependents.detachments {
        if judge.may_detach(detachment) {
            judge.note_owner_reference_removed(detachment);
        }
    }
    let desired_record = desired.build_record(&set.parent);
    let mut record_after = desired_record.union(&observed.record_to_keep);
    for Skip { live, .. } in &skips {
        let namespace = live.key.namespace.as_deref();
        record_after.add_kind_and_namespace(&live.key.group_kind, namespace, set.parent.namespace.as_deref());
    }
    let applied = applied_and_unchanged::divide_desired_members(set, desired, observed, policy);
    let mut steps = PruneSteps::new(set, prunes, &skips);
    let warnings = with_dependencies
        .iter()
        .copied()
        .flat_map(dependencies::ignored_dependency_warnings);
    steps.ignored.extend(warnings);
    let mut plan = Plan {
        record_during: observed.recorded.union(&desired_record),
        record_after,
        prerequisites: applied.prerequisites,
        waves: applied.waves,
        unchanged: applied.unchanged,
        prunes: steps.regular,
        last_prunes: steps.last,
        edges: DependencyEdges {
            known: observed.dependencies.clone(),
            prune_after: steps.after,
            needed: dependencies::find_live_dependencies(with_dependencies.iter().copied()),
            ignored: steps.ignored,
        },
        skips,
        dependents,
        accepted: Vec::new(),
        preconditions: Preconditions::default(),
        refusals: Vec::new(),
    };
    plan.refusals = refusal::find_refusals(&plan, &judge, set, desired, observed, policy);
    if policy.data_loss == Risk::Allowed {
        plan.accepted = plan
            .all_prunes()
            .flat_map(|live| judge.find_losses_even_if_allowed(live))
            .collect();
    }
    plan
}

/// Returns the namespaces and CRDs that a run would prune. Their contents would be deleted with them, so these have to
/// be read before the run is planned.
pub fn find_containers_to_prune(
    set: &Set,
    desired: &Desired,
    observed: &Observed,
    policy: &Policy,
) -> Vec<Live> {
    let (prunes, _) = divide_if_any_cluster_scoped(set, desired, observed, policy);
    prunes.into_iter().filter(is_namespace_or_crd).collect()
}

/// Returns the namespaces and CRDs that hold the parent, desired objects or kept objects, and that the run does not
/// prune. The run may prune an owner of one of them, so the owners have to be read before the run is planned. `parent`
/// is the resource of the parent, if there is one.
pub fn find_containers_of_staying_objects(
    set: &Set,
    parent: Option<&Arc<Resource>>,
    desired: &Desired,
    observed: &Observed,
    policy: &Policy,
) -> Containers {
    let (prunes, skips) = divide_if_any_cluster_scoped(set, desired, observed, policy);
    containers::containers_that_stay(set, parent, desired, prunes.iter(), &skips)
}

/// Divides the members into prunes and skips if any member is cluster-scoped; otherwise, both lists are empty.
///
/// A container, and every owner of a container, is cluster-scoped. If no member is, there is nothing to read about
/// containers, and the division can wait until the plan is made.
fn divide_if_any_cluster_scoped(
    set: &Set,
    desired: &Desired,
    observed: &Observed,
    policy: &Policy,
) -> (Vec<Live>, Vec<Skip>) {
    let mut members = observed.members.iter();
    if members.all(|live| live.key.namespace.is_some()) {
        return (Vec::new(), Vec::new());
    }
    let with_dependencies = find_unchanged_members_with_dependencies(desired, observed);
    new_judge(set, desired, observed, policy, &with_dependencies)
        .divide_into_prunes_and_skips(&observed.members)
}

/// Creates the judge of a plan that is still to be made. `with_dependencies` are the unchanged members whose live
/// objects name dependencies.
fn new_judge<'a>(
    set: &'a Set,
    desired: &'a Desired,
    observed: &'a Observed,
    policy: &'a Policy,
    with_dependencies: &[&'a Live],
) -> Judge<'a> {
    let keys: HashSet<&ObjectKey> = desired.members.iter().map(|object| &object.key).collect();
    let desired_live = observed.members.iter().filter(|live| keys.contains(&live.key));
    let desired_uids = desired_live.map(|live| live.uid.clone()).collect();
    let mut judge = Judge::new(set, policy, desired, &observed.contents, desired_uids);
    judge.note_dependencies_of_desired(&dependencies::find_live_dependencies(
        with_dependencies.iter().copied(),
    ));
    judge
}

/// Returns the members that match their manifests and whose live objects name dependencies.
///
/// Changed members are left out: an apply may change their dependencies, so those in their manifests count instead.
fn find_unchanged_members_with_dependencies<'a>(desired: &Desired, observed: &'a Observed) -> Vec<&'a Live> {
    let members = observed.members.iter();
    let mut found: Vec<&Live> = members.filter(|live| !live.dependencies.is_empty()).collect();
    if found.is_empty() {
        return found;
    }
    let unchanged: HashSet<&ObjectKey> = observed
        .comparisons
        .iter()
        .filter(|(_, verdict)| **verdict == Verdict::Unchanged)
        .filter_map(|(index, _)| Some(&desired.members.get(*index)?.key))
        .collect();
    found.retain(|live| unchanged.contains(&live.key));
    found
}
