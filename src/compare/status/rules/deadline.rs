//! Evaluates expressions in threads with a deadline. A thread cannot be stopped: if it takes longer, the program
//! continues without its result, and the thread runs until it finishes or the program ends.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use super::expression::Evaluation;
use crate::model::text::format_duration;

/// How many evaluations of one expression may run beyond the deadline at once. With four of them, the expression is not
/// evaluated for further objects, so that slow threads do not take all processors.
const MAX_OVERDUE: usize = 4;

/// The objects for which one expression has taken too long. The expression is not evaluated for these objects again.
#[derive(Debug, Default)]
pub(super) struct SlowObjects {
    names: Mutex<BTreeSet<String>>,
    /// The threads that have not finished within the deadline.
    overdue: Mutex<Vec<JoinHandle<()>>>,
}

impl SlowObjects {
    /// Returns the result of `evaluate` for an object; `Unclear` if that takes longer than the deadline.
    pub(super) fn evaluate_within(
        &self,
        deadline: Duration,
        object: &Value,
        evaluate: impl FnOnce() -> Evaluation + Send + 'static,
    ) -> Evaluation {
        let too_long = || {
            Evaluation::Unclear(format!(
                "it takes longer than {} for this object; use fewer macros and comparisons of lists",
                format_duration(deadline)
            ))
        };
        let name = identify(object);
        if lock(&self.names).contains(&name) {
            return too_long();
        }
        let mut overdue = lock(&self.overdue);
        overdue.retain(|thread| !thread.is_finished());
        if overdue.len() >= MAX_OVERDUE {
            return Evaluation::Unclear(format!(
                "{MAX_OVERDUE} evaluations for other objects take longer than {}",
                format_duration(deadline)
            ));
        }
        drop(overdue);
        let (sender, receiver) = mpsc::channel();
        // After the deadline the receiver is gone, and sending fails, which is no error here.
        let thread = std::thread::spawn(move || drop(sender.send(evaluate())));
        receiver.recv_timeout(deadline).unwrap_or_else(|_| {
            lock(&self.overdue).push(thread);
            lock(&self.names).insert(name);
            too_long()
        })
    }
}

/// Returns a text that tells an object from others: its UID, if it has one, with its namespace and name.
fn identify(object: &Value) -> String {
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    format!("{} {}/{}", text("uid"), text("namespace"), text("name"))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_slow_object_says_nothing_of_others() {
        let objects = SlowObjects::default();
        let object = |uid: &str| json!({"metadata": {"uid": uid}});
        let (end, ended) = mpsc::channel::<()>();
        let slow = move || {
            let _ = ended.recv();
            Evaluation::Yes
        };
        let deadline = Duration::from_millis(20);
        let found = objects.evaluate_within(deadline, &object("slow"), slow);
        let Evaluation::Unclear(reason) = &found else {
            panic!("{found:?}");
        };
        assert!(reason.contains("longer than 20ms"), "{reason}");
        let again = objects.evaluate_within(deadline, &object("slow"), || Evaluation::Yes);
        assert_eq!(again, found);
        let other = objects.evaluate_within(Duration::from_mins(1), &object("other"), || Evaluation::Yes);
        assert_eq!(other, Evaluation::Yes);
        drop(end);
    }
}
