//! Sends dry runs to the server.

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use super::answer::{have_same_version, parse_object};
use super::by_merge::merged_with_manifest;
use crate::cluster::apiserver::{ApiError, ApiRequest, Patch, Reply};
use crate::compare::diff;
use crate::compare::ignore::{self, BodyPurpose};
use crate::compare::ownership::{self, LastAppliedTreatment, OwnershipMigration};
use crate::execute::Execution;
use crate::execute::members::apply_with_live_fields::with_managed_fields_migrated;
use crate::execute::unusable_versions::is_refusal_of_unusable_version;
use crate::manifest::desired::DesiredObject;
use crate::plan::LiveMembership;
use crate::read::{self, WHOLE_OBJECTS};

/// The number of dry runs of an object that other clients write at the same time.
const ATTEMPTS: u32 = 5;

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
            if attempts == ATTEMPTS || have_same_version(live.as_ref(), predicted.as_ref()) {
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
            Err(error) if self.conflicts_only_with_former_owners(&error, live_membership) => {
                self.server.send(self.forced_apply_request(object, None)).await
            }
            answer => {
                answer.map_err(|error| self.leave_out_former_owners_unless_alone(error, live_membership))
            }
        }
    }

    /// Predicts the object after the run has migrated the fields of a former owner, so that its apply removes those
    /// that the manifest does not have. `applied` is the object by a dry run of the apply alone. `None` if the
    /// migration makes no difference.
    ///
    /// A removed field may have a default. The server fills it in, in a dry run of a patch that removes the fields.
    pub(super) async fn predict_without_stale_fields(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        live: &Value,
        applied: &Value,
    ) -> Option<Value> {
        let former = self.migration_from_former_owners(live_membership);
        let secret = object.is_secret().then_some(live);
        let without = ownership::remove_stale_fields(applied, secret, &former)?;
        let with_defaults = self.dry_run_patch(object, live, &without).await.ok();
        with_defaults.as_ref().and_then(parse_object).or(Some(without))
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
        let live = live.as_ref()?;
        if is_of_version {
            self.managed_fields_in_usable_versions(object, &live["metadata"])
                .await
                .ok()??;
        } else {
            ownership::migrated_managed_fields(
                &live["metadata"],
                &self.migration_from_former_owners(live_membership),
            )?;
        }
        self.predict_after_migration(object, live_membership, live).await
    }

    /// Predicts an object that is applied after its managed fields are rewritten. A dry run of the apply cannot show
    /// that: the server refuses the manifest together with the fields of the former owner, such as a Service with the
    /// former port and a new one of the same name. So the manifest is merged into the live object here, and sent as a
    /// dry run of a patch. Lists are those of the manifest, without items that others have added. `None` if the server
    /// refuses the patch, too.
    async fn predict_after_migration(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        live: &Value,
    ) -> Option<Reply> {
        let former = self.migration_from_former_owners(live_membership);
        let migrated = with_managed_fields_migrated(live.clone(), &former);
        let manifest =
            ignore::desired_body_with_live_values(object, &migrated, former.manager, BodyPurpose::Send)
                .value();
        let mut applied = merged_with_manifest(live, &manifest);
        ownership::replace_own_entry_and_keep_former(&mut applied["metadata"], &former, &manifest);
        let secret = object.is_secret().then_some(live);
        let without = ownership::remove_stale_fields(&applied, secret, &former).unwrap_or(applied);
        self.dry_run_patch(object, live, &without).await.ok()
    }

    /// Returns the managers from which the run takes fields of this object: client-side apply, and for a member, the
    /// former tool of the set.
    pub fn migration_from_former_owners(&self, live_membership: &LiveMembership) -> OwnershipMigration<'_> {
        OwnershipMigration {
            manager: &self.writing.field_manager,
            tool: match live_membership {
                LiveMembership::Member { .. } => self.writing.former_manager.as_deref(),
                LiveMembership::NotAMember
                | LiveMembership::OfAnotherSet { .. }
                | LiveMembership::Terminating => None,
            },
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
        let body = Bytes::from(patch.to_string());
        let request = ApiRequest::patch(&path, &parameters, WHOLE_OBJECTS, Patch::Merge, body);
        self.server.send(request).await
    }
}
