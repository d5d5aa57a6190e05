//! Asks for kinds that discovery does not list, and waits for those that are defined.
//!
//! Discovery alone proves nothing: it lags behind new definitions, and a starting API server
//! leaves the groups of custom resources out. What follows from the answers is judged by
//! `discovery::judge_unserved`. The requests are sent only when a kind is missing.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::StatusCode;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::list::{ListError, METADATA_LIST, Selector, WHOLE_OBJECTS, list};
use crate::apiserver::{ApiError, ApiServer};
use crate::discovery::{
    self, Definition, DelegatedApi, Discovery, DiscoveryError, Evidence, Expected, Forbidden, Resource,
    Scope, Unserved, judge_unserved,
};
use crate::identity::GroupKind;

/// How long a kind that is defined may take to be served. Seconds are usual; kubectl's waits
/// default to thirty.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two discoveries.
pub(super) const PAUSE: Duration = Duration::from_millis(200);
/// How many definitions are read at once; each may be a megabyte.
const DEFINITIONS_AT_ONCE: usize = 4;

/// The permission to see whether a definition exists.
const LIST_DEFINITIONS: &str = "list customresourcedefinitions.apiextensions.k8s.io";
/// The permission to see what a definition says.
const GET_DEFINITIONS: &str = "get customresourcedefinitions.apiextensions.k8s.io";
/// The permission to see which APIs are delegated.
const LIST_API_SERVICES: &str = "list apiservices.apiregistration.k8s.io";

/// Why it is not known which kinds the server has.
#[derive(Debug, thiserror::Error)]
pub enum UnsettledError {
    /// Discovery itself failed.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// Definitions or APIServices could not be read, for another reason than permissions.
    #[error("whether the server has kind {kind} could not be found out: {error}")]
    Unread {
        /// The kind, or what stands for all kinds.
        kind: String,
        /// What the server said.
        error: ListError,
    },
    /// The server does not serve a kind that it should.
    #[error("kind {kind} is not served: {expected}")]
    StillExpected {
        /// The kind.
        kind: String,
        /// What it is waited for.
        expected: Expected,
    },
}

/// Until when a kind that is defined is waited for, and who hears of it.
pub struct KindWait<'a> {
    deadline: Instant,
    on_wait: &'a dyn Fn(&str),
    was_reported: Cell<bool>,
}

impl<'a> KindWait<'a> {
    /// Waits for thirty seconds, or for three quarters of the time that the run has left, so that
    /// it can still say what it has waited for. `on_wait` is called once, if there is a wait.
    pub fn new(end_of_run: Option<Instant>, on_wait: &'a dyn Fn(&str)) -> Self {
        let now = Instant::now();
        let left = end_of_run.map_or(PATIENCE, |end| end.duration_since(now) * 3 / 4);
        Self {
            deadline: now + left.min(PATIENCE),
            on_wait,
            was_reported: Cell::new(false),
        }
    }

    /// Waits for thirty seconds, in the middle of a run that is waited for anyhow.
    pub fn unreported() -> Self {
        Self::new(None, &|_| {})
    }

    /// Does not wait.
    pub fn never() -> Self {
        Self {
            deadline: Instant::now(),
            ..Self::unreported()
        }
    }

    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Pauses before the next look.
    ///
    /// # Errors
    ///
    /// The time is over.
    async fn pause(&self, kind: String, expected: Expected) -> Result<(), UnsettledError> {
        if self.is_over() {
            return Err(UnsettledError::StillExpected { kind, expected });
        }
        if !self.was_reported.replace(true) {
            (self.on_wait)(&format!("waiting for kind {kind}: {expected}"));
        }
        sleep(PAUSE).await;
        Ok(())
    }
}

