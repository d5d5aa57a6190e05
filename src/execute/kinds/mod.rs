//! The kinds that a run defines or redefines by CRDs, as far as objects of these kinds have to wait for the server:
//! `establish` for new kinds, `schema_change` for those whose CRD changed.

pub mod establish;
pub mod schema_change;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use http::StatusCode;
use tokio::time::Instant;

use crate::cluster::apiserver::{ApiError, Reply};
use crate::execute::Execution;
use crate::execute::kinds::establish::{NotServed, PATIENCE, await_served, pause};
use crate::execute::kinds::schema_change::Redefined;
use crate::execute::members::apply_as_read::Expected;
use crate::manifest::desired::DesiredObject;
use crate::model::identity::GroupKind;
use crate::plan::{LiveMembership, is_not_yet_served};

/// The kinds of a run that are not served yet or change.
#[derive(Debug, Default)]
pub struct Kinds {
    /// The new kinds that are waited for or served, each with the time until which a 404 may come too early.
    new: RefCell<BTreeMap<GroupKind, Instant>>,
    /// The kinds whose CRD this run has changed.
    redefined: RefCell<BTreeMap<GroupKind, Rc<Redefined>>>,
}

impl Kinds {
    /// Notes that this run has changed a CRD.
    pub fn note_redefined(&self, redefined: Redefined) {
        let kind = redefined.kind.clone();
        self.redefined.borrow_mut().insert(kind, Rc::new(redefined));
    }

    /// Returns the change of the kind's CRD in this run.
    pub fn redefined(&self, kind: &GroupKind) -> Option<Rc<Redefined>> {
        self.redefined.borrow().get(kind).cloned()
    }

    /// Returns whether this error means that the server does not serve the path yet, so that the apply may be sent
    /// again.
    fn is_early(&self, object: &DesiredObject, error: &ApiError) -> bool {
        is_not_yet_served(object)
            && error.is(StatusCode::NOT_FOUND)
            && !error.is_missing_object()
            && self
                .new
                .borrow()
                .get(&object.key.group_kind)
                .is_some_and(|deadline| Instant::now() < *deadline)
    }
}

impl Execution<'_> {
    /// Waits until the kind of this object is served, which the run has defined.
    pub async fn await_kind(&self, object: &DesiredObject, kinds: &Kinds) -> Result<(), NotServed> {
        let deadline = Instant::now() + PATIENCE;
        kinds
            .new
            .borrow_mut()
            .insert(object.key.group_kind.clone(), deadline);
        let (resource, namespace) = (&object.resource, object.key.namespace.as_deref());
        let interrupt = self.interrupt;
        await_served(
            self.server,
            interrupt,
            resource,
            namespace,
            deadline,
            self.wait_notes,
        )
        .await
    }

    /// Applies a member, and repeats that while the server does not serve its kind yet, or not as its new CRD has it.
    pub async fn apply_in_time(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        mut expected: &Expected,
        kinds: &Kinds,
    ) -> Result<Reply, ApiError> {
        let redefined = kinds.redefined(&object.key.group_kind);
        let mut is_made = false;
        loop {
            let mut answer = self.apply_and_migrate(object, live_membership, expected).await;
            if let Ok(reply) = &mut answer {
                // The object exists from now on.
                expected = &Expected::Any;
                // The first answer shows whether it existed before.
                is_made |= reply.status == StatusCode::CREATED;
                if is_made {
                    reply.status = StatusCode::CREATED;
                }
            }
            let is_early = match (&answer, &redefined) {
                (Err(error), _) if kinds.is_early(object, error) => true,
                (answer, Some(redefined)) => {
                    redefined.is_early(object, answer, &self.writing.field_manager)
                        && self.has_other_spec(object, redefined).await
                }
                _ => false,
            };
            if !is_early || self.interrupt.is_requested() {
                return answer;
            }
            pause(self.interrupt).await;
        }
    }
}
