//! The request that applies a member, and the fields that it takes from other managers.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::json;

use crate::cluster::apiserver::{ApiError, ApiRequest, Patch, Reply, Status, StatusCause};
use crate::compare::ownership::{CLIENT_SIDE_APPLY, KUBECTL_FIELD_MANAGER};
use crate::execute::Execution;
use crate::manifest::desired::DesiredObject;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::object::Object;
use crate::model::write_settings::{Conflicts, DryRun};
use crate::plan::{LiveMembership, Seen};
use crate::read::{self, METADATA, WHOLE_OBJECTS};

/// The query parameter of an apply that takes fields of other managers.
pub const FORCE: (&str, &str) = ("force", "true");

/// The managers from which a run takes fields of an object.
#[derive(Default)]
struct FormerOwners {
    /// Managers whose fields move to our manager before the apply: client-side apply, unless the object is in another
    /// set, and the former tool of a set that is taken over.
    migrated: BTreeSet<String>,
    /// Managers whose fields are taken by force.
    forced: BTreeSet<String>,
    /// Whether the part-of label is taken by force, whoever owns it.
    takes_label: bool,
}

impl FormerOwners {
    /// The part-of label is never taken because of its manager: another set that uses this manager may hold the object.
    fn is_forced(&self, cause: &StatusCause) -> bool {
        if cause.field == path_of_part_of_label() {
            return self.takes_label;
        }
        cause.manager().is_some_and(|name| self.forced.contains(&name))
    }

    fn is_migrated(&self, cause: &StatusCause) -> bool {
        cause.field != path_of_part_of_label()
            && cause.manager().is_some_and(|name| self.migrated.contains(&name))
    }

    fn has(&self, cause: &StatusCause) -> bool {
        self.is_forced(cause) || self.is_migrated(cause)
    }
}

