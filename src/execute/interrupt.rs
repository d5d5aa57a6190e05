//! The interrupt of a run: no new write starts once it is requested, except the creation of what was deleted to be
//! recreated (docs/decisions/recreation.md).
//!
//! Signals and time limits are handled in `session`.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::event::Ending;

/// A request to stop that only becomes more urgent. It can be made from anywhere, and awaited.
#[derive(Debug, Clone)]
pub struct Interrupt {
    urgency: watch::Sender<Urgency>,
    cause: watch::Sender<Cause>,
    /// The end of its time, once that has come.
    time_over: Arc<OnceLock<Instant>>,
}

/// The cause of an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    User,
    /// Its time is over.
    Time,
}

impl Cause {
    /// Returns the reason why something was not done.
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
    /// Nothing is awaited.
    StopAtOnce,
    /// It was requested a third time.
    Leave,
}

impl Default for Interrupt {
    fn default() -> Self {
        Self {
            urgency: watch::Sender::new(Urgency::Continue),
            cause: watch::Sender::new(Cause::User),
            time_over: Arc::default(),
        }
    }
}

impl Interrupt {
    /// Requests a stop, more urgently each time, and returns the urgency.
    ///
    /// `report` is called with the urgency before others can read it. So no write starts after the report,
    /// and no run ends before it. `report` must not read the urgency: that would wait forever.
    pub fn request(&self, report: impl FnOnce(Urgency)) -> Urgency {
        let mut now = Urgency::Stop;
        self.urgency.send_modify(|urgency| {
            now = match urgency {
                Urgency::Continue => Urgency::Stop,
                Urgency::Stop => Urgency::StopAtOnce,
                Urgency::StopAtOnce | Urgency::Leave => Urgency::Leave,
            };
            report(now);
            *urgency = now;
        });
        now
    }

    /// Raises the urgency to at least this because the time of the run is over, which is the cause only if the
    /// user has not requested a stop before.
    pub fn raise_by_timeout(&self, least: Urgency) {
        self.time_over.get_or_init(Instant::now);
        self.urgency.send_modify(|urgency| {
            if *urgency == Urgency::Continue {
                self.cause.send_replace(Cause::Time);
            }
            *urgency = least.max(*urgency);
        });
    }

    /// Returns whether the time of the run has been over for this long, whatever the cause of the interrupt.
    pub fn is_time_over_for(&self, time: Duration) -> bool {
        self.time_over.get().is_some_and(|since| since.elapsed() >= time)
    }

    /// Returns the cause of the interrupt.
    pub fn cause(&self) -> Cause {
        *self.cause.borrow()
    }

    /// Returns whether the run has to stop.
    pub fn is_requested(&self) -> bool {
        *self.urgency.borrow() >= Urgency::Stop
    }

    /// Returns whether it has to stop without waiting for requests in flight.
    #[cfg(test)]
    pub fn is_insisted(&self) -> bool {
        *self.urgency.borrow() >= Urgency::StopAtOnce
    }

    /// Returns how a run ends after a failure: one that has to stop ends for that reason.
    pub fn ending_after_failure(&self) -> Ending {
        if self.is_requested() {
            Ending::Interrupted
        } else {
            Ending::Incomplete
        }
    }

    /// Returns once the run has to stop.
    pub async fn requested(&self) {
        self.at_least(Urgency::Stop).await;
    }

    /// Returns once the run has to stop without waiting for requests in flight.
    pub async fn insisted(&self) {
        self.at_least(Urgency::StopAtOnce).await;
    }

    async fn at_least(&self, least: Urgency) {
        let mut urgency = self.urgency.subscribe();
        // The sender lives as long as this borrow, so it cannot be closed.
        let _ = urgency.wait_for(|urgency| *urgency >= least).await;
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
        let urgency = interrupt.request(|_| {
            thread::spawn(move || answer.send(asking.is_requested()));
            // A reader has to wait now; the pause only gives a wrong answer time to show.
            let early = answered.recv_timeout(Duration::from_millis(50));
            assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout));
        });
        assert_eq!(urgency, Urgency::Stop);
        assert_eq!(answered.recv(), Ok(true));
    }
}