/// Finds out what became of the recorded kinds that discovery does not list, as `unlisted`
/// names them: asks for a fresh discovery, then for definitions and APIServices, and waits for
/// kinds that the server should serve. Nothing is sent if all are listed.
///
/// What is known of the others afterwards is in `discovery` (`Discovery::unserved`).
///
/// # Errors
///
/// A kind that is still not served when the wait is over, or evidence that could not be read.
pub async fn settle(
    server: &ApiServer,
    discovery: &mut Discovery,
    unlisted: impl Fn(&Discovery) -> BTreeSet<GroupKind>,
    wait: &KindWait<'_>,
) -> Result<(), UnsettledError> {
    if unlisted(discovery).is_empty() {
        return Ok(());
    }
    loop {
        discover_again(server, discovery).await?;
        let kinds = unlisted(discovery);
        let Some(first) = kinds.first() else {
            return Ok(());
        };
        let evidence = evidence(server, discovery, &kinds).await;
        let evidence = evidence.map_err(|error| UnsettledError::Unread {
            kind: first.to_string(),
            error,
        })?;
        let unserved: BTreeMap<GroupKind, Unserved> = kinds
            .into_iter()
            .map(|kind| {
                let judged = judge_unserved(&kind, &evidence, discovery);
                (kind, judged)
            })
            .collect();
        let expected = unserved.iter().find_map(|(kind, unserved)| match unserved {
            Unserved::Expected(expected) => Some((kind.to_string(), expected.clone())),
            Unserved::Gone | Unserved::Kept(_) => None,
        });
        discovery.set_unserved(unserved);
        match expected {
            None => return Ok(()),
            Some((kind, expected)) => wait.pause(kind, expected).await?,
        }
    }
}

/// Waits until the server serves the kinds that `unlisted` names, as far as they are defined
/// already. For kinds of manifests, which come to be served with the run otherwise. Who may not
/// read definitions waits for nothing.
///
/// # Errors
///
/// As [`settle`].
pub async fn await_defined(
    server: &ApiServer,
    discovery: &mut Discovery,
    unlisted: impl Fn(&Discovery) -> BTreeSet<GroupKind>,
    wait: &KindWait<'_>,
) -> Result<(), UnsettledError> {
    let mut kinds = unlisted(discovery);
    if kinds.is_empty() {
        return Ok(());
    }
    while let Some(first) = kinds.first() {
        let definitions = definitions(server, discovery, |name| may_define(name, &kinds)).await;
        let definitions = definitions.map_err(|error| UnsettledError::Unread {
            kind: first.to_string(),
            error,
        })?;
        let Ok(definitions) = definitions else {
            return Ok(());
        };
        let is_wanted = |definition: &&Definition| definition.is_served() && kinds.contains(&definition.kind);
        let Some(definition) = definitions.iter().find(is_wanted) else {
            return Ok(());
        };
        discover_again(server, discovery).await?;
        kinds = unlisted(discovery);
        if kinds.contains(&definition.kind) {
            wait.pause(definition.kind.to_string(), definition.expected())
                .await?;
        }
    }
    Ok(())
}

/// Waits until discovery lists every kind that is defined and every delegated API, so that a
/// look through all kinds misses none. Returns the permission without which that cannot be seen.
///
/// # Errors
///
/// As [`settle`].
pub async fn await_everything(
    server: &ApiServer,
    discovery: &mut Discovery,
    wait: &KindWait<'_>,
) -> Result<Option<&'static str>, UnsettledError> {
    loop {
        let unread = |error| UnsettledError::Unread {
            kind: "of every CustomResourceDefinition".to_owned(),
            error,
        };
        let read = async {
            tokio::try_join!(
                definitions(server, discovery, |_| true),
                delegated(server, discovery)
            )
        };
        let (definitions, delegated) = match read.await.map_err(unread)? {
            (Ok(definitions), Ok(delegated)) => (definitions, delegated),
            (Err(Forbidden(permission)), _) | (_, Err(Forbidden(permission))) => return Ok(Some(permission)),
        };
        let mut expected = definitions
            .iter()
            .filter(|definition| definition.is_served())
            .map(|definition| (definition.kind.to_string(), definition.expected()))
            .chain(
                delegated
                    .iter()
                    .filter(|api| !api.is_discovered(discovery))
                    .map(|api| (format!("of {}", api.group), Expected::Delegated(api.name.clone()))),
            );
        let Some((kind, expected)) = expected.next() else {
            return Ok(None);
        };
        wait.pause(kind, expected).await?;
        discover_again(server, discovery).await?;
    }
}

