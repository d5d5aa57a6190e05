//! `apply`: manifests → discovery → observe → plan → execute → report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::opening::{self, Cluster, OpenedSet};
use crate::apiserver::ApiServer;
use crate::applyset::PART_OF_LABEL;
use crate::cli::{Apply, Shared};
use crate::desired::{self, Desired, Target};
use crate::error::{Error, Exit, MissingNamespace};
use crate::event::{Ending, Event};
use crate::execute::{Execution, Interrupt};
use crate::identity::GroupKind;
use crate::observe::{self, Live, ParentObject, Selector};
use crate::options::{self, ApplyOptions};
use crate::plan::{self, Observed, Plan, Standing, Survey};
use crate::report::{Reporter, SetDocument};
use crate::{manifest, options::SetReference};

/// Runs `apply`.
pub(super) async fn run(arguments: &Apply, shared: &Shared) -> Result<Exit, Error> {
    let started = Instant::now();
    let options = ApplyOptions::new(arguments, shared)?;
    let manifests = manifest::read(&options.sources, options.recursion)?;
    let connection = opening::connect(shared).await?;
    let server = connection.server.clone();
    let mut run = Run {
        set: opening::unopened(&options.set),
        reporter: Reporter::new(options::style(shared), options.writing.dry_run),
        interrupt: listen(),
    };
    let outcome = run.apply(connection, manifests, &options).await;
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
}

impl Run {
    async fn apply(
        &mut self,
        connection: crate::connection::Connection,
        manifests: Vec<manifest::Manifest>,
        options: &ApplyOptions,
    ) -> Result<Ending, Error> {
        let cluster = opening::discover(connection, &manifests).await?;
        let opened = opening::open(&cluster, &options.set, &manifests).await?;
        self.set = SetDocument::from(&opened.set);
        let desired = desired::resolve(manifests, opened.target(&cluster))?;
        self.warn(desired.warnings.iter().cloned());

        let parent = opening::read_parent(&cluster.server, &opened).await?;
        let standing = plan::judge(&opened.set, parent.as_ref(), options.parent_policy)?;
        check_custom_parent(&opened, parent.as_ref(), &desired, &options.set)?;
        let (standing, home) = match &parent {
            Some(_) => (standing, Home::Exists),
            None => read_home(&cluster.server, &opened, standing).await?,
        };
        let survey = plan::survey(&opened.set, &standing, &desired, &cluster.discovery)?;
        self.warn(survey.vanished.iter().map(vanished));
        let members = read_members(&cluster.server, &opened, &survey, options.writing.concurrency).await?;
        check_namespaces(&cluster.server, &opened, home, &desired, &members).await?;
        self.warn_of_orphans(parent.as_ref(), &members, &opened);

        let observed = Observed {
            recorded: survey.recorded,
            members,
        };
        let plan = plan::plan(&opened.set, &desired, &observed, &options.policy);
        if !plan.refusals.is_empty() {
            return Err(Error::Refused(plan.refusals));
        }
        self.execute(&cluster, &opened, parent.as_ref(), &desired, &plan, options)
            .await
    }

    async fn execute(
        &mut self,
        cluster: &Cluster,
        opened: &OpenedSet,
        parent: Option<&ParentObject>,
        desired: &Desired,
        plan: &Plan,
        options: &ApplyOptions,
    ) -> Result<Ending, Error> {
        let execution = Execution {
            server: &cluster.server,
            set: &opened.set,
            parent_resource: &opened.resource,
            parent,
            parent_policy: options.parent_policy,
            desired,
            plan,
            policy: &options.policy,
            writing: &options.writing,
            interrupt: &self.interrupt,
        };
        let reporter = &mut self.reporter;
        Ok(execution.run(&mut |event| reporter.event(event)).await?)
    }

    fn warn(&mut self, texts: impl Iterator<Item = String>) {
        for text in texts {
            self.reporter.event(Event::Warning(text));
        }
    }

    /// A parent that was deleted leaves members behind, which this run takes up.
    fn warn_of_orphans(&mut self, parent: Option<&ParentObject>, members: &[Live], opened: &OpenedSet) {
        if parent.is_none() && !members.is_empty() {
            let count = crate::wording::counted(members.len(), "object");
            let text = format!(
                "{count} belong to this set, whose parent {} is gone; the set goes on with them",
                opened.set.parent
            );
            self.reporter.event(Event::Warning(text));
        }
    }
}

