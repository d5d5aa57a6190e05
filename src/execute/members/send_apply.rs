//! The request that applies a member, and the fields that it takes from other managers.

use http::StatusCode;
use serde_json::json;

use crate::cluster::apiserver::{ApiError, ApiRequest, Patch, Reply, Status, StatusCause};
use crate::compare::ownership::CLIENT_SIDE_APPLY;
use crate::execute::Execution;
use crate::manifest::desired::DesiredObject;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::object::Object;
use crate::model::write_settings::{Conflicts, DryRun};
use crate::plan::{LiveMembership, Seen};
use crate::read::{METADATA, WHOLE_OBJECTS};

impl Execution<'_> {
    /// Sends the apply of a member. An object of another set is taken by force if all fields in conflict belong to that
    /// set (`is_conflict_with_former_owner`): the part-of label may be a field of that set's field manager. With the
    /// `lock`, the object is still the one that the first attempt conflicted with.
    pub(super) async fn send_apply(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        lock: Option<&Seen>,
    ) -> Result<Reply, ApiError> {
        match self.server.send(self.member_request(object, lock)).await {
            Err(error)
                if matches!(live_membership, LiveMembership::OfAnotherSet { .. })
                    && self.is_conflict_with_former_owner(&error, live_membership) =>
            {
                self.server.send(self.forced_member_request(object, lock)).await
            }
            answer => answer.map_err(|error| self.leave_out_former_owners(error, live_membership)),
        }
    }

    /// Returns the request that applies a member. With a `lock`, the apply fails unless the live object has the UID and
    /// resourceVersion of the lock.
    pub fn member_request(&self, object: &DesiredObject, lock: Option<&Seen>) -> ApiRequest {
        self.member_request_with(self.writing.conflicts, object, lock)
    }

    /// Returns the request that applies a member and takes the fields of other managers.
    pub fn forced_member_request(&self, object: &DesiredObject, lock: Option<&Seen>) -> ApiRequest {
        self.member_request_with(Conflicts::Forced, object, lock)
    }

    fn member_request_with(
        &self,
        conflicts: Conflicts,
        object: &DesiredObject,
        lock: Option<&Seen>,
    ) -> ApiRequest {
        let mut parameters = vec![
            ("fieldManager", self.writing.field_manager.as_str()),
            ("fieldValidation", self.writing.validation.parameter()),
        ];
        if conflicts == Conflicts::Forced {
            parameters.push(("force", "true"));
        }
        parameters.extend(self.writing.dry_run.parameter());
        let accept = match self.writing.dry_run {
            // A run of a saved plan needs the whole object: its content is the precondition of the next write.
            DryRun::None if !self.plan.preconditions.is_of_saved_plan() => METADATA,
            DryRun::None | DryRun::Client | DryRun::Server => WHOLE_OBJECTS,
        };
        let path = object.resource.path_of(&object.key);
        let body = match lock {
            None => object.object.body(),
            Some(seen) => with_preconditions(object, seen).body(),
        };
        ApiRequest::patch(&path, &parameters, accept, Patch::Apply, body)
    }

    /// Returns whether all fields in conflict belong to managers from which this run takes fields.
    pub fn is_conflict_with_former_owner(&self, error: &ApiError, live_membership: &LiveMembership) -> bool {
        error.status().is_some_and(|status| {
            let former_owners = self.former_owners(status, live_membership);
            status.is_field_conflict()
                && status
                    .field_conflicts()
                    .all(|cause| is_owned_by(cause, &former_owners))
        })
    }

    /// Returns the error of an apply that conflicts with other managers, without the conflicts with managers from which
    /// this run takes fields.
    pub fn leave_out_former_owners(&self, mut error: ApiError, live_membership: &LiveMembership) -> ApiError {
        if self.is_conflict_with_former_owner(&error, live_membership) {
            return error;
        }
        if let Some(status) = error.status_mut() {
            let former_owners = self.former_owners(status, live_membership);
            let causes = &mut status.details.causes;
            causes.retain(|cause| !cause.is_field_conflict() || !is_owned_by(cause, &former_owners));
        }
        error
    }

    /// Returns the managers from which this run takes fields, in quotes: client-side apply, the former tool of a set
    /// that is taken over, and for an object of another set, the manager of the part-of label, with which that set has
    /// applied the object. The latter is in `status`, the answer to an apply without force.
    fn former_owners(&self, status: &Status, live_membership: &LiveMembership) -> Vec<String> {
        let mut former_owners = vec![format!("\"{CLIENT_SIDE_APPLY}\"")];
        match live_membership {
            LiveMembership::Member { .. } => {
                let tool = self.writing.former_manager.iter();
                former_owners.extend(tool.map(|tool| format!("\"{tool}\"")));
            }
            LiveMembership::OfAnotherSet { .. } => {
                let label = format!(".metadata.labels.{PART_OF_LABEL}");
                let of_label = status.field_conflicts().filter(|cause| cause.field == label);
                former_owners.extend(of_label.map(|cause| cause.owner().to_owned()));
            }
            LiveMembership::NotAMember | LiveMembership::Terminating => {}
        }
        former_owners
    }
}

/// Returns the object with the precondition that the live one is unchanged. A UID in the manifest stays, so that the
/// server refuses a wrong one, in a dry run as in a run.
pub fn with_preconditions(object: &DesiredObject, seen: &Seen) -> Object {
    let mut metadata = object.object.metadata();
    metadata.entry("uid").or_insert_with(|| json!(seen.uid));
    metadata.insert("resourceVersion".to_owned(), json!(seen.resource_version));
    object.object.with_metadata(&metadata)
}

/// Returns whether this is a conflict that another attempt may not meet: about the object's version, not about a field.
pub fn is_version_conflict(error: &ApiError) -> bool {
    error.is(StatusCode::CONFLICT) && error.status().is_some_and(|status| !status.is_field_conflict())
}

/// Returns whether one of these managers, in quotes, owns a field in conflict.
fn is_owned_by(cause: &StatusCause, owners: &[String]) -> bool {
    owners.iter().any(|owner| cause.message.contains(owner))
}
