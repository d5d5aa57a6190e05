//! Notes how long ago the run has read what its deletes are judged by.

use std::cell::Cell;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// The time for which a judgement of deletes holds.
const JUDGED_FOR: Duration = Duration::from_secs(10);

/// Notes when the members and their owner references were read last. What was read is outdated after [`JUDGED_FOR`],
/// whatever the run has done meanwhile, and after each wait for an object or a webhook: others may have changed the
/// members during the wait, and it may be the very change that was waited for.
#[derive(Debug)]
pub struct Freshness {
    /// The time of the last read; `None` if the run has waited since.
    read_at: Cell<Option<Instant>>,
    /// Held by the action that reads again.
    rereading: Mutex<()>,
}

impl Freshness {
    pub fn new(read_at: Instant) -> Self {
        Self {
            read_at: Cell::new(Some(read_at)),
            rereading: Mutex::default(),
        }
    }

    /// Notes that the run has waited.
    pub fn mark_outdated(&self) {
        self.read_at.set(None);
    }

    /// Calls `reread` if what was read last is outdated. Concurrent calls wait for its end. A wait that ends during the
    /// read outdates it. Otherwise its age counts from its end, so that a slow read does not outdate itself.
    pub async fn reread_if_outdated(&self, reread: impl AsyncFnOnce()) {
        let _lock = self.rereading.lock().await;
        let read_at = self.read_at.get();
        if read_at.is_some_and(|read_at| read_at.elapsed() < JUDGED_FOR) {
            return;
        }
        self.read_at.set(Some(Instant::now()));
        reread().await;
        self.read_at.update(|read_at| read_at.map(|_| Instant::now()));
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
        let slow = async || {
            reads.set(reads.get() + 1);
            advance(JUDGED_FOR).await;
        };
        for (passed, reads_then) in [
            (JUDGED_FOR / 2, 0),
            (JUDGED_FOR / 2, 1),
            (JUDGED_FOR / 2, 1),
            (JUDGED_FOR / 2, 2),
        ] {
            advance(passed).await;
            freshness.reread_if_outdated(slow).await;
            assert_eq!(reads.get(), reads_then);
        }
    }
}
