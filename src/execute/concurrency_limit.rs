//! The limit of concurrent writes: it rises while the server answers fast, and falls when the server
//! throttles.
//!
//! Pure: `apiserver` waits for `Retry-After`.

use std::time::Duration;

use crate::cluster::apiserver::ApiServer;

/// The limit at the start, unless the user allows less. It saves most sets a second round trip, and even a
/// server with few seats for the user can queue most of these writes.
const START: usize = 8;
/// The same for a server that is far away, where a window takes a round trip: as many as there are connections
/// that were opened early.
const START_IF_FAR: usize = 2 * UNQUESTIONED;
/// Below this limit, slow answers do not stop growth, only refusals do: on a busy machine, answer times vary
/// even without a queue.
const UNQUESTIONED: usize = 16;
/// A server whose fastest answer took longer than this is far away: each window takes a round trip.
const FAR: Duration = Duration::from_millis(10);
/// The factor by which a window multiplies the limit of writes to a server that is far away.
const FACTOR_IF_FAR: usize = 4;
/// The same for any other server.
const FACTOR: usize = 2;
/// The limit at which multiplying ends: each further connection has its own handshake.
const MULTIPLIED_UP_TO: usize = 64;
/// The number of answers without a refusal that raise the ceiling by one. Each refusal doubles this number.
const CALM: usize = 64;
/// The most answers that can be needed to raise the ceiling; refusals do not double this number further.
const MOST_CALM: usize = 4096;
/// If answers take this multiple of the fastest one on average, they have waited in a queue of the server;
/// more writes would only lengthen the queue.
const QUEUED: u32 = 2;

/// The current limit, and the observations that raise and lower it.
///
/// Slow start, then additive increase and multiplicative decrease, as TCP does it: a window of answers
/// without queueing multiplies the limit at first, and later raises it by one; a refusal halves it.
///
/// A refused write delays the end of its wave by a second, and by twice as long each time that it is refused
/// again. So after a refusal, the limit stays at what the server last kept up with, and grows past it slowly.
#[derive(Debug, Clone)]
pub(super) struct ConcurrencyLimit {
    limit: usize,
    most: usize,
    growth: Growth,
    /// The limit is not raised above this.
    ceiling: usize,
    /// Answers since the ceiling was lowered or raised.
    calm: usize,
    /// The number of answers that raises the ceiling.
    calm_needed: usize,
    /// Outstanding answers to writes that started before the last refusal. Refusals among them are the same
    /// event.
    settling: usize,
    answers: usize,
    fastest: Duration,
    /// What the answers of the window took, added up.
    total: Duration,
}

/// How a window of answers without queueing raises the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// Until the end of the first window with a limit of at least `UNQUESTIONED`. Its writes may have waited
    /// for new connections, so slow answers do not prove a queue: the limit does not rise after this window,
    /// but later windows may still multiply it.
    MultiplyingAtFirst,
    Multiplying,
    ByOne,
}

/// Returns how many of these writes are soon under way at once, if the server keeps up.
pub fn soon_under_way(writes: usize) -> usize {
    writes.min(START_IF_FAR)
}

impl ConcurrencyLimit {
    /// Creates a limit for writes to a server that has answered the reads of the run. It never exceeds `most`
    /// writes at once.
    pub(super) fn for_server(server: &ApiServer, most: usize) -> Self {
        if server.throttled_answers() == 0 {
            return Self::new(most, server.fastest_answer());
        }
        // Even the few reads so far were too many.
        let mut lowered = Self::new(most, None);
        lowered.pushed_back(0);
        lowered
    }

    /// Creates a limit that never exceeds `most` writes at once. `fastest_answer` is the shortest time that
    /// the server took to answer an earlier request; `None` if that says nothing of how far away it is.
    fn new(most: usize, fastest_answer: Option<Duration>) -> Self {
        let is_far = fastest_answer.is_some_and(|fastest| fastest > FAR);
        let start = if is_far { START_IF_FAR } else { START };
        Self {
            limit: start.min(most).max(1),
            most: most.max(1),
            growth: Growth::MultiplyingAtFirst,
            ceiling: most.max(1),
            calm: 0,
            calm_needed: CALM,
            settling: 0,
            answers: 0,
            fastest: Duration::MAX,
            total: Duration::ZERO,
        }
    }

    /// Returns whether one more write may start while `started` ones have not ended. The `postponed` ones
    /// among them do not load the server, but count against the user's limit. Up to half of the current limit
    /// is kept free for them, so that they are not refused again.
    pub(super) fn allows(&self, started: usize, postponed: usize) -> bool {
        let kept_free = postponed.min(self.limit / 2);
        started < self.most && started.saturating_sub(postponed) + kept_free < self.limit
    }

    /// Returns how many of these writes are soon under way at once, if the server keeps up.
    pub(super) fn soon(&self, writes: usize) -> usize {
        soon_under_way(writes).min(self.ceiling)
    }

