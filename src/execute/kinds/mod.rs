//! The kinds whose CRDs a run creates or changes. Objects of these kinds wait until the server serves the kind
//! (`await_served`), and are applied again if it may have refused them by the former schema.

pub mod await_served;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use http::StatusCode;
use tokio::time::{Instant, sleep};

use crate::cluster::apiserver::{ApiError, Reply};
use crate::event::Interrupt;
use crate::execute::Execution;
use crate::execute::kinds::await_served::PATIENCE;
use crate::execute::members::apply_as_read::Expected;
use crate::execute::members::message_of_rejected_manifest::is_schema_violation;
use crate::manifest::desired::{DesiredObject, kind_defined_by_crd};
use crate::model::identity::GroupKind;
use crate::plan::{LiveMembership, is_not_yet_served};

/// The pause before a request is sent again.
const PAUSE: Duration = Duration::from_millis(100);

/// The time after the change of a CRD in which an apply that the server refuses is sent again. The server validates
/// custom resources by a copy of their CRD, which it replaces milliseconds after the CRD has changed, or seconds later
/// if it is busy (`apiextensions-apiserver`, `customresource_handler.go`). Nothing that can be read from the server shows
/// when that happens.
const PATIENCE_AFTER_CHANGE: Duration = Duration::from_secs(5);

/// The kinds whose CRD a run has changed, each with the time of the change.
#[derive(Debug, Default)]
pub struct ChangedKinds(RefCell<BTreeMap<GroupKind, Instant>>);

impl ChangedKinds {
    /// Records that this run has changed the object, if it is a CRD.
    pub fn note_if_crd(&self, object: &DesiredObject) {
        if let Some(kind) = kind_defined_by_crd(object) {
            self.0.borrow_mut().insert(kind, Instant::now());
        }
    }

    /// Returns whether the server may still use the former CRD of the kind.
    fn may_use_former_crd(&self, kind: &GroupKind) -> bool {
        let changed = self.0.borrow().get(kind).copied();
        changed.is_some_and(|changed| changed.elapsed() < PATIENCE_AFTER_CHANGE)
    }
}

impl Execution<'_> {
    /// Applies a member. Applies it again as long as the server does not serve its new kind, or may refuse it by the
    /// former schema of its changed CRD.
    pub async fn apply_until_served_with_new_schema(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        expected: &Expected,
    ) -> Result<Reply, ApiError> {
        let begun = Instant::now();
        loop {
            let answer = self
                .apply_and_migrate_managed_fields(object, live_membership, expected)
                .await;
            let has_to_apply_again = answer.as_ref().is_err_and(|error| {
                if is_too_early(object, error) {
                    begun.elapsed() < PATIENCE
                } else {
                    may_be_by_former_schema(error)
                        && self.changed_kinds.may_use_former_crd(&object.key.group_kind)
                }
            });
            if !has_to_apply_again || self.interrupt.is_requested() {
                return answer;
            }
            pause_until_stopped(self.interrupt).await;
        }
    }
}

/// Returns whether the server may refuse an apply in this way because of the schema of the object's kind: an undeclared
/// field, an invalid value, or a conflict about a list that others own as a whole.
fn may_be_by_former_schema(error: &ApiError) -> bool {
    error.status().is_some_and(|status| {
        is_schema_violation(&status.message) || status.code == 422 || status.is_field_conflict()
    })
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
