//! Everything that `apply` and `diff` do before the first write: manifests → discovery → cluster
//! state → plan. Both make the same plan.

mod prepared;
pub mod saved_plan;
pub mod state_for_saved_plan;

use std::collections::BTreeSet;

use futures_util::future::join;

use super::command_run::CommandRun;
use super::connect::{discover, discover_with, open_connections_for_new_set};
use crate::cli::GlobalFlags;
use crate::cluster::connection::Connection;
use crate::cluster::discovery::{Discovery, KindLookup};
use crate::compare::ownership::member_field_manager;
use crate::error::Error;
use crate::manifest::desired::{self, Desired};
use crate::manifest::{self, Manifest, Manifests};
use crate::model::identity::GroupKind;
use crate::model::text::listed;
use crate::model::write_settings::{DryRun, WriteSettings};
use crate::plan::saved::{self, Salt, SavedManifest, SavedPlan};
use crate::plan::{self, Plan, Policy, Recreate, Risk, UnchangedMembers, is_container_kind};
use crate::read::{
    Administrator, Cluster, ClusterState, Goal, NamedSet, Rules, Wanted, administrator, cluster_state,
    leave_out_forbidden_nulls, named_set, user_name,
};
use crate::report::SetDocument;
use crate::settings::ApplyOptions;

pub use prepared::Prepared;

/// The source of the objects.
pub enum Input {
    /// From the sources that the options name.
    Sources,
    /// The same, and the manifests are kept for a saved plan, whose digests have this salt.
    Kept(Salt),
    /// From a saved plan.
    Saved {
        manifests: Manifests,
        /// The namespace of manifests without one.
        namespace: String,
    },
    /// From a saved plan, to be compared with the cluster. No source is read.
    Compared(Box<SavedPlan>),
}

/// The set and the desired objects, before their state is read.
struct ResolvedSet {
    cluster: Cluster,
    named: NamedSet,
    desired: Desired,
    manifests: Vec<SavedManifest>,
    recreate: Recreate,
}

/// Makes a plan that may be executed, once the user agrees to it. An outdated plan was made from the same manifests.
pub async fn to_write(
    run: &mut CommandRun,
    shared: &GlobalFlags,
    options: &ApplyOptions,
    outdated: Option<Prepared>,
) -> Result<Prepared, Error> {
    let (mut resolved, mut user) = match outdated {
        None => {
            let connection = run.connect(shared).await?;
            let resolved = resolve(run, connection, options, Input::Sources).await?;
            (resolved, Administrator::NotAsked)
        }
        Some(outdated) => {
            let user = outdated.user;
            (ResolvedSet::again(outdated).await?, user)
        }
    };
    let server = resolved.cluster.server.clone();
    // A first apply always writes, so the answer is needed, whatever the lists show.
    let is_asked = resolved.named.is_parent_missing() && options.writing.dry_run != DryRun::Client;
    let asking = async {
        if is_asked && user == Administrator::NotAsked {
            // The history of the set names the user.
            (user, _) = join(administrator(&server), user_name(&server)).await;
        }
    };
    let planning = read_and_plan(&mut resolved, options, options.take_over);
    let (made, ()) = join(planning, asking).await;
    let (state, policy, plan) = made?;
    let mut prepared = combine(resolved, options, state, policy, plan);
    prepared.user = user;
    Ok(prepared)
}

impl ResolvedSet {
    /// The set and the objects of a plan that is made again.
    async fn again(mut outdated: Prepared) -> Result<Self, Error> {
        outdated.cluster.discover_again().await?;
        Ok(Self {
            cluster: outdated.cluster,
            named: outdated.named,
            desired: outdated.desired,
            manifests: outdated.manifests,
            recreate: outdated.policy.recreate,
        })
    }
}

