//! How far away the API server is: the shortest time in which it has answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::ApiServer;

/// Microseconds of the fastest answer; `u64::MAX` before the first one.
#[derive(Debug, Clone)]
pub(super) struct FastestAnswer(Arc<AtomicU64>);

impl Default for FastestAnswer {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(u64::MAX)))
    }
}

impl FastestAnswer {
    /// Takes the time of an answer into account.
    pub(super) fn add(&self, time: Duration) {
        let microseconds = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.0.fetch_min(microseconds, Ordering::Relaxed);
    }

    /// Returns the fastest answer; `None` before the first one.
    pub(super) fn get(&self) -> Option<Duration> {
        let microseconds = self.0.load(Ordering::Relaxed);
        (microseconds != u64::MAX).then(|| Duration::from_micros(microseconds))
    }
}

impl ApiServer {
    /// Returns the shortest time in which the server has answered a request so far, which is at least a
    /// round trip; `None` before its first answer.
    pub fn fastest_answer(&self) -> Option<Duration> {
        self.fastest_answer.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_faster_answer_counts() {
        let fastest = FastestAnswer::default();
        assert_eq!(fastest.get(), None);
        for milliseconds in [30, 20, 40] {
            fastest.add(Duration::from_millis(milliseconds));
        }
        assert_eq!(fastest.get(), Some(Duration::from_millis(20)));
    }
}
