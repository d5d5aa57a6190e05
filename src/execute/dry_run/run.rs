//! Carries out `apply --dry-run`: predicts the run and reports the predictions, without writing.

use std::collections::HashSet;
use std::sync::Arc;

use super::{ParentPrediction, Prediction};
use crate::event::{Action, Ending, Event, Phase};
use crate::execute::deletion::remove_owner_references::warn_of_detached_objects;
use crate::execute::{Execution, Sink};
use crate::manifest::desired::DesiredObject;
use crate::model::identity::ObjectKey;
use crate::model::resource::Resource;
use crate::plan::is_not_yet_served;

impl Execution<'_> {
    /// Reports what a run would do. With `--dry-run=server`, sends dry runs to the server.
    pub async fn dry_run(&self, sink: &mut Sink<'_>) -> Ending {
        sink(Event::Phase {
            phase: Phase::Applying,
            total: self.plan.count_applies(),
        });
        if self.parent().is_none() {
            sink(Event::Parent(self.set.parent.clone(), Action::Created));
        }
        for time in self.plan.describe_applies_after_dependencies(self.desired) {
            sink(Event::Note(time));
        }
        if let Some(note) = self.note_on_recreatable_objects() {
            sink(Event::Note(note));
        }
        let parent = self.predict_parent_or_error().await;
        let error = parent.as_ref().and_then(|parent| parent.error.clone());
        let mut has_failure = error.is_some();
        if let Some(error) = error {
            sink(Event::general_failure(
                error.with_subject_prefix("the set's parent: "),
            ));
        }
        let mut on_prediction = |prediction: Prediction, sink: &mut Sink<'_>| {
            has_failure |= prediction.report_and_check_failure(sink);
        };
        let ending = self
            .predict_run(parent.as_ref(), |_| false, &mut on_prediction, sink)
            .await;
        self.warn_if_pruning_is_disabled(sink);
        if !has_failure {
            let judge = self.deletion_judge(&self.plan.dependents, HashSet::new());
            let detachments = self.plan.dependents.detachments.iter();
            let allowed = detachments.filter(|detachment| judge.may_detach(detachment));
            warn_of_detached_objects(allowed, &judge, self.writing.dry_run, sink);
        }
        match ending {
            Ending::Done if has_failure => Ending::Incomplete,
            ending => ending,
        }
    }

    /// Predicts the parent. A failure counts as an error of the parent.
    async fn predict_parent_or_error(&self) -> Option<ParentPrediction> {
        self.predict_parent().await.unwrap_or_else(|error| {
            Some(ParentPrediction {
                error: Some(error.kind.to_object_message()),
                ..ParentPrediction::default()
            })
        })
    }

    /// Returns whether no dry run of this object can be sent: its kind, its version or its namespace does not exist
    /// until the run has written other members, or a value of the object is not known.
    pub fn must_not_be_sent_yet(&self, object: &DesiredObject) -> bool {
        is_not_yet_served(object) || self.lacks_namespace_of(&object.key) || self.has_unknown_value(object)
    }

    /// Returns the resource through which the object can be read now; `None` if the object cannot exist yet.
    pub fn readable_through<'o>(&'o self, object: &'o DesiredObject) -> Option<&'o Arc<Resource>> {
        if self.lacks_namespace_of(&object.key) {
            return None;
        }
        object.resource_to_read(&self.state.places.resources)
    }

    /// Returns whether a value of the object is not known (a saved plan does not hold it), so that it must not be sent.
    pub(super) fn has_unknown_value(&self, object: &DesiredObject) -> bool {
        self.desired.incomplete.contains(&object.key)
    }

    /// Returns whether the namespace of this object did not exist when the run was planned.
    pub fn lacks_namespace_of(&self, key: &ObjectKey) -> bool {
        let namespace = key.namespace.as_ref();
        namespace.is_some_and(|namespace| !self.state.namespaces.contains_key(namespace))
    }
}

impl Prediction {
    /// Reports the prediction as the outcome of its object, and returns whether the object would fail.
    pub(in crate::execute) fn report_and_check_failure(self, sink: &mut Sink<'_>) -> bool {
        let Self {
            outcome, warnings, ..
        } = self;
        for text in warnings {
            let key = outcome.subject.key();
            let object = match &outcome.source {
                Some(position) => format!("{position}: {key}"),
                None => key.to_string(),
            };
            sink(Event::WarningOfObject { object, text });
        }
        let is_failure = outcome.action == Action::Failed;
        sink(Event::Object(outcome));
        is_failure
    }
}
