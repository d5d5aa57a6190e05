//! Applies whose body contains fields copied from the live object: the ApplySet metadata of a member that is the parent
//! of another set, and the fields that the set leaves to others (`--ignore`). Such a body carries the resourceVersion
//! that the fields were read from.

use serde_json::Value;

use crate::cluster::apiserver::{ApiError, ApiServer, Reply, Status};
use crate::compare::ignore::{self, BodyPurpose};
use crate::compare::ownership::{self, OwnershipMigration};
use crate::execute::Execution;
use crate::execute::members::apply_as_read::with_version_of_no_object;
use crate::manifest::desired::DesiredObject;
use crate::plan::{LiveMembership, Seen, apply_may_remove_record};
use crate::read;

/// An apply with fields of the live object.
pub struct ApplyWithLiveFields {
    /// The desired object, with fields of the live one.
    pub object: DesiredObject,
    /// The version that these fields were read from. Other clients may write the fields at any time, and the apply must
    /// not overwrite what they write.
    pub seen: Seen,
}

impl ApplyWithLiveFields {
    /// Returns the apply of an object over the live one; `None` if the manifest alone can be sent, because an apply of
    /// it by `manager` would neither remove ApplySet metadata nor change ignored fields.
    pub fn from_live_if_needed(live: &Value, object: &DesiredObject, manager: &str) -> Option<Self> {
        let with_ignored_fields =
            ignore::desired_body_with_live_values(object, live, manager, BodyPurpose::Send);
        let with_metadata =
            ownership::add_live_applyset_metadata(&with_ignored_fields, &live["metadata"], manager);
        let body = with_metadata.or_else(|| (!object.ignored.is_empty()).then_some(with_ignored_fields))?;
        Some(Self {
            seen: Seen::from_uid_and_version(live),
            object: object.with_object(body),
        })
    }
}

/// Reads what [`ApplyWithLiveFields::from_live_if_needed`] needs of the live object: only its metadata, unless the set
/// ignores fields.
pub async fn read_live_metadata_or_object(
    server: &ApiServer,
    object: &DesiredObject,
) -> Result<Option<Value>, ApiError> {
    if object.ignored.is_empty() {
        read::read_metadata(server, &object.resource, &object.key).await
    } else {
        read::read_object(server, &object.resource, &object.key).await
    }
}

/// Returns the live object as it will be once the run has taken the fields of the `former` owners, so that our manager
/// owns them. An ignored field that our manager owns has to be in the body of the apply, which would remove it
/// otherwise.
pub fn with_managed_fields_migrated(mut live: Value, former: &OwnershipMigration) -> Value {
    if let Some(moved) = ownership::migrated_managed_fields(&live["metadata"], former) {
        live["metadata"]["managedFields"] = moved;
    }
    live
}

/// Reads the object, and returns whether this is a field conflict and the object has changed since it was `seen`. Then
/// the cause may be a field that was sent with the value it had when it was read: the server looks for conflicts about
/// fields before it compares the resourceVersion. If the object cannot be read, it counts as unchanged, and the
/// conflict is reported.
pub async fn is_field_conflict_after_change(
    server: &ApiServer,
    object: &DesiredObject,
    seen: &Seen,
    error: &ApiError,
) -> bool {
    if !error.status().is_some_and(Status::is_field_conflict) {
        return false;
    }
    let Ok(live) = read::read_metadata(server, &object.resource, &object.key).await else {
        return false;
    };
    live.is_none_or(|live| {
        let now = Seen::from_uid_and_version(&live);
        now.uid != seen.uid || now.resource_version != seen.resource_version
    })
}

impl Execution<'_> {
    /// Reads a member that may be the parent of another set or has ignored fields, and returns its apply with fields of
    /// the live object; `None` if the manifest alone can be sent.
    pub async fn prepare_apply_with_live_fields(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
    ) -> Result<Option<ApplyWithLiveFields>, ApiError> {
        let manager = &self.writing.field_manager;
        if !apply_may_remove_record(object, live_membership, manager) && object.ignored.is_empty() {
            return Ok(None);
        }
        let Some(mut live) = read_live_metadata_or_object(self.server, object).await? else {
            return Ok(None);
        };
        if !object.ignored.is_empty() {
            live = with_managed_fields_migrated(live, &self.migration_from_former_owners(live_membership));
        }
        Ok(ApplyWithLiveFields::from_live_if_needed(&live, object, manager))
    }

    /// Sends an apply of a member, with fields of the live object if the set ignores fields of the object, or if the
    /// object may be the parent of another set. `lock` is the version that the object must have.
    ///
    /// If the LIST of this run has shown that version, the ignored fields have their values from there. An object with
    /// ignored fields that does not exist is only created, and not applied over another one.
    pub async fn send_with_live_fields(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        lock: Option<&Seen>,
    ) -> Result<Reply, ApiError> {
        let listed =
            self.state.with_live_fields.get(&object.key).filter(|listed| {
                lock.is_some_and(|lock| lock.resource_version == listed.seen.resource_version)
            });
        let with_live = match listed {
            Some(listed) => Some(ApplyWithLiveFields {
                object: object.with_object(listed.object.clone()),
                seen: listed.seen.clone(),
            }),
            None => {
                self.prepare_apply_with_live_fields(object, live_membership)
                    .await?
            }
        };
        let to_create;
        let (object, lock) = match &with_live {
            Some(with_live) => (&with_live.object, Some(lock.unwrap_or(&with_live.seen))),
            None if !object.ignored.is_empty() && lock.is_none() => {
                to_create = with_version_of_no_object(object);
                (&to_create, None)
            }
            None => (object, lock),
        };
        self.send_apply_and_force_if_allowed(object, live_membership, lock)
            .await
    }
}
