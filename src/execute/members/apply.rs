//! Applies one member by server-side apply, and returns the outcome.

use std::collections::BTreeSet;

use http::StatusCode;

use crate::cluster::apiserver::{ApiError, Reply, UnreachableWebhook};
use crate::compare::ownership;
use crate::event::{Action, ObjectOutcome, Subject};
use crate::execute::Execution;
use crate::execute::label_in_answer::label_error_in;
use crate::execute::members::apply_as_read::{
    self, AppliedAs, Expected, Unapplied, with_version_of_no_object,
};
use crate::execute::members::message_of_conflict::failed_apply_message;
use crate::execute::members::recreate::BegunRecreation;
use crate::execute::members::send_apply::is_version_conflict;
use crate::execute::unusable_versions::is_refusal_of_unusable_version;
use crate::manifest::desired::DesiredObject;
use crate::model::message::Message;
use crate::plan::{Apply, LiveMembership, Refusal, Unowned};

pub use crate::execute::members::reply::MemberReply;

/// Error for an object that has changed since a saved plan was made.
pub const CHANGED_SINCE_PLAN: &str = "not applied: it changed since the plan";

/// Error for an object that is being deleted, or whose namespace is.
pub const TERMINATING: &str = "it or its namespace is being deleted; run again when that is gone";

/// The number of attempts to apply an object that another client writes at the same time.
pub const MAX_ATTEMPTS: u32 = 5;

