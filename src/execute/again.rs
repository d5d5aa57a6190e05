//! A second look at an object that changed between the read that a decision was made on and
//! the write of that decision.

use http::StatusCode;
use serde_json::Value;

use crate::apiserver::{ApiError, ApiServer};
use crate::observe::{Live, METADATA};

/// Reads the object again; `None` where it is gone.
pub(super) async fn read_again(server: &ApiServer, live: &Live) -> Result<Option<Live>, ApiError> {
    let path = live
        .resource
        .path(live.key.namespace.as_deref(), Some(&live.key.name));
    match server.get(&path, METADATA).await {
        Ok(reply) => Ok(serde_json::from_slice::<Value>(&reply.body)
            .ok()
            .and_then(|object| Live::of(&object, &live.resource))),
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
