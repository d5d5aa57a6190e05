//! A second look at an object that changed between the read that a decision was made on and
//! the write of that decision.

use http::StatusCode;
use serde_json::Value;

use crate::apiserver::{ApiError, ApiServer};
use crate::observe::{Live, METADATA};

/// Reads the object again; `None` where it is gone.
pub(super) async fn read_again(server: &ApiServer, live: &Live) -> Result<Option<Live>, ApiError> {
    let object = read_as(server, live, METADATA).await?;
    Ok(object.and_then(|object| Live::of(&object, &live.resource)))
}

/// The same, with as much of the object as `accept` asks for.
pub(super) async fn read_as(
    server: &ApiServer,
    live: &Live,
    accept: &str,
) -> Result<Option<Value>, ApiError> {
    let path = live
        .resource
        .path(live.key.namespace.as_deref(), Some(&live.key.name));
    match server.get(&path, accept).await {
        Ok(reply) => Ok(serde_json::from_slice(&reply.body).ok()),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the object is not there. A 404 that names no object is said of the path: the
/// server does not serve the version any more that the object was read in, and the object
/// may well be there.
pub(super) fn is_gone(error: &ApiError) -> bool {
    error.is(StatusCode::NOT_FOUND)
        && error
            .status()
            .is_some_and(|status| !status.details.name.is_empty())
}
