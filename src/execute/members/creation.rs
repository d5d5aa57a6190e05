//! Creates members that must not exist: the user or a saved plan allows only new objects.
//!
//! Server-side apply has no such mode. But the API server compares a resourceVersion in the body with
//! that of the object if there is one, and ignores it if there is none. So an apply with a version that
//! no object has creates the object, or is answered 409 and changes nothing, even if it is forced.

use http::StatusCode;
use serde_json::json;

use crate::cluster::apiserver::{ApiError, Reply};
use crate::compare::ownership::KUBECTL_FIELD_MANAGER;
use crate::execute::Execution;
use crate::execute::kinds::Kinds;
use crate::execute::members::apply::ATTEMPTS;
use crate::execute::members::apply_as_listed::AppliedAs;
use crate::execute::members::taken_by_concurrent_run;
use crate::manifest::desired::DesiredObject;
use crate::model::live::Live;
use crate::model::message::Message;
use crate::plan::{self, LiveMembership, TakeOwnership, Unowned};
use crate::read;

/// A resourceVersion that no object has: etcd begins with revision 1, and its first write makes 2.
const VERSION_OF_NO_OBJECT: &str = "1";

/// The precondition of applying an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// None, or the object as a saved plan has seen it.
    Any,
    /// It has the version that was listed.
    AsListed,
    /// It does not exist.
    Absent,
}

/// Error if a member was not applied.
pub(crate) enum Unapplied {
    /// The request failed.
    Failed(ApiError),
    /// An object exists that may not be taken in.
    Exists,
    /// An object exists that is a member of another set by now.
    Taken(Message),
}

impl Execution<'_> {
    /// Returns the precondition of applying the object. The plan was made while it did not exist, if
    /// `live_membership` says that it is not a member and only new objects are allowed.
    fn precondition(&self, object: &DesiredObject, live_membership: &LiveMembership) -> Expected {
        let is_approved_as_new = || self.plan.preconditions.of(&object.key) == plan::Precondition::Absent;
        let has_to_be_new = || self.policy.unowned == Unowned::Refused || is_approved_as_new();
        match live_membership {
            LiveMembership::NotAMember if has_to_be_new() => Expected::Absent,
            LiveMembership::Member { .. } if self.may_be_locked() => Expected::AsListed,
            LiveMembership::NotAMember
            | LiveMembership::Member { .. }
            | LiveMembership::OfAnotherSet
            | LiveMembership::Terminating => Expected::Any,
        }
    }

    /// Returns whether the apply of a member may carry the version that was listed. A saved plan has its own
    /// versions. For kubectl's field manager, the server would copy the version into an annotation.
    fn may_be_locked(&self) -> bool {
        !self.plan.preconditions.require_unchanged() && self.writing.field_manager != KUBECTL_FIELD_MANAGER
    }

    /// Applies a member under its precondition.
    pub(crate) async fn apply_if_allowed(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        kinds: &Kinds,
    ) -> Result<AppliedAs, Unapplied> {
        let precondition = self.precondition(object, live_membership);
        if precondition == Expected::AsListed {
            return self.apply_as_listed(object, live_membership, kinds).await;
        }
        let answer = self.apply_with_precondition(object, live_membership, precondition, kinds);
        Ok(AppliedAs {
            reply: answer.await?,
            membership: None,
            precondition,
        })
    }

    /// Returns whether another set may have had the object when it was applied: nothing of the request said which
    /// version it was for. A saved plan has versions of its own.
    pub(super) fn may_have_joined_another_set(
        &self,
        live_membership: &LiveMembership,
        precondition: Expected,
    ) -> bool {
        match live_membership {
            LiveMembership::NotAMember => true,
            LiveMembership::Member { .. } => {
                precondition == Expected::Any
                    && !self.plan.preconditions.require_unchanged()
                    && self.policy.take_ownership == TakeOwnership::Refused
            }
            LiveMembership::OfAnotherSet | LiveMembership::Terminating => false,
        }
    }

    /// Applies a member under this precondition.
    ///
    /// An object that does exist after all is applied if it is in this set: this run has created it
    /// and the answer was lost, or another run of the set was faster. A saved plan was not
    /// made for what another run has created.
    pub(crate) async fn apply_with_precondition(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        precondition: Expected,
        kinds: &Kinds,
    ) -> Result<Reply, Unapplied> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let answer = self
                .apply_in_time(object, live_membership, precondition, kinds)
                .await;
            let error = match answer {
                Err(error) if precondition == Expected::Absent && error.is(StatusCode::CONFLICT) => error,
                answer => return answer.map_err(Unapplied::Failed),
            };
            let found = read::metadata(self.server, &object.resource, &object.key).await;
            let found = found.map_err(Unapplied::Failed)?;
            let found = found.and_then(|found| Live::from_object(&found, &object.resource));
            let live_membership = match &found {
                // The conflict had another cause, or the object is gone again.
                None if attempts < ATTEMPTS => continue,
                None => return Err(Unapplied::Failed(error)),
                Some(live) => {
                    let live_membership = self.membership_of_found(live)?;
                    // Another run has created it since a saved plan was made.
                    if self.plan.preconditions.require_unchanged()
                        && !error.earlier_attempts.may_have_succeeded()
                    {
                        return Err(Unapplied::Exists);
                    }
                    live_membership
                }
            };
            let answer = self
                .apply_in_time(object, &live_membership, Expected::Any, kinds)
                .await;
            let reply = answer.map_err(Unapplied::Failed)?;
            return Ok(reply.after(error.earlier_attempts));
        }
    }

    /// Returns the membership of an object that is not as the plan expected it.
    pub(crate) fn membership_of_found(&self, live: &Live) -> Result<LiveMembership, Unapplied> {
        let is_bound = self.plan.preconditions.require_unchanged();
        match &live.part_of {
            None if is_bound || self.policy.unowned == Unowned::Refused => Err(Unapplied::Exists),
            None => Ok(LiveMembership::NotAMember),
            Some(id) if id == self.set.id.as_str() => Ok(LiveMembership::Member {
                uid: live.uid.clone(),
                resource_version: live.resource_version.clone(),
                reason: None,
                client_side_apply: live.client_side_apply,
                is_parent: live.parent_of.is_some(),
            }),
            Some(id) => Err(Unapplied::Taken(taken_by_concurrent_run::joined(id))),
        }
    }
}

/// Returns the object as it is sent to be created.
pub(crate) fn as_new(object: &DesiredObject) -> DesiredObject {
    let mut metadata = object.object.metadata();
    metadata.insert("resourceVersion".to_owned(), json!(VERSION_OF_NO_OBJECT));
    DesiredObject {
        object: object.object.with_metadata(&metadata),
        ..object.clone()
    }
}

/// Error for an object that exists and that `--only-new-or-owned` does not take in.
pub(crate) const EXISTS: &str =
    "not applied: it was created outside the set during the run (--only-new-or-owned)";

/// Error for an object that was taken in despite `--only-new-or-owned`.
pub(crate) const IGNORED: &str =
    "it existed outside the set and is a member now: the server ignored the resourceVersion precondition";
