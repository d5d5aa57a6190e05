//! Dry runs: predict a run and report it, without writing.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::StatusCode;

use crate::event::{Action, Ending, Event, NotDone, ObjectOutcome, Phase, Subject};
use crate::execute::deletion::waves::Deleted;
use crate::execute::members::apply::{MemberReply, failed, reply_of, written};
use crate::execute::members::recreate::RECREATED_IF;
use crate::execute::{Execution, RunState, Sink, UNPRUNED};
use crate::manifest::desired::DesiredObject;
use crate::model::resource::Resource;
use crate::model::write_settings::DryRun;
use crate::plan::{LiveMembership, is_not_yet_served};
use crate::read::METADATA;

impl Execution<'_> {
    /// Reports what a run would do, by server dry runs if the user requests them.
    pub(crate) async fn dry_run(&self, sink: &mut Sink<'_>) -> Ending {
        sink(Event::Phase {
            phase: Phase::Applying,
            total: self.plan.applies(),
        });
        if self.parent.is_none() {
            sink(Event::Parent(self.set.parent.clone(), Action::Created));
        }
        let mut run_state = RunState::new(self);
        for time in self.plan.apply_times(self.desired) {
            sink(Event::Note(time));
        }
        if let Some(objects) = self.recreatable() {
            sink(Event::Note(format!("{RECREATED_IF}: {objects}")));
        }
        self.report_unchanged(&mut run_state.applied, sink);
        for wave in self.plan.prerequisites.iter().chain(&self.plan.waves) {
            self.dry_run_step(wave, &mut run_state, sink).await;
        }
        let is_asked =
            |parent: &&DesiredObject| self.writing.dry_run == DryRun::Server && !self.is_out_of_reach(parent);
        if let Some(parent) = self.desired.parent.as_ref().filter(is_asked)
            && let Err(error) = self.parent_writing().dry_run_manifest(parent).await
        {
            run_state.applied.failed += 1;
            sink(Event::failure(format!("the set's parent: {}", error.kind)));
        } else if self.writing.dry_run == DryRun::Server
            && let Some(error) = self.denial_of_parent().await
        {
            run_state.applied.failed += 1;
            sink(Event::failure(error.behind("the set's parent: ")));
        }
        self.report_skips(sink);
        if let Some(ending) = self.stopped(&run_state) {
            run_state.applied.report_held(&BTreeSet::new(), sink);
            if ending == Ending::Incomplete {
                sink(NotDone::all(UNPRUNED));
            }
            return ending;
        }
        match self.predict_prunes(&mut run_state, sink).await {
            _ if self.interrupt.is_requested() => Ending::Interrupted,
            Deleted { failed: 0, .. } => Ending::Done,
            Deleted { .. } => Ending::Incomplete,
        }
    }

    /// Sends dry runs of an apply, and reports the predictions.
    pub(crate) async fn dry_run_member(
        &self,
        object: &DesiredObject,
        subject: Subject,
        live_membership: &LiveMembership,
    ) -> MemberReply {
        let prediction = self.predict_on_server(object, subject, live_membership).await;
        MemberReply {
            warnings: prediction.warnings,
            ..reply_of(prediction.outcome)
        }
    }

    /// Predicts for a client dry run whether a member would be created or configured; no dry run is
    /// sent.
    pub(crate) async fn predict(
        &self,
        object: &DesiredObject,
        mut subject: Subject,
        live_membership: &LiveMembership,
    ) -> MemberReply {
        if matches!(live_membership, LiveMembership::Member { .. }) {
            let outcome = ObjectOutcome::new(subject, Action::Configured);
            return reply_of(outcome);
        }
        let Some(resource) = self.readable_through(object) else {
            return reply_of(ObjectOutcome::new(subject, Action::Created));
        };
        let path = resource.path_of(&object.key);
        match self.server.get(&path, METADATA).await {
            Ok(reply) => {
                subject.uid = written(&reply).ok().map(|written| written.metadata.uid);
                let found = serde_json::from_slice(&reply.body).unwrap_or_default();
                let mut outcome = ObjectOutcome::new(subject, Action::Configured);
                self.mark_if_taken_in(object, live_membership, &found, &found, &mut outcome);
                reply_of(outcome)
            }
            Err(error) if error.is(StatusCode::NOT_FOUND) => {
                reply_of(ObjectOutcome::new(subject, Action::Created))
            }
            Err(error) => failed(subject, error.kind.to_string()),
        }
    }

    /// Returns whether the server cannot validate this object before other members are written: its
    /// kind, its version or its namespace comes with them. An incomplete object must not be sent.
    pub(crate) fn is_out_of_reach(&self, object: &DesiredObject) -> bool {
        is_not_yet_served(object) || self.lacks_namespace_of(object) || self.is_incomplete(object)
    }

    /// Returns the resource through which the object can be read now; `None` if it cannot exist.
    pub(crate) fn readable_through<'o>(&'o self, object: &'o DesiredObject) -> Option<&'o Arc<Resource>> {
        if self.lacks_namespace_of(object) {
            return None;
        }
        object.readable_through(&self.places.resources)
    }

    /// Returns whether a value of the object is not known, so that it must not be sent.
    pub(super) fn is_incomplete(&self, object: &DesiredObject) -> bool {
        self.desired.incomplete.contains(&object.key)
    }

    pub(super) fn lacks_namespace_of(&self, object: &DesiredObject) -> bool {
        let namespace = object.key.namespace.as_ref();
        namespace.is_some_and(|namespace| !self.namespaces.contains_key(namespace))
    }
}
