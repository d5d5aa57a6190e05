//! Makes, writes and reads the plans that `diff --out` saves, and plans again from them for `apply --plan`.
//!
//! The content of a saved plan, and its comparison with the cluster, is in `plan::saved`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use futures_util::stream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;

use super::{Input, Prepared, plan_to_show};
use crate::cli::GlobalFlags;
use crate::cluster::apiserver::ApiServer;
use crate::cluster::connection::{Connection, Endpoint};
use crate::cluster::discovery::KindLookup;
use crate::cluster::identity::SYSTEM_NAMESPACE;
use crate::error::{Error, ErrorKind};
use crate::event::{Action, ObjectOutcome};
use crate::execute::Prediction;
use crate::exit::Exit;
use crate::manifest::Manifests;
use crate::model::identity::ObjectKey;
use crate::model::pointer::Pointer;
use crate::model::resource::Resource;
use crate::model::text::format_os_error;
use crate::plan::saved::{
    self, CurrentState, Intent, NamespaceUids, Salt, SavedCluster, SavedObject, SavedParent, SavedPlan,
    SavedSet, Seen,
};
use crate::plan::{Policy, Preconditions};
use crate::read::{self, NamespaceState};
use crate::report::Differences;
use crate::session::command_run::CommandRun;
use crate::settings::{ApplyOptions, Ignore};

/// Creates the salt of a new saved plan.
pub fn create_salt() -> Result<Salt, Error> {
    Salt::random().map_err(|error| {
        Error::usage(
            format!("no random bytes from the operating system: {error}"),
            "omit --out",
        )
    })
}

/// Creates a saved plan from the plan that `diff` has shown. `parent` is the live parent, if it has a manifest.
///
/// # Errors
///
/// The cluster could not be identified, or a value of a Secret would be saved.
pub async fn create(
    prepared: &Prepared,
    options: &ApplyOptions,
    predicted: &[Prediction],
    parent: Option<&Value>,
    salt: Salt,
) -> Result<SavedPlan, Error> {
    let Prepared {
        cluster,
        named,
        state,
        ..
    } = prepared;
    Ok(SavedPlan {
        cluster: identify_cluster(&cluster.server, &cluster.endpoint).await?,
        set: SavedSet {
            id: named.set.id.clone(),
            resource: named.resource.group_resource(),
            name: named.set.parent.name.clone(),
            namespace: cluster.namespace.clone(),
            tooling: named.set.tooling.clone(),
        },
        policy: Policy {
            recreate: prepared.policy.recreate.clone(),
            ..options.policy.clone()
        },
        take_over: options.take_over,
        field_manager: options.writing.field_manager.clone(),
        conflicts: options.writing.conflicts.clone(),
        validation: options.writing.validation,
        ignore: options.ignore.as_ref().map(Ignore::to_save),
        manifests: prepared.manifests.clone(),
        namespaces: namespace_uids(&state.namespaces),
        parent: state.parent_object().map(|found| {
            let seen = parent.and_then(|parent| Seen::from_parent_without_record(parent, &salt));
            SavedParent::new(found, seen)
        }),
        record: prepared.plan.record_after.clone(),
        objects: saved_objects(prepared, predicted, &salt),
        detached: saved::saved_detachments(&prepared.plan),
        salt,
    })
}

