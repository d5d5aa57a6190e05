//! Reads the cluster state before objects are applied: which objects are members and how they differ from their
//! manifests, then the objects around them.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join;

use super::comparison::{Compared, ComparisonInputs};
use super::read_autoscalers::ScaledMembers;
use super::scope::ScopedSet;
use super::{
    ClusterState, NotesAndWarnings, ReadSettings, comparison, dependencies, read_autoscalers, scope,
};
use crate::cluster::apiserver::ApiServer;
use crate::compare::ownership::member_field_manager;
use crate::error::Error;
use crate::manifest::desired::Desired;
use crate::model::live::{Live, Presence};
use crate::model::set::Set;
use crate::plan::{self, Policy, Risk, Unowned};
use crate::read::{
    Cluster, NamedSet, find_existing, orphans, other_sets, read_owners_of_namespaces_and_crds,
};

/// Reads the cluster state before these objects are applied. Each step uses what the steps before it have found.
pub(super) async fn read(
    cluster: &mut Cluster,
    named: &NamedSet,
    mut scoped: ScopedSet,
    (desired, base): (&mut Desired, Option<&mut Desired>),
    policy: &Policy,
    settings: ReadSettings<'_>,
) -> Result<ClusterState, Error> {
    let mut reports = NotesAndWarnings {
        notes: Vec::new(),
        warnings: scoped.warnings(named),
    };
    // A second read must not keep what the first one left to autoscalers: these may be gone.
    desired.replace_fields_left_to_autoscalers(BTreeMap::new());
    let former_tooling = scope::former_tooling(named, &scoped.judged.parent_status);
    let inputs = ComparisonInputs {
        desired,
        settings,
        former_field_manager: former_tooling.as_ref().map(member_field_manager),
    };
    let (mut compared, others) =
        compare_members_and_list_others(cluster, named, &mut scoped, inputs, &mut reports.warnings).await?;
    // Before the steps below, which read `desired` and the comparisons: replicas that are left to autoscalers change
    // both. Objects that are taken from another set may have autoscalers, too.
    let former_owners = comparison::former_owners(named, inputs);
    if policy.take_ownership == Risk::Allowed {
        let scaled = &mut compared.scaled;
        read_autoscalers::add_replicas_of_objects(&cluster.server, desired, &others, &former_owners, scaled)
            .await?;
    }
    if let Some(base) = base {
        let scaled = read_autoscalers::find_replicas_dropped_by_base(
            &cluster.server,
            (desired, base),
            &compared,
            &former_owners,
        )
        .await?;
        leave_replicas_of_base_to_autoscalers(cluster, &named.set, base, policy, &compared.members, scaled)
            .await?;
    }
    leave_replicas_to_autoscalers(cluster, &named.set, desired, policy, &mut compared, &mut reports).await?;
    let mut state = scoped.initial_state(named);
    state.pruning = policy.pruning;
    state.with_live_fields = compared.with_live_fields;
    state.notes = reports.notes;
    state.warnings = reports.warnings;
    state.observed.members = compared.members;
    state.observed.comparisons = compared.comparisons;
    state.observed.others = others;
    read_objects_outside_set(cluster, named, desired, policy, settings, &mut state).await?;
    let members = &state.observed.members;
    state.observed.dependencies = dependencies::find_dependencies_outside_manifests(
        cluster,
        desired,
        members,
        compared.current_dependencies,
        settings,
    )
    .await?;
    state.observed.terminating_namespaces = list_terminating_namespaces(&state);
    if let Some(parent) = &state.parent {
        state.observed.parent_annotations = parent.object.annotations.clone();
    }
    // Last, because the plan decides by all the rest which namespaces and CRDs matter.
    read_containers(cluster, named, desired, policy, settings, &mut state).await?;
    Ok(state)
}

