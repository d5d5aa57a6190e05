//! Deletes members that are no longer desired. UID and resourceVersion are preconditions, so only the object that was
//! judged is deleted. A container of an object that this run has kept is kept, too.

use std::iter;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::cluster::apiserver::{
    ApiError, ApiRequest, ApiServer, Content, EarlierAttempts, Reply, UnreachableWebhook,
};
use crate::event::{Action, ObjectOutcome, Remainder, Subject};
use crate::execute::members::reply::{MemberReply, failed, reply_of};
use crate::execute::reread::{GONE_ALREADY, is_of, reread_as};
use crate::model::identity::ObjectKey;
use crate::model::live::{Live, Presence};
use crate::model::write_settings::{DryRun, WriteSettings};
use crate::plan::{
    Judge, Judgement, KeptObjects, Preconditions, Refusal, SkipReason, list_with_keep_annotations,
};
use crate::read::{METADATA, WHOLE_OBJECTS};

/// Attempts to judge an object that keeps changing.
pub const JUDGEMENTS: usize = 5;

/// The beginning of the error of a delete that failed.
pub const CANNOT_BE_DELETED: &str = "cannot be deleted: ";

/// The reason why an object is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It leaves the set.
    Removal,
    /// It is created again once it is gone, and so is everything that it owns.
    Recreation,
    /// It is created again once it is gone, and adopts what the old object owned.
    RecreationAroundDependents,
}

impl Purpose {
    /// Returns the treatment of what the object owns.
    fn propagation(self) -> &'static str {
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
    pub purpose: Purpose,
    /// The preconditions of the objects.
    pub preconditions: &'a Preconditions,
}

/// Objects that were to be deleted and are kept: since they were read, they joined another set or got
/// a keep annotation, or the user may not delete them.
#[derive(Debug, Default)]
pub struct ObjectsKeptInsteadOfDeleted(KeptObjects);

impl ObjectsKeptInsteadOfDeleted {
    pub fn note(&mut self, outcome: &ObjectOutcome) {
        if matches!(outcome.action, Action::Skipped | Action::Failed) {
            self.0.add(&outcome.subject.key());
        }
    }

    /// Returns whether it is one of them.
    pub fn contains(&self, live: &Live) -> bool {
        self.0.contains(&live.key)
    }

    /// Returns whether it is kept, because it is one of them or contains one.
    pub fn keeps(&self, live: &Live) -> bool {
        self.contains(live) || self.kept_object_in(live).is_some()
    }

    /// Returns one of them that would be lost with this namespace or CRD.
    pub fn kept_object_in(&self, container: &Live) -> Option<&ObjectKey> {
        self.0.kept_object_in(container)
    }

    /// Returns the outcome of such a namespace or CRD, which is kept.
    pub fn outcome(&self, live: &Live) -> Option<ObjectOutcome> {
        let reason = SkipReason::HoldsKept {
            kept: self.kept_object_in(live)?.clone(),
        };
        let subject = Subject::new(&live.key, &live.resource, Some(&live.uid));
        Some(ObjectOutcome::with_reason(
            subject,
            Action::Skipped,
            reason.to_string(),
        ))
    }
}

