//! Predicts what a run does once everything is applied: it removes owner references, and prunes.

use std::collections::HashMap;

use super::answer::is_of_admission;
use super::{Prediction, failed, of_outcome, subject, unpredicted};
use crate::cluster::apiserver::ApiError;
use crate::event::{Action, ObjectOutcome};
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

/// The deletions of a run, and what is detached for them.
pub(super) struct Deletions<'a> {
    pub(super) execution: &'a Execution<'a>,
    /// The times of the prunes, by UID; `None` if something fails, and nothing is deleted.
    pub(super) times: Option<HashMap<&'a str, String>>,
    /// Predictions of applied objects that lose owner references.
    pub(super) attached: Vec<(Prediction, &'a Detachment)>,
    /// Outcomes of other objects that do.
    pub(super) detached: Vec<(ObjectOutcome, &'a Detachment)>,
}

impl Deletions<'_> {
    pub(super) async fn predict(
        self,
        driver: &mut Driver<'_>,
        predicted: &mut dyn FnMut(Prediction, &mut Sink<'_>),
        sink: &mut Sink<'_>,
    ) {
        let Self {
            execution,
            times,
            attached,
            detached,
        } = self;
        let Some(times) = times else {
            let applied = attached.into_iter().map(|(prediction, _)| prediction);
            let released = detached.into_iter().map(|(outcome, _)| of_outcome(outcome));
            let prunes = execution.plan.all_prunes().map(unpruned);
            let predictions = applied.chain(released).chain(prunes);
            predictions.for_each(|prediction| predicted(prediction, sink));
            return;
        };
        for (prediction, detachment) in attached {
            predicted(prediction.detached(detachment), sink);
        }
        let items = detached.into_iter().map(|item| (&item.1.dependent.key, item));
        let reading = driver.run_independent(items, &mut *predicted, sink, async |(outcome, detachment)| {
            execution.predict_detached(outcome.clone(), detachment).await
        });
        reading.await;
        let prunes = execution.plan.all_prunes();
        execution
            .predict_deletions(prunes, Action::Pruned, &times, driver, predicted, sink)
            .await;
    }
}

impl Execution<'_> {
    /// Predicts an object that a run only detaches from its owners.
    async fn predict_detached(&self, mut outcome: ObjectOutcome, detachment: &Detachment) -> Prediction {
        if self.writing.dry_run == DryRun::Client {
            if outcome.action == Action::Unchanged {
                outcome.action = Action::Configured;
                OWNERS_REMOVED.clone_into(&mut outcome.reason);
            }
            return of_outcome(outcome);
        }
        let Dependent { key, resource, .. } = &detachment.dependent;
        match read::object(self.server, resource, key).await {
            Ok(live) => Prediction {
                predicted: live.clone(),
                live,
                ..of_outcome(outcome)
            }
            .detached(detachment),
            Err(error) => unpredicted(outcome.subject, &error),
        }
    }

    /// Predicts the deletion of these objects, which is called `action`, at one of these times, by UID.
    pub(in crate::execute) async fn predict_deletions<'l>(
        &self,
        objects: impl Iterator<Item = &'l Live>,
        action: Action,
        times: &HashMap<&str, String>,
        driver: &mut Driver<'_>,
        predicted: &mut dyn FnMut(Prediction, &mut Sink<'_>),
        sink: &mut Sink<'_>,
    ) {
        let items = objects.map(|live| (&live.key, live));
        let predicting = driver.run_independent(items, predicted, sink, async |live| {
            let time = times.get(&*live.uid).cloned().unwrap_or_default();
            let outcome = ObjectOutcome::with_reason(subject(live), action, time);
            self.predict_deletion(live, outcome).await
        });
        predicting.await;
    }

    /// Reads an object that is deleted with this outcome, and asks whether that would be denied.
    async fn predict_deletion(&self, live: &Live, outcome: ObjectOutcome) -> Prediction {
        if self.writing.dry_run == DryRun::Client {
            return of_outcome(outcome);
        }
        match read::object(self.server, &live.resource, &live.key).await {
            Ok(None) => of_outcome(ObjectOutcome {
                reason: GONE_ALREADY.to_owned(),
                ..outcome
            }),
            Ok(found) => {
                if let Some(error) = self.denial_of_deletion(live).await {
                    let error = error.kind.of_object().after_words(CANNOT_BE_DELETED);
                    return Prediction {
                        predicted: found.clone(),
                        live: found,
                        ..failed(subject(live), error)
                    };
                }
                Prediction {
                    live: found,
                    ..of_outcome(outcome)
                }
            }
            Err(error) => unpredicted(subject(live), &error),
        }
    }
}

impl Execution<'_> {
    /// Returns the error if admission denies the deletion. An API that may ignore `dryRun` is not asked.
    pub(super) async fn denial_of_deletion(&self, live: &Live) -> Option<ApiError> {
        if !self.server.is_known_to_honor_dry_run(&live.resource).await {
            return None;
        }
        let request = delete_request(live, DryRun::Server);
        let error = self.server.send(request).await.err()?;
        is_of_admission(&error).then_some(error)
    }
}

fn unpruned(live: &Live) -> Prediction {
    let outcome = ObjectOutcome::with_reason(subject(live), Action::Skipped, NOT_PRUNED_AFTER_FAILURE);
    of_outcome(outcome)
}

impl Prediction {
    /// Returns the same prediction, if the run also removes owner references from the object.
    fn detached(mut self, detachment: &Detachment) -> Self {
        let Some(predicted) = self.predicted.take() else {
            return self;
        };
        let without = without_owners(&predicted, detachment);
        if without != predicted && self.outcome.action == Action::Unchanged {
            self.outcome.action = Action::Configured;
            OWNERS_REMOVED.clone_into(&mut self.outcome.reason);
        }
        self.predicted = Some(without);
        self
    }
}