impl Execution<'_> {
    /// Applies a member. If this run has `begun` to recreate the object, it is deleted already, and created now.
    pub async fn apply_member(&self, apply: &Apply, begun: Option<BegunRecreation>) -> MemberReply {
        let object = &self.desired.members[apply.index];
        let subject = self.subject_of(apply);
        let mut reply = match (begun, &apply.live_membership) {
            (Some(begun), _) => self.create_after_own_delete(object, subject, begun).await,
            (None, LiveMembership::Terminating) => self.recreate_terminating_or_fail(object, subject).await,
            (None, membership) => self.apply_or_recreate(object, subject, membership).await,
        };
        reply.outcome.source = Some(object.position.clone());
        // An object may be sent several times, and the server repeats its warnings.
        let mut seen = BTreeSet::new();
        reply.warnings.retain(|warning| seen.insert(warning.clone()));
        if reply.outcome.action != Action::Recreated && !reply.outcome.taken_in {
            self.set_reason_from_plan(apply, &mut reply.outcome);
        }
        reply
    }

    /// Gives the outcome of a changed member the reason for which the plan applies it.
    pub fn set_reason_from_plan(&self, apply: &Apply, outcome: &mut ObjectOutcome) {
        let LiveMembership::Member {
            reason: Some(reason), ..
        } = &apply.live_membership
        else {
            return;
        };
        outcome.reason = match self.client_dry_run_recreation_note(&self.desired.members[apply.index]) {
            Some(note) => format!("{reason}; {note}"),
            None => reason.to_string(),
        };
    }

    /// Applies a member that is being deleted. If the user chose to recreate it, the run waits until it is gone and
    /// creates it, since an earlier run may have deleted it to recreate it. Otherwise, the member fails.
    async fn recreate_terminating_or_fail(&self, object: &DesiredObject, subject: Subject) -> MemberReply {
        if !self.waits_to_recreate_terminating(object) {
            return MemberReply::failed(subject, self.terminating_error(object));
        }
        self.wait_until_gone_and_create(object, subject, None).await
    }

    /// Applies a member that is not being deleted, and recreates it if the server refuses the update and the user chose
    /// that.
    async fn apply_or_recreate(
        &self,
        object: &DesiredObject,
        subject: Subject,
        live_membership: &LiveMembership,
    ) -> MemberReply {
        if matches!(live_membership, LiveMembership::OfAnotherSet { .. })
            && let Some(error) = self.predict_label_error(object).await
        {
            return MemberReply::failed(subject, error);
        }
        let expected = self.expectation_for(object, live_membership);
        match self.apply_as_read(object, live_membership, expected).await {
            Ok(applied) => {
                self.reply_to_apply(object, subject, live_membership, &applied)
                    .await
            }
            Err(Unapplied::Failed(error)) if self.should_recreate_after(object, live_membership, &error) => {
                self.recreate(object, subject, &error).await
            }
            Err(unapplied) => self.reply_to_failed_apply(object, subject, unapplied).await,
        }
    }

    /// Asks by a dry run whether the server would change the part-of label of an object of another set. The apply would
    /// take the object from that set, and with a changed label, it would be a member of none.
    async fn predict_label_error(&self, object: &DesiredObject) -> Option<Message> {
        // Only the label matters here, and not the conflicts. If the dry run fails, so does the apply, which reports
        // the failure.
        let reply = self.server.send(self.forced_apply_dry_run(object)).await.ok()?;
        label_error_in(&reply, object.part_of().as_deref())
    }

    /// Makes the reply to a successful apply, from its answer and from what the object was before.
    pub async fn reply_to_apply(
        &self,
        object: &DesiredObject,
        subject: Subject,
        planned_membership: &LiveMembership,
        applied: &AppliedAs,
    ) -> MemberReply {
        let AppliedAs {
            reply: answer,
            membership,
            ..
        } = applied;
        // A member is compared with its version in the plan: an attempt of this run may have changed the version since,
        // and the object is reported as configured then.
        let live_membership = match membership {
            LiveMembership::Member { .. } => planned_membership,
            judged => judged,
        };
        let mut reply = self.reply_to_successful_apply(object, answer, subject, live_membership);
        // The status of the answer decides, not the action `Created`: `reply_shows_creation` also derives that from the
        // owner of the fields, and an object that another run has created within the last second looks the same.
        if answer.status != StatusCode::CREATED
            && reply.outcome.action != Action::Unchanged
            && reply.outcome.error.is_none()
        {
            self.correct_outcome_by_former_membership(object, applied, &mut reply)
                .await;
        }
        reply
    }

    /// Explains why a member was not applied.
    pub async fn reply_to_failed_apply(
        &self,
        object: &DesiredObject,
        subject: Subject,
        unapplied: Unapplied,
    ) -> MemberReply {
        let preconditions = &self.plan.preconditions;
        match unapplied {
            Unapplied::Exists if preconditions.is_of_saved_plan() => {
                MemberReply::failed(subject, CHANGED_SINCE_PLAN.to_owned())
            }
            Unapplied::Exists if self.policy.unowned == Unowned::Shown => MemberReply::failed(
                subject,
                Message::new("not applied: it was created outside the set after the question")
                    .with_hint("run the same command again"),
            ),
            Unapplied::Exists => {
                let hint = Refusal::UNOWNED_HINT;
                MemberReply::failed(
                    subject,
                    Message::new(apply_as_read::CREATED_OUTSIDE_SET).with_hint(hint),
                )
            }
            Unapplied::Taken(message) => MemberReply::failed(subject, message),
            Unapplied::Failed(error) if preconditions.is_of_saved_plan() && is_version_conflict(&error) => {
                MemberReply::failed(subject, CHANGED_SINCE_PLAN.to_owned())
            }
            Unapplied::Failed(error) => MemberReply {
                webhook: UnreachableWebhook::from_error(&error),
                ..MemberReply::failed(subject, failed_apply_message(self.server, object, &error).await)
            },
        }
    }

    /// Applies an object, and moves the fields of client-side apply to our field manager. If the plan knows of such
    /// fields, or if they prevent the apply, they move before the apply; otherwise, they move after it, and the object
    /// is applied again. Versions in managed fields that prevent the apply are replaced before it, too. Returns the
    /// answer to the first apply that succeeded, which shows whether the object existed.
    pub async fn apply_and_migrate_managed_fields(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        expected: &Expected,
    ) -> Result<Reply, ApiError> {
        if *expected == Expected::Absent {
            // An apply with this expectation creates the object or fails, so there are no fields to take over.
            let object = with_version_of_no_object(object);
            let request = self.apply_request(&object, None);
            return self.server.send(request).await;
        }
        let has_to_migrate_first = matches!(
            live_membership,
            LiveMembership::Member { client_side_apply, .. }
                if *client_side_apply || self.writing.former_manager.is_some()
        );
        let mut lock = match expected {
            Expected::Version(version) => Some(version.clone()),
            Expected::Any | Expected::Absent => None,
        };
        if has_to_migrate_first {
            self.rewrite_and_renew_lock(object, live_membership, &mut lock)
                .await?;
        }
        let reply = match self
            .send_with_live_fields(object, live_membership, lock.as_ref())
            .await
        {
            // The object may also be invalid only because it keeps fields of its former owner. If a dry run shows that
            // it is valid without them, they are migrated.
            Err(error)
                if is_refusal_of_unusable_version(&error)
                    || self.is_resolved_by_migration(&error, live_membership)
                    || (!has_to_migrate_first
                        && self
                            .predict_migration_after_refusal(object, live_membership, &mut None, &error)
                            .await
                            .is_some()) =>
            {
                self.rewrite_and_renew_lock(object, live_membership, &mut lock)
                    .await?;
                self.send_with_live_fields(object, live_membership, lock.as_ref())
                    .await?
            }
            reply => reply?,
        };
        let written = reply.json_or_null();
        // An object that this apply has just created has no fields of other managers.
        if reply.status != StatusCode::CREATED
            && ownership::has_fields_of_client_side_apply(&written["metadata"])
        {
            self.migrate_and_apply_again(object, live_membership, &written)
                .await?;
        }
        Ok(reply)
    }

    /// Returns whether the apply with this answer created the object. If an earlier attempt created it and the answer
    /// was lost, the status of the later answer is not `CREATED`; then the owner of the object's fields shows it.
    pub(super) fn reply_shows_creation(&self, reply: &Reply, live_membership: &LiveMembership) -> bool {
        if reply.status == StatusCode::CREATED {
            return true;
        }
        let was_absent = matches!(live_membership, LiveMembership::NotAMember);
        if !was_absent || !reply.earlier_attempts.may_have_succeeded() {
            return false;
        }
        let object = reply.json_or_null();
        ownership::was_created_and_not_changed_by(&object["metadata"], &self.writing.field_manager)
    }
}
