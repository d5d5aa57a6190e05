//! Everything that `apply` and `diff` do before the first write: manifests → discovery → cluster
//! state → plan. Both make the same plan.

mod base;
mod prepared;
pub mod saved_plan;
pub mod saved_plan_to_compare;

use std::collections::BTreeSet;

use futures_util::future::join;

use super::command_run::CommandRun;
use super::connect::{
    discover, discover_and_read_manifests, find_resource_of_flag, open_connections_for_new_set,
};
use crate::cli::GlobalFlags;
use crate::cluster::connection::Connection;
use crate::cluster::discovery::Discovery;
use crate::compare::ownership::member_field_manager;
use crate::error::Error;
use crate::manifest::desired::{self, Desired};
use crate::manifest::{self, Manifests, Source};
use crate::model::write_settings::DryRun;
use crate::plan::saved::{self, Salt, SavedManifest, SavedPlan};
use crate::plan::{self, Policy, Recreate, Risk, UnchangedMembers, is_namespace_or_crd_kind};
use crate::read::{
    Administrator, Cluster, Goal, NamedSet, ReadSettings, Wanted, ask_whether_administrator,
    leave_out_forbidden_values, read_cluster_state, resolve_named_set, user_name,
};
use crate::report::SetDocument;
use crate::settings::ApplyOptions;

pub use base::{Base, ManifestChange};
pub use prepared::Prepared;

/// Where the manifests of a plan come from.
pub enum Input {
    /// The sources that the options name.
    Sources,
    /// The sources that the options name, and those of a base. [`Prepared::base`] gets the objects of the base.
    SourcesWithBase(Vec<Source>),
    /// The sources that the options name. [`Prepared::manifests`] gets the manifests for a saved plan, whose digests
    /// have this salt.
    SourcesToSave(Salt),
    /// The manifests of a saved plan, with the values of Secrets restored from the sources (`apply --plan`).
    Saved {
        manifests: Manifests,
        /// The namespace of manifests without one.
        namespace: String,
    },
    /// The manifests of a saved plan, which is compared with the cluster. No source is read, so values of Secrets are
    /// those of the live Secrets if their digests match.
    SavedToCompare(Box<SavedPlan>),
}

/// The set and the desired objects, before their state is read.
struct ResolvedSet {
    cluster: Cluster,
    named: NamedSet,
    desired: Desired,
    /// The manifests for a saved plan; empty for a plan that is not saved.
    manifests_to_save: Vec<SavedManifest>,
    recreate: Recreate,
    /// The objects of the base.
    base: Option<Desired>,
}

/// Makes a plan that is executed once the user agrees to it. If an earlier plan of this run is outdated, its manifests
/// and the answer about the user's permissions are used again.
pub async fn plan_to_write(
    run: &mut CommandRun,
    shared: &GlobalFlags,
    options: &ApplyOptions,
    outdated: Option<Prepared>,
) -> Result<Prepared, Error> {
    let (resolved, mut administrator) = match outdated {
        None => {
            let connection = run.connect(shared).await?;
            let resolved = resolve_set_and_desired(run, connection, options, Input::Sources).await?;
            (resolved, Administrator::NotAsked)
        }
        Some(outdated) => {
            let administrator = outdated.administrator;
            (ResolvedSet::from_outdated(outdated).await?, administrator)
        }
    };
    let server = resolved.cluster.server.clone();
    // A run with new manifests probably writes, so the program asks about permissions while it lists. Other runs ask
    // only once the plan shows that they write.
    let needs_permissions =
        options.writing.dry_run != DryRun::Client && resolved.named.is_known_to_change(&resolved.desired);
    let asking = async {
        if needs_permissions && administrator == Administrator::NotAsked {
            // The history of the set names the user, so the name is asked for in the same round trip.
            (administrator, _) = join(ask_whether_administrator(&server), user_name(&server)).await;
        }
    };
    let planning = read_and_plan(resolved, options, options.take_over);
    let (prepared, ()) = join(planning, asking).await;
    let mut prepared = prepared?;
    prepared.administrator = administrator;
    Ok(prepared)
}

impl ResolvedSet {
    /// Takes the set and the desired objects over from an outdated plan, and discovers the server again.
    async fn from_outdated(mut outdated: Prepared) -> Result<Self, Error> {
        outdated.cluster.discover_again().await?;
        Ok(Self {
            cluster: outdated.cluster,
            named: outdated.named,
            desired: outdated.desired,
            manifests_to_save: outdated.manifests,
            recreate: outdated.policy.recreate,
            base: None,
        })
    }
}

