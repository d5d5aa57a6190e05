//! The limit of concurrent writes: it rises while the server answers fast, and falls when the server
//! throttles.
//!
//! Pure: `apiserver` waits for `Retry-After`.

use std::time::Duration;

/// The limit at the start, unless the user allows less.
const START: usize = 16;
/// The number of answers without a refusal that raise the ceiling by one.
const CALM: usize = 48;
/// The limit at which doubling ends: each further connection has its own handshake.
const DOUBLED_UP_TO: usize = 4 * START;
/// An answer slower than this multiple of the fastest one has waited in a queue of the server; more
/// writes would only lengthen the queue.
const QUEUED: u32 = 3;

/// The current limit, and the observations that raise and lower it.
///
/// Slow start, then additive increase and multiplicative decrease, as TCP does it: a window of answers
/// without queueing doubles the limit at first, and later raises it by one; a refusal halves it.
/// Doubling helps over a slow link, where each window takes a round trip. Below the start only refusals
/// count: on a busy machine answers take different times without any queue.
///
/// A refused write delays the end of its wave by a second. So the limit stays below the number of
/// concurrent writes that led to a refusal, and grows past it slowly.
#[derive(Debug, Clone)]
pub(super) struct ConcurrencyLimit {
    limit: usize,
    most: usize,
    growth: Growth,
    /// The limit is not raised above this.
    ceiling: usize,
    /// Answers since the ceiling was lowered or raised.
    calm: usize,
    answers: usize,
    fastest: Duration,
    slowest: Duration,
}

/// How a window of answers without queueing raises the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// In the first window, writes also wait for their connections, so slow ones show no queue.
    DoublingAtFirst,
    Doubling,
    ByOne,
}

impl ConcurrencyLimit {
    /// Creates a limit that never exceeds `most` writes at once.
    pub(super) fn new(most: usize) -> Self {
        Self {
            limit: START.min(most).max(1),
            most: most.max(1),
            growth: Growth::DoublingAtFirst,
            ceiling: most.max(1),
            calm: 0,
            answers: 0,
            fastest: Duration::MAX,
            slowest: Duration::ZERO,
        }
    }

    /// Returns whether one more write may start while `started` ones have not ended. The `postponed` ones
    /// among them do not load the server, but count against the user's limit.
    pub(super) fn allows(&self, started: usize, postponed: usize) -> bool {
        started < self.most && started.saturating_sub(postponed) < self.limit
    }

    /// Returns how many of these writes are under way at once when the first ones are answered: the limit
    /// has doubled then.
    pub(super) fn soon(&self, writes: usize) -> usize {
        writes.min(2 * self.limit).min(self.ceiling)
    }

    /// Records an answer and its duration.
    pub(super) fn answered(&mut self, latency: Duration) {
        self.fastest = self.fastest.min(latency);
        self.slowest = self.slowest.max(latency);
        self.answers += 1;
        self.calm += 1;
        if self.calm >= CALM {
            self.ceiling = (self.ceiling + 1).min(self.most);
            self.calm = 0;
        }
        if self.answers >= self.limit {
            let has_queued = self.slowest > self.fastest.saturating_mul(QUEUED);
            if self.limit < START || !has_queued {
                let more = if self.growth != Growth::ByOne && self.limit < DOUBLED_UP_TO {
                    self.limit
                } else {
                    1
                };
                self.limit = (self.limit + more).min(self.ceiling);
            }
            self.growth = match self.growth {
                Growth::DoublingAtFirst => Growth::Doubling,
                Growth::Doubling if !has_queued => Growth::Doubling,
                Growth::Doubling | Growth::ByOne => Growth::ByOne,
            };
            self.answers = 0;
            self.slowest = Duration::ZERO;
        }
    }

