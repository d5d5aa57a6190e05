//! The requests that write the record, each bound to the resourceVersion that it was decided on.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::apiserver::{ApiError, ApiRequest, ApiServer, Patch, Reply, UnreachableWebhook};
use crate::compare::ownership::parent_field_manager;
use crate::event::{Event, Subject};
use crate::execute::kinds::establish::{NotServed, PATIENCE, await_served};
use crate::execute::label_in_answer::changed_key;
use crate::execute::members::apply::written;
use crate::execute::starting_webhooks::StartingWebhooks;
use crate::execute::{Interrupt, Sink, WaitNotes};
use crate::manifest::desired::DesiredObject;
use crate::model::applyset::parent::{annotations, labels};
use crate::model::applyset::{Record, TOOLING_ANNOTATION};
use crate::model::history_annotation::{HISTORY_ANNOTATION, History, NoRoom};
use crate::model::object::apply_body;
use crate::model::resource::Resource;
use crate::model::set::{ParentObject, Set};
use crate::model::write_settings::WriteSettings;
use crate::plan::{Refusal, is_not_yet_served};
use crate::read::{self, ListError, METADATA, parent_of_answer};

/// Context for writing the parent of a set.
#[derive(Clone, Copy)]
pub struct ParentWriting<'a> {
    pub server: &'a ApiServer,
    pub set: &'a Set,
    /// The resource of the parent.
    pub resource: &'a Arc<Resource>,
    /// The refusals to take the parent over that the user has lifted. Only a parent that is still as it was read
    /// is taken over.
    pub accepted: &'a [Refusal],
    /// The parent's own manifest, if there is one.
    pub manifest: Option<&'a DesiredObject>,
    pub writing: &'a WriteSettings,
    /// The interrupt of the run.
    pub interrupt: &'a Interrupt,
}

/// Error if the parent could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ParentWriteError {
    /// A request did not succeed.
    #[error("the set's parent cannot be written: {0}")]
    Request(#[from] ApiError),
    /// Another run changed the parent in a way that stops this one.
    #[error("the set's parent was changed during the run")]
    Refused(Vec<Refusal>),
    /// The answer to a write cannot be read.
    #[error("the set's parent: invalid response from the server: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// The objects that only the wide record covers cannot be listed: members of other runs, or members without their
    /// label.
    #[error(
        "the set's record is not narrowed: the objects that it would no longer cover cannot be listed: {0}"
    )]
    Unwatched(ListError),
    /// The answer to a write lacks a label or an annotation, or shows another value.
    #[error(
        "the set's parent: the server removed or changed the {0}; an admission policy or webhook may be the cause"
    )]
    Changed(String),
    /// It changed since the saved plan was made.
    #[error("the set's parent changed since the plan; its manifest was not applied")]
    Disapproved,
    /// It was deleted during the run, and may have been created again by another client.
    #[error(
        "the set's parent was deleted during the run; its manifest was not applied; run the same command again"
    )]
    Replaced,
    /// It is not the one whose set the run takes objects out of: that one was deleted.
    #[error("the set's parent was deleted during the run")]
    Gone,
    /// It has lost the entry of the run, which was suspended or out of reach for too long.
    #[error("another run has listed this one as abandoned")]
    Dropped,
    /// It is a custom resource, and the server does not serve its kind.
    #[error("{0}")]
    NotServed(String),
    /// Its annotations are as large as the server allows.
    #[error(
        "the set's parent: its annotations leave no room to note this run: the server allows 256 KiB in all; remove other annotations, or split the set"
    )]
    NoRoom,
    /// Other clients kept changing it.
    #[error("the set's parent: too many conflicting updates")]
    Contended,
}

impl ParentWriteError {
    /// Returns whether only another run keeps this one from writing.
    pub fn is_of_another_run(&self) -> bool {
        matches!(self, Self::Refused(refusals) if refusals.iter().all(Refusal::is_of_another_run))
    }

    /// Returns whether a webhook that judges the parent could not be called.
    pub fn is_of_webhook(&self) -> bool {
        matches!(self, Self::Request(error) if UnreachableWebhook::from_error(error).is_some())
    }
}

