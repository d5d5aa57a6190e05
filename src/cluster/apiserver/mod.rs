//! The only access to the API server: sends a request, counts it, retries it if that is safe, and
//! returns bytes or a typed error.
//!
//! It knows HTTP and Kubernetes' Status, and nothing of ApplySets. The connection (kubeconfig,
//! credentials) comes from `connection`.

#![expect(clippy::disallowed_types, reason = "the one door to the API server")]

mod answer_body;
mod answer_headers;
mod api_request;
mod breaker;
mod credential;
mod error;
mod failed_attempt;
mod hide_sent_secret_values;
mod probe;
mod retry;
mod sent_writes;
mod status;
mod unreachable_webhook;
mod write_lease;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, Request, StatusCode, header};
use k8s_openapi::jiff::Timestamp;
use kube::client::Body;
use serde::de::IgnoredAny;
use tokio::sync::OnceCell;
use tokio::sync::watch::Sender;
use tokio::time::Instant;

pub use answer_body::Content;
use answer_body::read_within_limit;
use answer_headers::{ServerClock, read_warning_texts};
pub use api_request::{ApiRequest, EarlierAttempts, Patch, Reply, USER_AGENT, encode_query};
use breaker::{Breaker, may_be_from_proxy};
pub use credential::{Credential, Token, TokenSource};
pub use error::{ApiError, ApiErrorKind};
use failed_attempt::FailedAttempt;
use hide_sent_secret_values::SecretValues;
use retry::{FailedAttemptCounter, Retry};
pub use sent_writes::WriteResult;
use sent_writes::{SentWrite, SentWrites};
pub use status::{Status, StatusCause};
pub use unreachable_webhook::UnreachableWebhook;
pub use write_lease::Moment;
use write_lease::WriteLease;

use crate::cluster::proxy::Proxy;

/// A connection to an API server that counts the requests sent through it.
#[derive(Clone)]
pub struct ApiServer {
    client: kube::Client,
    /// Sends the requests of a probe over connections of their own.
    probe_client: kube::Client,
    route: Arc<Route>,
    requests: Arc<AtomicU64>,
    sent_writes: SentWrites,
    /// The number of answers with 429.
    throttled_answers: Arc<AtomicU64>,
    /// The number of requests that wait to be sent again after an answer with 429.
    throttled_requests: Sender<usize>,
    /// True if the run is to stop, so that a request is not sent again after a long pause.
    waits_no_more: Sender<bool>,
    breaker: Breaker,
    clock: ServerClock,
    write_lease: WriteLease,
    /// The name of the user, once the server was asked for it.
    user_name: Arc<OnceCell<Option<String>>>,
    request_timeout: Duration,
    credential: Option<Credential>,
    connection_opener: Option<Arc<dyn ConnectionOpener>>,
    /// The most connections that are opened early.
    most_early_connections: usize,
}

/// Opens connections in the background.
pub trait ConnectionOpener: Send + Sync {
    /// Opens connections until there are `wanted` in total. Returns at once.
    fn open_up_to(&self, wanted: usize);

    /// Closes the connections that no request has used yet.
    fn close_unused_connections(&self);
}

/// The target of requests, for messages.
#[derive(Debug, Clone)]
struct Route {
    address: String,
    /// The proxy between this machine and the server, if there is one.
    proxy: Option<Box<Proxy>>,
}

impl ApiServer {
    /// Wraps a client; `address` is for messages, `request_timeout` limits each attempt
    /// of each request.
    ///
    /// The client must not repeat requests by itself, or the count is wrong.
    pub fn new(client: kube::Client, address: &str, request_timeout: Duration) -> Self {
        Self {
            probe_client: client.clone(),
            client,
            route: Arc::new(Route {
                address: address.to_owned(),
                proxy: None,
            }),
            requests: Arc::new(AtomicU64::new(0)),
            sent_writes: SentWrites::default(),
            throttled_answers: Arc::new(AtomicU64::new(0)),
            throttled_requests: Sender::new(0),
            waits_no_more: Sender::new(false),
            breaker: Breaker::default(),
            clock: ServerClock::default(),
            write_lease: WriteLease::default(),
            user_name: Arc::default(),
            request_timeout,
            credential: None,
            connection_opener: None,
            most_early_connections: usize::MAX,
        }
    }

    /// Returns the name of the user as the server knows it. The first call runs `ask`; later calls return the same
    /// name.
    pub async fn user_name(&self, ask: impl Future<Output = Option<String>>) -> Option<String> {
        self.user_name.get_or_init(|| ask).await.clone()
    }

    /// Sends this credential with each request.
    #[must_use]
    pub fn with_credential(self, credential: Option<Credential>) -> Self {
        Self { credential, ..self }
    }

    /// Sends probes by this client, which opens a connection for each request: if the server does not answer, the open
    /// connections may be dead.
    #[must_use]
    pub fn with_probe_client(self, probe_client: kube::Client) -> Self {
        Self { probe_client, ..self }
    }

