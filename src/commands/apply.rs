//! `apply`: manifests → discovery → observe → plan → execute → report.

use std::time::Instant;

use super::opening::{self, Cluster, OpenedSet};
use super::situation::{self, Rules, Situation};
use crate::apiserver::ApiServer;
use crate::cli::{Apply, Shared};
use crate::desired::{self, Desired, Target};
use crate::error::{Error, Exit};
use crate::event::{Ending, Event};
use crate::execute::{DryRun, Execution, Interrupt, Writing};
use crate::manifest::Source;
use crate::observe;
use crate::options::{self, ApplyOptions, TakeOver};
use crate::plan::{self, Confirmation, DataLoss, ParentPolicy, Plan, Policy, Refusal, UnchangedMembers};
use crate::report::{self, Reporter, SetDocument};
use crate::rights;

/// Runs `apply`.
pub(super) async fn run(arguments: &Apply, shared: &Shared) -> Result<Exit, Error> {
    let started = Instant::now();
    let options = ApplyOptions::new(arguments, shared)?;
    let mut run = Run {
        set: opening::unopened(&options.set),
        reporter: Reporter::new(options::style(shared), options.writing.dry_run),
        interrupt: listen(),
        server: None,
        is_interactive: options.is_interactive && !options.sources.contains(&Source::StandardInput),
    };
    let outcome = run.apply(shared, &options).await;
    let seconds = started.elapsed().as_secs_f64();
    let requests = run.server.as_ref().map_or(0, ApiServer::requests);
    let error = outcome.as_ref().err();
    if error.is_none_or(|error| error.exit() != Exit::Usage) {
        run.reporter.finish(run.set, error, requests, seconds);
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
    server: Option<ApiServer>,
    /// Whether there is a person to ask.
    is_interactive: bool,
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

impl Run {
    async fn apply(&mut self, shared: &Shared, options: &ApplyOptions) -> Result<Ending, Error> {
        let interrupt = self.interrupt.clone();
        let prepared = tokio::select! {
            prepared = self.prepare(shared, options) => prepared?,
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
            interrupt: &self.interrupt,
        };
        let reporter = &mut self.reporter;
        Ok(execution.run(&mut |event| reporter.event(event)).await?)
    }

    async fn prepare(&mut self, shared: &Shared, options: &ApplyOptions) -> Result<Prepared, Error> {
        let connection = opening::connect(shared).await?;
        self.server = Some(connection.server.clone());
        let (cluster, manifests) =
            opening::discover_with(connection, options.sources.clone(), options.recursion).await?;
        let mut opened = opening::open(&cluster, &options.set, options.tooling.clone(), &manifests).await?;
        self.set = SetDocument::from(&opened.set);
        let desired = desired::resolve(manifests, opened.target(&cluster))?;
        self.warn(&desired.warnings);

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
                self.confirm(refusals).await?;
                take_over = Confirmation::Given;
            } else if refusals.iter().all(Refusal::is_data_loss) {
                self.confirm(refusals).await?;
                policy.data_loss = DataLoss::Allowed;
            } else {
                return Err(Error::Refused(refusals));
            }
        };
        self.warn(&situation.warnings);
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

    /// Shows at a terminal what stands against the run, and asks whether to go on.
    async fn confirm(&self, refusals: Vec<Refusal>) -> Result<(), Error> {
        if !self.is_interactive {
            return Err(Error::Refused(refusals));
        }
        let shown = refusals.clone();
        // Waiting for an answer must not keep signals from being heard.
        let answer = tokio::task::spawn_blocking(move || report::confirm(&shown)).await;
        if answer.unwrap_or(false) {
            Ok(())
        } else {
            Err(Error::Refused(refusals))
        }
    }

    fn warn(&mut self, texts: &[String]) {
        for text in texts {
            self.reporter.event(Event::Warning(text.clone()));
        }
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