/// The record and the history of the parent after a write.
pub(super) struct Target {
    pub(super) record: Record,
    pub(super) history: History,
}

/// Outcome of a write with the parent's resourceVersion.
#[derive(Debug)]
pub enum Written {
    /// It is written.
    Done(Box<ParentObject>),
    /// Another client changed, created or deleted it first.
    Overtaken,
}

impl ParentWriting<'_> {
    /// Returns the event that announces the writes of the parent.
    pub fn announcement(&self) -> Event {
        Event::ParentWithoutResult(Subject::new(&self.set.parent, self.resource, None))
    }

    pub async fn read(&self) -> Result<Option<ParentObject>, ApiError> {
        read::parent(self.server, self.resource, &self.set.parent).await
    }

    /// Writes the record on the parent that has this UID and this resourceVersion. Without the UID, the server would
    /// create a parent that is gone.
    pub async fn write_record(
        &self,
        (uid, resource_version): (&str, &str),
        target: &Value,
        sink: &mut Sink<'_>,
    ) -> Result<Written, ParentWriteError> {
        let request = self.update_request((uid, resource_version), target, &[]);
        self.written(self.send(request, sink).await, target)
    }

    /// Returns the request that writes the record on the parent that has this UID and this resourceVersion.
    pub(super) fn update_request(
        &self,
        (uid, resource_version): (&str, &str),
        target: &Value,
        more: &[(&str, &str)],
    ) -> ApiRequest {
        let mut object = self.bare_parent();
        object["metadata"]["uid"] = json!(uid);
        object["metadata"]["resourceVersion"] = json!(resource_version);
        object["metadata"]["labels"] = labels(&self.set.id);
        object["metadata"]["annotations"] = target.clone();
        let parameters = [("fieldManager", self.field_manager()), ("force", "true")];
        self.record_request(apply_body(&object), &[&parameters, more].concat())
    }

    /// Returns the request that creates a parent without a manifest.
    pub(super) fn creation_request(&self, target: &Value, more: &[(&str, &str)]) -> ApiRequest {
        let mut object = self.bare_parent();
        object["metadata"]["labels"] = labels(&self.set.id);
        object["metadata"]["annotations"] = target.clone();
        let collection = self.resource.path(self.set.parent.namespace.as_deref(), None);
        let parameters = [&[("fieldManager", self.field_manager())], more].concat();
        let body = Bytes::from(object.to_string());
        ApiRequest::post(&collection, &parameters, METADATA, body)
    }

    /// Returns the annotations of the parent as they are to be.
    ///
    /// # Errors
    ///
    /// There is no room for them.
    pub(super) fn annotations(
        &self,
        target: &Target,
        parent: Option<&ParentObject>,
    ) -> Result<Value, ParentWriteError> {
        let mut annotations = annotations(&self.set.tooling, &target.record);
        let mut others = parent
            .map(|parent| parent.annotations.clone())
            .unwrap_or_default();
        let written = annotations.as_object().into_iter().flatten();
        others
            .extend(written.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())));
        let value = target.history.value(&others);
        let history = value.map_err(|NoRoom| ParentWriteError::NoRoom)?;
        // The client that created the parent owns the annotation, too, so leaving it out would not remove it.
        let emptied = others.contains_key(HISTORY_ANNOTATION).then(|| "[]".to_owned());
        if let Some(history) = history.or(emptied) {
            annotations[HISTORY_ANNOTATION] = json!(history);
        }
        Ok(annotations)
    }

    /// Creates a parent that does not exist.
    ///
    /// A bare one is created by POST, which fails where another run was faster; an apply
    /// would overwrite that run's record. One with a manifest is applied with the tooling
    /// annotation alone and recorded on in a second write: interrupted between the two,
    /// the annotation lets the next run continue.
    pub async fn create(&self, target: &Value, sink: &mut Sink<'_>) -> Result<Written, ParentWriteError> {
        let Some(manifest) = self.manifest else {
            let request = self.creation_request(target, &[]);
            return self.written(self.send(request, sink).await, target);
        };
        if is_not_yet_served(manifest) {
            let namespace = manifest.key.namespace.as_deref();
            let deadline = Instant::now() + PATIENCE;
            let resource = &manifest.resource;
            let notes = WaitNotes::default();
            let served = await_served(self.server, self.interrupt, resource, namespace, deadline, &notes);
            match notes.reporting(Box::pin(served), sink).await {
                Ok(()) => {}
                Err(NotServed::Because(reason)) => return Err(ParentWriteError::NotServed(reason)),
                Err(NotServed::Interrupted) => {
                    return Err(ParentWriteError::NotServed("interrupted".to_owned()));
                }
            }
        }
        let mut object = manifest.object.value();
        let metadata = &mut object["metadata"];
        if !metadata["annotations"].is_object() {
            metadata["annotations"] = json!({});
        }
        metadata["annotations"][TOOLING_ANNOTATION] = json!(self.set.tooling.to_string());
        let request = manifest_request(manifest, apply_body(&object), &self.member_parameters());
        let reply = self.send(request, sink).await?;
        if reply.status != StatusCode::CREATED {
            // Another run has created it, and may have recorded a set on it.
            return Ok(Written::Overtaken);
        }
        let created = written(&reply)?.metadata;
        self.write_record((&created.uid, &created.resource_version), target, sink)
            .await
    }

    /// Sends a write of the parent, and again while a webhook that judges it cannot be called yet.
    pub(super) async fn send(&self, request: ApiRequest, sink: &mut Sink<'_>) -> Result<Reply, ApiError> {
        let notes = WaitNotes::default();
        let webhooks = StartingWebhooks::new(self.writing, self.interrupt, &notes);
        let server = self.server.beside_lease();
        let sent = Box::pin(webhooks.send(&server, request));
        notes.reporting(sent, sink).await
    }

    /// Returns what the answer to a bound write of the record says about the parent.
    ///
    /// # Errors
    ///
    /// The answer lacks the record, the id or the entry of the run: no other run could find the members that this one
    /// is about to write.
    pub(super) fn written(
        &self,
        answer: Result<Reply, ApiError>,
        target: &Value,
    ) -> Result<Written, ParentWriteError> {
        let reply = match answer {
            Ok(reply) => reply,
            Err(error) if is_overtaken(&error) => return Ok(Written::Overtaken),
            Err(error) => return Err(error.into()),
        };
        let (parent, answered) = parent_of_answer(&reply, &self.set.parent, self.server.now())?;
        let keys = [
            ("label", labels(&self.set.id), &answered),
            ("annotation", target.clone(), &parent.annotations),
        ];
        let changed = keys.iter().find_map(|(what, written, answered)| {
            changed_key(written, answered).map(|key| format!("{what} {key}"))
        });
        match changed {
            Some(changed) => Err(ParentWriteError::Changed(changed)),
            None => Ok(Written::Done(Box::new(parent))),
        }
    }

    /// Returns the field manager of the record.
    pub fn field_manager(&self) -> &'static str {
        parent_field_manager(&self.set.tooling)
    }

    fn bare_parent(&self) -> Value {
        let mut metadata = json!({"name": self.set.parent.name});
        if let Some(namespace) = &self.set.parent.namespace {
            metadata["namespace"] = json!(namespace);
        }
        json!({
            "apiVersion": self.resource.api_version(),
            "kind": self.resource.kind,
            "metadata": metadata,
        })
    }

    fn record_request(&self, object: Bytes, parameters: &[(&str, &str)]) -> ApiRequest {
        let path = self.resource.path_of(&self.set.parent);
        ApiRequest::patch(&path, parameters, METADATA, Patch::Apply, object)
    }
}

/// Returns the request that applies `body` for the parent's own manifest, in the version of the manifest, which may not
/// be the one that the server prefers.
pub(super) fn manifest_request(
    manifest: &DesiredObject,
    body: Bytes,
    parameters: &[(&str, &str)],
) -> ApiRequest {
    let path = manifest.resource.path_of(&manifest.key);
    ApiRequest::patch(&path, parameters, METADATA, Patch::Apply, body)
}

/// Returns whether another client changed, created or deleted the object first.
pub(super) fn is_overtaken(error: &ApiError) -> bool {
    error.is(StatusCode::CONFLICT)
}
