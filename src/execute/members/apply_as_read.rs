//! Applies members on the condition that they are as the run has read them: they have the same version, or still do not
//! exist. If an object has changed, it is read, judged again, and applied accordingly: it may have joined another set,
//! or be another object with the same name.
//!
//! The runs of all sets use the same field manager, so without the condition, an apply would take an object from
//! another set without a conflict and without a report. The condition is part of the body, so it costs no request
//! unless the object has changed.
//!
//! Server-side apply has no precondition that an object does not exist. But if the body has a resourceVersion, the API
//! server compares it with that of the live object, and ignores it if there is no live object. So an apply with a
//! version that no object has creates the object, or is answered 409 and changes nothing, even if it is forced.

use http::StatusCode;
use serde_json::{Value, json};

use crate::cluster::apiserver::{ApiError, EarlierAttempts, Reply};
use crate::compare::ownership::KUBECTL_FIELD_MANAGER;
use crate::execute::Execution;
use crate::execute::members::apply::MAX_ATTEMPTS;
use crate::execute::members::exported_fields;
use crate::execute::members::send_apply::is_version_conflict;
use crate::execute::reread::reread;
use crate::execute::unusable_versions::is_refusal_of_unusable_version;
use crate::manifest::desired::DesiredObject;
use crate::model::live::Live;
use crate::model::message::Message;
use crate::plan::{LiveMembership, Risk, Seen, Unowned};
use crate::read;

/// A resourceVersion that no object has: etcd begins with revision 1, and its first write makes 2.
const VERSION_OF_NO_OBJECT: &str = "1";

/// Error for an object that exists and that `--only-new-or-owned` does not take in.
pub const CREATED_OUTSIDE_SET: &str =
    "not applied: it was created outside the set during the run (--only-new-or-owned)";

/// The state in which this run expects an object to be when it applies the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// The run expects nothing.
    Any,
    /// The object has the version that this run has read. In a run of a saved plan: it has the content that the plan
    /// knows.
    Version(Seen),
    /// The object does not exist.
    Absent,
}

/// The answer to an apply, with the membership and the expectation that the apply was sent with.
pub struct AppliedAs {
    pub reply: Reply,
    /// The membership of the object by the latest judgement.
    pub membership: LiveMembership,
    /// The expectation of the request that was answered.
    pub expected: Expected,
}

/// The reason why a member was not applied.
pub enum Unapplied {
    /// A request failed.
    Failed(ApiError),
    /// An object exists that the set may not take in.
    Exists,
    /// An object exists that is a member of another set.
    Taken(Message),
}

