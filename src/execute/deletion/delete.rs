//! Deletes single objects: members that are no longer desired, and objects to be created again. Each DELETE has the UID
//! and the resourceVersion that were judged as preconditions. An object that has changed since is judged again.

use std::iter;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::json;
use tokio::time::Instant;

use crate::cluster::apiserver::{
    ApiError, ApiRequest, ApiServer, Content, EarlierAttempts, Reply, UnreachableWebhook,
};
use crate::event::{Action, ObjectOutcome, StateAfterDelete, Subject};
use crate::execute::members::reply::MemberReply;
use crate::execute::reread::{GONE_ALREADY, is_answer_about};
use crate::model::live::{Live, Presence};
use crate::model::write_settings::{DryRun, WriteSettings};
use crate::plan::{
    Judge, Judgement, KeptObjects, Preconditions, ReasonToKeep, Refusal, list_with_keep_annotations,
};
use crate::read::{self, METADATA};

/// Limit of how often an object is judged that keeps changing. After that many the delete of the object fails.
pub const MAX_JUDGEMENTS: usize = 5;

/// The words with which the error of a failed delete begins.
pub const CANNOT_BE_DELETED: &str = "cannot be deleted: ";

/// The reason why an object is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletePurpose {
    /// The manifests no longer hold the object, or the whole set is deleted.
    Removal,
    /// The object is created again, once it and everything that it owns are gone.
    Recreation,
    /// The object is created again once it is gone. What the old object owned is not deleted; the new object adopts it.
    RecreationAroundDependents,
}

impl DeletePurpose {
    /// Returns the propagation policy: what the garbage collector does with objects that the deleted object owns.
    fn propagation_policy(self) -> &'static str {
        match self {
            Self::Removal => "Background",
            Self::Recreation => "Foreground",
            Self::RecreationAroundDependents => "Orphan",
        }
    }
}

/// Context for deleting members.
#[derive(Clone, Copy)]
pub struct DeleteContext<'a> {
    pub server: &'a ApiServer,
    /// Judges every object right before it is deleted.
    pub judge: &'a Judge<'a>,
    pub writing: &'a WriteSettings,
    /// The action reported for a deleted object.
    pub done: Action,
    /// The reason for the deletes.
    pub purpose: DeletePurpose,
    /// The preconditions of the objects.
    pub preconditions: &'a Preconditions,
}

