//! Decides whether a failed request is repeated, and after which pause.
//!
//! Every request may be repeated (see `ApiServer::send`), so only the failure counts.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{HeaderMap, StatusCode, header};

/// The most attempts at a request, the first included. With the pauses below they outlast a server
/// that restarts within three seconds.
const ATTEMPTS: u32 = 5;
/// How long a request waits that the server has no capacity for (429): other clients may fill a queue
/// for half a minute. At least `ATTEMPTS` are made, since the server asks for up to 32 seconds.
const CAPACITY_PATIENCE: Duration = Duration::from_secs(30);
/// The shortest pause before such a request is sent again.
const SHORTEST_PAUSE_AT_CAPACITY: Duration = Duration::from_secs(1);
/// The first pause before a request is sent again; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause that a Retry-After header can ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The random part of a pause, in percent: requests that failed together are not repeated together.
const JITTER: u32 = 25;

/// Policy for repeating a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// The result would be the same.
    Never,
    /// The failure may have been accidental.
    Once,
    /// The server, or a proxy in front of it, is away for a moment or for good.
    WhileAway,
    /// The server is up, and overloaded.
    WhileBusy,
    /// The server has no capacity for this user now.
    AtCapacity,
}

/// The policy after an answer with this status code.
///
/// The API server answers 500 if a webhook is down, which lasts, and if etcd's leader changes, which
/// does not.
pub(super) fn after_status(code: StatusCode, retry_after: Option<Duration>) -> Retry {
    match code {
        StatusCode::TOO_MANY_REQUESTS if retry_after.is_some() => Retry::AtCapacity,
        // Of a webhook: the API server says when to repeat.
        StatusCode::TOO_MANY_REQUESTS => Retry::WhileBusy,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            Retry::WhileAway
        }
        StatusCode::INTERNAL_SERVER_ERROR if retry_after.is_none() => Retry::Once,
        code if code.is_server_error() && retry_after.is_some() => Retry::WhileBusy,
        _ => Retry::Never,
    }
}

/// The pause in the Retry-After header, if it is given in seconds.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?;
    value.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

/// The policy if no answer came, for this reason.
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

/// Reachability of the server, as known to all requests of a run. Once one request has used up its
/// attempts, no other repeats its own: a thousand members must not wait a thousand times.
#[derive(Debug, Clone, Default)]
pub(super) struct Reachability {
    is_lost: Arc<AtomicBool>,
    /// Whether the server, which is there, has had no capacity for any request for too long.
    is_full: Arc<AtomicBool>,
}

impl Reachability {
    /// Notes that the server answered.
    pub(super) fn answered(&self) {
        self.is_lost.store(false, Ordering::Relaxed);
    }

    /// Notes that the server had capacity for a request.
    pub(super) fn admitted(&self) {
        self.is_full.store(false, Ordering::Relaxed);
    }

    fn lost(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
    }

    fn full(&self) {
        self.is_full.store(true, Ordering::Relaxed);
    }

    fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }
}

/// The attempts at one request that have failed.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// Those that the server had no capacity for. They do not count for other failures.
    rejected: u32,
    waited_for_capacity: Duration,
    /// All others.
    failed: u32,
}

impl Attempts {
    /// Counts a failed attempt, and returns the pause before the next one; `None` if there is none.
    pub(super) fn pause_after(
        &mut self,
        retry: Retry,
        retry_after: Option<Duration>,
        reachability: &Reachability,
    ) -> Option<Duration> {
        let most = match retry {
            Retry::AtCapacity => {
                return self.pause_at_capacity(retry_after.unwrap_or_default(), reachability);
            }
            Retry::Never => 1,
            Retry::Once => 2,
            Retry::WhileAway if reachability.is_lost() => 1,
            Retry::WhileAway | Retry::WhileBusy => ATTEMPTS,
        };
        self.failed += 1;
        if self.failed >= most {
            if retry == Retry::WhileAway {
                reachability.lost();
            }
            return None;
        }
        let backoff = FIRST_PAUSE * 2_u32.pow(self.failed - 1);
        Some(spread(retry_after.unwrap_or(backoff)))
    }

    fn pause_at_capacity(&mut self, asked: Duration, reachability: &Reachability) -> Option<Duration> {
        self.rejected += 1;
        let has_patience = self.rejected < ATTEMPTS || self.waited_for_capacity < CAPACITY_PATIENCE;
        if !has_patience || reachability.is_full() {
            reachability.full();
            return None;
        }
        // So many repeats would be a load without a pause.
        let pause = spread(asked.max(SHORTEST_PAUSE_AT_CAPACITY));
        self.waited_for_capacity += pause;
        Some(pause)
    }
}

/// Returns the pause within its limit, with its random part.
fn spread(pause: Duration) -> Duration {
    let pause = pause.min(LONGEST_PAUSE);
    pause + pause * chance() / 100
}

