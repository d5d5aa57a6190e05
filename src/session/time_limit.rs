//! The time limit of a run, which stops while a question is open.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::execute::{Interrupt, Urgency};
use crate::wait::wait_until;

/// The time to wait for requests in flight when the time of a run is over.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// The end of a run; `None` without a limit, and while a question is open.
#[derive(Debug, Clone)]
pub struct TimeLimit(watch::Sender<Option<Instant>>);

impl TimeLimit {
    /// A run without a limit.
    pub fn none() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Stops the run when this time is over, as if the user had interrupted it; a moment later without
    /// waiting for requests.
    pub fn begin(time: Duration, interrupt: Interrupt) -> Self {
        let (limit, mut end) = watch::channel(Instant::now().checked_add(time));
        tokio::spawn(async move {
            wait_until_over(&mut end).await;
            interrupt.raise_by_timeout(Urgency::Stop);
            sleep(LAST_REQUESTS).await;
            interrupt.raise_by_timeout(Urgency::StopAtOnce);
        });
        Self(limit)
    }

    /// Returns when the run ends, if it has a limit.
    pub fn end(&self) -> Option<Instant> {
        *self.0.borrow()
    }

    /// Waits for the answer to a question. The time until then does not count.
    pub async fn stopped_during<T>(&self, question: impl Future<Output = T>) -> T {
        let asked = Instant::now();
        let end = self.0.send_replace(None);
        let answer = question.await;
        self.0.send_replace(end.map(|end| end + asked.elapsed()));
        answer
    }
}

/// Returns once the time is over.
async fn wait_until_over(end: &mut watch::Receiver<Option<Instant>>) {
    loop {
        let now = *end.borrow_and_update();
        tokio::select! {
            () = wait_until(now) => return,
            changed = end.changed() => if changed.is_err() {
                return wait_until(now).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::Cause;

    #[tokio::test(start_paused = true)]
    async fn time_at_a_question_does_not_count_and_all_other_time_does() {
        let interrupt = Interrupt::default();
        let limit = TimeLimit::begin(Duration::from_secs(10), interrupt.clone());
        sleep(Duration::from_secs(6)).await;
        limit.stopped_during(sleep(Duration::from_mins(1))).await;
        assert_eq!(limit.end(), Some(Instant::now() + Duration::from_secs(4)));
        sleep(Duration::from_secs(3)).await;
        assert!(!interrupt.is_requested());
        sleep(Duration::from_secs(2)).await;
        assert!(interrupt.is_requested() && !interrupt.is_insisted());
        sleep(LAST_REQUESTS).await;
        assert!(interrupt.is_insisted());
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_run_that_was_interrupted_before_ends_as_well() {
        let interrupt = Interrupt::default();
        let _limit = TimeLimit::begin(Duration::from_secs(10), interrupt.clone());
        sleep(Duration::from_secs(2)).await;
        interrupt.request(|_| {});
        sleep(Duration::from_secs(9)).await;
        assert!(!interrupt.is_insisted());
        sleep(LAST_REQUESTS).await;
        assert!(interrupt.is_insisted());
        assert_eq!(interrupt.cause(), Cause::User);
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_beyond_all_time_is_none() {
        let limit = TimeLimit::begin(Duration::MAX, Interrupt::default());
        assert_eq!(limit.end(), None);
        assert_eq!(TimeLimit::none().end(), None);
    }
}
