//! Decides whether a failed request is repeated, and after which pause.
//!
//! Every request may be repeated (see `ApiServer::send`), so only the failure decides.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use tokio::sync::watch::Sender;

use super::ApiServer;

/// The most attempts at a request, the first included. With the pauses below, they last as long as a restart of the
/// server that takes three seconds.
const MOST_ATTEMPTS: u32 = 5;
/// The shortest pause before a request is sent again if the server had no capacity for it.
const SHORTEST_PAUSE_AT_CAPACITY: Duration = Duration::from_secs(1);
/// The pause before the second attempt at a request. It doubles with each further attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause that a Retry-After header can ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The largest random part of a pause, in percent. Without it, requests that failed together would be sent again
/// together.
const JITTER: u32 = 25;

/// A pause of this length or more ends when the run is to stop, and its request is not sent again.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// Policy for repeating a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// Not at all: the result would be the same.
    Never,
    /// One more attempt: the failure may have been accidental.
    Once,
    /// Up to [`MOST_ATTEMPTS`]: the server, or a proxy in front of it, is away for a moment or for good.
    WhileAway,
    /// Up to [`MOST_ATTEMPTS`]: the server is up, and overloaded.
    WhileBusy,
    /// As long as the breaker allows: the server has no capacity for this user now.
    AtCapacity,
}

/// Returns the policy after an answer with this status code.
///
/// The API server answers 500 if it could not read a webhook's answer, which is a lasting failure, and also while
/// etcd's leader changes, which is a short one. So a request is repeated once after 500.
pub(super) fn after_status(code: StatusCode, retry_after: Option<Duration>) -> Retry {
    match code {
        StatusCode::TOO_MANY_REQUESTS if retry_after.is_some() => Retry::AtCapacity,
        // A webhook answered: the API server itself would say when to repeat the request.
        StatusCode::TOO_MANY_REQUESTS => Retry::WhileBusy,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            Retry::WhileAway
        }
        StatusCode::INTERNAL_SERVER_ERROR if retry_after.is_none() => Retry::Once,
        code if code.is_server_error() && retry_after.is_some() => Retry::WhileBusy,
        _ => Retry::Never,
    }
}

/// Reads the pause in the Retry-After header; `None` unless it is given in seconds.
pub(super) fn read_retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?;
    value.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

/// Returns the policy after a connection that broke before an answer came, for this reason.
pub(super) fn after_broken_connection(reason: &str) -> Retry {
    let is_lasting = ["certificate", "dns", "resolve", "lookup"]
        .iter()
        .any(|sign| reason.to_lowercase().contains(sign));
    if is_lasting {
        Retry::Never
    } else {
        Retry::WhileAway
    }
}

/// Counts the failed attempts at one request, without those for which the server had no capacity.
#[derive(Debug, Default)]
pub(super) struct FailedAttemptCounter(u32);

impl FailedAttemptCounter {
    /// Counts a failed attempt, and returns the pause before the next one; `None` if there is none.
    pub(super) fn count_failure_and_find_pause(
        &mut self,
        retry: Retry,
        retry_after: Option<Duration>,
    ) -> Option<Duration> {
        let most = match retry {
            Retry::AtCapacity => {
                // These attempts are not limited in number, so a pause of zero seconds would load the server.
                let asked = retry_after.unwrap_or_default();
                return Some(limit_and_add_jitter(asked.max(SHORTEST_PAUSE_AT_CAPACITY)));
            }
            Retry::Never => 1,
            Retry::Once => 2,
            Retry::WhileAway | Retry::WhileBusy => MOST_ATTEMPTS,
        };
        self.0 += 1;
        let backoff = FIRST_PAUSE * 2_u32.pow(self.0 - 1);
        (self.0 < most).then(|| limit_and_add_jitter(retry_after.unwrap_or(backoff)))
    }
}

impl ApiServer {
    /// Returns the number of requests that the server had no capacity for, and that wait to be sent again.
    pub fn waiting_throttled_request_count(&self) -> usize {
        *self.throttled_requests.borrow()
    }

    /// Waits until, for this time without a break, at least one request has been waiting for capacity.
    pub async fn wait_until_throttled_for(&self, time: Duration) {
        let mut throttled = self.throttled_requests.subscribe();
        loop {
            // The sender is part of this server, so it is never closed.
            let _ = throttled.wait_for(|requests| *requests > 0).await;
            let none = throttled.wait_for(|requests| *requests == 0);
            if tokio::time::timeout(time, none).await.is_err() {
                return;
            }
        }
    }

    /// Ends all long pauses from now on, because the run is to stop: it does not wait half a minute to send a request
    /// again that the server has rejected.
    pub fn give_up_long_pauses(&self) {
        self.waits_no_more.send_replace(true);
    }

    /// Pauses, and returns whether the request may be sent again. It may not if the server had no capacity for too
    /// long, or if the run is to stop during a long pause.
    pub(super) async fn pause_before_repeat(&self, pause: Duration, retry: Retry) -> bool {
        let _throttled = if retry == Retry::AtCapacity {
            if !self.breaker.note_no_capacity() {
                return false;
            }
            Some(Throttled::new(&self.throttled_requests))
        } else {
            None
        };
        if pause < LONG_PAUSE {
            tokio::time::sleep(pause).await;
            return true;
        }
        let mut waits_no_more = self.waits_no_more.subscribe();
        tokio::select! {
            () = tokio::time::sleep(pause) => true,
            _ = waits_no_more.wait_for(|no_more| *no_more) => false,
        }
    }
}

