//! Changes the managed fields of one object: fields of client-side apply move to our field manager, so that the next
//! apply removes those that the manifest no longer has, and versions that cannot hold the object are replaced.
//! `compare/ownership` decides what changes.

use http::StatusCode;
use serde_json::Value;

use crate::cluster::apiserver::{ApiError, ApiRequest, Patch};
use crate::compare::ownership::{self, LastAppliedTreatment, OwnershipMigration};
use crate::execute::Execution;
use crate::execute::unusable_versions::managed_fields_without_unusable_versions;
use crate::manifest::desired::DesiredObject;
use crate::model::applyset::PART_OF_LABEL;
use crate::plan::{LiveMembership, Seen};
use crate::read;

/// The number of attempts to write the managed fields of an object that other clients write at the same time.
const MAX_ATTEMPTS: u32 = 5;

impl Execution<'_> {
    /// Changes `lock` to the version that the object has after a change of its managed fields. The lock of a saved plan
    /// changes only if the object has the content that the plan knows: otherwise, the server refuses the apply.
    /// `changed_object` is the object after the change; `None` if nothing changed.
    fn renew_lock(&self, lock: &mut Option<Seen>, changed_object: Option<&Value>) {
        let (Some(seen), Some(changed)) = (lock, changed_object) else {
            return;
        };
        let preconditions = &self.plan.preconditions;
        if !preconditions.is_of_saved_plan() {
            *seen = Seen::from_uid_and_version(changed);
        } else if let Some(unchanged) = preconditions.object_if_unchanged(seen, Some(changed)) {
            *seen = unchanged;
        }
    }

    /// Rewrites the managed fields of an object that is applied with this `lock`, if this run may still write it
    /// (`may_still_write_live_object`), and renews the lock.
    pub async fn rewrite_and_renew_lock(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        lock: &mut Option<Seen>,
    ) -> Result<(), ApiError> {
        // If the object has been replaced or has left its set, nothing is rewritten. The apply carries the version that
        // was read, so the server then refuses it, and the caller judges the object again.
        let rewriting = self.rewrite_managed_fields_if_expected(object, |live| {
            self.may_still_write_live_object(live, live_membership, lock.as_ref())
        });
        let rewritten = rewriting.await?;
        self.renew_lock(lock, rewritten.as_ref());
        Ok(())
    }

    /// Moves the fields of a live object that client-side apply owns to our field manager, if the live object
    /// `is_expected`, and replaces the versions that cannot hold the object: because of one, the server refuses each
    /// apply, and drops all managed fields at any other write. In a Secret, fields that were applied as `stringData` move
    /// to `data`. Returns the object after that; `None` if nothing changed.
    async fn rewrite_managed_fields_if_expected(
        &self,
        object: &DesiredObject,
        is_expected: impl Fn(&Value) -> bool,
    ) -> Result<Option<Value>, ApiError> {
        let kind = &object.key.group_kind;
        let former = OwnershipMigration {
            manager: &self.writing.field_manager,
            tool: self.writing.former_manager.as_deref(),
            writers: &[],
            last_applied: LastAppliedTreatment::for_tooling(&self.set.tooling),
        };
        let to_patch = async |metadata: &Value| {
            let usable =
                managed_fields_without_unusable_versions(self.server, metadata, &object.resource).await?;
            let mut rewritten = metadata.clone();
            if let Some(entries) = &usable {
                rewritten["managedFields"] = entries.clone();
            }
            let migrated = ownership::migrated_managed_fields_of_kind(kind, &rewritten, &former);
            Ok(migrated
                .or(usable)
                .map(|entries| ownership::patch_to_replace_managed_fields(&entries, metadata)))
        };
        self.patch_live_metadata(object, is_expected, to_patch).await
    }

    /// Moves the fields of client-side apply to our field manager, and applies the object again as this run has
    /// `written` it: that removes fields that the manifest no longer has.
    ///
    /// Another set may have taken the object since, and this run must not take it back. So the second apply carries the
    /// version after the move, if it may carry one (`seen_after_write`). If nothing moved, because the object has been
    /// replaced or has left the set, it carries the version in the answer to the first apply, so that the server refuses
    /// it, and the caller judges the object again.
    pub(super) async fn migrate_and_apply_again(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        written: &Value,
    ) -> Result<(), ApiError> {
        let uid = &written["metadata"]["uid"];
        let is_as_applied =
            |live: &Value| live["metadata"]["uid"] == *uid && self.set.is_named_by_label_of(live);
        let migrated = self
            .rewrite_managed_fields_if_expected(object, is_as_applied)
            .await?;
        let mut lock = self.seen_after_write(written);
        self.renew_lock(&mut lock, migrated.as_ref());
        self.send_with_live_fields(object, live_membership, lock.as_ref())
            .await
            .map(drop)
    }

    /// Returns whether this run may write the live object: it has the UID of the lock or of the member, if one is
    /// known, and has not joined another set since the run has read its membership.
    fn may_still_write_live_object(
        &self,
        live: &Value,
        live_membership: &LiveMembership,
        lock: Option<&Seen>,
    ) -> bool {
        let uid = lock.map(|seen| &*seen.uid).or(live_membership.uid_of_member());
        let has_uid = uid.is_none_or(|uid| live["metadata"]["uid"] == *uid);
        let is_in_no_set = live["metadata"]["labels"].get(PART_OF_LABEL).is_none();
        has_uid
            && match live_membership {
                LiveMembership::Member { .. } => self.set.is_named_by_label_of(live),
                LiveMembership::NotAMember => is_in_no_set || self.set.is_named_by_label_of(live),
                LiveMembership::OfAnotherSet { .. } => true,
                LiveMembership::Terminating => false,
            }
    }

    /// Sends the patch that `to_patch` makes of the metadata of a live object, if the object `is_expected`. Returns the
    /// object after that; `None` if there was nothing to change.
    async fn patch_live_metadata(
        &self,
        object: &DesiredObject,
        is_expected: impl Fn(&Value) -> bool,
        to_patch: impl AsyncFn(&Value) -> Result<Option<Value>, ApiError>,
    ) -> Result<Option<Value>, ApiError> {
        let path = object.resource.path_of(&object.key);
        let mut attempts = 0;
        loop {
            attempts += 1;
            let live = read::read_metadata(self.server, &object.resource, &object.key).await?;
            let Some(live) = live.filter(&is_expected) else {
                return Ok(None);
            };
            let Some(patch) = to_patch(&live["metadata"]).await? else {
                return Ok(None);
            };
            let parameters = [("fieldManager", &*self.writing.field_manager)];
            let accept = self.accept_of_answers();
            let request = ApiRequest::patch(&path, &parameters, accept, Patch::Json, patch.to_string());
            match self.server.send(request).await {
                Err(error) if attempts < MAX_ATTEMPTS && error.has_status_code(StatusCode::CONFLICT) => {}
                // It is patched, whatever the answer says.
                reply => return reply.map(|reply| reply.json().ok()),
            }
        }
    }
}
