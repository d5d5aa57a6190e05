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
use crate::cluster::discovery::{self, Discovery, KindLookup, MissingKind, ResourceLookup};
use crate::model::identity::GroupVersionKind;
use crate::model::list_targets::ListTarget;
use crate::model::resource::{Resource, Scope};

/// The version in which the server serves a kind, after it answered 404 for a path of the kind.
enum ServedVersion {
    /// None: the kind is gone, and with it all of its objects.
    Gone,
    /// Only another version than the one in the path.
    As(Resource),
    /// Another version, and perhaps the one in the path as well.
    AlsoAs(Resource),
    /// The version in the path, as far as is known. So the meaning of the 404 is unknown.
    Unchanged,
}

/// The thing that a 404 for an object proves to be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// The object. The server knows its kind.
    Object,
    /// The kind, and with it the object.
    Kind,
    /// The version in the path. The object may exist in another version.
    Version,
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
            ServedVersion::As(other) | ServedVersion::AlsoAs(other) => return read(&Arc::new(other)).await,
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

/// Returns what this error of a request for an object proves to be missing; `None` if it proves nothing.
pub(super) async fn determine_what_is_missing(
    server: &ApiServer,
    resource: &Resource,
    error: &ApiError,
) -> Result<Option<Missing>, ApiError> {
    if !error.has_status_code(StatusCode::NOT_FOUND) {
        return Ok(None);
    }
    if error.is_missing_object() {
        return Ok(Some(Missing::Object));
    }
    Ok(match find_served_version(server, resource).await? {
        ServedVersion::Gone => Some(Missing::Kind),
        ServedVersion::As(_) => Some(Missing::Version),
        ServedVersion::AlsoAs(_) | ServedVersion::Unchanged => None,
    })
}

async fn find_served_version(server: &ApiServer, resource: &Resource) -> Result<ServedVersion, ApiError> {
    match server.get(&crd_path(resource), "application/json").await {
        Ok(reply) => {
            let definition = reply.json_or_null();
            Ok(find_served_version_in_crd(&definition, resource))
        }
        Err(error) if error.is_missing_object() => await_version_without_crd(server, resource).await,
        Err(error) if error.has_status_code(StatusCode::FORBIDDEN) => {
            let discovery = discovery::fetch(server).await.map_err(|error| error.request)?;
            Ok(find_other_version(&discovery, resource).unwrap_or(ServedVersion::Unchanged))
        }
        Err(error) => Err(error),
    }
}

fn find_served_version_in_crd(definition: &Value, resource: &Resource) -> ServedVersion {
    let versions = definition["spec"]["versions"].as_array();
    let (own, others): (Vec<&str>, Vec<&str>) = versions
        .into_iter()
        .flatten()
        .filter(|version| version["served"] == true)
        .filter_map(|version| version["name"].as_str())
        .partition(|version| *version == resource.version);
    let other = others.first().map(|version| Resource {
        version: (*version).to_owned(),
        ..resource.clone()
    });
    match other {
        Some(other) if own.is_empty() => ServedVersion::As(other),
        Some(other) => ServedVersion::AlsoAs(other),
        None => ServedVersion::Unchanged,
    }
}

/// Returns how a kind is served if discovery prefers another version than the one of `resource`; otherwise `None`.
fn find_other_version(discovery: &Discovery, resource: &Resource) -> Option<ServedVersion> {
    let KindLookup::Found(found) = discovery.find_preferred(&resource.group_kind()) else {
        return None;
    };
    if found.version == resource.version {
        return None;
    }
    let gvk = GroupVersionKind {
        version: resource.version.clone(),
        ..found.gvk()
    };
    Some(match discovery.find_resource(&gvk) {
        ResourceLookup::UnknownKind { .. } => ServedVersion::As(found.clone()),
        _ => ServedVersion::AlsoAs(found.clone()),
    })
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
        let discovery = discovery::fetch(server).await.map_err(|error| error.request)?;
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
