//! Predicts what a run would make of each object: the live object, and the object that the server returns for a dry
//! run. Nothing is written.
//!
//! Requests are sent only for objects that the plan applies or prunes. The command `diff` shows the differences.

mod answer;
mod applies;
mod deletions;
mod from_live;
mod not_sendable;
mod recreation;
mod request;
pub mod run;

use answer::{is_inconclusive, may_be_schema_violation, parse_object, without_managed_field_times};
use applies::PredictedApplies;
use deletions::predict_not_pruned;
use from_live::PredictedDefinitions;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;
use serde_json::Value;

use crate::cluster::apiserver::{ApiError, UnreachableWebhook};
use crate::error::ErrorKind;
use crate::event::{Action, Ending, ObjectOutcome, Sink, Subject};
use crate::execute::Execution;
use crate::execute::label_in_answer::{label_error, read_part_of_label};
use crate::execute::members::apply::TERMINATING;
use crate::execute::members::message_of_conflict::failed_apply_message;
use crate::execute::schedule::drive::WriteAnswer;
use crate::manifest::desired::DesiredObject;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::write_settings::DryRun;
use crate::plan::{Apply, ApplyAction, Detachment, Graph, LiveMembership, Plan, Risk};
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
    /// The states before and after that `diff --base` compares; `None` if these are the live and the predicted object.
    pub compared: Option<[Option<Value>; 2]>,
    /// Warnings of the server.
    pub warnings: Vec<String>,
    /// The kind of error if a request got no usable answer, so that nothing is known about the run; `None` if all were
    /// answered.
    pub unanswered: Option<ErrorKind>,
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

/// The consequence of the failure of an object in a preview.
#[derive(Debug, Clone, Copy)]
pub enum PreviewAfterFailure<'p> {
    /// What it stops in a run: what needs the object, and all prunes. A failure of this parent counts as well.
    AsInRun(Option<&'p ParentPrediction>),
    /// Nothing: each object is predicted by itself.
    Continue,
}

impl WriteAnswer for Prediction {
    /// Returns `None`: a dry run starts no webhook, so it does not wait for one.
    fn unreachable_webhook(&self) -> Option<&UnreachableWebhook> {
        None
    }
}

