//! The reply to the write of one member, and the metadata in the server's answer.

use serde::Deserialize;

use crate::cluster::apiserver::{Reply, UnreachableWebhook};
use crate::event::{Action, ObjectOutcome, Subject};
use crate::execute::Execution;
use crate::execute::label_in_answer::label_error;
use crate::execute::members::apply::TERMINATING;
use crate::execute::members::recreate::BegunRecreation;
use crate::manifest::desired::DesiredObject;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::applyset::parent::Pairs;
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

/// The metadata in the answer to a write.
#[derive(Debug, Deserialize)]
pub struct AnswerToWrite {
    pub metadata: WrittenMetadata,
}

/// The fields of `metadata` that `AnswerToWrite` holds.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenMetadata {
    pub name: String,
    #[serde(default)]
    pub namespace: Option<String>,
    pub uid: String,
    pub resource_version: String,
    #[serde(default)]
    pub deletion_timestamp: Option<String>,
    #[serde(default)]
    pub labels: Pairs,
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
        let written = match parse_answer_to_write(answer) {
            Ok(written) => written.metadata,
            Err(error) => return failed_reply(subject, error.to_string()),
        };
        if written.name != subject.name || written.namespace != subject.namespace {
            return failed_reply(subject, ANSWER_OF_ANOTHER_OBJECT.to_owned());
        }
        let known_version = match live_membership {
            LiveMembership::Member { resource_version, .. } => Some(resource_version),
            LiveMembership::NotAMember
            | LiveMembership::OfAnotherSet { .. }
            | LiveMembership::Terminating => None,
        };
        let action = if self.reply_shows_creation(answer, live_membership) {
            Action::Created
        } else if known_version == Some(&written.resource_version) {
            Action::Unchanged
        } else {
            Action::Configured
        };
        subject.uid = Some(written.uid);
        let mut reply = MemberReply {
            warnings: answer.warnings.clone(),
            outcome: ObjectOutcome::new(subject, action),
            webhook: None,
            begun_recreation: None,
        };
        let label = written.labels.get(PART_OF_LABEL).map(String::as_str);
        let error = if written.deletion_timestamp.is_some() {
            Some(TERMINATING.into())
        } else {
            label_error(object.part_of().as_deref(), label)
        };
        if let Some(error) = error {
            reply.outcome.action = Action::Failed;
            reply.outcome.error = Some(error.into());
        }
        reply
    }
}

/// Parses the metadata in the answer to a write.
pub fn parse_answer_to_write(reply: &Reply) -> Result<AnswerToWrite, serde_json::Error> {
    reply.json()
}

/// Returns a reply with this outcome alone.
pub fn reply_from_outcome(outcome: ObjectOutcome) -> MemberReply {
    MemberReply {
        outcome,
        warnings: Vec::new(),
        webhook: None,
        begun_recreation: None,
    }
}

/// Returns the reply about a member that failed with this error.
pub fn failed_reply(subject: Subject, error: impl Into<Message>) -> MemberReply {
    reply_from_outcome(ObjectOutcome::from_error(subject, error))
}
