//! The ways in which a network or a server breaks one exchange, and what the program
//! gets to see of each.
//!
//! Which exchange is broken is decided by the watcher of a proxy.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use serde_json::json;
use tokio::time::sleep;

/// The body of an answer, which may break off.
pub(super) type AnswerBody = UnsyncBoxBody<Bytes, io::Error>;

/// One way to break an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// 500, and nothing was done.
    InternalError,
    /// 500, because an admission webhook is still starting, and nothing was done.
    WebhookStarts,
    /// 502 of something in between, in HTML.
    BadGateway,
    /// 503, and nothing was done.
    Unavailable,
    /// 504: it was done, and the answer did not come through in time.
    GatewayTimeout,
    /// 429 without a word of when to come back.
    TooManyRequests,
    /// 429 with `Retry-After: 1`.
    TooManyRequestsRetryAfter,
    /// 409 that concerns no field.
    Conflict,
    /// 410, as for a continue token that has expired.
    Expired,
    /// 401, as for a token that has expired.
    Unauthorized,
    /// All connections break, and no new one is taken.
    Refused,
    /// The connection is closed, and the server never saw the request.
    ClosedBefore,
    /// It was done, and the connection is closed without an answer.
    ClosedAfter,
    /// It was done, and the answer breaks off in the middle.
    CutInHalf,
    /// It was done, and the answer looks like JSON and is none.
    InvalidJson,
    /// It was done, and the answer is empty.
    EmptyBody,
    /// The server never saw it, and no answer comes.
    Hang,
    /// It was done, and no answer comes.
    HangAfter,
    /// It was done, and the answer comes by one byte a second.
    Trickle,
}

impl Fault {
    /// All of them.
    pub(crate) const ALL: [Self; 19] = [
        Self::InternalError,
        Self::WebhookStarts,
        Self::BadGateway,
        Self::Unavailable,
        Self::GatewayTimeout,
        Self::TooManyRequests,
        Self::TooManyRequestsRetryAfter,
        Self::Conflict,
        Self::Expired,
        Self::Unauthorized,
        Self::Refused,
        Self::ClosedBefore,
        Self::ClosedAfter,
        Self::CutInHalf,
        Self::InvalidJson,
        Self::EmptyBody,
        Self::Hang,
        Self::HangAfter,
        Self::Trickle,
    ];

    /// Whether the server gets the request anyway.
    pub(super) fn is_carried_out(self) -> bool {
        matches!(
            self,
            Self::GatewayTimeout
                | Self::ClosedAfter
                | Self::CutInHalf
                | Self::InvalidJson
                | Self::EmptyBody
                | Self::HangAfter
                | Self::Trickle
        )
    }

    /// Whether only a limit of time ends the request.
    pub(crate) fn is_endless(self) -> bool {
        matches!(self, Self::Hang | Self::HangAfter | Self::Trickle)
    }

    /// Whether a run must get through if this happens to it once.
    pub(crate) fn passes(self) -> bool {
        let stops_some = matches!(
            self,
            Self::Unauthorized | Self::Conflict | Self::InvalidJson | Self::WebhookStarts
        );
        !self.is_endless() && !stops_some
    }

    /// What the program gets instead of an answer of the server.
    pub(super) fn answer(self) -> Option<Response<AnswerBody>> {
        let (code, reason) = match self {
            Self::InternalError | Self::WebhookStarts => (StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
            Self::BadGateway => return Some(html(StatusCode::BAD_GATEWAY)),
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
            Self::GatewayTimeout => (StatusCode::GATEWAY_TIMEOUT, "Timeout"),
            Self::TooManyRequests | Self::TooManyRequestsRetryAfter => {
                (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests")
            }
            Self::Conflict => (StatusCode::CONFLICT, "Conflict"),
            Self::Expired => (StatusCode::GONE, "Expired"),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "Unauthorized"),
            _ => return None,
        };
        let message = match self {
            Self::WebhookStarts => {
                "Internal error occurred: failed calling webhook \"w.example.com\": failed to call webhook: \
                 Post \"https://w.shop.svc:443/\": no endpoints available for service \"w\""
                    .to_owned()
            }
            _ => format!("a fault of the tests: {reason}"),
        };
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code.as_u16(),
        });
        let mut response = Response::new(whole(status.to_string()));
        *response.status_mut() = code;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            header::HeaderValue::from_static("application/json"),
        );
        if self == Self::TooManyRequestsRetryAfter {
            headers.insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        Some(response)
    }

    /// What becomes of an answer of the server; `None` where nothing of it gets through.
    pub(super) fn spoil(self, response: Response<Bytes>) -> Option<Response<AnswerBody>> {
        let (mut head, body) = response.into_parts();
        let length = body.len();
        let body = match self {
            Self::InvalidJson => whole("{\"apiVersion\":\"v1\",\"kind\":}"),
            Self::EmptyBody => whole(""),
            Self::CutInHalf => {
                head.headers.insert(header::CONTENT_LENGTH, length.into());
                cut(body.slice(..length / 2))
            }
            Self::Trickle => {
                head.headers.insert(header::CONTENT_LENGTH, length.into());
                trickle(body)
            }
            _ => return None,
        };
        Some(Response::from_parts(head, body))
    }
}

/// A body that gets through.
pub(super) fn whole(body: impl Into<Bytes>) -> AnswerBody {
    Full::new(body.into())
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

fn html(code: StatusCode) -> Response<AnswerBody> {
    let mut response = Response::new(whole("<html><body><h1>502 Bad Gateway</h1></body></html>"));
    *response.status_mut() = code;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("text/html"),
    );
    response
}

/// What there is of the body, and then the end of the connection.
fn cut(half: Bytes) -> AnswerBody {
    let frames = stream::unfold(Some(half), |half| async {
        match half {
            Some(half) if !half.is_empty() => Some((Ok(Frame::data(half)), Some(Bytes::new()))),
            Some(_) => {
                // Or what was written would be thrown away with the connection.
                sleep(Duration::from_millis(20)).await;
                Some((Err(io::Error::other("cut")), None))
            }
            None => None,
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

/// A byte a second.
fn trickle(body: Bytes) -> AnswerBody {
    let frames = stream::unfold(body, |mut rest| async {
        if rest.is_empty() {
            return None;
        }
        let first = rest.split_to(1);
        sleep(Duration::from_secs(1)).await;
        Some((Ok(Frame::data(first)), rest))
    });
    StreamBody::new(frames).boxed_unsync()
}
