//! Reads an object again that changed between the decision and its write, and checks which object an answer is about.

use std::sync::Arc;

use crate::cluster::apiserver::{ApiError, ApiServer, Reply};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::read;

/// The reason to report for an object that another client has deleted.
pub(super) const GONE_ALREADY: &str = "it did not exist any more";

/// Reads the metadata of an object again; `None` if the object is gone.
pub(super) async fn reread(
    server: &ApiServer,
    key: &ObjectKey,
    resource: &Arc<Resource>,
) -> Result<Option<Live>, ApiError> {
    let object = read::read_metadata(server, resource, key).await?;
    Ok(object.and_then(|object| Live::from_object(&object, resource)))
}

/// Returns whether an answer to a write is about this object.
pub(super) fn is_answer_about(reply: &Reply, live: &Live) -> bool {
    is_answer_about_uid(reply, &live.uid)
}

/// Returns whether an answer to a write is about the object with this UID. A `Status` of success, with which the server
/// may answer a DELETE, may lack the UID and counts as an answer about the object.
pub(super) fn is_answer_about_uid(reply: &Reply, uid: &str) -> bool {
    let answer = reply.json_or_null();
    let is_success = answer["kind"] == "Status" && answer["status"] == "Success";
    is_success || answer["metadata"]["uid"] == uid
}
