//! The outcome of applying one member, and what its answer holds.

use serde::Deserialize;

use crate::cluster::apiserver::Reply;
use crate::event::{ObjectOutcome, Subject};
use crate::execute::members::webhooks::Unreachable;
use crate::model::applyset::parent::Pairs;
use crate::model::message::Message;
use crate::plan::ReplicasHandover;

/// Outcome of one member, with the warnings of the server.
pub(crate) struct MemberReply {
    pub(crate) outcome: ObjectOutcome,
    pub(crate) warnings: Vec<String>,
    /// Set if the object existed although the plan expected it to be new: the caller determines its
    /// former set.
    pub(crate) found: Option<FoundLive>,
    /// Set if the object failed because a webhook could not be called.
    pub(crate) webhook: Option<Unreachable>,
    /// Set if a field was handed over, or would be in a dry run.
    pub(crate) handover: Option<ReplicasHandover>,
}

/// An object that existed when it was applied, although the plan expected it to be new.
pub(crate) struct FoundLive {
    /// The resourceVersion after the apply.
    pub(crate) version: String,
    /// The report if it was in no set; `None` if the answer cannot be read.
    pub(crate) reason: Option<String>,
}

/// The metadata in the answer to a write.
#[derive(Debug, Deserialize)]
pub(crate) struct Written {
    pub(crate) metadata: WrittenMetadata,
}

/// See `Written`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WrittenMetadata {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) namespace: Option<String>,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    #[serde(default)]
    pub(crate) deletion_timestamp: Option<String>,
    #[serde(default)]
    pub(crate) annotations: Pairs,
}

pub(crate) fn written(reply: &Reply) -> Result<Written, serde_json::Error> {
    serde_json::from_slice(&reply.body)
}

pub(crate) fn reply_of(outcome: ObjectOutcome) -> MemberReply {
    MemberReply {
        outcome,
        warnings: Vec::new(),
        found: None,
        webhook: None,
        handover: None,
    }
}

pub(crate) fn failed(subject: Subject, error: impl Into<Message>) -> MemberReply {
    reply_of(ObjectOutcome::failed(subject, error))
}
