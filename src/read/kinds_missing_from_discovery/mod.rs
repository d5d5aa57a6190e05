//! Determines the state of kinds that discovery does not list, and waits for those that are defined.
//!
//! Discovery alone proves nothing: it lags behind new definitions, and a starting API server
//! leaves the groups of custom resources out. What follows from the answers is judged by
//! `discovery::judge_missing_kind`. The requests are sent only when a kind is missing.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::definitions::{aggregated_apis, definitions};
use super::list::ListError;
use crate::cluster::apiserver::ApiServer;
use crate::cluster::discovery::{
    self, AggregatedApi, Definition, Discovery, DiscoveryError, Evidence, Expected, Forbidden, KeptKind,
    KindLookup, MissingKind, judge_missing_kind,
};
use crate::error::Error;
use crate::model::identity::GroupKind;

/// The time that a defined kind may take to be served. Seconds are usual; kubectl's waits
/// default to thirty.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two discoveries.
pub(super) const PAUSE: Duration = Duration::from_millis(200);

/// Error if it is not known which kinds the server has.
#[derive(Debug, thiserror::Error)]
pub enum UnsettledError {
    /// Discovery itself failed.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// Definitions or APIServices could not be read, for another reason than permissions; or the server does not serve a
    /// kind that it should.
    #[error("{0}")]
    Kind(Error),
}

impl From<UnsettledError> for Error {
    fn from(error: UnsettledError) -> Self {
        match error {
            UnsettledError::Discovery(error) => error.into(),
            UnsettledError::Kind(error) => error,
        }
    }
}

/// The deadline of a wait for kinds that are defined, and the callback that reports it.
pub struct KindWait<'a> {
    deadline: Instant,
    on_wait: &'a dyn Fn(&str),
    pauses: Cell<usize>,
}

impl<'a> KindWait<'a> {
    /// Waits for thirty seconds, or for three quarters of the time that the run has left, so that the
    /// run can still report it. `on_wait` is called once, if there is a wait.
    pub fn new(end_of_run: Option<Instant>, on_wait: &'a dyn Fn(&str)) -> Self {
        let now = Instant::now();
        let left = end_of_run.map_or(PATIENCE, |end| end.duration_since(now) * 3 / 4);
        Self {
            deadline: now + left.min(PATIENCE),
            on_wait,
            pauses: Cell::new(0),
        }
    }

    /// Waits for thirty seconds, in the middle of a run.
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

    /// Pauses before the next discovery. The first one follows at once, because the last discovery may
    /// merely be older than the CRD.
    ///
    /// # Errors
    ///
    /// The time is over.
    async fn pause(&self, AwaitedKind { kind, expected }: AwaitedKind) -> Result<(), UnsettledError> {
        if self.is_over() {
            let text = format!("kind {kind} is not served: {expected}");
            return Err(UnsettledError::Kind(Error::kind_not_served(text)));
        }
        let pauses = self.pauses.replace(self.pauses.get() + 1);
        if pauses == 1 {
            (self.on_wait)(&format!("waiting for kind {kind}: {expected}"));
        }
        if pauses > 0 {
            sleep(PAUSE).await;
        }
        Ok(())
    }
}

/// A kind that the server should serve, and that discovery does not list.
struct AwaitedKind {
    kind: String,
    expected: Expected,
}

/// The result of reading definitions and APIServices.
enum Outlook<T> {
    /// Nothing is expected.
    Settled(T),
    /// Discovery will list this kind, or should.
    Expecting(AwaitedKind),
}

/// Repeats discovery until nothing is expected any more. All waits for discovery are here.
async fn until_settled<T>(
    server: &ApiServer,
    discovery: &mut Discovery,
    wait: &KindWait<'_>,
    look: impl AsyncFn(&mut Discovery) -> Result<Outlook<T>, UnsettledError>,
) -> Result<T, UnsettledError> {
    loop {
        match look(discovery).await? {
            Outlook::Settled(found) => return Ok(found),
            Outlook::Expecting(awaited) => wait.pause(awaited).await?,
        }
        discover_again(server, discovery).await?;
    }
}

