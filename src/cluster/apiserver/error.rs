//! Errors of requests, with the request that failed.

use std::fmt;
use std::time::Duration;

use http::{Method, StatusCode};

use super::{EarlierAttempts, Status, may_be_from_proxy};
use crate::cluster::proxy::Proxy;
use crate::error::{Error, ErrorKind};
use crate::model::message::Message;
use crate::model::permission::ASK_AN_ADMINISTRATOR;

/// A request that did not succeed, with what was requested.
#[derive(Debug, thiserror::Error)]
#[error("{method} {path}: {kind}")]
pub struct ApiError {
    /// HTTP method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The cause.
    #[source]
    pub kind: Box<ApiErrorKind>,
    /// The result of earlier attempts at the same request.
    pub earlier_attempts: EarlierAttempts,
}

/// The reason why a request did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum ApiErrorKind {
    /// The server answered with a status of 300 or above.
    #[error("{0}")]
    Status(Box<Status>),
    /// No answer came: connection refused, reset, TLS, credentials plugin.
    #[error("{address}{}: no answer: {message}", through_proxy_suffix(proxy.as_deref()))]
    Connection {
        /// The API server.
        address: String,
        /// The proxy, if there is one. Then this machine connects only to the proxy, and not to the server.
        proxy: Option<Box<Proxy>>,
        /// The message of the network or of the credentials plugin.
        message: String,
    },
    /// The server's certificate does not verify.
    #[error("{address}: certificate not trusted: {message}")]
    Untrusted {
        /// The API server.
        address: String,
        /// The reason.
        message: String,
    },
    /// The token has expired, and there is no new one.
    #[error("credentials could not be renewed: {0}")]
    Credential(String),
    /// No answer came in time.
    #[error("{address}: no answer within {limit:?}")]
    Timeout {
        /// The API server.
        address: String,
        /// The time limit.
        limit: Duration,
    },
    /// The request was not sent, because the server did not answer earlier requests in time.
    #[error("{address}: request not sent: the server does not answer")]
    NotSent {
        /// The API server.
        address: String,
    },
    /// The request was not sent, because this run could not renew its lease (`write_lease`) in time.
    #[error("not sent: for five minutes, this run could not renew its entry on the set's parent: {0}")]
    LeaseLost(String),
    /// The request was not sent, because it was decided too long ago (`ApiRequest::not_after`).
    #[error("not sent: it was decided too long ago")]
    Outdated,
    /// The answer has more bytes than this.
    #[error("the answer of the server is too large: more than {} MiB", .0 >> 20)]
    TooLarge(usize),
    /// The answer is not what the API promises.
    #[error("invalid response from the server: {0}")]
    Unreadable(String),
}

impl ApiError {
    /// Creates the error for an answer to a GET of this path that is invalid for this reason.
    pub fn for_invalid_answer(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            kind: Box::new(ApiErrorKind::Unreadable(reason.into())),
            earlier_attempts: EarlierAttempts::NoEffect,
        }
    }

    /// Creates the error with which the server is predicted to answer an apply to this path.
    pub fn predicted(path: impl Into<String>, status: Status) -> Self {
        Self {
            method: Method::PATCH,
            path: path.into(),
            kind: Box::new(ApiErrorKind::Status(Box::new(status))),
            earlier_attempts: EarlierAttempts::NoEffect,
        }
    }

    /// Returns the `Status` in the answer of the server, if it answered.
    pub fn status(&self) -> Option<&Status> {
        match &*self.kind {
            ApiErrorKind::Status(status) => Some(status),
            _ => None,
        }
    }

    /// Returns the `Status` to be changed.
    pub fn status_mut(&mut self) -> Option<&mut Status> {
        match &mut *self.kind {
            ApiErrorKind::Status(status) => Some(status),
            _ => None,
        }
    }

    /// Returns whether the server answered with this HTTP status code.
    pub fn has_status_code(&self, code: StatusCode) -> bool {
        self.status().is_some_and(|status| status.code == code.as_u16())
    }

    /// Returns whether the requested object does not exist. A 404 that names no object is about
    /// the path: the server does not serve this version or kind, and the object may exist in
    /// another version.
    pub fn is_missing_object(&self) -> bool {
        self.has_status_code(StatusCode::NOT_FOUND)
            && self
                .status()
                .is_some_and(|status| !status.details.name.is_empty())
    }
}

impl ApiError {
    /// Returns the error of a run that could not read this object.
    pub fn to_error_while_reading(&self, object: impl fmt::Display) -> Error {
        let kind = if self.has_status_code(StatusCode::FORBIDDEN) {
            ErrorKind::Forbidden
        } else {
            ErrorKind::Cluster
        };
        Error::new(kind, format!("{object}: cannot be read: {}", self.cause())).with_hint(self.hint())
    }

    /// Returns why the request did not succeed, in plain words if the user is not authenticated.
    pub fn cause(&self) -> String {
        if self.has_status_code(StatusCode::UNAUTHORIZED) {
            "Unauthorized: the server does not accept these credentials".to_owned()
        } else {
            self.kind.to_string()
        }
    }