impl DeleteContext<'_> {
    /// Deletes the object as it was read. If it has changed since, it is judged again, at most [`MAX_JUDGEMENTS`] times.
    /// Returns `None` if the request was not sent until `not_after`: then the judge has to be replaced.
    pub async fn delete(&self, live: &Live, not_after: Instant) -> Option<MemberReply> {
        let mut current = live.clone();
        for _ in 0..MAX_JUDGEMENTS {
            current = match self.delete_unless_changed(live, &current, not_after).await {
                DeleteAttempt::Ended(reply) => return Some(*reply),
                DeleteAttempt::Changed(fresh) => *fresh,
                DeleteAttempt::Outdated => return None,
            };
            // A namespace or CRD that has changed may also have gained objects.
            if let Some(outcome) = self
                .outcomes_of_containers_to_keep(iter::once(&current))
                .await
                .pop()
            {
                return Some(MemberReply::from_outcome(outcome));
            }
        }
        let error = "cannot be deleted: too many conflicting updates; run the same command again";
        Some(MemberReply::failed(Subject::from_live(live), error.to_owned()))
    }

    /// Deletes an object. `planned` is the object as the plan read it, `current` as it was read last. If the object has
    /// changed since the last read, nothing is deleted, and the caller has to judge it again; likewise if the request was
    /// not sent until `not_after`, because the server had no capacity for it.
    pub async fn delete_unless_changed(
        &self,
        planned: &Live,
        current: &Live,
        not_after: Instant,
    ) -> DeleteAttempt {
        if let Some(outcome) = self.outcome_if_kept(planned, current) {
            return DeleteAttempt::ended(outcome);
        }
        let subject = Subject::from_live(planned);
        let request = ApiRequest {
            not_after: Some(not_after),
            ..delete_request_for_purpose(current, DryRun::None, self.purpose)
        };
        let earlier_attempts = match self.server.send(request).await {
            Ok(reply) if is_answer_about(&reply, current) => {
                return DeleteAttempt::ended(ObjectOutcome {
                    remainder: read_state_after_delete(&reply, current),
                    ..ObjectOutcome::new(subject, self.done)
                });
            }
            Err(error) if error.is_missing_object() && error.earlier_attempts.may_have_succeeded() => {
                return DeleteAttempt::ended(ObjectOutcome::new(subject, self.done));
            }
            Err(error) if error.is_missing_object() => return self.gone_already(subject),
            Err(error) if error.is_outdated() => return DeleteAttempt::Outdated,
            Err(error) if error.has_status_code(StatusCode::CONFLICT) => error.earlier_attempts,
            Err(error) => return DeleteAttempt::failed(subject, &error),
            // The answer is about another object, so it does not say whether this one was deleted.
            Ok(_) => EarlierAttempts::MayHaveSucceeded,
        };
        // The whole object is read: metadata alone does not show which kind a CRD defines, or whether a `StatefulSet`
        // deletes its `PersistentVolumeClaims`.
        let object = match read::read_object(self.server, &current.resource, &current.key).await {
            Ok(object) => object.unwrap_or_default(),
            Err(error) => return DeleteAttempt::failed(subject, &error),
        };
        let Some(live) = Live::from_object(&object, &current.resource) else {
            return self.gone_already(subject);
        };
        // An earlier attempt may have deleted the object, although its answer was lost. Finalizers then hold the
        // object, and the delete itself has changed its resourceVersion.
        let is_terminating = live.presence == Presence::Terminating && live.uid == planned.uid;
        if is_terminating && earlier_attempts.may_have_succeeded() {
            return DeleteAttempt::ended(ObjectOutcome::new(subject, self.done));
        }
        if !self.preconditions.admits(&current.key, &object) {
            return DeleteAttempt::ended(ObjectOutcome::from_error(
                subject,
                format!("{CANNOT_BE_DELETED}it changed since the plan"),
            ));
        }
        DeleteAttempt::Changed(Box::new(live))
    }

    /// Returns the end of an attempt for an object that another client has deleted.
    fn gone_already(&self, subject: Subject) -> DeleteAttempt {
        DeleteAttempt::ended(ObjectOutcome::new_with_reason(subject, self.done, GONE_ALREADY))
    }

    /// Judges an object. `planned` is the object as the plan read it, `current` as it is now. Returns its outcome if it
    /// is kept; `None` if it is to be deleted.
    fn outcome_if_kept(&self, planned: &Live, current: &Live) -> Option<ObjectOutcome> {
        if self.purpose != DeletePurpose::Removal {
            let obstacle = self.judge.obstacle_to_recreation(current);
            let is_replaced = current.uid != planned.uid;
            let replaced = is_replaced.then(|| "it was replaced during the run".to_owned());
            let reason = obstacle.map(|obstacle| obstacle.to_string()).or(replaced)?;
            return Some(skipped_outcome(planned, reason));
        }
        match self.judge.judge(current) {
            Judgement::Prune if current.uid == planned.uid => None,
            Judgement::Prune | Judgement::Ignore => Some(skipped_outcome(
                planned,
                "it changed during the run and is no longer in this set",
            )),
            Judgement::Skip(reason) => Some(skipped_outcome(planned, reason.to_string())),
            // The run was to remove the owner references of these dependents before this delete, and could not.
            Judgement::Refuse(Refusal::OwnsDependents {
                dependents,
                keep_annotations,
                ..
            }) => Some(ObjectOutcome::from_error(
                Subject::from_live(planned),
                format!(
                    "not deleted: the garbage collector would then delete {}",
                    list_with_keep_annotations(&dependents, &keep_annotations)
                ),
            )),
            Judgement::Refuse(refusal) => Some(ObjectOutcome::from_error(
                Subject::from_live(planned),
                format!("kept, because it changed since the plan: {refusal}"),
            )),
        }
    }
}