/// Returns the objects of the plan: what it does with each, and the state in which each was seen.
fn saved_objects(prepared: &Prepared, predicted: &[Prediction], salt: &Salt) -> Vec<SavedObject> {
    let ignored = ignored_fields(prepared);
    let mut seen: BTreeMap<ObjectKey, Seen> = predicted
        .iter()
        .filter_map(|predicted| {
            let live = predicted.live.as_ref()?;
            let key = predicted.outcome.subject.key();
            let fields = ignored.get(&key).map_or(&[][..], Vec::as_slice);
            let seen = Seen::from_object_without(live, fields, salt)?;
            Some((key, seen))
        })
        .collect();
    let keys = |is: fn(&ObjectOutcome) -> bool| -> BTreeSet<ObjectKey> {
        let outcomes = predicted.iter().map(|predicted| &predicted.outcome);
        outcomes
            .filter(|outcome| is(outcome))
            .map(|outcome| outcome.subject.key())
            .collect()
    };
    let taken_in = keys(|outcome| outcome.taken_in);
    let recreated = keys(|outcome| outcome.action == Action::Recreated);
    let times_by_uid = prepared.plan.describe_prune_times(&prepared.policy);
    let prunes = prepared.plan.all_prunes();
    let mut times_by_key: BTreeMap<&ObjectKey, &String> = prunes
        .filter_map(|live| Some((&live.key, times_by_uid.get(&*live.uid)?)))
        .collect();
    let accepted = prepared.plan.accepted.iter();
    let mut losses: BTreeMap<&ObjectKey, BTreeSet<String>> = accepted
        .filter_map(|loss| Some((loss.object()?, loss.lost_with_container())))
        .filter(|(_, lost)| !lost.is_empty())
        .collect();
    let intents = saved::list_intents_and_unwritten_uids(&prepared.plan, &prepared.desired).into_iter();
    let objects = intents.map(|(key, (intent, uid))| SavedObject {
        seen: uid.map_or_else(|| seen.remove(&key), |uid| Some(Seen::for_unwritten_object(&uid))),
        taken_in: taken_in.contains(&key),
        recreated: recreated.contains(&key),
        lost: losses.remove(&key).unwrap_or_default(),
        left_to_autoscaler: saved::pointer_left_to_autoscaler(&prepared.desired, &key),
        prune_time: times_by_key.remove(&key).cloned().unwrap_or_default(),
        key,
        intent,
    });
    // An object without a state was gone by the time of the prediction, so it does not have to be pruned.
    let needed = objects.filter(|object| object.intent != Intent::Prune || object.seen.is_some());
    needed.collect()
}

/// Plans from the manifests of a saved plan.
///
/// # Errors
///
/// No plan can be made. The manifests were valid when the plan was saved, so an error about them is reported as a
/// change of the cluster since the plan.
pub(super) async fn plan_from_saved(
    run: &mut CommandRun,
    connection: Connection,
    options: &ApplyOptions,
    input: Input,
) -> Result<Prepared, Error> {
    let prepared = plan_to_show(run, connection, options, input).await;
    prepared.map_err(|error| match error.exit() {
        Exit::Usage => saved::stale_plan_error(vec![error.to_string()]),
        _ => error,
    })
}

/// Reads what identifies the cluster, so that `apply --plan` notices another cluster.
pub(super) async fn identify_cluster(server: &ApiServer, endpoint: &Endpoint) -> Result<SavedCluster, Error> {
    let names = BTreeSet::from([SYSTEM_NAMESPACE]);
    let mut found = read::read_namespaces(server, &names).await?;
    let uid = found.remove(SYSTEM_NAMESPACE).and_then(|state| state.uid);
    Ok(SavedCluster::new(endpoint, uid))
}

pub(super) fn namespace_uids(namespaces: &BTreeMap<String, NamespaceState>) -> NamespaceUids {
    namespaces
        .iter()
        .map(|(name, state)| (name.clone(), state.uid.clone()))
        .collect()
}

/// Writes a saved plan.
///
/// # Errors
///
/// `found` has a refusal or a failure, so that the plan could not be applied, or the file cannot be written.
pub fn write_if_plan_could_be_applied(
    file: &Path,
    plan: &SavedPlan,
    found: &Differences,
) -> Result<(), Error> {
    let mut outcomes = found.objects.iter().map(|object| &object.outcome);
    let has_failure = outcomes.any(|outcome| outcome.action == Action::Failed);
    if !found.refusals.is_empty() || !found.failures.is_empty() || has_failure {
        let text = "plan not saved: it could not be applied";
        return Err(Error::new(ErrorKind::NotSaved, text).with_hint("resolve the errors above"));
    }
    saved::write(file, plan).map_err(|error| unwritable(file, &error))
}