impl Execution<'_> {
    /// Returns the expectation of the first apply of an object, by its membership in the plan.
    pub(super) fn expectation_for(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
    ) -> Expected {
        let planned = self.plan.preconditions.seen_object(&object.key);
        let exported = exported_fields::exported_fields_in(object);
        match (live_membership, planned) {
            // A manifest from `kubectl get` has the version and UID of the object that it was exported from. The server
            // checks these, in a dry run as in a run, so they are not replaced.
            _ if exported.contains(&"resourceVersion") => Expected::Any,
            (_, Some(seen)) => Expected::Version(seen.clone()),
            (
                LiveMembership::Member {
                    uid,
                    resource_version,
                    ..
                }
                | LiveMembership::OfAnotherSet {
                    uid,
                    resource_version,
                },
                None,
            ) => self.expect_version_if_sendable(object, uid, resource_version),
            (LiveMembership::NotAMember, None) if exported.is_empty() => Expected::Absent,
            (LiveMembership::NotAMember | LiveMembership::Terminating, None) => Expected::Any,
        }
    }

    /// Returns whether the body of an apply may carry the version that this run has read. It may not in a saved plan,
    /// which has versions of its own, nor for kubectl's field manager: the server would copy the version into the
    /// annotation of client-side apply.
    pub(super) fn may_send_version_as_read(&self) -> bool {
        !self.plan.preconditions.is_of_saved_plan() && self.writing.field_manager != KUBECTL_FIELD_MANAGER
    }

    /// Returns the expectation that the object still has this version; `Any` if the body of an apply may not carry one,
    /// or has one from the manifest.
    fn expect_version_if_sendable(
        &self,
        object: &DesiredObject,
        uid: &str,
        resource_version: &str,
    ) -> Expected {
        if !self.may_send_version_as_read() || object.object.metadata().contains_key("resourceVersion") {
            return Expected::Any;
        }
        Expected::Version(Seen::for_version(uid, resource_version))
    }

    /// Returns the state that the next apply of an object expects, after this answer to a write of this run; `None` if
    /// the body of an apply may not carry a version.
    pub fn seen_after_write(&self, written: &Value) -> Option<Seen> {
        if self.may_send_version_as_read() {
            Some(Seen::from_uid_and_version(written))
        } else {
            self.plan.preconditions.seen_after_write(written)
        }
    }

    /// Applies a member if it is as `expected`. If it is not, it is judged again and applied accordingly. A run of a
    /// saved plan applies it only if it still has the content that the plan knows.
    ///
    /// A controller may write the status of the object all the time, and change its version by that. So the last
    /// attempt expects no version, except in a run of a saved plan; `correct_outcome_by_former_membership` then reads
    /// what the object was before that attempt.
    pub async fn apply_as_read(
        &self,
        object: &DesiredObject,
        planned: &LiveMembership,
        mut expected: Expected,
    ) -> Result<AppliedAs, Unapplied> {
        let mut membership = planned.clone();
        let mut earlier_attempts = EarlierAttempts::NoEffect;
        let mut attempts = 0;
        loop {
            attempts += 1;
            if attempts == MAX_ATTEMPTS
                && matches!(expected, Expected::Version(_))
                && !self.plan.preconditions.is_of_saved_plan()
            {
                expected = Expected::Any;
            }
            let answer = self
                .apply_until_served_with_new_schema(object, &membership, &expected)
                .await;
            let error = match answer {
                Err(error)
                    if attempts < MAX_ATTEMPTS
                        && (is_version_conflict(&error)
                            || expected != Expected::Any && may_mean_object_changed(&error)) =>
                {
                    error
                }
                answer => {
                    let reply = answer.map_err(Unapplied::Failed)?;
                    return Ok(AppliedAs {
                        reply: reply.add_earlier_attempts(earlier_attempts),
                        membership,
                        expected,
                    });
                }
            };
            earlier_attempts = earlier_attempts.combine_with(error.earlier_attempts);
            let former = expected.clone();
            if let (Expected::Version(seen), true) = (&former, self.plan.preconditions.is_of_saved_plan()) {
                expected = match self.read_if_as_planned(object, seen).await? {
                    Some(seen) => Expected::Version(seen),
                    None => return Err(Unapplied::Failed(error)),
                };
            } else {
                let found = reread(self.server, &object.key, &object.resource).await;
                let Some(live) = found.map_err(Unapplied::Failed)? else {
                    (membership, expected) = (LiveMembership::NotAMember, Expected::Absent);
                    continue;
                };
                expected = self.expect_version_if_sendable(object, &live.uid, &live.resource_version);
                if expected != former {
                    membership = self.judge_unexpected_object(&live, earlier_attempts)?;
                }
            }
            // If the object was as expected, another attempt helps only if the conflict is not about a field.
            if expected == former && !is_version_conflict(&error) {
                return Err(Unapplied::Failed(error));
            }
        }
    }

    /// Reads an object of a saved plan again; `None` if it does not have the content that was `seen`.
    async fn read_if_as_planned(
        &self,
        object: &DesiredObject,
        seen: &Seen,
    ) -> Result<Option<Seen>, Unapplied> {
        let now = read::read_object(self.server, &object.resource, &object.key)
            .await
            .map_err(Unapplied::Failed)?;
        Ok(self.plan.preconditions.object_if_unchanged(seen, now.as_ref()))
    }

    /// Returns whether the policy forbids that this object, which is not in a set, becomes a member.
    fn refuses_unowned(&self, live: &Live) -> bool {
        match self.policy.unowned {
            Unowned::TakenIn => false,
            Unowned::Shown => {
                let observed = &self.state.observed;
                let mut shown = observed.existing.iter().chain(&observed.members);
                // The user has agreed to take in objects that were shown. Controllers put objects into a namespace that
                // this run creates; a user who has agreed to the namespace has agreed to these objects, too.
                !self.lacks_namespace_of(&live.key) && !shown.any(|shown| shown.uid == live.uid)
            }
            Unowned::Refused => true,
        }
    }

    /// Judges an object that is not as the run expected: returns its membership, or why it must not be applied.
    fn judge_unexpected_object(
        &self,
        live: &Live,
        earlier_attempts: EarlierAttempts,
    ) -> Result<LiveMembership, Unapplied> {
        let is_saved_plan = self.plan.preconditions.is_of_saved_plan();
        let membership = match &live.part_of {
            None if is_saved_plan || self.refuses_unowned(live) => return Err(Unapplied::Exists),
            None => LiveMembership::NotAMember,
            Some(id) if id == self.set.id.as_str() => LiveMembership::for_member(live, None),
            Some(_) if self.policy.take_ownership == Risk::Allowed => {
                LiveMembership::for_member_of_another_set(live)
            }
            Some(id) => return Err(Unapplied::Taken(error_of_member_of_other_set(id))),
        };
        // The saved plan expects that the object does not exist. Unless an attempt of this run may have created it,
        // another run has.
        if is_saved_plan && !earlier_attempts.may_have_succeeded() {
            return Err(Unapplied::Exists);
        }
        Ok(membership)
    }
}

/// Returns whether the cause of this error may be that the live object is not as expected. That is so for every
/// conflict, also for one about fields, and for managed fields in a version that cannot hold the object: the server
/// merges the manifest into the live object, and finds these faults, before it compares the version.
fn may_mean_object_changed(error: &ApiError) -> bool {
    error.has_status_code(StatusCode::CONFLICT) || is_refusal_of_unusable_version(error)
}

/// Returns the object with a resourceVersion that no object has: an apply creates it, or fails with a conflict.
pub fn with_version_of_no_object(object: &DesiredObject) -> DesiredObject {
    let mut metadata = object.object.metadata();
    metadata.insert("resourceVersion".to_owned(), json!(VERSION_OF_NO_OBJECT));
    object.with_object(object.object.with_metadata(&metadata))
}

/// Returns the error of an object that was not applied, because it has become a member of the set with this id.
fn error_of_member_of_other_set(id: &str) -> Message {
    Message::new(format!(
        "not applied: it became a member of another set ({id}) during the run"
    ))
    .with_hint("remove it from the manifests of one of the two sets")
}