impl DeleteContext<'_> {
    /// Deletes the object as it was read; one that changed since is judged again.
    pub async fn delete(&self, live: &Live) -> MemberReply {
        let mut current = live.clone();
        for _ in 0..JUDGEMENTS {
            current = match self.delete_unless_changed(live, &current).await {
                DeleteAttempt::Ended(reply) => return *reply,
                DeleteAttempt::Changed(fresh) => *fresh,
            };
            // Its contents may have changed, too.
            if let Some(outcome) = self.keep_filled(iter::once(&current)).await.pop() {
                return reply_of(outcome);
            }
        }
        let error = "cannot be deleted: too many conflicting updates; run the same command again";
        failed(
            Subject::new(&live.key, &live.resource, Some(&live.uid)),
            error.to_owned(),
        )
    }

    /// Deletes an object that was to be deleted as `planned`, if it still is as it was read last. If it is not,
    /// nothing is deleted, and the caller judges it again.
    pub async fn delete_unless_changed(&self, planned: &Live, current: &Live) -> DeleteAttempt {
        let subject = || Subject::new(&planned.key, &planned.resource, Some(&planned.uid));
        let ended = |outcome| DeleteAttempt::Ended(Box::new(reply_of(outcome)));
        let done = || ended(ObjectOutcome::new(subject(), self.done));
        let gone = || ended(ObjectOutcome::with_reason(subject(), self.done, GONE_ALREADY));
        let failed = |error: &ApiError| {
            let message = error.kind.of_object().after_words(CANNOT_BE_DELETED);
            DeleteAttempt::Ended(Box::new(MemberReply {
                webhook: UnreachableWebhook::from_error(error),
                ..failed(subject(), message)
            }))
        };
        if let Some(outcome) = self.kept(planned, current) {
            return ended(outcome);
        }
        let request = delete_request_for(current, DryRun::None, self.purpose);
        let earlier_attempts = match self.server.send(request).await {
            Ok(reply) if is_of(&reply, current) => {
                return ended(ObjectOutcome {
                    remainder: remainder(&reply, current),
                    ..ObjectOutcome::new(subject(), self.done)
                });
            }
            Err(error) if error.is_missing_object() && error.earlier_attempts.may_have_succeeded() => {
                return done();
            }
            Err(error) if error.is_missing_object() => return gone(),
            Err(error) if error.is(StatusCode::CONFLICT) => error.earlier_attempts,
            Err(error) => return failed(&error),
            // The answer does not mention it.
            Ok(_) => EarlierAttempts::MayHaveSucceeded,
        };
        let reread = match self.reread(current).await {
            Ok(Some(reread)) => reread,
            Ok(None) => return gone(),
            Err(error) => return failed(&error),
        };
        // It is being deleted, and finalizers hold it. The delete itself has changed it.
        let is_going = reread.live.presence == Presence::Terminating && reread.live.uid == planned.uid;
        if is_going && earlier_attempts.may_have_succeeded() {
            return done();
        }
        if !reread.is_admitted {
            return ended(ObjectOutcome::failed(
                subject(),
                format!("{CANNOT_BE_DELETED}it changed since the plan"),
            ));
        }
        DeleteAttempt::Changed(Box::new(reread.live))
    }

    /// Returns the outcome of an object that was to be deleted as `planned` and is kept as it is now;
    /// `None` if it is to be deleted.
    fn kept(&self, planned: &Live, current: &Live) -> Option<ObjectOutcome> {
        let subject = Subject::new(&planned.key, &planned.resource, Some(&planned.uid));
        if self.purpose != Purpose::Removal {
            let obstacle = self.judge.obstacle_to_recreation(current);
            let is_other = current.uid != planned.uid;
            let replaced = is_other.then(|| "it was replaced during the run".to_owned());
            let reason = obstacle.map(|obstacle| obstacle.to_string()).or(replaced)?;
            return Some(ObjectOutcome::with_reason(subject, Action::Skipped, reason));
        }
        match self.judge.judge(current) {
            Judgement::Prune if current.uid == planned.uid => None,
            Judgement::Prune | Judgement::Ignore => Some(ObjectOutcome::with_reason(
                subject,
                Action::Skipped,
                "it changed during the run and is no longer in this set",
            )),
            Judgement::Skip(reason) => Some(ObjectOutcome::with_reason(
                subject,
                Action::Skipped,
                reason.to_string(),
            )),
            // This owner reference should have been removed, and was not.
            Judgement::Refuse(Refusal::OwnsDependents {
                dependents,
                keep_annotations,
                ..
            }) => Some(ObjectOutcome::failed(
                subject,
                format!(
                    "not deleted: the garbage collector would then delete {}",
                    list_with_keep_annotations(&dependents, &keep_annotations)
                ),
            )),
            Judgement::Refuse(refusal) => Some(ObjectOutcome::failed(
                subject,
                format!("kept, because it changed since the plan: {refusal}"),
            )),
        }
    }

    /// Reads a changed object again, as a whole: metadata alone does not show which kind a CRD defines, or whether a
    /// `StatefulSet` deletes its `PersistentVolumeClaims`. `None` if it is gone.
    async fn reread(&self, live: &Live) -> Result<Option<Reread>, ApiError> {
        let object = reread_as(self.server, &live.key, &live.resource, WHOLE_OBJECTS).await?;
        Ok(object.and_then(|object| {
            Some(Reread {
                live: Live::from_object(&object, &live.resource)?,
                is_admitted: self.preconditions.admit(&live.key, &object),
            })
        }))
    }
}

/// Returns what the answer to a DELETE shows: a status if the object is gone, else the object. The server itself adds a
/// finalizer to a CRD, and removes it a moment later.
fn remainder(reply: &Reply, live: &Live) -> Remainder {
    let answer: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let finalizers = answer["metadata"]["finalizers"].as_array();
    if answer["kind"] == "Status" {
        Remainder::Nothing
    } else if live.defines.is_none() && finalizers.is_some_and(|finalizers| !finalizers.is_empty()) {
        Remainder::HeldByFinalizers
    } else {
        Remainder::Unknown
    }
}

/// Returns the outcome of an object that is not deleted.
pub fn untouched(live: &Live) -> ObjectOutcome {
    let subject = Subject::new(&live.key, &live.resource, Some(&live.uid));
    ObjectOutcome::new(subject, Action::Skipped)
}

/// Returns the request that deletes exactly the object that was read, not another one with its name.
pub fn delete_request(live: &Live, dry_run: DryRun) -> ApiRequest {
    delete_request_for(live, dry_run, Purpose::Removal)
}

fn delete_request_for(live: &Live, dry_run: DryRun, purpose: Purpose) -> ApiRequest {
    let path = live.resource.path_of(&live.key);
    // A DELETE that has a body ignores its query, so this cannot be a parameter.
    let dry_run: &[&str] = match dry_run {
        DryRun::Server => &["All"],
        DryRun::None | DryRun::Client => &[],
    };
    let options = json!({
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": purpose.propagation(),
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
    }
}

/// The end of one attempt to delete an object.
pub enum DeleteAttempt {
    /// It was deleted, or is kept, or its webhook cannot be called yet.
    Ended(Box<MemberReply>),
    /// Nothing was deleted: it has changed since it was read, and is like this now.
    Changed(Box<Live>),
}

/// An object that changed since it was read.
struct Reread {
    live: Live,
    /// `true` if the preconditions of the plan allow its deletion.
    is_admitted: bool,
}