impl Execution<'_> {
    /// Returns the graphs of the dry runs of the plan. They are carried out one after the other, as the run does: a run
    /// that has to create the parent first applies what the parent needs.
    fn build_dry_run_graphs(&self) -> Vec<Graph<ApplyAction<'_>>> {
        let Plan {
            prerequisites, waves, ..
        } = self.plan;
        match self.parent() {
            Some(_) => vec![self.build_dry_run_graph(prerequisites.iter().chain(waves))],
            None => [prerequisites, waves]
                .map(|steps| self.build_dry_run_graph(steps))
                .into(),
        }
    }

    fn build_dry_run_graph<'p>(
        &'p self,
        steps: impl IntoIterator<Item = &'p Vec<Apply>>,
    ) -> Graph<ApplyAction<'p>> {
        let current = self.plan.edges.known.current.clone();
        self.plan
            .build_apply_graph(steps, self.desired, current, &self.state.namespaces)
            .with_needs_only()
    }

    /// Predicts the objects of a run, and passes each prediction to `on_prediction`: carries out its applies in dry runs,
    /// then predicts the removal of owner references and the prunes. An object for which `is_left_out` returns true
    /// gets no dry run and no prediction, and counts as applied.
    pub async fn predict_objects(
        &self,
        after_failure: PreviewAfterFailure<'_>,
        is_left_out: impl Fn(&DesiredObject) -> bool,
        on_prediction: &mut dyn FnMut(Prediction, &mut Sink<'_>),
        sink: &mut Sink<'_>,
    ) -> Ending {
        let (graphs, parent) = match after_failure {
            PreviewAfterFailure::AsInRun(parent) => (self.build_dry_run_graphs(), parent),
            PreviewAfterFailure::Continue => {
                let applies = self.plan.all_applies().map(ApplyAction::Apply);
                (vec![applies.collect()], None)
            }
        };
        let is_stopped = Cell::new(parent.is_some_and(|parent| parent.error.is_some()));
        let on_prediction = &mut |prediction: Prediction, sink: &mut Sink<'_>| {
            if prediction.is_failure() && matches!(after_failure, PreviewAfterFailure::AsInRun(_)) {
                is_stopped.set(true);
            }
            on_prediction(prediction, sink);
        };
        // Objects that lose owner references are predicted last, with the deletions.
        let detachments = self.detachments_if_data_loss_allowed();
        let mut held = Vec::new();
        let mut pass_or_hold = |prediction: Prediction, sink: &mut Sink<'_>| {
            let detachment = detachments.get(&prediction.outcome.subject.key());
            match detachment.filter(|_| !prediction.is_failure()) {
                Some(detachment) => held.push((prediction, *detachment)),
                None => on_prediction(prediction, sink),
            }
        };
        for outcome in self.unchanged_outcomes().chain(self.kept_outcomes()) {
            pass_or_hold(Prediction::from_outcome(outcome), sink);
        }
        let applies = PredictedApplies {
            execution: self,
            definitions: self.read_definitions_to_predict(sink).await,
            is_left_out,
            on_prediction: RefCell::new(pass_or_hold),
        };
        let mut driver = self.driver();
        for (index, graph) in graphs.iter().enumerate() {
            if index > 0 && is_stopped.get() {
                applies.skip_all(graph, sink);
            } else {
                driver.run(graph, &applies, sink).await;
            }
        }
        drop(applies);
        if is_stopped.get() {
            let held = held.into_iter().map(|(prediction, _)| prediction);
            for prediction in held.chain(self.plan.all_prunes().map(predict_not_pruned)) {
                on_prediction(prediction, sink);
            }
        } else {
            self.predict_detachments_and_prunes(held, &mut driver, on_prediction, sink)
                .await;
        }
        if self.interrupt.is_requested() {
            Ending::Interrupted
        } else if is_stopped.get() {
            Ending::Incomplete
        } else {
            Ending::Done
        }
    }

    async fn predict_apply(&self, apply: &Apply, definitions: &PredictedDefinitions) -> Prediction {
        let object = &self.desired.members[apply.index];
        let subject = self.subject_of(apply);
        let mut prediction = match (&apply.live_membership, self.writing.dry_run) {
            (LiveMembership::Terminating, _) if !self.waits_to_recreate_terminating(object) => {
                Prediction::failed(subject, self.terminating_error(object))
            }
            (LiveMembership::Terminating, _) => self.predict_recreation_of_terminating(object, subject).await,
            (membership, dry_run) => {
                let unvalidated = self.reason_not_to_send_yet(object);
                if dry_run == DryRun::Client || unvalidated.is_some() {
                    self.predict_from_live(object, subject, membership, definitions, unvalidated, None)
                        .await
                } else {
                    self.predict_on_server(object, subject, membership, definitions)
                        .await
                }
            }
        };
        prediction.outcome.source = Some(object.position.clone());
        let mut seen = BTreeSet::new();
        prediction.warnings.retain(|warning| seen.insert(warning.clone()));
        if prediction.outcome.action != Action::Recreated && !prediction.outcome.taken_in {
            self.set_reason_from_plan(apply, &mut prediction.outcome);
        }
        prediction
    }

    /// Sends a dry run of an apply, and compares the answer with the live object. (A dry run keeps the resourceVersion,
    /// so the version does not show whether the object would change.)
    async fn predict_on_server(
        &self,
        object: &DesiredObject,
        subject: Subject,
        live_membership: &LiveMembership,
        definitions: &PredictedDefinitions,
    ) -> Prediction {
        // Most objects that are not members do not exist yet, so they are read only if the dry run finds them.
        let mut live = match live_membership {
            LiveMembership::NotAMember => None,
            _ => match read::read_object(self.server, &object.resource, &object.key).await {
                Ok(live) => live,
                Err(error) => return Prediction::from_error(subject, &error),
            },
        };
        let dry_run = async || self.send_apply_dry_run(object, live_membership).await;
        let mut after_migration = None;
        let reply = match self.dry_run_until_live_matches(&mut live, object, dry_run).await {
            Ok(reply) => reply,
            // The server validates the dry run by the former schema of a CRD that the run changes.
            Err(error)
                if may_be_schema_violation(&error)
                    && self
                        .is_redefined_by_run(&object.key.group_kind, definitions)
                        .await =>
            {
                let unvalidated = Some("its CustomResourceDefinition changes in the same run");
                return self
                    .predict_from_live(object, subject, live_membership, definitions, unvalidated, live)
                    .await;
            }
            Err(error) => {
                let Some(reply) = self
                    .predict_migration_after_refusal(object, live_membership, &mut live, &error)
                    .await
                else {
                    return self
                        .predict_recreation_or_refusal(object, subject, live_membership, live, &error)
                        .await;
                };
                after_migration = parse_object(&reply);
                reply
            }
        };
        let by_apply = parse_object(&reply);
        if let (None, Some(live), Some(_)) = (&after_migration, &live, &by_apply) {
            after_migration = self
                .predict_without_given_up_fields(object, live_membership, live)
                .await;
        }
        let is_migrated = after_migration.is_some();
        let predicted = after_migration.or(by_apply);
        let action = match (&live, &predicted) {
            _ if reply.status == StatusCode::CREATED => Action::Created,
            (Some(live), Some(predicted))
                if !is_migrated
                    && without_managed_field_times(live) == without_managed_field_times(predicted) =>
            {
                Action::Unchanged
            }
            _ => Action::Configured,
        };
        Prediction {
            warnings: reply.warnings.clone(),
            ..self.build_prediction(object, subject, live_membership, action, (live, predicted))
        }
    }

    /// Creates the prediction for an object of which the live and the predicted state are known, if it exists. The
    /// object fails, and stays as it is, if it is being deleted, or if the server changes its label.
    fn build_prediction(
        &self,
        object: &DesiredObject,
        mut subject: Subject,
        live_membership: &LiveMembership,
        action: Action,
        (live, predicted): (Option<Value>, Option<Value>),
    ) -> Prediction {
        let uid = predicted
            .as_ref()
            .and_then(|object| object.pointer("/metadata/uid"));
        subject.uid = uid.and_then(Value::as_str).map(str::to_owned);
        let error = predicted
            .as_ref()
            .and_then(|predicted| find_failure_in_predicted_object(object, predicted));
        if let Some(error) = error {
            return Prediction::failed_unchanged(subject, error, live);
        }
        let mut outcome = ObjectOutcome::new(subject, action);
        if let (Some(live), Some(predicted)) = (&live, &predicted) {
            self.mark_if_predicted_taken_in(object, live_membership, live, predicted, &mut outcome);
        }
        Prediction {
            live,
            predicted,
            ..Prediction::from_outcome(outcome)
        }
    }

    /// Predicts an object whose update the server refuses: it is recreated, or fails.
    async fn predict_recreation_or_refusal(
        &self,
        object: &DesiredObject,
        subject: Subject,
        live_membership: &LiveMembership,
        live: Option<Value>,
        error: &ApiError,
    ) -> Prediction {
        let mut message = failed_apply_message(self.server, object, error).await;
        if self.should_recreate_after(object, live_membership, error) {
            let subject = subject.clone();
            match self.predict_recreation(object, subject, error, message).await {
                Ok(prediction) => return prediction,
                Err(with_reason) => message = with_reason,
            }
        }
        Prediction {
            unanswered: is_inconclusive(error).then_some(ErrorKind::Cluster),
            ..Prediction::failed_unchanged(subject, message, live)
        }
    }

    /// Returns the objects from which the run removes owner references; none unless the user has allowed data loss.
    fn detachments_if_data_loss_allowed(&self) -> BTreeMap<ObjectKey, &Detachment> {
        let detachments = self.plan.dependents.detachments.iter();
        let is_allowed = self.policy.data_loss == Risk::Allowed;
        detachments
            .filter(|_| is_allowed)
            .map(|detachment| (detachment.dependent.key.clone(), detachment))
            .collect()
    }

    /// Creates the prediction for an object that could not be read. In a client dry run, nothing else shows that a
    /// permission is missing.
    fn unread_prediction(&self, subject: Subject, error: &ApiError) -> Prediction {
        let prediction = Prediction::from_error(subject, error);
        if self.writing.dry_run != DryRun::Client {
            return prediction;
        }
        let is_forbidden = error.has_status_code(StatusCode::FORBIDDEN);
        Prediction {
            unanswered: Some(if is_forbidden {
                ErrorKind::Forbidden
            } else {
                ErrorKind::Cluster
            }),
            ..prediction
        }
    }
}

