//! Evaluates expressions in threads with a deadline. A thread cannot be stopped: if it takes longer, the program
//! continues without its result, and the thread runs until it finishes or the program ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use super::expression::Evaluation;
use crate::model::text::format_duration;

/// The memory of an expression that has taken too long for an object. The expression is then not evaluated again, so
/// that slow threads do not take all processors.
#[derive(Debug, Default)]
pub(super) struct Slowness {
    has_been_too_slow: AtomicBool,
}

impl Slowness {
    /// Returns the result of `evaluate`; `Unclear` if that takes longer than the deadline, or has done so before.
    pub(super) fn evaluate_within(
        &self,
        deadline: Duration,
        evaluate: impl FnOnce() -> Evaluation + Send + 'static,
    ) -> Evaluation {
        if self.has_been_too_slow.load(Ordering::Relaxed) {
            return too_slow(deadline);
        }
        let (sender, receiver) = mpsc::channel();
        // After the deadline the receiver is gone, and sending fails, which does not matter.
        std::thread::spawn(move || drop(sender.send(evaluate())));
        receiver.recv_timeout(deadline).unwrap_or_else(|_| {
            self.has_been_too_slow.store(true, Ordering::Relaxed);
            too_slow(deadline)
        })
    }
}

fn too_slow(deadline: Duration) -> Evaluation {
    Evaluation::Unclear(format!(
        "it takes longer than {} for an object of this kind; use fewer macros and comparisons of lists",
        format_duration(deadline)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_that_was_too_slow_is_not_evaluated_again() {
        let slowness = Slowness::default();
        let (end, ended) = mpsc::channel::<()>();
        let slow = move || {
            let _ = ended.recv();
            Evaluation::Yes
        };
        let fast = slowness.evaluate_within(Duration::from_mins(1), || Evaluation::Yes);
        assert_eq!(fast, Evaluation::Yes);
        let found = slowness.evaluate_within(Duration::from_millis(20), slow);
        let Evaluation::Unclear(reason) = &found else {
            panic!("{found:?}");
        };
        assert!(reason.contains("longer than 20ms"), "{reason}");
        let again = slowness.evaluate_within(Duration::from_millis(20), || Evaluation::Yes);
        assert_eq!(again, found);
        drop(end);
    }
}
