//! Predicts what a run does after its applies: it removes owner references, and deletes objects.

use std::collections::HashMap;

use super::Prediction;
use super::answer::is_denial_by_admission;
use crate::cluster::apiserver::ApiError;
use crate::event::{Action, ObjectOutcome, Sink, Subject};
use crate::execute::Execution;
use crate::execute::deletion::delete::{CANNOT_BE_DELETED, delete_request, skipped_outcome};
use crate::execute::deletion::prune::NOT_PRUNED_AFTER_FAILURE;
use crate::execute::deletion::remove_owner_references::{OWNERS_REMOVED, without_owners};
use crate::execute::reread::GONE_ALREADY;
use crate::execute::schedule::drive::Driver;
use crate::model::built_in_kinds::is_built_in;
use crate::model::live::Live;
use crate::model::write_settings::DryRun;
use crate::plan::{Dependent, Detachment};
use crate::read;

impl Execution<'_> {
    /// Predicts that objects lose owner references, of which `held` are the predictions so far, and then the prunes.
    /// Passes each prediction to `on_prediction`.
    pub(super) async fn predict_detachments_and_prunes(
        &self,
        held: Vec<(Prediction, &Detachment)>,
        driver: &mut Driver<'_>,
        on_prediction: &mut dyn FnMut(Prediction, &mut Sink<'_>),
        sink: &mut Sink<'_>,
    ) {
        let items = held
            .into_iter()
            .map(|(prediction, detachment)| (&detachment.dependent.key, (prediction, detachment)));
        let predict = async |(prediction, detachment): &(Prediction, &Detachment)| {
            self.predict_detachment(prediction.clone(), detachment).await
        };
        driver
            .run_independent(items, &mut *on_prediction, sink, predict)
            .await;
        let (prunes, times) = (
            self.plan.all_prunes(),
            self.plan.describe_prune_times(self.policy),
        );
        self.predict_deletions(prunes, Action::Pruned, &times, driver, on_prediction, sink)
            .await;
    }

    /// Predicts that an object also loses owner references. An object that the run does not apply is read first.
    async fn predict_detachment(&self, mut prediction: Prediction, detachment: &Detachment) -> Prediction {
        let Dependent { key, resource, .. } = &detachment.dependent;
        if prediction.predicted.is_none() {
            match read::read_object(self.server, resource, key).await {
                Ok(live) => (prediction.predicted, prediction.live) = (live.clone(), live),
                Err(error) => return self.unread_prediction(prediction.outcome.subject, &error),
            }
        }
        if let Some(predicted) = &mut prediction.predicted {
            let detached = without_owners(predicted, detachment);
            if detached != *predicted && prediction.outcome.action == Action::Unchanged {
                prediction.outcome.action = Action::Configured;
                OWNERS_REMOVED.clone_into(&mut prediction.outcome.reason);
            }
            *predicted = detached;
        }
        prediction
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
                    return Prediction::failed_unchanged(Subject::from_live(live), error, found);
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
    /// client dry run, or for a kind that is not built in: an aggregated API may ignore `dryRun`, and would delete the
    /// object.
    pub(super) async fn find_denial_of_deletion(&self, live: &Live) -> Option<ApiError> {
        if self.writing.dry_run == DryRun::Client
            || !is_built_in(&live.resource.api_version(), &live.resource.kind)
        {
            return None;
        }
        let request = delete_request(live, DryRun::Server);
        let error = self.server.send(request).await.err()?;
        is_denial_by_admission(&error).then_some(error)
    }
}

/// Predicts an object that a run does not prune, because something else fails.
pub(super) fn predict_not_pruned(live: &Live) -> Prediction {
    Prediction::from_outcome(skipped_outcome(live, NOT_PRUNED_AFTER_FAILURE))
}