/// Compares the members with their manifests, and lists the members of other sets among the objects of the manifests.
async fn compare_members_and_list_others(
    cluster: &mut Cluster,
    named: &NamedSet,
    scoped: &mut ScopedSet,
    inputs: ComparisonInputs<'_>,
    warnings: &mut Vec<String>,
) -> Result<(Compared, Vec<Live>), Error> {
    let location = match &scoped.judged.parent {
        Some(_) => MemberLocation::Scope,
        None => locate_members_without_parent(&cluster.server, named, scoped, inputs).await?,
    };
    let compared = match location {
        MemberLocation::Nowhere { others } => return Ok((Compared::default(), others)),
        MemberLocation::Scope => {
            compare_members_and_search_cluster_if_orphaned(cluster, named, scoped, inputs, warnings).await?
        }
        MemberLocation::WholeCluster => {
            search_cluster_and_compare_members(cluster, named, scoped, inputs, warnings).await?
        }
    };
    let others = other_sets::list_members_of_other_sets(
        &cluster.server,
        named,
        inputs.desired,
        &compared.members,
        inputs.settings.concurrency,
    )
    .await?;
    Ok((compared, others))
}

/// The extent in which a set may have members.
enum MemberLocation {
    /// The set has no members.
    Nowhere {
        /// The members of other sets in the scope, which the search for members has found, too.
        others: Vec<Live>,
    },
    /// In the scope of the set, if it has any.
    Scope,
    /// In the cluster, perhaps outside of the scope.
    WholeCluster,
}

/// Looks for members of a set without a parent, in its scope and at the same time in all namespaces. The latter is left
/// out if the whole cluster was searched before.
async fn locate_members_without_parent(
    server: &ApiServer,
    named: &NamedSet,
    scoped: &ScopedSet,
    inputs: ComparisonInputs<'_>,
) -> Result<MemberLocation, Error> {
    let ComparisonInputs {
        desired, settings, ..
    } = inputs;
    let places = &scoped.member_scope.places;
    let others_if_scope_empty =
        other_sets::list_other_members_if_set_empty(server, named, desired, places, settings.concurrency);
    let has_members_in_cluster = async {
        match scoped.orphans {
            Some(_) => Ok(false),
            None => orphans::has_members_of_desired_kinds(server, named, desired, settings.concurrency).await,
        }
    };
    let (others_if_scope_empty, has_members_in_cluster) =
        join(others_if_scope_empty, has_members_in_cluster).await;
    let (has_members_in_cluster, others_if_scope_empty) = (has_members_in_cluster?, others_if_scope_empty?);
    if has_members_in_cluster {
        return Ok(MemberLocation::WholeCluster);
    }
    Ok(match others_if_scope_empty {
        Some(others) => MemberLocation::Nowhere { others },
        None => MemberLocation::Scope,
    })
}

/// Reads the members in the scope, and compares each with its manifest. If the set has members and no parent, its
/// parent is gone, and members may be anywhere: then the whole cluster is searched.
async fn compare_members_and_search_cluster_if_orphaned(
    cluster: &mut Cluster,
    named: &NamedSet,
    scoped: &mut ScopedSet,
    inputs: ComparisonInputs<'_>,
    warnings: &mut Vec<String>,
) -> Result<Compared, Error> {
    let places = &scoped.member_scope.places;
    let compared = comparison::list_and_compare_members(&cluster.server, named, places, inputs).await?;
    if scoped.judged.parent.is_some() || compared.members.is_empty() {
        return Ok(compared);
    }
    search_cluster_and_compare_members(cluster, named, scoped, inputs, warnings).await
}

/// Searches members in the whole cluster, unless that was done before; reads them, and compares each with its manifest.
async fn search_cluster_and_compare_members(
    cluster: &mut Cluster,
    named: &NamedSet,
    scoped: &mut ScopedSet,
    inputs: ComparisonInputs<'_>,
    warnings: &mut Vec<String>,
) -> Result<Compared, Error> {
    let search_rules = inputs.settings.search_rules();
    let found = match scoped.orphans.take() {
        Some(found) => found,
        None => {
            orphans::find_and_extend_scope(cluster, named, &mut scoped.member_scope, search_rules).await?
        }
    };
    let places = &scoped.member_scope.places;
    let compared = comparison::list_and_compare_members(&cluster.server, named, places, inputs).await?;
    let count = compared.members.len();
    if count > 0 {
        warnings.push(orphans::warning_of_found_orphans(named, count, &found.hidden));
    }
    warnings.extend(found.left_out.warnings);
    Ok(compared)
}

