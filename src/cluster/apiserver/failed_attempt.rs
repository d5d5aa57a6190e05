//! One failed attempt at a request: its error, and whether to repeat the request.

use std::io;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use serde::de::IgnoredAny;

use super::retry::{self, Retry};
use super::{ApiErrorKind, RequestEffect, Route, Status, UnreachableWebhook};
use crate::model::text::format_os_error;

pub(super) struct FailedAttempt {
    pub(super) kind: ApiErrorKind,
    pub(super) retry: Retry,
    /// The pause that the server asks for.
    pub(super) retry_after: Option<Duration>,
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

    pub(super) fn for_too_large_answer(limit: usize) -> Self {
        Self::new(ApiErrorKind::TooLarge(limit), Retry::Never)
    }

    /// Creates the failure for a request without an answer within its time limit. It is not sent again.
    pub(super) fn for_timeout(route: &Route, limit: Duration) -> Self {
        let address = route.address.clone();
        Self::new(ApiErrorKind::Timeout { address, limit }, Retry::Never)
    }

    pub(super) fn for_unsent_request(route: &Route) -> Self {
        let address = route.address.clone();
        Self::new(ApiErrorKind::NotSent { address }, Retry::Never)
    }

    pub(super) fn for_lost_lease(reason: String) -> Self {
        Self::new(ApiErrorKind::LeaseLost(reason), Retry::Never)
    }

    pub(super) fn for_failed_credential(reason: String) -> Self {
        Self::new(ApiErrorKind::Credential(reason), Retry::Never)
    }

    pub(super) fn for_invalid_request(error: &http::Error) -> Self {
        let text = format!("invalid request path: {error}");
        Self::new(ApiErrorKind::Unreadable(text), Retry::Never)
    }

    pub(super) fn from_status_answer(
        request: RequestEffect,
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
        let is_unjudged_write =
            request == RequestEffect::Objects && UnreachableWebhook::from_status(&status).is_some();
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
            assert_eq!(
                retry_of(RequestEffect::Objects, StatusCode::CONFLICT, body),
                retry,
                "{body}"
            );
        }
        let overloaded = retry_of(RequestEffect::Objects, StatusCode::TOO_MANY_REQUESTS, "");
        assert_eq!(overloaded, Retry::WhileBusy);
    }

    #[test]
    fn a_write_that_a_webhook_could_not_judge_is_left_to_the_caller() {
        const UNJUDGED: &str = r#"{"message":"Internal error occurred: failed calling webhook \"w\": failed to call webhook: EOF"}"#;
        const LEADER: &str = r#"{"message":"etcdserver: leader changed"}"#;
        for (writes, code, body, retry) in [
            (RequestEffect::Objects, 500, UNJUDGED, Retry::Never),
            (RequestEffect::Objects, 503, UNJUDGED, Retry::Never),
            (RequestEffect::Nothing, 500, UNJUDGED, Retry::Once),
            (RequestEffect::Objects, 500, LEADER, Retry::Once),
        ] {
            let code = StatusCode::from_u16(code).expect("a code");
            assert_eq!(retry_of(writes, code, body), retry, "{writes:?} {code} {body}");
        }
    }

    fn retry_of(writes: RequestEffect, code: StatusCode, body: &str) -> Retry {
        FailedAttempt::from_status_answer(writes, code, &HeaderMap::new(), body.as_bytes()).retry
    }
}
