//! Reads the owners of namespaces and CRDs.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::StatusCode;

use super::list::ListError;
use super::namespaces::read_namespaces;
use super::parent::{definition_path, metadata};
use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::model::containers::{Containers, NamespaceState, Owners};
use crate::model::identity::ObjectKey;
use crate::model::list_targets::ListTarget;
use crate::model::resource::Resource;

/// Limit of concurrent GETs.
const CONCURRENCY: usize = 16;

/// Reads the owners of the containers that exist. The states of namespaces in `read` were read before, and are not read
/// again.
pub async fn owners_of_containers(
    server: &ApiServer,
    containers: &Containers,
    read: &BTreeMap<String, NamespaceState>,
) -> Result<BTreeMap<ObjectKey, Owners>, (ListTarget, ListError)> {
    let names = &containers.namespaces;
    let unread = names.iter().filter(|name| !read.contains_key(*name));
    let states = read_namespaces(server, &unread.map(String::as_str).collect()).await?;
    let known = read.iter().filter(|(name, _)| names.contains(*name));
    let mut owners: BTreeMap<ObjectKey, Owners> = states
        .iter()
        .chain(known)
        .map(|(name, state)| (Containers::namespace_key(name), Owners::from_namespace(state)))
        .collect();
    let definitions = containers.definitions.iter().map(async |(key, resource)| {
        let read = read_definition_owners(server, resource).await?;
        Ok::<_, ApiError>(read.map(|owners| (key.clone(), owners)))
    });
    let definitions: Vec<Option<_>> = stream::iter(definitions)
        .buffer_unordered(CONCURRENCY)
        .try_collect()
        .await
        .map_err(|error| {
            let definitions = Arc::new(Resource::definitions());
            (ListTarget::new(&definitions, None), ListError::Request(error))
        })?;
    owners.extend(definitions.into_iter().flatten());
    Ok(owners)
}

/// Reads the owners of the definition of a resource; `None` if it has no definition.
async fn read_definition_owners(server: &ApiServer, resource: &Resource) -> Result<Option<Owners>, ApiError> {
    match metadata(server, &definition_path(resource)).await {
        Ok(fields) => Ok(fields.map(|fields| Owners::Known(fields.owner_uids()))),
        Err(error) if error.is(StatusCode::FORBIDDEN) => Ok(Some(Owners::Forbidden)),
        // The server does not serve CRDs.
        Err(error) if error.is(StatusCode::NOT_FOUND) => Ok(None),
        Err(error) => Err(error),
    }
}