    /// Records that the server throttled a request.
    pub(super) fn pushed_back(&mut self) {
        self.ceiling = (self.limit - 1).max(2).min(self.most);
        self.calm = 0;
        self.limit = (self.limit / 2).max(1);
        self.growth = Growth::ByOne;
        self.answers = 0;
        self.slowest = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(pace: &mut ConcurrencyLimit, times: usize, milliseconds: u64) {
        for _ in 0..times {
            pace.answered(Duration::from_millis(milliseconds));
        }
    }

    #[test]
    fn a_server_that_keeps_up_gets_more() {
        let mut pace = ConcurrencyLimit::new(64);
        answer(&mut pace, 16, 10);
        assert_eq!(pace.limit, 32);
        answer(&mut pace, 32, 10);
        assert_eq!(pace.limit, 64);
        let mut pace = ConcurrencyLimit::new(100);
        answer(&mut pace, 16 + 32, 10);
        assert_eq!(pace.limit, 64);
        answer(&mut pace, 64, 10);
        assert_eq!(pace.limit, 65);
    }

    #[test]
    fn connections_are_opened_for_the_writes_of_the_second_window() {
        let mut pace = ConcurrencyLimit::new(64);
        assert_eq!(pace.soon(3), 3);
        assert_eq!(pace.soon(300), 32);
        assert_eq!(ConcurrencyLimit::new(4).soon(300), 4);
        pace.pushed_back();
        assert_eq!(pace.soon(300), 15);
    }

    #[test]
    fn writes_that_wait_for_capacity_do_not_keep_others_from_starting() {
        let mut pace = ConcurrencyLimit::new(64);
        assert!(pace.allows(15, 0));
        assert!(!pace.allows(16, 0));
        pace.pushed_back();
        assert!(!pace.allows(16, 8));
        assert!(pace.allows(16, 9));
        assert!(!pace.allows(64, 64));
    }

    #[test]
    fn after_a_queue_the_limit_grows_slowly() {
        let mut pace = ConcurrencyLimit::new(64);
        for window in [1, 2] {
            answer(&mut pace, 15, 10);
            answer(&mut pace, 1, 40);
            assert_eq!(pace.limit, 16, "{window}");
        }
        answer(&mut pace, 16, 10);
        assert_eq!(pace.limit, 17);
    }

    #[test]
    fn slow_answers_on_new_connections_are_no_queue() {
        let mut pace = ConcurrencyLimit::new(64);
        answer(&mut pace, 4, 10);
        answer(&mut pace, 12, 35);
        assert_eq!(pace.limit, 16);
        answer(&mut pace, 16, 10);
        assert_eq!(pace.limit, 32);
        answer(&mut pace, 10_000, 10);
        assert_eq!(pace.limit, 64);
    }

    #[test]
    fn a_server_that_queues_gets_no_more() {
        let mut pace = ConcurrencyLimit::new(64);
        answer(&mut pace, 1, 2);
        answer(&mut pace, 1_000, 20);
        assert_eq!(pace.limit, 16);
    }

    #[test]
    fn a_server_that_pushes_back_gets_half_but_never_nothing() {
        let mut pace = ConcurrencyLimit::new(64);
        pace.pushed_back();
        assert_eq!(pace.limit, 8);
        for _ in 0..10 {
            pace.pushed_back();
        }
        assert_eq!(pace.limit, 1);
        answer(&mut pace, 1, 10);
        assert_eq!(pace.limit, 2);
    }

    #[test]
    fn what_was_refused_is_tried_again_rarely() {
        let mut pace = ConcurrencyLimit::new(64);
        pace.pushed_back();
        pace.pushed_back();
        assert_eq!(pace.limit, 4);
        answer(&mut pace, 15, 10);
        assert_eq!(pace.limit, 7);
        let mut refusals = 0;
        for _ in 0..300 {
            answer(&mut pace, 1, 10);
            if pace.limit > 7 {
                pace.pushed_back();
                refusals += 1;
            }
        }
        assert!(refusals <= 6, "{refusals}");
    }

    #[test]
    fn a_server_that_queues_gets_as_much_as_before_it_pushed_back() {
        let mut pace = ConcurrencyLimit::new(64);
        answer(&mut pace, 1, 2);
        pace.pushed_back();
        answer(&mut pace, 1_000, 20);
        assert_eq!(pace.limit, START);
    }

    #[test]
    fn the_users_limit_holds() {
        assert_eq!(ConcurrencyLimit::new(4).limit, 4);
        assert_eq!(ConcurrencyLimit::new(0).limit, 1);
    }
}
