//! Remembers for all requests of a run whether the server answers, is away, or has no capacity. If the server has
//! stopped answering, the circuit breaker opens: requests fail without being sent. So a run waits only for the time
//! limit of one request, not for one time limit per object (docs/decisions/failures.md).
//!
//! Reads the clock, and sends nothing: `probe` sends the requests of a probe.

use std::time::Duration;

use http::StatusCode;
use tokio::sync::watch::{Ref, Sender};
use tokio::time::Instant;

/// The shortest time limit of a probe.
const SHORTEST_PROBE: Duration = Duration::from_secs(10);
/// The longest time limit of a probe, whatever the time limit of a request.
const LONGEST_PROBE: Duration = Duration::from_mins(2);
/// The time for which an open breaker lets no request through. The first request after that starts another probe.
const OPEN_TIME: Duration = Duration::from_secs(10);
/// The time for which requests are repeated while the server answers each of them that it has no capacity (429). Other
/// clients may fill its queue for that long.
const LONGEST_WAIT_FOR_CAPACITY: Duration = Duration::from_mins(1);

/// What is known about the server.
#[derive(Debug, Clone, Default)]
pub(super) struct Breaker(Sender<ServerActivity>);

#[derive(Debug, Default, Clone, Copy)]
struct ServerActivity {
    last_answer: Option<Instant>,
    /// The time of the first request since the last answer.
    waiting_since: Option<Instant>,
    fastest_answer: Option<Duration>,
    /// A request has used up its attempts while the server was away, and no request was answered since.
    is_away: bool,
    /// The time at which the server first answered that it has no capacity, since it last accepted a request.
    full_since: Option<Instant>,
    state: BreakerState,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum BreakerState {
    /// Requests are sent.
    #[default]
    Closed,
    /// A request exceeded its time limit, and no other request was answered in the second half of this time. Perhaps
    /// only this one request is slow, for example because of a slow webhook. So a probe finds out whether the server
    /// answers, and all other requests wait for the result.
    Probing,
    /// The probe was not answered either, at this time: requests are not sent.
    OpenSince(Instant),
}

/// The decision whether a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendDecision {
    /// Send the request.
    Send,
    /// Fail without sending the request: the server does not answer.
    Fail,
    /// Start a probe, which nobody else starts, and ask for a decision again.
    StartProbeAndAskAgain,
}

impl Breaker {
    /// Waits for the end of a probe, if there is one, and decides what becomes of the request. If another probe is due,
    /// claims it for the caller: all other requests wait for its end.
    pub(super) async fn decide_request_or_claim_probe(&self) -> SendDecision {
        let mut changes = self.0.subscribe();
        loop {
            // The sender is part of this value, so it is never closed.
            let _ = changes.wait_for(|seen| seen.state != BreakerState::Probing).await;
            let mut decision = None;
            self.0.send_if_modified(|seen| {
                decision = match seen.state {
                    BreakerState::Closed => Some(SendDecision::Send),
                    BreakerState::OpenSince(since) if since.elapsed() < OPEN_TIME => Some(SendDecision::Fail),
                    BreakerState::OpenSince(_) => Some(SendDecision::StartProbeAndAskAgain),
                    BreakerState::Probing => None,
                };
                let is_probed = decision == Some(SendDecision::StartProbeAndAskAgain);
                if is_probed {
                    seen.state = BreakerState::Probing;
                }
                is_probed
            });
            if let Some(decision) = decision {
                return decision;
            }
        }
    }

    /// Returns the time limit of a probe. The probe ends once no request has been answered for as long as the time
    /// limit of a request: shorter outages are tolerated.
    pub(super) fn probe_time_limit(&self, request_timeout: Duration) -> Duration {
        let last_answer = self.activity().last_answer;
        let left = last_answer.map(|last| request_timeout.saturating_sub(last.elapsed()));
        left.unwrap_or_default().clamp(SHORTEST_PROBE, LONGEST_PROBE)
    }

    /// Returns how long requests have been waiting while none was answered; `None` if no request waits.
    pub(super) fn time_without_answer(&self) -> Option<Duration> {
        self.activity().waiting_since.map(|since| since.elapsed())
    }

    /// Notes that a request is sent, and waits for an answer.
    pub(super) fn note_waiting(&self) {
        self.change_without_waking(|seen| {
            seen.waiting_since.get_or_insert_with(Instant::now);
        });
    }

    /// Notes that a request has failed without an answer. Time counts again from the next request that is sent.
    pub(super) fn note_no_longer_waiting(&self) {
        self.change_without_waking(|seen| seen.waiting_since = None);
    }

    /// Returns the shortest time in which the server has answered; `None` before its first answer.
    pub(super) fn shortest_answer_time(&self) -> Option<Duration> {
        self.activity().fastest_answer
    }

