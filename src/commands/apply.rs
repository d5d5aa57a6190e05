//! `apply`: manifests → discovery → observe → plan → execute → report.

use std::time::Instant;

use super::opening::{self, Cluster, OpenedSet};
use super::situation::{self, Rules, Situation};
use crate::cli::{Apply, Shared};
use crate::connection::Connection;
use crate::desired::{self, Desired, Target};
use crate::error::{Error, Exit};
use crate::event::{Ending, Event};
use crate::execute::{DryRun, Execution, Interrupt};
use crate::manifest::Source;
use crate::observe;
use crate::options::{self, ApplyOptions, TakeOver};
use crate::plan::{self, Confirmation, DataLoss, ParentPolicy, Plan, Refusal};
use crate::report::{self, Reporter, SetDocument};
use crate::rights;

/// Runs `apply`.
pub(super) async fn run(arguments: &Apply, shared: &Shared) -> Result<Exit, Error> {
    let started = Instant::now();
    let options = ApplyOptions::new(arguments, shared)?;
    let connection = opening::connect(shared).await?;
    let server = connection.server.clone();
    let mut run = Run {
        set: opening::unopened(&options.set),
        reporter: Reporter::new(options::style(shared), options.writing.dry_run),
        interrupt: listen(),
        is_interactive: options.is_interactive && !options.sources.contains(&Source::StandardInput),
    };
    let outcome = run.apply(connection, &options).await;
    let seconds = started.elapsed().as_secs_f64();
    let error = outcome.as_ref().err();
    if error.is_none_or(|error| error.exit() != Exit::Usage) {
        run.reporter.finish(run.set, error, server.requests(), seconds);
    }
    Ok(match outcome? {
        Ending::Done => Exit::Done,
        Ending::Incomplete => Exit::Failed,
        Ending::Interrupted => Exit::Interrupted,
    })
}

/// One run: what is known of the set, and who is told.
struct Run {
    set: SetDocument,
    reporter: Reporter,
    interrupt: Interrupt,
    /// Whether there is a person to ask.
    is_interactive: bool,
}

impl Run {
    async fn apply(&mut self, connection: Connection, options: &ApplyOptions) -> Result<Ending, Error> {
        let (cluster, manifests) =
            opening::discover_with(connection, options.sources.clone(), options.recursion).await?;
        let opened = opening::open(&cluster, &options.set, options.tooling.clone(), &manifests).await?;
        self.set = SetDocument::from(&opened.set);
        let desired = desired::resolve(manifests, opened.target(&cluster))?;
        self.warn(&desired.warnings);
        let situation = match self
            .read(
                &cluster,
                &opened,
                &desired,
                options,
                options.take_over.confirmation(),
            )
            .await
        {
            Err(Error::Refused(refusals)) if self.may_ask(options.take_over, &refusals) => {
                confirm(&refusals)?;
                self.read(&cluster, &opened, &desired, options, Confirmation::Given)
                    .await?
            }
            read => read?,
        };
        self.warn(&situation.warnings);
        let mut policy = options.policy.clone();
        let mut plan = plan::plan(&opened.set, &desired, &situation.observed, &policy);
        if !plan.refusals.is_empty() {
            let is_data_loss = plan.refusals.iter().all(Refusal::is_data_loss);
            if !is_data_loss || !self.is_interactive {
                return Err(Error::Refused(plan.refusals));
            }
            confirm(&plan.refusals)?;
            policy.data_loss = DataLoss::Allowed;
            plan = plan::plan(&opened.set, &desired, &situation.observed, &policy);
        }
        check_rights(&cluster, &opened, &situation, &desired, &plan, options).await?;
        let execution = Execution {
            server: &cluster.server,
            set: &opened.set,
            parent_resource: &opened.resource,
            parent: situation.parent.as_ref(),
            parent_policy: situation.parent_policy,
            places: &situation.places,
            desired: &desired,
            plan: &plan,
            policy: &policy,
            writing: &options.writing,
            interrupt: &self.interrupt,
        };
        let reporter = &mut self.reporter;
        Ok(execution.run(&mut |event| reporter.event(event)).await?)
    }

    async fn read(
        &self,
        cluster: &Cluster,
        opened: &OpenedSet,
        desired: &Desired,
        options: &ApplyOptions,
        take_over: Confirmation,
    ) -> Result<Situation, Error> {
        let rules = Rules {
            policy: &options.policy,
            parent_policy: ParentPolicy { take_over },
            field_manager: &options.writing.field_manager,
            concurrency: options.writing.concurrency,
        };
        situation::read(cluster, opened, desired, rules).await
    }

    fn may_ask(&self, take_over: TakeOver, refusals: &[Refusal]) -> bool {
        take_over == TakeOver::Asked && self.is_interactive && refusals.iter().all(Refusal::is_take_over)
    }

    fn warn(&mut self, texts: &[String]) {
        for text in texts {
            self.reporter.event(Event::Warning(text.clone()));
        }
    }
}

/// Shows at a terminal what stands against the run, and asks whether to go on.
fn confirm(refusals: &[Refusal]) -> Result<(), Error> {
    if report::confirm(refusals) {
        Ok(())
    } else {
        Err(Error::Refused(refusals.to_vec()))
    }
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

/// Listens for SIGINT and SIGTERM: the first asks the run to stop after the requests
/// under way, the second ends the program at once.
fn listen() -> Interrupt {
    let interrupt = Interrupt::default();
    let asked = interrupt.clone();
    tokio::spawn(async move {
        while signal().await {
            if !asked.request() {
                std::process::exit(i32::from(Exit::Interrupted.code()));
            }
            crate::report::interrupted();
        }
    });
    interrupt
}

#[cfg(unix)]
async fn signal() -> bool {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return false;
    };
    tokio::select! {
        received = interrupt.recv() => received.is_some(),
        received = terminate.recv() => received.is_some(),
    }
}

#[cfg(not(unix))]
async fn signal() -> bool {
    tokio::signal::ctrl_c().await.is_ok()
}
