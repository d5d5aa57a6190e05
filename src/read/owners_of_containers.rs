//! Reads the owners of namespaces and CRDs.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::StatusCode;

use super::list::ListError;
use super::namespaces::namespaces;
use super::parent::{definition_path, metadata};
use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::model::containers::{Containers, Owners};
use crate::model::identity::ObjectKey;
use crate::model::list_targets::ListTarget;
use crate::model::resource::Resource;

/// Limit of concurrent GETs.
const CONCURRENCY: usize = 16;

/// Reads the owners of those that exist. Sends nothing if there are no containers.
pub async fn owners_of_containers(
    server: &ApiServer,
    containers: &Containers,
) -> Result<BTreeMap<ObjectKey, Owners>, (ListTarget, ListError)> {
    let names = containers.namespaces.iter().map(String::as_str).collect();
    let states = namespaces(server, &names).await?;
    let mut owners: BTreeMap<ObjectKey, Owners> = states
        .iter()
        .map(|(name, state)| (Containers::namespace_key(name), Owners::from_namespace(state)))
        .collect();
    let reads = containers.definitions.iter().map(async |(key, resource)| {
        let read = definition_owners(server, resource).await?;
        Ok::<_, ApiError>(read.map(|owners| (key.clone(), owners)))
    });
    let read: Vec<Option<_>> = stream::iter(reads)
        .buffer_unordered(CONCURRENCY)
        .try_collect()
        .await
        .map_err(|error| {
            let place = ListTarget {
                resource: Arc::new(Resource::definitions()),
                namespace: None,
            };
            (place, ListError::Request(error))
        })?;
    owners.extend(read.into_iter().flatten());
    Ok(owners)
}

/// The owners of the definition of a resource; `None` if it has no definition.
async fn definition_owners(server: &ApiServer, resource: &Resource) -> Result<Option<Owners>, ApiError> {
    match metadata(server, &definition_path(resource)).await {
        Ok(fields) => Ok(fields.map(|fields| Owners::Known(fields.owners()))),
        Err(error) if error.is(StatusCode::FORBIDDEN) => Ok(Some(Owners::Forbidden)),
        // The server does not serve CRDs.
        Err(error) if error.is(StatusCode::NOT_FOUND) => Ok(None),
        Err(error) => Err(error),
    }
}
