//! `apply`: manifests → discovery → observe → plan → execute → report.

use super::opening::{self, Cluster, OpenedSet};
use super::run::{Questions, Run};
use super::situation::{self, Rules, Situation};
use super::waiting;
use crate::cli::{Apply, Shared};
use crate::desired::{self, Desired, Target};
use crate::error::{Error, Exit};
use crate::event::{Ending, Operation};
use crate::execute::{DryRun, Execution, Writing};
use crate::manifest::Source;
use crate::observe;
use crate::options::{self, ApplyOptions, TakeOver};
use crate::plan::{self, Confirmation, DataLoss, ParentPolicy, Plan, Policy, Refusal, UnchangedMembers};
use crate::report::SetDocument;
use crate::rights;
use crate::wait::{Deadline, Waiting};

/// Runs `apply`.
pub(super) async fn run(arguments: &Apply, shared: &Shared) -> Result<Exit, Error> {
    let options = ApplyOptions::new(arguments, shared)?;
    let asks = if options.is_interactive && !options.sources.contains(&Source::StandardInput) {
        Questions::Asked
    } else {
        Questions::Impossible
    };
    let mut run = Run::begin(
        Operation::Apply,
        opening::unopened(&options.set),
        options::style(shared),
        options.writing.dry_run,
        asks,
    );
    run.limit(options.waiting.limit);
    let outcome = apply(&mut run, shared, &options).await;
    run.finish(outcome)
}

/// Everything that was read and decided, before anything is written.
struct Prepared {
    cluster: Cluster,
    opened: OpenedSet,
    desired: Desired,
    situation: Situation,
    policy: Policy,
    writing: Writing,
    plan: Plan,
}

async fn apply(run: &mut Run, shared: &Shared, options: &ApplyOptions) -> Result<Ending, Error> {
    let interrupt = run.interrupt.clone();
    let prepared = tokio::select! {
        prepared = prepare(run, shared, options) => prepared?,
        // Nothing is written yet, so there is nothing to wait for.
        () = interrupt.requested() => return Ok(Ending::Interrupted),
    };
    let execution = Execution {
        server: &prepared.cluster.server,
        set: &prepared.opened.set,
        parent_resource: &prepared.opened.resource,
        parent: prepared.situation.parent.as_ref(),
        parent_policy: prepared.situation.parent_policy,
        places: &prepared.situation.places,
        desired: &prepared.desired,
        plan: &prepared.plan,
        policy: &prepared.policy,
        writing: &prepared.writing,
        interrupt: &interrupt,
    };
    let reporter = &mut run.reporter;
    let is_real = options.writing.dry_run == DryRun::None;
    let patience = options.waiting.patience.filter(|_| is_real);
    let work = async {
        let mut done = waiting::Done::default();
        let mut sink = |event| {
            done.note(&event);
            reporter.event(event);
        };
        let ending = execution.run(&mut sink).await?;
        let Some(patience) = patience.filter(|_| ending == Ending::Done) else {
            return Ok(ending);
        };
        let waiting = Waiting {
            server: execution.server,
            id: &execution.set.id,
            deadline: Deadline::of(patience),
            interrupt: &interrupt,
            concurrency: options.writing.concurrency,
        };
        let targets = waiting::targets(execution.desired, execution.plan, &done);
        let outcome = waiting.run(targets, &mut |event| reporter.event(event)).await;
        Ok(waiting::ending(outcome, ending))
    };
    Run::until_insisted(&interrupt, work).await
}

async fn prepare(run: &mut Run, shared: &Shared, options: &ApplyOptions) -> Result<Prepared, Error> {
    let connection = opening::connect(shared).await?;
    run.server = Some(connection.server.clone());
    let (cluster, manifests) =
        opening::discover_with(connection, options.sources.clone(), options.recursion).await?;
    let mut opened = opening::open(&cluster, &options.set, options.tooling.clone(), &manifests).await?;
    run.set = SetDocument::from(&opened.set);
    let desired = desired::resolve(manifests, opened.target(&cluster))?;
    run.warn(&desired.warnings);

    let mut policy = options.policy.clone();
    let mut take_over = options.take_over.confirmation();
    let (situation, plan) = loop {
        let rules = Rules {
            policy: &policy,
            parent_policy: ParentPolicy { take_over },
            field_manager: &options.writing.field_manager,
            concurrency: options.writing.concurrency,
        };
        let refusals = match situation::read(&cluster, &mut opened, &desired, rules).await {
            Err(Error::Refused(refusals)) => refusals,
            read => {
                let situation = read?;
                if situation.former_tooling.is_some() {
                    // Every member is taken from the former tool, changed or not.
                    policy.unchanged = UnchangedMembers::Sent;
                }
                let plan = plan::plan(&opened.set, &desired, &situation.observed, &policy);
                if plan.refusals.is_empty() {
                    break (situation, plan);
                }
                plan.refusals
            }
        };
        // What a person confirms may have changed while they read: all is read again.
        if refusals.iter().all(Refusal::is_take_over) && options.take_over == TakeOver::Asked {
            run.confirm(refusals).await?;
            take_over = Confirmation::Given;
        } else if refusals.iter().all(Refusal::is_data_loss) {
            run.confirm(refusals).await?;
            policy.data_loss = DataLoss::Allowed;
        } else {
            return Err(Error::Refused(refusals));
        }
    };
    run.warn(&situation.warnings);
    check_rights(&cluster, &opened, &situation, &desired, &plan, options).await?;
    let writing = Writing {
        former_manager: situation
            .former_tooling
            .as_ref()
            .map(|tooling| tooling.name.clone()),
        ..options.writing.clone()
    };
    Ok(Prepared {
        cluster,
        opened,
        desired,
        situation,
        policy,
        writing,
        plan,
    })
}

impl OpenedSet {
    pub(super) fn target<'a>(&'a self, cluster: &'a Cluster) -> Target<'a> {
        Target {
            discovery: &cluster.discovery,
            parent: &self.set.parent,
            id: &self.set.id,
            namespace: &cluster.namespace,
        }
    }
}

/// Refuses to begin what the user may not finish. A client-side dry run writes nothing
/// and asks nothing.
async fn check_rights(
    cluster: &Cluster,
    opened: &OpenedSet,
    situation: &Situation,
    desired: &Desired,
    plan: &Plan,
    options: &ApplyOptions,
) -> Result<(), Error> {
    if options.writing.dry_run == DryRun::Client {
        return Ok(());
    }
    let parent = situation.parent.as_ref();
    let needed = rights::needed_now(&opened.set, &opened.resource, parent, desired, plan);
    let missing = observe::missing_rights(&cluster.server, &needed, options.writing.concurrency).await;
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Error::MissingRights(missing))
    }
}
