//! The limit of concurrent writes: it rises while the server answers fast, and is halved when the server refuses
//! writes for lack of capacity (429).
//!
//! This file only counts. `cluster/apiserver` sends refused writes again, after the `Retry-After` of the answer.

use std::time::Duration;

use crate::cluster::apiserver::ApiServer;

/// The limit at the start, unless the user allows less. Most sets are small enough for all their writes to run at once,
/// so that they take one round trip. API Priority and Fairness queues most of these writes, instead of refusing them,
/// even if it has few seats for the user.
const START: usize = 8;
/// The limit at the start if the server is far away: a window would take a round trip, so the first windows are left
/// out. `ApiServer::open_connections_for` has opened up to this many connections.
const START_IF_FAR: usize = 2 * ALWAYS_RAISED_BELOW;
/// Below this limit, slow answers do not stop growth, only refusals do: on a busy machine, answer times vary
/// even without a queue.
const ALWAYS_RAISED_BELOW: usize = 16;
/// A server whose fastest answer took longer than this is far away.
const FAR: Duration = Duration::from_millis(10);
/// The limit at which doubling ends: each further connection has its own handshake.
const DOUBLED_UP_TO: usize = 64;
/// The number of answers that raise the limit by one after a refusal, at least. If the limit rose faster, writes would
/// be refused more often: a refused write delays the end of its step by a second, and by twice as long each time that
/// it is refused again.
const WINDOW_AFTER_REFUSAL: usize = 64;
/// If answers take more than this multiple of the fastest one on average, they have waited in a queue of the server;
/// more writes would only lengthen the queue.
const SLOWDOWN_BY_QUEUE: u32 = 2;

/// The current limit, and the observations that raise and lower it.
///
/// The limit follows slow start, then additive increase and multiplicative decrease, as in TCP. A window is as many
/// answers as the limit. Each window without queueing doubles the limit at first, and later raises it by one; a refusal
/// halves it.
#[derive(Debug, Clone)]
pub(super) struct ConcurrencyLimit {
    limit: usize,
    /// The highest limit that the user allows.
    max: usize,
    /// `true` once the server has refused a write.
    was_refused: bool,
    /// The number of writes that were under way at the last refusal and have not been answered. If the server refuses
    /// them, too, the limit is not halved again.
    under_way_at_refusal: usize,
    /// The number of answers in the current window.
    answers: usize,
    /// The total duration of the answers in the current window.
    total: Duration,
    /// The shortest duration of any answer so far.
    fastest: Duration,
}

/// Returns how many of this number of writes will soon run at once, if the server keeps up.
pub fn estimate_concurrent_writes_at_start(writes: usize) -> usize {
    writes.min(START_IF_FAR)
}

impl ConcurrencyLimit {
    /// Creates a limit for writes to a server that has answered the reads of the run. The limit never exceeds `max`.
    pub(super) fn for_server(server: &ApiServer, max: usize) -> Self {
        if server.throttled_answer_count() == 0 {
            return Self::new(max, server.shortest_answer_time());
        }
        // The server has refused even some of the few reads so far.
        Self::starting_with(START / 2, max)
    }

    /// Creates a limit that never exceeds `max`. `fastest_answer` is the shortest time that the server took to answer
    /// an earlier request; `None` if no request shows how far away the server is.
    fn new(max: usize, fastest_answer: Option<Duration>) -> Self {
        let is_far = fastest_answer.is_some_and(|fastest| fastest > FAR);
        let start = if is_far { START_IF_FAR } else { START };
        Self::starting_with(start, max)
    }

    fn starting_with(start: usize, max: usize) -> Self {
        Self {
            limit: start.min(max).max(1),
            max: max.max(1),
            was_refused: false,
            under_way_at_refusal: 0,
            answers: 0,
            total: Duration::ZERO,
            fastest: Duration::MAX,
        }
    }

    /// Returns whether one more write may start while `under_way` writes have not ended. `throttled` of these were
    /// refused by the server and wait to be sent again. They do not load the server now, but they count against the
    /// limit that the user sets. Up to half of the current limit is kept free for them, so that they are not refused
    /// again.
    pub(super) fn allows_one_more(&self, under_way: usize, throttled: usize) -> bool {
        let kept_free = throttled.min(self.limit / 2);
        let on_server = under_way.saturating_sub(throttled);
        under_way < self.max && on_server + kept_free < self.limit
    }

    /// Records an answer and its duration.
    pub(super) fn record_answer(&mut self, latency: Duration) {
        self.under_way_at_refusal = self.under_way_at_refusal.saturating_sub(1);
        self.fastest = self.fastest.min(latency);
        self.total += latency;
        self.answers += 1;
        let window = if self.was_refused {
            self.limit.max(WINDOW_AFTER_REFUSAL)
        } else {
            self.limit
        };
        if self.answers < window {
            return;
        }
        if self.limit < ALWAYS_RAISED_BELOW || !self.is_server_queueing() {
            let doubles = !self.was_refused && self.limit < DOUBLED_UP_TO;
            let next = if doubles {
                (2 * self.limit).min(DOUBLED_UP_TO)
            } else {
                self.limit + 1
            };
            self.limit = next.min(self.max);
        }
        self.begin_window();
    }

    /// Returns whether the answers of the current window have waited in a queue of the server.
    fn is_server_queueing(&self) -> bool {
        let answers = u32::try_from(self.answers).unwrap_or(u32::MAX);
        self.total / answers > self.fastest.saturating_mul(SLOWDOWN_BY_QUEUE)
    }

    fn begin_window(&mut self) {
        self.answers = 0;
        self.total = Duration::ZERO;
    }

