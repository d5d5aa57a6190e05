//! One failed attempt at a request: its error, and whether to repeat the request.

use std::io;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use serde::de::IgnoredAny;

use super::retry::{self, Retry};
use super::{ApiErrorKind, Route, Status, UnreachableWebhook};
use crate::model::text::format_os_error;

pub(super) struct FailedAttempt {
    pub(super) kind: ApiErrorKind,
    pub(super) retry: Retry,
    /// The pause that the server asks for.
    pub(super) retry_after: Option<Duration>,
}

/// A failure with which the request is not sent again.
impl From<ApiErrorKind> for FailedAttempt {
    fn from(kind: ApiErrorKind) -> Self {
        Self::new(kind, Retry::Never)
    }
}

impl FailedAttempt {
    fn new(kind: ApiErrorKind, retry: Retry) -> Self {
        Self {
            kind,
            retry,
            retry_after: None,
        }
    }

    pub(super) fn from_connection_error(route: &Route, error: &(dyn std::error::Error + 'static)) -> Self {
        let address = route.address.clone();
        let mut causes: Vec<String> = std::iter::successors(Some(error), |error| error.source())
            .map(ToString::to_string)
            .collect();
        let distrust = causes
            .iter()
            .find_map(|cause| cause.rsplit_once("invalid peer certificate: "));
        if let Some((_, message)) = distrust {
            let message = message.to_owned();
            return Self::new(ApiErrorKind::Untrusted { address, message }, Retry::Never);
        }
        let (message, retry) = if is_timeout(error) {
            // Once is enough: the next attempt waits for a probe, which finds out whether the server answers.
            ("connection timed out".to_owned(), Retry::Once)
        } else {
            let message = causes.pop().unwrap_or_default();
            let retry = retry::after_broken_connection(&message);
            (message, retry)
        };
        let kind = ApiErrorKind::Connection {
            address,
            proxy: route.proxy.clone(),
            message: format_os_error(&message),
        };
        Self::new(kind, retry)
    }

    /// Creates the failure for a body that is not a JSON object: a proxy has answered, or has cut the body off. The
    /// request is sent once more.
    pub(super) fn for_unreadable_body(body: &[u8]) -> Self {
        let what = if body.is_empty() {
            "the body is empty"
        } else {
            "the body is not a complete JSON object"
        };
        Self::new(ApiErrorKind::Unreadable(what.to_owned()), Retry::Once)
    }

    pub(super) fn from_status_answer(
        changes_objects: bool,
        code: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Self {
        let mut status: Status = serde_json::from_slice(body).unwrap_or_default();
        status.code = code.as_u16();
        if status.message.is_empty() {
            status.message = format!("the server answered {code}");
        }
        let retry_after = retry::read_retry_after(headers);
        let is_unjudged_write = changes_objects && UnreachableWebhook::from_status(&status).is_some();
        let retry = match retry::after_status(code, retry_after) {
            _ if is_unjudged_write => Retry::Never,
            Retry::Never if is_body_cut_off(body) => Retry::Once,
            retry => retry,
        };
        Self {
            kind: ApiErrorKind::Status(Box::new(status)),
            retry,
            retry_after,
        }
    }
}

/// Returns whether a connection could not be opened in time, or was given up by the system because nothing arrived.
pub(super) fn is_timeout(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source())
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::TimedOut)
}

/// Returns whether a proxy has probably cut off the body of an error. The API server sends a Status object or, for a
/// path that it does not know, a text. Without the reason in the Status, the meaning of the error is unknown.
fn is_body_cut_off(body: &[u8]) -> bool {
    let body = body.trim_ascii();
    body.is_empty() || (body.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(body).is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_cannot_be_opened_in_time_is_tried_once_more() {
        let route = Route {
            address: "https://one".to_owned(),
            proxy: None,
        };
        let timed_out = io::Error::new(io::ErrorKind::TimedOut, "deadline has elapsed");
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        for (cause, retry) in [(timed_out, Retry::Once), (refused, Retry::WhileAway)] {
            let error = kube::Error::Service(Box::new(cause));
            assert_eq!(is_timeout(&error), retry == Retry::Once);
            let failure = FailedAttempt::from_connection_error(&route, &error);
            assert_eq!(failure.retry, retry, "{}", failure.kind);
        }
    }

    #[test]
    fn an_error_is_repeated_once_if_its_body_was_cut_off() {
        for (body, retry) in [
            ("", Retry::Once),
            (r#"{"kind":"Status","rea"#, Retry::Once),
            (r#"{"kind":"Status","reason":"AlreadyExists"}"#, Retry::Never),
            ("404 page not found\n", Retry::Never),
        ] {
            assert_eq!(retry_of(true, StatusCode::CONFLICT, body), retry, "{body}");
        }
        let overloaded = retry_of(true, StatusCode::TOO_MANY_REQUESTS, "");
        assert_eq!(overloaded, Retry::WhileBusy);
    }

    #[test]
    fn a_write_that_a_webhook_could_not_judge_is_left_to_the_caller() {
        const UNJUDGED: &str = r#"{"message":"Internal error occurred: failed calling webhook \"w\": failed to call webhook: EOF"}"#;
        const LEADER: &str = r#"{"message":"etcdserver: leader changed"}"#;
        for (writes, code, body, retry) in [
            (true, 500, UNJUDGED, Retry::Never),
            (true, 503, UNJUDGED, Retry::Never),
            (false, 500, UNJUDGED, Retry::Once),
            (true, 500, LEADER, Retry::Once),
        ] {
            let code = StatusCode::from_u16(code).expect("a code");
            assert_eq!(retry_of(writes, code, body), retry, "{writes:?} {code} {body}");
        }
    }

    fn retry_of(writes: bool, code: StatusCode, body: &str) -> Retry {
        FailedAttempt::from_status_answer(writes, code, &HeaderMap::new(), body.as_bytes()).retry
    }
}
