//! The requests that write the record, each with the resourceVersion that it was decided on as a precondition.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use crate::cluster::apiserver::{ApiError, ApiRequest, ApiServer, Patch, Reply, UnreachableWebhook};
use crate::compare::ownership::parent_field_manager;
use crate::event::{Event, Interrupt, Sink, Subject};
use crate::execute::WaitNotes;
use crate::execute::kinds::await_served::{NotServed, await_served};
use crate::execute::label_in_answer::changed_key;
use crate::execute::members::apply_as_read::with_version_of_no_object;
use crate::execute::starting_webhooks::StartingWebhooks;
use crate::manifest::desired::DesiredObject;
use crate::model::applyset::parent::{annotations, labels};
use crate::model::applyset::{Record, TOOLING_ANNOTATION};
use crate::model::expiry::EXPIRY_ANNOTATION;
use crate::model::history_annotation::{HISTORY_ANNOTATION, History, NoRoom};
use crate::model::object::to_yaml_safe_json;
use crate::model::resource::Resource;
use crate::model::set::{ParentObject, Set};
use crate::model::write_settings::WriteSettings;
use crate::plan::{Refusal, is_not_yet_served};
use crate::read::{self, ListError, METADATA, parse_parent_answer};

/// Context for writing the parent of a set.
#[derive(Clone, Copy)]
pub struct ParentWriting<'a> {
    pub server: &'a ApiServer,
    pub set: &'a Set,
    /// The resource of the parent.
    pub resource: &'a Arc<Resource>,
    /// The refusals to take the parent over that the user has lifted. They apply only as long as the parent is as it
    /// was read.
    pub accepted_take_over: &'a [Refusal],
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
    /// The objects that a narrower record would no longer cover cannot be listed: they may be members of other runs, or
    /// members that have lost their label.
    #[error(
        "the set's record is not narrowed: the objects that it would no longer cover cannot be listed: {0}"
    )]
    NotListed(ListError),
    /// The answer to a write lacks this label or annotation, or shows another value of it.
    #[error(
        "the set's parent: the server removed or changed the {0}; an admission policy or webhook may be the cause"
    )]
    Changed(String),
    /// The parent has changed since the saved plan was made.
    #[error("the set's parent changed since the plan; its manifest was not applied")]
    ChangedSincePlan,
    /// The parent was deleted during the run, and another client may have created it again.
    #[error(
        "the set's parent was deleted during the run; its manifest was not applied; run the same command again"
    )]
    Replaced,
    /// The parent was deleted. If the run takes objects out of the set, another parent may be in its place.
    #[error("the set's parent was deleted during the run; run the same command again")]
    Gone,
    /// The parent has no longer an entry of this run with the result `running`: this run was suspended, or could not
    /// reach the server, for so long that another run has listed it as abandoned.
    #[error("another run has listed this one as abandoned")]
    EntryLost,
    /// The parent is a custom resource, and the server does not serve its kind.
    #[error("{0}")]
    NotServed(String),
    /// The annotations of the parent are as large as the server allows.
    #[error(
        "the set's parent: its annotations leave no room to note this run: the server allows 256 KiB in all; remove other annotations, or split the set"
    )]
    NoRoom,
    /// Other clients kept changing the parent.
    #[error("the set's parent: too many conflicting updates")]
    Contended,
}

impl ParentWriteError {
    /// Returns whether another run is the only reason why this run may not write the parent.
    pub fn is_only_because_of_other_run(&self) -> bool {
        matches!(self, Self::Refused(refusals) if refusals.iter().all(Refusal::is_of_another_run))
    }

    /// Returns whether a webhook that judges the parent could not be called.
    pub fn is_of_unreachable_webhook(&self) -> bool {
        matches!(self, Self::Request(error) if UnreachableWebhook::from_error(error).is_some())
    }
}

/// The record and the history that a write is to give the parent.
pub(super) struct RecordAndHistory {
    pub(super) record: Record,
    pub(super) history: History,
}

/// Outcome of a write of the parent with its resourceVersion as a precondition.
#[derive(Debug)]
pub enum Written {
    /// The parent is written, and is like this now.
    Done(Box<ParentObject>),
    /// The parent is not written: another client changed, created or deleted it first.
    Conflict,
}

