//! Applies one member by server-side apply, and returns the outcome.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::{Value, json};

use crate::cluster::apiserver::{ApiError, ApiRequest, EarlierAttempts, Patch, Reply, UnreachableWebhook};
use crate::compare::ownership;
use crate::event::{Action, ObjectOutcome, Subject};
use crate::execute::Execution;
use crate::execute::kinds::Kinds;
use crate::execute::label_in_answer::label_error_in;
use crate::execute::members::apply_as_read::{self, AppliedAs, Expected, Unapplied, as_new};
use crate::execute::members::apply_with_live_fields::Sent;
use crate::execute::members::recreate::BegunRecreation;
use crate::manifest::desired::DesiredObject;
use crate::model::message::Message;
use crate::model::object::Object;
use crate::model::write_settings::{Conflicts, DryRun, WriteSettings};
use crate::plan::{Apply, LiveMembership, Precondition, Refusal, Seen, Unowned};
use crate::read::{self, METADATA, WHOLE_OBJECTS};

pub use crate::execute::members::reply::{MemberReply, failed, written};

impl Execution<'_> {
    /// Applies a member, or creates it if this run has `begun` to recreate it.
    pub async fn apply_member(
        &self,
        apply: &Apply,
        begun: Option<BegunRecreation>,
        kinds: &Kinds,
    ) -> MemberReply {
        let object = &self.desired.members[apply.index];
        let subject = Subject::new(&object.key, &object.resource, apply.live_membership.uid());
        let mut reply = match (begun, &apply.live_membership) {
            (Some(begun), _) => self.finish_recreation(object, subject, begun, kinds).await,
            (None, LiveMembership::Terminating) => self.apply_terminating(object, subject, kinds).await,
            (None, membership) => self.send_member(object, subject, membership, kinds).await,
        };
        reply.outcome.source = Some(object.position.clone());
        let mut seen = BTreeSet::new();
        reply.warnings.retain(|warning| seen.insert(warning.clone()));
        if reply.outcome.action != Action::Recreated && !reply.outcome.taken_in {
            self.give_reason(apply, &mut reply.outcome);
        }
        reply
    }

    /// Gives the outcome of a changed member the reason that the plan has for it.
    pub fn give_reason(&self, apply: &Apply, outcome: &mut ObjectOutcome) {
        let LiveMembership::Member {
            reason: Some(reason), ..
        } = &apply.live_membership
        else {
            return;
        };
        outcome.reason = match self.recreation_note(&self.desired.members[apply.index]) {
            Some(note) => format!("{reason}; {note}"),
            None => reason.to_string(),
        };
    }

    /// Handles a member that is being deleted: an earlier run may have deleted it for its recreation.
    async fn apply_terminating(
        &self,
        object: &DesiredObject,
        subject: Subject,
        kinds: &Kinds,
    ) -> MemberReply {
        if !self.awaits_deletion(object) {
            return failed(subject, self.terminating(object));
        }
        self.create_again(object, subject, None, kinds).await
    }

    async fn send_member(
        &self,
        object: &DesiredObject,
        subject: Subject,
        live_membership: &LiveMembership,
        kinds: &Kinds,
    ) -> MemberReply {
        if *live_membership == LiveMembership::OfAnotherSet
            && let Some(error) = self.predict_label_error(object, live_membership).await
        {
            return failed(subject, error);
        }
        let expected = self.expected(object, live_membership);
        match self.apply_as_read(object, live_membership, expected, kinds).await {
            Ok(applied) => {
                self.interpret_reply(object, subject, live_membership, &applied, kinds)
                    .await
            }
            Err(Unapplied::Failed(error)) if self.may_recreate(object, live_membership, &error) => {
                self.recreate(object, subject, &error, kinds).await
            }
            Err(unapplied) => self.explain_failure(object, subject, unapplied).await,
        }
    }

    /// Returns the error of an object that would leave its set and, by a label that the server changes, join none.
    async fn predict_label_error(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
    ) -> Option<Message> {
        let writing = WriteSettings {
            dry_run: DryRun::Server,
            ..self.writing.clone()
        };
        let execution = Execution {
            writing: &writing,
            ..*self
        };
        let request = execution.member_request(object, live_membership, None);
        // The apply reports any other failure.
        let reply = self.server.send(request).await.ok()?;
        label_error_in(&reply, object.part_of().as_deref())
    }

    /// Interprets the answer to a successful apply.
    pub async fn interpret_reply(
        &self,
        object: &DesiredObject,
        subject: Subject,
        planned_membership: &LiveMembership,
        applied: &AppliedAs,
        kinds: &Kinds,
    ) -> MemberReply {
        let AppliedAs {
            reply, membership, ..
        } = applied;
        // What a member was by the plan shows what this run has changed.
        let live_membership = match membership {
            LiveMembership::Member { .. } => planned_membership,
            judged => judged,
        };
        let planned = self.plan.preconditions.for_object(&object.key);
        let is_surprise = planned == Precondition::Absent && !self.has_made(reply, live_membership);
        let mut reply_of = self.judge_reply(object, reply, subject, live_membership);
        if let Some(redefined) = kinds.redefined(&object.key.group_kind)
            && redefined.was_served_by_former(object, reply, &self.writing.field_manager)
            && reply_of.outcome.error.is_none()
        {
            reply_of.outcome.action = Action::Failed;
            reply_of.outcome.error = Some(FORMER_SCHEMA.into());
        }
        // The metadata do not show which run of a field manager created an object within the last
        // second.
        if reply.status != StatusCode::CREATED
            && reply_of.outcome.action != Action::Unchanged
            && reply_of.outcome.error.is_none()
        {
            self.judge_existing(object, applied, &mut reply_of).await;
        }
        if is_surprise {
            reply_of
                .warnings
                .push("already exists: created during the run".to_owned());
        }
        reply_of
    }

    /// Explains why a member was not applied.
    pub async fn explain_failure(
        &self,
        object: &DesiredObject,
        subject: Subject,
        unapplied: Unapplied,
    ) -> MemberReply {
        let preconditions = &self.plan.preconditions;
        match unapplied {
            Unapplied::Exists if preconditions.require_unchanged() => failed(subject, OVERTAKEN.to_owned()),
            Unapplied::Exists if self.policy.unowned == Unowned::Shown => failed(
                subject,
                Message::new("not applied: it was created outside the set after the question")
                    .with_hint("run the same command again"),
            ),
            Unapplied::Exists => {
                let hint = Refusal::UNOWNED_HINT;
                failed(subject, Message::new(apply_as_read::EXISTS).with_hint(hint))
            }
            Unapplied::Taken(message) => failed(subject, message),
            Unapplied::Failed(error) if preconditions.require_unchanged() && is_passing_conflict(&error) => {
                failed(subject, OVERTAKEN.to_owned())
            }
            Unapplied::Failed(error) => MemberReply {
                webhook: UnreachableWebhook::from_error(&error),
                ..failed(subject, self.refusal(object, &error).await)
            },
        }
    }

    /// Applies the object, and takes over the fields of client-side apply. The answer is that of the
    /// first apply that succeeded: it shows what existed before.
    pub async fn apply_and_migrate(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        expected: &Expected,
    ) -> Result<Reply, ApiError> {
        if *expected == Expected::Absent {
            // No other manager owns fields of an object that this creates.
            let request = self.member_request(&as_new(object), live_membership, None);
            return self.server.send(request).await;
        }
        let is_known_to_need_it = match live_membership {
            LiveMembership::Member {
                client_side_apply, ..
            } => *client_side_apply || self.writing.former_manager.is_some(),
            LiveMembership::NotAMember | LiveMembership::OfAnotherSet | LiveMembership::Terminating => false,
        };
        let mut lock = match expected {
            Expected::Version(version) => Some(version.clone()),
            Expected::Any | Expected::Absent => {
                self.plan.preconditions.for_object(&object.key).lock().cloned()
            }
        };
        if is_known_to_need_it {
            self.migrate_locked(object, live_membership, &mut lock).await?;
        }
        let reply = match self
            .send_in_usable_versions(object, live_membership, &mut lock)
            .await
        {
            Err(error) if self.is_conflict_with_former_owner(&error, live_membership) => {
                self.migrate_locked(object, live_membership, &mut lock).await?;
                return self.send_settled(object, live_membership, lock.as_ref()).await;
            }
            // The object may be invalid together with the fields of its former owner. They are migrated
            // only if it is valid without them.
            Err(error)
                if !is_known_to_need_it
                    && self
                        .after_refusal(object, live_membership, &mut None, &error)
                        .await
                        .is_some() =>
            {
                self.migrate_locked(object, live_membership, &mut lock).await?;
                return self.send_settled(object, live_membership, lock.as_ref()).await;
            }
            reply => reply?,
        };
        let written = reply.json_or_null();
        // No other manager owns fields of an object that this apply has just created.
        if reply.status != StatusCode::CREATED && ownership::has_client_side_apply(&written["metadata"]) {
            self.migrate(object, |_| true).await?;
            let lock = self.plan.preconditions.after_write(&written);
            self.send_settled(object, live_membership, lock.as_ref()).await?;
        }
        Ok(reply)
    }

    /// Sends an apply, and again after a conflict that concerns no field. Two runs that create the same object at once
    /// get such a conflict, because the object exists then. So does an apply over a parent whose record its own run has
    /// written since it was read. An object of a saved plan is sent again only as long as it is unchanged. One that is
    /// applied over the version that was read is not sent again.
    pub(super) async fn send_settled(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        lock: Option<&Seen>,
    ) -> Result<Reply, ApiError> {
        let is_read = self.read_version(lock).is_some();
        let mut lock = lock.cloned();
        let mut earlier_attempts = EarlierAttempts::NoEffect;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let sent = self
                .sent(object, live_membership, lock.as_ref(), attempts)
                .await?;
            let request = match &sent {
                Sent::Manifest => self.member_request(object, live_membership, lock.as_ref()),
                Sent::New(object) => self.member_request(object, live_membership, None),
                Sent::Over(with_live) => {
                    let lock = lock.as_ref().unwrap_or(&with_live.seen);
                    self.member_request(&with_live.object, live_membership, Some(lock))
                }
            };
            let error = match self.server.send(request).await {
                // The caller judges it again.
                Err(error) if is_read => return Err(error),
                Err(error)
                    if attempts < ATTEMPTS
                        && (is_passing_conflict(&error) || self.is_outdated(object, &sent, &error).await) =>
                {
                    error
                }
                Ok(reply) if matches!(sent, Sent::Over(_)) => {
                    return Ok(reply.after(earlier_attempts));
                }
                reply => return reply,
            };
            earlier_attempts = earlier_attempts.or(error.earlier_attempts);
            let preconditions = &self.plan.preconditions;
            if let Some(seen) = lock.as_ref().filter(|_| preconditions.require_unchanged()) {
                let now = read::object(self.server, &object.resource, &object.key).await?;
                let mut next_lock = preconditions.unchanged_since(seen, now.as_ref());
                if next_lock.is_none() && error.earlier_attempts.may_have_succeeded() {
                    next_lock = self.own_write(object, live_membership, seen, now.as_ref()).await;
                }
                if next_lock.is_none() {
                    return Err(error);
                }
                lock = next_lock;
            }
        }
    }

    /// Returns the live object as it is `now` if an attempt of this run has made it from what was `seen`,
    /// and the answer was lost: a dry run of the same apply changes nothing then.
    async fn own_write(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        seen: &Seen,
        now: Option<&Value>,
    ) -> Option<Seen> {
        let preconditions = &self.plan.preconditions;
        let now = preconditions
            .after_write(now?)
            .filter(|now| now.uid == seen.uid)?;
        let dry = WriteSettings {
            dry_run: DryRun::Server,
            ..self.writing.clone()
        };
        let execution = Execution {
            writing: &dry,
            ..*self
        };
        let request = execution.member_request(object, live_membership, Some(&now));
        let answer = self.server.send(request).await.ok()?;
        let would = preconditions.after_write(&answer.json().ok()?)?;
        (would.digest == now.digest).then_some(now)
    }

    /// The apply of a member; with a lock, it fails where the object is another one.
    pub fn member_request(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        lock: Option<&Seen>,
    ) -> ApiRequest {
        let mut parameters = vec![
            ("fieldManager", self.writing.field_manager.as_str()),
            ("fieldValidation", self.writing.validation.parameter()),
        ];
        // Taking an object from another set takes its fields, too: the part-of
        // label is one of them.
        if self.writing.conflicts == Conflicts::Forced || *live_membership == LiveMembership::OfAnotherSet {
            parameters.push(("force", "true"));
        }
        parameters.extend(self.writing.dry_run.parameter());
        let accept = match self.writing.dry_run {
            // The next write of the object has the result of this one as its precondition.
            DryRun::None if !self.plan.preconditions.require_unchanged() => METADATA,
            DryRun::None | DryRun::Client | DryRun::Server => WHOLE_OBJECTS,
        };
        let path = object.resource.path_of(&object.key);
        let body = match lock {
            None => object.object.body(),
            Some(seen) => with_preconditions(object, seen).body(),
        };
        ApiRequest::patch(&path, &parameters, accept, Patch::Apply, body)
    }

    /// Returns whether this apply created the object. If the answer to an earlier attempt was lost, that to a later one
    /// does not show it, but the owner of the fields does.
    pub(super) fn has_made(&self, reply: &Reply, live_membership: &LiveMembership) -> bool {
        if reply.status == StatusCode::CREATED {
            return true;
        }
        let was_absent = matches!(live_membership, LiveMembership::NotAMember);
        if !was_absent || !reply.earlier_attempts.may_have_succeeded() {
            return false;
        }
        let object = reply.json_or_null();
        ownership::was_created_by(&object["metadata"], &self.writing.field_manager)
    }
}

/// Returns the object with the precondition that the live one is unchanged.
pub fn with_preconditions(object: &DesiredObject, seen: &Seen) -> Object {
    let mut metadata = object.object.metadata();
    metadata.insert("uid".to_owned(), json!(seen.uid));
    metadata.insert("resourceVersion".to_owned(), json!(seen.resource_version));
    object.object.with_metadata(&metadata)
}

/// Error for an object that has changed since a saved plan.
pub const OVERTAKEN: &str = "not applied: it changed since the plan";

/// Attempts to apply an object that another client writes at the same time.
pub const ATTEMPTS: u32 = 5;

pub fn is_passing_conflict(error: &ApiError) -> bool {
    error.is(StatusCode::CONFLICT) && error.status().is_some_and(|status| !status.is_field_conflict())
}

pub const TERMINATING: &str = "it or its namespace is being deleted; run again when that is gone";

/// Error for an object that the server validated by a schema that this run has replaced.
const FORMER_SCHEMA: &str = "the server still uses the old schema of its CustomResourceDefinition after 30 s; run the same command again";