/// Returns what remains of an object after its DELETE. The server answers with a `Status` if the object is gone, else
/// with the object. Finalizers of a CRD (`live.defines`) do not count: the server itself adds one to every CRD that is
/// deleted, and removes it a moment later.
pub fn read_state_after_delete(reply: &Reply, live: &Live) -> StateAfterDelete {
    let answer = reply.json_or_null();
    let finalizers = answer["metadata"]["finalizers"].as_array();
    if answer["kind"] == "Status" {
        StateAfterDelete::Nothing
    } else if live.defines.is_none() && finalizers.is_some_and(|finalizers| !finalizers.is_empty()) {
        StateAfterDelete::HeldByFinalizers
    } else {
        StateAfterDelete::Unknown
    }
}

/// Returns the outcome of an object that the run does not write, with the reason, which may be empty.
pub fn skipped_outcome(live: &Live, reason: impl Into<String>) -> ObjectOutcome {
    ObjectOutcome::new_with_reason(Subject::from_live(live), Action::Skipped, reason)
}

/// Returns the outcome of a namespace or CRD that is kept because one of the `kept_objects` would be lost with it; `None`
/// if none would.
pub fn outcome_if_container_holds_kept(
    kept_objects: &KeptObjects,
    container: &Live,
) -> Option<ObjectOutcome> {
    let kept = kept_objects.kept_object_in(container)?.clone();
    let reason = ReasonToKeep::HoldsKept { kept };
    Some(skipped_outcome(container, reason.to_string()))
}

/// Returns the request that deletes exactly the object that was read, not another one with its name.
pub fn delete_request(live: &Live, dry_run: DryRun) -> ApiRequest {
    delete_request_for_purpose(live, dry_run, DeletePurpose::Removal)
}

fn delete_request_for_purpose(live: &Live, dry_run: DryRun, purpose: DeletePurpose) -> ApiRequest {
    let path = live.resource.path_of(&live.key);
    // The server ignores the query of a DELETE that has a body, so `dryRun` has to be in the body.
    let dry_run: &[&str] = match dry_run {
        DryRun::None => &[],
        DryRun::Client | DryRun::Server => &["All"],
    };
    let options = json!({
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": purpose.propagation_policy(),
        "preconditions": {"uid": live.uid, "resourceVersion": live.resource_version},
        "dryRun": dry_run,
    });
    ApiRequest {
        method: Method::DELETE,
        path,
        accept: METADATA.to_owned(),
        answer: Content::Object,
        content_type: Some("application/json"),
        body: Bytes::from(options.to_string()),
        not_after: None,
    }
}

/// The result of one attempt to delete an object.
pub enum DeleteAttempt {
    /// The object was deleted, is kept, or could not be deleted; a webhook that cannot be called yet is one reason.
    Ended(Box<MemberReply>),
    /// Nothing was deleted, because the object has changed. Holds the object as it was read again.
    Changed(Box<Live>),
    /// The request was not sent in time, or not sent again.
    Outdated,
}

impl DeleteAttempt {
    fn ended(outcome: ObjectOutcome) -> Self {
        Self::Ended(Box::new(MemberReply::from_outcome(outcome)))
    }

    /// Returns the end of an attempt that failed with this error.
    fn failed(subject: Subject, error: &ApiError) -> Self {
        let message = error
            .kind
            .to_object_message()
            .with_words_before_text_and_group(CANNOT_BE_DELETED);
        Self::Ended(Box::new(MemberReply {
            webhook: UnreachableWebhook::from_error(error),
            ..MemberReply::failed(subject, message)
        }))
    }
}
