//! Applies one member by server-side apply, and says what that did to it.

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::Deserialize;

use super::{Conflicts, DryRun, Execution};
use crate::apiserver::{Call, Reply, query};
use crate::desired::DesiredObject;
use crate::event::{Action, ObjectOutcome, Subject};
use crate::observe::WHOLE_OBJECTS;
use crate::plan::{Apply, MemberStanding};

/// Body of server-side apply. JSON is YAML.
pub(super) const APPLY_PATCH: &str = "application/apply-patch+yaml";
/// Asks for the metadata of the written object instead of all of it.
pub(super) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// What became of one member, and what the server said along with it.
pub(super) struct MemberReply {
    pub(super) outcome: ObjectOutcome,
    pub(super) warnings: Vec<String>,
}

/// The metadata that a write is answered with.
#[derive(Debug, Deserialize)]
pub(super) struct Written {
    pub(super) metadata: WrittenMetadata,
}

/// See `Written`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WrittenMetadata {
    pub(super) uid: String,
    pub(super) resource_version: String,
    #[serde(default)]
    pub(super) deletion_timestamp: Option<String>,
}

impl Execution<'_> {
    pub(super) async fn apply_member(&self, apply: &Apply) -> MemberReply {
        let object = &self.desired.members[apply.index];
        let subject = Subject::new(&object.key, &object.resource, uid(&apply.standing));
        if apply.standing == MemberStanding::Terminating {
            return failed(subject, TERMINATING.to_owned());
        }
        match self.writing.dry_run {
            DryRun::Client => self.predict(object, subject, &apply.standing).await,
            DryRun::Server => self.rehearse_member(object, subject, &apply.standing).await,
            DryRun::None => self.send_member(object, subject, &apply.standing).await,
        }
    }

    async fn send_member(
        &self,
        object: &DesiredObject,
        subject: Subject,
        standing: &MemberStanding,
    ) -> MemberReply {
        if let Err(reason) = self.await_kind(object).await {
            return failed(subject, reason);
        }
        match self.server.send(self.member_call(object)).await {
            Ok(reply) => judge_reply(&reply, subject, standing),
            Err(error) => failed(subject, error.kind.to_string()),
        }
    }

    pub(super) fn member_call(&self, object: &DesiredObject) -> Call {
        let mut parameters = vec![
            ("fieldManager", self.writing.field_manager.as_str()),
            ("fieldValidation", "Strict"),
        ];
        if self.writing.conflicts == Conflicts::Forced {
            parameters.push(("force", "true"));
        }
        if self.writing.dry_run == DryRun::Server {
            parameters.push(("dryRun", "All"));
        }
        let accept = match self.writing.dry_run {
            DryRun::None => METADATA,
            DryRun::Client | DryRun::Server => WHOLE_OBJECTS,
        };
        let path = object
            .resource
            .path(object.key.namespace.as_deref(), Some(&object.key.name));
        Call {
            method: Method::PATCH,
            path: format!("{path}?{}", query(&parameters)),
            accept: accept.to_owned(),
            content_type: Some(APPLY_PATCH),
            body: Bytes::from(object.object.to_string()),
        }
    }
}

const TERMINATING: &str = "it is being deleted; wait until it is gone, and run again";

fn uid(standing: &MemberStanding) -> Option<&str> {
    match standing {
        MemberStanding::Member { uid, .. } => Some(uid),
        MemberStanding::NotAMember | MemberStanding::Terminating => None,
    }
}

fn judge_reply(reply: &Reply, mut subject: Subject, standing: &MemberStanding) -> MemberReply {
    let written = match written(reply) {
        Ok(written) => written.metadata,
        Err(error) => return failed(subject, error.to_string()),
    };
    let known_version = match standing {
        MemberStanding::Member { resource_version, .. } => Some(resource_version),
        MemberStanding::NotAMember | MemberStanding::Terminating => None,
    };
    let action = if reply.status == StatusCode::CREATED {
        Action::Created
    } else if known_version == Some(&written.resource_version) {
        Action::Unchanged
    } else {
        Action::Configured
    };
    subject.uid = Some(written.uid);
    let mut reply = MemberReply {
        warnings: reply
            .warnings
            .iter()
            .map(|text| format!("{}: {text}", subject.key()))
            .collect(),
        outcome: done(subject, action),
    };
    if written.deletion_timestamp.is_some() {
        reply.outcome.action = Action::Failed;
        reply.outcome.error = Some(TERMINATING.to_owned());
    }
    reply
}

pub(super) fn written(reply: &Reply) -> Result<Written, serde_json::Error> {
    serde_json::from_slice(&reply.body)
}

pub(super) fn done(subject: Subject, action: Action) -> ObjectOutcome {
    ObjectOutcome {
        subject,
        action,
        reason: String::new(),
        error: None,
    }
}

pub(super) fn told(outcome: ObjectOutcome) -> MemberReply {
    MemberReply {
        outcome,
        warnings: Vec::new(),
    }
}

pub(super) fn failed(subject: Subject, error: String) -> MemberReply {
    told(ObjectOutcome {
        error: Some(error),
        ..done(subject, Action::Failed)
    })
}
