//! Applies whose body contains fields copied from the live object: the ApplySet metadata of a member that is the parent
//! of another set, and the fields that the set leaves to others (`--ignore`). Such a body carries the resourceVersion
//! that the fields were read from.

use serde_json::Value;

use crate::cluster::apiserver::{ApiError, ApiServer, Status};
use crate::compare::ignore::{self, Purpose};
use crate::compare::ownership::{self, Former};
use crate::execute::Execution;
use crate::execute::members::apply_as_read::with_version_of_no_object;
use crate::manifest::desired::DesiredObject;
use crate::plan::{LiveMembership, Seen, may_hold_record};
use crate::read;

/// An apply with fields of the live object.
pub struct ApplyWithLiveFields {
    /// The desired object, with fields of the live one.
    pub object: DesiredObject,
    /// The version that these fields were read from. Other clients may write the fields at any time, and the apply must
    /// not overwrite what they write.
    pub seen: Seen,
}

/// The body of an apply of a member.
pub enum Body {
    /// The manifest alone.
    Manifest,
    /// The manifest with a version that no object has: the apply fails if the object exists.
    ToCreate(DesiredObject),
    /// The manifest with fields of the live object.
    WithLiveFields(ApplyWithLiveFields),
}

impl ApplyWithLiveFields {
    /// Returns the apply of an object over the live one; `None` if the manifest alone can be sent, because an apply of
    /// it by `manager` would neither remove ApplySet metadata nor change ignored fields.
    pub fn over(live: &Value, object: &DesiredObject, manager: &str) -> Option<Self> {
        let with_ignored_fields = ignore::body_of(object, live, manager, Purpose::Send);
        let with_metadata =
            ownership::with_applyset_metadata(&with_ignored_fields, &live["metadata"], manager);
        let body = with_metadata.or_else(|| (!object.ignored.is_empty()).then_some(with_ignored_fields))?;
        Some(Self {
            seen: Seen::from_version(live),
            object: DesiredObject {
                object: body,
                ..object.clone()
            },
        })
    }
}

/// Reads what [`ApplyWithLiveFields::over`] needs of the live object: only its metadata, unless the set ignores fields.
pub async fn live_fields(server: &ApiServer, object: &DesiredObject) -> Result<Option<Value>, ApiError> {
    if object.ignored.is_empty() {
        read::metadata(server, &object.resource, &object.key).await
    } else {
        read::object(server, &object.resource, &object.key).await
    }
}

/// Returns the live object as it is after the run has taken the fields of the `former` owners: our manager owns them.
/// The apply has to send an ignored field that our manager owns, since it would be removed otherwise.
pub fn with_former_fields_taken(mut live: Value, former: &Former) -> Value {
    if let Some(moved) = ownership::migrate_managed_fields(&live["metadata"], former) {
        live["metadata"]["managedFields"] = moved;
    }
    live
}

/// Returns whether this is a field conflict and the object has changed since it was `seen`. The cause may then be a
/// field that was sent with its former value: the server looks for conflicts about fields before it compares the
/// resourceVersion. If the object cannot be read, it counts as unchanged, and the conflict is reported.
pub async fn is_outdated(server: &ApiServer, object: &DesiredObject, seen: &Seen, error: &ApiError) -> bool {
    if !is_field_conflict(error) {
        return false;
    }
    let Ok(now) = read::metadata(server, &object.resource, &object.key).await else {
        return false;
    };
    let now = now.map(|live| Seen::from_version(&live));
    now.is_none_or(|now| now.uid != seen.uid || now.resource_version != seen.resource_version)
}

fn is_field_conflict(error: &ApiError) -> bool {
    error.status().is_some_and(Status::is_field_conflict)
}

impl Execution<'_> {
    /// Returns whether this is a field conflict because the body does not fit the live object: the body was to create
    /// the object, or has fields of a former version.
    pub async fn is_outdated(&self, object: &DesiredObject, body: &Body, error: &ApiError) -> bool {
        match body {
            Body::Manifest => false,
            Body::ToCreate(_) => is_field_conflict(error),
            Body::WithLiveFields(with_live) => is_outdated(self.server, object, &with_live.seen, error).await,
        }
    }

    /// Reads a member that may be the parent of another set or has ignored fields, and returns its apply with fields of
    /// the live object; `None` if the manifest alone can be sent.
    pub async fn apply_with_live_fields(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
    ) -> Result<Option<ApplyWithLiveFields>, ApiError> {
        let manager = &self.writing.field_manager;
        if !may_hold_record(object, live_membership, manager) && object.ignored.is_empty() {
            return Ok(None);
        }
        let Some(mut live) = live_fields(self.server, object).await? else {
            return Ok(None);
        };
        if !object.ignored.is_empty() {
            live = with_former_fields_taken(live, &self.former_owners(live_membership));
        }
        Ok(ApplyWithLiveFields::over(&live, object, manager))
    }

    /// Chooses the body of an apply of a member. If the set ignores fields of the object, the first attempt takes them
    /// from the LIST of this run, or creates the object if it was not listed. Later attempts read the object.
    ///
    /// `lock` is the version that a saved plan requires, or that this run has read.
    pub async fn choose_body(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        lock: Option<&Seen>,
        attempts: u32,
    ) -> Result<Body, ApiError> {
        if object.ignored.is_empty() {
            let with_live = self.apply_with_live_fields(object, live_membership).await?;
            return Ok(with_live.map_or(Body::Manifest, Body::WithLiveFields));
        }
        if attempts == 1 {
            if let Some(listed) = self.state.with_live_fields.get(&object.key)
                && lock.is_none_or(|lock| lock.resource_version == listed.seen.resource_version)
            {
                return Ok(Body::WithLiveFields(ApplyWithLiveFields {
                    object: DesiredObject {
                        object: listed.object.clone(),
                        ..object.clone()
                    },
                    seen: listed.seen.clone(),
                }));
            }
            if *live_membership == LiveMembership::NotAMember && lock.is_none() {
                return Ok(Body::ToCreate(with_version_of_no_object(object)));
            }
        }
        let with_live = self.apply_with_live_fields(object, live_membership).await?;
        Ok(match with_live {
            Some(with_live) => Body::WithLiveFields(with_live),
            None if lock.is_none() => Body::ToCreate(with_version_of_no_object(object)),
            None => Body::Manifest,
        })
    }
}
