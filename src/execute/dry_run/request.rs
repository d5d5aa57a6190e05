//! The dry runs that are sent to the server.

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use super::answer::{content, is_of_one_moment, laid_over};
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

/// Attempts for an object that other clients write at the same time.
const ATTEMPTS: u32 = 5;

impl Execution<'_> {
    /// Sends a dry run of an apply, and sets `live` to the object that the dry run was based
    /// on; `None` if it would be created.
    ///
    /// A write by another client between the read and the dry run would show as a difference. A dry run
    /// keeps the resourceVersion, which shows whether both are of the same version. If they never are,
    /// the object is compared anyway.
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
            let predicted = content(&reply);
            if is_of_one_moment(live.as_ref(), predicted.as_ref()) {
                return Ok(reply);
            }
            *live = read::object(self.server, &object.resource, &object.key).await?;
            if attempts == ATTEMPTS || is_of_one_moment(live.as_ref(), predicted.as_ref()) {
                return Ok(reply);
            }
        }
    }

    /// The dry run of an apply. Fields that a run first migrates from their former owner are forced
    /// here.
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

    /// Returns the object after fields of their former owner are migrated and it is applied; `None` if
    /// that makes no difference. A removed field may have a default: the server fills it in, in a dry
    /// run of a patch that removes the fields.
    pub(super) async fn without_stale_fields(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        live: &Value,
        applied: &Value,
    ) -> Option<Value> {
        let former = self.former(live_membership);
        let secret = object.is_secret().then_some(live);
        let left = ownership::without_stale_fields(applied, secret, &former)?;
        let filled = self.dry_run_patch(object, live, &left).await.ok();
        filled.as_ref().and_then(content).or(Some(left))
    }

    /// Returns what the object becomes as [`Self::after_migration`] does, if that makes valid what the server
    /// has refused: fields of a former owner, or managed fields in a version that cannot hold the object. Reads the
    /// object if it is not known yet.
    pub async fn after_refusal(
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
            let rewritten = self.in_usable_versions(object, &live["metadata"]).await;
            rewritten.ok()??;
        } else {
            ownership::migrate_managed_fields(&live["metadata"], &self.former(live_membership))?;
        }
        self.after_migration(object, live_membership, live).await
    }

    /// Returns what the object becomes when its managed fields are written before it is applied, if the server
    /// cannot predict it: it refuses an apply beside the fields of a former owner, such as a Service with the former
    /// port and another one of the same name. Lists are the manifest's, with nothing that others have added to them.
    /// `None` if the server refuses this object, too.
    async fn after_migration(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        live: &Value,
    ) -> Option<Reply> {
        let former = self.former(live_membership);
        let taken = with_former_fields_taken(live.clone(), &former);
        let manifest = ignore::body_of(object, &taken, former.manager, Purpose::Send).value();
        let mut applied = laid_over(live, &manifest);
        ownership::own_manifest(&mut applied["metadata"], &former, &manifest);
        let secret = object.is_secret().then_some(live);
        let left = ownership::without_stale_fields(&applied, secret, &former).unwrap_or(applied);
        self.dry_run_patch(object, live, &left).await.ok()
    }

    /// Returns the owners whose fields the run takes.
    pub fn former(&self, live_membership: &LiveMembership) -> Former<'_> {
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

    /// Sends the dry run of a patch that makes `wanted` of the live object.
    async fn dry_run_patch(
        &self,
        object: &DesiredObject,
        live: &Value,
        wanted: &Value,
    ) -> Result<Reply, ApiError> {
        let mut patch = diff::merge_patch(live, wanted);
        if let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut) {
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
