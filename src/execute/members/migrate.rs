//! Migrates the fields of one object from client-side apply, so that they do not outlive their
//! manifest. `ownership` decides what moves.

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use crate::cluster::apiserver::{ApiError, ApiRequest, Patch};
use crate::compare::ownership::{self, CLIENT_SIDE_APPLY, Former, HANDOVER_FIELD_MANAGER, LastApplied};
use crate::execute::Execution;
use crate::manifest::desired::DesiredObject;
use crate::plan::{LiveMembership, Seen};
use crate::read::METADATA;

/// Attempts to write an object that other clients write at the same time.
const ATTEMPTS: u32 = 5;

impl Execution<'_> {
    /// Migrates the fields of an object that has to be as it was listed. The migration changes its version, so
    /// `lock` becomes the new one if the object is in this set.
    pub(crate) async fn migrate_locked(
        &self,
        object: &DesiredObject,
        lock: &mut Option<Seen>,
    ) -> Result<(), ApiError> {
        let Some(listed) = self.listed(lock.as_ref()).cloned() else {
            return self.migrate(object, |_| true).await.map(drop);
        };
        // Anything else is refused by the apply, which carries the version that was listed.
        let is_member = |live: &Value| live["metadata"]["uid"] == *listed.uid && self.set.holds(live);
        if let Some(migrated) = self.migrate(object, is_member).await? {
            *lock = Some(Seen::version(&migrated));
        }
        Ok(())
    }

    /// Moves what client-side apply owns of a live object to our field manager, and to `data`
    /// what was applied as `stringData`, if the live object `is_expected`. Returns the new metadata of the
    /// object; `None` if nothing moved.
    pub(crate) async fn migrate(
        &self,
        object: &DesiredObject,
        is_expected: impl Fn(&Value) -> bool,
    ) -> Result<Option<Value>, ApiError> {
        let path = object.resource.path_of(&object.key);
        let mut attempts = 0;
        loop {
            attempts += 1;
            let reply = self.server.get(&path, METADATA).await?;
            let live: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
            if !is_expected(&live) {
                return Ok(None);
            }
            let former = Former {
                manager: &self.writing.field_manager,
                tool: self.writing.former_manager.as_deref(),
                writers: &[],
                last_applied: LastApplied::in_set_of(&self.set.tooling),
            };
            let metadata = &live["metadata"];
            let moves = if object.is_secret() {
                ownership::secret_migration_patch(metadata, &former)
            } else {
                ownership::migration(metadata, former.manager, former.tool, former.last_applied)
            };
            let Some(moves) = moves else {
                return Ok(None);
            };
            let parameters = [("fieldManager", &*self.writing.field_manager)];
            let body = Bytes::from(moves.to_string());
            let request = ApiRequest::patch(&path, &parameters, METADATA, Patch::Json, body);
            match self.server.send(request).await {
                Err(error) if attempts < ATTEMPTS && error.is(StatusCode::CONFLICT) => {}
                reply => return reply.map(|reply| serde_json::from_slice(&reply.body).ok()),
            }
        }
    }

    /// Returns whether all fields in conflict belong to a manager that gives them up to a run: client-side
    /// apply, the hand-over of replicas, or the former tool of a set that is taken over.
    pub(crate) fn is_conflict_with_former_owner(
        &self,
        error: &ApiError,
        live_membership: &LiveMembership,
    ) -> bool {
        let former = match live_membership {
            LiveMembership::Member { .. } => self.writing.former_manager.as_deref(),
            LiveMembership::NotAMember | LiveMembership::OfAnotherSet | LiveMembership::Terminating => None,
        };
        let owners = [Some(CLIENT_SIDE_APPLY), Some(HANDOVER_FIELD_MANAGER), former];
        let owners = owners.map(|owner| owner.map(|owner| format!("\"{owner}\"")));
        let gives_way = |message: &str| owners.iter().flatten().any(|owner| message.contains(owner));
        error.status().is_some_and(|status| {
            let mut conflicts = status.field_conflicts().peekable();
            conflicts.peek().is_some() && conflicts.all(|cause| gives_way(&cause.message))
        })
    }
}
