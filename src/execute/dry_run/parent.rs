//! Predicts the parent.

use super::ParentPrediction;
use super::answer::{is_inconclusive, merged_with_manifest, parse_object};
use crate::cluster::apiserver::ApiError;
use crate::execute::Execution;
use crate::execute::members::message_of_rejected_manifest;
use crate::model::message::Message;
use crate::model::write_settings::DryRun;
use crate::plan::is_not_yet_served;
use crate::read;

impl Execution<'_> {
    /// Predicts the parent, by dry runs of its own manifest and of the write with which the run begins; `None` if the
    /// parent has no manifest and that write is not denied.
    pub async fn predict_parent(&self) -> Result<Option<ParentPrediction>, ApiError> {
        let prediction = self.predict_parent_by_manifest().await?;
        if prediction.as_ref().is_some_and(|parent| parent.error.is_some()) {
            return Ok(prediction);
        }
        Ok(match self.find_admission_denial_of_first_parent_write().await {
            None => prediction,
            error => Some(ParentPrediction {
                error,
                ..prediction.unwrap_or_default()
            }),
        })
    }

    /// Sends a dry run of the first write of the run, which writes to the parent that the run begins; returns the error
    /// if admission denies that write. Sends nothing if the run does not make this write, if the parent is created from
    /// its manifest (the dry run of the manifest shows the denial), or if its namespace does not exist yet.
    async fn find_admission_denial_of_first_parent_write(&self) -> Option<Message> {
        if self.writing.dry_run == DryRun::ReadOnly {
            return None;
        }
        let begins = self.plan.refusals.is_empty()
            && self
                .parent()
                .is_none_or(|parent| self.has_to_write_parent_first(parent));
        let is_created_by_manifest = self.parent().is_none() && self.desired.parent.is_some();
        if !begins || is_created_by_manifest || self.lacks_namespace_of(&self.set.parent) {
            return None;
        }
        let parent = self.parent_writing();
        parent
            .predict_admission_denial_of_record_write(self.parent(), &self.plan.record_during)
            .await
    }

    async fn predict_parent_by_manifest(&self) -> Result<Option<ParentPrediction>, ApiError> {
        let Some(manifest) = &self.desired.parent else {
            return Ok(None);
        };
        if is_not_yet_served(manifest) || self.lacks_namespace_of(&manifest.key) {
            return Ok(Some(ParentPrediction::default()));
        }
        let mut live = read::read_object(self.server, &manifest.resource, &manifest.key).await?;
        if self.writing.dry_run == DryRun::ReadOnly {
            return Ok(Some(self.predict_parent_from_live(manifest, live).await));
        }
        if self.has_unknown_value(manifest) {
            let value = manifest.object.value();
            let predicted = live.as_ref().map(|live| merged_with_manifest(live, &value));
            return Ok(Some(ParentPrediction {
                predicted: Some(predicted.unwrap_or(value)),
                live,
                error: None,
            }));
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
}