/// Makes a plan for `diff`. The plan may have refusals, and the set may belong to another tool even without
/// `--take-over`, since `diff` changes nothing.
///
/// # Errors
///
/// No plan can be made, for example because the record is invalid.
pub async fn plan_to_show(
    run: &mut CommandRun,
    connection: Connection,
    options: &ApplyOptions,
    input: Input,
) -> Result<Prepared, Error> {
    let resolved = resolve_set_and_desired(run, connection, options, input).await?;
    let mut prepared = read_and_plan(resolved, options, Risk::Allowed).await?;
    if options.take_over == Risk::Refused {
        // The plan takes the set over only to be shown. The refusal comes first in the list, and says that a write
        // needs the flag.
        let taken_over = prepared.state.take_over.take();
        prepared.plan.refusals.splice(..0, taken_over);
    }
    report_notes_and_warnings(run, &prepared);
    Ok(prepared)
}

/// Connects the manifests with the cluster: reads both, names the set, and resolves the desired objects.
async fn resolve_set_and_desired(
    run: &mut CommandRun,
    mut connection: Connection,
    options: &ApplyOptions,
    input: Input,
) -> Result<ResolvedSet, Error> {
    let mut manifests_to_save = Vec::new();
    let mut base_sources = None;
    // Secrets with a value that neither the saved plan nor the live Secret has.
    let mut incomplete = BTreeSet::new();
    let hooks = options.policy.hooks;
    let divide = |manifests| Manifests::with_hooks_separated(manifests, hooks);
    let (mut cluster, manifests) = match input {
        Input::Sources => read_sources(run, connection, options).await?,
        Input::SourcesWithBase(sources) => {
            base_sources = Some(sources);
            read_sources(run, connection, options).await?
        }
        Input::SourcesToSave(salt) => {
            let (cluster, manifests) = read_sources(run, connection, options).await?;
            check_secrets_can_be_read_again(&manifests)?;
            manifests_to_save = manifests
                .all()
                .map(|manifest| SavedManifest::new(manifest, &salt))
                .collect();
            (cluster, manifests)
        }
        Input::Saved { manifests, namespace } => {
            connection.namespace = namespace;
            let wanted = Wanted::ParentAndNamespaces(&options.set, &manifests.applied);
            let cluster = discover(connection, run.kind_waits(), wanted).await?;
            complete_discovery(cluster, manifests).await?
        }
        Input::SavedToCompare(plan) => {
            connection.namespace.clone_from(&plan.set.namespace);
            let cluster = discover(connection, run.kind_waits(), Wanted::Nothing).await?;
            let manifests;
            (manifests, incomplete) =
                saved_plan_to_compare::fill_in_secret_values(&cluster, &plan, options.writing.concurrency)
                    .await?;
            complete_discovery(cluster, divide(manifests)).await?
        }
    };
    open_connections_for_new_set(&cluster, &manifests);
    let recreate = resolve_recreate_kinds(
        &options.policy.recreate,
        &options.recreate_kinds,
        &cluster.discovery,
    )?;
    if let Some(rules) = &options.status_rules.own {
        run.report_new_warnings(&rules.warn_of_unknown_kinds(&cluster.discovery));
    }
    let tooling = options.tooling.clone();
    let named = resolve_named_set(&mut cluster, &options.set, tooling, &manifests.applied).await?;
    run.set = SetDocument::from(&named.set);
    let mut desired = desired::resolve(manifests, named.context_for_manifests(&cluster))?;
    desired.placeholder_secrets = incomplete;
    let mut base = None;
    if let Some(sources) = base_sources {
        let base = base.insert(base::read(sources, options.recursion, divide, &mut cluster, &named).await?);
        leave_out_forbidden_values(&cluster.server, base).await?;
        if let Some(ignore) = &options.ignore {
            ignore.rules.mark_ignored_fields(base, &ignore.file);
        }
    }
    leave_out_forbidden_values(&cluster.server, &mut desired).await?;
    if let Some(ignore) = &options.ignore {
        run.report_new_warnings(&ignore.rules.mark_ignored_fields(&mut desired, &ignore.file));
    }
    run.report_new_notes(manifest::notes_on_hooks_left_out(&desired.hooks, hooks));
    run.report_new_warnings(&desired.warnings);
    Ok(ResolvedSet {
        cluster,
        named,
        desired,
        manifests_to_save,
        recreate,
        base,
    })
}