/// A number from 0 to `JITTER`.
fn chance() -> u32 {
    // A hasher's random keys are random enough: the number is not a secret.
    let random = RandomState::new().hash_one(());
    u32::try_from(random % u64::from(JITTER + 1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    const SECOND: Option<Duration> = Some(Duration::from_secs(1));

    fn pauses(retry: Retry, retry_after: Option<Duration>, reachability: &Reachability) -> Vec<Duration> {
        let mut attempts = Attempts::default();
        iter::from_fn(|| attempts.pause_after(retry, retry_after, reachability)).collect()
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
            assert_eq!(retry_after(&HeaderMap::from_iter(headers)), expected, "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn pauses_grow_and_end_within_seconds() {
        let pauses = pauses(Retry::WhileAway, None, &Reachability::default());
        assert_eq!(pauses.len(), 4);
        for (pause, least) in pauses.iter().zip([200, 400, 800, 1600]) {
            let least = Duration::from_millis(least);
            assert!(*pause >= least && *pause <= least * 5 / 4, "{pauses:?}");
        }
        assert!(pauses.iter().sum::<Duration>() < Duration::from_secs(4));
    }

    #[test]
    fn a_request_without_capacity_waits_half_a_minute() {
        for (retry_after, shortest, longest) in [
            // As after a second.
            (0, 30, 38),
            (1, 30, 38),
            (7, 30, 44),
            // Four pauses of half a minute.
            (3600, 120, 150),
        ] {
            let asked = Some(Duration::from_secs(retry_after));
            let waited: Duration = pauses(Retry::AtCapacity, asked, &Reachability::default())
                .iter()
                .sum();
            assert!(
                (shortest..=longest).contains(&waited.as_secs()),
                "{retry_after}: {waited:?}"
            );
        }
    }

    #[test]
    fn the_server_may_ask_for_longer_each_time() {
        let mut attempts = Attempts::default();
        let mut waited = Duration::ZERO;
        for asked in [1, 2, 4, 8, 16, 32, 32] {
            let asked = Some(Duration::from_secs(asked));
            let Some(pause) = attempts.pause_after(Retry::AtCapacity, asked, &Reachability::default()) else {
                break;
            };
            waited += pause;
        }
        assert!((31..=70).contains(&waited.as_secs()), "{waited:?}");
    }

    #[test]
    fn attempts_without_capacity_do_not_count_for_other_failures() {
        let reachability = Reachability::default();
        let mut attempts = Attempts::default();
        for _ in 0..20 {
            assert!(
                attempts
                    .pause_after(Retry::AtCapacity, SECOND, &reachability)
                    .is_some()
            );
        }
        for retry in [Retry::WhileBusy, Retry::WhileAway] {
            let pause = attempts.pause_after(retry, None, &reachability);
            assert!(
                pause.is_some_and(|pause| pause < Duration::from_secs(1)),
                "{pause:?}"
            );
        }
        assert_eq!(attempts.pause_after(Retry::Never, None, &reachability), None);
    }

    #[test]
    fn no_pause_is_shorter_than_the_server_asks() {
        for pause in pauses(Retry::WhileBusy, SECOND, &Reachability::default()) {
            assert!(Some(pause) >= SECOND && pause <= Duration::from_millis(1250));
        }
        let day = Some(Duration::from_hours(24));
        for pause in pauses(Retry::WhileBusy, day, &Reachability::default()) {
            assert!(pause <= LONGEST_PAUSE * 5 / 4);
        }
    }

    #[test]
    fn one_request_waits_for_a_lost_server() {
        let reachability = Reachability::default();
        assert_eq!(pauses(Retry::WhileAway, None, &reachability).len(), 4);
        assert_eq!(pauses(Retry::WhileAway, None, &reachability).len(), 0);
        assert_eq!(pauses(Retry::WhileBusy, None, &reachability).len(), 4);
        reachability.answered();
        assert_eq!(pauses(Retry::WhileAway, None, &reachability).len(), 4);
    }

    #[test]
    fn one_request_waits_for_a_full_server() {
        let reachability = Reachability::default();
        let of_one = pauses(Retry::AtCapacity, SECOND, &reachability).len();
        assert!(of_one > 20, "{of_one}");
        reachability.answered();
        assert_eq!(pauses(Retry::AtCapacity, SECOND, &reachability).len(), 0);
        assert_eq!(pauses(Retry::WhileAway, None, &reachability).len(), 4);
        reachability.admitted();
        assert!(pauses(Retry::AtCapacity, SECOND, &reachability).len() > 20);
    }

    #[test]
    fn pauses_are_random() {
        let reachability = Reachability::default();
        let pauses: std::collections::BTreeSet<_> = (0..100)
            .map(|_| Attempts::default().pause_after(Retry::WhileBusy, None, &reachability))
            .collect();
        assert!(pauses.len() > 5, "{pauses:?}");
    }
}
