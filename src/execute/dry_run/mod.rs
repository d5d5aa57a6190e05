//! Predicts each object that a run would send or prune, as its live state and the state that the server
//! returns for a dry run. Nothing is written.
//!
//! Requests are sent only for objects that the plan sends or prunes; `diff` finds the differences.

mod answer;
mod deletions;
mod recreation;
mod redefined_kinds;
mod request;
pub mod run;

pub use answer::is_of_admission;
use answer::{content, is_invalid, is_unanswered, laid_over, timeless};
use deletions::Deletions;
pub use redefined_kinds::RedefinedKinds;

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;
use serde_json::Value;

use crate::cluster::apiserver::{ApiError, UnreachableWebhook};
use crate::event::{Action, Ending, ObjectOutcome, Subject};
use crate::execute::label_in_answer::{label_error, label_of};
use crate::execute::members::message_of_rejected_manifest;
use crate::execute::schedule::drive::WriteAnswer;
use crate::execute::{Execution, Sink};
use crate::manifest::desired::DesiredObject;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::message::Message;
use crate::model::write_settings::DryRun;
use crate::plan::{Apply, Detachment, LiveMembership, Risk, is_not_yet_served};
use crate::read;

/// Prediction for one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The object and the predicted action.
    pub outcome: ObjectOutcome,
    /// The live object; `None` if it does not exist, or was not read because it would not change.
    pub live: Option<Value>,
    /// The predicted object; `None` if it would be deleted, or was not read.
    pub predicted: Option<Value>,
    /// Warnings of the server.
    pub warnings: Vec<String>,
    /// `true` if the dry run got no usable answer.
    pub unanswered: bool,
}

/// Prediction for the parent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParentPrediction {
    /// The live parent; `None` if it does not exist, or has no manifest.
    pub live: Option<Value>,
    /// The parent as its manifest would make it; `None` if the server cannot predict it yet, or refuses.
    pub predicted: Option<Value>,
    /// The error, if the server refuses.
    pub error: Option<Message>,
}

impl WriteAnswer for Prediction {
    /// Returns `None`: a dry run starts no webhook, so it does not wait for one.
    fn webhook(&self) -> Option<&UnreachableWebhook> {
        None
    }
}

