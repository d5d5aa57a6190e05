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

use super::kinds_missing_from_discovery::{KindWait, PAUSE, determine_missing_kind};
use super::list::{ListError, Selector, list};
use super::parent::definition_path;
use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::cluster::discovery::{self, Discovery, KindLookup, Lookup, MissingKind};
use crate::model::identity::GroupVersionKind;
use crate::model::list_targets::ListTarget;
use crate::model::resource::Resource;

/// The state of a kind whose path the server does not know.
enum ServedVersion {
    /// Not served any more: it has no objects.
    Gone,
    /// Served in another version, and not in this one any more.
    As(Resource),
    /// Served in another version, and perhaps in this one as well.
    AlsoAs(Resource),
    /// Unchanged, so the meaning of the answer is not known.
    Unchanged,
}

/// What is proved to be missing if an object cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// The object: the server knows its kind.
    Object,
    /// The kind, and with it the object.
    Kind,
    /// The version in which it was to be read. It may exist in another one.
    Version,
}

/// Lists one collection in the version in which it is served now. A kind that is gone has no objects.
/// `reduce` gets the version that it was read in.
pub async fn list_as_served<T>(
    server: &ApiServer,
    ListTarget { resource, namespace }: &ListTarget,
    selector: &Selector,
    reduce: impl Fn(&Value, &Arc<Resource>) -> Option<T>,
) -> Result<Vec<T>, ListError> {
    let read = async |resource: &Arc<Resource>| {
        let reduce = |item: &Value| reduce(item, resource);
        list(server, resource, namespace.as_deref(), selector, reduce).await
    };
    // Retries immediately: an answer that a proxy has cut off looks the same.
    for _ in 0..2 {
        match read(resource).await {
            Err(error) if error.is_not_served() => {}
            listed => return listed,
        }
    }
    let wait = KindWait::unreported();
    loop {
        match find_served_version(server, resource).await? {
            ServedVersion::Gone => return Ok(Vec::new()),
            ServedVersion::As(other) | ServedVersion::AlsoAs(other) => return read(&Arc::new(other)).await,
            // The kind was just defined, or its definition is being deleted.
            ServedVersion::Unchanged => match read(resource).await {
                Err(error) if error.is_not_served() && !wait.is_over() => sleep(PAUSE).await,
                listed => return listed,
            },
        }
    }
}

/// Returns whether an object that was answered with this 404 does not exist: it is missing, or its
/// kind is gone.
pub async fn is_absent(server: &ApiServer, resource: &Resource, error: &ApiError) -> Result<bool, ApiError> {
    let missing = find_missing(server, resource, error).await?;
    Ok(matches!(missing, Some(Missing::Object | Missing::Kind)))
}

/// Returns what is missing if an object was answered with this error; `None` if that proves nothing.
pub(super) async fn find_missing(
    server: &ApiServer,
    resource: &Resource,
    error: &ApiError,
) -> Result<Option<Missing>, ApiError> {
    if !error.is(StatusCode::NOT_FOUND) {
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
    match server.get(&definition_path(resource), "application/json").await {
        Ok(reply) => {
            let definition = reply.json_or_null();
            Ok(by_definition(&definition, resource))
        }
        Err(error) if error.is_missing_object() => without_definition(server, resource).await,
        Err(error) if error.is(StatusCode::FORBIDDEN) => {
            let discovery = discovery::fetch(server).await.map_err(|error| error.request)?;
            Ok(in_another_version(&discovery, resource).unwrap_or(ServedVersion::Unchanged))
        }
        Err(error) => Err(error),
    }
}

fn by_definition(definition: &Value, resource: &Resource) -> ServedVersion {
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

/// Returns how a kind is served if discovery prefers another version of it.
fn in_another_version(discovery: &Discovery, resource: &Resource) -> Option<ServedVersion> {
    let KindLookup::Found(found) = discovery.preferred(&resource.group_kind()) else {
        return None;
    };
    if found.version == resource.version {
        return None;
    }
    let gvk = GroupVersionKind {
        version: resource.version.clone(),
        ..found.gvk()
    };
    Some(match discovery.resource(&gvk) {
        Lookup::UnknownKind { .. } => ServedVersion::As(found.clone()),
        _ => ServedVersion::AlsoAs(found.clone()),
    })
}

/// Judges a kind without a definition: built in, or not a custom resource any more. Waits until
/// discovery follows.
async fn without_definition(server: &ApiServer, resource: &Resource) -> Result<ServedVersion, ApiError> {
    let kind = resource.group_kind();
    let wait = KindWait::unreported();
    loop {
        let discovery = discovery::fetch(server).await.map_err(|error| error.request)?;
        if let Some(served) = in_another_version(&discovery, resource) {
            return Ok(served);
        }
        match discovery.preferred(&kind) {
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
