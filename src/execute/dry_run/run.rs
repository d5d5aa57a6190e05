//! Carries out `apply --dry-run`: predicts the run, with its parent, and reports the predictions, without writing.

use super::answer::{is_inconclusive, parse_object};
use super::{ParentPrediction, Prediction, PreviewAfterFailure};
use crate::cluster::apiserver::ApiError;
use crate::event::{Action, Ending, Event, NotDone, ObjectOutcome, Phase, Sink};
use crate::execute::Execution;
use crate::execute::members::message_of_rejected_manifest;
use crate::model::write_settings::DryRun;
use crate::plan::is_not_yet_served;
use crate::read;

impl Execution<'_> {
    /// Reports what a run would do. With `--dry-run=server`, sends dry runs to the server.
    pub async fn dry_run(&self, sink: &mut Sink<'_>) -> Ending {
        sink(Event::Phase {
            phase: Phase::Applying,
            total: self.plan.count_applies(),
        });
        for time in self.plan.describe_applies_after_dependencies(self.desired) {
            sink(Event::Note(time));
        }
        if let Some(note) = self.note_on_recreatable_objects() {
            sink(Event::Note(note));
        }
        if let Some(parent) = self.parent() {
            let now = self.server.now();
            let value = self.writing.expiry.value_to_write(&parent.annotations, now);
            self.parent_writing()
                .report_change_of_expiry(Some(parent), value.as_deref(), sink);
        }
        let parent = self.predict_parent_or_error().await;
        if let Some(error) = parent.as_ref().and_then(|parent| parent.error.clone()) {
            sink(Event::general_failure(
                error.with_subject_prefix("the set's parent: "),
            ));
        } else if self.parent().is_none() {
            sink(Event::Parent(self.set.parent.clone(), Action::Created));
        }
        let after_failure = PreviewAfterFailure::AsInRun(parent.as_ref());
        let ending = self
            .predict_objects(after_failure, |_| false, &mut Prediction::report, sink)
            .await;
        self.warn_if_pruning_is_disabled(sink);
        if ending != Ending::Incomplete {
            self.warn_of_predicted_detachments(sink);
        }
        ending
    }

    /// Predicts the parent by a dry run of its manifest; `None` if it has no manifest.
    pub async fn predict_parent(&self) -> Result<Option<ParentPrediction>, ApiError> {
        let Some(manifest) = &self.desired.parent else {
            return Ok(None);
        };
        if is_not_yet_served(manifest) || self.lacks_namespace_of(&manifest.key) {
            return Ok(Some(ParentPrediction::default()));
        }
        let mut live = read::read_object(self.server, &manifest.resource, &manifest.key).await?;
        if self.writing.dry_run == DryRun::Client || self.has_unknown_value(manifest) {
            return Ok(Some(self.predict_parent_from_live(manifest, live).await));
        }
        let parent = self.parent_writing();
        let dry_run = async || parent.dry_run_manifest(manifest).await;
        Ok(Some(
            match self
                .dry_run_until_live_matches(&mut live, manifest, dry_run)
                .await
            {
                Ok(reply) => ParentPrediction {
                    live,
                    predicted: parse_object(&reply),
                    error: None,
                },
                Err(error) if is_inconclusive(&error) => return Err(error),
                Err(error) => ParentPrediction {
                    predicted: live.clone(),
                    live,
                    error: Some(message_of_rejected_manifest::rejection_message(&error, manifest)),
                },
            },
        ))
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
}

impl Prediction {
    /// Reports the prediction as the outcome of its object. An object that is not applied because another one fails is
    /// reported as in a run: the error names it already.
    pub(in crate::execute) fn report(self, sink: &mut Sink<'_>) {
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
        sink(match outcome {
            ObjectOutcome {
                action: Action::Skipped,
                source: Some(_),
                ..
            } => NotDone::event_for_objects(vec![outcome.subject.key()], outcome.reason),
            _ => Event::Object(outcome),
        });
    }
}
