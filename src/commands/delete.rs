//! `delete`: cluster state → plan for a set without any desired objects → execute → report.

use std::cell::RefCell;

use k8s_openapi::jiff::Timestamp;

use crate::cli::{Delete, GlobalFlags};
use crate::compare::status::StatusRules;
use crate::error::{Error, ErrorKind};
use crate::event::{Ending, Event, Operation};
use crate::execute::{
    Execution, TerminatingObjects, WaitSettings, WrittenObjects, field_managers_not_keeping_parent,
};
use crate::exit::Exit;
use crate::manifest::desired::Desired;
use crate::model::applyset::Tooling;
use crate::model::expiry::{format_expiry, read_expiry};
use crate::model::identity::ObjectKey;
use crate::model::set::ParentObject;
use crate::model::text::counted;
use crate::model::write_settings::DryRun;
use crate::plan::{self, Policy, Proposal, Refusal, permissions};
use crate::read::{
    Administrator, Cluster, ClusterState, Goal, NamedSet, ReadSettings, Wanted, read_cluster_state,
    resolve_named_set,
};
use crate::report::{PlanOutline, SetDocument};
use crate::session;
use crate::session::command_run::CommandRun;
use crate::session::plan_and_write::{Script, SetToWrite};
use crate::session::prepare::Prepared;
use crate::session::prompt::Questions;
use crate::settings::{self, DeleteOptions};
use crate::wait::{AfterFailure, Lookup, Target};

/// Runs `delete`.
pub(super) async fn run(arguments: &Delete, shared: &GlobalFlags) -> Result<Exit, Error> {
    let options = DeleteOptions::new(arguments, shared)?;
    let questions = Questions::at_terminal(options.is_interactive, &[]);
    let mut run = CommandRun::begin(
        Operation::Delete,
        SetDocument::from_name(&options.set.name),
        settings::read_style(shared),
        options.writing.dry_run,
        questions,
    );
    run.set_time_limit(options.waiting.limit);
    let mut script = DeleteScript {
        options: &options,
        shared,
    };
    let outcome = run
        .plan_and_write(&mut script, &options.consent, options.writing.exclusive)
        .await;
    run.finish(outcome)
}

struct DeleteScript<'a> {
    options: &'a DeleteOptions,
    shared: &'a GlobalFlags,
}

impl Script for DeleteScript<'_> {
    type Planned = Prepared;

    /// Reads and plans; `None` if the set does not exist and `--ignore-not-found` is set.
    async fn read_and_plan(
        &mut self,
        run: &mut CommandRun,
        outdated: Option<Prepared>,
    ) -> Result<Option<Prepared>, Error> {
        let options = self.options;
        let outdated_cluster = outdated.map(|outdated| outdated.cluster);
        let wanted = Wanted::Parent(&options.set);
        let mut cluster = run
            .discover_or_discover_again(self.shared, wanted, outdated_cluster)
            .await?;
        let mut named = resolve_named_set(&mut cluster, &options.set, Tooling::this_program(), &[]).await?;
        run.set = SetDocument::from(&named.set);
        let state = match read_state(&mut cluster, &mut named, options).await {
            Err(error) if error.kind == ErrorKind::NoSuchSet && options.ignore_not_found => {
                return Ok(None);
            }
            state => state?,
        };
        if options.only_if_expired {
            let key = &named.set.parent;
            let parent = state.parent_object().ok_or_else(|| expiry_unknown(key))?;
            if let Some(reason) = reason_not_expired(parent, cluster.server.now()) {
                run.report_new_notes(vec![format!("{key}: {reason}; nothing is deleted")]);
                return Ok(None);
            }
        }
        let policy = Policy {
            pruning: state.pruning,
            ..options.policy.clone()
        };
        let writing = options.writing.clone();
        let desired = Desired::default();
        let plan = plan::plan(&named.set, &desired, &state.observed, &policy);
        Ok(Some(Prepared::new(
            cluster, named, desired, state, policy, writing, plan,
        )))
    }

    fn sets<'p>(&'p self, prepared: &'p Prepared) -> Vec<SetToWrite<'p>> {
        vec![prepared.set_to_write()]
    }

    /// Returns what the user has to agree to: that the set is deleted, and each loss of data.
    fn proposal(&self, prepared: &Prepared) -> Proposal {
        let Prepared {
            named, state, plan, ..
        } = prepared;
        let deletes = Refusal::DeletesSet {
            parent: named.set.parent.clone(),
            objects: plan.all_prunes().map(|live| live.key.clone()).collect(),
        };
        let of_set = state.take_over.clone().into_iter().chain([deletes]);
        let refusals = of_set.chain(plan.refusals.iter().cloned());
        Proposal::new(refusals.collect(), plan.all_prunes()).with_parent_of(&named.set)
    }

    fn outline(&self, prepared: &Prepared) -> PlanOutline {
        prepared.outline()
    }

    async fn report_and_check_permissions(
        &mut self,
        run: &mut CommandRun,
        prepared: &mut Prepared,
    ) -> Result<(), Error> {
        run.set = SetDocument::from(&prepared.named.set);
        run.report_new_warnings(&prepared.state.warnings);
        run.report_new_warnings(&prepared.plan.describe_ignored_dependencies_and_losses());
        prepared.plan.lift_all_refusals();
        prepared.open_connections_for_writes();
        let Prepared {
            cluster,
            named,
            state,
            plan,
            writing,
            ..
        } = prepared;
        let needed =
            permissions::needed_to_delete_set(&named.set, &named.resource, state.parent_object(), plan);
        let user = Administrator::NotAsked;
        session::permissions::check_to_write(&cluster.server, user, &needed, writing).await
    }

    async fn execute(&mut self, run: &mut CommandRun, prepared: &mut Prepared) -> Result<Ending, Error> {
        execute_deletion(run, prepared, self.options).await
    }
}

