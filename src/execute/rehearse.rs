//! Dry runs of single members: what a run would do to each, found out without writing.

use http::StatusCode;

use super::Execution;
use super::member::{MemberReply, failed, told, written};
use crate::desired::DesiredObject;
use crate::event::{Action, ObjectOutcome, Subject};
use crate::observe::METADATA;
use crate::plan::{MemberStanding, is_promised};

impl Execution<'_> {
    /// Lets the server rehearse an apply, and tells only what that would do.
    pub(super) async fn rehearse_member(
        &self,
        object: &DesiredObject,
        subject: Subject,
        standing: &MemberStanding,
    ) -> MemberReply {
        let foreseen = self.foresee_member(object, subject, standing).await;
        MemberReply {
            outcome: foreseen.outcome,
            warnings: foreseen.warnings,
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
            return told(ObjectOutcome::new(subject, Action::Configured));
        }
        if self.is_out_of_reach(object) {
            return told(ObjectOutcome::new(subject, Action::Created));
        }
        let path = object
            .resource
            .path(object.key.namespace.as_deref(), Some(&object.key.name));
        match self.server.get(&path, METADATA).await {
            Ok(reply) => {
                subject.uid = written(&reply).ok().map(|written| written.metadata.uid);
                told(ObjectOutcome::new(subject, Action::Configured))
            }
            Err(error) if error.is(StatusCode::NOT_FOUND) => {
                told(ObjectOutcome::new(subject, Action::Created))
            }
            Err(error) => failed(subject, error.kind.to_string()),
        }
    }

    /// Whether the server cannot know this object before other members are written: its kind
    /// or its namespace comes with them.
    pub(super) fn is_out_of_reach(&self, object: &DesiredObject) -> bool {
        let is_missing = |namespace: &String| !self.namespaces.contains_key(namespace);
        is_promised(object) || object.key.namespace.as_ref().is_some_and(is_missing)
    }
}