/// Reads the sources that the options name, while the server is discovered.
async fn read_sources(
    run: &CommandRun,
    connection: Connection,
    options: &ApplyOptions,
) -> Result<(Cluster, Manifests), Error> {
    discover_and_read_manifests(
        connection,
        options.sources.clone(),
        options.recursion,
        run.kind_waits(),
        |manifests| Manifests::with_hooks_separated(manifests, options.policy.hooks),
        Some(&options.set),
    )
    .await
}

async fn complete_discovery(
    mut cluster: Cluster,
    manifests: Manifests,
) -> Result<(Cluster, Manifests), Error> {
    cluster
        .complete_discovery_for_manifests(&manifests.applied)
        .await?;
    Ok((cluster, manifests))
}

/// Checks that `apply --plan` can read the values of all Secrets again, because a saved plan does not have them.
///
/// # Errors
///
/// A Secret comes from standard input or a pipe, which cannot be read again, or from a URL: the plan does not name
/// URLs, since they may hold passwords.
fn check_secrets_can_be_read_again(manifests: &Manifests) -> Result<(), Error> {
    match manifests
        .all()
        .find(|manifest| saved::would_lose_secret_values(manifest))
    {
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

/// Reads the state and makes the plan.
async fn read_and_plan(
    resolved: ResolvedSet,
    options: &ApplyOptions,
    take_over: Risk,
) -> Result<Prepared, Error> {
    let ResolvedSet {
        mut cluster,
        mut named,
        mut desired,
        manifests_to_save,
        recreate,
        mut base,
    } = resolved;
    let rules = ReadSettings {
        status: Some(&options.status_rules),
        take_over,
        appliers: &options.policy.appliers,
        field_manager: &options.writing.field_manager,
        concurrency: options.writing.concurrency,
    };
    let goal = Goal::Apply(&mut desired, base.as_mut(), &options.policy);
    let mut state = read_cluster_state(&mut cluster, &mut named, goal, rules).await?;
    let mut policy = Policy {
        recreate,
        ..options.policy.clone()
    };
    let mut writing = options.writing.clone();
    if let Some(tooling) = &state.former_tooling {
        // Unchanged members are applied too, so that their fields and labels pass from the former tool to this one.
        policy.unchanged = UnchangedMembers::Sent;
        writing.former_manager = Some(member_field_manager(tooling).to_owned());
    }
    let base = base.map(|base| Base::new(&desired, base));
    if let Some(base) = &base {
        base.mark_as_changed(&desired, &mut state.observed);
    }
    let plan = plan::plan(&named.set, &desired, &state.observed, &policy);
    state.observed.forget_desired(&desired);
    let mut prepared = Prepared::new(cluster, named, desired, state, policy, writing, plan);
    prepared.manifests = manifests_to_save;
    prepared.base = base;
    Ok(prepared)
}

/// Reports the notes and warnings of the state and of the plan.
pub fn report_notes_and_warnings(run: &mut CommandRun, prepared: &Prepared) {
    run.report_new_notes(prepared.state.notes.clone());
    run.report_new_warnings(&prepared.state.warnings);
    run.report_new_warnings(&prepared.plan.describe_ignored_dependencies_and_losses());
}

/// Resolves the kinds of `--recreate`. Without kinds, returns `without_kinds`. `discovery` has the kinds of the server
/// and those that the manifests define.
///
/// # Errors
///
/// A kind does not exist, or is never recreated.
pub fn resolve_recreate_kinds(
    without_kinds: &Recreate,
    kinds: &[String],
    discovery: &Discovery,
) -> Result<Recreate, Error> {
    if kinds.is_empty() {
        return Ok(without_kinds.clone());
    }
    let kinds = kinds.iter().map(|name| {
        let kind = find_resource_of_flag(discovery, "--recreate", name)?.group_kind();
        if is_namespace_or_crd_kind(&kind) {
            let kind = kind.kind;
            return Err(Error::usage(
                format!("--recreate={kind}: never recreated, because everything in it would be deleted"),
                format!(
                    "remove {kind} from --recreate, and keep the old value or give the object another name"
                ),
            ));
        }
        Ok(kind)
    });
    Ok(Recreate::Kinds(kinds.collect::<Result<_, _>>()?))
}
