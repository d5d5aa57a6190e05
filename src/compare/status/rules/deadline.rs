//! Evaluates expressions beside the program, which continues at the deadline: a thread cannot be stopped, and
//! ends with the program.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use super::expression::Evaluation;
use crate::model::text::short;

/// The most threads that one expression leaves to themselves at once.
const MOST: usize = 4;

/// The objects for which one expression has taken too long. It is not evaluated for them again.
#[derive(Debug, Default)]
pub(super) struct SlowObjects {
    names: Mutex<BTreeSet<String>>,
    /// The threads that were left to themselves.
    left: Mutex<Vec<JoinHandle<()>>>,
}

impl SlowObjects {
    /// Returns what `evaluate` finds for an object, if that takes no longer than the deadline.
    pub(super) fn evaluate_within(
        &self,
        deadline: Duration,
        object: &Value,
        evaluate: impl FnOnce() -> Evaluation + Send + 'static,
    ) -> Evaluation {
        let too_long = || {
            Evaluation::Unclear(format!(
                "it takes longer than {} for this object; use fewer macros and comparisons of lists",
                short(deadline)
            ))
        };
        let name = name(object);
        if lock(&self.names).contains(&name) {
            return too_long();
        }
        let mut left = lock(&self.left);
        left.retain(|thread| !thread.is_finished());
        if left.len() >= MOST {
            return Evaluation::Unclear(format!(
                "{MOST} evaluations for other objects take longer than {}",
                short(deadline)
            ));
        }
        drop(left);
        let (sender, receiver) = mpsc::channel();
        // No one receives the answer after the deadline.
        let thread = std::thread::spawn(move || drop(sender.send(evaluate())));
        receiver.recv_timeout(deadline).unwrap_or_else(|_| {
            lock(&self.left).push(thread);
            lock(&self.names).insert(name);
            too_long()
        })
    }
}

/// Returns what tells an object from others: its UID, as far as it has one.
fn name(object: &Value) -> String {
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
