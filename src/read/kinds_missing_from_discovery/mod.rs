//! Determines the state of kinds that discovery does not list, and waits for those that are defined.
//!
//! Discovery alone does not prove that the server lacks a kind: discovery lags behind new definitions, and a starting
//! API server leaves out the groups of custom resources. So when a kind is missing, this module reads definitions and
//! APIServices, and `discovery::judge_missing_kind` draws the conclusion.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::ControlFlow;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::definitions::{list_aggregated_apis, read_relevant_crds};
use super::list::ListError;
use crate::cluster::apiserver::ApiServer;
use crate::cluster::discovery::{
    self, AggregatedApi, Definition, Discovery, Evidence, Forbidden, MissingKind, ReasonToExpectKind,
    judge_missing_kind,
};
use crate::error::Error;
use crate::model::identity::GroupKind;

/// The longest wait for a defined kind to be served. It usually takes seconds; kubectl's waits default to 30 seconds.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The pause between two discoveries.
pub(super) const PAUSE: Duration = Duration::from_millis(200);

/// The deadline of a wait for kinds that are defined, and the callback that reports it.
pub struct KindWait<'a> {
    deadline: Instant,
    on_wait: &'a dyn Fn(&str),
    pauses: Cell<usize>,
}

impl<'a> KindWait<'a> {
    /// Waits for up to `LONGEST_WAIT`, but for at most three quarters of the time that the run has left: the rest is
    /// for the run to report that the kind is not served. `on_wait` is called once, if there is a wait.
    pub fn new(end_of_run: Option<Instant>, on_wait: &'a dyn Fn(&str)) -> Self {
        let now = Instant::now();
        let limit = end_of_run.map_or(LONGEST_WAIT, |end| end.duration_since(now) / 4 * 3);
        Self {
            deadline: now + limit.min(LONGEST_WAIT),
            on_wait,
            pauses: Cell::new(0),
        }
    }

    /// Waits for up to `LONGEST_WAIT` without a report, in the middle of a run.
    pub fn without_report() -> Self {
        Self::new(None, &|_| {})
    }

