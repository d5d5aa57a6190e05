//! Applies that contain fields copied from the live object, and so carry its resourceVersion: the
//! ApplySet metadata of a parent, and the fields that the set leaves to others.

use serde_json::Value;

use crate::cluster::apiserver::{ApiError, ApiServer, Status};
use crate::compare::ignore::{self, Purpose};
use crate::compare::ownership::{self, Former};
use crate::execute::Execution;
use crate::execute::members::apply_as_read::as_new;
use crate::manifest::desired::DesiredObject;
use crate::plan::{LiveMembership, Seen, may_hold_record};
use crate::read;

/// An apply with fields of the live object.
pub struct ApplyWithLiveFields {
    /// The object of the manifests, with fields of the live one.
    pub object: DesiredObject,
    /// The version that these fields were read from. Others may write them at any time, which must not
    /// be overwritten.
    pub seen: Seen,
}

/// The body that is sent for a member, by its origin.
pub enum Sent {
    Manifest,
    /// Its manifest, if it does not exist yet.
    New(DesiredObject),
    /// Its manifest with fields of the live object.
    Over(ApplyWithLiveFields),
}

impl ApplyWithLiveFields {
    /// Returns what to send over the live object, if an apply of the manifest by `manager` would remove
    /// ApplySet metadata from it, or change ignored fields.
    pub fn over(live: &Value, object: &DesiredObject, manager: &str) -> Option<Self> {
        let settled = ignore::body_of(object, live, manager, Purpose::Send);
        let kept = ownership::with_applyset_metadata(&settled, &live["metadata"], manager);
        let sent = kept.or_else(|| (!object.ignored.is_empty()).then_some(settled))?;
        Some(Self {
            seen: Seen::version(live),
            object: DesiredObject {
                object: sent,
                ..object.clone()
            },
        })
    }
}

/// Reads what [`ApplyWithLiveFields::over`] needs of the live object: all of it only for ignored fields.
pub async fn live_fields(server: &ApiServer, object: &DesiredObject) -> Result<Option<Value>, ApiError> {
    if object.ignored.is_empty() {
        read::metadata(server, &object.resource, &object.key).await
    } else {
        read::object(server, &object.resource, &object.key).await
    }
}

/// Returns the live object as if our manager owned the fields of the `former` owners already: the run takes
/// them, so an ignored field among them has to be sent.
pub fn with_former_fields_taken(mut live: Value, former: &Former) -> Value {
    if let Some(moved) = ownership::migrate_managed_fields(&live["metadata"], former) {
        live["metadata"]["managedFields"] = moved;
    }
    live
}

/// Returns whether this is a field conflict and the object has changed since it was `seen`: a field that is sent as it
/// was then is in conflict with its new value. The server looks for such conflicts before it compares the
/// resourceVersion.
pub async fn is_outdated(server: &ApiServer, object: &DesiredObject, seen: &Seen, error: &ApiError) -> bool {
    if !is_field_conflict(error) {
        return false;
    }
    let Ok(now) = read::metadata(server, &object.resource, &object.key).await else {
        return false;
    };
    let version = now.map(|live| Seen::version(&live));
    version.is_none_or(|now| now.uid != seen.uid || now.resource_version != seen.resource_version)
}

fn is_field_conflict(error: &ApiError) -> bool {
    error.status().is_some_and(Status::is_field_conflict)
}

impl Execution<'_> {
    /// Returns whether this is a field conflict and what was sent does not fit the object as it is now: it was sent to
    /// be created, or over a former version.
    pub async fn is_outdated(&self, object: &DesiredObject, sent: &Sent, error: &ApiError) -> bool {
        match sent {
            Sent::Manifest => false,
            Sent::New(_) => is_field_conflict(error),
            Sent::Over(with_live) => is_outdated(self.server, object, &with_live.seen, error).await,
        }
    }

    /// Returns what to send for a member that may be the parent of another set, or that has ignored
    /// fields; `None` if that is its manifest alone.
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
            live = with_former_fields_taken(live, &self.former(live_membership));
        }
        Ok(ApplyWithLiveFields::over(&live, object, manager))
    }

    /// Returns what to send for a member. Of ignored fields, the first attempt relies on the LIST, and
    /// expects an object that was not listed to be new. A later attempt reads the object.
    ///
    /// `lock` is the version that the plan is bound to.
    pub async fn sent(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        lock: Option<&Seen>,
        attempts: u32,
    ) -> Result<Sent, ApiError> {
        if object.ignored.is_empty() {
            let with_live = self.apply_with_live_fields(object, live_membership).await?;
            return Ok(with_live.map_or(Sent::Manifest, Sent::Over));
        }
        if attempts == 1 {
            if let Some(listed) = self.state.with_live_fields.get(&object.key)
                && lock.is_none_or(|lock| lock.resource_version == listed.seen.resource_version)
            {
                return Ok(Sent::Over(ApplyWithLiveFields {
                    object: DesiredObject {
                        object: listed.object.clone(),
                        ..object.clone()
                    },
                    seen: listed.seen.clone(),
                }));
            }
            if *live_membership == LiveMembership::NotAMember && lock.is_none() {
                return Ok(Sent::New(as_new(object)));
            }
        }
        let with_live = self.apply_with_live_fields(object, live_membership).await?;
        Ok(match with_live {
            Some(with_live) => Sent::Over(with_live),
            None if lock.is_none() => Sent::New(as_new(object)),
            None => Sent::Manifest,
        })
    }
}
