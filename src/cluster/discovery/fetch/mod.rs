//! Sends the two requests of discovery.
//!
//! `parse` reads the answers.

use http::StatusCode;

use super::Discovery;
use super::parse::{self, Root, VersionResult};
use crate::cluster::apiserver::{ApiError, ApiErrorKind, ApiServer};
use crate::error::{Error, ErrorKind};

/// The formats in which `/api` and `/apis` can be read, the preferred one first, as client-go asks for them. The last
/// is the answer of a server before Kubernetes 1.27. It is not read, but it tells the server's age, which a 406 would
/// not.
const ACCEPT_ROOT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
    application/json";

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
/// A group-version whose API server does not answer is recorded as failed. It is an error only if `/api` or `/apis`
/// itself cannot be read.
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
    parse::parse_root(root, &reply.body)
        .map_err(|error| ApiError::for_invalid_answer(path, error.to_string()))
}

#[cfg(test)]
mod tests;
