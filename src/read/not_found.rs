//! Determines the meaning of a 404 for a path: the kind is gone, or only the version that discovery has
//! listed.
//!
//! The definition of a custom resource is read first, since discovery lists kinds for a while after
//! they are gone. A kind without one is gone only by the rule for all kinds that discovery does not
//! list (`kinds_missing_from_discovery`); in any other case the 404 is an error.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;
use tokio::time::sleep;

use super::kinds_missing_from_discovery::{KindWait, PAUSE, look_up};
use super::list::{ListError, Selector, list};
use super::parent::definition_path;
use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::cluster::discovery::{self, DiscoveryError, KindLookup, MissingKind};
use crate::model::resource::Resource;

/// The state of a kind whose path the server does not know.
enum Served {
    /// Not served any more: it has no objects.
    Gone,
    /// Served in another version.
    As(Resource),
    /// Unchanged, so the meaning of the answer is not known.
    Unchanged,
}

/// Lists one collection in the version in which it is served now. A kind that is gone has no objects.
/// `reduce` gets the version that it was read in.
pub async fn list_as_served<T>(
    server: &ApiServer,
    resource: &Arc<Resource>,
    namespace: Option<&str>,
    selector: &Selector,
    reduce: impl Fn(&Value, &Arc<Resource>) -> Option<T>,
) -> Result<Vec<T>, ListError> {
    let read = async |resource: &Arc<Resource>| {
        list(server, resource, namespace, selector, |item| {
            reduce(item, resource)
        })
        .await
    };
    // Retries immediately: an answer that a proxy has cut off looks the same.
    for _ in 0..2 {
        match read(resource).await {
            Err(error) if error.is_not_served() => {}
            listed => return listed,
        }
    }
    match Box::pin(served(server, resource)).await? {
        Served::Gone => Ok(Vec::new()),
        Served::As(other) => read(&Arc::new(other)).await,
        // The kind was just defined.
        Served::Unchanged => read(resource).await,
    }
}

/// Returns whether an object that was answered with this 404 does not exist: it is missing, or its
/// kind is gone.
pub async fn is_absent(server: &ApiServer, resource: &Resource, error: &ApiError) -> Result<bool, ApiError> {
    if !error.is(StatusCode::NOT_FOUND) {
        return Ok(false);
    }
    Ok(error.is_missing_object() || matches!(Box::pin(served(server, resource)).await?, Served::Gone))
}

async fn served(server: &ApiServer, resource: &Resource) -> Result<Served, ApiError> {
    match server.get(&definition_path(resource), "application/json").await {
        Ok(reply) => {
            let definition: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
            Ok(by_definition(&definition, resource))
        }
        Err(error) if error.is_missing_object() => without_definition(server, resource).await,
        Err(error) if error.is(StatusCode::FORBIDDEN) => {
            let discovery = discovery::fetch(server).await;
            let discovery = discovery.map_err(DiscoveryError::into_request)?;
            Ok(match discovery.preferred(&resource.group_kind()) {
                KindLookup::Found(found) if found.version != resource.version => Served::As(found.clone()),
                _ => Served::Unchanged,
            })
        }
        Err(error) => Err(error),
    }
}

fn by_definition(definition: &Value, resource: &Resource) -> Served {
    let versions = definition["spec"]["versions"].as_array();
    let mut served = versions
        .into_iter()
        .flatten()
        .filter(|version| version["served"] == true)
        .filter_map(|version| version["name"].as_str());
    match served.find(|version| *version != resource.version) {
        Some(version) => Served::As(Resource {
            version: version.to_owned(),
            ..resource.clone()
        }),
        None => Served::Unchanged,
    }
}

/// Judges a kind without a definition: built in, or not a custom resource any more. Waits until
/// discovery follows.
async fn without_definition(server: &ApiServer, resource: &Resource) -> Result<Served, ApiError> {
    let kind = resource.group_kind();
    let wait = KindWait::unreported();
    loop {
        let discovery = discovery::fetch(server).await;
        let discovery = discovery.map_err(DiscoveryError::into_request)?;
        match discovery.preferred(&kind) {
            KindLookup::Found(found) if found.version != resource.version => {
                return Ok(Served::As(found.clone()));
            }
            KindLookup::Found(_) if !wait.is_over() => sleep(PAUSE).await,
            KindLookup::Found(_) | KindLookup::GroupFailed(_) => return Ok(Served::Unchanged),
            KindLookup::Absent => {
                return Ok(match look_up(server, &discovery, &kind).await {
                    Ok(MissingKind::Gone) => Served::Gone,
                    Err(ListError::Request(error)) => return Err(error),
                    Ok(MissingKind::Kept(_) | MissingKind::Expected(_)) | Err(_) => Served::Unchanged,
                });
            }
        }
    }
}
