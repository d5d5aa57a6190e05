//! Sends dry runs to the server.

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use super::answer::{have_same_version, merge_manifest, parse_object};
use crate::cluster::apiserver::{ApiError, ApiRequest, Patch, Reply};
use crate::compare::diff;
use crate::compare::ignore::{self, Purpose};
use crate::compare::ownership::{self, Former, LastApplied};
use crate::execute::Execution;
use crate::execute::members::apply_with_live_fields::with_former_fields_taken;
use crate::execute::unusable_versions::is_refusal_of_unusable_version;
use crate::manifest::desired::DesiredObject;
use crate::model::write_settings::{Conflicts, WriteSettings};
use crate::plan::LiveMembership;
use crate::read::{self, WHOLE_OBJECTS};

/// The number of dry runs of an object that other clients write at the same time.
const ATTEMPTS: u32 = 5;

impl Execution<'_> {
    /// Sends a dry run of an apply, and sets `live` to the object on which the dry run was based; `None` if the object
    /// would be created.
    ///
    /// If another client wrote the object between its read and the dry run, that write would show as a difference. So
    /// the object is read again until it has the resourceVersion of the dry run. After the last attempt, it is compared
    /// even if the versions differ.
    pub(super) async fn dry_run_on(
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
            *live = read::object(self.server, &object.resource, &object.key).await?;
            if attempts == ATTEMPTS || have_same_version(live.as_ref(), predicted.as_ref()) {
                return Ok(reply);
            }
        }
    }

    /// Sends the dry run of an apply. A run migrates fields from their former owner before it applies the object; the
    /// dry run is forced instead, if these fields are in conflict.
    pub(super) async fn send_dry_run(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
    ) -> Result<Reply, ApiError> {
        let with_live = self.apply_with_live_fields(object, live_membership).await?;
        let object = with_live.as_ref().map_or(object, |with_live| &with_live.object);
        match self
            .server
            .send(self.member_request(object, live_membership, None))
            .await
        {
            Err(error) if self.is_conflict_with_former_owner(&error, live_membership) => {
                let forced = WriteSettings {
                    conflicts: Conflicts::Forced,
                    ..self.writing.clone()
                };
                let execution = Execution {
                    writing: &forced,
                    ..*self
                };
                self.server
                    .send(execution.member_request(object, live_membership, None))
                    .await
            }
            answer => answer,
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
        let former = self.former_owners(live_membership);
        let secret = object.is_secret().then_some(live);
        let without = ownership::without_stale_fields(applied, secret, &former)?;
        let with_defaults = self.dry_run_patch(object, live, &without).await.ok();
        with_defaults.as_ref().and_then(parse_object).or(Some(without))
    }

    /// Predicts an object whose apply the server has refused with `error`, if the object is valid once its managed
    /// fields are rewritten. The run rewrites them in two cases: a former owner has fields, or managed fields name a
    /// version that cannot hold the object. `None` in all other cases. Sets `live` if it is not read yet.
    pub async fn predict_after_refusal(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        live: &mut Option<Value>,
        error: &ApiError,
    ) -> Option<Reply> {
        let is_of_version = is_refusal_of_unusable_version(error);
        if !error.is(StatusCode::UNPROCESSABLE_ENTITY) && !is_of_version {
            return None;
        }
        if live.is_none() {
            *live = read::object(self.server, &object.resource, &object.key)
                .await
                .ok()?;
        }
        let live = live.as_ref()?;
        if is_of_version {
            let metadata = &live["metadata"];
            let rewritten = self.managed_fields_in_usable_versions(object, metadata).await;
            rewritten.ok()??;
        } else {
            ownership::migrate_managed_fields(&live["metadata"], &self.former_owners(live_membership))?;
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
        let former = self.former_owners(live_membership);
        let migrated = with_former_fields_taken(live.clone(), &former);
        let manifest = ignore::body_of(object, &migrated, former.manager, Purpose::Send).value();
        let mut applied = merge_manifest(live, &manifest);
        ownership::own_manifest(&mut applied["metadata"], &former, &manifest);
        let secret = object.is_secret().then_some(live);
        let without = ownership::without_stale_fields(&applied, secret, &former).unwrap_or(applied);
        self.dry_run_patch(object, live, &without).await.ok()
    }

    /// Returns the managers from which the run takes fields of this object: client-side apply, and for a member, the
    /// former tool of the set.
    pub fn former_owners(&self, live_membership: &LiveMembership) -> Former<'_> {
        Former {
            manager: &self.writing.field_manager,
            tool: match live_membership {
                LiveMembership::Member { .. } => self.writing.former_manager.as_deref(),
                LiveMembership::NotAMember | LiveMembership::OfAnotherSet | LiveMembership::Terminating => {
                    None
                }
            },
            writers: &[],
            last_applied: LastApplied::in_set_of(&self.set.tooling),
        }
    }

    /// Sends the dry run of a patch that turns the live object into the `patched` one.
    async fn dry_run_patch(
        &self,
        object: &DesiredObject,
        live: &Value,
        patched: &Value,
    ) -> Result<Reply, ApiError> {
        let mut patch = diff::merge_patch(live, patched);
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
