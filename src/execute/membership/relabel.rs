//! Writes the part-of label of live objects, and nothing else of them.
//!
//! One write takes an object from what it was read as to what it is to be, so that it is
//! never in two sets nor, on its way from one to another, in none. That write is bound to
//! the resourceVersion that was judged; an object that changed meanwhile is judged again.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use crate::cluster::apiserver::{ApiError, ApiServer, Call, Patch};
use crate::event::{Action, ObjectOutcome, Subject};
use crate::execute::concurrency_limit::ConcurrencyLimit;
use crate::execute::reread::{GONE_ALREADY, is_of, reread_as, reread_selected};
use crate::execute::wave::{WaveEvent, each};
use crate::execute::{Interrupt, Sink};
use crate::model::applyset::{ApplySetId, PART_OF_LABEL};
use crate::model::live::{Live, Tracking};
use crate::model::object::apply_body;
use crate::model::settings::{DryRun, WriteSettings};
use crate::plan::{MembershipChange, MembershipKeepReason};
use crate::read::METADATA;

/// How often an object that keeps changing is judged again: controllers write the status of
/// busy objects several times a second.
const JUDGEMENTS: usize = 20;

/// Everything that writing part-of labels needs.
pub(crate) struct Relabelling<'a> {
    pub(crate) server: &'a ApiServer,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) writing: &'a WriteSettings,
    /// What the label is to say; `None` takes it off.
    pub(crate) part_of: Option<&'a ApplySetId>,
    /// What is told of an object whose label was written.
    pub(crate) done: Action,
    /// The labels by which the objects were found, if they were: an object that has changed must
    /// still have them.
    pub(crate) selector: Option<&'a str>,
    /// Judges an object that has changed since it was read, by the same rules as then.
    pub(crate) judge: &'a dyn Fn(&Value, &Live) -> MembershipChange,
}

/// What became of the objects whose labels were to be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Relabelled {
    /// Objects that could not be written.
    pub(crate) failed: usize,
}

impl Relabelling<'_> {
    /// Writes the labels of all these objects, as many at once as the server bears.
    pub(crate) async fn write_all(&self, objects: &[Live], sink: &mut Sink<'_>) -> Relabelled {
        let mut relabelled = Relabelled::default();
        let mut pace = ConcurrencyLimit::new(self.writing.concurrency);
        let write = async |live| self.write(live).await;
        let outcome_event = |news: WaveEvent<ObjectOutcome>| {
            sink(news.counted(|outcome| {
                relabelled.failed += usize::from(outcome.action == Action::Failed);
            }));
        };
        let objects = objects.iter().map(|live| (&live.key, live));
        each(
            self.server,
            self.interrupt,
            objects,
            write,
            &mut pace,
            outcome_event,
        )
        .await;
        relabelled
    }

    async fn write(&self, live: &Live) -> ObjectOutcome {
        let subject = || Subject::new(&live.key, &live.resource, Some(&live.uid));
        let done = || ObjectOutcome::new(subject(), self.done);
        let skipped = |reason: &str| ObjectOutcome::because(subject(), Action::Skipped, reason);
        let gone = || skipped(GONE_ALREADY);
        let failed = |error: String| ObjectOutcome::failed(subject(), error);
        if self.writing.dry_run == DryRun::Client {
            return done();
        }
        let mut current = live.clone();
        for _ in 0..JUDGEMENTS {
            match self.server.send(self.call(&current)).await {
                Ok(reply) if is_of(&reply, &current) => return done(),
                // The answer says nothing of it.
                Ok(_) => {}
                Err(error) if error.is_missing_object() => return gone(),
                Err(error) if error.is(StatusCode::CONFLICT) => {}
                Err(error) => return failed(error.kind.to_string()),
            }
            let object = match self.reread(live).await {
                Ok(Again::Found(object)) => object,
                Ok(Again::Deselected) => return skipped(&changed(&MembershipKeepReason::NotSelected)),
                Ok(Again::Gone) => return gone(),
                Err(error) => return failed(error.kind.to_string()),
            };
            current = match Live::of(&object, &live.resource) {
                Some(fresh) if fresh.uid == live.uid => fresh,
                _ => return gone(),
            };
            match (self.judge)(&object, &current) {
                MembershipChange::Write => {}
                // This write got through and its answer was lost, or another run was faster.
                MembershipChange::Settled => return done(),
                MembershipChange::Leave(reason) => return skipped(&changed(&reason)),
                MembershipChange::OfAnotherSet(id) => {
                    return failed(format!("it has become a member of another set meanwhile, {id}"));
                }
            }
        }
        failed("it kept changing while its label was to be written".to_owned())
    }

    async fn reread(&self, live: &Live) -> Result<Again, ApiError> {
        let (server, key, resource) = (self.server, &live.key, &live.resource);
        if let Some(labels) = self.selector
            && let Some(object) = reread_selected(server, key, resource, labels).await?
        {
            return Ok(Again::Found(object));
        }
        Ok(match reread_as(server, key, resource, METADATA).await? {
            Some(object) if self.selector.is_none() || self.is_settled(&object, live) => Again::Found(object),
            Some(_) => Again::Deselected,
            None => Again::Gone,
        })
    }

    /// A label that this run has written may be among those by which the object was found.
    fn is_settled(&self, object: &Value, live: &Live) -> bool {
        let now = Live::of(object, &live.resource);
        now.is_some_and(|now| (self.judge)(object, &now) == MembershipChange::Settled)
    }

    fn call(&self, live: &Live) -> Call {
        match (self.part_of, live.tracking) {
            (Some(id), Tracking::Off) => self.apply(live, id),
            (Some(_), Tracking::On) | (None, _) => self.patch(live),
        }
    }

    /// Applies the label alone, to an object of which nobody is noted as the owner of
    /// anything: a patch would not be noted either, and the label look copied.
    fn apply(&self, live: &Live, id: &ApplySetId) -> Call {
        let object = json!({
            "apiVersion": live.resource.api_version(),
            "kind": live.resource.kind,
            "metadata": {
                "name": live.key.name,
                "uid": live.uid,
                "resourceVersion": live.resource_version,
                "labels": {PART_OF_LABEL: id.as_str()},
            },
        });
        self.write_call(live, Patch::Apply, &[("force", "true")], apply_body(&object))
    }

    /// A merge patch, which makes `metadata.labels` where there are none, and removes what
    /// is null. A label that several managers own stays when one of them stops applying it,
    /// so server-side apply could not take it off; and an apply of the label alone would
    /// drop every other field that the same manager has applied before.
    fn patch(&self, live: &Live) -> Call {
        let value = self.part_of.map_or(Value::Null, |id| json!(id.as_str()));
        let patch = json!({"metadata": {
            "uid": live.uid,
            "resourceVersion": live.resource_version,
            "labels": {PART_OF_LABEL: value},
        }});
        self.write_call(live, Patch::Merge, &[], Bytes::from(patch.to_string()))
    }

    fn write_call(
        &self,
        live: &Live,
        patch: Patch,
        more: &[(&'static str, &'static str)],
        body: Bytes,
    ) -> Call {
        let path = live.resource.path_of(&live.key);
        let mut parameters = vec![("fieldManager", self.writing.field_manager.as_str())];
        parameters.extend(more);
        parameters.extend(self.writing.dry_run.parameter());
        Call::patch(&path, &parameters, METADATA, patch, body)
    }
}

/// An object that has changed since it was read.
enum Again {
    Found(Value),
    /// It does not have the labels any more by which it was found.
    Deselected,
    Gone,
}

fn changed(reason: &MembershipKeepReason) -> String {
    format!("it changed meanwhile: {reason}")
}
