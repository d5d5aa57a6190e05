//! The one door to the API server: sends a request, counts it, repeats it where
//! that is safe, and turns what comes back into bytes or a typed error.
//!
//! It knows HTTP and Kubernetes' Status, and nothing of ApplySets. How the
//! connection is made (kubeconfig, credentials) is the business of `connection`.

#![expect(clippy::disallowed_types, reason = "the one door to the API server")]

mod credential;
mod retry;
mod secrecy;
mod status;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use serde::de::IgnoredAny;

pub use credential::{Credential, Token, TokenSource};
use retry::{Presence, Prospect};
use secrecy::Values;
pub use status::{Status, StatusCause, StatusDetails};
pub use watch::{Change, Watch, WatchEvent};

use crate::cluster::proxy::Proxy;

/// A connection to an API server that counts the requests sent through it.
#[derive(Clone)]
pub struct ApiServer {
    client: kube::Client,
    route: Arc<Route>,
    requests: Arc<AtomicU64>,
    pushbacks: Arc<AtomicU64>,
    presence: Presence,
    request_timeout: Duration,
    credential: Option<Credential>,
}

/// Where requests go, for messages.
#[derive(Debug, Clone)]
struct Route {
    address: String,
    /// What is in between, and where that is said.
    proxy: Option<Box<Proxy>>,
}

/// A successful answer.
#[derive(Debug)]
pub struct Reply {
    /// 2xx.
    pub status: StatusCode,
    /// The whole body.
    pub body: Bytes,
    /// Texts of the `Warning` headers (code 299) that the server sent along.
    pub warnings: Vec<String>,
    /// What is known of earlier attempts.
    pub before: Before,
}

/// What earlier attempts at the same request have come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// Nothing: there were none, or the server said that it did not do it.
    Nothing,
    /// An answer was lost, so it may have been carried out then.
    Unknown,
}

/// A request that did not succeed, with what was asked.
#[derive(Debug, thiserror::Error)]
#[error("{method} {path}: {kind}")]
pub struct ApiError {
    /// HTTP method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// What went wrong.
    #[source]
    pub kind: Box<ApiErrorKind>,
    /// What is known of earlier attempts.
    pub before: Before,
}

/// Why a request did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum ApiErrorKind {
    /// The server answered with a status of 300 or above.
    #[error("{0}")]
    Status(Box<Status>),
    /// No answer came: connection refused, reset, TLS, credentials plugin.
    #[error("no answer from {address}{}: {message}", through(proxy.as_deref()))]
    Connection {
        /// The API server.
        address: String,
        /// The proxy that it is asked through. Nothing but this is connected to then.
        proxy: Option<Box<Proxy>>,
        /// What the network or the credentials plugin said.
        message: String,
    },
    /// Somebody answered, and the certificate is not one to believe.
    #[error("the certificate of {address} is not trusted: {message}")]
    Untrusted {
        /// The API server.
        address: String,
        /// What is wrong with it.
        message: String,
    },
    /// There is nothing to show the server any more.
    #[error("no new credentials: {0}")]
    Credential(String),
    /// No answer came in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The answer is not what the API promises.
    #[error("the server's answer cannot be read: {0}")]
    Unreadable(String),
}

impl ApiErrorKind {
    /// Whether the server may have carried the request out all the same.
    fn hides_the_outcome(&self) -> bool {
        match self {
            Self::Status(status) => status.code >= 500,
            Self::Connection { .. } | Self::Timeout(_) | Self::Unreadable(_) => true,
            Self::Untrusted { .. } | Self::Credential(_) => false,
        }
    }
}

impl ApiError {
    /// The answer to a GET of this path does not say what it has to.
    pub fn unreadable(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            kind: Box::new(ApiErrorKind::Unreadable(reason.into())),
            before: Before::Nothing,
        }
    }

    /// The HTTP status, where the server answered at all.
    pub fn status(&self) -> Option<&Status> {
        match &*self.kind {
            ApiErrorKind::Status(status) => Some(status),
            _ => None,
        }
    }

    /// Whether the server answered with this HTTP status code.
    pub fn is(&self, code: StatusCode) -> bool {
        self.status().is_some_and(|status| status.code == code.as_u16())
    }

    /// Whether the object that was asked for is not there. A 404 that names no object is said
    /// of the path: the server does not serve this version, or the kind, and the object may
    /// well be there in another.
    pub fn is_missing_object(&self) -> bool {
        self.is(StatusCode::NOT_FOUND)
            && self
                .status()
                .is_some_and(|status| !status.details.name.is_empty())
    }
}

impl ApiServer {
    /// Wraps a client; `address` is for messages, `request_timeout` limits each attempt
    /// of each request.
    ///
    /// The client must not repeat requests by itself, or the count is wrong.
    pub fn new(client: kube::Client, address: &str, request_timeout: Duration) -> Self {
        Self {
            client,
            route: Arc::new(Route {
                address: address.to_owned(),
                proxy: None,
            }),
            requests: Arc::new(AtomicU64::new(0)),
            pushbacks: Arc::new(AtomicU64::new(0)),
            presence: Presence::default(),
            request_timeout,
            credential: None,
        }
    }