/// Determines the state of the recorded kinds that discovery does not list, as `unlisted` names them:
/// asks for a fresh discovery, then for definitions and APIServices, and waits for kinds that the
/// server should serve. Nothing is sent if all are listed.
///
/// The states of the others are in `discovery` afterwards (`Discovery::missing_kind`).
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
    discover_again(server, discovery).await?;
    until_settled(server, discovery, wait, async |discovery| {
        let kinds = unlisted(discovery);
        let Some(first) = kinds.first() else {
            return Ok(Outlook::Settled(()));
        };
        let evidence = evidence(server, discovery, &kinds)
            .await
            .map_err(|error| unread(first, &error))?;
        let missing_kinds: BTreeMap<GroupKind, MissingKind> = kinds
            .into_iter()
            .map(|kind| {
                let judged = judge_missing_kind(&kind, &evidence, discovery);
                (kind, judged)
            })
            .collect();
        let awaited = missing_kinds.iter().find_map(|(kind, missing)| match missing {
            MissingKind::Expected(expected) => Some(AwaitedKind {
                kind: kind.to_string(),
                expected: expected.clone(),
            }),
            MissingKind::Gone | MissingKind::Kept(_) => None,
        });
        discovery.set_missing_kinds(missing_kinds);
        Ok(awaited.map_or(Outlook::Settled(()), Outlook::Expecting))
    })
    .await
}

/// Waits until the server serves the kinds that `unlisted` names, as far as they are defined
/// already. Used for kinds of the manifests: the run itself brings a definition that the cluster
/// lacks. A user who may not read definitions waits for nothing.
///
/// # Errors
///
/// As [`settle`].
pub(super) async fn await_defined(
    server: &ApiServer,
    discovery: &mut Discovery,
    unlisted: impl Fn(&Discovery) -> BTreeSet<GroupKind>,
    wait: &KindWait<'_>,
) -> Result<(), UnsettledError> {
    until_settled(server, discovery, wait, async |discovery| {
        let kinds = unlisted(discovery);
        let definitions = definitions_of(server, &kinds, |name| !discovery.has_definition(name)).await?;
        let awaited = definitions
            .iter()
            .find(|definition| definition.is_served())
            .map(AwaitedKind::from_definition);
        Ok(awaited.map_or(Outlook::Settled(()), Outlook::Expecting))
    })
    .await
}

/// Reads the definitions of these kinds whose names are relevant. There are none for users who may
/// not read definitions. Sends nothing if there are no kinds.
async fn definitions_of(
    server: &ApiServer,
    kinds: &BTreeSet<GroupKind>,
    is_relevant: impl Fn(&str) -> bool,
) -> Result<Vec<Definition>, UnsettledError> {
    let Some(first) = kinds.first() else {
        return Ok(Vec::new());
    };
    let mut definitions = definitions(server, |name| may_define(name, kinds) && is_relevant(name))
        .await
        .map_err(|error| unread(first, &error))?
        .unwrap_or_default();
    definitions.retain(|definition| kinds.contains(&definition.kind));
    Ok(definitions)
}

/// Determines why the server does not serve these kinds although they are defined. Without the
/// permission to read definitions, the reason is unknown.
///
/// # Errors
///
/// Definitions could not be read, for another reason than permissions.
pub(super) async fn definition_states(
    server: &ApiServer,
    kinds: &BTreeSet<GroupKind>,
) -> Result<BTreeMap<GroupKind, MissingKind>, UnsettledError> {
    let definitions = definitions_of(server, kinds, |_| true).await?.into_iter();
    let states = definitions.map(|definition| (definition.kind.clone(), definition.missing_kind()));
    Ok(states
        .filter(|(_, state)| matches!(state, MissingKind::Kept(_)))
        .collect())
}

/// Waits until the server serves the resource that the command line names, if it is defined or an API
/// that is silent may have it. Returns what is known of a defined resource that is not to be waited
/// for, with its kind; `None` for one that discovery lists or nothing defines, and for users who may
/// not read definitions.
///
/// # Errors
///
/// As [`settle`].
pub(super) async fn await_named(
    server: &ApiServer,
    discovery: &mut Discovery,
    argument: &str,
    wait: &KindWait<'_>,
) -> Result<Option<KeptKind>, UnsettledError> {
    until_settled(server, discovery, wait, async |discovery| {
        if discovery.resource_argument(argument) != KindLookup::Absent {
            return Ok(Outlook::Settled(None));
        }
        let Evidence {
            definitions,
            aggregated,
        } = everything(server, discovery).await?;
        let definitions = definitions.unwrap_or_default();
        if let Some(definition) = definitions.iter().find(|known| known.is_named_by(argument)) {
            return Ok(match definition.missing_kind() {
                MissingKind::Expected(_) => Outlook::Expecting(AwaitedKind::from_definition(definition)),
                MissingKind::Kept(kept) => Outlook::Settled(Some(kept)),
                MissingKind::Gone => Outlook::Settled(None),
            });
        }
        let aggregated = aggregated.unwrap_or_default();
        let silent = aggregated.iter().filter(|api| !api.is_discovered(discovery));
        let api = silent.into_iter().find(|api| api.may_serve(argument));
        Ok(api.map_or(Outlook::Settled(None), |api| {
            Outlook::Expecting(AwaitedKind::from_api(api))
        }))
    })
    .await
}

