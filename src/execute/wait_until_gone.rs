//! Waits until objects that are being deleted are gone: how often a run checks, when it reports that it waits, and what
//! ends the wait. The callers look, and know what is left.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Interrupt;
use super::wait_notes::SLOW;
use crate::model::live::Live;
use crate::model::text::{format_duration, listed};

/// The pause before the second look; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between two looks.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The wait once `--timeout` ran out: shorter than the time after which nothing is awaited any more (`LAST_REQUESTS` in
/// `session/time_limit`), so that the run still ends with a result.
const LAST_WAIT_AFTER_TIMEOUT: Duration = Duration::from_secs(3);

/// A wait until objects are gone.
pub(super) struct WaitUntilGone<'a> {
    interrupt: &'a Interrupt,
    stops_with: StopsWith,
    begun: Instant,
    pause: Duration,
    is_reported: bool,
}

/// The request that ends a wait before its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopsWith {
    /// Stopping the run.
    Interrupt,
    /// The end of the run's time, a moment later: what it has half done is completed.
    Timeout,
}

impl<'a> WaitUntilGone<'a> {
    pub(super) fn begin(interrupt: &'a Interrupt, stops_with: StopsWith) -> Self {
        Self {
            interrupt,
            stops_with,
            begun: Instant::now(),
            pause: FIRST_PAUSE,
            is_reported: false,
        }
    }

    /// Pauses before the next look. `report` is called once, if the wait takes long.
    ///
    /// # Errors
    ///
    /// The reason why the wait is over: the run has to stop, or the time limit of the objects is over.
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
        let left = limit.map_or(self.pause, |limit| limit.saturating_sub(waited));
        tokio::select! {
            () = self.interrupt.requested(), if self.stops_with == StopsWith::Interrupt => {}
            () = sleep(left.min(self.pause)) => {}
        }
        self.pause = LONGEST_PAUSE.min(self.pause * 2);
        let is_stopped = match self.stops_with {
            StopsWith::Interrupt => self.interrupt.is_requested(),
            StopsWith::Timeout => self.interrupt.is_time_over_for(LAST_WAIT_AFTER_TIMEOUT),
        };
        if is_stopped {
            return Err(self.interrupt.cause().reason().to_owned());
        }
        Ok(())
    }
}

/// Returns what a run reports about a wait for these objects.
pub(super) fn report_of<'l>(going: impl IntoIterator<Item = &'l Live>) -> String {
    let going = listed(going.into_iter().map(with_reasons));
    format!("waiting for {going} to be deleted")
}

/// Returns an object with what its deletion waits for.
pub(super) fn with_reasons(live: &Live) -> String {
    if live.waits_for.is_empty() {
        live.key.to_string()
    } else {
        format!("{} ({})", live.key, live.waits_for.join("; "))
    }
}
