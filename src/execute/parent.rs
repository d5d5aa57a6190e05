//! The requests that write the parent: its own manifest, and its bookkeeping.
//!
//! Every write of the record is bound to the resourceVersion that it was decided on, so
//! that two runs cannot erase each other's kinds. When what is recorded is told by
//! `record`.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::carry::{Carrying, carrying};
use super::establish::{NotServed, PATIENCE, await_served, reporting};
use super::member::{APPLY_PATCH, ATTEMPTS, is_passing_conflict, locked, written};
use super::{Interrupt, Sink};
use crate::cluster::apiserver::{ApiError, ApiServer, Call, Reply, query};
use crate::compare::ownership::{MEMBER_FIELD_MANAGER, parent_field_manager};
use crate::event::Event;
use crate::manifest::desired::DesiredObject;
use crate::model::applyset::parent::{is_bookkeeping_key, labels};
use crate::model::applyset::{ID_LABEL, PART_OF_LABEL, TOOLING_ANNOTATION};
use crate::model::object::apply_body;
use crate::model::parent_object::ParentObject;
use crate::model::resource::Resource;
use crate::model::set::Set;
use crate::model::settings::{Conflicts, Writing};
use crate::plan::saved::Approval;
use crate::plan::{ParentPolicy, Refusal, is_promised};
use crate::read::{self, ListError, METADATA, WHOLE_OBJECTS};

/// Everything that writing the parent of a set needs.
#[derive(Clone, Copy)]
pub struct ParentWriting<'a> {
    /// Where to write.
    pub server: &'a ApiServer,
    /// The set.
    pub set: &'a Set,
    /// The resource of the parent.
    pub resource: &'a Arc<Resource>,
    /// What may be done about a parent that is not what was planned for.
    pub policy: ParentPolicy,
    /// The parent's own manifest, where there is one.
    pub manifest: Option<&'a DesiredObject>,
    /// How.
    pub writing: &'a Writing,
    /// The user's wish to stop.
    pub interrupt: &'a Interrupt,
}

/// The parent could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ParentWriteError {
    /// A request did not succeed.
    #[error("the set's parent could not be written: {0}")]
    Request(#[from] ApiError),
    /// Another run changed the parent in a way that stops this one.
    #[error("the set's parent was changed by somebody else while this run went on")]
    Refused(Vec<Refusal>),
    /// The answer to a write cannot be read.
    #[error("the answer to writing the set's parent cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// Nobody knows whether other runs have members where the record is to name none.
    #[error("whether other runs work on this set could not be found out, so its record stays wide: {0}")]
    Unwatched(ListError),
    /// It is not what a saved plan was made for.
    #[error("the set's parent was changed since the plan was approved of; its own manifest was not applied")]
    Disapproved,
    /// It is a custom resource, and the server does not serve its kind.
    #[error("{0}")]
    NotServed(String),
    /// Others kept changing it.
    #[error("the set's parent was changed by others again and again")]
    Contended,
}

impl ParentWriteError {
    /// The error without what the server said, as the reason of what is left undone after it.
    pub(super) fn brief(&self) -> &'static str {
        match self {
            Self::Request(_) | Self::Unreadable(_) => "the set's parent could not be read or written",
            Self::Refused(_) | Self::Disapproved | Self::Contended => {
                "the set's parent changed during the run"
            }
            Self::NotServed(_) => "the kind of the set's parent is not served",
            Self::Unwatched(_) => "cannot tell whether other runs work on this set",
        }
    }
}

/// The parent as this run knows it to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) resource_version: String,
    pub(super) annotations: Value,
    /// Whether another run has written the record since this one was planned: then it
    /// may hold places that the plan knows nothing of.
    pub(super) overtaken: bool,
}

/// What became of a write that is bound to what the parent was.
#[derive(Debug)]
pub(super) enum Written {
    /// It is written.
    Done(Known),
    /// Somebody else was faster: changed, created or deleted it.
    Overtaken,
}

/// What became of a parent that was to lose its bookkeeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forgotten {
    /// It has lost it.
    Done,
    /// Somebody else has changed or deleted it meanwhile.
    Overtaken,
    /// There is no parent any more.
    ParentGone,
    /// The user wanted the run to stop before.
    NotBegun,
}

/// Body of a patch in which `null` removes a field.
pub(super) const MERGE_PATCH: &str = "application/merge-patch+json";

