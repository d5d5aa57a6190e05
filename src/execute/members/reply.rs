//! The reply to the write of one member.

use crate::cluster::apiserver::{Reply, UnreachableWebhook};
use crate::event::{Action, ObjectOutcome, Subject};
use crate::execute::Execution;
use crate::execute::label_in_answer::label_error;
use crate::execute::members::apply::TERMINATING;
use crate::execute::members::recreate::BegunRecreation;
use crate::manifest::desired::DesiredObject;
use crate::model::live::{Live, Presence};
use crate::model::message::Message;
use crate::plan::LiveMembership;

const ANSWER_OF_ANOTHER_OBJECT: &str = "the server returned another object; it may not have been applied";

/// Outcome of writing one member, with the warnings about it.
pub struct MemberReply {
    pub outcome: ObjectOutcome,
    pub warnings: Vec<String>,
    /// Set if the object failed because a webhook could not be called.
    pub webhook: Option<UnreachableWebhook>,
    /// Set if the object was deleted to be created again, and `webhook` judges its creation.
    pub begun_recreation: Option<BegunRecreation>,
}

impl MemberReply {
    /// Creates a reply with this outcome alone.
    pub fn from_outcome(outcome: ObjectOutcome) -> Self {
        Self {
            outcome,
            warnings: Vec::new(),
            webhook: None,
            begun_recreation: None,
        }
    }

    /// Creates the reply about a member that failed with this error.
    pub fn failed(subject: Subject, error: impl Into<Message>) -> Self {
        Self::from_outcome(ObjectOutcome::from_error(subject, error))
    }
}

impl Execution<'_> {
    /// Judges what a successful apply did, by its answer: whether it created or changed the object, and whether the
    /// object is a member now.
    pub(super) fn reply_to_successful_apply(
        &self,
        object: &DesiredObject,
        answer: &Reply,
        mut subject: Subject,
        live_membership: &LiveMembership,
    ) -> MemberReply {
        let written = Live::from_object(&answer.json_or_null(), &object.resource);
        let Some(written) = written.filter(|written| written.key == object.key) else {
            return MemberReply::failed(subject, ANSWER_OF_ANOTHER_OBJECT.to_owned());
        };
        let has_same_version = matches!(
            live_membership,
            LiveMembership::Member { resource_version, .. } if *resource_version == written.resource_version
        );
        let action = if self.reply_shows_creation(answer, live_membership) {
            Action::Created
        } else if has_same_version {
            Action::Unchanged
        } else {
            Action::Configured
        };
        subject.uid = Some(written.uid);
        let mut reply = MemberReply {
            warnings: answer.warnings.clone(),
            ..MemberReply::from_outcome(ObjectOutcome::new(subject, action))
        };
        let error = match written.presence {
            Presence::Terminating => Some(TERMINATING.into()),
            Presence::Present => label_error(object.part_of().as_deref(), written.part_of.as_deref()),
        };
        if let Some(error) = error {
            reply.outcome.fail(error);
        }
        reply
    }
}
