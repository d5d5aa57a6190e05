//! Applies over a parent without removing its ApplySet metadata.

use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::compare::ownership;
use crate::execute::Execution;
use crate::manifest::desired::DesiredObject;
use crate::plan::{MemberStatus, Seen, may_hold_record};
use crate::read;

/// An object as it is sent over a parent, with its ApplySet metadata.
pub(crate) struct Carrying {
    /// The object of the manifests, with the ApplySet metadata.
    pub(crate) object: DesiredObject,
    /// The parent that the ApplySet metadata were read from. The set's own run may write another record
    /// at any time, which must not be overwritten.
    pub(crate) seen: Seen,
}

/// Reads the live object, and returns what to send if an apply by `manager` would remove ApplySet
/// metadata from it.
pub(crate) async fn carrying(
    server: &ApiServer,
    object: &DesiredObject,
    manager: &str,
) -> Result<Option<Carrying>, ApiError> {
    let live = read::metadata(server, &object.resource, &object.key).await?;
    let Some(live) = live else {
        return Ok(None);
    };
    let metadata = &live["metadata"];
    let Some(sent) = ownership::with_applyset_metadata(&object.object, metadata, manager) else {
        return Ok(None);
    };
    let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
    Ok(Some(Carrying {
        seen: Seen {
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            digest: String::new(),
        },
        object: DesiredObject {
            object: sent,
            ..object.clone()
        },
    }))
}

impl Execution<'_> {
    /// Returns what to send for a member that may be the parent of another set; `None` if that
    /// is its manifest alone.
    pub(crate) async fn carrying(
        &self,
        object: &DesiredObject,
        member_status: &MemberStatus,
    ) -> Result<Option<Carrying>, ApiError> {
        let manager = &self.writing.field_manager;
        if may_hold_record(object, member_status, manager) {
            carrying(self.server, object, manager).await
        } else {
            Ok(None)
        }
    }
}
