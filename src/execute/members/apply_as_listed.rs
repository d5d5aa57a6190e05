//! Applies members over the version that was listed. A member that has changed since is judged again: it may be
//! in another set by now, or be another object with the same name.
//!
//! All runs use the same field manager, so an apply would take an object from another set without a conflict and
//! without a report. The version is part of the body, so the check costs no request unless the object has changed.

use http::StatusCode;
use serde_json::Value;

use crate::cluster::apiserver::{ApiError, EarlierAttempts, Reply, Status};
use crate::execute::Execution;
use crate::execute::kinds::Kinds;
use crate::execute::members::apply::{ATTEMPTS, is_passing_conflict};
use crate::execute::members::creation::{Expected, Unapplied};
use crate::manifest::desired::DesiredObject;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::live::Live;
use crate::plan::{LiveMembership, Seen, TakeOwnership};
use crate::read;

/// The answer to an apply, and what the object was right before it.
pub(crate) struct AppliedAs {
    /// The answer.
    pub(crate) reply: Reply,
    /// The membership of the object, if it is no longer that of the plan.
    pub(crate) membership: Option<LiveMembership>,
}

/// Returns the version of a member that was listed; `None` if the object was not a member.
pub(crate) fn listed_version(live_membership: &LiveMembership) -> Option<Seen> {
    match live_membership {
        LiveMembership::Member {
            uid,
            resource_version,
            ..
        } => Some(Seen {
            uid: uid.clone(),
            resource_version: resource_version.clone(),
            digest: String::new(),
        }),
        LiveMembership::NotAMember | LiveMembership::OfAnotherSet | LiveMembership::Terminating => None,
    }
}

impl Execution<'_> {
    /// Returns whether the object is in another set, and the user allows to take it.
    fn may_take(&self, live: &Live) -> bool {
        self.policy.take_ownership == TakeOwnership::Allowed
            && live.part_of.as_ref().is_some_and(|id| id != self.set.id.as_str())
    }

    /// Returns the membership of an object after a write of this run, with the version of the answer. An object
    /// that is not in this set any more keeps the version that was listed, so its apply is refused.
    pub(crate) fn with_own_write(
        &self,
        live_membership: &LiveMembership,
        written: Option<&Value>,
    ) -> LiveMembership {
        let mut live_membership = live_membership.clone();
        if let (Some(written), LiveMembership::Member { resource_version, .. }) =
            (written, &mut live_membership)
            && written["metadata"]["labels"][PART_OF_LABEL] == *self.set.id.as_str()
        {
            *resource_version = Seen::version(written).resource_version;
        }
        live_membership
    }

    /// Applies a member over its listed version. If it has changed since, it is judged again and applied
    /// accordingly.
    ///
    /// Others may write its status all the time, so the last attempt needs no version. It follows a read that
    /// found the object in this set.
    pub(crate) async fn apply_as_listed(
        &self,
        object: &DesiredObject,
        listed: &LiveMembership,
        kinds: &Kinds,
    ) -> Result<AppliedAs, Unapplied> {
        let mut live_membership = listed.clone();
        let mut earlier_attempts = EarlierAttempts::NoEffect;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let expected = if attempts < ATTEMPTS {
                Expected::AsListed
            } else {
                Expected::Any
            };
            let answer = self
                .apply_in_time(object, &live_membership, expected, kinds)
                .await;
            let error = match answer {
                Err(error) if expected == Expected::AsListed && is_conflict(&error) => error,
                answer => {
                    let reply = answer.map_err(Unapplied::Failed)?;
                    return Ok(AppliedAs {
                        reply: reply.after(earlier_attempts),
                        membership: None,
                    });
                }
            };
            if error.earlier_attempts.may_have_succeeded() {
                earlier_attempts = EarlierAttempts::MayHaveSucceeded;
            }
            let found = read::metadata(self.server, &object.resource, &object.key).await;
            let found = found.map_err(Unapplied::Failed)?;
            let found = found.and_then(|found| Live::from_object(&found, &object.resource));
            let membership = match &found {
                // The same version may be sent again: the conflict was about something else.
                Some(live) if is_version(&live_membership, live) && is_passing_conflict(&error) => continue,
                Some(live) if is_version(&live_membership, live) => return Err(Unapplied::Failed(error)),
                Some(live) if self.may_take(live) => LiveMembership::OfAnotherSet,
                Some(live) => self.membership_of_found(live)?,
                None => LiveMembership::NotAMember,
            };
            if matches!(membership, LiveMembership::Member { .. }) {
                live_membership = membership;
                continue;
            }
            let answer = self.apply_if_allowed(object, &membership, kinds);
            let reply = Box::pin(answer).await?.reply;
            return Ok(AppliedAs {
                reply: reply.after(earlier_attempts),
                membership: Some(membership),
            });
        }
    }
}

/// Returns whether the object may have changed since it was listed. A field conflict counts, too: the server
/// looks for those before it compares the version.
fn is_conflict(error: &ApiError) -> bool {
    is_passing_conflict(error)
        || error.is(StatusCode::CONFLICT) && error.status().is_some_and(Status::is_field_conflict)
}

fn is_version(live_membership: &LiveMembership, live: &Live) -> bool {
    listed_version(live_membership)
        .is_some_and(|listed| listed.uid == live.uid && listed.resource_version == live.resource_version)
}
