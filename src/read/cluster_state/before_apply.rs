//! Reads the cluster state before objects are applied.

use std::collections::BTreeMap;

use futures_util::future::join;

use super::comparison::Compared;
use super::scope::ScopedSet;
use super::{ClusterState, ReadSettings, autoscalers, comparison, dependencies, scope};
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

/// Reads the cluster state before these objects are applied.
pub(super) async fn read(
    cluster: &mut Cluster,
    named: &NamedSet,
    mut scoped: ScopedSet,
    (desired, policy): (&mut Desired, &Policy),
    rules: ReadSettings<'_>,
) -> Result<ClusterState, Error> {
    let server = &cluster.server.clone();
    let former_tooling = scope::former_tooling(named, &scoped.judged.parent_status);
    let former = former_tooling.as_ref().map(member_field_manager);
    let mut warnings = scoped.warnings(named);
    desired.replace_fields_left_to_autoscalers(BTreeMap::new());
    let members = match &scoped.judged.parent {
        Some(_) => WhereMembersAre::PerhapsInScope,
        None => determine_where_members_are(server, named, &scoped, desired, rules).await?,
    };
    let run = (&*desired, rules, former);
    let mut compared = match &members {
        WhereMembersAre::None { .. } => Compared::default(),
        WhereMembersAre::PerhapsInScope => {
            compare_members_in_scope_or_cluster(cluster, named, &mut scoped, run, &mut warnings).await?
        }
        WhereMembersAre::InCluster => {
            search_cluster_and_compare_members(cluster, named, &mut scoped, run, &mut warnings).await?
        }
    };
    let others = match members {
        WhereMembersAre::None { others } => others,
        WhereMembersAre::PerhapsInScope | WhereMembersAre::InCluster => {
            other_sets::list_members_of_other_sets(
                server,
                named,
                desired,
                &compared.members,
                rules.concurrency,
            )
            .await?
        }
    };
    if policy.take_ownership == Risk::Allowed {
        let former = comparison::former_owners(named, rules, former);
        autoscalers::add_replicas_of_taken_objects(server, desired, &others, &former, &mut compared.scaled)
            .await?;
    }
    let mut notes = Vec::new();
    let reports = (&mut notes, &mut warnings);
    leave_replicas_to_autoscalers(cluster, &named.set, (desired, policy), &mut compared, reports).await?;
    let Compared {
        members,
        comparisons,
        with_live_fields,
        scaled: _,
        current,
    } = compared;
    let mut state = scoped.initial_state(named);
    state.with_live_fields = with_live_fields;
    state.notes = notes;
    let namespaces = &state.namespaces;
    let observed = &mut state.observed;
    observed.others = others;
    observed.existing = match policy.unowned {
        Unowned::TakenIn => Vec::new(),
        Unowned::Refused | Unowned::Shown => {
            let newcomers =
                plan::find_newcomers_to_read(desired, &members, &state.places.resources, namespaces);
            find_existing(server, &newcomers, rules.concurrency).await?
        }
    };
    observed.other_parents = other_sets::find_parents_of_other_sets(
        cluster,
        named,
        desired,
        &observed.others,
        rules.concurrency,
        &mut warnings,
    )
    .await;
    observed.dependencies =
        dependencies::find_dependencies_outside_manifests(cluster, desired, &members, current, rules).await?;
    observed.members = members;
    observed.comparisons = comparisons;
    observed.terminating_namespaces = namespaces
        .iter()
        .filter(|(_, state)| state.presence == Presence::Terminating)
        .map(|(name, _)| name.clone())
        .collect();
    observed.parent_annotations = state
        .parent
        .as_ref()
        .map(|parent| parent.object.annotations.clone())
        .unwrap_or_default();
    let parent_resource = Some(&named.resource);
    let containers =
        plan::find_containers_of_staying_objects(&named.set, parent_resource, desired, observed, policy);
    observed.container_owners = read_owners_of_namespaces_and_crds(server, &containers, namespaces).await?;
    let containers = plan::find_containers_to_prune(&named.set, desired, observed, policy);
    observed.contents = cluster
        .list_contents_of_namespaces_and_crds(&containers, rules.concurrency)
        .await?;
    state.pruning = policy.pruning;
    state.warnings = warnings;
    Ok(state)
}