/// Makes a plan for `diff`, which may have refusals. It may be of another tool's set, since `diff`
/// changes nothing.
///
/// # Errors
///
/// No plan can be made, for example with an invalid record.
pub async fn to_show(
    run: &mut CommandRun,
    connection: Connection,
    options: &ApplyOptions,
    input: Input,
) -> Result<Prepared, Error> {
    let mut resolved = resolve(run, connection, options, input).await?;
    let (mut state, policy, mut plan) = read_and_plan(&mut resolved, options, Risk::Allowed).await?;
    if options.take_over == Risk::Refused {
        // It was taken over only to be shown: a later write needs the flag.
        plan.refusals.splice(..0, state.take_over.take());
    }
    let prepared = combine(resolved, options, state, policy, plan);
    report(run, &prepared);
    Ok(prepared)
}

async fn resolve(
    run: &mut CommandRun,
    mut connection: Connection,
    options: &ApplyOptions,
    input: Input,
) -> Result<ResolvedSet, Error> {
    let mut kept = Vec::new();
    let mut incomplete = BTreeSet::new();
    let hooks = options.policy.hooks;
    let divide = |manifests| Manifests::separate_hooks(manifests, hooks);
    let (mut cluster, manifests) = match input {
        Input::Sources | Input::Kept(_) => {
            let (cluster, manifests) = discover_with(
                connection,
                options.sources.clone(),
                options.recursion,
                run.kind_waits(),
                divide,
                Some(&options.set),
            )
            .await?;
            if let Input::Kept(salt) = input {
                refuse_to_keep(&manifests)?;
                kept = manifests
                    .all()
                    .map(|manifest| SavedManifest::new(manifest, &salt))
                    .collect();
            }
            (cluster, manifests)
        }
        Input::Saved { manifests, namespace } => {
            connection.namespace = namespace;
            let wanted = Wanted::ParentAndNamespaces(&options.set, &manifests.applied);
            let mut cluster = discover(connection, run.kind_waits(), wanted).await?;
            cluster.add_definitions(&manifests.applied).await?;
            (cluster, manifests)
        }
        Input::Compared(plan) => {
            connection.namespace.clone_from(&plan.set.namespace);
            let mut cluster = discover(connection, run.kind_waits(), Wanted::Nothing).await?;
            let manifests;
            (manifests, incomplete) =
                state_for_saved_plan::manifests(&cluster, &plan, options.writing.concurrency).await?;
            let manifests = divide(manifests);
            cluster.add_definitions(&manifests.applied).await?;
            (cluster, manifests)
        }
    };
    open_connections_for_new_set(&cluster, &manifests);
    let recreate = recreate(
        &options.policy.recreate,
        &options.recreate_kinds,
        &cluster.discovery,
        &manifests.applied,
    )?;
    if let Some(rules) = &options.status_rules.own {
        run.report_warnings(&rules.unknown_kinds(&cluster.discovery));
    }
    let tooling = options.tooling.clone();
    let named = named_set(&mut cluster, &options.set, tooling, &manifests.applied).await?;
    run.set = SetDocument::from(&named.set);
    let mut desired = desired::resolve(manifests, named.resolution_context(&cluster))?;
    desired.incomplete = incomplete;
    leave_out_forbidden_nulls(&cluster.server, &mut desired).await?;
    if let Some(ignore) = &options.ignore {
        run.report_warnings(&ignore.rules.mark(&mut desired, &ignore.file));
    }
    run.report_notes(manifest::notes_on_hooks_left_out(&desired.hooks, hooks));
    run.report_warnings(&desired.warnings);
    Ok(ResolvedSet {
        cluster,
        named,
        desired,
        manifests: kept,
        recreate,
    })
}

/// Refuses Secrets that a saved plan would lose: their values are not saved, but read from their files
/// again. Standard input and pipes cannot be read again, and URLs may hold passwords.
fn refuse_to_keep(manifests: &Manifests) -> Result<(), Error> {
    match manifests.all().find(|manifest| saved::is_lost(manifest)) {
        None => Ok(()),
        Some(manifest) => Err(Error::usage(
            format!(
                "{}: secret/{}: its values are not saved in a plan, and cannot be read from this source again",
                manifest.position, manifest.name
            ),
            "pass the Secrets to -f in files, which `apply --plan` reads again",
        )),
    }
}

