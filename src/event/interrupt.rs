//! The interrupt of a run: once it is requested, no new write starts. The exception is the creation of an object that
//! the run has deleted to recreate it (docs/decisions/recreation.md).
//!
//! Signals and time limits are handled in `session`.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::Ending;

/// A request to stop, whose urgency only rises. Clones share the urgency; tasks can raise it, read it and wait for it.
#[derive(Debug, Clone)]
pub struct Interrupt {
    urgency: watch::Sender<Urgency>,
    cause: watch::Sender<InterruptCause>,
    /// The moment at which the time of the run was over; empty before.
    time_over: Arc<OnceLock<Instant>>,
}

/// The cause of an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptCause {
    /// The user stopped the run.
    User,
    /// The time of the run was over before the user stopped it.
    Time,
}

impl InterruptCause {
    /// Returns the reason to report for what the run has not done.
    pub fn reason(self) -> &'static str {
        match self {
            Self::User => "the run was interrupted",
            Self::Time => "--timeout ran out",
        }
    }
}

/// The urgency of an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// No interrupt.
    Continue,
    /// Requests in flight are awaited, and no new ones start.
    Stop,
    /// Requests in flight are not awaited.
    StopAtOnce,
    /// The user requested a third time to stop: the process exits.
    Leave,
}

impl Default for Interrupt {
    fn default() -> Self {
        Self {
            urgency: watch::Sender::new(Urgency::Continue),
            cause: watch::Sender::new(InterruptCause::User),
            time_over: Arc::default(),
        }
    }
}

impl Interrupt {
    /// Requests a stop, more urgently each time, and returns the urgency.
    ///
    /// `report` is called with the new urgency before other tasks can read it. So no write starts after the report, and
    /// no run ends before the report. `report` must not read the urgency: that would deadlock.
    pub fn request_more_urgently(&self, report: impl FnOnce(Urgency)) -> Urgency {
        let mut raised = Urgency::Stop;
        self.urgency.send_modify(|urgency| {
            raised = match urgency {
                Urgency::Continue => Urgency::Stop,
                Urgency::Stop => Urgency::StopAtOnce,
                Urgency::StopAtOnce | Urgency::Leave => Urgency::Leave,
            };
            report(raised);
            *urgency = raised;
        });
        raised
    }

    /// Raises the urgency to at least `least`, because the time of the run is over. That is the cause of the interrupt
    /// unless the user has requested a stop before.
    pub fn raise_by_timeout(&self, least: Urgency) {
        self.time_over.get_or_init(Instant::now);
        self.urgency.send_modify(|urgency| {
            if *urgency == Urgency::Continue {
                self.cause.send_replace(InterruptCause::Time);
            }
            *urgency = least.max(*urgency);
        });
    }

    /// Returns whether `--timeout` ran out at least this long ago. It does not matter whether the user had stopped the
    /// run before.
    pub fn is_timeout_older_than(&self, time: Duration) -> bool {
        self.time_over.get().is_some_and(|since| since.elapsed() >= time)
    }

    /// Returns the cause of the interrupt; `User` if none is requested.
    pub fn cause(&self) -> InterruptCause {
        *self.cause.borrow()
    }

    /// Returns whether the run has to stop.
    pub fn is_requested(&self) -> bool {
        *self.urgency.borrow() >= Urgency::Stop
    }

    /// Returns how a run ends after a failure: as interrupted if the run has to stop, since that may be the cause.
    pub fn ending_after_failure(&self) -> Ending {
        if self.is_requested() {
            Ending::Interrupted
        } else {
            Ending::Incomplete
        }
    }

    /// Waits until the run has to stop.
    pub async fn wait_until_requested(&self) {
        self.wait_until_at_least(Urgency::Stop).await;
    }

    /// Runs `work` until the user insists on an end, by a second Ctrl-C, or until `--timeout` has run out and its grace
    /// period is over too. Returns `None` then: `work` is dropped at its next await, and requests in flight are not
    /// waited for. Only the next run can find out whether they took effect.
    pub async fn run_until_stop_at_once<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            result = work => Some(result),
            () = self.wait_until_at_least(Urgency::StopAtOnce) => None,
        }
    }

    /// Runs the work of a command until the user insists on an end (`run_until_stop_at_once`), and returns how it ends.
    pub async fn run_command_until_stop_at_once<E>(
        &self,
        work: impl Future<Output = Result<Ending, E>>,
    ) -> Result<Ending, E> {
        let ending = self.run_until_stop_at_once(work).await;
        ending.unwrap_or(Ok(Ending::Interrupted))
    }

    async fn wait_until_at_least(&self, least: Urgency) {
        let mut urgency = self.urgency.subscribe();
        // An error would mean that the channel is closed. `self` holds the sender, so the channel stays open.
        let _ = urgency.wait_for(|urgency| *urgency >= least).await;
    }

    /// Returns whether the run has to stop without waiting for requests in flight.
    #[cfg(test)]
    pub fn has_to_stop_at_once(&self) -> bool {
        *self.urgency.borrow() >= Urgency::StopAtOnce
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn a_request_to_stop_is_visible_only_after_its_report() {
        let interrupt = Interrupt::default();
        let asking = interrupt.clone();
        let (answer, answered) = mpsc::channel();
        let urgency = interrupt.request_more_urgently(|_| {
            thread::spawn(move || answer.send(asking.is_requested()));
            // A reader has to wait now; the pause only gives a wrong answer time to show.
            let early = answered.recv_timeout(Duration::from_millis(50));
            assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout));
        });
        assert_eq!(urgency, Urgency::Stop);
        assert_eq!(answered.recv(), Ok(true));
    }
}