impl ParentWriting<'_> {
    /// Applies the parent's own manifest, where it is among the manifests: its data, and
    /// none of the bookkeeping, which another field manager owns.
    pub(super) async fn apply_manifest(
        &self,
        known: &mut Known,
        approval: Option<&Approval>,
        sink: &mut Sink<'_>,
    ) -> Result<(), ParentWriteError> {
        let Some(object) = self.manifest else {
            return Ok(());
        };
        let reply = self.send_manifest(object, approval).await?;
        for warning in &reply.warnings {
            sink(Event::Warning(format!("{}: {warning}", object.key)));
        }
        // This write is not bound to what the record was, so it may come after another run's.
        let live = written(&reply)?.metadata;
        known.overtaken |= known.annotations.as_object().is_some_and(|recorded| {
            recorded
                .iter()
                .any(|(key, value)| live.annotations.get(key).map(String::as_str) != value.as_str())
        });
        known.resource_version = live.resource_version;
        Ok(())
    }

    /// A parent that was approved of is written only as it was seen, but for its record, which
    /// this run has written. One that was not there is this run's own by now.
    async fn send_manifest(
        &self,
        object: &DesiredObject,
        approval: Option<&Approval>,
    ) -> Result<Reply, ParentWriteError> {
        let parameters = self.member_parameters();
        let approval = approval.filter(|approval| approval.parent().is_some());
        for _ in 0..ATTEMPTS {
            let approved = match approval {
                None => None,
                Some(approval) => {
                    let now = read::object(self.server, self.resource, &self.set.parent).await?;
                    let seen = approval.renewed_parent(now.as_ref());
                    Some(seen.ok_or(ParentWriteError::Disapproved)?)
                }
            };
            // Read last, so that an older version is locked to, and none that is newer.
            let carrying = self.carrying(object).await?;
            let sent = carrying.as_ref().map_or(object, |carrying| &carrying.object);
            let Some(seen) = approved.or_else(|| Some(carrying.as_ref()?.seen.clone())) else {
                let call = self.parent_call(sent.object.body(), &parameters);
                return Ok(self.server.send(call).await?);
            };
            let call = self.parent_call(locked(sent, &seen).body(), &parameters);
            match self.server.send(call).await {
                Err(error) if is_passing_conflict(&error) => {}
                reply => return Ok(reply?),
            }
        }
        Err(ParentWriteError::Contended)
    }

    /// Returns what to send for the parent's own manifest if its record was written under the
    /// field manager of members, as kubectl's is under `--field-manager kubectl-applyset`.
    async fn carrying(&self, object: &DesiredObject) -> Result<Option<Carrying>, ApiError> {
        let manager = &self.writing.field_manager;
        if manager == MEMBER_FIELD_MANAGER {
            return Ok(None);
        }
        carrying(self.server, object, manager).await
    }

    pub(super) async fn read(&self) -> Result<Option<ParentObject>, ApiError> {
        read::parent(self.server, self.resource, &self.set.parent).await
    }

    /// Writes the record on a parent that has this resourceVersion.
    pub(super) async fn write_record(
        &self,
        resource_version: &str,
        target: &Value,
    ) -> Result<Written, ParentWriteError> {
        let mut object = self.bare_parent();
        object["metadata"]["resourceVersion"] = json!(resource_version);
        object["metadata"]["labels"] = labels(&self.set.id);
        object["metadata"]["annotations"] = target.clone();
        let parameters = [("fieldManager", self.field_manager()), ("force", "true")];
        known(
            self.server
                .send(self.parent_call(apply_body(&object), &parameters))
                .await,
            target,
        )
    }

    /// Creates a parent that is not there.
    ///
    /// A bare one is created by POST, which fails where another run was faster; an apply
    /// would overwrite that run's record. One with a manifest is applied with the tooling
    /// annotation alone and recorded on in a second write: interrupted between the two,
    /// the annotation tells the next run that it may go on.
    pub(super) async fn create(
        &self,
        target: &Value,
        sink: &mut Sink<'_>,
    ) -> Result<Written, ParentWriteError> {
        let Some(manifest) = self.manifest else {
            let mut object = self.bare_parent();
            object["metadata"]["labels"] = labels(&self.set.id);
            object["metadata"]["annotations"] = target.clone();
            let call = Call {
                method: Method::POST,
                path: format!(
                    "{}?{}",
                    self.resource.path(self.set.parent.namespace.as_deref(), None),
                    query(&[("fieldManager", self.field_manager())])
                ),
                accept: METADATA.to_owned(),
                content_type: Some("application/json"),
                body: Bytes::from(object.to_string()),
            };
            return known(self.server.send(call).await, target);
        };
        if is_promised(manifest) {
            let namespace = manifest.key.namespace.as_deref();
            let deadline = Instant::now() + PATIENCE;
            let resource = &manifest.resource;
            let served = reporting(&manifest.key, self.interrupt, sink, async |unserved| {
                await_served(
                    self.server,
                    self.interrupt,
                    resource,
                    namespace,
                    deadline,
                    unserved,
                )
                .await
            });
            match Box::pin(served).await {
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
        let reply = self
            .server
            .send(self.parent_call(apply_body(&object), &self.member_parameters()))
            .await?;
        if reply.status != StatusCode::CREATED {
            // Another run has made it meanwhile, and may have recorded a set on it.
            return Ok(Written::Overtaken);
        }
        self.write_record(&written(&reply)?.metadata.resource_version, target)
            .await
    }

    /// Takes all bookkeeping off a parent that has this resourceVersion, and leaves the
    /// rest of it as it is. kubectl labels a parent that is among its manifests into its own
    /// set; that label goes, too.
    pub(super) async fn forget(&self, parent: &ParentObject) -> Result<Forgotten, ApiError> {
        let removed = |keys: &mut dyn Iterator<Item = &str>| -> Value {
            keys.map(|key| (key.to_owned(), Value::Null))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let annotations = parent.annotations.keys().map(String::as_str);
        let is_own = parent.part_of.as_deref() == Some(self.set.id.as_str());
        let own_label = is_own.then_some(PART_OF_LABEL);
        let patch = json!({"metadata": {
            "uid": parent.uid,
            "resourceVersion": parent.resource_version,
            "labels": removed(&mut [ID_LABEL].into_iter().chain(own_label)),
            "annotations": removed(&mut annotations.filter(|key| is_bookkeeping_key(key))),
        }});
        let identity = &self.set.parent;
        let path = self
            .resource
            .path(identity.namespace.as_deref(), Some(&identity.name));
        let call = Call {
            method: Method::PATCH,
            path: format!("{path}?{}", query(&[("fieldManager", self.field_manager())])),
            accept: METADATA.to_owned(),
            content_type: Some(MERGE_PATCH),
            body: Bytes::from(patch.to_string()),
        };
        match self.server.send(call).await {
            Ok(_) => Ok(Forgotten::Done),
            Err(error) if is_overtaken(&error) || error.is(StatusCode::NOT_FOUND) => Ok(Forgotten::Overtaken),
            Err(error) => Err(error),
        }
    }

    /// That of the bookkeeping.
    fn field_manager(&self) -> &'static str {
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

    fn member_parameters(&self) -> Vec<(&str, &str)> {
        let mut parameters = vec![("fieldManager", self.writing.field_manager.as_str())];
        if self.writing.conflicts == Conflicts::Forced {
            parameters.push(("force", "true"));
        }
        parameters
    }

    /// Lets the server rehearse the parent's own manifest, and answers with what it would
    /// make of the parent.
    pub(super) async fn rehearse_manifest(&self, manifest: &DesiredObject) -> Result<Reply, ApiError> {
        let mut parameters = self.member_parameters();
        parameters.push(("dryRun", "All"));
        let carrying = self.carrying(manifest).await?;
        let manifest = carrying.as_ref().map_or(manifest, |carrying| &carrying.object);
        let call = Call {
            accept: WHOLE_OBJECTS.to_owned(),
            ..self.parent_call(manifest.object.body(), &parameters)
        };
        self.server.send(call).await
    }

    fn parent_call(&self, object: Bytes, parameters: &[(&str, &str)]) -> Call {
        let parent = &self.set.parent;
        let path = self
            .resource
            .path(parent.namespace.as_deref(), Some(&parent.name));
        Call {
            method: Method::PATCH,
            path: format!("{path}?{}", query(parameters)),
            accept: METADATA.to_owned(),
            content_type: Some(APPLY_PATCH),
            body: object,
        }
    }
}

/// What an answer to a bound write says of the parent.
pub(super) fn known(answer: Result<Reply, ApiError>, target: &Value) -> Result<Written, ParentWriteError> {
    match answer {
        Ok(reply) => Ok(Written::Done(Known {
            resource_version: written(&reply)?.metadata.resource_version,
            annotations: target.clone(),
            overtaken: false,
        })),
        Err(error) if is_overtaken(&error) => Ok(Written::Overtaken),
        Err(error) => Err(error.into()),
    }
}

/// Whether somebody else wrote the object first: changed, created or deleted it.
fn is_overtaken(error: &ApiError) -> bool {
    error.is(StatusCode::CONFLICT)
}
