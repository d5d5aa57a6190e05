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
    /// What has requested the first stop; empty before.
    cause: Arc<OnceLock<InterruptCause>>,
    /// The moment at which `--timeout` ran out; empty before.
    timed_out_at: Arc<OnceLock<Instant>>,
}

/// The cause of an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptCause {
    /// The user stopped the run.
    User,
    /// `--timeout` ran out before the user stopped the run.
    Timeout,
}

impl InterruptCause {
    /// Returns the reason to report for what the run has not done.
    pub fn reason(self) -> &'static str {
        match self {
            Self::User => "the run was interrupted",
            Self::Timeout => "--timeout ran out",
        }
    }
}

/// The urgency of an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// No stop is requested.
    None,
    /// Requests in flight are awaited, and no new ones start.
    Stop,
    /// Requests in flight are not awaited.
    StopAtOnce,
    /// The user asked a third time: the process exits at once.
    Exit,
}

impl Default for Interrupt {
    fn default() -> Self {
        Self {
            urgency: watch::Sender::new(Urgency::None),
            cause: Arc::default(),
            timed_out_at: Arc::default(),
        }
    }
}

impl Interrupt {
    /// Requests a stop, more urgently each time, and returns the urgency.
    ///
    /// `report` is called with the new urgency before other tasks can read it. So no task that reads the urgency after
    /// the report sees the one before it, and no run ends before the report. `report` must not read the urgency: that
    /// would deadlock.
    pub fn request_more_urgently(&self, report: impl FnOnce(Urgency)) -> Urgency {
        let mut raised = Urgency::Stop;
        self.urgency.send_modify(|urgency| {
            raised = match urgency {
                Urgency::None => Urgency::Stop,
                Urgency::Stop => Urgency::StopAtOnce,
                Urgency::StopAtOnce | Urgency::Exit => Urgency::Exit,
            };
            report(raised);
            self.cause.get_or_init(|| InterruptCause::User);
            *urgency = raised;
        });
        raised
    }

    /// Raises the urgency to at least `least`, because `--timeout` ran out. That is the cause of the interrupt unless
    /// the user has requested a stop before.
    pub fn raise_by_timeout(&self, least: Urgency) {
        self.timed_out_at.get_or_init(Instant::now);
        self.urgency.send_modify(|urgency| {
            self.cause.get_or_init(|| InterruptCause::Timeout);
            *urgency = least.max(*urgency);
        });
    }

    /// Returns whether `--timeout` ran out at least this long ago. It does not matter whether the user had stopped the
    /// run before.
    pub fn has_been_timed_out_for(&self, duration: Duration) -> bool {
        self.timed_out_at
            .get()
            .is_some_and(|since| since.elapsed() >= duration)
    }

    /// Returns the cause of the interrupt, if one is requested.
    pub fn cause(&self) -> Option<InterruptCause> {
        self.cause.get().copied()
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

    /// Runs `work` until the user presses Ctrl-C a second time, or until `--timeout` has run out and its grace period is
    /// over too. Returns `None` then: `work` is dropped at its next await, and requests in flight are not waited for.
    /// Only the next run can find out whether they took effect.
    pub async fn run_unless_aborted<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            result = work => Some(result),
            () = self.wait_until_at_least(Urgency::StopAtOnce) => None,
        }
    }

    /// Runs the work of a command unless it is aborted (`run_unless_aborted`), and returns how it ends.
    pub async fn run_command_unless_aborted<E>(
        &self,
        work: impl Future<Output = Result<Ending, E>>,
    ) -> Result<Ending, E> {
        let ending = self.run_unless_aborted(work).await;
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
        let reader = interrupt.clone();
        let (sender, receiver) = mpsc::channel();
        let urgency = interrupt.request_more_urgently(|_| {
            thread::spawn(move || sender.send(reader.is_requested()));
            // A reader has to wait now; the pause only gives a wrong answer time to show.
            let early = receiver.recv_timeout(Duration::from_millis(50));
            assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout));
        });
        assert_eq!(urgency, Urgency::Stop);
        assert_eq!(receiver.recv(), Ok(true));
    }
}
