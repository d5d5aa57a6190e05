//! Applies the parent's own manifest, if there is one: its data, but not the record, which another field manager owns.

use serde_json::json;

use super::begin::Known;
use super::requests::{ParentWriteError, ParentWriting, manifest_request};
use crate::cluster::apiserver::{ApiError, ApiRequest, Reply};
use crate::compare::ownership::MEMBER_FIELD_MANAGER;
use crate::event::Event;
use crate::execute::Sink;
use crate::execute::members::apply::{ATTEMPTS, is_passing_conflict, with_preconditions};
use crate::execute::members::apply_with_live_fields::{ApplyWithLiveFields, is_outdated, live_fields};
use crate::manifest::desired::DesiredObject;
use crate::model::object::Object;
use crate::model::write_settings::Conflicts;
use crate::plan::Preconditions;
use crate::read::{self, WHOLE_OBJECTS, parent_of_answer};

impl ParentWriting<'_> {
    /// Sends the manifest and reports warnings of the server; does nothing without one.
    pub async fn apply_manifest(
        &self,
        known: &mut Known,
        preconditions: &Preconditions,
        sink: &mut Sink<'_>,
    ) -> Result<(), ParentWriteError> {
        let Some(object) = self.manifest else {
            return Ok(());
        };
        let reply = self
            .send_manifest(object, &known.parent.uid, preconditions, sink)
            .await?;
        for text in &reply.warnings {
            sink(Event::WarningOfObject {
                object: object.key.to_string(),
                text: text.clone(),
            });
        }
        // This write is not bound to what the record was, so it may come after another run's.
        let (found, _) = parent_of_answer(&reply, &self.set.parent, self.server.now())?;
        known.replace(found);
        Ok(())
    }

    /// Sends the manifest. A parent that the plan is bound to is written only as it was seen, except for its record,
    /// which this run has written. A parent that did not exist was created by this run.
    ///
    /// Each write names the UID of the parent with the record: if that parent was deleted, an apply would create
    /// one without a record, and the next run would refuse to take it.
    async fn send_manifest(
        &self,
        object: &DesiredObject,
        uid: &str,
        preconditions: &Preconditions,
        sink: &mut Sink<'_>,
    ) -> Result<Reply, ParentWriteError> {
        let parameters = self.member_parameters();
        for _ in 0..ATTEMPTS {
            let bound = if preconditions.parent().is_some() {
                let now = read::object(self.server, &object.resource, &object.key).await?;
                let seen = preconditions.unchanged_parent(now.as_ref());
                Some(seen.ok_or(ParentWriteError::Disapproved)?)
            } else {
                None
            };
            // It is read last, so that the precondition is never newer than the content.
            let with_live = self.apply_with_live_fields(object).await?;
            let sent = with_live.as_ref().map_or(object, |with_live| &with_live.object);
            let Some(seen) = bound.or_else(|| Some(with_live.as_ref()?.seen.clone())) else {
                let request = manifest_request(sent, with_uid(sent, uid).body(), &parameters);
                match self.send(request, sink).await {
                    Err(error) if is_passing_conflict(&error) && !self.is_there(uid).await? => {
                        return Err(ParentWriteError::Replaced);
                    }
                    Err(error) if is_passing_conflict(&error) => continue,
                    reply => return Ok(reply?),
                }
            };
            let request = manifest_request(sent, with_preconditions(sent, &seen).body(), &parameters);
            match self.send(request, sink).await {
                Err(error) if is_passing_conflict(&error) => {}
                Err(error) if is_outdated(self.server, object, &seen, &error).await => {}
                reply => return Ok(reply?),
            }
        }
        Err(ParentWriteError::Contended)
    }

    /// Returns whether the parent still has this UID.
    pub async fn is_there(&self, uid: &str) -> Result<bool, ApiError> {
        Ok(self.read().await?.is_some_and(|parent| parent.uid == uid))
    }

    /// Returns what to send for the parent's own manifest if it has ignored fields, or if its record was
    /// written under the field manager of members, as kubectl's is under
    /// `--field-manager kubectl-applyset`.
    async fn apply_with_live_fields(
        &self,
        object: &DesiredObject,
    ) -> Result<Option<ApplyWithLiveFields>, ApiError> {
        let manager = &self.writing.field_manager;
        if manager == MEMBER_FIELD_MANAGER && object.ignored.is_empty() {
            return Ok(None);
        }
        let live = live_fields(self.server, object).await?;
        Ok(live.and_then(|live| ApplyWithLiveFields::over(&live, object, manager)))
    }

    pub(super) fn member_parameters(&self) -> Vec<(&str, &str)> {
        let mut parameters = vec![("fieldManager", self.writing.field_manager.as_str())];
        if self.writing.conflicts == Conflicts::Forced {
            parameters.push(("force", "true"));
        }
        parameters
    }

    /// Sends a dry run of the parent's own manifest, and returns the parent as it would
    /// be.
    pub async fn dry_run_manifest(&self, manifest: &DesiredObject) -> Result<Reply, ApiError> {
        let mut parameters = self.member_parameters();
        parameters.push(("dryRun", "All"));
        let with_live = self.apply_with_live_fields(manifest).await?;
        let manifest = with_live.as_ref().map_or(manifest, |with_live| &with_live.object);
        let request = ApiRequest {
            accept: WHOLE_OBJECTS.to_owned(),
            ..manifest_request(manifest, manifest.object.body(), &parameters)
        };
        self.server.send(request).await
    }
}

/// Returns the object with the precondition that the live one has this UID.
fn with_uid(object: &DesiredObject, uid: &str) -> Object {
    let mut metadata = object.object.metadata();
    metadata.insert("uid".to_owned(), json!(uid));
    object.object.with_metadata(&metadata)
}