    /// Does not wait.
    pub fn never() -> Self {
        Self {
            deadline: Instant::now(),
            ..Self::without_report()
        }
    }

    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Pauses before discovery is repeated. Before the first repetition, there is no pause: the kind may be missing
    /// only because its CRD is younger than the last discovery.
    ///
    /// # Errors
    ///
    /// The time is over.
    async fn pause_or_time_out(&self, AwaitedKind { kind, expected }: AwaitedKind) -> Result<(), Error> {
        if self.is_over() {
            let text = format!("kind {kind} is not served: {expected}");
            return Err(Error::for_kind_not_served(text));
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

/// A kind that the server should serve according to its CRD or `APIService`, and that discovery does not list.
struct AwaitedKind {
    kind: String,
    expected: ReasonToExpectKind,
}

/// Repeats discovery until `look` finds that discovery lists every kind that it should, or `wait` is over. All waits
/// for discovery are here. `look` continues with the kind that discovery should list, and does not yet.
async fn repeat_discovery_until_settled<T>(
    server: &ApiServer,
    discovery: &mut Discovery,
    wait: &KindWait<'_>,
    look: impl AsyncFn(&mut Discovery) -> Result<ControlFlow<T, AwaitedKind>, Error>,
) -> Result<T, Error> {
    loop {
        match look(discovery).await? {
            ControlFlow::Break(found) => return Ok(found),
            ControlFlow::Continue(awaited) => wait.pause_or_time_out(awaited).await?,
        }
        discover_again(server, discovery).await?;
    }
}

/// Determines the state of kinds that are missing from discovery; `find_missing` returns them. Repeats discovery, then
/// reads definitions and APIServices, and waits for kinds that the server should serve. Sends nothing if no kind is
/// missing.
///
/// Afterwards, `discovery` holds the states of kinds that are still missing (`Discovery::judgement_on_missing_kind`).
///
/// # Errors
///
/// A kind that is still not served when the wait is over, or evidence that could not be read.
pub async fn await_or_judge_missing_kinds(
    server: &ApiServer,
    discovery: &mut Discovery,
    find_missing: impl Fn(&Discovery) -> BTreeSet<GroupKind>,
    wait: &KindWait<'_>,
) -> Result<(), Error> {
    if find_missing(discovery).is_empty() {
        return Ok(());
    }
    discover_again(server, discovery).await?;
    repeat_discovery_until_settled(server, discovery, wait, async |discovery| {
        let kinds = find_missing(discovery);
        let Some(first) = kinds.first() else {
            return Ok(ControlFlow::Break(()));
        };
        let evidence = read_evidence_of_kinds(server, discovery, &kinds)
            .await
            .map_err(|error| unread_evidence_error(first, &error))?;
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
        Ok(awaited.map_or(ControlFlow::Break(()), ControlFlow::Continue))
    })
    .await
}

/// Waits until the server serves each kind that `find_missing` returns and that a definition in the cluster defines.
/// For the other kinds it does not wait: the manifests may contain their definitions. Nor does it wait if the user may
/// not read definitions.
///
/// # Errors
///
/// As [`await_or_judge_missing_kinds`].
pub(super) async fn await_kinds_defined_by_crds(
    server: &ApiServer,
    discovery: &mut Discovery,
    find_missing: impl Fn(&Discovery) -> BTreeSet<GroupKind>,
    wait: &KindWait<'_>,
) -> Result<(), Error> {
    repeat_discovery_until_settled(server, discovery, wait, async |discovery| {
        let kinds = find_missing(discovery);
        let definitions =
            read_crds_of_kinds(server, &kinds, |name| !discovery.has_resource_of_definition(name)).await?;
        let awaited = definitions
            .iter()
            .find(|definition| definition.is_served())
            .map(AwaitedKind::from_definition);
        Ok(awaited.map_or(ControlFlow::Break(()), ControlFlow::Continue))
    })
    .await
}

/// Reads the definitions of these kinds, except those whose names `is_relevant` excludes; none if the user may not read
/// definitions. Sends nothing if there are no kinds.
async fn read_crds_of_kinds(
    server: &ApiServer,
    kinds: &BTreeSet<GroupKind>,
    is_relevant: impl Fn(&str) -> bool,
) -> Result<Vec<Definition>, Error> {
    let Some(first) = kinds.first() else {
        return Ok(Vec::new());
    };
    let mut definitions = read_relevant_crds(server, |name| may_crd_define(name, kinds) && is_relevant(name))
        .await
        .map_err(|error| unread_evidence_error(first, &error))?
        .unwrap_or_default();
    definitions.retain(|definition| kinds.contains(&definition.kind));
    Ok(definitions)
}

/// Finds the kinds among these that a definition keeps from being served, each with the reason. Leaves out kinds whose
/// definitions name no reason, and all kinds if the user may not read definitions.
///
/// # Errors
///
/// Definitions could not be read, for another reason than permissions.
pub(super) async fn find_kinds_not_served_by_crds(
    server: &ApiServer,
    kinds: &BTreeSet<GroupKind>,
) -> Result<BTreeMap<GroupKind, MissingKind>, Error> {
    let definitions = read_crds_of_kinds(server, kinds, |_| true).await?.into_iter();
    let states = definitions.map(|definition| (definition.kind.clone(), definition.judge_missing_kind()));
    Ok(states
        .filter(|(_, state)| matches!(state, MissingKind::Kept(_)))
        .collect())
}

/// The error about a kind, or a phrase for all kinds, whose definitions or APIServices could not be read.
fn unread_evidence_error(kind: &impl Display, error: &ListError) -> Error {
    Error::for_undiscoverable_kind(format!(
        "kind {kind}: cannot determine whether the server has it: {error}"
    ))
}

/// The kinds whose objects a search of all kinds misses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HiddenKinds {
    /// Describes the kinds that are unknown because the user lacks a permission; `None` if the user has it.
    pub(super) without_permission: Option<String>,
    /// The names of CRDs that serve no version now, although objects of their kinds may be stored, and the APIs that do
    /// not answer.
    pub unserved: Vec<String>,
}

impl HiddenKinds {
    /// Returns all names of hidden kinds, whatever hides them.
    pub fn names(&self) -> Vec<String> {
        let permission = self.without_permission.iter();
        permission.chain(&self.unserved).cloned().collect()
    }
}

/// Waits until discovery lists every kind that is defined and served and every aggregated API, so
/// that a search of all kinds misses none. Returns the kinds that stay hidden from the search.
///
/// # Errors
///
/// As [`await_or_judge_missing_kinds`].
pub(super) async fn await_all_kinds(
    server: &ApiServer,
    discovery: &mut Discovery,
    wait: &KindWait<'_>,
) -> Result<HiddenKinds, Error> {
    repeat_discovery_until_settled(server, discovery, wait, async |discovery| {
        let Evidence {
            definitions,
            aggregated,
        } = read_evidence(server, discovery, |name| {
            !discovery.has_resource_of_definition(name)
        })
        .await
        .map_err(|error| unread_evidence_error(&"of every CustomResourceDefinition", &error))?;
        let forbidden = definitions.as_ref().err().or(aggregated.as_ref().err());
        let without_permission =
            forbidden.map(|Forbidden(permission)| format!("kinds that need permission to {permission}"));
        let definitions = definitions.unwrap_or_default();
        let aggregated = aggregated.unwrap_or_default();
        let served = definitions.iter().filter(|definition| definition.is_served());
        let silent = aggregated
            .iter()
            .filter(|api| !api.is_known_to_discovery(discovery));
        let mut expected = served
            .map(AwaitedKind::from_definition)
            .chain(silent.map(AwaitedKind::from_api));
        if let Some(awaited) = expected.next() {
            return Ok(ControlFlow::Continue(awaited));
        }
        let hiding = definitions.into_iter().filter(Definition::hides_objects);
        let failures = discovery.failures().iter().map(ToString::to_string);
        Ok(ControlFlow::Break(HiddenKinds {
            without_permission,
            unserved: hiding.map(|definition| definition.name).chain(failures).collect(),
        }))
    })
    .await
}

impl AwaitedKind {
    fn from_api(api: &AggregatedApi) -> Self {
        Self {
            kind: format!("of {}", api.group),
            expected: ReasonToExpectKind::Aggregated(api.name.clone()),
        }
    }

    fn from_definition(definition: &Definition) -> Self {
        Self {
            kind: definition.kind.to_string(),
            expected: definition.reason_to_expect_kind(),
        }
    }
}

/// Determines the state of one kind that discovery does not list, without waiting.
pub(super) async fn determine_missing_kind(
    server: &ApiServer,
    discovery: &Discovery,
    kind: &GroupKind,
) -> Result<MissingKind, ListError> {
    let evidence = read_evidence_of_kinds(server, discovery, &BTreeSet::from([kind.clone()])).await?;
    Ok(judge_missing_kind(kind, &evidence, discovery))
}

/// Replaces `discovery` by a fresh one, and adds the kinds again that the manifests will define.
async fn discover_again(server: &ApiServer, discovery: &mut Discovery) -> Result<(), Error> {
    *discovery = discovery::fetch(server).await?.with_not_yet_served_of(discovery);
    Ok(())
}

/// Reads the definitions of these kinds that discovery does not list, and all aggregated APIs.
///
/// If a definition was deleted and created again for another kind, discovery may still list its former kind. So it is
/// the kind that counts, and not the resource.
async fn read_evidence_of_kinds(
    server: &ApiServer,
    discovery: &Discovery,
    kinds: &BTreeSet<GroupKind>,
) -> Result<Evidence, ListError> {
    let mut evidence = read_evidence(server, discovery, |name| may_crd_define(name, kinds)).await?;
    if let Ok(definitions) = &mut evidence.definitions {
        definitions.retain(|definition| !discovery.serves(&definition.kind));
    }
    Ok(evidence)
}

/// Reads the definitions with relevant names, and all aggregated APIs.
async fn read_evidence(
    server: &ApiServer,
    discovery: &Discovery,
    is_relevant: impl Fn(&str) -> bool,
) -> Result<Evidence, ListError> {
    let definitions = read_relevant_crds(server, is_relevant);
    let (definitions, aggregated) = tokio::try_join!(definitions, list_aggregated_apis(server, discovery))?;
    Ok(Evidence {
        definitions,
        aggregated,
    })
}

/// Returns whether a definition of this name may define one of the kinds. A recorded kind may name its version too
/// (`Widget.v1.example.com`), which is then the beginning of `kind.group`.
fn may_crd_define(name: &str, kinds: &BTreeSet<GroupKind>) -> bool {
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
