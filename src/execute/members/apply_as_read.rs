//! Applies members over what was read of them: their version, or that they do not exist. If that has changed, the
//! object is read, judged again, and applied accordingly: it may have joined another set, or be another object with the
//! same name.
//!
//! All runs use the same field manager, so an apply would take an object from another set without a conflict and
//! without a report. What is expected is part of the body, so the check costs no request unless the object has changed.
//!
//! Server-side apply has no precondition that an object does not exist. But the API server compares a resourceVersion
//! in the body with that of the object if there is one, and ignores it if there is none. So an apply with a version
//! that no object has creates the object, or is answered 409 and changes nothing, even if it is forced.

use http::StatusCode;
use serde_json::json;

use crate::cluster::apiserver::{ApiError, EarlierAttempts, Reply};
use crate::compare::ownership::KUBECTL_FIELD_MANAGER;
use crate::execute::Execution;
use crate::execute::kinds::Kinds;
use crate::execute::members::apply::{ATTEMPTS, is_passing_conflict};
use crate::execute::members::exported_fields;
use crate::execute::unusable_versions::is_refusal_of_unusable_version;
use crate::manifest::desired::DesiredObject;
use crate::model::live::Live;
use crate::model::message::Message;
use crate::plan::{LiveMembership, Risk, Seen, Unowned};
use crate::read;

/// A resourceVersion that no object has: etcd begins with revision 1, and its first write makes 2.
const VERSION_OF_NO_OBJECT: &str = "1";

/// The precondition of applying an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// None, or the object as a saved plan has seen it.
    Any,
    /// It has this version.
    Version(Seen),
    /// It does not exist.
    Absent,
}

/// The answer to an apply, and what the object was right before it.
pub struct AppliedAs {
    /// The answer.
    pub reply: Reply,
    /// The membership of the object by the latest judgement.
    pub membership: LiveMembership,
    /// The precondition of the request that was answered.
    pub expected: Expected,
}

/// Error if a member was not applied.
pub enum Unapplied {
    /// The request failed.
    Failed(ApiError),
    /// An object exists that may not be taken in.
    Exists,
    /// An object exists that is already a member of another set.
    Taken(Message),
}