impl Execution<'_> {
    /// Sends the apply of a member. If it conflicts only with managers from which this run takes fields, some of them
    /// by force, it is sent again by force, bound to a version that has no other conflicts.
    pub(super) async fn send_apply_and_force_if_allowed(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        lock: Option<&Seen>,
    ) -> Result<Reply, ApiError> {
        let error = match self.server.send(self.apply_request(object, lock)).await {
            Err(error) if self.has_to_force(&error, live_membership) => error,
            answer => {
                return answer
                    .map_err(|error| self.leave_out_former_owners_unless_alone(error, live_membership));
            }
        };
        let attempts = error.earlier_attempts;
        if lock.is_some() || !self.may_bind_apply_to_version(object) {
            let reply = self.server.send(self.forced_apply_request(object, lock)).await?;
            return Ok(reply.add_earlier_attempts(attempts));
        }
        let read = read::read_object(self.server, &object.resource, &object.key).await;
        let Ok(Some(live)) = read else {
            return Err(error);
        };
        let lock = Seen::from_uid_and_version(&live);
        // The first answer may be about an older version than the one to which the forced apply is bound.
        let bound = Box::pin(self.send_apply_and_force_if_allowed(object, live_membership, Some(&lock)));
        Ok(bound.await?.add_earlier_attempts(attempts))
    }

    /// Returns whether an apply of this object can be bound to a version by this run. A body that has a version is
    /// bound already, and that version must not be replaced. With kubectl's field manager, the server would copy the
    /// version into the annotation of client-side apply.
    fn may_bind_apply_to_version(&self, object: &DesiredObject) -> bool {
        self.writing.field_manager != KUBECTL_FIELD_MANAGER
            && !object.object.metadata().contains_key("resourceVersion")
    }

    /// Returns the request that applies a member. With a `lock`, the apply fails unless the live object has the UID and
    /// resourceVersion of the lock.
    pub fn apply_request(&self, object: &DesiredObject, lock: Option<&Seen>) -> ApiRequest {
        self.apply_request_with_conflicts(&self.writing.conflicts, object, lock)
    }

    /// Returns the request that applies a member and takes the fields of other managers.
    pub fn forced_apply_request(&self, object: &DesiredObject, lock: Option<&Seen>) -> ApiRequest {
        self.apply_request_with_conflicts(&Conflicts::Forced, object, lock)
    }

    fn apply_request_with_conflicts(
        &self,
        conflicts: &Conflicts,
        object: &DesiredObject,
        lock: Option<&Seen>,
    ) -> ApiRequest {
        let mut parameters = vec![
            ("fieldManager", self.writing.field_manager.as_str()),
            ("fieldValidation", self.writing.validation.parameter()),
        ];
        if *conflicts == Conflicts::Forced {
            parameters.push(FORCE);
        }
        parameters.extend(self.writing.dry_run.parameter());
        let accept = self.accept_of_answers();
        let path = object.resource.path_of(&object.key);
        let body = match lock {
            None => object.object.body(),
            Some(seen) => with_preconditions(object, seen).body(),
        };
        ApiRequest::patch(&path, &parameters, accept, Patch::Apply, body)
    }

    /// Returns the form in which the server answers the write of a member: its metadata, if the run needs no more. A run
    /// of a saved plan needs the whole object, whose content is the precondition of the next write.
    pub(super) fn accept_of_answers(&self) -> &'static str {
        match self.writing.dry_run {
            DryRun::None if !self.plan.preconditions.is_of_saved_plan() => METADATA,
            DryRun::None | DryRun::Client | DryRun::Server => WHOLE_OBJECTS,
        }
    }

    /// Returns whether all fields in conflict belong to managers from which this run takes fields.
    pub fn conflicts_only_with_former_owners(
        &self,
        error: &ApiError,
        live_membership: &LiveMembership,
    ) -> bool {
        let former = self.former_owners(error, live_membership);
        conflicts_only_with(error, |cause| former.has(cause))
    }

    /// Returns whether this run takes all fields in conflict, and some of them by force.
    fn has_to_force(&self, error: &ApiError, live_membership: &LiveMembership) -> bool {
        self.conflicts_only_with_former_owners(error, live_membership)
            && !self.is_resolved_by_migration(error, live_membership)
    }

    /// Returns whether all fields in conflict belong to managers whose fields move to our manager.
    pub(super) fn is_resolved_by_migration(
        &self,
        error: &ApiError,
        live_membership: &LiveMembership,
    ) -> bool {
        let former = self.former_owners(error, live_membership);
        conflicts_only_with(error, |cause| {
            former.is_migrated(cause) && !former.is_forced(cause)
        })
    }

    /// Returns the error without the conflicts about fields that this run takes, unless there are no others.
    pub fn leave_out_former_owners_unless_alone(
        &self,
        mut error: ApiError,
        live_membership: &LiveMembership,
    ) -> ApiError {
        let former = self.former_owners(&error, live_membership);
        leave_out_conflicts_unless_all_taken(&mut error, |cause| former.has(cause));
        error
    }

    /// Returns the managers from which this run takes fields. `error` is the answer to an apply without force.
    ///
    /// From an object of another set, the run takes the part-of label and all fields of these managers: those that have
    /// applied the label, since that set has applied the object through them; our own manager, if it owns the label;
    /// and client-side apply. A manager that has only updated the label, as `kubectl label` does, keeps its other
    /// fields.
    fn former_owners(&self, error: &ApiError, live_membership: &LiveMembership) -> FormerOwners {
        let mut former = FormerOwners::default();
        former
            .forced
            .extend(self.writing.conflicts.named_managers().iter().cloned());
        match live_membership {
            LiveMembership::OfAnotherSet { .. } => {
                let causes = error.status().into_iter().flat_map(Status::field_conflicts);
                let appliers = causes.filter(|cause| {
                    let is_ours = cause.manager().as_deref() == Some(&*self.writing.field_manager);
                    cause.field == path_of_part_of_label() && (cause.is_applied_by_owner() || is_ours)
                });
                former.forced.extend(appliers.filter_map(StatusCause::manager));
                // Forced, and not migrated: the fields of client-side apply move only once the object is in this set.
                former.forced.insert(CLIENT_SIDE_APPLY.to_owned());
                former.takes_label = true;
            }
            LiveMembership::Member { .. } => {
                former.migrated.insert(CLIENT_SIDE_APPLY.to_owned());
                former.migrated.extend(self.writing.former_manager.clone());
            }
            LiveMembership::NotAMember | LiveMembership::Terminating => {
                former.migrated.insert(CLIENT_SIDE_APPLY.to_owned());
            }
        }
        former
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

/// Returns the object with the precondition that the live one is unchanged. A UID in the manifest stays, so that the
/// server refuses a wrong one, in a dry run as in a run.
pub fn with_preconditions(object: &DesiredObject, seen: &Seen) -> Object {
    let mut metadata = object.object.metadata();
    metadata.entry("uid").or_insert_with(|| json!(seen.uid));
    metadata.insert("resourceVersion".to_owned(), json!(seen.resource_version));
    object.object.with_metadata(&metadata)
}

/// Returns whether another attempt may succeed: the conflict is about the object's version, not about a field.
pub fn is_version_conflict(error: &ApiError) -> bool {
    error.has_status_code(StatusCode::CONFLICT)
        && error.status().is_some_and(|status| !status.is_field_conflict())
}