/// Ignores the numbers of replicas that the manifests no longer set and that autoscalers write.
async fn leave_replicas_to_autoscalers(
    cluster: &Cluster,
    set: &Set,
    desired: &mut Desired,
    policy: &Policy,
    compared: &mut Compared,
    reports: &mut NotesAndWarnings,
) -> Result<(), Error> {
    if !compared.scaled.is_empty() {
        let leaving = plan::find_autoscalers_gone_after_run(set, desired, &compared.members, policy);
        read_autoscalers::retain_autoscaled(cluster, desired, &leaving, &mut compared.scaled, reports)
            .await?;
        compared.use_comparisons_that_ignore_replicas();
    }
    replace_fields_left_to_autoscalers(desired, &compared.scaled);
    Ok(())
}

/// Ignores the numbers of replicas that the manifests of the base do not set, and that autoscalers write under the base.
/// What there is to say about these is about manifests that are not applied.
async fn leave_replicas_of_base_to_autoscalers(
    cluster: &Cluster,
    set: &Set,
    base: &mut Desired,
    policy: &Policy,
    members: &[Live],
    mut scaled: ScaledMembers,
) -> Result<(), Error> {
    if !scaled.is_empty() {
        let leaving = plan::find_autoscalers_gone_after_run(set, base, members, policy);
        let mut reports = NotesAndWarnings::default();
        read_autoscalers::retain_autoscaled(cluster, base, &leaving, &mut scaled, &mut reports).await?;
    }
    replace_fields_left_to_autoscalers(base, &scaled);
    Ok(())
}

fn replace_fields_left_to_autoscalers(desired: &mut Desired, scaled: &ScaledMembers) {
    let scaled = scaled.iter();
    let fields = scaled.map(|(key, dropped)| (key.clone(), dropped.path.pointer()));
    desired.replace_fields_left_to_autoscalers(fields.collect());
}

/// Reads the objects of the manifests that exist and are not members, and the parents of other sets with objects of the
/// manifests.
async fn read_objects_outside_set(
    cluster: &Cluster,
    named: &NamedSet,
    desired: &Desired,
    policy: &Policy,
    settings: ReadSettings<'_>,
    state: &mut ClusterState,
) -> Result<(), Error> {
    let observed = &mut state.observed;
    observed.existing = match policy.unowned {
        // Such objects become members, whether they exist or not.
        Unowned::TakenIn => Vec::new(),
        Unowned::Refused | Unowned::Shown => {
            let resources = &state.places.resources;
            let may_exist =
                plan::find_newcomers_to_read(desired, &observed.members, resources, &state.namespaces);
            find_existing(&cluster.server, &may_exist, settings.concurrency).await?
        }
    };
    observed.other_parents = other_sets::find_parents_of_sets_with_desired_objects(
        cluster,
        named,
        desired,
        &observed.others,
        settings.concurrency,
        &mut state.warnings,
    )
    .await;
    Ok(())
}

fn list_terminating_namespaces(state: &ClusterState) -> BTreeSet<String> {
    state
        .namespaces
        .iter()
        .filter(|(_, namespace)| namespace.presence == Presence::Terminating)
        .map(|(name, _)| name.clone())
        .collect()
}

/// Reads the owners of the namespaces and CRDs that stay, and the contents of those that would be pruned.
async fn read_containers(
    cluster: &mut Cluster,
    named: &NamedSet,
    desired: &Desired,
    policy: &Policy,
    settings: ReadSettings<'_>,
    state: &mut ClusterState,
) -> Result<(), Error> {
    let observed = &mut state.observed;
    let parent_resource = Some(&named.resource);
    let staying =
        plan::find_containers_of_staying_objects(&named.set, parent_resource, desired, observed, policy);
    observed.container_owners =
        read_owners_of_namespaces_and_crds(&cluster.server, &staying, &state.namespaces).await?;
    let pruned = plan::find_containers_to_prune(&named.set, desired, observed, policy);
    observed.contents = cluster
        .list_contents_of_namespaces_and_crds(&pruned, settings.concurrency)
        .await?;
    Ok(())
}