/// Removes the saved plan of an earlier run before a new one is made: if that fails, nobody applies the old plan by
/// mistake. Returns whether there was one.
///
/// # Errors
///
/// `file` is `-`, which is not a file.
pub fn discard_earlier_plan(file: &Path) -> Result<bool, Error> {
    check_not_dash("--out", file)?;
    saved::remove_existing_plan(file).map_err(|error| unwritable(file, &error))
}

fn unwritable(file: &Path, error: &io::Error) -> Error {
    Error::usage(
        format!(
            "{}: the plan cannot be written: {}",
            file.display(),
            format_os_error(error)
        ),
        "name a file in a directory that you can write to",
    )
}

/// Checks that the file is not `-`, which means standard input or output with other flags.
fn check_not_dash(flag: &str, file: &Path) -> Result<(), Error> {
    if file.as_os_str() == "-" {
        return Err(Error::usage(
            format!("{flag} -: not supported: a plan is saved in a file"),
            format!("name a file, for example {flag} plan.json"),
        ));
    }
    Ok(())
}

/// Reads a saved plan.
pub fn read(file: &Path) -> Result<SavedPlan, Error> {
    check_not_dash("--plan", file)?;
    saved::read(file).map_err(|error| {
        Error::usage(
            format!("--plan {}: {error}", file.display()),
            "name a plan of `kubectl applyset diff SET -f … --out FILE`",
        )
    })
}

/// Plans again from the manifests of a saved plan, and checks that the new plan does the same to the same objects.
///
/// # Errors
///
/// The error lists how the plan and the cluster differ by now.
pub async fn plan_again_and_compare(
    run: &mut CommandRun,
    shared: &GlobalFlags,
    options: &ApplyOptions,
    plan_file: &SavedPlan,
) -> Result<Prepared, Error> {
    let manifests = saved::restore_manifests_with_secrets(plan_file)?;
    let input = Input::Saved {
        manifests: Manifests::with_hooks_separated(manifests, options.policy.hooks),
        namespace: plan_file.set.namespace.clone(),
    };
    let connection = run.connect(shared).await?;
    let mut prepared = plan_from_saved(run, connection, options, input).await?;
    let seen = read_present_states(&prepared, plan_file).await?;
    let parent_seen = read_present_parent_state(&prepared, &plan_file.salt).await?;
    let cluster = identify_cluster(&prepared.cluster.server, &prepared.cluster.endpoint).await?;
    let fresh = CurrentState {
        cluster: &cluster,
        set: &prepared.named.set,
        desired: &prepared.desired,
        plan: &prepared.plan,
        parent: prepared.state.parent_object(),
        parent_seen: parent_seen.as_ref(),
        namespaces: &namespace_uids(&prepared.state.namespaces),
        seen: &seen,
    };
    let drift = saved::find_drift(plan_file, &fresh);
    if !drift.is_empty() {
        let error = saved::stale_plan_error(drift);
        let (plan, set) = (&prepared.plan, &prepared.named.set.parent);
        let is_left = plan.count_applies() + plan.count_prunes() > 0 || !plan.refusals.is_empty();
        return Err(if is_left {
            error
        } else {
            let set = set.shell_arguments();
            error.with_hint(format!(
                "or see `kubectl applyset history {set}`: nothing is left to do, so this plan was probably applied already"
            ))
        });
    }
    let written = plan_file
        .objects
        .iter()
        .filter(|object| matches!(object.intent, Intent::Apply | Intent::Prune));
    let seen_before_write = written.map(|object| (object.key.clone(), seen.get(&object.key).cloned()));
    let to_recreate = plan_file.objects.iter().filter(|object| object.recreated);
    let recreated = to_recreate.map(|object| object.key.clone()).collect();
    prepared.plan.preconditions =
        Preconditions::for_saved_plan(plan_file.salt.clone(), seen_before_write.collect(), parent_seen)
            .with_recreated(recreated)
            .with_ignored_fields(&ignored_fields(&prepared));
    Ok(prepared)
}

