//! Dry runs of single members: what a run would do to each, found out without writing.

use std::sync::Arc;

use http::StatusCode;

use super::Execution;
use super::member::{MemberReply, failed, told, written};
use crate::desired::DesiredObject;
use crate::discovery::Resource;
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
        let Some(resource) = self.readable_through(object) else {
            return told(ObjectOutcome::new(subject, Action::Created));
        };
        let path = resource.path(object.key.namespace.as_deref(), Some(&object.key.name));
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

    /// Whether the server cannot rehearse this object before other members are written: its
    /// kind, its version or its namespace comes with them.
    pub(super) fn is_out_of_reach(&self, object: &DesiredObject) -> bool {
        is_promised(object) || self.lacks_namespace_of(object)
    }

    /// The resource through which the object can be read now; `None` where it cannot be there.
    pub(super) fn readable_through<'o>(&'o self, object: &'o DesiredObject) -> Option<&'o Arc<Resource>> {
        if self.lacks_namespace_of(object) {
            return None;
        }
        object.readable_through(&self.places.resources)
    }

    fn lacks_namespace_of(&self, object: &DesiredObject) -> bool {
        let namespace = object.key.namespace.as_ref();
        namespace.is_some_and(|namespace| !self.namespaces.contains_key(namespace))
    }
}
