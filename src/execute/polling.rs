//! Waits for what only reading shows: how often a run reads, when it reports that it waits, and what ends the wait. The
//! callers read, and pause between two reads with [`Polling::pause`].

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::wait_notes::SLOW;
use crate::event::Interrupt;
use crate::model::text::format_duration;

/// The pause between the first two reads; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between two reads. A run may wait for hundreds of kinds while the server is busy with their CRDs,
/// so the reads must not be frequent.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The time for which a wait continues after `--timeout` ran out. It is shorter than `GRACE_PERIOD` in
/// `session/time_limit`, after which the run ends without waiting for anything: so there is time to report a result.
const LAST_WAIT_AFTER_TIMEOUT: Duration = Duration::from_secs(3);

/// A wait that reads again and again.
pub(super) struct Polling<'a> {
    interrupt: &'a Interrupt,
    stops_with: StopsWith,
    begun: Instant,
    /// The length of the next pause.
    next_pause: Duration,
    is_reported: bool,
}

/// The event that ends a wait before its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopsWith {
    /// The wait ends as soon as the run has to stop.
    Interrupt,
    /// The wait ends a few seconds after `--timeout` ran out. Ctrl-C does not end it, since the run has to complete
    /// what it has half done.
    Timeout,
}

impl<'a> Polling<'a> {
    pub(super) fn begin(interrupt: &'a Interrupt, stops_with: StopsWith) -> Self {
        Self {
            interrupt,
            stops_with,
            begun: Instant::now(),
            next_pause: FIRST_PAUSE,
            is_reported: false,
        }
    }

    /// Pauses before the next read. `limit` is the time limit of the whole wait. `report` is called once, when the wait
    /// has taken long.
    ///
    /// # Errors
    ///
    /// The reason why the wait is over: the run has to stop, or the limit is reached.
    pub(super) async fn pause(
        &mut self,
        limit: Option<Duration>,
        report: impl FnOnce(),
    ) -> Result<(), String> {
        let waited = self.begun.elapsed();
        if let Some(limit) = limit.filter(|limit| waited >= *limit) {
            let limit = format_duration(limit);
            return Err(format!("timed out waiting for the condition after {limit}"));
        }
        if waited >= SLOW && !std::mem::replace(&mut self.is_reported, true) {
            report();
        }
        let until_limit = limit.map_or(Duration::MAX, |limit| limit.saturating_sub(waited));
        tokio::select! {
            () = self.interrupt.wait_until_requested(), if self.stops_with == StopsWith::Interrupt => {}
            () = sleep(self.next_pause.min(until_limit)) => {}
        }
        self.next_pause = LONGEST_PAUSE.min(self.next_pause * 2);
        let cause = self.interrupt.cause().filter(|_| match self.stops_with {
            StopsWith::Interrupt => true,
            StopsWith::Timeout => self.interrupt.has_been_timed_out_for(LAST_WAIT_AFTER_TIMEOUT),
        });
        cause.map_or(Ok(()), |cause| Err(cause.reason().to_owned()))
    }
}