    /// Returns whether requests are not sent.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.activity().state, BreakerState::OpenSince(_))
    }

    /// Notes an answer with this status code after this time, and closes the breaker.
    pub(super) fn note_answer(&self, code: StatusCode, time: Duration) {
        self.0.send_if_modified(|seen| {
            if !may_be_from_proxy(code.as_u16()) {
                seen.fastest_answer = Some(seen.fastest_answer.map_or(time, |fastest| fastest.min(time)));
                seen.is_away = false;
            }
            if code != StatusCode::TOO_MANY_REQUESTS {
                seen.full_since = None;
            }
            seen.waiting_since = None;
            seen.note_answer_and_close()
        });
    }

    /// Closes the breaker, since a probe was answered. The server may still be away for other paths, such as those of
    /// an aggregated API.
    pub(super) fn close_after_probe_answer(&self) {
        self.0.send_if_modified(ServerActivity::note_answer_and_close);
    }

    /// Notes that a request has used up its attempts while the server was away.
    pub(super) fn note_attempts_used_up(&self) {
        self.change_without_waking(|seen| seen.is_away = true);
    }

    /// Returns whether a request has used up its attempts while the server was away, and no request was answered since.
    /// Then other requests are not repeated: if each of a thousand members repeated its request, the run would wait a
    /// thousand times.
    pub(super) fn has_request_used_up_attempts(&self) -> bool {
        self.activity().is_away
    }

    /// Notes that a request exceeded its time limit after this time. Returns whether the caller has to start a probe.
    pub(super) fn try_begin_probing_after_timeout(&self, waited: Duration) -> bool {
        self.0.send_if_modified(|seen| {
            let is_quiet = seen.last_answer.is_none_or(|last| last.elapsed() >= waited / 2);
            let is_suspect = seen.state == BreakerState::Closed && is_quiet;
            if is_suspect {
                seen.state = BreakerState::Probing;
            }
            is_suspect
        })
    }

    /// Notes that the server had no capacity for a request. Returns whether the request may be sent again.
    pub(super) fn note_no_capacity(&self) -> bool {
        let mut full_since = Instant::now();
        self.change_without_waking(|seen| full_since = *seen.full_since.get_or_insert(full_since));
        full_since.elapsed() < LONGEST_WAIT_FOR_CAPACITY
    }

    /// Opens the breaker, since a probe that began at this time was not answered.
    pub(super) fn open_after_probe_timeout(&self, begun: Instant) {
        self.end_probe_if_current(begun, BreakerState::OpenSince(Instant::now()));
    }

    /// Closes the breaker, since a probe that began at this time failed before its time limit. Requests will fail as
    /// fast, and each failure decides whether its request is repeated.
    pub(super) fn close_after_probe_failure(&self, begun: Instant) {
        self.end_probe_if_current(begun, BreakerState::Closed);
    }

    /// Ends the probe that began at this time. Does nothing if an answer has ended that probe already: one that is
    /// under way now is then a later one.
    fn end_probe_if_current(&self, begun: Instant, next_state: BreakerState) {
        self.0.send_if_modified(|seen| {
            let is_current = seen.last_answer.is_none_or(|last| last < begun);
            let is_probed = seen.state == BreakerState::Probing && is_current;
            if is_probed {
                seen.state = next_state;
            }
            is_probed
        });
    }

    /// Makes a change that no request waits for, so that none is woken.
    fn change_without_waking(&self, change: impl FnOnce(&mut ServerActivity)) {
        self.0.send_if_modified(|seen| {
            change(seen);
            false
        });
    }

    fn activity(&self) -> Ref<'_, ServerActivity> {
        self.0.borrow()
    }
}

impl ServerActivity {
    /// Notes an answer, and closes the breaker. Returns whether it was not closed before, so that requests may be
    /// waiting.
    fn note_answer_and_close(&mut self) -> bool {
        self.last_answer = Some(Instant::now());
        std::mem::take(&mut self.state) != BreakerState::Closed
    }
}