/// Reads the present state of the objects that the saved plan or the new one writes; those that do not exist are left
/// out.
async fn read_present_states(
    prepared: &Prepared,
    plan_file: &SavedPlan,
) -> Result<BTreeMap<ObjectKey, Seen>, Error> {
    let keys = saved::objects_to_read(plan_file, &prepared.plan, &prepared.desired);
    let resources = known_resources(prepared);
    let ignored = &ignored_fields(prepared);
    let server = &prepared.cluster.server;
    let reads = keys.into_iter().map(|key| {
        let resource = resources
            .get(&key)
            .cloned()
            .or_else(|| find_served_resource(prepared, &key));
        async move {
            let Some(resource) = resource else {
                // The server does not serve the kind any more, so the object cannot exist.
                return Ok(None);
            };
            let read = read::read_object(server, &resource, &key).await;
            let object = read.map_err(|error| error.to_error_while_reading(&key))?;
            let fields = ignored.get(&key).map_or(&[][..], Vec::as_slice);
            let seen = object.and_then(|object| Seen::from_object_without(&object, fields, &plan_file.salt));
            Ok::<_, Error>(seen.map(|seen| (key, seen)))
        }
    });
    let seen: Vec<_> = stream::iter(reads)
        .buffer_unordered(prepared.writing.concurrency)
        .try_collect()
        .await?;
    Ok(seen.into_iter().flatten().collect())
}

/// Reads the state of the parent, apart from the set's own labels and annotations, if the parent has a manifest.
/// Returns `None` without a manifest, or if the parent does not exist.
async fn read_present_parent_state(prepared: &Prepared, salt: &Salt) -> Result<Option<Seen>, Error> {
    let (Some(manifest), Some(_)) = (&prepared.desired.parent, prepared.state.parent_object()) else {
        return Ok(None);
    };
    let read = read::read_object(&prepared.cluster.server, &manifest.resource, &manifest.key).await;
    let object = read
        .map_err(|error| error.to_error_while_reading(format_args!("the set's parent {}", manifest.key)))?;
    Ok(object.and_then(|object| Seen::from_parent_without_record(&object, salt)))
}

/// Returns the fields that the set ignores (`--ignore`). Others may write them between a plan and its run, so they are
/// not compared.
fn ignored_fields(prepared: &Prepared) -> BTreeMap<ObjectKey, Vec<Pointer>> {
    let members = prepared.desired.members.iter();
    members
        .filter(|member| !member.ignored.is_empty())
        .map(|member| (member.key.clone(), member.ignored.clone()))
        .collect()
}

/// Returns the resources of the live members and of the desired objects.
fn known_resources(prepared: &Prepared) -> BTreeMap<ObjectKey, Arc<Resource>> {
    let live = prepared.state.observed.members.iter();
    let members = live.map(|live| (live.key.clone(), Arc::clone(&live.resource)));
    let served = &prepared.state.places.resources;
    let desired = prepared.desired.members.iter();
    // An object is read in the API version of its manifest if the server serves that version. So it was for the saved
    // plan: in another version, the object would look different.
    let wanted = desired.filter_map(|object| {
        let resource = object.resource_to_read(served)?;
        Some((object.key.clone(), Arc::clone(resource)))
    });
    members.chain(wanted).collect()
}

/// Returns the resource of an object that only the saved plan writes; `None` if the kind is not served, or if the
/// server does not answer for its group.
fn find_served_resource(prepared: &Prepared, key: &ObjectKey) -> Option<Arc<Resource>> {
    match prepared.cluster.discovery.find_preferred(&key.group_kind) {
        KindLookup::Found(resource) => Some(Arc::new(resource.clone())),
        KindLookup::Absent | KindLookup::GroupFailed(_) => None,
    }
}
