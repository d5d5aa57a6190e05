//! Reads an object again that changed between the decision and its write, and checks which object an answer is about.

use std::sync::Arc;

use serde_json::Value;

use crate::cluster::apiserver::{ApiError, ApiServer, Reply};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::read::METADATA;

/// The reason to report for an object that another client has deleted.
pub(super) const GONE_ALREADY: &str = "it did not exist any more";

/// Reads the metadata of an object again; `None` if the object is gone.
pub(super) async fn reread(
    server: &ApiServer,
    key: &ObjectKey,
    resource: &Arc<Resource>,
) -> Result<Option<Live>, ApiError> {
    let object = reread_in_media_type(server, key, resource, METADATA).await?;
    Ok(object.and_then(|object| Live::from_object(&object, resource)))
}

/// Reads an object again, requested in the media type `accept`; `None` if the object is gone. An answer that cannot be
/// read or has another key is an error: callers report an object as gone only after a 404.
pub(super) async fn reread_in_media_type(
    server: &ApiServer,
    key: &ObjectKey,
    resource: &Arc<Resource>,
    accept: &str,
) -> Result<Option<Value>, ApiError> {
    let path = resource.path_of(key);
    let reply = match server.get(&path, accept).await {
        Ok(reply) => reply,
        Err(error) if error.is_missing_object() => return Ok(None),
        Err(error) => return Err(error),
    };
    let object = reply.json_or_null();
    match Live::from_object(&object, resource) {
        Some(live) if live.key == *key => Ok(Some(object)),
        _ => Err(ApiError::for_invalid_answer(path, format!("it is not {key}"))),
    }
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