/// Returns whether a proxy may have answered in place of the API server.
pub(super) fn may_be_from_proxy(code: u16) -> bool {
    matches!(code, 502..=504)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn answer(breaker: &Breaker) {
        breaker.note_answer(StatusCode::OK, Duration::ZERO);
    }

    /// Returns what becomes of a request; `None` if it waits.
    fn decision(breaker: &Breaker) -> Option<SendDecision> {
        breaker.decide_request_or_claim_probe().now_or_never()
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_request_beside_answered_ones_says_nothing_of_the_server() {
        let breaker = Breaker::default();
        for (since_last_answer, is_suspect) in [(9, false), (10, true)] {
            answer(&breaker);
            tokio::time::advance(Duration::from_secs(since_last_answer)).await;
            assert_eq!(
                breaker.try_begin_probing_after_timeout(Duration::from_secs(20)),
                is_suspect
            );
            assert_eq!(decision(&breaker).is_none(), is_suspect);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_wait_for_the_end_of_a_probe() {
        type End = fn(&Breaker);
        for (end, expected) in [
            (answer as End, SendDecision::Send),
            (|breaker| breaker.close_after_probe_answer(), SendDecision::Send),
            (
                |breaker| breaker.close_after_probe_failure(Instant::now()),
                SendDecision::Send,
            ),
            (
                |breaker| breaker.open_after_probe_timeout(Instant::now()),
                SendDecision::Fail,
            ),
        ] {
            let breaker = Breaker::default();
            assert!(breaker.try_begin_probing_after_timeout(Duration::ZERO));
            // One probe is enough.
            assert!(!breaker.try_begin_probing_after_timeout(Duration::ZERO));
            let mut waiting = Box::pin(breaker.decide_request_or_claim_probe());
            assert_eq!(waiting.as_mut().now_or_never(), None);
            end(&breaker);
            assert_eq!(waiting.now_or_never(), Some(expected));
            assert_eq!(decision(&breaker), Some(expected));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_did_not_answer_is_probed_again() {
        let breaker = Breaker::default();
        assert!(breaker.try_begin_probing_after_timeout(Duration::ZERO));
        breaker.open_after_probe_timeout(Instant::now());
        assert_eq!(decision(&breaker), Some(SendDecision::Fail));
        tokio::time::advance(OPEN_TIME).await;
        assert_eq!(decision(&breaker), Some(SendDecision::StartProbeAndAskAgain));
        assert_eq!(decision(&breaker), None);
        answer(&breaker);
        assert_eq!(decision(&breaker), Some(SendDecision::Send));
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_an_answer_has_ended_does_not_end_the_next_one() {
        let breaker = Breaker::default();
        assert!(breaker.try_begin_probing_after_timeout(Duration::ZERO));
        let begun = Instant::now();
        tokio::time::advance(Duration::from_secs(1)).await;
        answer(&breaker);
        assert!(breaker.try_begin_probing_after_timeout(Duration::ZERO));
        breaker.open_after_probe_timeout(begun);
        assert_eq!(decision(&breaker), None);
        tokio::time::advance(Duration::from_secs(1)).await;
        breaker.open_after_probe_timeout(Instant::now());
        assert_eq!(decision(&breaker), Some(SendDecision::Fail));
        // An answer that comes late counts, too.
        answer(&breaker);
        assert_eq!(decision(&breaker), Some(SendDecision::Send));
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_lasts_as_long_as_a_request_may() {
        let limit = Duration::from_secs(75);
        let breaker = Breaker::default();
        assert_eq!(breaker.probe_time_limit(limit), SHORTEST_PROBE);
        for (quiet, expected) in [(5, 70), (70, 10), (80, 10)] {
            answer(&breaker);
            tokio::time::advance(Duration::from_secs(quiet)).await;
            assert_eq!(breaker.probe_time_limit(limit).as_secs(), expected);
        }
    }

    #[test]
    fn only_an_answer_of_the_server_to_a_request_says_that_it_is_there_again() {
        for (code, is_away) in [
            (200, false),
            (404, false),
            (429, false),
            (500, false),
            (502, true),
            (503, true),
            (504, true),
        ] {
            let breaker = Breaker::default();
            breaker.note_attempts_used_up();
            breaker.close_after_probe_answer();
            assert!(breaker.has_request_used_up_attempts());
            breaker.note_answer(StatusCode::from_u16(code).expect("a status code"), Duration::ZERO);
            assert_eq!(breaker.has_request_used_up_attempts(), is_away, "{code}");
            assert_eq!(decision(&breaker), Some(SendDecision::Send));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_request_waits_for_a_full_server() {
        let breaker = Breaker::default();
        for _ in 0..2 {
            assert!(breaker.note_no_capacity());
            tokio::time::advance(LONGEST_WAIT_FOR_CAPACITY / 2).await;
            assert!(breaker.note_no_capacity());
            tokio::time::advance(LONGEST_WAIT_FOR_CAPACITY / 2).await;
            assert!(!breaker.note_no_capacity());
            breaker.note_answer(StatusCode::TOO_MANY_REQUESTS, Duration::ZERO);
            assert!(!breaker.note_no_capacity(), "another request does not wait");
            answer(&breaker);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_wait_from_the_first_one_after_the_last_answer() {
        let breaker = Breaker::default();
        assert_eq!(breaker.time_without_answer(), None);
        for end in [answer as fn(&Breaker), Breaker::note_no_longer_waiting] {
            breaker.note_waiting();
            tokio::time::advance(Duration::from_secs(3)).await;
            breaker.note_waiting();
            assert_eq!(breaker.time_without_answer(), Some(Duration::from_secs(3)));
            end(&breaker);
            assert_eq!(breaker.time_without_answer(), None);
        }
    }

    #[test]
    fn only_a_faster_answer_counts() {
        let breaker = Breaker::default();
        assert_eq!(breaker.shortest_answer_time(), None);
        breaker.note_answer(StatusCode::BAD_GATEWAY, Duration::from_millis(1));
        for milliseconds in [30, 20, 40] {
            breaker.note_answer(StatusCode::OK, Duration::from_millis(milliseconds));
        }
        assert_eq!(breaker.shortest_answer_time(), Some(Duration::from_millis(20)));
    }
}