/// Counts a request as throttled until it is dropped.
struct Throttled<'a>(&'a Sender<usize>);

impl<'a> Throttled<'a> {
    fn new(count: &'a Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Throttled<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Limits the pause to [`LONGEST_PAUSE`], and adds a random part.
fn limit_and_add_jitter(pause: Duration) -> Duration {
    let pause = pause.min(LONGEST_PAUSE);
    pause + pause * random_jitter_percentage() / 100
}

/// Returns a random number from 0 to `JITTER`.
fn random_jitter_percentage() -> u32 {
    // A hasher's random keys are random enough: the number is not a secret.
    let random = RandomState::new().hash_one(());
    u32::try_from(random % u64::from(JITTER + 1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    const SECOND: Option<Duration> = Some(Duration::from_secs(1));

    fn pauses(retry: Retry, retry_after: Option<Duration>) -> Vec<Duration> {
        let mut attempts = FailedAttemptCounter::default();
        iter::from_fn(|| attempts.count_failure_and_find_pause(retry, retry_after)).collect()
    }

    #[test]
    fn only_temporary_failures_are_repeated() {
        for (code, retry_after, retry) in [
            (400, None, Retry::Never),
            (401, None, Retry::Never),
            (403, SECOND, Retry::Never),
            (404, None, Retry::Never),
            (409, None, Retry::Never),
            (410, None, Retry::Never),
            (422, None, Retry::Never),
            (429, None, Retry::WhileBusy),
            (429, SECOND, Retry::AtCapacity),
            (500, None, Retry::Once),
            (500, SECOND, Retry::WhileBusy),
            (501, None, Retry::Never),
            (502, None, Retry::WhileAway),
            (503, SECOND, Retry::WhileAway),
            (504, None, Retry::WhileAway),
        ] {
            let code = StatusCode::from_u16(code).expect("a status code");
            assert_eq!(after_status(code, retry_after), retry, "{code}");
        }
        for (reason, retry) in [
            ("Connection refused (os error 111)", Retry::WhileAway),
            ("connection closed before message completed", Retry::WhileAway),
            ("Network is unreachable (os error 101)", Retry::WhileAway),
            ("invalid peer certificate: UnknownIssuer", Retry::Never),
            (
                "failed to lookup address information: Name or service not known",
                Retry::Never,
            ),
        ] {
            assert_eq!(after_broken_connection(reason), retry, "{reason}");
        }
    }

    #[test]
    fn the_header_is_read_in_seconds() {
        for (value, expected) in [
            ("1", SECOND),
            ("0", Some(Duration::ZERO)),
            ("-1", None),
            ("Wed, 21 Oct 2015 07:28:00 GMT", None),
        ] {
            let headers = [(header::RETRY_AFTER, value.parse().expect("a header"))];
            assert_eq!(
                read_retry_after(&HeaderMap::from_iter(headers)),
                expected,
                "{value}"
            );
        }
        assert_eq!(read_retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn pauses_grow_and_end_within_seconds() {
        let pauses = pauses(Retry::WhileAway, None);
        assert_eq!(pauses.len(), 4);
        for (pause, least) in pauses.iter().zip([200, 400, 800, 1600]) {
            let least = Duration::from_millis(least);
            assert!(*pause >= least && *pause <= least * 5 / 4, "{pauses:?}");
        }
        assert!(pauses.iter().sum::<Duration>() < Duration::from_secs(4));
    }

    #[test]
    fn attempts_without_capacity_do_not_count_for_other_failures() {
        for (asked, shortest, longest) in [(0, 1, 2), (7, 7, 9), (3600, 30, 38)] {
            let asked = Some(Duration::from_secs(asked));
            let mut attempts = FailedAttemptCounter::default();
            for _ in 0..20 {
                let pause = attempts.count_failure_and_find_pause(Retry::AtCapacity, asked);
                let pause = pause.expect("it is sent again").as_secs();
                assert!((shortest..=longest).contains(&pause), "{asked:?}: {pause}");
            }
            let pause = attempts.count_failure_and_find_pause(Retry::WhileAway, None);
            assert!(
                pause.is_some_and(|pause| pause < Duration::from_secs(1)),
                "{pause:?}"
            );
        }
    }

    #[test]
    fn no_pause_is_shorter_than_the_server_asks() {
        for pause in pauses(Retry::WhileBusy, SECOND) {
            assert!(Some(pause) >= SECOND && pause <= Duration::from_millis(1250));
        }
        let day = Some(Duration::from_hours(24));
        for pause in pauses(Retry::WhileBusy, day) {
            assert!(pause <= LONGEST_PAUSE * 5 / 4);
        }
    }

    #[test]
    fn pauses_are_random() {
        let pauses: std::collections::BTreeSet<_> = (0..100)
            .map(|_| FailedAttemptCounter::default().count_failure_and_find_pause(Retry::WhileBusy, None))
            .collect();
        assert!(pauses.len() > 5, "{pauses:?}");
    }
}
