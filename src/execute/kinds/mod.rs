//! The kinds that a run defines or redefines by CRDs, as far as objects of these kinds have to wait for
//! the server.
//!
//! A new kind is waited for once, between the wave of its definition and that of its objects,
//! and all of them no longer than `PATIENCE`. `schema_change` has the rules for objects of a kind whose
//! definition changed.

pub(crate) mod establish;
pub(crate) mod schema_change;

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use http::StatusCode;
use tokio::time::Instant;

use crate::cluster::apiserver::{ApiError, Reply};
use crate::event::{Action, Event, NotDone, ObjectOutcome};
use crate::execute::kinds::establish::{NotServed, PATIENCE, await_served, pause, reporting};
use crate::execute::kinds::schema_change::Redefined;
use crate::execute::members::apply_as_read::Expected;
use crate::execute::{Execution, RunState, Sink};
use crate::manifest::desired::DesiredObject;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::resource::Resource;
use crate::plan::{Apply, LiveMembership, defined_kind, is_not_yet_served};

/// The kinds of a run that are not served yet or change.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    /// End of the wait for new kinds; set by the first wait.
    deadline: Option<Instant>,
    /// New resources that were waited for, and why objects of some cannot be written.
    awaited: BTreeMap<KindVersion, Option<&'static str>>,
    /// CRDs that could not be applied.
    undefined: BTreeSet<GroupKind>,
    /// Kinds whose definition this run has changed.
    pub(crate) redefined: BTreeMap<GroupKind, Redefined>,
}

/// A kind in one version.
type KindVersion = (GroupKind, String);

const UNDEFINED: &str = "its CustomResourceDefinition was not applied";
const NOT_SERVED: &str = "its kind is not served";

impl Kinds {
    /// Records the outcome of a definition that was `former` before.
    pub(crate) fn note(&mut self, kind: GroupKind, outcome: &ObjectOutcome, former: Option<Redefined>) {
        match outcome.action {
            Action::Failed => {
                self.undefined.insert(kind);
            }
            Action::Configured => self.redefined.extend(former.map(|former| (kind, former))),
            _ => {}
        }
    }

    /// Whether an apply that was answered with this error came before the server serves the
    /// path, and may be sent again.
    fn is_early(&self, object: &DesiredObject, error: &ApiError) -> bool {
        is_not_yet_served(object)
            && error.is(StatusCode::NOT_FOUND)
            && !error.is_missing_object()
            && self.deadline.is_some_and(|deadline| Instant::now() < deadline)
    }
}

fn id(resource: &Resource) -> KindVersion {
    (resource.group_kind(), resource.version.clone())
}

impl RunState<'_> {
    /// Reports those of these objects whose kind is not going to be served.
    fn report_unserved(&mut self, promised: Vec<&DesiredObject>, sink: &mut Sink<'_>) {
        let mut unserved: BTreeMap<&'static str, Vec<ObjectKey>> = BTreeMap::new();
        for object in promised {
            if let Some(Some(reason)) = self.kinds.awaited.get(&id(&object.resource)) {
                unserved.entry(reason).or_default().push(object.key.clone());
            }
        }
        for (reason, keys) in unserved {
            self.applied.failed += keys.len();
            for key in &keys {
                self.applied.dependencies.skip(key.clone());
            }
            sink(NotDone::some(keys, reason));
        }
    }
}

impl Execution<'_> {
    /// Waits for the new kinds among the objects of a wave, and returns those objects that can
    /// be written. The others are skipped, and make the run fail.
    pub(crate) async fn await_kinds<'w>(
        &self,
        wave: Vec<&'w Apply>,
        run_state: &mut RunState<'_>,
        sink: &mut Sink<'_>,
    ) -> Vec<&'w Apply> {
        let promised: Vec<&DesiredObject> = wave
            .iter()
            .map(|apply| &self.desired.members[apply.index])
            .filter(|object| is_not_yet_served(object))
            .collect();
        if promised.is_empty() {
            return wave;
        }
        let kinds = &mut run_state.kinds;
        let mut new: BTreeMap<KindVersion, &DesiredObject> = BTreeMap::new();
        for object in &promised {
            let id = id(&object.resource);
            if kinds.undefined.contains(&id.0) {
                kinds.awaited.insert(id, Some(UNDEFINED));
            } else if !kinds.awaited.contains_key(&id) {
                new.entry(id).or_insert(*object);
            }
        }
        if !new.is_empty() {
            // A definition may have been applied late: each step has the whole time.
            kinds.deadline = None;
        }
        let deadline = *kinds.deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
        let waited = reporting(&promised[0].key, self.interrupt, sink, async |unserved| {
            let waits = new.into_iter().map(async |(id, object)| {
                let (resource, namespace) = (&object.resource, object.key.namespace.as_deref());
                let served = await_served(
                    self.server,
                    self.interrupt,
                    resource,
                    namespace,
                    deadline,
                    unserved,
                );
                (id, served.await)
            });
            join_all(waits).await
        });
        for (id, served) in Box::pin(waited).await {
            let reason = match served {
                Ok(()) => None,
                // No write of the wave has started.
                Err(NotServed::Interrupted) => continue,
                Err(NotServed::Because(reason)) => {
                    sink(Event::failure(reason));
                    Some(NOT_SERVED)
                }
            };
            kinds.awaited.insert(id, reason);
        }
        run_state.report_unserved(promised, sink);
        let kinds = &run_state.kinds;
        let can_be_written = |apply: &&Apply| {
            let object = &self.desired.members[apply.index];
            !matches!(kinds.awaited.get(&id(&object.resource)), Some(Some(_)))
        };
        wave.into_iter().filter(can_be_written).collect()
    }

    /// Applies a member, and again while the server does not serve its kind yet, or not as its
    /// new definition has it.
    pub(crate) async fn apply_in_time(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        mut expected: &Expected,
        kinds: &Kinds,
    ) -> Result<Reply, ApiError> {
        let redefined = kinds.redefined.get(&object.key.group_kind);
        let mut is_made = false;
        loop {
            let mut answer = self.apply_and_migrate(object, live_membership, expected).await;
            if let Ok(reply) = &mut answer {
                // The object exists from now on.
                expected = &Expected::Any;
                // The first answer shows whether it existed before.
                is_made |= reply.status == StatusCode::CREATED;
                if is_made {
                    reply.status = StatusCode::CREATED;
                }
            }
            let is_early = match (&answer, redefined) {
                (Err(error), _) if kinds.is_early(object, error) => true,
                (answer, Some(redefined)) => {
                    redefined.is_early(object, answer, &self.writing.field_manager)
                        && self.has_other_spec(object, redefined).await
                }
                _ => false,
            };
            if !is_early || self.interrupt.is_requested() {
                return answer;
            }
            pause(self.interrupt).await;
        }
    }

    /// The kinds that are defined by definitions of this wave, each with its place in the wave.
    pub(crate) fn kinds_defined_by(&self, wave: &[&Apply]) -> BTreeMap<ObjectKey, GroupKind> {
        let objects = wave.iter().map(|apply| &self.desired.members[apply.index]);
        objects
            .filter_map(|object| Some((object.key.clone(), defined_kind(object)?)))
            .collect()
    }
}
