//! Tracks how long the last read of the members is current enough to judge deletes.

use std::cell::Cell;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// The time for which a judgement of deletes holds.
pub const JUDGED_FOR: Duration = Duration::from_secs(10);
/// A judgement that took long to read holds for this many times as long, so that a run spends at most about a tenth of
/// its time on reading again, however many members the set has.
const MULTIPLE_OF_READ_TIME: u32 = 10;
/// The longest time for which a judgement holds, however long it took to read.
const LONGEST_JUDGED_FOR: Duration = Duration::from_mins(1);

/// Notes until when the members and their owner references count as read just now. What was read is outdated after
/// [`JUDGED_FOR`], whatever the run has done in that time, and after each wait for an object or a webhook: others may have
/// changed the members during the wait, and it may be the very change that was waited for.
#[derive(Debug)]
pub struct Freshness {
    /// The end of the time for which the last read holds; `None` if the run has waited since.
    holds_until: Cell<Option<Instant>>,
    /// Held by the action that reads again.
    rereading: Mutex<()>,
}

impl Freshness {
    pub fn new(read_at: Instant) -> Self {
        Self {
            holds_until: Cell::new(Some(read_at + JUDGED_FOR)),
            rereading: Mutex::default(),
        }
    }

    pub fn is_current(&self) -> bool {
        self.holds_until.get().is_some_and(|end| Instant::now() < end)
    }

    /// Returns the time until which what was read last counts as current.
    pub fn holds_until(&self) -> Instant {
        self.holds_until.get().unwrap_or_else(Instant::now)
    }

    /// Notes that the run has waited.
    pub fn mark_outdated(&self) {
        self.holds_until.set(None);
    }

    /// Calls `reread` if what was read last is outdated. Concurrent calls wait for its end.
    pub async fn reread_if_outdated(&self, reread: impl AsyncFnOnce()) {
        let _lock = self.rereading.lock().await;
        if !self.is_current() {
            self.reread(reread()).await;
        }
    }

    /// Notes that `reread` reads again, and returns what it returns. A wait that ends during the read outdates it.
    /// Otherwise its age counts from its end, so that a slow read does not outdate itself.
    pub async fn reread<T>(&self, reread: impl Future<Output = T>) -> T {
        let begun_at = Instant::now();
        self.holds_until.set(Some(begun_at));
        let read = reread.await;
        let holds_for = (begun_at.elapsed() * MULTIPLE_OF_READ_TIME).clamp(JUDGED_FOR, LONGEST_JUDGED_FOR);
        self.holds_until
            .update(|holds| holds.map(|_| Instant::now() + holds_for));
        read
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join;
    use tokio::sync::oneshot;
    use tokio::time::advance;

    use super::*;

    #[tokio::test]
    async fn a_wait_that_ends_during_a_read_outdates_the_read() {
        let freshness = Freshness::new(Instant::now());
        let reads = Cell::new(0);
        let count = async || reads.set(reads.get() + 1);
        freshness.reread_if_outdated(count).await;
        assert_eq!(reads.get(), 0);
        freshness.mark_outdated();
        let (answer, answered) = oneshot::channel::<()>();
        let slow = async || {
            count().await;
            answered.await.expect("an answer");
        };
        let meanwhile = async {
            freshness.mark_outdated();
            answer.send(()).expect("a reader");
            // This call waits for the first read, which began before the references were outdated again.
            freshness.reread_if_outdated(count).await;
            assert_eq!(reads.get(), 2);
        };
        join(freshness.reread_if_outdated(slow), meanwhile).await;
        freshness.reread_if_outdated(count).await;
        assert_eq!(reads.get(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_read_is_outdated_after_some_time_even_without_a_wait() {
        let freshness = Freshness::new(Instant::now());
        let reads = Cell::new(0);
        let half = JUDGED_FOR / 2;
        // The times that pass before each call and during its read, if it reads.
        for (before, during, reads_then) in [
            (half, half, 0),
            (half, half, 1),
            // The read has taken five seconds, so it holds for fifty.
            (JUDGED_FOR * 4, half, 1),
            (JUDGED_FOR, Duration::ZERO, 2),
            (half, Duration::ZERO, 2),
            (half, Duration::ZERO, 3),
        ] {
            advance(before).await;
            let read = async || {
                reads.set(reads.get() + 1);
                advance(during).await;
            };
            freshness.reread_if_outdated(read).await;
            assert_eq!(reads.get(), reads_then);
        }
    }
}