    /// Records an answer and its duration.
    pub(super) fn answered(&mut self, latency: Duration) {
        self.settling = self.settling.saturating_sub(1);
        self.fastest = self.fastest.min(latency);
        self.total += latency;
        self.answers += 1;
        self.calm += 1;
        if self.calm >= self.calm_needed {
            self.ceiling = (self.ceiling + 1).min(self.most);
            self.calm = 0;
        }
        if self.answers >= self.limit {
            self.end_window();
        }
    }

    fn end_window(&mut self) {
        let answers = u32::try_from(self.answers).unwrap_or(u32::MAX);
        let has_queued = self.total / answers > self.fastest.saturating_mul(QUEUED);
        let is_questioned = self.limit >= UNQUESTIONED;
        if !(is_questioned && has_queued) {
            let multiplies = self.growth != Growth::ByOne && self.limit < MULTIPLIED_UP_TO;
            let next = if multiplies {
                (self.factor() * self.limit).min(MULTIPLIED_UP_TO)
            } else {
                self.limit + 1
            };
            self.limit = next.min(self.ceiling);
        }
        if is_questioned {
            self.growth = match self.growth {
                Growth::MultiplyingAtFirst => Growth::Multiplying,
                Growth::Multiplying if !has_queued => Growth::Multiplying,
                Growth::Multiplying | Growth::ByOne => Growth::ByOne,
            };
        }
        self.answers = 0;
        self.total = Duration::ZERO;
    }

    fn factor(&self) -> usize {
        if self.fastest > FAR { FACTOR_IF_FAR } else { FACTOR }
    }

