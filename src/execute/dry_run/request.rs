//! Sends dry runs to the server.

use http::StatusCode;
use serde_json::Value;

use super::answer::{have_same_version, parse_object};
use crate::cluster::apiserver::{ApiError, ApiRequest, Patch, Reply};
use crate::compare::changes::CrdVersion;
use crate::compare::diff;
use crate::compare::ownership::{self, LastAppliedTreatment, OwnershipMigration};
use crate::compare::prediction::PredictedApply;
use crate::execute::Execution;
use crate::execute::unusable_versions::{
    is_refusal_of_unusable_version, managed_fields_without_unusable_versions,
};
use crate::manifest::desired::DesiredObject;
use crate::plan::LiveMembership;
use crate::read::{self, WHOLE_OBJECTS};

/// The number of dry runs of an object that other clients write at the same time.
const MAX_ATTEMPTS: u32 = 5;

impl Execution<'_> {
    /// Sends a dry run of an apply, and makes sure that `live` is the object on which the dry run was based: reads the
    /// object, and sends the dry run again, until both have the same resourceVersion. `live` becomes `None` if the
    /// object would be created.
    ///
    /// Otherwise, what another client wrote between the read and the dry run would show as a difference. After the last
    /// attempt, the versions may differ.
    pub(super) async fn dry_run_until_live_matches(
        &self,
        live: &mut Option<Value>,
        object: &DesiredObject,
        dry_run: impl AsyncFn() -> Result<Reply, ApiError>,
    ) -> Result<Reply, ApiError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let reply = dry_run().await?;
            if reply.status == StatusCode::CREATED {
                *live = None;
                return Ok(reply);
            }
            let predicted = parse_object(&reply);
            if have_same_version(live.as_ref(), predicted.as_ref()) {
                return Ok(reply);
            }
            *live = read::read_object(self.server, &object.resource, &object.key).await?;
            if attempts == MAX_ATTEMPTS || have_same_version(live.as_ref(), predicted.as_ref()) {
                return Ok(reply);
            }
        }
    }

    /// Sends the dry run of an apply. If it conflicts only with former owners, it is sent again by force: the run takes
    /// these fields, too.
    pub(super) async fn send_apply_dry_run(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
    ) -> Result<Reply, ApiError> {
        let with_live = self
            .prepare_apply_with_live_fields(object, live_membership)
            .await?;
        let object = with_live.as_ref().map_or(object, |with_live| &with_live.object);
        match self.server.send(self.apply_request(object, None)).await {
            Err(error) if self.takes_all_fields_in_conflict(&error, live_membership) => {
                self.server.send(self.forced_apply_request(object, None)).await
            }
            answer => {
                answer.map_err(|error| self.leave_out_taken_fields_unless_alone(error, live_membership))
            }
        }
    }

    /// Predicts the object after the run has migrated the fields of a former owner, so that its apply removes those
    /// that the manifest does not have. A dry run of the apply alone does not show that. `None` if it removes none.
    ///
    /// A removed field may have a default. The server fills it in, in a dry run of a patch that removes the fields.
    pub(super) async fn predict_without_given_up_fields(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        live: &Value,
    ) -> Option<Value> {
        let former = self.migration_from_former_owners(live_membership);
        let kind = &object.key.group_kind;
        ownership::migrated_managed_fields_of_kind(kind, &live["metadata"], &former)?;
        let predicted = self
            .predict_apply_after_migration(object, live_membership, live)
            .await;
        if !predicted.gives_up_fields {
            return None;
        }
        let with_defaults = self.dry_run_patch(object, live, &predicted.object).await.ok();
        with_defaults
            .as_ref()
            .and_then(parse_object)
            .or(Some(predicted.object))
    }

    /// Predicts an object whose apply the server has refused with `error`, if the run can apply it once it has
    /// rewritten the managed fields. The run rewrites them if a former owner has fields, or if they name a version that
    /// cannot hold the object. `None` in all other cases, and if the object is refused even then. Reads the object into
    /// `live` if the caller has not.
    pub async fn predict_migration_after_refusal(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        live: &mut Option<Value>,
        error: &ApiError,
    ) -> Option<Reply> {
        let is_of_version = is_refusal_of_unusable_version(error);
        if !error.has_status_code(StatusCode::UNPROCESSABLE_ENTITY) && !is_of_version {
            return None;
        }
        if live.is_none() {
            *live = read::read_object(self.server, &object.resource, &object.key)
                .await
                .ok()?;
        }
        let mut migrated = live.clone()?;
        if is_of_version {
            let (metadata, resource) = (&migrated["metadata"], &object.resource);
            let entries = managed_fields_without_unusable_versions(self.server, metadata, resource);
            migrated["metadata"]["managedFields"] = entries.await.ok()??;
        } else {
            ownership::migrated_managed_fields(
                &migrated["metadata"],
                &self.migration_from_former_owners(live_membership),
            )?;
        }
        let predicted = self
            .predict_apply_after_migration(object, live_membership, &migrated)
            .await;
        self.dry_run_patch(object, &migrated, &predicted.object)
            .await
            .ok()
    }

    /// Predicts an object that is applied after its managed fields are rewritten. A dry run of the apply cannot show
    /// that: the server refuses the manifest together with the fields of the former owner, such as a Service with the
    /// former port and a new one of the same name. So the apply is predicted here. The caller sends what is predicted as
    /// a dry run of a patch.
    async fn predict_apply_after_migration(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        live: &Value,
    ) -> PredictedApply {
        let definition = self.read_definition_if_custom(&object.resource).await;
        let definition = definition
            .as_ref()
            .and_then(|definition| CrdVersion::from_definition(definition, &object.resource.version));
        self.predict_apply_over(live, object, live_membership, definition)
    }

    /// Returns the managers from which the run takes fields of this object: client-side apply, and for a member, the
    /// former tool of the set.
    pub fn migration_from_former_owners(&self, live_membership: &LiveMembership) -> OwnershipMigration<'_> {
        OwnershipMigration {
            manager: &self.writing.field_manager,
            tool: live_membership
                .uid_of_member()
                .and(self.writing.former_manager.as_deref()),
            writers: &[],
            last_applied: LastAppliedTreatment::for_tooling(&self.set.tooling),
        }
    }

    /// Sends the dry run of a patch that turns the live object into the `patched` one.
    async fn dry_run_patch(
        &self,
        object: &DesiredObject,
        live: &Value,
        patched: &Value,
    ) -> Result<Reply, ApiError> {
        let mut patch = diff::create_merge_patch(live, patched);
        if let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut) {
            // The server sets these fields.
            for field in ["managedFields", "resourceVersion", "generation"] {
                metadata.remove(field);
            }
        }
        let path = object.resource.path_of(&object.key);
        let parameters = [("dryRun", "All"), ("fieldManager", &*self.writing.field_manager)];
        let request = ApiRequest::patch(&path, &parameters, WHOLE_OBJECTS, Patch::Merge, patch.to_string());
        self.server.send(request).await
    }
}
