//! A second look at an object that changed between the read that a decision was made on and
//! the write of that decision, and at what an answer says of it.

use serde_json::Value;

use crate::apiserver::{ApiError, ApiServer, Reply};
use crate::observe::{Live, METADATA};

/// Reads the object again; `None` where it is gone.
pub(super) async fn read_again(server: &ApiServer, live: &Live) -> Result<Option<Live>, ApiError> {
    let object = read_as(server, live, METADATA).await?;
    Ok(object.and_then(|object| Live::of(&object, &live.resource)))
}

/// The same, with as much of the object as `accept` asks for. What cannot be read, or is
/// another object, is an error: it is not gone.
pub(super) async fn read_as(
    server: &ApiServer,
    live: &Live,
    accept: &str,
) -> Result<Option<Value>, ApiError> {
    let path = live
        .resource
        .path(live.key.namespace.as_deref(), Some(&live.key.name));
    let reply = match server.get(&path, accept).await {
        Ok(reply) => reply,
        Err(error) if error.is_missing_object() => return Ok(None),
        Err(error) => return Err(error),
    };
    let object: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    match Live::of(&object, &live.resource) {
        Some(fresh) if fresh.key == live.key => Ok(Some(object)),
        _ => Err(ApiError::unreadable(path, format!("it is not {}", live.key))),
    }
}

/// Told of an object that somebody else has deleted.
pub(super) const GONE_ALREADY: &str = "it was gone already";

/// Whether an answer to a write is about this object.
pub(super) fn is_of(reply: &Reply, live: &Live) -> bool {
    let answer: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let is_success = answer["kind"] == "Status" && answer["status"] == "Success";
    is_success || answer["metadata"]["uid"] == live.uid
}