    /// Records that the server refused a write for lack of capacity while `under_way` others had not ended.
    pub(super) fn record_refusal(&mut self, under_way: usize) {
        if self.under_way_at_refusal > 0 {
            self.under_way_at_refusal -= 1;
            return;
        }
        self.under_way_at_refusal = under_way;
        self.was_refused = true;
        self.limit = (self.limit / 2).max(1);
        self.begin_window();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(concurrency_limit: &mut ConcurrencyLimit, times: usize, milliseconds: u64) {
        for _ in 0..times {
            concurrency_limit.record_answer(Duration::from_millis(milliseconds));
        }
    }

    /// The limit after its first window.
    fn after_start(most: usize) -> ConcurrencyLimit {
        let mut concurrency_limit = ConcurrencyLimit::new(most, None);
        answer(&mut concurrency_limit, 8, 10);
        assert_eq!(concurrency_limit.limit, 16);
        concurrency_limit
    }

    #[test]
    fn a_server_that_keeps_up_gets_more() {
        let mut concurrency_limit = ConcurrencyLimit::new(100, None);
        for (window, next) in [(8, 16), (16, 32), (32, 64), (64, 65), (65, 66)] {
            assert_eq!(concurrency_limit.limit, window);
            answer(&mut concurrency_limit, window, 10);
            assert_eq!(concurrency_limit.limit, next);
        }
        answer(&mut concurrency_limit, 10_000, 10);
        assert_eq!(concurrency_limit.limit, 100);
    }

    #[test]
    fn writes_to_a_server_that_is_far_away_start_with_as_many_as_there_are_early_connections() {
        for (most, milliseconds, start) in [(64, 9, 8), (64, 20, 32), (10, 20, 10)] {
            let fastest = Some(Duration::from_millis(milliseconds));
            assert_eq!(ConcurrencyLimit::new(most, fastest).limit, start);
        }
        assert_eq!(estimate_concurrent_writes_at_start(3), 3);
        assert_eq!(estimate_concurrent_writes_at_start(300), 32);
    }

    #[test]
    fn writes_that_wait_for_capacity_do_not_keep_others_from_starting() {
        let mut concurrency_limit = after_start(64);
        assert!(concurrency_limit.allows_one_more(15, 0));
        assert!(!concurrency_limit.allows_one_more(16, 0));
        concurrency_limit.record_refusal(concurrency_limit.limit);
        assert_eq!(concurrency_limit.limit, 8);
        for (started, throttled, is_allowed) in [
            (7, 0, true),
            (8, 0, false),
            // One is kept free for each that is sent again, and never more than half.
            (7, 1, true),
            (8, 1, false),
            (11, 8, true),
            (12, 8, false),
            (64, 64, false),
        ] {
            assert_eq!(
                concurrency_limit.allows_one_more(started, throttled),
                is_allowed,
                "{started} {throttled}"
            );
        }
    }

    #[test]
    fn a_window_of_slow_answers_does_not_raise_the_limit() {
        let mut concurrency_limit = after_start(64);
        for window in [1, 2] {
            answer(&mut concurrency_limit, 8, 10);
            answer(&mut concurrency_limit, 8, 40);
            assert_eq!(concurrency_limit.limit, 16, "{window}");
        }
        // One slow answer is not a queue.
        answer(&mut concurrency_limit, 1, 150);
        answer(&mut concurrency_limit, 15, 10);
        assert_eq!(concurrency_limit.limit, 32);
    }

    #[test]
    fn a_server_that_queues_gets_no_more() {
        for was_refused in [false, true] {
            let mut concurrency_limit = ConcurrencyLimit::new(64, None);
            answer(&mut concurrency_limit, 1, 2);
            if was_refused {
                concurrency_limit.record_refusal(concurrency_limit.limit);
            }
            answer(&mut concurrency_limit, 10_000, 20);
            assert_eq!(concurrency_limit.limit, ALWAYS_RAISED_BELOW);
        }
    }

    #[test]
    fn a_server_that_refuses_gets_half_but_never_nothing() {
        let mut concurrency_limit = after_start(64);
        for half in [8, 4, 2, 1, 1] {
            concurrency_limit.record_refusal(0);
            assert_eq!(concurrency_limit.limit, half);
        }
        answer(&mut concurrency_limit, WINDOW_AFTER_REFUSAL, 10);
        assert_eq!(concurrency_limit.limit, 2);
    }

    #[test]
    fn refusals_of_writes_under_way_at_once_are_one_event() {
        let mut concurrency_limit = after_start(64);
        for _ in 0..16 {
            concurrency_limit.record_refusal(concurrency_limit.limit);
            assert_eq!(concurrency_limit.limit, 8);
        }
        answer(&mut concurrency_limit, 1, 10);
        concurrency_limit.record_refusal(concurrency_limit.limit);
        assert_eq!(concurrency_limit.limit, 4);
    }

    #[test]
    fn what_was_refused_is_tried_again_rarely() {
        let mut concurrency_limit = after_start(64);
        let mut refusals = 0;
        for _ in 0..1000 {
            answer(&mut concurrency_limit, 1, 10);
            if concurrency_limit.limit > 7 {
                concurrency_limit.record_refusal(concurrency_limit.limit);
                // The writes that were under way at the refusal end.
                while concurrency_limit.under_way_at_refusal > 0 {
                    answer(&mut concurrency_limit, 1, 10);
                }
                refusals += 1;
            }
        }
        assert!(refusals <= 6, "{refusals}");
    }

    #[test]
    fn the_users_limit_holds() {
        assert_eq!(ConcurrencyLimit::new(3, None).limit, 3);
        assert_eq!(ConcurrencyLimit::new(0, None).limit, 1);
    }
}
