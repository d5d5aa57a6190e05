//! Sends the requests of discovery: two for a server since v1.26, and one more per group-version for
//! an older one.
//!
//! `parse` reads the answers.

use futures_util::StreamExt as _;
use http::StatusCode;

use super::parse::{self, GroupVersion, Root, RootAnswer, VersionResult};
use super::{Discovery, FailedVersion};
use crate::cluster::apiserver::{ApiError, ApiErrorKind, ApiServer};
use crate::error::{Error, ErrorKind};
use crate::model::resource::percent_encode;

/// The formats in which `/api` and `/apis` can be read, the preferred one first, as client-go asks for them.
const ACCEPT_ROOT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
    application/json";
const ACCEPT_RESOURCE_LIST: &str = "application/json";
/// The most concurrent requests for group-versions of an old server.
const CONCURRENCY: usize = 16;

/// Discovery that failed as a whole: it is unknown what the server serves.
#[derive(Debug, thiserror::Error)]
#[error("{}: {request}", describe_fault(.request))]
pub struct DiscoveryError {
    /// The request that failed.
    #[from]
    pub request: ApiError,
}

fn describe_fault(request: &ApiError) -> &'static str {
    match &*request.kind {
        ApiErrorKind::Connection { .. }
        | ApiErrorKind::Untrusted { .. }
        | ApiErrorKind::Timeout { .. }
        | ApiErrorKind::NotSent { .. } => "discovery: the server cannot be reached",
        ApiErrorKind::Credential(_) => "the server does not accept these credentials",
        ApiErrorKind::Status(status) => match status.code {
            401 => "the server does not accept these credentials",
            403 => "discovery: forbidden",
            _ => "discovery: invalid response",
        },
        ApiErrorKind::TooLarge(_) | ApiErrorKind::Unreadable(_) | ApiErrorKind::LeaseLost(_) => {
            "discovery: invalid response"
        }
    }
}

impl From<DiscoveryError> for Error {
    /// Creates the error of a run that does not know what the server serves.
    fn from(DiscoveryError { request }: DiscoveryError) -> Self {
        let cause = request.cause();
        let text = match request.status() {
            Some(status) if status.code != StatusCode::UNAUTHORIZED => format!("discovery failed: {cause}"),
            _ => cause,
        };
        Self::new(ErrorKind::Cluster, text).with_hint(request.hint())
    }
}

/// Reads what the server serves.
///
/// A group-version whose resources cannot be read is recorded as failed. It is an error only if
/// `/api` or `/apis` itself cannot be read.
pub async fn fetch(server: &ApiServer) -> Result<Discovery, DiscoveryError> {
    let (core, groups) = tokio::try_join!(
        fetch_versions(server, Root::Core),
        fetch_versions(server, Root::Groups)
    )?;
    Ok(Discovery::new(core.into_iter().chain(groups)))
}

async fn fetch_versions(server: &ApiServer, root: Root) -> Result<Vec<VersionResult>, ApiError> {
    let path = match root {
        Root::Core => "/api",
        Root::Groups => "/apis",
    };
    let reply = server.get_list(path, ACCEPT_ROOT).await?;
    let answer = parse::parse_root(root, &reply.body)
        .map_err(|error| ApiError::for_invalid_answer(path, error.to_string()))?;
    match answer {
        RootAnswer::Aggregated(versions) => Ok(versions),
        RootAnswer::Index(index) => Ok(fetch_each_version(server, index).await),
    }
}

async fn fetch_each_version(server: &ApiServer, index: Vec<GroupVersion>) -> Vec<VersionResult> {
    futures_util::stream::iter(index)
        .map(|group_version| fetch_version(server, group_version))
        .buffered(CONCURRENCY)
        .collect()
        .await
}

async fn fetch_version(server: &ApiServer, group_version: GroupVersion) -> VersionResult {
    let path = if group_version.group.is_empty() {
        format!("/api/{}", percent_encode(&group_version.version))
    } else {
        format!(
            "/apis/{}/{}",
            percent_encode(&group_version.group),
            percent_encode(&group_version.version)
        )
    };
    let resources = match server.get_list(&path, ACCEPT_RESOURCE_LIST).await {
        Ok(reply) => {
            parse::parse_resource_list(&group_version, &reply.body).map_err(|error| error.to_string())
        }
        Err(error) => Err(error.kind.to_string()),
    };
    resources.map_err(|reason| FailedVersion {
        group: group_version.group,
        version: group_version.version,
        reason,
    })
}

#[cfg(test)]
mod tests;