impl Execution<'_> {
    /// Predicts a run, and passes on the prediction for each object. `is_stopped` returns
    /// whether a refusal stops an object: no dry run is sent for it. A run in which an object or the `parent`
    /// fails detaches and prunes nothing.
    pub async fn predict_run(
        &self,
        parent: Option<&ParentPrediction>,
        is_stopped: impl Fn(&DesiredObject) -> bool,
        predicted: &mut dyn FnMut(Prediction, &mut Sink<'_>),
        sink: &mut Sink<'_>,
    ) -> Ending {
        let detachments = self.allowed_detachments();
        let mut detached = Vec::new();
        let skips = self.plan.reported_skips().map(|skip| {
            ObjectOutcome::with_reason(subject(&skip.live), Action::Skipped, skip.reason.to_string())
        });
        for outcome in self.unchanged().chain(skips) {
            match detachments.get(&outcome.subject.key()) {
                Some(detachment) => detached.push((outcome, *detachment)),
                None => predicted(of_outcome(outcome), sink),
            }
        }
        let mut attached = Vec::new();
        let mut has_failure = parent.is_some_and(|parent| parent.error.is_some());
        let answered = |prediction: Prediction, sink: &mut Sink<'_>| {
            has_failure |= prediction.outcome.action == Action::Failed;
            match detachments.get(&prediction.outcome.subject.key()) {
                Some(detachment) => attached.push((prediction, *detachment)),
                None => predicted(prediction, sink),
            }
        };
        let mut driver = self.driver();
        // Dry runs do not build on each other, so there is no wait between waves.
        let planned = self.plan.all_applies();
        let predictable = planned.filter(|apply| !is_stopped(&self.desired.members[apply.index]));
        let applies = predictable.map(|apply| (self.key(apply), apply));
        let predicting = driver.run_independent(applies, answered, sink, async |apply| {
            self.predict_apply(apply).await
        });
        predicting.await;
        let deletions = Deletions {
            execution: self,
            times: if has_failure {
                None
            } else {
                Some(self.plan.prune_times(self.policy))
            },
            attached,
            detached,
        };
        deletions.predict(&mut driver, predicted, sink).await;
        if self.interrupt.is_requested() {
            Ending::Interrupted
        } else {
            Ending::Done
        }
    }

    /// Predicts the parent by its own manifest, and by the write with which the run begins; `None` if it has no
    /// manifest and that write is not denied.
    pub async fn predict_parent(&self) -> Result<Option<ParentPrediction>, ApiError> {
        let prediction = self.predict_manifest_of_parent().await?;
        if prediction.as_ref().is_some_and(|parent| parent.error.is_some()) {
            return Ok(prediction);
        }
        Ok(match self.denial_of_parent().await {
            None => prediction,
            error => Some(ParentPrediction {
                error,
                ..prediction.unwrap_or_default()
            }),
        })
    }

    /// Returns the error if admission denies the write of the parent with which a run begins. Nothing is sent for a run
    /// that does not begin, nor for a parent that its manifest creates or whose namespace does not exist.
    pub async fn denial_of_parent(&self) -> Option<Message> {
        let is_created = self.parent().is_none();
        let namespace = self.set.parent.namespace.as_ref();
        let is_in_reach = namespace.is_none_or(|namespace| self.state.namespaces.contains_key(namespace));
        let begins =
            self.plan.refusals.is_empty() && self.parent().is_none_or(|parent| self.writes_members(parent));
        if !begins || !is_in_reach || is_created && self.desired.parent.is_some() {
            return None;
        }
        let parent = self.parent_writing();
        parent.denial(self.parent(), &self.plan.record_during).await
    }

    async fn predict_manifest_of_parent(&self) -> Result<Option<ParentPrediction>, ApiError> {
        let Some(manifest) = &self.desired.parent else {
            return Ok(None);
        };
        if is_not_yet_served(manifest) || self.lacks_namespace_of(&manifest.key) {
            return Ok(Some(ParentPrediction::default()));
        }
        let mut live = read::object(self.server, &manifest.resource, &manifest.key).await?;
        if self.is_incomplete(manifest) {
            let content = manifest.object.value();
            let predicted = live.as_ref().map(|live| laid_over(live, &content));
            return Ok(Some(ParentPrediction {
                predicted: Some(predicted.unwrap_or(content)),
                live,
                error: None,
            }));
        }
        let parent = self.parent_writing();
        let dry_run = async || parent.dry_run_manifest(manifest).await;
        Ok(Some(match self.dry_run_on(&mut live, manifest, dry_run).await {
            Ok(reply) => ParentPrediction {
                live,
                predicted: content(&reply),
                error: None,
            },
            Err(error) if is_unanswered(&error) => return Err(error),
            Err(error) => ParentPrediction {
                predicted: live.clone(),
                live,
                error: Some(message_of_rejected_manifest::reason(&error, manifest)),
            },
        }))
    }

    async fn predict_apply(&self, apply: &Apply) -> Prediction {
        let object = &self.desired.members[apply.index];
        let subject = Subject::new(&object.key, &object.resource, apply.live_membership.uid());
        let is_asked = self.writing.dry_run != DryRun::Client;
        let mut prediction = match &apply.live_membership {
            LiveMembership::Terminating if !self.awaits_deletion(object) => {
                failed(subject, self.terminating(object))
            }
            LiveMembership::Terminating if is_asked => self.predict_created_again(object, subject).await,
            LiveMembership::Terminating => of_outcome(ObjectOutcome::new(subject, Action::Recreated)),
            membership if is_asked => self.predict_on_server(object, subject, membership).await,
            membership => self.predict_without_dry_run(object, subject, membership).await,
        };
        prediction.outcome.source = Some(object.position.clone());
        let mut seen = BTreeSet::new();
        prediction.warnings.retain(|warning| seen.insert(warning.clone()));
        if prediction.outcome.action != Action::Recreated && !prediction.outcome.taken_in {
            self.give_reason(apply, &mut prediction.outcome);
        }
        prediction
    }

    /// Sends a dry run of an apply, and compares the answer with the live object: a
    /// dry run keeps the resourceVersion, so that does not show a change.
    async fn predict_on_server(
        &self,
        object: &DesiredObject,
        mut subject: Subject,
        live_membership: &LiveMembership,
    ) -> Prediction {
        if self.is_out_of_reach(object) {
            return self
                .predict_on_client(object, subject, live_membership, None)
                .await;
        }
        // Most objects that are not members do not exist yet.
        let mut live = match live_membership {
            LiveMembership::NotAMember => None,
            _ => match read::object(self.server, &object.resource, &object.key).await {
                Ok(live) => live,
                Err(error) => return unpredicted(subject, &error),
            },
        };
        let dry_run = async || self.send_dry_run(object, live_membership).await;
        let mut migrated = None;
        let reply = match self.dry_run_on(&mut live, object, dry_run).await {
            Ok(reply) => reply,
            // The server types the dry run by the old schema.
            Err(error) if is_invalid(&error) && self.is_redefined(object).await => {
                return self
                    .predict_on_client(object, subject, live_membership, live)
                    .await;
            }
            Err(error) => {
                let Some(reply) = self
                    .after_refusal(object, live_membership, &mut live, &error)
                    .await
                else {
                    return self.refused(object, subject, live_membership, live, &error).await;
                };
                migrated = content(&reply);
                reply
            }
        };
        let mut predicted = content(&reply);
        let moved = match (migrated, &live, &predicted) {
            (None, Some(live), Some(applied)) => {
                self.without_stale_fields(object, live_membership, live, applied)
                    .await
            }
            (migrated, ..) => migrated,
        };
        let has_stale_fields = moved.is_some();
        predicted = moved.or(predicted);
        let action = match (&live, &predicted) {
            _ if reply.status == StatusCode::CREATED => Action::Created,
            (Some(live), Some(predicted)) if !has_stale_fields && timeless(live) == timeless(predicted) => {
                Action::Unchanged
            }
            _ => Action::Configured,
        };
        let of_reply = |pointer| predicted.as_ref()?.pointer(pointer)?.as_str();
        subject.uid = of_reply("/metadata/uid").map(str::to_owned);
        let mut outcome = ObjectOutcome::new(subject, action);
        if let (Some(live), Some(predicted)) = (&live, &predicted) {
            self.mark_if_taken_in(object, live_membership, live, predicted, &mut outcome);
        }
        let label = predicted.as_ref().map(label_of);
        if let Some(error) = label.and_then(|label| label_error(object.part_of().as_deref(), label)) {
            outcome.action = Action::Failed;
            outcome.error = Some(error.into());
        }
        Prediction {
            warnings: reply.warnings.clone(),
            live,
            predicted,
            ..of_outcome(outcome)
        }
    }

    /// Returns the prediction of an object whose update the server refuses.
    async fn refused(
        &self,
        object: &DesiredObject,
        subject: Subject,
        live_membership: &LiveMembership,
        live: Option<Value>,
        error: &ApiError,
    ) -> Prediction {
        let mut refused = self.refusal(object, error).await;
        if self.may_recreate(object, live_membership, error) {
            let subject = subject.clone();
            match self.predict_recreation(object, subject, error, refused).await {
                Ok(prediction) => return prediction,
                Err(message) => refused = message,
            }
        }
        let mut prediction = unpredicted(subject, error);
        prediction.outcome.error = Some(refused.into());
        Prediction {
            predicted: live.clone(),
            live,
            ..prediction
        }
    }

    /// Predicts an object that the server cannot validate. It may exist in another version than that of
    /// its manifest; then the manifest is merged into it as far as possible. `live` is the object if it was read.
    async fn predict_on_client(
        &self,
        object: &DesiredObject,
        mut subject: Subject,
        live_membership: &LiveMembership,
        mut live: Option<Value>,
    ) -> Prediction {
        let readable = self.readable_through(object);
        if let Some(resource) = readable.filter(|_| live.is_none()) {
            live = match read::object(self.server, resource, &object.key).await {
                Ok(live) => live,
                Err(error) => return unpredicted(subject, &error),
            };
        }
        let reason = match (is_not_yet_served(object), readable) {
            _ if self.is_incomplete(object) => "the plan does not hold its values",
            (true, Some(_)) => "its version does not exist yet",
            (true, None) => "its kind does not exist yet",
            (false, Some(_)) => "its CustomResourceDefinition changes in the same run",
            (false, None) => "its namespace does not exist yet",
        };
        let manifest = object.object.value();
        let (action, predicted) = match &live {
            None => (Action::Created, manifest),
            Some(live) => {
                let uid = live.pointer("/metadata/uid").and_then(Value::as_str);
                subject.uid = uid.map(str::to_owned);
                (Action::Configured, laid_over(live, &manifest))
            }
        };
        let mut outcome = ObjectOutcome::new(subject, action);
        if let Some(live) = &live {
            self.mark_if_taken_in(object, live_membership, live, &predicted, &mut outcome);
        }
        Prediction {
            warnings: vec![format!("not validated by the server: {reason}")],
            live,
            predicted: Some(predicted),
            ..of_outcome(outcome)
        }
    }

    /// Returns the objects from which a run removes owner references, if it may.
    fn allowed_detachments(&self) -> BTreeMap<ObjectKey, &Detachment> {
        let detachments = self.plan.dependents.detachments.iter();
        let is_allowed = self.policy.data_loss == Risk::Allowed;
        detachments
            .filter(|_| is_allowed)
            .map(|detachment| (detachment.dependent.key.clone(), detachment))
            .collect()
    }
}

fn subject(live: &Live) -> Subject {
    Subject::new(&live.key, &live.resource, Some(&live.uid))
}

fn of_outcome(outcome: ObjectOutcome) -> Prediction {
    Prediction {
        outcome,
        live: None,
        predicted: None,
        warnings: Vec::new(),
        unanswered: false,
    }
}

fn failed(subject: Subject, error: impl Into<Message>) -> Prediction {
    of_outcome(ObjectOutcome::failed(subject, error))
}

fn unpredicted(subject: Subject, error: &ApiError) -> Prediction {
    Prediction {
        unanswered: is_unanswered(error),
        ..failed(subject, error.kind.to_string())
    }
}
