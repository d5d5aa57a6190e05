//! Changes who owns the fields of one object: those of client-side apply become ours, so that they do not outlive
//! their manifest, and versions that cannot hold the object are replaced. `ownership` decides what changes.

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use crate::cluster::apiserver::{ApiError, ApiRequest, Patch, Reply};
use crate::compare::ownership::{self, CLIENT_SIDE_APPLY, Former, LastApplied};
use crate::execute::Execution;
use crate::execute::unusable_versions::{is_refusal_of_unusable_version, without_unusable_versions};
use crate::manifest::desired::DesiredObject;
use crate::model::applyset::PART_OF_LABEL;
use crate::plan::{LiveMembership, Seen};
use crate::read::METADATA;

/// Attempts to write an object that other clients write at the same time.
const ATTEMPTS: u32 = 5;

impl Execution<'_> {
    /// Returns `lock` if it is the version that was read; any other lock is that of a saved plan.
    pub(super) fn read_version<'s>(&self, lock: Option<&'s Seen>) -> Option<&'s Seen> {
        lock.filter(|_| !self.plan.preconditions.require_unchanged())
    }

    /// Migrates the fields of an object that has to be as it was read. The migration changes its version, so
    /// `lock` becomes the new one if the membership of the object is still the same.
    pub async fn migrate_locked(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        lock: &mut Option<Seen>,
    ) -> Result<(), ApiError> {
        let Some(read) = self.read_version(lock.as_ref()).cloned() else {
            return self.migrate(object, |_| true).await.map(drop);
        };
        // Anything else is refused by the apply, which carries the version that was read.
        let migrating = self.migrate(object, |live| {
            self.is_still(live, live_membership, Some(&read.uid))
        });
        if let Some(migrated) = migrating.await? {
            *lock = Some(Seen::version(&migrated));
        }
        Ok(())
    }

    /// Moves what client-side apply owns of a live object to our field manager, and to `data`
    /// what was applied as `stringData`, if the live object `is_expected`. Returns the new metadata of the
    /// object; `None` if nothing moved.
    pub async fn migrate(
        &self,
        object: &DesiredObject,
        is_expected: impl Fn(&Value) -> bool,
    ) -> Result<Option<Value>, ApiError> {
        let former = Former {
            manager: &self.writing.field_manager,
            tool: self.writing.former_manager.as_deref(),
            writers: &[],
            last_applied: LastApplied::in_set_of(&self.set.tooling),
        };
        let moves = async |metadata: &Value| {
            if object.is_secret() {
                return Ok(ownership::secret_migration_patch(metadata, &former));
            }
            let mut metadata = metadata.clone();
            // The server would drop what it cannot convert.
            if let Some(entries) = self.in_usable_versions(object, &metadata).await? {
                metadata["managedFields"] = entries;
            }
            let moves =
                ownership::migration_patch(&metadata, former.manager, former.tool, former.last_applied);
            Ok(moves)
        };
        self.patch_ownership(object, is_expected, moves).await
    }

    /// Applies the object. If the server refuses that because managed fields name a version that cannot hold it, the
    /// entries are replaced, and the object is applied once more.
    pub(super) async fn send_in_usable_versions(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        lock: &mut Option<Seen>,
    ) -> Result<Reply, ApiError> {
        let answer = self.send_settled(object, live_membership, lock.as_ref()).await;
        if !answer.as_ref().is_err_and(is_refusal_of_unusable_version) {
            return answer;
        }
        self.replace_unusable_versions(object, live_membership, lock)
            .await?;
        // Another run may have replaced them, too: the version shows whether the object is to be judged again.
        self.send_settled(object, live_membership, lock.as_ref()).await
    }

    /// Replaces the versions in the managed fields of a live object that cannot hold it, so that it can be applied.
    ///
    /// The object has to be the one that the plan knows, and in no set that it may not be taken from. The write
    /// changes its version, so `lock` becomes the new one. A saved plan compares contents, and finds the new version
    /// itself.
    async fn replace_unusable_versions(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        lock: &mut Option<Seen>,
    ) -> Result<(), ApiError> {
        let uid = lock.as_ref().map(|seen| &*seen.uid).or(live_membership.uid());
        let is_expected = |live: &Value| self.is_still(live, live_membership, uid);
        let versions = async |metadata: &Value| {
            let entries = self.in_usable_versions(object, metadata).await?;
            Ok(entries.map(|entries| ownership::replacement_patch(&entries, metadata)))
        };
        let written = self.patch_ownership(object, is_expected, versions).await?;
        if let Some(written) = written
            && self.read_version(lock.as_ref()).is_some()
        {
            *lock = Some(Seen::version(&written));
        }
        Ok(())
    }

    /// Returns whether a live object is the one with this UID, and in no set that it may not be taken from.
    fn is_still(&self, live: &Value, live_membership: &LiveMembership, uid: Option<&str>) -> bool {
        let is_it = uid.is_none_or(|uid| live["metadata"]["uid"] == *uid);
        let is_in_no_set = live["metadata"]["labels"].get(PART_OF_LABEL).is_none();
        is_it
            && match live_membership {
                LiveMembership::Member { .. } => self.set.holds(live),
                LiveMembership::NotAMember => is_in_no_set || self.set.holds(live),
                LiveMembership::OfAnotherSet => true,
                LiveMembership::Terminating => false,
            }
    }

    /// Returns managed fields without the versions that cannot hold the live object or the desired one.
    pub async fn in_usable_versions(
        &self,
        object: &DesiredObject,
        metadata: &Value,
    ) -> Result<Option<Value>, ApiError> {
        let desired = object.object.value();
        let of = (&object.key, &*object.resource);
        without_unusable_versions(self.server, metadata, of, Some(&desired)).await
    }

    /// Sends the patch that `change` makes of the metadata of a live object, if that `is_expected`. Returns the new
    /// metadata of the object; `None` if there is nothing to change.
    async fn patch_ownership(
        &self,
        object: &DesiredObject,
        is_expected: impl Fn(&Value) -> bool,
        change: impl AsyncFn(&Value) -> Result<Option<Value>, ApiError>,
    ) -> Result<Option<Value>, ApiError> {
        let path = object.resource.path_of(&object.key);
        let mut attempts = 0;
        loop {
            attempts += 1;
            let reply = self.server.get(&path, METADATA).await?;
            let live = reply.json_or_null();
            if !is_expected(&live) {
                return Ok(None);
            }
            let Some(change) = change(&live["metadata"]).await? else {
                return Ok(None);
            };
            let parameters = [("fieldManager", &*self.writing.field_manager)];
            let body = Bytes::from(change.to_string());
            let request = ApiRequest::patch(&path, &parameters, METADATA, Patch::Json, body);
            match self.server.send(request).await {
                Err(error) if attempts < ATTEMPTS && error.is(StatusCode::CONFLICT) => {}
                // It is patched, whatever the answer says.
                reply => return reply.map(|reply| reply.json().ok()),
            }
        }
    }

    /// Returns whether all fields in conflict belong to a manager that gives them up to a run: client-side
    /// apply, or the former tool of a set that is taken over.
    pub fn is_conflict_with_former_owner(&self, error: &ApiError, live_membership: &LiveMembership) -> bool {
        let former = match live_membership {
            LiveMembership::Member { .. } => self.writing.former_manager.as_deref(),
            LiveMembership::NotAMember | LiveMembership::OfAnotherSet | LiveMembership::Terminating => None,
        };
        let owners = [Some(CLIENT_SIDE_APPLY), former].map(|owner| owner.map(|owner| format!("\"{owner}\"")));
        error.status().is_some_and(|status| {
            let mut conflicts = status.field_conflicts().peekable();
            conflicts.peek().is_some()
                && conflicts.all(|cause| owners.iter().flatten().any(|owner| cause.message.contains(owner)))
        })
    }
}
