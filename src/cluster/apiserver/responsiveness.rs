//! Tracks whether the API server still answers, so that a run over a connection that has gone silent, such
//! as a VPN that is down, ends after one time limit of a request rather than one for each object
//! (docs/decisions/failures.md).
//!
//! `retry::Reachability` is for a server that refuses connections, which shows at once.

use std::time::Duration;

use tokio::sync::watch::{Ref, Sender};
use tokio::time::Instant;

/// The least time that the server has for an answer to a probe.
const SHORTEST_PROBE: Duration = Duration::from_secs(10);
/// The most, whatever the time limit of a request.
const LONGEST_PROBE: Duration = Duration::from_mins(2);
/// The time after a probe without an answer in which requests are not sent. The next one after it starts
/// another probe.
const SILENCE: Duration = Duration::from_secs(10);

/// Responsiveness of the server, as known to all requests of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Responsiveness(Sender<Seen>);

#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    last_answer: Option<Instant>,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Answers,
    /// A request exceeded its time limit, and no other was answered in the second half of this time. It may be
    /// slow by itself, as with a slow webhook, so a probe finds out.
    Probed,
    /// The probe was not answered either.
    SilentSince(Instant),
}

/// What becomes of a request that is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is sent.
    Send,
    /// It is not sent: the server does not answer.
    GiveUp,
    /// The caller has to start a probe, and to ask again.
    Probe,
}

impl Responsiveness {
    /// Waits for the end of a probe, and returns what becomes of a request then.
    pub(super) async fn turn(&self) -> Turn {
        let mut changes = self.0.subscribe();
        loop {
            // The sender is part of this value, so it is never closed.
            let _ = changes.wait_for(|seen| seen.state != State::Probed).await;
            let mut turn = None;
            self.0.send_if_modified(|seen| {
                turn = match seen.state {
                    State::Answers => Some(Turn::Send),
                    State::SilentSince(since) if since.elapsed() >= SILENCE => Some(Turn::Probe),
                    State::SilentSince(_) => Some(Turn::GiveUp),
                    State::Probed => None,
                };
                let is_probed = turn == Some(Turn::Probe);
                if is_probed {
                    seen.state = State::Probed;
                }
                is_probed
            });
            if let Some(turn) = turn {
                return turn;
            }
        }
    }

    /// Returns how long a probe lasts: until nothing has been answered for the time limit of a request, since
    /// an outage may be shorter.
    pub(super) fn probe_time(&self, request_timeout: Duration) -> Duration {
        let last_answer = self.seen().last_answer;
        let left = last_answer.map(|last| request_timeout.saturating_sub(last.elapsed()));
        left.unwrap_or_default().clamp(SHORTEST_PROBE, LONGEST_PROBE)
    }

    /// Returns whether any answer has come.
    pub(super) fn has_answered(&self) -> bool {
        self.seen().last_answer.is_some()
    }

    /// Returns whether the last probe was not answered.
    pub(super) fn is_silent(&self) -> bool {
        matches!(self.seen().state, State::SilentSince(_))
    }

    /// Notes an answer, whatever it says.
    pub(super) fn answered(&self) {
        self.0.send_if_modified(|seen| {
            seen.last_answer = Some(Instant::now());
            std::mem::take(&mut seen.state) != State::Answers
        });
    }

    /// Notes that a request got no answer in this time. Returns whether the caller has to start a probe.
    pub(super) fn not_answered(&self, waited: Duration) -> bool {
        self.0.send_if_modified(|seen| {
            let is_quiet = seen.last_answer.is_none_or(|last| last.elapsed() >= waited / 2);
            let is_suspect = seen.state == State::Answers && is_quiet;
            if is_suspect {
                seen.state = State::Probed;
            }
            is_suspect
        })
    }

    /// Ends a probe of this time that was not answered.
    pub(super) fn probe_not_answered(&self, begun: Instant) {
        self.end_probe(begun, State::SilentSince(Instant::now()));
    }

    /// Ends a probe of this time that failed at once. So do the requests, which are repeated or not by what
    /// they find.
    pub(super) fn probe_failed(&self, begun: Instant) {
        self.end_probe(begun, State::Answers);
    }

    /// Ends a probe, unless an answer has ended it: the current one is a later one then.
    fn end_probe(&self, begun: Instant, state: State) {
        self.0.send_if_modified(|seen| {
            let is_current = seen.last_answer.is_none_or(|last| last < begun);
            let is_probed = seen.state == State::Probed && is_current;
            if is_probed {
                seen.state = state;
            }
            is_probed
        });
    }

    fn seen(&self) -> Ref<'_, Seen> {
        self.0.borrow()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// Returns what becomes of a request; `None` if it waits.
    fn turn(server: &Responsiveness) -> Option<Turn> {
        server.turn().now_or_never()
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_request_beside_answered_ones_says_nothing_of_the_server() {
        let server = Responsiveness::default();
        for (since_last_answer, is_suspect) in [(9, false), (10, true)] {
            server.answered();
            tokio::time::advance(Duration::from_secs(since_last_answer)).await;
            assert_eq!(server.not_answered(Duration::from_secs(20)), is_suspect);
            assert_eq!(turn(&server).is_none(), is_suspect);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_wait_for_the_end_of_a_probe() {
        type End = fn(&Responsiveness);
        for (end, expected) in [
            ((|server| server.answered()) as End, Turn::Send),
            (|server| server.probe_failed(Instant::now()), Turn::Send),
            (|server| server.probe_not_answered(Instant::now()), Turn::GiveUp),
        ] {
            let server = Responsiveness::default();
            assert!(server.not_answered(Duration::ZERO));
            // One probe is enough.
            assert!(!server.not_answered(Duration::ZERO));
            let mut waiting = Box::pin(server.turn());
            assert_eq!(waiting.as_mut().now_or_never(), None);
            end(&server);
            assert_eq!(waiting.now_or_never(), Some(expected));
            assert_eq!(turn(&server), Some(expected));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_server_is_probed_again() {
        let server = Responsiveness::default();
        assert!(server.not_answered(Duration::ZERO));
        server.probe_not_answered(Instant::now());
        assert_eq!(turn(&server), Some(Turn::GiveUp));
        tokio::time::advance(SILENCE).await;
        assert_eq!(turn(&server), Some(Turn::Probe));
        assert_eq!(turn(&server), None);
        server.answered();
        assert_eq!(turn(&server), Some(Turn::Send));
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_an_answer_has_ended_does_not_end_the_next_one() {
        let server = Responsiveness::default();
        assert!(server.not_answered(Duration::ZERO));
        let begun = Instant::now();
        tokio::time::advance(Duration::from_secs(1)).await;
        server.answered();
        assert!(server.not_answered(Duration::ZERO));
        server.probe_not_answered(begun);
        assert_eq!(turn(&server), None);
        tokio::time::advance(Duration::from_secs(1)).await;
        server.probe_not_answered(Instant::now());
        assert_eq!(turn(&server), Some(Turn::GiveUp));
        // An answer that comes late counts, too.
        server.answered();
        assert_eq!(turn(&server), Some(Turn::Send));
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_lasts_as_long_as_a_request_may() {
        let limit = Duration::from_secs(75);
        let server = Responsiveness::default();
        assert_eq!(server.probe_time(limit), SHORTEST_PROBE);
        for (quiet, expected) in [(5, 70), (70, 10), (80, 10)] {
            server.answered();
            tokio::time::advance(Duration::from_secs(quiet)).await;
            assert_eq!(server.probe_time(limit).as_secs(), expected);
        }
    }
}