    /// The same, showing the server this credential with each request.
    #[must_use]
    pub fn with_credential(self, credential: Option<Credential>) -> Self {
        Self { credential, ..self }
    }

    /// The same, telling of this proxy where there is no answer; `client` goes through it.
    #[must_use]
    pub fn with_proxy(self, proxy: Option<Proxy>) -> Self {
        let address = self.route.address.clone();
        Self {
            route: Arc::new(Route {
                address,
                proxy: proxy.map(Box::new),
            }),
            ..self
        }
    }

    /// How many HTTP requests were sent so far, repeated ones included.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// How often the server said so far that it has too much to do.
    pub fn pushbacks(&self) -> u64 {
        self.pushbacks.load(Ordering::Relaxed)
    }

    /// GET of a path with its query, asking for `accept`.
    pub async fn get(&self, path: &str, accept: &str) -> Result<Reply, ApiError> {
        self.send(Call {
            method: Method::GET,
            path: path.to_owned(),
            accept: accept.to_owned(),
            content_type: None,
            body: Bytes::new(),
        })
        .await
    }

    /// Sends a call and, while the server or the network says "later", sends it again.
    ///
    /// Every call of this program may be repeated, also one whose answer was lost:
    /// server-side apply and reads are idempotent, deletes carry preconditions and find
    /// nothing the second time, and whoever creates or writes a parent reads it again
    /// where the answer is that it was written already. A request that takes longer than
    /// its limit is not sent again: the user has said how long to wait.
    pub async fn send(&self, call: Call) -> Result<Reply, ApiError> {
        let mut attempt = 1;
        let mut before = Before::Nothing;
        loop {
            let failure = match self.send_once(&call).await {
                Ok(reply) => return Ok(Reply { before, ..reply }),
                Err(failure) => failure,
            };
            let pause = retry::pause(attempt, failure.prospect, failure.retry_after, &self.presence);
            let Some(pause) = pause else {
                let mut kind = failure.kind;
                if let ApiErrorKind::Status(status) = &mut kind {
                    status.hide(&Values::of(&call.body));
                }
                return Err(ApiError {
                    method: call.method,
                    path: call.path,
                    kind: Box::new(kind),
                    before,
                });
            };
            if failure.kind.hides_the_outcome() {
                before = Before::Unknown;
            }
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    async fn send_once(&self, call: &Call) -> Result<Reply, Failure> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let request = self.request(call).await?;
        let authorization = request.headers().get(header::AUTHORIZATION).cloned();
        let exchange = async {
            let broken = |error: kube::Error| Failure::connection(&self.route, &error);
            let response = self.client.send(request).await.map_err(broken)?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, ANSWER_LIMIT).collect().await;
            let body = body.map_err(|error| match error.downcast::<kube::Error>() {
                Ok(error) => broken(*error),
                Err(_) => Failure::too_long(),
            })?;
            Ok((head, body.to_bytes()))
        };
        let (head, body) = tokio::time::timeout(self.request_timeout, exchange)
            .await
            .map_err(|_| Failure::timeout(self.request_timeout))??;
        if !is_from_in_between(head.status) {
            self.presence.seen();
        }
        if head.status.is_success() {
            if !is_whole(&call.method, &body) {
                return Err(Failure::unreadable(&body));
            }
            let mut warnings = warnings(&head.headers);
            if !warnings.is_empty() {
                let values = Values::of(&call.body);
                for text in &mut warnings {
                    *text = values.hide(text);
                }
            }
            return Ok(Reply {
                status: head.status,
                body,
                warnings,
                before: Before::Nothing,
            });
        }
        if head.status == StatusCode::TOO_MANY_REQUESTS {
            self.pushbacks.fetch_add(1, Ordering::Relaxed);
        }
        let mut failure = Failure::status(head.status, &head.headers, &body);
        if head.status == StatusCode::UNAUTHORIZED
            && let (Some(credential), Some(refused)) = (&self.credential, &authorization)
            && credential.is_renewed(refused).await
        {
            failure.prospect = Prospect::Busy;
            failure.retry_after = Some(Duration::ZERO);
        }
        Err(failure)
    }

    /// The request of a call, which shows the server the credential that there is.
    async fn request(&self, call: &Call) -> Result<Request<Body>, Failure> {
        let mut request = call.to_request()?;
        if let Some(credential) = &self.credential {
            let header = credential.header().await.map_err(|reason| Failure {
                kind: ApiErrorKind::Credential(reason),
                prospect: Prospect::Hopeless,
                retry_after: None,
            })?;
            request.headers_mut().insert(header::AUTHORIZATION, header);
        }
        Ok(request)
    }
}

