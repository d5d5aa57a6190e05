//! Applies members over the version that was listed. A member that has changed since is judged again: it may be
//! in another set by now, or be another object with the same name.
//!
//! All runs use the same field manager, so an apply would take an object from another set without a conflict and
//! without a report. The version is part of the body, so the check costs no request unless the object has changed.

use http::StatusCode;

use crate::cluster::apiserver::{EarlierAttempts, Reply};
use crate::execute::Execution;
use crate::execute::kinds::Kinds;
use crate::execute::members::apply::{ATTEMPTS, is_passing_conflict};
use crate::execute::members::creation::{Expected, Unapplied};
use crate::manifest::desired::DesiredObject;
use crate::model::live::Live;
use crate::plan::{LiveMembership, Seen, TakeOwnership};
use crate::read;

/// The answer to an apply, and what the object was right before it.
pub(crate) struct AppliedAs {
    /// The answer.
    pub(crate) reply: Reply,
    /// The membership of the object, if it is no longer that of the plan.
    pub(crate) membership: Option<LiveMembership>,
    /// The precondition of the request that was answered.
    pub(crate) precondition: Expected,
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
    /// Returns a lock if it is the version that was listed; any other is that of a saved plan.
    pub(crate) fn listed<'s>(&self, lock: Option<&'s Seen>) -> Option<&'s Seen> {
        lock.filter(|_| !self.plan.preconditions.require_unchanged())
    }

    /// Returns whether the object is in another set, and the user allows to take it.
    fn may_take(&self, live: &Live) -> bool {
        self.policy.take_ownership == TakeOwnership::Allowed
            && live.part_of.as_ref().is_some_and(|id| id != self.set.id.as_str())
    }

    /// Applies a member over its listed version. If it has changed since, it is judged again and applied
    /// accordingly.
    ///
    /// Others may write its status all the time, so the last attempt needs no version. What the object was right
    /// before it is determined after it.
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
                // A conflict about a field counts, too: the server looks for those before it compares the version.
                Err(error) if expected == Expected::AsListed && error.is(StatusCode::CONFLICT) => error,
                answer => {
                    let reply = answer.map_err(Unapplied::Failed)?;
                    return Ok(AppliedAs {
                        reply: reply.after(earlier_attempts),
                        membership: None,
                        precondition: expected,
                    });
                }
            };
            earlier_attempts = earlier_attempts.or(error.earlier_attempts);
            let found = read::metadata(self.server, &object.resource, &object.key).await;
            let found = found.map_err(Unapplied::Failed)?;
            let found = found.and_then(|found| Live::from_object(&found, &object.resource));
            let membership = match &found {
                // The conflict was about something else; only one about a field stays.
                Some(live) if is_unchanged(&live_membership, live) => {
                    if is_passing_conflict(&error) {
                        continue;
                    }
                    return Err(Unapplied::Failed(error));
                }
                Some(live) if self.may_take(live) => LiveMembership::OfAnotherSet,
                Some(live) => self.membership_of_found(live)?,
                None => LiveMembership::NotAMember,
            };
            if matches!(membership, LiveMembership::Member { .. }) {
                live_membership = membership;
                continue;
            }
            let answer = self.apply_if_allowed(object, &membership, kinds);
            let applied = Box::pin(answer).await?;
            return Ok(AppliedAs {
                reply: applied.reply.after(earlier_attempts),
                membership: Some(membership),
                ..applied
            });
        }
    }
}

/// Returns whether the live object is as the membership knows it.
fn is_unchanged(live_membership: &LiveMembership, live: &Live) -> bool {
    matches!(
        live_membership,
        LiveMembership::Member { uid, resource_version, .. }
            if *uid == live.uid && *resource_version == live.resource_version
    )
}