impl Execution<'_> {
    /// Returns the precondition of applying an object as the plan knows it.
    pub(super) fn expected(&self, object: &DesiredObject, live_membership: &LiveMembership) -> Expected {
        match live_membership {
            LiveMembership::Member {
                uid,
                resource_version,
                ..
            } => self.version(uid, resource_version),
            // A manifest that names a version of its own asks for the one that it was exported from.
            LiveMembership::NotAMember
                if self.plan.preconditions.for_object(&object.key).lock().is_none()
                    && exported_fields::given(object).is_empty() =>
            {
                Expected::Absent
            }
            LiveMembership::NotAMember | LiveMembership::OfAnotherSet | LiveMembership::Terminating => {
                Expected::Any
            }
        }
    }

    /// Returns the precondition of this version, if the apply may carry it. A saved plan has its own versions. For
    /// kubectl's field manager, the server would copy the version into an annotation.
    fn version(&self, uid: &str, resource_version: &str) -> Expected {
        if self.plan.preconditions.require_unchanged() || self.writing.field_manager == KUBECTL_FIELD_MANAGER
        {
            return Expected::Any;
        }
        Expected::Version(Seen {
            uid: uid.to_owned(),
            resource_version: resource_version.to_owned(),
            digest: String::new(),
        })
    }

    /// Applies a member if it is as `expected`. If it is not, it is judged again and applied accordingly.
    ///
    /// Others may write its status all the time, so the last attempt needs no version. What the object was right
    /// before it is determined after it.
    pub async fn apply_as_read(
        &self,
        object: &DesiredObject,
        planned: &LiveMembership,
        mut expected: Expected,
        kinds: &Kinds,
    ) -> Result<AppliedAs, Unapplied> {
        let mut membership = planned.clone();
        let mut earlier_attempts = EarlierAttempts::NoEffect;
        let mut attempts = 0;
        loop {
            attempts += 1;
            if attempts == ATTEMPTS && matches!(expected, Expected::Version(_)) {
                expected = Expected::Any;
            }
            let answer = self.apply_in_time(object, &membership, &expected, kinds).await;
            let error = match answer {
                Err(error) if attempts < ATTEMPTS && expected != Expected::Any && is_of_live(&error) => error,
                answer => {
                    let reply = answer.map_err(Unapplied::Failed)?;
                    return Ok(AppliedAs {
                        reply: reply.after(earlier_attempts),
                        membership,
                        expected,
                    });
                }
            };
            earlier_attempts = earlier_attempts.or(error.earlier_attempts);
            let found = read::metadata(self.server, &object.resource, &object.key)
                .await
                .map_err(Unapplied::Failed)?;
            let live = found.and_then(|found| Live::from_object(&found, &object.resource));
            let Some(live) = live else {
                (membership, expected) = (LiveMembership::NotAMember, Expected::Absent);
                continue;
            };
            let version = self.version(&live.uid, &live.resource_version);
            if expected == version {
                // The conflict was about something else; only one about a field stays.
                if !is_passing_conflict(&error) {
                    return Err(Unapplied::Failed(error));
                }
                continue;
            }
            membership = self.membership_of_found(&live, earlier_attempts)?;
            expected = version;
        }
    }

    /// Returns whether an object that is not in a set must not become a member.
    fn refuses_unowned(&self, live: &Live) -> bool {
        match self.policy.unowned {
            Unowned::TakenIn => false,
            Unowned::Shown => {
                let observed = &self.state.observed;
                let mut shown = observed.existing.iter().chain(&observed.members);
                // What controllers put into a namespace of this run was agreed to with it.
                !self.lacks_namespace_of(&live.key) && !shown.any(|shown| shown.uid == live.uid)
            }
            Unowned::Refused => true,
        }
    }

    /// Judges an object that is not as it was expected.
    fn membership_of_found(
        &self,
        live: &Live,
        earlier_attempts: EarlierAttempts,
    ) -> Result<LiveMembership, Unapplied> {
        let is_bound = self.plan.preconditions.require_unchanged();
        let membership = match &live.part_of {
            None if is_bound || self.refuses_unowned(live) => return Err(Unapplied::Exists),
            None => LiveMembership::NotAMember,
            Some(id) if id == self.set.id.as_str() => LiveMembership::Member {
                uid: live.uid.clone(),
                resource_version: live.resource_version.clone(),
                reason: None,
                client_side_apply: live.client_side_apply,
                is_parent: live.parent_of.is_some(),
            },
            Some(_) if self.policy.take_ownership == Risk::Allowed => LiveMembership::OfAnotherSet,
            Some(id) => return Err(Unapplied::Taken(joined(id))),
        };
        // Another run has created it since a saved plan was made.
        if is_bound && !earlier_attempts.may_have_succeeded() {
            return Err(Unapplied::Exists);
        }
        Ok(membership)
    }
}

/// Returns whether the error may be that of a live object which is not as expected. The server merges the two before it
/// compares the version, so conflicts about fields count, too, and fields of the live object that cannot be read.
fn is_of_live(error: &ApiError) -> bool {
    error.is(StatusCode::CONFLICT) || is_refusal_of_unusable_version(error)
}

/// Returns the object as it is sent to be created.
pub fn as_new(object: &DesiredObject) -> DesiredObject {
    let mut metadata = object.object.metadata();
    metadata.insert("resourceVersion".to_owned(), json!(VERSION_OF_NO_OBJECT));
    DesiredObject {
        object: object.object.with_metadata(&metadata),
        ..object.clone()
    }
}

/// Error for an object that exists and that `--only-new-or-owned` does not take in.
pub const EXISTS: &str = "not applied: it was created outside the set during the run (--only-new-or-owned)";

/// The error of an object that has become a member of the set with this id, and was not applied.
fn joined(id: &str) -> Message {
    Message::new(format!(
        "not applied: it became a member of another set ({id}) during the run"
    ))
    .with_hint("remove it from the manifests of one of the two sets")
}
