//! Probes a server from which no answer has come in time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::ready;
use futures_util::stream::FuturesUnordered;
use http::Request;
use kube::client::Body;
use tokio::time::Instant;

use super::ApiServer;
use super::answer_body::UnusableBody;
use super::breaker::Turn;
use super::failed_attempt::{FailedAttempt, is_timeout};

/// The time between two requests of a probe. Each takes another connection.
const PAUSE: Duration = Duration::from_secs(3);
/// The time that the last request has at least.
const LAST_ANSWER: Duration = Duration::from_secs(4);

impl ApiServer {
    /// Waits until a request may be sent. Returns false if the server does not answer.
    pub(super) async fn may_send(&self) -> bool {
        loop {
            match self.breaker.turn().await {
                Turn::Send => return true,
                Turn::GiveUp => return false,
                Turn::Probe => self.probe(),
            }
        }
    }

    /// Returns the failure of a request that was sent then and exceeded its time limit.
    pub(super) fn timed_out(&self, sent: Instant) -> FailedAttempt {
        self.note_timeout(sent);
        self.breaker.note_failure();
        FailedAttempt::timeout(&self.route, self.request_timeout)
    }

    /// Notes that a request that was sent then got no answer in time, and starts a probe if no other did.
    fn note_timeout(&self, sent: Instant) {
        if self.breaker.note_timeout(sent.elapsed()) {
            self.probe();
        }
    }

    /// Returns the failure of a request whose connection broke or could not be opened.
    pub(super) fn broken(&self, error: &kube::Error, sent: Instant) -> FailedAttempt {
        if is_timeout(error) {
            self.note_timeout(sent);
        }
        self.breaker.note_failure();
        FailedAttempt::connection(&self.route, error)
    }

    /// Returns the failure of a request whose answer cannot be used.
    pub(super) fn unusable(&self, body: UnusableBody, sent: Instant) -> FailedAttempt {
        match body {
            UnusableBody::Broken(error) => self.broken(&error, sent),
            UnusableBody::TooLarge(limit) => FailedAttempt::too_large(limit),
        }
    }

    /// Finds out in the background whether the server answers. All requests wait for the result, and the caller
    /// of each may drop it or not poll it, so the probe does not belong to any of them.
    fn probe(&self) {
        let server = self.clone();
        tokio::spawn(async move {
            let begun = Instant::now();
            let time = server.breaker.probe_time(server.request_timeout);
            let pauses = (0..)
                .map(|number| PAUSE * number)
                .take_while(|pause| *pause + LAST_ANSWER <= time);
            let requests: FuturesUnordered<_> =
                pauses.map(|pause| server.ask_for_any_answer(pause)).collect();
            let mut ends = requests.filter(|end| ready(!end.as_ref().is_err_and(|error| is_timeout(error))));
            match tokio::time::timeout(time, ends.next()).await {
                Ok(Some(Ok(()))) => server.breaker.note_probe_answer(),
                Ok(Some(Err(_))) => server.breaker.note_probe_failure(begun),
                Ok(None) | Err(_) => server.breaker.note_probe_timeout(begun),
            }
        });
    }

    /// Sends a cheap request, which does not wait for capacity of the server, without the user's credential,
    /// whose renewal may take long. A refusal is an answer, too.
    async fn ask_for_any_answer(&self, pause: Duration) -> Result<(), kube::Error> {
        tokio::time::sleep(pause).await;
        self.requests.fetch_add(1, Ordering::Relaxed);
        let request = Request::get("/livez")
            .body(Body::empty())
            .map_err(kube::Error::HttpError)?;
        self.probe_client.send(request).await.map(|_| ())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "a server that is a function")]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use http::{Response, StatusCode};

    use super::*;
    use crate::cluster::apiserver::ApiErrorKind;

    const TIME_LIMIT: Duration = Duration::from_mins(1);

    /// Returns a server that answers the requests for which `is_answered`, and the others never.
    fn server(is_answered: fn(&str) -> bool) -> ApiServer {
        let service = tower::service_fn(move |request: Request<Body>| async move {
            if !is_answered(request.uri().path()) {
                std::future::pending::<()>().await;
            }
            Ok::<_, Infallible>(Response::new(Body::from(b"{}".to_vec())))
        });
        let client = kube::Client::new(service, "default");
        ApiServer::new(client, "https://127.0.0.1:6443", TIME_LIMIT)
    }

    /// Sends so many requests, four at a time. Returns the numbers of those that were answered, got no answer
    /// in time, and were not sent.
    async fn counts(server: &ApiServer, path: fn(usize) -> &'static str, requests: usize) -> [usize; 3] {
        let sent = stream::iter(0..requests).map(|number| server.get(path(number), "application/json"));
        let replies: Vec<_> = sent.buffer_unordered(4).collect().await;
        let mut counts = [0; 3];
        for reply in replies {
            let index = match reply.map_err(|error| error.kind) {
                Ok(_) => 0,
                Err(kind) if matches!(*kind, ApiErrorKind::Timeout { .. }) => 1,
                Err(kind) if matches!(*kind, ApiErrorKind::NotSent { .. }) => 2,
                Err(kind) => panic!("{kind}"),
            };
            counts[index] += 1;
        }
        counts
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_falls_silent_costs_one_time_limit_and_a_probe() {
        let silent = server(|_| false);
        let begun = Instant::now();
        assert_eq!(counts(&silent, |_| "/api", 1000).await, [0, 4, 996]);
        assert_eq!(begun.elapsed().as_secs(), 60 + 10);
        // Three of them are of the probe.
        assert_eq!(silent.requests(), 4 + 3);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_requests_do_not_stop_the_others() {
        let slow = server(|path| path != "/slow");
        let path = |number| if number < 8 { "/slow" } else { "/api" };
        assert_eq!(counts(&slow, path, 100).await, [92, 8, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_that_is_away_costs_one_request_its_repeats() {
        let service = tower::service_fn(|request: Request<Body>| async move {
            let is_away = request.uri().path() == "/away";
            let mut answer = Response::new(Body::from(b"{}".to_vec()));
            if is_away {
                *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            Ok::<_, Infallible>(answer)
        });
        let client = kube::Client::new(service, "default");
        let server = ApiServer::new(client, "https://127.0.0.1:6443", TIME_LIMIT);
        for _ in 0..100 {
            assert!(server.get("/away", "application/json").await.is_err());
        }
        assert_eq!(server.requests(), 5 + 99);
        // An answer of the server is a reason to try again.
        assert!(server.get("/api", "application/json").await.is_ok());
        assert!(server.get("/away", "application/json").await.is_err());
        assert_eq!(server.requests(), 5 + 99 + 1 + 5);
    }
}