/// Finds out what became of one kind that discovery does not list; nothing is waited for.
pub(super) async fn look_up(
    server: &ApiServer,
    discovery: &Discovery,
    kind: &GroupKind,
) -> Result<Unserved, ListError> {
    let evidence = evidence(server, discovery, &BTreeSet::from([kind.clone()])).await?;
    Ok(judge_unserved(kind, &evidence, discovery))
}

/// Replaces a discovery by a fresh one that has the same promises.
async fn discover_again(server: &ApiServer, discovery: &mut Discovery) -> Result<(), DiscoveryError> {
    *discovery = discovery::fetch(server).await?.with_promises_of(discovery);
    Ok(())
}

async fn evidence(
    server: &ApiServer,
    discovery: &Discovery,
    kinds: &BTreeSet<GroupKind>,
) -> Result<Evidence, ListError> {
    let definitions = definitions(server, discovery, |name| may_define(name, kinds));
    let (definitions, delegated) = tokio::try_join!(definitions, delegated(server, discovery))?;
    Ok(Evidence {
        definitions,
        delegated,
    })
}

/// Whether a definition of this name may define one of the kinds; a recorded one may have its
/// version between kind and group.
fn may_define(name: &str, kinds: &BTreeSet<GroupKind>) -> bool {
    let Some((_, group)) = name.split_once('.') else {
        return false;
    };
    kinds.iter().any(|kind| {
        let without_version = kind.group.split_once('.').map(|(_, rest)| rest);
        kind.group == group || without_version == Some(group)
    })
}

/// The definitions that discovery does not show, as far as their names are relevant.
async fn definitions(
    server: &ApiServer,
    discovery: &Discovery,
    is_relevant: impl Fn(&str) -> bool,
) -> Result<Result<Vec<Definition>, Forbidden>, ListError> {
    let resource = Resource::regular(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        Scope::Cluster,
    );
    let selector = everything(METADATA_LIST);
    let names = list(server, &resource, None, &selector, |item| {
        let name = item.pointer("/metadata/name")?.as_str()?;
        (is_relevant(name) && !discovery.has_definition(name)).then(|| name.to_owned())
    });
    let names = match names.await {
        Err(error) if error.is_forbidden() => return Ok(Err(Forbidden(LIST_DEFINITIONS))),
        names => names?,
    };
    let read = stream::iter(names).map(|name| read_definition(server, resource.path(None, Some(&name))));
    let read: Result<Vec<Option<Definition>>, ApiError> =
        read.buffered(DEFINITIONS_AT_ONCE).try_collect().await;
    match read {
        Ok(read) => Ok(Ok(read.into_iter().flatten().collect())),
        Err(error) if error.is(StatusCode::FORBIDDEN) => Ok(Err(Forbidden(GET_DEFINITIONS))),
        Err(error) => Err(error.into()),
    }
}

/// Reads one definition; `None` if it is gone by now.
async fn read_definition(server: &ApiServer, path: String) -> Result<Option<Definition>, ApiError> {
    let reply = match server.get(&path, WHOLE_OBJECTS).await {
        Err(error) if error.is_missing_object() => return Ok(None),
        reply => reply?,
    };
    let object: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    match Definition::of(&object) {
        Some(definition) => Ok(Some(definition)),
        None => Err(ApiError::unreadable(path, "it is not a CustomResourceDefinition")),
    }
}

/// The APIs that are delegated to other servers; none if the server has no APIServices at all.
async fn delegated(
    server: &ApiServer,
    discovery: &Discovery,
) -> Result<Result<Vec<DelegatedApi>, Forbidden>, ListError> {
    let resource = Resource::regular("apiregistration.k8s.io", "v1", "APIService", Scope::Cluster);
    let selector = everything(WHOLE_OBJECTS);
    match list(server, &resource, None, &selector, DelegatedApi::of).await {
        Err(error) if error.is_forbidden() => Ok(Err(Forbidden(LIST_API_SERVICES))),
        Err(error) if error.is_not_served() && !discovery.has_version(&resource.group, &resource.version) => {
            Ok(Ok(Vec::new()))
        }
        listed => listed.map(Ok),
    }
}

/// All objects of a collection, as much of each as `accept` asks for.
fn everything(accept: &'static str) -> Selector {
    Selector {
        labels: String::new(),
        accept,
    }
}
