//! Predicts what a run does after its applies: it removes owner references, and deletes objects.

use std::collections::HashMap;

use super::Prediction;
use super::answer::is_denial_by_admission;
use crate::cluster::apiserver::ApiError;
use crate::event::{Action, ObjectOutcome, Subject};
use crate::execute::deletion::delete::{CANNOT_BE_DELETED, delete_request};
use crate::execute::deletion::prune::NOT_PRUNED_AFTER_FAILURE;
use crate::execute::deletion::remove_owner_references::{OWNERS_REMOVED, without_owners};
use crate::execute::reread::GONE_ALREADY;
use crate::execute::schedule::drive::Driver;
use crate::execute::{Execution, Sink};
use crate::model::live::Live;
use crate::model::write_settings::DryRun;
use crate::plan::{Dependent, Detachment};
use crate::read;

/// The deletions of a run, and the objects from which the run removes owner references before.
pub(super) struct Deletions<'a> {
    pub(super) execution: &'a Execution<'a>,
    /// The time of each prune in words, by UID; `None` if the run deletes nothing, because something fails.
    pub(super) times: Option<HashMap<&'a str, String>>,
    /// The applied objects that lose owner references, with their predictions so far.
    pub(super) applied: Vec<(Prediction, &'a Detachment)>,
    /// The other objects that lose owner references, with their outcomes so far.
    pub(super) not_applied: Vec<(ObjectOutcome, &'a Detachment)>,
}

impl Deletions<'_> {
    /// Predicts the objects that lose owner references, and the deletions. Passes each prediction to `on_prediction`.
    pub(super) async fn predict(
        self,
        driver: &mut Driver<'_>,
        on_prediction: &mut dyn FnMut(Prediction, &mut Sink<'_>),
        sink: &mut Sink<'_>,
    ) {
        let Self {
            execution,
            times,
            applied,
            not_applied,
        } = self;
        let Some(times) = times else {
            for (prediction, _) in applied {
                on_prediction(prediction, sink);
            }
            for (outcome, _) in not_applied {
                on_prediction(Prediction::from_outcome(outcome), sink);
            }
            for live in execution.plan.all_prunes() {
                on_prediction(predict_not_pruned(live), sink);
            }
            return;
        };
        for (prediction, detachment) in applied {
            on_prediction(prediction.with_owner_references_removed(detachment), sink);
        }
        let items = not_applied
            .into_iter()
            .map(|(outcome, detachment)| (&detachment.dependent.key, (outcome, detachment)));
        let predict = async |(outcome, detachment): &(ObjectOutcome, &Detachment)| {
            execution
                .predict_removal_of_owner_references(outcome.clone(), detachment)
                .await
        };
        driver
            .run_independent(items, &mut *on_prediction, sink, predict)
            .await;
        let prunes = execution.plan.all_prunes();
        execution
            .predict_deletions(prunes, Action::Pruned, &times, driver, on_prediction, sink)
            .await;
    }
}

impl Execution<'_> {
    /// Predicts an object from which a run only removes owner references.
    async fn predict_removal_of_owner_references(
        &self,
        outcome: ObjectOutcome,
        detachment: &Detachment,
    ) -> Prediction {
        let Dependent { key, resource, .. } = &detachment.dependent;
        match read::read_object(self.server, resource, key).await {
            Ok(live) => Prediction {
                predicted: live.clone(),
                live,
                ..Prediction::from_outcome(outcome)
            }
            .with_owner_references_removed(detachment),
            Err(error) => self.unread_prediction(outcome.subject, &error),
        }
    }

    /// Predicts the deletion of these objects, and passes each prediction to `on_prediction`. The outcome is `action`,
    /// with the time of the deletion in words as its reason; `times` has these by UID.
    pub(in crate::execute) async fn predict_deletions<'l>(
        &self,
        objects: impl Iterator<Item = &'l Live>,
        action: Action,
        times: &HashMap<&str, String>,
        driver: &mut Driver<'_>,
        on_prediction: &mut dyn FnMut(Prediction, &mut Sink<'_>),
        sink: &mut Sink<'_>,
    ) {
        let items = objects.map(|live| (&live.key, live));
        driver
            .run_independent(items, on_prediction, sink, async |live| {
                let time = times.get(&*live.uid).cloned().unwrap_or_default();
                let outcome = ObjectOutcome::new_with_reason(Subject::from_live(live), action, time);
                self.predict_deletion(live, outcome).await
            })
            .await;
    }

    /// Predicts the deletion of an object, with this outcome unless the deletion would be denied.
    async fn predict_deletion(&self, live: &Live, outcome: ObjectOutcome) -> Prediction {
        match read::read_object(self.server, &live.resource, &live.key).await {
            Ok(None) => Prediction::from_outcome(ObjectOutcome {
                reason: GONE_ALREADY.to_owned(),
                ..outcome
            }),
            Ok(found) => {
                if let Some(error) = self.find_denial_of_deletion(live).await {
                    let error = error
                        .kind
                        .to_object_message()
                        .with_words_before_text_and_group(CANNOT_BE_DELETED);
                    return Prediction {
                        predicted: found.clone(),
                        live: found,
                        ..Prediction::failed(Subject::from_live(live), error)
                    };
                }
                Prediction {
                    live: found,
                    ..Prediction::from_outcome(outcome)
                }
            }
            Err(error) => self.unread_prediction(Subject::from_live(live), &error),
        }
    }

    /// Sends a dry run of the deletion, and returns the error if admission denies it. Nothing is sent by a
    /// client dry run, or to an API that may ignore `dryRun`, since it would delete the object.
    pub(super) async fn find_denial_of_deletion(&self, live: &Live) -> Option<ApiError> {
        if self.writing.dry_run == DryRun::Client
            || !self.server.is_known_to_honor_dry_run(&live.resource).await
        {
            return None;
        }
        let request = delete_request(live, DryRun::Server);
        let error = self.server.send(request).await.err()?;
        is_denial_by_admission(&error).then_some(error)
    }
}

/// Predicts an object that a run does not prune, because something else fails.
fn predict_not_pruned(live: &Live) -> Prediction {
    let outcome = ObjectOutcome::new_with_reason(
        Subject::from_live(live),
        Action::Skipped,
        NOT_PRUNED_AFTER_FAILURE,
    );
    Prediction::from_outcome(outcome)
}

impl Prediction {
    /// Returns this prediction, changed as if the run also removed owner references from the object.
    fn with_owner_references_removed(mut self, detachment: &Detachment) -> Self {
        let Some(predicted) = self.predicted.take() else {
            return self;
        };
        let detached = without_owners(&predicted, detachment);
        if detached != predicted && self.outcome.action == Action::Unchanged {
            self.outcome.action = Action::Configured;
            OWNERS_REMOVED.clone_into(&mut self.outcome.reason);
        }
        self.predicted = Some(detached);
        self
    }
}