/// One HTTP request as a value.
#[derive(Debug, Clone)]
pub struct Call {
    /// HTTP method.
    pub method: Method,
    /// Path and query, without scheme and host.
    pub path: String,
    /// The `Accept` header.
    pub accept: String,
    /// The `Content-Type` header, for calls with a body.
    pub content_type: Option<&'static str>,
    /// The body; empty for none.
    pub body: Bytes,
}

impl Call {
    fn to_request(&self) -> Result<Request<Body>, Failure> {
        let mut request = Request::builder()
            .method(&self.method)
            .uri(&self.path)
            .header(header::ACCEPT, &self.accept);
        if let Some(content_type) = self.content_type {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        request
            .body(Body::from(self.body.clone()))
            .map_err(|error| Failure {
                kind: ApiErrorKind::Unreadable(format!("no request can be made of this path: {error}")),
                prospect: Prospect::Hopeless,
                retry_after: None,
            })
    }
}

/// One attempt that failed, and what another may come to.
struct Failure {
    kind: ApiErrorKind,
    prospect: Prospect,
    retry_after: Option<Duration>,
}

impl Failure {
    fn connection(route: &Route, error: &(dyn std::error::Error + 'static)) -> Self {
        let address = route.address.clone();
        let mut causes: Vec<String> = std::iter::successors(Some(error), |error| error.source())
            .map(ToString::to_string)
            .collect();
        let distrust = causes
            .iter()
            .find_map(|cause| cause.rsplit_once("invalid peer certificate: "));
        if let Some((_, message)) = distrust {
            let message = message.to_owned();
            return Self {
                kind: ApiErrorKind::Untrusted { address, message },
                prospect: Prospect::Hopeless,
                retry_after: None,
            };
        }
        let message = causes.pop().unwrap_or_default();
        let prospect = retry::after_broken_connection(&message);
        Self {
            kind: ApiErrorKind::Connection {
                address,
                proxy: route.proxy.clone(),
                message,
            },
            prospect,
            retry_after: None,
        }
    }

    /// A body that is no JSON object: something in between has answered, or cut it off.
    fn unreadable(body: &[u8]) -> Self {
        let what = if body.is_empty() {
            "it is empty"
        } else {
            "it is no whole JSON object"
        };
        Self {
            kind: ApiErrorKind::Unreadable(what.to_owned()),
            prospect: Prospect::Doubtful,
            retry_after: None,
        }
    }

    fn too_long() -> Self {
        let limit = ANSWER_LIMIT >> 20;
        Self {
            kind: ApiErrorKind::Unreadable(format!("it is longer than {limit} MiB")),
            prospect: Prospect::Hopeless,
            retry_after: None,
        }
    }

    fn timeout(limit: Duration) -> Self {
        Self {
            kind: ApiErrorKind::Timeout(limit),
            prospect: Prospect::Hopeless,
            retry_after: None,
        }
    }

    fn status(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let mut status: Status = serde_json::from_slice(body).unwrap_or_default();
        status.code = code.as_u16();
        if status.message.is_empty() {
            status.message = format!("the server answered {code}");
        }
        let retry_after = headers
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.parse().ok())
            .map(Duration::from_secs);
        Self {
            kind: ApiErrorKind::Status(Box::new(status)),
            prospect: retry::after_status(code, retry_after),
            retry_after,
        }
    }
}

/// The most that is read of an answer, in bytes: more than a page of the largest objects.
const ANSWER_LIMIT: usize = 1 << 30;

/// Whether what answered need not be the API server.
fn is_from_in_between(code: StatusCode) -> bool {
    matches!(
        code,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
    )
}

/// Whether the body can be a JSON object, as all answers are. Answers to writes are short,
/// and nobody reads some of them; long ones are read by whoever asked, which tells the rest.
fn is_whole(method: &Method, body: &[u8]) -> bool {
    let body = body.trim_ascii();
    let is_object = body.starts_with(b"{") && body.ends_with(b"}");
    is_object && (*method == Method::GET || serde_json::from_slice::<IgnoredAny>(body).is_ok())
}

fn through(proxy: Option<&Proxy>) -> String {
    proxy.map_or_else(String::new, |proxy| format!(" through the proxy {proxy}"))
}

/// Encodes the query of a path.
pub fn query(parameters: &[(&str, &str)]) -> String {
    let mut serializer = form_urlencoded::Serializer::new(String::new());
    serializer.extend_pairs(parameters);
    serializer.finish()
}

/// Texts of RFC 7234 warning headers: `299 - "text"`, as the API server writes them.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(header::WARNING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .filter_map(|value| value.strip_prefix("299 "))
        .filter_map(|value| value.split_once(" \"").map(|(_, text)| text))
        .map(|text| text.trim_end_matches('"').replace("\\\"", "\""))
        .collect()
}