/// Reads the definitions that discovery does not list, and all aggregated APIs.
async fn everything(server: &ApiServer, discovery: &Discovery) -> Result<Evidence, UnsettledError> {
    let read = read(server, discovery, |_| true).await;
    read.map_err(|error| unread(&"of every CustomResourceDefinition", &error))
}

/// The error about a kind, or what stands for all kinds.
fn unread(kind: &impl Display, error: &ListError) -> UnsettledError {
    UnsettledError::Kind(Error::kind_unknowable(format!(
        "kind {kind}: cannot determine whether the server has it: {error}"
    )))
}

/// Kinds that a search of all kinds cannot list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Unlistable {
    /// The permission without which it is not known which kinds there are.
    pub(super) missing_permission: Option<&'static str>,
    /// The definitions that serve no version now, by name: objects of their kinds may be stored.
    pub(super) definitions: Vec<String>,
}

/// Adds the kinds that this permission would show to those that could not be listed.
pub fn unseen_kinds(permission: &str) -> String {
    format!("kinds that need permission to {permission}")
}

/// Waits until discovery lists every kind that is defined and served and every aggregated API, so
/// that a search of all kinds misses none. Returns those that still cannot be listed.
///
/// # Errors
///
/// As [`settle`].
pub(super) async fn await_everything(
    server: &ApiServer,
    discovery: &mut Discovery,
    wait: &KindWait<'_>,
) -> Result<Unlistable, UnsettledError> {
    until_settled(server, discovery, wait, async |discovery| {
        let Evidence {
            definitions,
            aggregated,
        } = everything(server, discovery).await?;
        let forbidden = definitions.as_ref().err().or(aggregated.as_ref().err());
        let missing_permission = forbidden.map(|Forbidden(permission)| *permission);
        let definitions = definitions.unwrap_or_default();
        let aggregated = aggregated.unwrap_or_default();
        let served = definitions.iter().filter(|definition| definition.is_served());
        let silent = aggregated.iter().filter(|api| !api.is_discovered(discovery));
        let mut expected = served
            .map(AwaitedKind::from_definition)
            .chain(silent.map(AwaitedKind::from_api));
        if let Some(awaited) = expected.next() {
            return Ok(Outlook::Expecting(awaited));
        }
        let hidden = definitions.into_iter().filter(Definition::hides_objects);
        Ok(Outlook::Settled(Unlistable {
            missing_permission,
            definitions: hidden.map(|definition| definition.name).collect(),
        }))
    })
    .await
}

impl AwaitedKind {
    fn from_api(api: &AggregatedApi) -> Self {
        Self {
            kind: format!("of {}", api.group),
            expected: Expected::Aggregated(api.name.clone()),
        }
    }

    fn from_definition(definition: &Definition) -> Self {
        Self {
            kind: definition.kind.to_string(),
            expected: definition.expected(),
        }
    }
}

/// Determines the state of one kind that discovery does not list, without waiting.
pub(super) async fn look_up(
    server: &ApiServer,
    discovery: &Discovery,
    kind: &GroupKind,
) -> Result<MissingKind, ListError> {
    let evidence = evidence(server, discovery, &BTreeSet::from([kind.clone()])).await?;
    Ok(judge_missing_kind(kind, &evidence, discovery))
}

/// Replaces a discovery by a fresh one with the same kinds of the manifests.
async fn discover_again(server: &ApiServer, discovery: &mut Discovery) -> Result<(), DiscoveryError> {
    *discovery = discovery::fetch(server).await?.with_not_yet_served_of(discovery);
    Ok(())
}

async fn evidence(
    server: &ApiServer,
    discovery: &Discovery,
    kinds: &BTreeSet<GroupKind>,
) -> Result<Evidence, ListError> {
    read(server, discovery, |name| may_define(name, kinds)).await
}

/// Reads the definitions that discovery does not list, as far as their names are relevant.
async fn read(
    server: &ApiServer,
    discovery: &Discovery,
    is_relevant: impl Fn(&str) -> bool,
) -> Result<Evidence, ListError> {
    let definitions = definitions(server, |name| {
        is_relevant(name) && !discovery.has_definition(name)
    });
    let (definitions, aggregated) = tokio::try_join!(definitions, aggregated_apis(server, discovery))?;
    Ok(Evidence {
        definitions,
        aggregated,
    })
}

/// Returns whether a definition of this name may define one of the kinds; a recorded one may have its
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

#[cfg(test)]
mod tests;
