//! Single objects that somebody names, as far as they exist.

use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::Value;

use super::list::WHOLE_OBJECTS;
use super::parent::METADATA;
use super::served::is_absent;
use crate::apiserver::{ApiError, ApiErrorKind, ApiServer};
use crate::discovery::{Origin, Resource};
use crate::identity::ObjectKey;

/// Reads the metadata of each of these objects, `concurrency` at a time, and reduces it with
/// `reduce`; `None` for what does not exist. In the order of `wanted`.
pub async fn objects<T>(
    server: &ApiServer,
    wanted: &[(ObjectKey, Arc<Resource>)],
    concurrency: usize,
    reduce: impl Fn(&Value, &Arc<Resource>) -> Option<T>,
) -> Result<Vec<Option<T>>, (ObjectKey, ApiError)> {
    let reduce = &reduce;
    let reads = wanted.iter().map(async |(key, resource)| {
        if resource.origin == Origin::Promised {
            return Ok(None);
        }
        let object = read(server, key, resource, METADATA).await;
        let object = object.map_err(|error| (key.clone(), error))?;
        Ok(object.and_then(|object| reduce(&object, resource)))
    });
    stream::iter(reads).buffered(concurrency).try_collect().await
}

/// Reads an object as a whole; `None` where it does not exist.
pub async fn object(
    server: &ApiServer,
    resource: &Resource,
    key: &ObjectKey,
) -> Result<Option<Value>, ApiError> {
    read(server, key, resource, WHOLE_OBJECTS).await
}

async fn read(
    server: &ApiServer,
    key: &ObjectKey,
    resource: &Resource,
    accept: &str,
) -> Result<Option<Value>, ApiError> {
    let path = resource.path(key.namespace.as_deref(), Some(&key.name));
    let reply = match server.get(&path, accept).await {
        Ok(reply) => reply,
        Err(error) if is_absent(server, resource, &error).await? => return Ok(None),
        Err(error) => return Err(error),
    };
    let object = serde_json::from_slice(&reply.body).map_err(|error| ApiError {
        method: http::Method::GET,
        path,
        kind: Box::new(ApiErrorKind::Unreadable(error.to_string())),
    })?;
    Ok(Some(object))
}
