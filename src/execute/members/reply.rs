//! The outcome of applying one member, and what its answer holds.

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

/// Outcome of one member, with the warnings about it.
pub struct MemberReply {
    pub outcome: ObjectOutcome,
    pub warnings: Vec<String>,
    /// Set if the object failed because a webhook could not be called.
    pub webhook: Option<UnreachableWebhook>,
    /// Set if it was deleted to be created again, and that webhook judges the creation.
    pub begun: Option<BegunRecreation>,
}

/// The metadata in the answer to a write.
#[derive(Debug, Deserialize)]
pub struct Written {
    pub metadata: WrittenMetadata,
}

/// The fields of `metadata` that `Written` holds.
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
    /// Interprets the answer to an apply of this object that succeeded.
    pub(super) fn judge_reply(
        &self,
        object: &DesiredObject,
        reply: &Reply,
        mut subject: Subject,
        live_membership: &LiveMembership,
    ) -> MemberReply {
        let written = match written(reply) {
            Ok(written) => written.metadata,
            Err(error) => return failed(subject, error.to_string()),
        };
        if written.name != subject.name || written.namespace != subject.namespace {
            return failed(subject, OF_ANOTHER.to_owned());
        }
        let known_version = match live_membership {
            LiveMembership::Member { resource_version, .. } => Some(resource_version),
            LiveMembership::NotAMember | LiveMembership::OfAnotherSet | LiveMembership::Terminating => None,
        };
        let action = if self.has_made(reply, live_membership) {
            Action::Created
        } else if known_version == Some(&written.resource_version) {
            Action::Unchanged
        } else {
            Action::Configured
        };
        subject.uid = Some(written.uid);
        let mut reply = MemberReply {
            warnings: reply.warnings.clone(),
            outcome: ObjectOutcome::new(subject, action),
            webhook: None,
            begun: None,
        };
        let label = written.labels.get(PART_OF_LABEL).map(String::as_str);
        let error = match label_error(object.part_of().as_deref(), label) {
            _ if written.deletion_timestamp.is_some() => Some(TERMINATING.into()),
            error => error,
        };
        if let Some(error) = error {
            reply.outcome.action = Action::Failed;
            reply.outcome.error = Some(error.into());
        }
        reply
    }
}

pub fn written(reply: &Reply) -> Result<Written, serde_json::Error> {
    reply.json()
}

pub fn reply_of(outcome: ObjectOutcome) -> MemberReply {
    MemberReply {
        outcome,
        warnings: Vec::new(),
        webhook: None,
        begun: None,
    }
}

pub fn failed(subject: Subject, error: impl Into<Message>) -> MemberReply {
    reply_of(ObjectOutcome::failed(subject, error))
}

const OF_ANOTHER: &str = "the server returned another object; it may not have been applied";
