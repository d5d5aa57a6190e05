//! Predicts the parent.

use super::ParentPrediction;
use super::answer::{is_inconclusive, merged_with_manifest, parse_object};
use crate::cluster::apiserver::ApiError;
use crate::execute::Execution;
use crate::execute::members::message_of_rejected_manifest;
use crate::model::write_settings::DryRun;
use crate::plan::is_not_yet_served;
use crate::read;

impl Execution<'_> {
    /// Predicts the parent by a dry run of its manifest; `None` if it has no manifest.
    pub async fn predict_parent(&self) -> Result<Option<ParentPrediction>, ApiError> {
        let Some(manifest) = &self.desired.parent else {
            return Ok(None);
        };
        if is_not_yet_served(manifest) || self.lacks_namespace_of(&manifest.key) {
            return Ok(Some(ParentPrediction::default()));
        }
        let mut live = read::read_object(self.server, &manifest.resource, &manifest.key).await?;
        if self.writing.dry_run == DryRun::Client {
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
