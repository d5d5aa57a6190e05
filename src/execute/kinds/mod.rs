//! The kinds whose CRDs a run creates or changes. Objects of these kinds wait until the server serves the kind
//! (`await_served`), or validates by the changed schema (`schema_change`).

pub mod await_served;
pub mod schema_change;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use http::StatusCode;
use tokio::time::{Instant, sleep};

use crate::cluster::apiserver::{ApiError, Reply};
use crate::event::Interrupt;
use crate::execute::Execution;
use crate::execute::kinds::await_served::PATIENCE;
use crate::execute::kinds::schema_change::ChangedCrd;
use crate::execute::members::apply_as_read::Expected;
use crate::manifest::desired::DesiredObject;
use crate::model::identity::GroupKind;
use crate::plan::{LiveMembership, is_not_yet_served};

/// The pause before a request is sent again.
const PAUSE: Duration = Duration::from_millis(100);

/// The kinds whose CRD a run has changed.
#[derive(Debug, Default)]
pub struct ChangedKinds(RefCell<BTreeMap<GroupKind, Rc<ChangedCrd>>>);

impl ChangedKinds {
    /// Records that this run has changed a CRD.
    pub fn add_changed_crd(&self, crd: ChangedCrd) {
        let kind = crd.kind.clone();
        self.0.borrow_mut().insert(kind, Rc::new(crd));
    }

    /// Returns the CRD of the kind, if this run has changed it.
    pub fn changed_crd(&self, kind: &GroupKind) -> Option<Rc<ChangedCrd>> {
        self.0.borrow().get(kind).cloned()
    }
}

impl Execution<'_> {
    /// Applies a member. Applies it again as long as the server does not serve its new kind, or validates by the former
    /// schema of its changed CRD.
    pub async fn apply_until_served_with_new_schema(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        expected: &Expected,
        kinds: &ChangedKinds,
    ) -> Result<Reply, ApiError> {
        let changed_crd = kinds.changed_crd(&object.key.group_kind);
        let begun = Instant::now();
        let mut was_created = false;
        let mut expected = expected.clone();
        loop {
            let mut answer = self
                .apply_and_migrate_managed_fields(object, live_membership, &expected)
                .await;
            if let Ok(reply) = &mut answer {
                // The next apply expects the object as this one has written it: another set may have taken it by
                // then. If this apply expected nothing, the next one does not either.
                if expected != Expected::Any {
                    let written = self.seen_after_write(&reply.json_or_null());
                    expected = written.map_or(Expected::Any, Expected::Version);
                }
                // Only the first answer shows that the object did not exist before: its status is that of all answers.
                was_created |= reply.status == StatusCode::CREATED;
                if was_created {
                    reply.status = StatusCode::CREATED;
                }
            }
            let has_to_apply_again = match (&answer, &changed_crd) {
                (Err(error), _) if is_too_early(object, error) => begun.elapsed() < PATIENCE,
                (answer, Some(crd)) => {
                    crd.has_to_apply_again(object, answer, &self.writing.field_manager)
                        && self.has_changed_spec(object, crd).await
                }
                _ => false,
            };
            if !has_to_apply_again || self.interrupt.is_requested() {
                return answer;
            }
            pause_until_stopped(self.interrupt).await;
        }
    }
}

/// Returns whether this is the error of an apply that was sent before the server served the new kind of this object.
fn is_too_early(object: &DesiredObject, error: &ApiError) -> bool {
    is_not_yet_served(object) && error.has_status_code(StatusCode::NOT_FOUND) && !error.is_missing_object()
}

/// Sleeps before a request is sent again; a stop of the run ends the pause.
async fn pause_until_stopped(interrupt: &Interrupt) {
    tokio::select! {
        () = interrupt.wait_until_requested() => {}
        () = sleep(PAUSE) => {}
    }
}
