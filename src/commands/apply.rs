//! `apply`: manifests → discovery → observe → plan → execute → report.

use std::path::Path;

use super::opening;
use super::preparation::{self, Prepared};
use super::run::{Questions, Run};
use super::saved;
use super::waiting;
use crate::cli::{Apply, Shared};
use crate::error::{Error, Exit};
use crate::event::{Ending, Operation, Resume};
use crate::manifest::Source;
use crate::model::settings::DryRun;
use crate::plan::permissions;
use crate::plan::saved::{Approval, SavedPlan};
use crate::read;
use crate::settings::{self, ApplyOptions};
use crate::wait::{Deadline, Waiting};

/// Runs `apply`.
pub(super) async fn run(arguments: &Apply, shared: &Shared) -> Result<Exit, Error> {
    if let Some(file) = &arguments.plan {
        return Box::pin(run_plan(file, arguments, shared)).await;
    }
    let options = ApplyOptions::new(arguments, shared)?;
    let asks = if options.is_interactive && !options.sources.contains(&Source::StandardInput) {
        Questions::Asked
    } else {
        Questions::Impossible
    };
    let mut run = Run::begin(
        Operation::Apply,
        opening::unopened(&options.set),
        settings::style(shared),
        options.writing.dry_run,
        asks,
    );
    run.limit(options.waiting.limit);
    let outcome = apply(&mut run, shared, &options).await;
    run.finish(outcome.map_err(Error::in_reach_of_rbac))
}

async fn apply(run: &mut Run, shared: &Shared, options: &ApplyOptions) -> Result<Ending, Error> {
    let interrupt = run.interrupt.clone();
    let prepared = tokio::select! {
        prepared = prepare(run, shared, options) => prepared?,
        // Nothing is written yet, so there is nothing to wait for.
        () = interrupt.requested() => return Ok(Ending::Interrupted),
    };
    carry_out(run, &prepared, None, options).await
}

/// Runs `apply --plan`.
async fn run_plan(file: &Path, arguments: &Apply, shared: &Shared) -> Result<Exit, Error> {
    let plan = saved::read(file)?;
    let options = ApplyOptions::of_plan(&plan, arguments, shared)?;
    let mut run = Run::begin(
        Operation::Apply,
        opening::unopened(&options.set),
        settings::style(shared),
        options.writing.dry_run,
        Questions::Impossible,
    );
    run.resume = Resume::NewPlan;
    run.limit(options.waiting.limit);
    let outcome = apply_plan(&mut run, shared, &options, &plan).await;
    run.finish(outcome.map_err(Error::in_reach_of_rbac))
}

async fn apply_plan(
    run: &mut Run,
    shared: &Shared,
    options: &ApplyOptions,
    plan: &SavedPlan,
) -> Result<Ending, Error> {
    let interrupt = run.interrupt.clone();
    let approve = async {
        let (prepared, approval) = saved::approve(run, shared, options, plan).await?;
        check_rights(&prepared).await?;
        Ok::<_, Error>((prepared, approval))
    };
    let (prepared, approval) = tokio::select! {
        approved = approve => approved?,
        () = interrupt.requested() => return Ok(Ending::Interrupted),
    };
    carry_out(run, &prepared, Some(&approval), options).await
}

async fn carry_out(
    run: &mut Run,
    prepared: &Prepared,
    approval: Option<&Approval>,
    options: &ApplyOptions,
) -> Result<Ending, Error> {
    let interrupt = run.interrupt.clone();
    let execution = prepared.execution(approval, &interrupt);
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
            done_before: "everything was written",
        };
        let targets = waiting::targets(execution.desired, execution.plan, &done);
        let outcome = waiting.run(targets, &mut |event| reporter.event(event)).await;
        Ok(waiting::ending(outcome, ending))
    };
    Run::until_insisted(&interrupt, work).await
}

async fn prepare(run: &mut Run, shared: &Shared, options: &ApplyOptions) -> Result<Prepared, Error> {
    let prepared = preparation::to_write(run, shared, options).await?;
    check_rights(&prepared).await?;
    Ok(prepared)
}

/// Refuses to begin what the user may not finish. A client-side dry run writes nothing
/// and asks nothing.
async fn check_rights(prepared: &Prepared) -> Result<(), Error> {
    let Prepared {
        cluster,
        opened,
        desired,
        situation,
        writing,
        plan,
        ..
    } = prepared;
    if writing.dry_run == DryRun::Client {
        return Ok(());
    }
    let parent = situation.parent.as_ref();
    let manager = &writing.field_manager;
    let needed = permissions::needed_now(&opened.set, &opened.resource, parent, desired, plan, manager);
    let missing = read::missing_rights(&cluster.server, &needed, writing.concurrency).await;
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Error::MissingRights(missing))
    }
}
