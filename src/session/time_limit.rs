//! The time limit of a run (`--timeout`). The time that a question to the user is open does not count.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::event::{Interrupt, Urgency};
use crate::wait::wait_until_time_or_forever;

/// The time that the requests in flight have to finish once `--timeout` ran out.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// The time limit of a run. Clones share it.
#[derive(Debug, Clone)]
pub struct TimeLimit {
    /// The time at which the run is stopped; `None` if it has no limit, and while a question is open.
    deadline: watch::Sender<Option<Instant>>,
}

impl TimeLimit {
    /// Creates the time limit of a run that may take any time.
    pub fn unlimited() -> Self {
        Self {
            deadline: watch::Sender::new(None),
        }
    }

    /// Starts the time of a run. When it is over, the run stops as after Ctrl-C; if its requests in flight then take
    /// longer than [`GRACE_PERIOD`], it stops as after a second Ctrl-C.
    ///
    /// A deadline beyond what an `Instant` can express is centuries away, so such a run has no limit.
    pub fn start(time: Duration, interrupt: Interrupt) -> Self {
        let (deadline, mut watched) = watch::channel(Instant::now().checked_add(time));
        tokio::spawn(async move {
            wait_until_reached(&mut watched).await;
            interrupt.raise_by_timeout(Urgency::Stop);
            sleep(GRACE_PERIOD).await;
            interrupt.raise_by_timeout(Urgency::StopAtOnce);
        });
        Self { deadline }
    }

    /// Returns the time at which the run is stopped; `None` if it has no limit, and while a question is open.
    pub fn deadline(&self) -> Option<Instant> {
        *self.deadline.borrow()
    }

    /// Waits for the answer to a question, and moves the deadline by the time that the user took.
    ///
    /// If this future is dropped before the answer, the run is left without a limit. Only an interrupt drops it, and
    /// the run ends then.
    pub async fn pause_during<T>(&self, question: impl Future<Output = T>) -> T {
        let asked = Instant::now();
        let deadline = self.deadline.send_replace(None);
        let answer = question.await;
        self.deadline
            .send_replace(deadline.map(|deadline| deadline + asked.elapsed()));
        answer
    }
}

/// Waits until the deadline is reached, also if it is moved in the meantime.
async fn wait_until_reached(watched: &mut watch::Receiver<Option<Instant>>) {
    loop {
        let deadline = *watched.borrow_and_update();
        tokio::select! {
            () = wait_until_time_or_forever(deadline) => return,
            moved = watched.changed() => if moved.is_err() {
                // Every `TimeLimit` of the run was dropped, so nothing moves the deadline any more.
                return wait_until_time_or_forever(deadline).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::InterruptCause;

    #[tokio::test(start_paused = true)]
    async fn time_at_a_question_does_not_count_and_all_other_time_does() {
        let interrupt = Interrupt::default();
        let limit = TimeLimit::start(Duration::from_secs(10), interrupt.clone());
        sleep(Duration::from_secs(6)).await;
        limit.pause_during(sleep(Duration::from_mins(1))).await;
        assert_eq!(limit.deadline(), Some(Instant::now() + Duration::from_secs(4)));
        sleep(Duration::from_secs(3)).await;
        assert!(!interrupt.is_requested());
        sleep(Duration::from_secs(2)).await;
        assert!(interrupt.is_requested() && !interrupt.has_to_stop_at_once());
        sleep(GRACE_PERIOD).await;
        assert!(interrupt.has_to_stop_at_once());
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_run_that_was_interrupted_before_ends_as_well() {
        let interrupt = Interrupt::default();
        let _limit = TimeLimit::start(Duration::from_secs(10), interrupt.clone());
        sleep(Duration::from_secs(2)).await;
        interrupt.request_more_urgently(|_| {});
        sleep(Duration::from_secs(9)).await;
        assert!(!interrupt.has_to_stop_at_once());
        sleep(GRACE_PERIOD).await;
        assert!(interrupt.has_to_stop_at_once());
        assert_eq!(interrupt.cause(), Some(InterruptCause::User));
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_beyond_all_time_is_none() {
        let limit = TimeLimit::start(Duration::MAX, Interrupt::default());
        assert_eq!(limit.deadline(), None);
        assert_eq!(TimeLimit::unlimited().deadline(), None);
    }
}