impl ParentWriting<'_> {
    /// Returns the event that announces the writes of the parent.
    pub fn announcement(&self) -> Event {
        Event::ParentWithoutResult(Subject::new(&self.set.parent, self.resource, None))
    }

    pub async fn read(&self) -> Result<Option<ParentObject>, ApiError> {
        read::read_parent(self.server, self.resource, &self.set.parent).await
    }

    /// Writes the annotations `new_annotations` on the parent that has this UID and this resourceVersion. The UID
    /// prevents an apply from creating the parent again if it is gone.
    pub async fn write_annotations(
        &self,
        (uid, resource_version): (&str, &str),
        new_annotations: &Value,
        sink: &mut Sink<'_>,
    ) -> Result<Written, ParentWriteError> {
        let request = self.update_request((uid, resource_version), new_annotations);
        self.send_and_check(request, new_annotations, sink).await
    }

    /// Returns the request that writes the annotations `new_annotations` on the parent that has this UID and this
    /// resourceVersion.
    fn update_request(&self, (uid, resource_version): (&str, &str), new_annotations: &Value) -> ApiRequest {
        let mut object = self.bare_parent();
        object["metadata"]["uid"] = json!(uid);
        object["metadata"]["resourceVersion"] = json!(resource_version);
        object["metadata"]["labels"] = labels(&self.set.id);
        object["metadata"]["annotations"] = new_annotations.clone();
        let parameters = [
            ("fieldManager", self.field_manager_of_record()),
            ("force", "true"),
        ];
        self.record_request(to_yaml_safe_json(&object), &parameters)
    }

    /// Returns the request that creates a parent that has no manifest, with the annotations `new_annotations`.
    fn creation_request(&self, new_annotations: &Value) -> ApiRequest {
        let mut object = self.bare_parent();
        object["metadata"]["labels"] = labels(&self.set.id);
        object["metadata"]["annotations"] = new_annotations.clone();
        let collection = self.resource.path(self.set.parent.namespace.as_deref(), None);
        let parameters = [("fieldManager", self.field_manager_of_record())];
        let body = Bytes::from(object.to_string());
        ApiRequest::post(&collection, &parameters, METADATA, body)
    }

    /// Returns the annotations that hold the record and the history of `target`, and the time at which the set expires.
    /// `parent` is the parent as it was read.
    ///
    /// # Errors
    ///
    /// The parent has no room for them.
    pub(super) fn build_annotations(
        &self,
        target: &RecordAndHistory,
        parent: Option<&ParentObject>,
    ) -> Result<Value, ParentWriteError> {
        let mut annotations = annotations(&self.set.tooling, &target.record);
        let mut others = parent
            .map(|parent| parent.annotations.clone())
            .unwrap_or_default();
        if let Some(expiry) = self.writing.expiry.value_to_write(&others, self.server.now()) {
            annotations[EXPIRY_ANNOTATION] = json!(expiry);
        }
        let written = annotations.as_object().into_iter().flatten();
        others
            .extend(written.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())));
        let value = target.history.to_annotation_value(&others);
        let history = value.map_err(|NoRoom| ParentWriteError::NoRoom)?;
        // An empty history is written as an empty list if the parent has the annotation. To leave the annotation out
        // would not remove it: the parent may have been created by POST, and that field manager owns the annotation,
        // too.
        let empty_history = others.contains_key(HISTORY_ANNOTATION).then(|| "[]".to_owned());
        if let Some(history) = history.or(empty_history) {
            annotations[HISTORY_ANNOTATION] = json!(history);
        }
        Ok(annotations)
    }

    /// Creates a parent that does not exist.
    ///
    /// A parent without a manifest is created by POST, which fails if another run has created the parent first; an
    /// apply would overwrite the record of that run. A parent with a manifest is applied with the tooling annotation
    /// alone and a version that makes the apply fail if the object exists, and gets its record in a second write. If
    /// the run is interrupted between the two writes, the next run recognizes the parent by that annotation and
    /// continues.
    pub async fn create(
        &self,
        new_annotations: &Value,
        sink: &mut Sink<'_>,
    ) -> Result<Written, ParentWriteError> {
        let Some(manifest) = self.manifest else {
            let request = self.creation_request(new_annotations);
            return self.send_and_check(request, new_annotations, sink).await;
        };
        if is_not_yet_served(manifest) {
            let namespace = manifest.key.namespace.as_deref();
            let resource = &manifest.resource;
            let notes = WaitNotes::default();
            let served = await_served(self.server, self.interrupt, resource, namespace, &notes);
            match notes.work_while_reporting(Box::pin(served), sink).await {
                Ok(()) => {}
                Err(NotServed::Because(reason)) => return Err(ParentWriteError::NotServed(reason)),
                Err(NotServed::Interrupted) => {
                    return Err(ParentWriteError::NotServed("interrupted".to_owned()));
                }
            }
        }
        let mut object = with_version_of_no_object(manifest).object.value();
        let metadata = &mut object["metadata"];
        if !metadata["annotations"].is_object() {
            metadata["annotations"] = json!({});
        }
        metadata["annotations"][TOOLING_ANNOTATION] = json!(self.set.tooling.to_string());
        let request = manifest_request(
            manifest,
            to_yaml_safe_json(&object),
            &self.build_apply_parameters(),
        );
        let reply = match self.send_until_webhooks_answer(request, sink).await {
            Ok(reply) if reply.status == StatusCode::CREATED => reply,
            // Another client has created it, and may have recorded a set on it. A manifest with `metadata.uid` gets a
            // conflict, too.
            Err(error) if !is_conflict(&error) || self.read().await?.is_none() => {
                return Err(error.into());
            }
            _ => return Ok(Written::Conflict),
        };
        let (created, _) = parse_parent_answer(&reply, &self.set.parent, self.server.now())?;
        self.write_annotations((&created.uid, &created.resource_version), new_annotations, sink)
            .await
    }

    /// Sends a write of the parent, and again while a webhook that judges it cannot be called yet.
    pub(super) async fn send_until_webhooks_answer(
        &self,
        request: ApiRequest,
        sink: &mut Sink<'_>,
    ) -> Result<Reply, ApiError> {
        let notes = WaitNotes::default();
        let patience = self.writing.webhook_patience.at_end;
        let webhooks = StartingWebhooks::new(patience, self.interrupt, &notes);
        let server = self.server.for_lease_writes();
        let sent = Box::pin(webhooks.send(&server, request));
        notes.work_while_reporting(sent, sink).await
    }

    /// Sends a write of the annotations `new_annotations`, and returns the parent in the answer.
    ///
    /// # Errors
    ///
    /// The answer lacks the record, the id or the entry of the run. Other runs could then not find the members that
    /// this run is about to write.
    pub(super) async fn send_and_check(
        &self,
        request: ApiRequest,
        new_annotations: &Value,
        sink: &mut Sink<'_>,
    ) -> Result<Written, ParentWriteError> {
        let reply = match self.send_until_webhooks_answer(request, sink).await {
            Ok(reply) => reply,
            Err(error) if is_conflict(&error) => return Ok(Written::Conflict),
            Err(error) => return Err(error.into()),
        };
        let (parent, answered) = parse_parent_answer(&reply, &self.set.parent, self.server.now())?;
        let keys = [
            ("label", labels(&self.set.id), &answered),
            ("annotation", new_annotations.clone(), &parent.annotations),
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
    pub fn field_manager_of_record(&self) -> &'static str {
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

/// Returns the request that applies `body` for the parent's own manifest. Its path has the version of the manifest, not
/// the version that the server prefers.
pub(super) fn manifest_request(
    manifest: &DesiredObject,
    body: Bytes,
    parameters: &[(&str, &str)],
) -> ApiRequest {
    let path = manifest.resource.path_of(&manifest.key);
    ApiRequest::patch(&path, parameters, METADATA, Patch::Apply, body)
}

/// Returns whether a write failed because another client changed, created or deleted the object first.
pub(super) fn is_conflict(error: &ApiError) -> bool {
    error.has_status_code(StatusCode::CONFLICT)
}