/// The refusal to delete what is left of a set that has lost its parent, and its time with it.
fn expiry_unknown(parent: &ObjectKey) -> Error {
    let text = format!("{parent}: it does not exist, so whether the set has expired is not known");
    let delete = format!("kubectl applyset delete {}", parent.shell_arguments());
    Error::new(ErrorKind::Refused, text).with_hint(format!(
        "objects of the set are left; delete them with `{delete}`, without --expired"
    ))
}

/// Returns why the set of this parent has not expired by this time; `None` if it has.
fn reason_not_expired(parent: &ParentObject, now: Timestamp) -> Option<String> {
    match read_expiry(&parent.annotations) {
        Some(expiry) if expiry <= now => None,
        Some(expiry) => Some(format!("expires at {}", format_expiry(expiry))),
        None => Some("does not expire".to_owned()),
    }
}

async fn execute_deletion(
    run: &mut CommandRun,
    prepared: &Prepared,
    options: &DeleteOptions,
) -> Result<Ending, Error> {
    let interrupt = run.interrupt.clone();
    // The run waits until deleted objects are gone, so their status does not matter.
    let rules = StatusRules::default();
    let settings = WaitSettings {
        server: &prepared.cluster.server,
        id: &prepared.named.set.id,
        rules: &rules,
        interrupt: &interrupt,
        concurrency: options.writing.concurrency,
        failures: None,
        patience: options.waiting.dependency_patience(),
    };
    let deletion = Execution {
        accepted_take_over: &[],
        dependencies: Some(settings),
        ..prepared.execution(&interrupt)
    };
    let is_dry = options.writing.dry_run != DryRun::None;
    let work = async {
        if is_dry {
            return Ok(deletion
                .report_predicted_set_deletion(&mut |event| run.reporter.take_event(event))
                .await);
        }
        let waits = options.waiting.patience;
        let waits = waits.map(|patience| WaitSettings { patience, ..settings });
        delete_members_and_parent(run, prepared, &deletion, waits).await
    };
    let ending = interrupt.run_command_unless_aborted(Box::pin(work)).await?;
    // Objects that the user may list, but not delete, and that are probably members.
    let likely_members_left = prepared.state.likely_members_left;
    if ending == Ending::Done && likely_members_left > 0 {
        run.reporter.take_event(Event::general_failure(format!(
            "{} not deleted: probably members of the set, but you cannot delete them; run the same command as a user who can",
            counted(likely_members_left, "object"),
        )));
        return Ok(Ending::Incomplete);
    }
    Ok(ending)
}

/// Deletes the members, and then the parent and its namespace or CRD. With `waits`, waits after both until what was
/// deleted is gone.
async fn delete_members_and_parent(
    run: &mut CommandRun,
    prepared: &Prepared,
    deletion: &Execution<'_>,
    waits: Option<WaitSettings<'_>>,
) -> Result<Ending, Error> {
    let written = RefCell::new(WrittenObjects::default());
    let mut sink = |event| {
        written.borrow_mut().add_from_event(&event);
        run.reporter.take_event(event);
    };
    let mut deletion_run = deletion.begin_deletion(&mut sink).await?;
    let deleting = deletion.delete_members_while_renewing_entry(&mut deletion_run, &mut sink);
    let members = match deleting.await {
        Ok(members) => members,
        Err(ending) => return Ok(deletion_run.end(None, ending, &mut sink).await),
    };
    let done_before = "members were deleted or are being deleted; the set's parent still exists";
    let mut waiting = waits.map(|settings| settings.begin(AfterFailure::Stop, done_before));
    let mut waited = Ending::Done;
    let mut terminating_objects = TerminatingObjects::Awaited;
    if let Some(waiting) = &waiting {
        let targets = deletion
            .members_to_be_gone_before_parent()
            .filter(|live| written.borrow().is_being_deleted(live))
            .map(|live| written.borrow().deletion_target(live))
            .collect();
        waited = deletion_run
            .work_while_renewing(waiting.run(targets, &mut sink))
            .await;
        if waited == Ending::Interrupted {
            return Ok(deletion_run.end(None, waited, &mut sink).await);
        }
        terminating_objects = TerminatingObjects::Reported;
    }
    // If members are left after the wait, this keeps the parent, and narrows its record to these members.
    let ending = deletion
        .delete_parent_or_narrow_record(&mut deletion_run, members, terminating_objects, &mut sink)
        .await;
    let (Some(waiting), Ending::Done) = (&mut waiting, ending.max(waited)) else {
        return Ok(ending.max(waited));
    };
    let found = prepared.state.parent.iter();
    let parent = found.map(|parent| Target::gone(&parent.live, Lookup::Name));
    let parent_containers = deletion
        .parent_containers_to_delete()
        .map(|live| written.borrow().deletion_target(live));
    waiting.done_before = "everything was deleted or is being deleted";
    let last = parent
        .chain(parent_containers)
        .filter(|target| written.borrow().has_deleted(target))
        .collect();
    Ok(waiting.run(last, &mut sink).await)
}

async fn read_state(
    cluster: &mut Cluster,
    named: &mut NamedSet,
    options: &DeleteOptions,
) -> Result<ClusterState, Error> {
    let manager = &options.writing.field_manager;
    let rules = ReadSettings {
        status: None,
        take_over: options.take_over,
        appliers: &options.policy.appliers,
        field_manager: manager,
        concurrency: options.writing.concurrency,
    };
    let goal = Goal::Delete(&options.policy, field_managers_not_keeping_parent(manager));
    read_cluster_state(cluster, named, goal, rules).await
}
