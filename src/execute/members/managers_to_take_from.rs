//! The managers from which a run takes fields of a member: those that `--force-conflicts` names, and former owners of the
//! object, such as client-side apply. Each conflict of an apply is judged by them.

use std::collections::BTreeSet;

use crate::cluster::apiserver::{ApiError, Status, StatusCause};
use crate::compare::ownership::CLIENT_SIDE_APPLY;
use crate::execute::Execution;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::write_settings::Conflicts;
use crate::plan::LiveMembership;

/// The managers from which a run takes fields of an object.
struct ManagersToTakeFrom<'w> {
    /// The value of `--force-conflicts`, which may name managers.
    conflicts: &'w Conflicts,
    /// Managers whose fields move to our manager before the apply: client-side apply, unless the object is in another
    /// set, and the former tool of a set that is taken over.
    migrated: BTreeSet<String>,
    /// Other managers whose fields are taken by force.
    forced: BTreeSet<String>,
    /// `true` if the run takes the part-of label by force from any owner.
    takes_label: bool,
}

impl ManagersToTakeFrom<'_> {
    /// Returns whether the run takes the field by force. The part-of label is never taken because of its manager: another
    /// set that uses this manager may hold the object.
    fn is_forced(&self, cause: &StatusCause) -> bool {
        if cause.field == path_of_part_of_label() {
            return self.takes_label;
        }
        cause
            .manager()
            .is_some_and(|name| self.conflicts.takes_from_named(&name) || self.forced.contains(&name))
    }

    /// Returns whether the field moves to our manager, and need not be forced.
    fn is_migrated(&self, cause: &StatusCause) -> bool {
        !self.is_forced(cause)
            && cause.field != path_of_part_of_label()
            && cause.manager().is_some_and(|name| self.migrated.contains(&name))
    }

    fn has(&self, cause: &StatusCause) -> bool {
        self.is_forced(cause) || self.is_migrated(cause)
    }
}

impl Execution<'_> {
    /// Returns whether all fields in conflict belong to managers from which this run takes fields.
    pub fn takes_all_fields_in_conflict(&self, error: &ApiError, live_membership: &LiveMembership) -> bool {
        let managers = self.managers_to_take_from(error, live_membership);
        conflicts_only_with(error, |cause| managers.has(cause))
    }

    /// Returns whether this run takes all fields in conflict, and some of them by force.
    pub fn has_to_force(&self, error: &ApiError, live_membership: &LiveMembership) -> bool {
        self.takes_all_fields_in_conflict(error, live_membership)
            && !self.is_resolved_by_migration(error, live_membership)
    }

    /// Returns whether all fields in conflict belong to managers whose fields move to our manager.
    pub fn is_resolved_by_migration(&self, error: &ApiError, live_membership: &LiveMembership) -> bool {
        let managers = self.managers_to_take_from(error, live_membership);
        conflicts_only_with(error, |cause| managers.is_migrated(cause))
    }

    /// Returns the error without the conflicts about fields that this run takes, unless there are no others.
    pub fn leave_out_taken_fields_unless_alone(
        &self,
        mut error: ApiError,
        live_membership: &LiveMembership,
    ) -> ApiError {
        let managers = self.managers_to_take_from(&error, live_membership);
        leave_out_conflicts_unless_all_taken(&mut error, |cause| managers.has(cause));
        error
    }

    /// Returns the managers from which this run takes fields. `error` is the answer to an apply without force.
    ///
    /// From an object of another set, the run takes the part-of label and all fields of these managers: those that have
    /// applied the label, since that set has applied the object through them; our own manager, if it owns the label;
    /// and client-side apply. A manager that has only updated the label, as `kubectl label` does, keeps its other
    /// fields.
    fn managers_to_take_from(
        &self,
        error: &ApiError,
        live_membership: &LiveMembership,
    ) -> ManagersToTakeFrom<'_> {
        let mut managers = ManagersToTakeFrom {
            conflicts: &self.writing.conflicts,
            migrated: BTreeSet::new(),
            forced: BTreeSet::new(),
            takes_label: false,
        };
        match live_membership {
            LiveMembership::OfAnotherSet { .. } => {
                let causes = error.status().into_iter().flat_map(Status::field_conflicts);
                let appliers = causes.filter(|cause| {
                    let is_ours = cause.manager().as_deref() == Some(&*self.writing.field_manager);
                    cause.field == path_of_part_of_label() && (cause.is_applied_by_owner() || is_ours)
                });
                managers.forced.extend(appliers.filter_map(StatusCause::manager));
                // Forced, and not migrated: the fields of client-side apply move only once the object is in this set.
                managers.forced.insert(CLIENT_SIDE_APPLY.to_owned());
                managers.takes_label = true;
            }
            LiveMembership::Member { .. } => {
                managers.migrated.insert(CLIENT_SIDE_APPLY.to_owned());
                managers.migrated.extend(self.writing.former_manager.clone());
            }
            LiveMembership::NotAMember | LiveMembership::Terminating => {
                managers.migrated.insert(CLIENT_SIDE_APPLY.to_owned());
            }
        }
        managers
    }
}

/// Returns whether the error is about fields in conflict, and each of them `is_taken`.
pub fn conflicts_only_with(error: &ApiError, is_taken: impl Fn(&StatusCause) -> bool) -> bool {
    error
        .status()
        .is_some_and(|status| status.is_field_conflict() && status.field_conflicts().all(is_taken))
}

/// Removes the conflicts of an error that are `is_taken`, unless there are no others.
pub fn leave_out_conflicts_unless_all_taken(error: &mut ApiError, is_taken: impl Fn(&StatusCause) -> bool) {
    if !conflicts_only_with(error, &is_taken)
        && let Some(status) = error.status_mut()
    {
        let causes = &mut status.details.causes;
        causes.retain(|cause| !cause.is_field_conflict() || !is_taken(cause));
    }
}

/// Returns the path of the part-of label, in the syntax of the server.
fn path_of_part_of_label() -> String {
    format!(".metadata.labels.{PART_OF_LABEL}")
}