    /// Names this proxy in errors. The client that was passed to [`Self::new`] uses it.
    #[must_use]
    pub fn with_proxy_in_messages(mut self, proxy: Option<Proxy>) -> Self {
        Arc::make_mut(&mut self.route).proxy = proxy.map(Box::new);
        self
    }

    /// Uses this opener to open connections before requests need them; `None` if they cannot be opened early.
    #[must_use]
    pub fn with_connection_opener(mut self, connection_opener: Option<Arc<dyn ConnectionOpener>>) -> Self {
        self.connection_opener = connection_opener;
        self
    }

    /// Opens at most this many connections early, because the user allows no more requests at once.
    #[must_use]
    pub fn with_limit_of_early_connections(mut self, most_early_connections: usize) -> Self {
        self.most_early_connections = most_early_connections;
        self
    }

    /// Opens connections in the background for this many concurrent requests, which will be sent soon.
    pub fn open_connections_for(&self, concurrent_requests: usize) {
        if let Some(opener) = &self.connection_opener {
            opener.open_up_to(concurrent_requests.min(self.most_early_connections));
        }
    }

    /// Returns the number of HTTP requests sent so far, repeated ones included.
    pub fn request_count(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Returns the number of answers with 429 (Too Many Requests) so far.
    pub fn throttled_answer_count(&self) -> u64 {
        self.throttled_answers.load(Ordering::Relaxed)
    }

    /// Returns the shortest time in which the server has answered a request so far, which is at least a
    /// round trip; `None` before its first answer.
    pub fn shortest_answer_time(&self) -> Option<Duration> {
        self.breaker.shortest_answer_time()
    }

    /// Returns the time by the clock of the server, from the header `Date` of its answers.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns whether the server does not answer, so that requests are not sent.
    pub fn is_silent(&self) -> bool {
        self.breaker.is_open()
    }

    /// Returns how long requests have been waiting while none was answered; `None` if no request waits.
    pub fn time_without_answer(&self) -> Option<Duration> {
        self.breaker.time_without_answer()
    }

    /// Sends a GET of a path with its query, in the form that `accept` names.
    pub async fn get(&self, path: &str, accept: &str) -> Result<Reply, ApiError> {
        self.send(ApiRequest::get(path, accept)).await
    }

    /// Sends a GET of a list of objects, or of what the server serves, which may be larger than an object.
    pub async fn get_list(&self, path: &str, accept: &str) -> Result<Reply, ApiError> {
        self.send(ApiRequest::get_list(path, accept)).await
    }

    /// Sends a GET of a path that answers with text, such as a log.
    pub async fn get_text(&self, path: &str) -> Result<String, ApiError> {
        let reply = self.send(ApiRequest::get(path, TEXT)).await?;
        Ok(String::from_utf8_lossy(&reply.body).into_owned())
    }

    /// Sends a request, and repeats it while the server or the network is temporarily unavailable.
    ///
    /// Every request of this program may be repeated, also one whose answer was lost: server-side
    /// apply and reads are idempotent, deletes carry preconditions and find nothing the second
    /// time, and a caller that creates or writes a parent reads it again if the answer is that it
    /// was written already. A request that exceeds its time limit is not repeated: the user chose
    /// the limit. A write that a webhook could not judge is not repeated either: the caller may wait for the
    /// webhook, and looks again at what has changed. Once the server no longer answers at all,
    /// requests fail without being sent until it does.
    pub async fn send(&self, request: ApiRequest) -> Result<Reply, ApiError> {
        let mut attempts = FailedAttemptCounter::default();
        let mut earlier_attempts = EarlierAttempts::NoEffect;
        let mut earlier_failure = None;
        let mut write = self.sent_writes.for_request(&request);
        loop {
            let failure = match self.send_once(&request, &mut write).await {
                Ok(reply) => {
                    write.note_done();
                    return Ok(Reply {
                        earlier_attempts,
                        ..reply
                    });
                }
                Err(failure) => failure,
            };
            write.note_failure(&failure.kind);
            // Whatever broke this connection has probably broken those that were opened with it.
            if matches!(failure.kind, ApiErrorKind::Connection { .. })
                && let Some(opener) = &self.connection_opener
            {
                opener.close_unused_connections();
            }
            let may_repeat = match attempts.count_failure_and_find_pause(failure.retry, failure.retry_after) {
                _ if failure.retry == Retry::WhileAway && self.breaker.has_request_used_up_attempts() => {
                    false
                }
                Some(pause) => self.pause_before_repeat(pause, failure.retry).await,
                None => {
                    if failure.retry == Retry::WhileAway {
                        self.breaker.note_attempts_used_up();
                    }
                    false
                }
            };
            if !may_repeat {
                let mut kind = match failure.kind {
                    // This attempt was not sent, but an earlier one was: its failure says more.
                    ApiErrorKind::NotSent { .. } | ApiErrorKind::LeaseLost(_) => {
                        earlier_failure.unwrap_or(failure.kind)
                    }
                    kind => kind,
                };
                if let ApiErrorKind::Status(status) = &mut kind {
                    status.hide_secret_values(&SecretValues::from_request_body(&request.body));
                }
                return Err(ApiError {
                    method: request.method,
                    path: request.path,
                    kind: Box::new(kind),
                    earlier_attempts,
                });
            }
            if failure.kind.may_have_succeeded() {
                earlier_attempts = EarlierAttempts::MayHaveSucceeded;
            }
            earlier_failure = Some(failure.kind);
        }
    }

    async fn send_once(
        &self,
        request: &ApiRequest,
        write: &mut SentWrite<'_>,
    ) -> Result<Reply, FailedAttempt> {
        let http_request = self.build_request_and_wait_to_send(request).await?;
        write.note_sent();
        let authorization = http_request.headers().get(header::AUTHORIZATION).cloned();
        let sent = Instant::now();
        let exchange = async {
            let sending = self.client.send(http_request).await;
            let response = sending.map_err(|error| self.note_broken_connection(&error, sent))?;
            self.breaker.note_answer(response.status(), sent.elapsed());
            let (head, body) = response.into_parts();
            // The body may take minutes, and `Date` is the time of the head.
            if !may_be_from_proxy(head.status.as_u16()) {
                self.clock.set_from_date_header(&head.headers);
            }
            let limit = request.answer.limit();
            let reading = read_within_limit(body, limit).await;
            let body = reading.map_err(|error| self.note_broken_connection(&error, sent))?;
            let body = body.ok_or(ApiErrorKind::TooLarge(limit))?;
            Ok::<_, FailedAttempt>((head, body))
        };
        let Ok(exchanged) = tokio::time::timeout(self.request_timeout, exchange).await else {
            return Err(self.note_timeout(sent));
        };
        let (head, body) = exchanged?;
        if head.status.is_success() {
            if request.accept != TEXT && !is_complete_json_object(&request.method, &body) {
                return Err(FailedAttempt::for_unreadable_body(&body));
            }
            let mut warnings = read_warning_texts(&head.headers);
            if !warnings.is_empty() {
                let values = SecretValues::from_request_body(&request.body);
                for text in &mut warnings {
                    *text = values.hide(text);
                }
            }
            return Ok(Reply {
                status: head.status,
                body,
                warnings,
                earlier_attempts: EarlierAttempts::NoEffect,
            });
        }
        if head.status == StatusCode::TOO_MANY_REQUESTS {
            self.throttled_answers.fetch_add(1, Ordering::Relaxed);
        }
        let mut failure =
            FailedAttempt::from_status_answer(request.changes_objects(), head.status, &head.headers, &body);
        if head.status == StatusCode::UNAUTHORIZED
            && let (Some(credential), Some(refused)) = (&self.credential, &authorization)
            && credential.replace_refused_token(refused).await
        {
            failure.retry = Retry::WhileBusy;
            failure.retry_after = Some(Duration::ZERO);
        }
        Err(failure)
    }

    /// Waits until a request may be sent, counts it, and returns it as an HTTP request.
    async fn build_request_and_wait_to_send(
        &self,
        request: &ApiRequest,
    ) -> Result<Request<Body>, FailedAttempt> {
        // A login may take long, so it comes before the wait for a probe.
        let http_request = self.build_http_request(request).await?;
        if !self.may_send().await {
            let address = self.route.address.clone();
            return Err(ApiErrorKind::NotSent { address }.into());
        }
        self.write_lease
            .wait_until_admitted(request)
            .await
            .map_err(ApiErrorKind::LeaseLost)?;
        if request.not_after.is_some_and(|end| Instant::now() > end) {
            return Err(ApiErrorKind::Outdated.into());
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.breaker.note_waiting();
        Ok(http_request)
    }

    /// Builds the HTTP request, with the credential if there is one.
    async fn build_http_request(&self, request: &ApiRequest) -> Result<Request<Body>, FailedAttempt> {
        let mut http_request = request.to_http()?;
        if let Some(credential) = &self.credential {
            let header = credential
                .obtain_authorization_header()
                .await
                .map_err(ApiErrorKind::Credential)?;
            http_request.headers_mut().insert(header::AUTHORIZATION, header);
        }
        Ok(http_request)
    }
}

/// The `Accept` header of a request whose answer is not an object.
const TEXT: &str = "text/plain";

/// Returns whether the body can be a JSON object, as the bodies of all answers are. Answers to writes are checked
/// completely, since they are short and some callers do not read them. Answers to reads are parsed by the caller.
fn is_complete_json_object(method: &Method, body: &[u8]) -> bool {
    let body = body.trim_ascii();
    let is_object = body.starts_with(b"{") && body.ends_with(b"}");
    is_object && (*method == Method::GET || serde_json::from_slice::<IgnoredAny>(body).is_ok())
}
