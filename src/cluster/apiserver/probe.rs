//! Finds out whether a server answers after it did not answer a request in time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::ready;
use futures_util::stream::FuturesUnordered;
use http::Request;
use kube::client::Body;
use tokio::time::Instant;

use super::breaker::SendDecision;
use super::failed_attempt::{FailedAttempt, is_timeout};
use super::{ApiErrorKind, ApiServer};

/// The time between two requests of a probe. Each request opens a connection of its own.
const PAUSE: Duration = Duration::from_secs(3);
/// The shortest time that a probe leaves for the answer to its last request.
const TIME_FOR_LAST_ANSWER: Duration = Duration::from_secs(4);

impl ApiServer {
    /// Waits until it is known whether a request may be sent. Returns false if the server does not answer.
    pub(super) async fn may_send(&self) -> bool {
        loop {
            match self.breaker.decide_request_or_claim_probe().await {
                SendDecision::Send => return true,
                SendDecision::Fail => return false,
                SendDecision::StartProbeAndAskAgain => self.spawn_probe(),
            }
        }
    }

    /// Notes that a request that was sent at this time exceeded its time limit, and returns the failure. The request is
    /// not sent again.
    pub(super) fn note_timeout(&self, sent: Instant) -> FailedAttempt {
        self.probe_if_silent(sent);
        self.breaker.note_no_longer_waiting();
        let address = self.route.address.clone();
        let limit = self.request_timeout;
        ApiErrorKind::Timeout { address, limit }.into()
    }

    /// Notes that a request that was sent at this time got no answer in time. Starts a probe unless other requests were
    /// answered, or a probe is under way.
    fn probe_if_silent(&self, sent: Instant) {
        if self.breaker.try_begin_probing_after_timeout(sent.elapsed()) {
            self.spawn_probe();
        }
    }

    /// Notes that the connection of a request broke or could not be opened, and returns the failure.
    pub(super) fn note_broken_connection(&self, error: &kube::Error, sent: Instant) -> FailedAttempt {
        if is_timeout(error) {
            self.probe_if_silent(sent);
        }
        self.breaker.note_no_longer_waiting();
        FailedAttempt::from_connection_error(&self.route, error)
    }

    /// Finds out in the background whether the server answers. All requests wait for the result. The probe runs in a
    /// task of its own: if it were part of a request, and the caller dropped that request, all others would wait for
    /// ever.
    fn spawn_probe(&self) {
        let server = self.clone();
        tokio::spawn(async move {
            let begun = Instant::now();
            let time = server.breaker.probe_time_limit(server.request_timeout);
            let pauses = (0..)
                .map(|number| PAUSE * number)
                .take_while(|pause| *pause + TIME_FOR_LAST_ANSWER <= time);
            let requests: FuturesUnordered<_> = pauses
                .map(|pause| server.send_probe_request_after(pause))
                .collect();
            // The other requests go on if one of them times out.
            let mut ends = requests.filter(|end| ready(!end.as_ref().is_err_and(|error| is_timeout(error))));
            match tokio::time::timeout(time, ends.next()).await {
                Ok(Some(Ok(()))) => server.breaker.close_after_probe_answer(),
                Ok(Some(Err(_))) => server.breaker.close_after_probe_failure(begun),
                Ok(None) | Err(_) => server.breaker.open_after_probe_timeout(begun),
            }
        });
    }

    /// Sends a request to which any answer counts, also a refusal. The request is one that the server answers even if
    /// it has no capacity. It carries no credential of the user, since renewing that may take long.
    async fn send_probe_request_after(&self, pause: Duration) -> Result<(), kube::Error> {
        tokio::time::sleep(pause).await;
        self.requests.fetch_add(1, Ordering::Relaxed);
        let request = Request::get("/livez")
            .body(Body::empty())
            .map_err(kube::Error::HttpError)?;
        self.probe_client.send(request).await.map(|_| ())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the server of the test is a closure")]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use http::{Response, StatusCode};

    use super::*;

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
        assert_eq!(silent.request_count(), 4 + 3);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_requests_do_not_stop_the_others() {
        let slow = server(|path| path != "/slow");
        let path = |number| if number < 8 { "/slow" } else { "/api" };
        assert_eq!(counts(&slow, path, 100).await, [92, 8, 0]);
    }

    /// Returns a server that answers requests for `/away` in place of an API that is away.
    fn server_without_one_api() -> ApiServer {
        let service = tower::service_fn(|request: Request<Body>| async move {
            let is_away = request.uri().path() == "/away";
            let mut answer = Response::new(Body::from(b"{}".to_vec()));
            if is_away {
                *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            Ok::<_, Infallible>(answer)
        });
        let client = kube::Client::new(service, "default");
        ApiServer::new(client, "https://127.0.0.1:6443", TIME_LIMIT)
    }

    #[tokio::test(start_paused = true)]
    async fn while_an_api_is_away_only_the_first_request_is_repeated() {
        let server = server_without_one_api();
        for _ in 0..100 {
            assert!(server.get("/away", "application/json").await.is_err());
        }
        assert_eq!(server.request_count(), 5 + 99);
    }

    #[tokio::test(start_paused = true)]
    async fn after_an_answer_of_the_server_a_request_is_repeated_again() {
        let server = server_without_one_api();
        assert!(server.get("/away", "application/json").await.is_err());
        assert!(server.get("/api", "application/json").await.is_ok());
        assert!(server.get("/away", "application/json").await.is_err());
        assert_eq!(server.request_count(), 5 + 1 + 5);
    }
}