impl OpenedSet {
    fn target<'a>(&'a self, cluster: &'a Cluster) -> Target<'a> {
        Target {
            discovery: &cluster.discovery,
            parent: &self.set.parent,
            id: &self.set.id,
            namespace: &cluster.namespace,
        }
    }
}

/// A custom resource cannot be made up: it must be there, or come with the manifests.
fn check_custom_parent(
    opened: &OpenedSet,
    parent: Option<&ParentObject>,
    desired: &Desired,
    reference: &SetReference,
) -> Result<(), Error> {
    let is_plain = opened.resource.group.is_empty();
    if is_plain || parent.is_some() || desired.parent.is_some() {
        return Ok(());
    }
    Err(Error::Usage {
        message: format!("the set's parent {} does not exist", opened.set.parent),
        hint: format!(
            "put the {} {} among the manifests, or create it first",
            opened.resource.kind, reference.name
        ),
    })
}

fn vanished(kind: &GroupKind) -> String {
    format!("the server has no kind {kind} any more; it leaves the set's record")
}

async fn read_members(
    server: &ApiServer,
    opened: &OpenedSet,
    survey: &Survey,
    concurrency: usize,
) -> Result<Vec<Live>, Error> {
    let selector = Selector {
        labels: format!("{PART_OF_LABEL}={}", opened.set.id),
        accept: observe::WHOLE_OBJECTS,
    };
    let read = observe::members(
        server,
        &survey.places,
        &selector,
        concurrency,
        |item, resource: &Arc<_>| Live::of(item, resource),
    );
    let mut members = read
        .await
        .map_err(|(place, error)| Error::List { place, error })?;
    let is_in_scope = |live: &Live| {
        live.key
            .namespace
            .as_ref()
            .is_none_or(|namespace| survey.places.namespaces.contains(namespace))
    };
    members.retain(is_in_scope);
    Ok(members)
}

/// The namespace of a parent that is not there yet; `None` where the namespace is not
/// there either.
///
/// An interrupted run may have made that namespace as a member of the set, and been
/// stopped before it could record that. Then this run starts from there.
async fn read_home(
    server: &ApiServer,
    opened: &OpenedSet,
    standing: Standing,
) -> Result<(Standing, Home), Error> {
    let Some(namespace) = opened.set.parent.namespace.as_deref() else {
        return Ok((standing, Home::Exists));
    };
    let found = observe::namespaces(server, &BTreeSet::from([namespace])).await;
    let found = found.map_err(|(place, error)| Error::List { place, error })?;
    Ok(match found.get(namespace) {
        None => (standing, Home::Missing),
        Some(part_of) if part_of.as_deref() == Some(opened.set.id.as_str()) => {
            (Standing::resumed(&opened.set), Home::Exists)
        }
        Some(_) => (standing, Home::Exists),
    })
}

/// Whether the parent has a namespace to live in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Home {
    Exists,
    Missing,
}

/// Refuses namespaces that neither exist nor come with the manifests. Those that hold
/// the parent or a member are known to exist, so a settled set asks nothing here.
async fn check_namespaces(
    server: &ApiServer,
    opened: &OpenedSet,
    home: Home,
    desired: &Desired,
    members: &[Live],
) -> Result<(), Error> {
    let parent_namespace = opened.set.parent.namespace.as_deref();
    let mut known: BTreeSet<&str> = members
        .iter()
        .filter_map(|live| live.key.namespace.as_deref())
        .collect();
    known.extend(desired.namespaces());
    let mut missing = Vec::new();
    match (home, parent_namespace) {
        (Home::Exists, Some(namespace)) => {
            known.insert(namespace);
        }
        (Home::Missing, Some(namespace)) if !known.contains(namespace) => missing.push(MissingNamespace {
            namespace: namespace.to_owned(),
            wanted_by: None,
        }),
        (_, _) => {}
    }
    let mut wanted = BTreeMap::new();
    for member in &desired.members {
        if let Some(namespace) = member
            .key
            .namespace
            .as_deref()
            .filter(|namespace| !known.contains(namespace))
        {
            wanted.entry(namespace).or_insert(member);
        }
    }
    let found = observe::namespaces(server, &wanted.keys().copied().collect()).await;
    let found = found.map_err(|(place, error)| Error::List { place, error })?;
    missing.extend(
        wanted
            .into_iter()
            .filter(|(namespace, _)| !found.contains_key(*namespace))
            .map(|(namespace, member)| MissingNamespace {
                namespace: namespace.to_owned(),
                wanted_by: Some((member.position.clone(), member.key.clone())),
            }),
    );
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Error::MissingNamespaces(missing))
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