/// Ignores the numbers of replicas that the manifests no longer set and that autoscalers write.
async fn leave_replicas_to_autoscalers(
    cluster: &Cluster,
    set: &Set,
    (desired, policy): (&mut Desired, &Policy),
    compared: &mut Compared,
    reports: (&mut Vec<String>, &mut Vec<String>),
) -> Result<(), Error> {
    if !compared.scaled.is_empty() {
        let leaving = plan::find_autoscalers_gone_after_run(set, desired, &compared.members, policy);
        autoscalers::retain_autoscaled(cluster, desired, &leaving, &mut compared.scaled, reports).await?;
        compared.use_comparisons_that_ignore_replicas();
    }
    let scaled = compared.scaled.iter();
    let fields = scaled.map(|(key, dropped)| (key.clone(), dropped.path.pointer()));
    desired.replace_fields_left_to_autoscalers(fields.collect());
    Ok(())
}

/// The extent in which a set may have members.
enum WhereMembersAre {
    /// The set has no members. Objects of the manifests are members of these other sets.
    None { others: Vec<Live> },
    /// The set may have members in its scope.
    PerhapsInScope,
    /// The set has members in the cluster, perhaps outside of its scope.
    InCluster,
}

/// Looks for members of a set without a parent, in its scope and at the same time in all namespaces. The latter is left
/// out if the whole cluster was searched before.
async fn determine_where_members_are(
    server: &ApiServer,
    named: &NamedSet,
    scoped: &ScopedSet,
    desired: &Desired,
    rules: ReadSettings<'_>,
) -> Result<WhereMembersAre, Error> {
    let places = &scoped.member_scope.places;
    let in_scope =
        other_sets::list_other_members_if_set_empty(server, named, desired, places, rules.concurrency);
    let in_cluster = async {
        match scoped.orphans {
            Some(_) => Ok(false),
            None => orphans::has_members_of_desired_kinds(server, named, desired, rules.concurrency).await,
        }
    };
    let (in_scope, in_cluster) = join(in_scope, in_cluster).await;
    let is_in_cluster = in_cluster?;
    Ok(match in_scope? {
        _ if is_in_cluster => WhereMembersAre::InCluster,
        Some(others) => WhereMembersAre::None { others },
        None => WhereMembersAre::PerhapsInScope,
    })
}

/// The objects of the manifests, the rules, and the former field manager of members.
type Run<'a> = (&'a Desired, ReadSettings<'a>, Option<&'a str>);

/// Reads the members in the scope, and compares each with its manifest. If the set has members and no parent, its
/// parent is gone, and members may be anywhere: then the whole cluster is searched.
async fn compare_members_in_scope_or_cluster(
    cluster: &mut Cluster,
    named: &NamedSet,
    scoped: &mut ScopedSet,
    (desired, rules, former): Run<'_>,
    warnings: &mut Vec<String>,
) -> Result<Compared, Error> {
    let places = &scoped.member_scope.places;
    let compared =
        comparison::list_and_compare_members(&cluster.server, named, desired, places, rules, former).await?;
    if scoped.judged.parent.is_some() || compared.members.is_empty() {
        return Ok(compared);
    }
    search_cluster_and_compare_members(cluster, named, scoped, (desired, rules, former), warnings).await
}

/// Searches members in the whole cluster, unless that was done before; reads them, and compares each with its manifest.
async fn search_cluster_and_compare_members(
    cluster: &mut Cluster,
    named: &NamedSet,
    scoped: &mut ScopedSet,
    (desired, rules, former): Run<'_>,
    warnings: &mut Vec<String>,
) -> Result<Compared, Error> {
    let found = match scoped.orphans.take() {
        Some(found) => found,
        None => {
            orphans::find_and_extend_scope(cluster, named, &mut scoped.member_scope, rules.search_rules())
                .await?
        }
    };
    let places = &scoped.member_scope.places;
    let compared =
        comparison::list_and_compare_members(&cluster.server, named, desired, places, rules, former).await?;
    let count = compared.members.len();
    warnings.extend((count > 0).then(|| orphans::warning_of_found_orphans(named, count, &found.hidden)));
    warnings.extend(found.left_out.warnings);
    Ok(compared)
}
