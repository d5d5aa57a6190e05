//! Applies the parent's own manifest, if the set's manifests hold the parent. The record on the parent is not part of
//! the manifest: another field manager owns it.

use serde_json::json;

use super::MAX_ATTEMPTS;
use super::begin::KnownParent;
use super::requests::{ParentWriteError, ParentWriting, manifest_request};
use crate::cluster::apiserver::{ApiError, ApiRequest, Reply, StatusCause};
use crate::compare::ownership::{KUBECTL_FIELD_MANAGER, MEMBER_FIELD_MANAGER};
use crate::event::{Event, Sink};
use crate::execute::members::apply_with_live_fields::{
    ApplyWithLiveFields, is_field_conflict_after_change, read_live_metadata_or_object,
};
use crate::execute::members::managers_to_take_from::{
    conflicts_only_with, leave_out_conflicts_unless_all_taken,
};
use crate::execute::members::send_apply::{FORCE, is_version_conflict, with_preconditions};
use crate::manifest::desired::DesiredObject;
use crate::model::object::Object;
use crate::model::set::ParentObject;
use crate::model::write_settings::Conflicts;
use crate::plan::{Preconditions, Seen};
use crate::read::{self, WHOLE_OBJECTS, parse_parent_answer};

impl ParentWriting<'_> {
    /// Sends the manifest and reports warnings of the server; does nothing if the parent has no manifest.
    pub async fn apply_manifest(
        &self,
        known: &mut KnownParent,
        preconditions: &Preconditions,
        sink: &mut Sink<'_>,
    ) -> Result<(), ParentWriteError> {
        let Some(object) = self.manifest else {
            return Ok(());
        };
        let reply = self
            .send_manifest(object, &known.parent, preconditions, sink)
            .await?;
        for text in &reply.warnings {
            sink(Event::WarningOfObject {
                object: object.key.to_string(),
                text: text.clone(),
            });
        }
        // Another run may have written the record before this write: `replace_and_note_other_runs` compares the answer
        // with the parent that this run knows.
        let (found, _) = parse_parent_answer(&reply, &self.set.parent, self.server.now())?;
        known.replace_and_note_other_runs(found);
        Ok(())
    }

    /// Sends the manifest. A run of a saved plan writes the parent only if it is as the plan has seen it, except for
    /// its record, which this run has written. A parent that did not exist in the plan was created by this run.
    ///
    /// Each write is bound to the parent as it was read last, which is the one that this run has recorded on. If another
    /// client has deleted that parent, an unbound apply would create an object without a record, and the next run would
    /// refuse to take it over.
    async fn send_manifest(
        &self,
        object: &DesiredObject,
        known: &ParentObject,
        preconditions: &Preconditions,
        sink: &mut Sink<'_>,
    ) -> Result<Reply, ParentWriteError> {
        let parameters = self.build_apply_parameters();
        let forced = [&parameters[..], &[FORCE]].concat();
        let mut seen = Seen::for_version(&known.uid, &known.resource_version);
        let is_seen_by_plan = preconditions.seen_parent().is_some();
        for _ in 0..MAX_ATTEMPTS {
            if is_seen_by_plan {
                let live = read::read_object(self.server, &object.resource, &object.key).await?;
                seen = preconditions
                    .parent_if_unchanged(live.as_ref())
                    .ok_or(ParentWriteError::ChangedSincePlan)?;
            }
            // The content is read after the precondition. If the object changes in between, the precondition fails.
            let with_live = self.manifest_with_live_fields(object).await?;
            let sent = with_live.as_ref().map_or(object, |with_live| &with_live.object);
            if !is_seen_by_plan && let Some(with_live) = &with_live {
                seen = with_live.seen.clone();
            }
            if seen.uid != known.uid {
                return Err(ParentWriteError::Replaced);
            }
            // The server would copy the version into the annotation of client-side apply.
            let is_bound_to_uid_alone =
                with_live.is_none() && self.writing.field_manager == KUBECTL_FIELD_MANAGER;
            let bound = if is_bound_to_uid_alone {
                with_uid(sent, &seen.uid)
            } else {
                with_preconditions(sent, &seen)
            };
            let body = bound.body();
            let mut answer = self
                .send_until_webhooks_answer(manifest_request(sent, body.clone(), &parameters), sink)
                .await;
            if answer
                .as_ref()
                .is_err_and(|error| self.takes_fields_in_conflict(error))
            {
                answer = self
                    .send_until_webhooks_answer(manifest_request(sent, body, &forced), sink)
                    .await;
            }
            match answer {
                Err(error) if is_version_conflict(&error) => {}
                Err(error) if is_field_conflict_after_change(self.server, object, &seen, &error).await => {}
                reply => return Ok(reply.map_err(|error| self.leave_out_taken_fields(error))?),
            }
            let parent = self.read().await?.filter(|parent| parent.uid == known.uid);
            let parent = parent.ok_or(ParentWriteError::Replaced)?;
            seen = Seen::for_version(&parent.uid, &parent.resource_version);
        }
        Err(ParentWriteError::Contended)
    }

    /// Returns the manifest with fields of the live parent added, which an apply of the manifest alone would remove;
    /// `None` if that is not needed. It is needed if the manifest has ignored fields, or if its field manager may have
    /// written the record: kubectl writes the record as `kubectl-applyset`, which may also be the user's
    /// `--field-manager`.
    async fn manifest_with_live_fields(
        &self,
        object: &DesiredObject,
    ) -> Result<Option<ApplyWithLiveFields>, ApiError> {
        let manager = &self.writing.field_manager;
        if manager == MEMBER_FIELD_MANAGER && object.ignored.is_empty() {
            return Ok(None);
        }
        let live = read_live_metadata_or_object(self.server, object).await?;
        Ok(live.and_then(|live| ApplyWithLiveFields::from_live_if_needed(&live, object, manager)))
    }

    pub(super) fn build_apply_parameters(&self) -> Vec<(&str, &str)> {
        let mut parameters = vec![("fieldManager", self.writing.field_manager.as_str())];
        if self.writing.conflicts == Conflicts::Forced {
            parameters.push(FORCE);
        }
        parameters
    }

    /// Returns whether an apply without force failed only because of fields that this run takes by force.
    pub fn takes_fields_in_conflict(&self, error: &ApiError) -> bool {
        conflicts_only_with(error, |cause| self.takes_field(cause))
    }

    fn takes_field(&self, cause: &StatusCause) -> bool {
        cause
            .manager()
            .is_some_and(|manager| self.writing.conflicts.takes_from_named(&manager))
    }

    pub fn leave_out_taken_fields(&self, mut error: ApiError) -> ApiError {
        leave_out_conflicts_unless_all_taken(&mut error, |cause| self.takes_field(cause));
        error
    }

    /// Sends a dry run of the parent's own manifest, and returns the answer: the parent as it would be.
    pub async fn dry_run_manifest(&self, manifest: &DesiredObject) -> Result<Reply, ApiError> {
        let mut parameters = self.build_apply_parameters();
        parameters.push(("dryRun", "All"));
        let with_live = self.manifest_with_live_fields(manifest).await?;
        let manifest = with_live.as_ref().map_or(manifest, |with_live| &with_live.object);
        let dry_run = |parameters: &[(&str, &str)]| ApiRequest {
            accept: WHOLE_OBJECTS.to_owned(),
            ..manifest_request(manifest, manifest.object.body(), parameters)
        };
        match self.server.send(dry_run(&parameters)).await {
            Err(error) if self.takes_fields_in_conflict(&error) => {
                parameters.push(FORCE);
                self.server.send(dry_run(&parameters)).await
            }
            answer => answer.map_err(|error| self.leave_out_taken_fields(error)),
        }
    }
}

/// Returns the object with this UID in its metadata: the server then applies it only to a live object with this UID.
fn with_uid(object: &DesiredObject, uid: &str) -> Object {
    let mut metadata = object.object.metadata();
    metadata.insert("uid".to_owned(), json!(uid));
    object.object.with_metadata(&metadata)
}