/// Reads the state and makes the plan. Returns the policy that the plan was made under, too.
async fn read_and_plan(
    resolved: &mut ResolvedSet,
    options: &ApplyOptions,
    take_over: Risk,
) -> Result<(ClusterState, Policy, Plan), Error> {
    let ResolvedSet {
        cluster,
        named,
        desired,
        recreate,
        ..
    } = resolved;
    let rules = Rules {
        status: Some(&options.status_rules),
        take_over,
        appliers: &options.policy.appliers,
        field_manager: &options.writing.field_manager,
        concurrency: options.writing.concurrency,
    };
    let goal = Goal::Apply(desired, &options.policy);
    let mut state = cluster_state(cluster, named, goal, rules).await?;
    let mut policy = Policy {
        recreate: recreate.clone(),
        ..options.policy.clone()
    };
    if state.former_tooling.is_some() {
        // Every member is taken from the former tool, changed or not.
        policy.unchanged = UnchangedMembers::Sent;
    }
    let plan = plan::plan(&named.set, desired, &state.observed, &policy);
    state.observed.forget_desired(desired);
    Ok((state, policy, plan))
}

/// Reports what the state and the plan say.
pub fn report(run: &mut CommandRun, prepared: &Prepared) {
    run.report_notes(prepared.state.notes.clone());
    run.report_warnings(&prepared.state.warnings);
    run.report_warnings(&prepared.plan.edges.ignored);
}

/// Combines everything that was read and decided.
fn combine(
    resolved: ResolvedSet,
    options: &ApplyOptions,
    state: ClusterState,
    policy: Policy,
    plan: Plan,
) -> Prepared {
    let writing = WriteSettings {
        former_manager: state
            .former_tooling
            .as_ref()
            .map(|tooling| member_field_manager(tooling).to_owned()),
        ..options.writing.clone()
    };
    let ResolvedSet {
        cluster,
        named,
        desired,
        manifests,
        recreate: _,
    } = resolved;
    let mut prepared = Prepared::new(cluster, named, desired, state, policy, writing, plan);
    prepared.manifests = manifests;
    prepared
}

/// Returns the choice of `--recreate` with its kinds, which are named as kubectl names resources: `Job`, `jobs`,
/// `jobs.batch`. `discovery` has the kinds of the server and those that the manifests define.
///
/// # Errors
///
/// A kind does not exist, or is never recreated. The message names its objects among the `manifests`.
pub fn recreate(
    base: &Recreate,
    kinds: &[String],
    discovery: &Discovery,
    manifests: &[Manifest],
) -> Result<Recreate, Error> {
    if kinds.is_empty() {
        return Ok(base.clone());
    }
    let kinds = kinds.iter().map(|kind| match discovery.resource_argument(kind) {
        KindLookup::Found(resource) if is_container_kind(&resource.group_kind()) => {
            Err(never_recreated(&resource.group_kind(), manifests))
        }
        KindLookup::Found(resource) => Ok(resource.group_kind()),
        KindLookup::GroupFailed(failure) => Err(Error::kind_unknowable(format!(
            "cannot determine whether the server has resource {kind:?}: {failure}"
        ))),
        KindLookup::Absent => Err(Error::usage(
            format!("--recreate: the server doesn't have a resource type {kind:?}"),
            "list the types with `kubectl api-resources`",
        )),
    });
    Ok(Recreate::Kinds(kinds.collect::<Result<_, _>>()?))
}

fn never_recreated(kind: &GroupKind, manifests: &[Manifest]) -> Error {
    let named: Vec<String> = manifests
        .iter()
        .filter(|manifest| manifest.gvk.group_kind() == *kind)
        .map(|manifest| format!("{}: {}", manifest.position, manifest.name))
        .collect();
    let objects = match named.as_slice() {
        [] => String::new(),
        objects => format!(" ({})", listed(objects)),
    };
    Error::usage(
        format!(
            "--recreate={}: never recreated, because everything in it would be deleted{objects}",
            kind.kind
        ),
        format!(
            "remove {} from --recreate, and keep the old value or give the object another name",
            kind.kind
        ),
    )
}
