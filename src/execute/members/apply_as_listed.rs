//! Applies members over the version that was listed. A member that has changed since is judged again: it may be
//! in another set by now, or another object of its name.
//!
//! All runs have one field manager, so an apply would take an object from another set without a conflict, and
//! without a report of it. The version is part of the body, so the check costs no
//! request unless the object has changed.

use http::StatusCode;

use crate::cluster::apiserver::{ApiError, EarlierAttempts, Reply, Status};
use crate::execute::Execution;
use crate::execute::kinds::Kinds;
use crate::execute::members::apply::{ATTEMPTS, is_passing_conflict};
use crate::execute::members::creation::{Expected, Unapplied};
use crate::manifest::desired::DesiredObject;
use crate::model::live::Live;
use crate::plan::{LiveMembership, Seen};
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
    /// Applies a member as it was listed, and one that has changed since as what it is now.
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
                Some(live) if is_version(&live_membership, live) => return Err(Unapplied::Failed(error)),
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

/// Returns whether the object may have changed since it was listed. The server looks for conflicts of fields
/// before it compares the version.
fn is_conflict(error: &ApiError) -> bool {
    is_passing_conflict(error)
        || error.is(StatusCode::CONFLICT) && error.status().is_some_and(Status::is_field_conflict)
}

fn is_version(live_membership: &LiveMembership, live: &Live) -> bool {
    listed_version(live_membership)
        .is_some_and(|listed| listed.uid == live.uid && listed.resource_version == live.resource_version)
}
