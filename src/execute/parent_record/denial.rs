//! Predicts whether the server denies the write of the parent with which a run begins.

use super::begin::history_with_abandoned_marked;
use super::requests::{ParentWriteError, ParentWriting, RecordAndHistory};
use crate::execute::dry_run::is_denial_by_admission;
use crate::model::applyset::Record;
use crate::model::message::Message;
use crate::model::set::ParentObject;

impl ParentWriting<'_> {
    /// Sends a dry run of the write that makes the record cover `needed`, without the entry of the run. Returns the
    /// error if admission denies the write or changes what it wrote; `None` for other errors, which the prediction of
    /// the members reports, too.
    pub async fn predict_admission_denial_of_record_write(
        &self,
        parent: Option<&ParentObject>,
        needed: &Record,
    ) -> Option<Message> {
        let error = self.dry_run_record_write(parent, needed).await.err()?;
        if let ParentWriteError::Request(error) = &error
            && !is_denial_by_admission(error)
        {
            return None;
        }
        let text = error.to_string();
        let reason = text.strip_prefix("the set's parent").unwrap_or(&text);
        Some(reason.trim_start_matches([':', ' ']).into())
    }

    async fn dry_run_record_write(
        &self,
        parent: Option<&ParentObject>,
        needed: &Record,
    ) -> Result<(), ParentWriteError> {
        let target = RecordAndHistory {
            record: needed.clone(),
            history: parent
                .map(|parent| history_with_abandoned_marked(parent, ""))
                .unwrap_or_default(),
        };
        let target = self.build_annotations(&target, parent)?;
        let dry_run = [("dryRun", "All")];
        let request = match parent {
            Some(parent) => self.update_request((&parent.uid, &parent.resource_version), &target, &dry_run),
            None => self.creation_request(&target, &dry_run),
        };
        self.check_answer(self.server.send(request).await, &target)?;
        Ok(())
    }
}