impl Prediction {
    /// Creates a prediction of an outcome alone: neither the live nor the predicted object is read.
    pub fn from_outcome(outcome: ObjectOutcome) -> Self {
        Self {
            outcome,
            live: None,
            predicted: None,
            compared: None,
            warnings: Vec::new(),
            unanswered: None,
        }
    }

    /// Returns whether the object would fail.
    pub(in crate::execute) fn is_failure(&self) -> bool {
        self.outcome.action == Action::Failed
    }

    /// Creates the prediction that an object would fail.
    fn failed(subject: Subject, error: impl Into<Message>) -> Self {
        Self::from_outcome(ObjectOutcome::from_error(subject, error))
    }

    /// Creates the prediction that an object would fail, and stay as it is.
    fn failed_unchanged(subject: Subject, error: impl Into<Message>, live: Option<Value>) -> Self {
        Self {
            predicted: live.clone(),
            live,
            ..Self::failed(subject, error)
        }
    }

    /// Creates the prediction for an object whose read or dry run failed.
    fn from_error(subject: Subject, error: &ApiError) -> Self {
        Self {
            unanswered: is_inconclusive(error).then_some(ErrorKind::Cluster),
            ..Self::failed(subject, error.kind.to_string())
        }
    }
}

/// Returns the error with which an apply that ends in this object fails: the object is being deleted, or the server
/// changes its label.
fn find_failure_in_predicted_object(object: &DesiredObject, predicted: &Value) -> Option<Message> {
    if predicted["metadata"]["deletionTimestamp"].is_string() {
        return Some(TERMINATING.into());
    }
    label_error(object.part_of().as_deref(), read_part_of_label(predicted))
}
