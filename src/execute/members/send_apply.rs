//! The request that applies a member. `managers_to_take_from` says whose fields it takes.

use http::StatusCode;
use serde_json::json;

use crate::cluster::apiserver::{ApiError, ApiRequest, Patch, Reply};
use crate::compare::ownership::KUBECTL_FIELD_MANAGER;
use crate::execute::Execution;
use crate::manifest::desired::DesiredObject;
use crate::model::object::Object;
use crate::model::write_settings::{Conflicts, DryRun};
use crate::plan::{LiveMembership, Seen};
use crate::read::{self, METADATA, WHOLE_OBJECTS};

/// The query parameter of an apply that takes fields of other managers.
pub const FORCE: (&str, &str) = ("force", "true");

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
                    .map_err(|error| self.leave_out_taken_fields_unless_alone(error, live_membership));
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
        self.apply_request_in_mode(&self.writing.conflicts, self.writing.dry_run, object, lock)
    }

    /// Returns the request that applies a member and takes the fields of other managers.
    pub fn forced_apply_request(&self, object: &DesiredObject, lock: Option<&Seen>) -> ApiRequest {
        self.apply_request_in_mode(&Conflicts::Forced, self.writing.dry_run, object, lock)
    }

    /// Returns the dry run of the request that applies a member and takes the fields of other managers.
    pub fn forced_apply_dry_run(&self, object: &DesiredObject) -> ApiRequest {
        self.apply_request_in_mode(&Conflicts::Forced, DryRun::Server, object, None)
    }

    fn apply_request_in_mode(
        &self,
        conflicts: &Conflicts,
        dry_run: DryRun,
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
        parameters.extend(dry_run.parameter());
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