    /// Returns what to type or check next.
    pub fn hint(&self) -> String {
        match &*self.kind {
        ApiErrorKind::Status(status) if status.is_denied_by_admission() => {
            "change what the policy or webhook objects to, or exempt the object from it".to_owned()
        }
        ApiErrorKind::Status(status) => match status.code {
            401 => "log in again, or check --token and the context's user".to_owned(),
            403 => ASK_AN_ADMINISTRATOR.to_owned(),
            _ => "run the same command again; `kubectl version` tests the server".to_owned(),
        },
        ApiErrorKind::Connection { proxy: Some(proxy), .. } => format!(
            "check {}, or list the server in NO_PROXY",
            proxy.setting_name()
        ),
        ApiErrorKind::Untrusted { .. } => {
            "check the cluster's certificate-authority in the kubeconfig, or set --certificate-authority or --tls-server-name"
                .to_owned()
        }
        ApiErrorKind::Connection { .. } | ApiErrorKind::Timeout { .. } | ApiErrorKind::NotSent { .. } => {
            "check --server, --context and KUBECONFIG; `kubectl cluster-info` uses the same server"
                .to_owned()
        }
        ApiErrorKind::LeaseLost(_) => {
            "run the same command again once the server answers and you may patch the set's parent".to_owned()
        },
        ApiErrorKind::Outdated => "run the same command again".to_owned(),
        ApiErrorKind::Credential(_) => "log in again, then run the same command".to_owned(),
        ApiErrorKind::TooLarge(_) | ApiErrorKind::Unreadable(_) => {
            "check that --server is the URL of a Kubernetes API server".to_owned()
        }
    }
    }
}

impl ApiError {
    /// Returns whether the request was not sent, or not sent again, because it was decided too long ago.
    pub fn is_outdated(&self) -> bool {
        matches!(*self.kind, ApiErrorKind::Outdated)
    }
}

impl ApiErrorKind {
    /// Returns the message about an object whose request failed. A failure of the connection concerns all objects, so
    /// such messages form a group: it is printed for the first objects, with a hint, and counted for the others.
    pub fn to_object_message(&self) -> Message {
        let text = self.to_string();
        match self {
            Self::Connection { .. } | Self::Timeout { .. } | Self::NotSent { .. } => {
                Message::new(&*text).in_group(&*text).with_hint(CHECK_SERVER)
            }
            Self::Status(status) => status.group_if_cause_is_shared(Message::new(text)),
            Self::Untrusted { .. }
            | Self::Credential(_)
            | Self::LeaseLost(_)
            | Self::Outdated
            | Self::TooLarge(_)
            | Self::Unreadable(_) => Message::new(text),
        }
    }

    /// Returns whether the server may have carried out the request although it failed. Otherwise the server itself has
    /// refused it, or never got it.
    pub(super) fn may_have_succeeded(&self) -> bool {
        match self {
            // A proxy answers with such a code if it got no answer of the server, and the server does (500) if it got
            // none of etcd.
            Self::Status(status) => status.code >= 500,
            Self::Connection { .. } | Self::Timeout { .. } | Self::TooLarge(_) | Self::Unreadable(_) => true,
            Self::Untrusted { .. }
            | Self::Credential(_)
            | Self::NotSent { .. }
            | Self::LeaseLost(_)
            | Self::Outdated => false,
        }
    }

    /// Returns whether the server itself has answered. If a proxy has answered, its request to the server may still be
    /// under way.
    pub(super) fn is_answer_from_server(&self) -> bool {
        matches!(self, Self::Status(status) if !may_be_from_proxy(status.code))
    }
}

const CHECK_SERVER: &str = "check the server with `kubectl cluster-info`, then run again";

fn through_proxy_suffix(proxy: Option<&Proxy>) -> String {
    proxy.map_or_else(String::new, |proxy| format!(" through proxy {proxy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_the_connection_is_counted_for_all_objects() {
        let refused = || ApiErrorKind::Connection {
            address: "https://one".to_owned(),
            proxy: None,
            message: "connection refused".to_owned(),
        };
        let groups = [
            refused(),
            refused(),
            ApiErrorKind::Timeout {
                address: "https://one".to_owned(),
                limit: Duration::from_secs(30),
            },
        ]
        .map(|error| error.to_object_message().group.expect("a group"));
        assert_eq!(groups[0], groups[1]);
        assert_ne!(groups[0], groups[2]);
        assert_eq!(refused().to_object_message().hints.len(), 1);
        let unreadable = ApiErrorKind::Unreadable("not JSON".to_owned());
        assert_eq!(
            unreadable.to_object_message(),
            Message::new(unreadable.to_string())
        );
    }

    #[test]
    fn a_denial_by_admission_is_not_tried_again() {
        let again = "run the same command again";
        for (code, message, is_tried_again) in [
            (
                403,
                "secrets \"s\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
                false,
            ),
            (
                422,
                "secrets \"s\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
                false,
            ),
            (
                400,
                "admission webhook \"w.example.com\" denied the request: no",
                false,
            ),
            (500, "etcdserver: request timed out", true),
        ] {
            let status = Status {
                code,
                message: message.to_owned(),
                ..Status::default()
            };
            let error = ApiError {
                kind: Box::new(ApiErrorKind::Status(Box::new(status))),
                ..ApiError::for_invalid_answer("/api/v1/secrets", "")
            };
            let hint = error.hint();
            assert_eq!(hint.starts_with(again), is_tried_again, "{hint}");
            assert!(!hint.contains("can-i"), "{hint}");
        }
    }
}
