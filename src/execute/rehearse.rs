//! Dry runs of single members: what a run would do to each, found out without writing.

use http::StatusCode;
use serde_json::Value;

use super::Execution;
use super::conflict::explained;
use super::member::{MemberReply, done, failed, told, written};
use crate::apiserver::Reply;
use crate::desired::DesiredObject;
use crate::event::{Action, Subject};
use crate::observe::{METADATA, WHOLE_OBJECTS};
use crate::plan::{MemberStanding, is_promised};

impl Execution<'_> {
    /// Lets the server rehearse an apply, and compares the outcome with the live object:
    /// a dry run leaves the resourceVersion as it is, so that does not tell.
    pub(super) async fn rehearse_member(
        &self,
        object: &DesiredObject,
        mut subject: Subject,
        standing: &MemberStanding,
    ) -> MemberReply {
        if self.is_out_of_reach(object) {
            return MemberReply {
                warnings: vec![format!(
                    "{} could not be validated by the server, because its {} does not exist yet",
                    object.key,
                    if is_promised(object) { "kind" } else { "namespace" }
                )],
                outcome: done(subject, Action::Created),
            };
        }
        let path = object
            .resource
            .path(object.key.namespace.as_deref(), Some(&object.key.name));
        let live = match standing {
            MemberStanding::Member { .. } => match self.server.get(&path, WHOLE_OBJECTS).await {
                Ok(reply) => Some(reply),
                Err(error) if error.is(StatusCode::NOT_FOUND) => None,
                Err(error) => return failed(subject, error.kind.to_string()),
            },
            MemberStanding::NotAMember | MemberStanding::OfAnotherSet | MemberStanding::Terminating => None,
        };
        let reply = match self.server.send(self.member_call(object, standing)).await {
            Ok(reply) => reply,
            // A run takes these fields from their former owner, which a dry run cannot.
            Err(error) if self.is_conflict_with_former_owner(&error, standing) => {
                return told(done(subject, Action::Configured));
            }
            Err(error) => return failed(subject, explained(self.server, object, &error).await),
        };
        let action = match live {
            _ if reply.status == StatusCode::CREATED => Action::Created,
            Some(live) if contents(&live).is_some_and(|live| contents(&reply) == Some(live)) => {
                Action::Unchanged
            }
            _ => Action::Configured,
        };
        subject.uid = written(&reply).ok().map(|written| written.metadata.uid);
        MemberReply {
            warnings: reply
                .warnings
                .iter()
                .map(|text| format!("{}: {text}", subject.key()))
                .collect(),
            outcome: done(subject, action),
        }
    }

    /// What a run would do to a member, without sending it.
    pub(super) async fn predict(
        &self,
        object: &DesiredObject,
        mut subject: Subject,
        standing: &MemberStanding,
    ) -> MemberReply {
        if matches!(standing, MemberStanding::Member { .. }) {
            return told(done(subject, Action::Configured));
        }
        if self.is_out_of_reach(object) {
            return told(done(subject, Action::Created));
        }
        let path = object
            .resource
            .path(object.key.namespace.as_deref(), Some(&object.key.name));
        match self.server.get(&path, METADATA).await {
            Ok(reply) => {
                subject.uid = written(&reply).ok().map(|written| written.metadata.uid);
                told(done(subject, Action::Configured))
            }
            Err(error) if error.is(StatusCode::NOT_FOUND) => told(done(subject, Action::Created)),
            Err(error) => failed(subject, error.kind.to_string()),
        }
    }

    /// Whether the server cannot know this object before other members are written.
    pub(super) fn is_out_of_reach(&self, object: &DesiredObject) -> bool {
        let is_coming = |namespace: &String| {
            self.desired.members.iter().enumerate().any(|(index, member)| {
                let key = &member.key;
                key.group_kind.kind == "Namespace"
                    && key.group_kind.group.is_empty()
                    && key.name == *namespace
                    && self.is_new(index)
            })
        };
        is_promised(object) || object.key.namespace.as_ref().is_some_and(is_coming)
    }

    fn is_new(&self, index: usize) -> bool {
        let plan = self.plan;
        plan.waves
            .iter()
            .flatten()
            .chain(&plan.prerequisites)
            .any(|apply| apply.index == index && apply.standing == MemberStanding::NotAMember)
    }
}

/// An object without what changes although nothing did: the times of field managers.
fn contents(reply: &Reply) -> Option<Value> {
    let mut object: Value = serde_json::from_slice(&reply.body).ok()?;
    for entry in object.pointer_mut("/metadata/managedFields")?.as_array_mut()? {
        entry.as_object_mut()?.remove("time");
    }
    Some(object)
}
