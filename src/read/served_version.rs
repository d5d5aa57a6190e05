//! Determines the meaning of a 404 for a path: the server serves the kind in another version now, or not at all.
//!
//! The definition of the kind is read first, since discovery lists kinds for a while after they are gone. A kind
//! without a definition counts as gone only by the rule for all kinds that are missing from discovery
//! (`kinds_missing_from_discovery`); in any other case the 404 is an error.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;
use tokio::time::sleep;

use super::kinds_missing_from_discovery::{KindWait, PAUSE, determine_missing_kind};
use super::list::{ListError, Selector, list};
use super::parent::{METADATA, crd_path};
use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::cluster::discovery::{self, Discovery, KindLookup, MissingKind};
use crate::model::list_targets::ListTarget;
use crate::model::resource::{Resource, Scope};

/// The version in which the server serves a kind, after it answered 404 for a path of the kind.
enum ServedVersion {
    /// None: the kind is gone, and with it all of its objects.
    Gone,
    /// Another version, and perhaps the one in the path as well.
    Other(Resource),
    /// The version in the path, as far as is known. So the meaning of the 404 is unknown.
    Unchanged,
}

/// Lists one collection in the version in which the server serves it now; a kind that is gone has no objects. `pick`
/// gets the resource with the version in which the objects were read.
pub async fn list_in_served_version<T>(
    server: &ApiServer,
    ListTarget { resource, namespace }: &ListTarget,
    selector: &Selector,
    pick: impl Fn(&Value, &Arc<Resource>) -> Option<T>,
) -> Result<Vec<T>, ListError> {
    let read = async |resource: &Arc<Resource>| {
        let pick = |item: &Value| pick(item, resource);
        list(server, resource, namespace.as_deref(), selector, pick).await
    };
    // Lists again at once: if a proxy has cut off the body of an answer, another 404 looks like this, too.
    for _ in 0..2 {
        match read(resource).await {
            Err(error) if error.is_not_served() => {}
            Err(error) if is_forbidden_since_namespace_gone(server, namespace.as_deref(), &error).await => {
                return Ok(Vec::new());
            }
            listed => return listed,
        }
    }
    let wait = KindWait::without_report();
    loop {
        match find_served_version(server, resource).await? {
            ServedVersion::Gone => return Ok(Vec::new()),
            ServedVersion::Other(other) => return read(&Arc::new(other)).await,
            // Either the kind was just defined, and soon served, or its definition is being deleted, and soon gone.
            ServedVersion::Unchanged => match read(resource).await {
                Err(error) if error.is_not_served() && !wait.is_over() => sleep(PAUSE).await,
                listed => return listed,
            },
        }
    }
}

/// Returns whether a list is forbidden only because its namespace is gone: the Roles that gave the permission are gone
/// with it.
async fn is_forbidden_since_namespace_gone(
    server: &ApiServer,
    namespace: Option<&str>,
    error: &ListError,
) -> bool {
    let (Some(namespace), ListError::Request(error)) = (namespace, error) else {
        return false;
    };
    let path =
        Resource::with_regular_names("", "v1", "Namespace", Scope::Cluster).path(None, Some(namespace));
    error.has_status_code(StatusCode::FORBIDDEN)
        && server
            .get(&path, METADATA)
            .await
            .is_err_and(|error| error.is_missing_object())
}

/// Returns whether this error of a request for an object proves that the object does not exist: because the server knows
/// its kind, or because its kind is gone. In another version, the object may exist.
pub(super) async fn is_object_gone(
    server: &ApiServer,
    resource: &Resource,
    error: &ApiError,
) -> Result<bool, ApiError> {
    if !error.has_status_code(StatusCode::NOT_FOUND) || error.is_missing_object() {
        return Ok(error.is_missing_object());
    }
    let served = find_served_version(server, resource).await?;
    Ok(matches!(served, ServedVersion::Gone))
}

async fn find_served_version(server: &ApiServer, resource: &Resource) -> Result<ServedVersion, ApiError> {
    match server.get(&crd_path(resource), "application/json").await {
        Ok(reply) => {
            let definition = reply.json_or_null();
            Ok(find_served_version_in_crd(&definition, resource))
        }
        Err(error) if error.is_missing_object() => await_version_without_crd(server, resource).await,
        Err(error) if error.has_status_code(StatusCode::FORBIDDEN) => {
            let discovery = discovery::request(server).await?;
            Ok(find_other_version(&discovery, resource).unwrap_or(ServedVersion::Unchanged))
        }
        Err(error) => Err(error),
    }
}

fn find_served_version_in_crd(definition: &Value, resource: &Resource) -> ServedVersion {
    let versions = definition["spec"]["versions"].as_array();
    let other = versions
        .into_iter()
        .flatten()
        .filter(|version| version["served"] == true)
        .filter_map(|version| version["name"].as_str())
        .find(|version| *version != resource.version);
    other.map_or(ServedVersion::Unchanged, |version| {
        ServedVersion::Other(Resource {
            version: version.to_owned(),
            ..resource.clone()
        })
    })
}

/// Returns how a kind is served if discovery prefers another version than the one of `resource`; otherwise `None`.
fn find_other_version(discovery: &Discovery, resource: &Resource) -> Option<ServedVersion> {
    match discovery.find_preferred(&resource.group_kind()) {
        KindLookup::Found(found) if found.version != resource.version => {
            Some(ServedVersion::Other(found.clone()))
        }
        _ => None,
    }
}

/// Determines how a kind without a definition is served: it is built in or of an aggregated API, or its definition is
/// gone. Waits until discovery does not list the kind in the version that was answered with 404 any more.
async fn await_version_without_crd(
    server: &ApiServer,
    resource: &Resource,
) -> Result<ServedVersion, ApiError> {
    let kind = resource.group_kind();
    let wait = KindWait::without_report();
    loop {
        let discovery = discovery::request(server).await?;
        if let Some(served) = find_other_version(&discovery, resource) {
            return Ok(served);
        }
        match discovery.find_preferred(&kind) {
            KindLookup::Found(_) if !wait.is_over() => sleep(PAUSE).await,
            KindLookup::Found(_) | KindLookup::GroupFailed(_) => return Ok(ServedVersion::Unchanged),
            KindLookup::Absent => {
                return Ok(match determine_missing_kind(server, &discovery, &kind).await {
                    Ok(MissingKind::Gone) => ServedVersion::Gone,
                    Err(ListError::Request(error)) => return Err(error),
                    Ok(MissingKind::Kept(_) | MissingKind::Expected(_)) | Err(_) => ServedVersion::Unchanged,
                });
            }
        }
    }
}