    /// Records that the server throttled a request while so many writes were under way.
    pub(super) fn pushed_back(&mut self, under_way: usize) {
        if self.settling > 0 {
            self.settling -= 1;
            return;
        }
        self.settling = under_way;
        let one_less = self.limit - 1;
        let kept_up_with = match self.growth {
            Growth::MultiplyingAtFirst | Growth::Multiplying => (self.limit / self.factor()).max(START / 2),
            Growth::ByOne => one_less,
        };
        self.ceiling = kept_up_with.min(one_less).min(self.ceiling).max(2).min(self.most);
        self.calm = 0;
        self.calm_needed = (2 * self.calm_needed).min(MOST_CALM);
        self.limit = (self.limit / 2).clamp(1, self.ceiling);
        self.growth = Growth::ByOne;
        self.answers = 0;
        self.total = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(concurrency_limit: &mut ConcurrencyLimit, times: usize, milliseconds: u64) {
        for _ in 0..times {
            concurrency_limit.answered(Duration::from_millis(milliseconds));
        }
    }

    /// The limit after its first window.
    fn after_start(most: usize) -> ConcurrencyLimit {
        let mut concurrency_limit = ConcurrencyLimit::new(most, None);
        answer(&mut concurrency_limit, 8, 10);
        assert_eq!(concurrency_limit.limit, 16);
        concurrency_limit
    }

    /// Lets all writes end that were begun before a refusal.
    fn settle(concurrency_limit: &mut ConcurrencyLimit) {
        while concurrency_limit.settling > 0 {
            answer(concurrency_limit, 1, 10);
        }
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
    fn a_server_that_is_far_away_gets_more_with_each_round_trip() {
        let mut concurrency_limit = ConcurrencyLimit::new(100, None);
        for (window, next) in [(8, 32), (32, 64), (64, 65)] {
            assert_eq!(concurrency_limit.limit, window);
            answer(&mut concurrency_limit, window, 20);
            assert_eq!(concurrency_limit.limit, next);
        }
    }

    #[test]
    fn writes_to_a_server_that_is_far_away_start_with_as_many_as_there_are_early_connections() {
        for (most, milliseconds, start) in [(64, 9, 8), (64, 20, 32), (10, 20, 10)] {
            let fastest = Some(Duration::from_millis(milliseconds));
            assert_eq!(ConcurrencyLimit::new(most, fastest).limit, start);
        }
        assert_eq!(soon_under_way(300), 32);
    }

    #[test]
    fn connections_are_opened_for_the_writes_that_are_soon_under_way() {
        let mut concurrency_limit = ConcurrencyLimit::new(64, None);
        assert_eq!(concurrency_limit.soon(3), 3);
        assert_eq!(concurrency_limit.soon(300), 32);
        assert_eq!(ConcurrencyLimit::new(4, None).soon(300), 4);
        concurrency_limit.pushed_back(concurrency_limit.limit);
        assert_eq!(concurrency_limit.soon(300), 4);
    }

    #[test]
    fn writes_that_wait_for_capacity_do_not_keep_others_from_starting() {
        let mut concurrency_limit = after_start(64);
        assert!(concurrency_limit.allows(15, 0));
        assert!(!concurrency_limit.allows(16, 0));
        concurrency_limit.pushed_back(concurrency_limit.limit);
        assert_eq!(concurrency_limit.limit, 8);
        for (started, postponed, is_allowed) in [
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
                concurrency_limit.allows(started, postponed),
                is_allowed,
                "{started} {postponed}"
            );
        }
    }

    #[test]
    fn after_a_queue_the_limit_grows_slowly() {
        let mut concurrency_limit = after_start(64);
        for window in [1, 2] {
            answer(&mut concurrency_limit, 8, 10);
            answer(&mut concurrency_limit, 8, 40);
            assert_eq!(concurrency_limit.limit, 16, "{window}");
        }
        // One slow answer is not a queue.
        answer(&mut concurrency_limit, 1, 150);
        answer(&mut concurrency_limit, 15, 10);
        assert_eq!(concurrency_limit.limit, 17);
    }

    #[test]
    fn slow_answers_on_new_connections_are_no_queue() {
        let mut concurrency_limit = after_start(64);
        answer(&mut concurrency_limit, 4, 10);
        answer(&mut concurrency_limit, 12, 35);
        assert_eq!(concurrency_limit.limit, 16);
        answer(&mut concurrency_limit, 16, 10);
        assert_eq!(concurrency_limit.limit, 32);
        answer(&mut concurrency_limit, 32, 10);
        assert_eq!(concurrency_limit.limit, 64);
    }

    #[test]
    fn a_server_that_queues_gets_no_more() {
        let mut concurrency_limit = ConcurrencyLimit::new(64, None);
        answer(&mut concurrency_limit, 1, 2);
        answer(&mut concurrency_limit, 1_000, 20);
        assert_eq!(concurrency_limit.limit, UNQUESTIONED);
    }

    #[test]
    fn a_server_that_pushes_back_gets_half_but_never_nothing() {
        let mut concurrency_limit = after_start(64);
        for half in [8, 4, 2, 1, 1] {
            concurrency_limit.pushed_back(0);
            assert_eq!(concurrency_limit.limit, half);
        }
        for _ in 0..100 {
            concurrency_limit.pushed_back(0);
        }
        answer(&mut concurrency_limit, 1, 10);
        assert_eq!(concurrency_limit.limit, 2);
    }

    #[test]
    fn refusals_of_writes_under_way_at_once_are_one_event() {
        let mut concurrency_limit = after_start(64);
        for _ in 0..16 {
            concurrency_limit.pushed_back(concurrency_limit.limit);
            assert_eq!(concurrency_limit.limit, 8);
        }
        answer(&mut concurrency_limit, 1, 10);
        concurrency_limit.pushed_back(concurrency_limit.limit);
        assert_eq!(concurrency_limit.limit, 4);
    }

    #[test]
    fn after_a_refusal_the_limit_is_what_the_server_kept_up_with() {
        for (milliseconds, refused, kept_up_with) in [(10, 32, 16), (20, 32, 8)] {
            let mut concurrency_limit = ConcurrencyLimit::new(64, None);
            while concurrency_limit.limit < refused {
                answer(&mut concurrency_limit, 8, milliseconds);
            }
            assert_eq!(concurrency_limit.limit, refused);
            concurrency_limit.pushed_back(refused);
            assert!(concurrency_limit.limit <= kept_up_with, "{milliseconds} ms");
            answer(&mut concurrency_limit, 120, milliseconds);
            assert_eq!(concurrency_limit.limit, kept_up_with, "{milliseconds} ms");
        }
        let mut concurrency_limit = ConcurrencyLimit::new(64, None);
        concurrency_limit.pushed_back(8);
        answer(&mut concurrency_limit, 100, 10);
        assert_eq!(concurrency_limit.limit, 4, "refused at the start");
        answer(&mut concurrency_limit, 100, 10);
        assert_eq!(concurrency_limit.limit, 5);
        concurrency_limit.pushed_back(5);
        answer(&mut concurrency_limit, 200, 10);
        assert_eq!(concurrency_limit.limit, 4, "one less");
    }

    #[test]
    fn what_was_refused_is_tried_again_rarely() {
        let mut concurrency_limit = after_start(64);
        let mut refusals = 0;
        for _ in 0..1000 {
            answer(&mut concurrency_limit, 1, 10);
            if concurrency_limit.limit > 7 {
                concurrency_limit.pushed_back(concurrency_limit.limit);
                settle(&mut concurrency_limit);
                refusals += 1;
            }
        }
        assert!(refusals <= 4, "{refusals}");
        assert_eq!(concurrency_limit.limit, 7);
    }

    #[test]
    fn a_server_that_queues_gets_as_much_as_before_it_pushed_back() {
        let mut concurrency_limit = ConcurrencyLimit::new(64, None);
        answer(&mut concurrency_limit, 1, 2);
        concurrency_limit.pushed_back(concurrency_limit.limit);
        answer(&mut concurrency_limit, 10_000, 20);
        assert_eq!(concurrency_limit.limit, UNQUESTIONED);
    }

    #[test]
    fn the_users_limit_holds() {
        assert_eq!(ConcurrencyLimit::new(3, None).limit, 3);
        assert_eq!(ConcurrencyLimit::new(0, None).limit, 1);
    }
}
