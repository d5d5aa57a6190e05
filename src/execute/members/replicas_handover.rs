//! Hands the number of replicas of a member over before its apply, or takes it back. `plan` decides
//! which; `ownership` judges the live object again.
//!
//! Neither changes a value, so an interruption between the hand-over and the apply is harmless: the
//! field has two owners then, and the next run only drops our ownership.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use crate::cluster::apiserver::{ApiError, ApiRequest, Patch};
use crate::compare::ownership::{self, Former, HANDOVER_FIELD_MANAGER, LastApplied, Replicas, ReplicasPath};
use crate::event::{Action, ObjectOutcome};
use crate::execute::Execution;
use crate::execute::members::apply::ATTEMPTS;
use crate::manifest::desired::DesiredObject;
use crate::model::object::{Object, apply_body};
use crate::plan::{HandoverCause, ReplicasHandover};
use crate::read::{self, METADATA};

/// What was done about the number of replicas of a member.
#[derive(Debug, Default)]
pub(crate) struct HandOver<'a> {
    /// What was handed over.
    pub(crate) done: Option<&'a ReplicasHandover>,
    /// The metadata of the object, if this run wrote it.
    pub(crate) written: Option<Value>,
}

impl Execution<'_> {
    /// Hands the number of replicas over with its live value, or takes it back, if the plan says so and
    /// the live object still needs it. An interrupted run writes nothing more, so the caller does not apply
    /// the object then.
    pub(crate) async fn hand_over(&self, object: &DesiredObject) -> Result<HandOver<'_>, ApiError> {
        let nothing = HandOver::default();
        let Some(handover) = self.plan.handovers.get(&object.key) else {
            return Ok(nothing);
        };
        let mut attempts = 0;
        loop {
            attempts += 1;
            let live = read::object(self.server, &object.resource, &object.key).await?;
            // An object that changed since a saved plan is left to the apply, which refuses it.
            let is_expected = |live: &Value| {
                !self.plan.preconditions.require_unchanged()
                    || self.plan.preconditions.admit(&object.key, live)
            };
            let Some(live) = live.filter(is_expected) else {
                return Ok(nothing);
            };
            let request = match self.replicas(object, &live, &handover.path) {
                Some(Replicas::Dropped(value)) => {
                    self.handover_request(object, &live, &handover.path, &value)
                }
                Some(Replicas::HandedOver(_)) => {
                    return Ok(HandOver {
                        done: Some(handover),
                        written: None,
                    });
                }
                Some(Replicas::Returned) => match self.take_back_request(object, &live) {
                    Some(request) => request,
                    None => return Ok(nothing),
                },
                None => return Ok(nothing),
            };
            if self.interrupt.is_requested() {
                return Ok(nothing);
            }
            match self.server.send(request).await {
                Err(error) if attempts < ATTEMPTS && error.is(StatusCode::CONFLICT) => {}
                Err(error) => return Err(error),
                Ok(reply) => {
                    return Ok(HandOver {
                        done: (handover.cause != HandoverCause::Returned).then_some(handover),
                        written: serde_json::from_slice(&reply.body).ok(),
                    });
                }
            }
        }
    }

    /// Returns why an object of a hand-over is not applied after it: the run was interrupted while the
    /// object was read or written.
    pub(crate) fn reason_not_applied_if_interrupted(&self, object: &DesiredObject) -> Option<String> {
        let is_interrupted = self.interrupt.is_requested() && self.plan.handovers.contains_key(&object.key);
        is_interrupted.then(|| format!("not applied: {}", self.interrupt.cause().reason()))
    }

    /// Returns the object as a dry run sends it, if its number of replicas would be handed over: with the
    /// live value, since a dry run cannot build on another one.
    pub(crate) async fn with_live_replicas(
        &self,
        object: &DesiredObject,
    ) -> Result<Option<DesiredObject>, ApiError> {
        let Some(handover) = self.plan.handovers.get(&object.key) else {
            return Ok(None);
        };
        let live = read::object(self.server, &object.resource, &object.key).await?;
        let replicas = live.and_then(|live| self.replicas(object, &live, &handover.path));
        let Some(Replicas::Dropped(value) | Replicas::HandedOver(value)) = replicas else {
            return Ok(None);
        };
        let mut sent = object.object.value();
        handover.path.set(&mut sent, &value);
        Ok(Some(DesiredObject {
            object: Object::from(&sent),
            ..object.clone()
        }))
    }

    /// Marks the outcome of an object whose number of replicas the plan hands over.
    pub(crate) fn mark_planned_handover(&self, object: &DesiredObject, outcome: &mut ObjectOutcome) {
        mark_handed_over(self.plan.handovers.get(&object.key), outcome);
    }

    fn replicas(&self, object: &DesiredObject, live: &Value, path: &ReplicasPath) -> Option<Replicas> {
        let former = Former {
            manager: &self.writing.field_manager,
            tool: self.writing.former_manager.as_deref(),
            writers: &[],
            last_applied: LastApplied::in_set_of(&self.set.tooling),
        };
        ownership::replicas(&object.object.value(), live, path, &former)
    }

    fn handover_request(
        &self,
        object: &DesiredObject,
        live: &Value,
        path: &ReplicasPath,
        value: &Value,
    ) -> ApiRequest {
        let metadata = &live["metadata"];
        let mut sent = json!({
            "apiVersion": object.resource.api_version(),
            "kind": object.resource.kind,
            "metadata": {
                "name": metadata["name"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
        });
        if let Some(namespace) = &object.key.namespace {
            sent["metadata"]["namespace"] = json!(namespace);
        }
        path.set(&mut sent, value);
        let parameters = [
            ("fieldManager", HANDOVER_FIELD_MANAGER),
            ("fieldValidation", self.writing.validation.parameter()),
        ];
        let target = object.resource.path_of(&object.key);
        ApiRequest::patch(&target, &parameters, METADATA, Patch::Apply, apply_body(&sent))
    }

    fn take_back_request(&self, object: &DesiredObject, live: &Value) -> Option<ApiRequest> {
        let manager = &*self.writing.field_manager;
        let patch = ownership::take_back(&live["metadata"], manager)?;
        let target = object.resource.path_of(&object.key);
        let body = Bytes::from(patch.to_string());
        Some(ApiRequest::patch(
            &target,
            &[("fieldManager", manager)],
            METADATA,
            Patch::Json,
            body,
        ))
    }
}

/// Marks the outcome of an object whose number of replicas was handed over, or would be in a dry run.
pub(crate) fn mark_handed_over(handover: Option<&ReplicasHandover>, outcome: &mut ObjectOutcome) {
    let Some(handover) = handover.filter(|_| outcome.error.is_none()) else {
        return;
    };
    // The owner of a field changes, even if nothing else does.
    if outcome.action == Action::Unchanged {
        outcome.action = Action::Configured;
    }
    if let Some(field) = handover.field_left_to_autoscaler() {
        outcome.handed_over = vec![field];
        outcome.reason = handover.to_string();
    }
}
