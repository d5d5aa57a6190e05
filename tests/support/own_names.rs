//! The fresh names of tests that are over. A custom group of such a name stays on the server, since
//! deleting a definition may take longer than a test does.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};
use std::thread;

thread_local! {
    static OWN: RefCell<Names> = const { RefCell::new(Names(Vec::new())) };
}

static LEFT_OVER: RwLock<BTreeSet<String>> = RwLock::new(BTreeSet::new());

/// The names of the test of a thread. Every test has a thread of its own, so they are dropped when it
/// is over.
struct Names(Vec<String>);

impl Drop for Names {
    fn drop(&mut self) {
        let mut left_over = LEFT_OVER.write().unwrap_or_else(PoisonError::into_inner);
        left_over.extend(self.0.drain(..));
    }
}

/// Notes a name that only the test of this thread has. A thread that a test starts has no name, and
/// may end before the test.
pub(super) fn add(name: &str) {
    if thread::current().name().is_some() {
        OWN.with_borrow_mut(|own| own.0.push(name.to_owned()));
    }
}

/// Whether the test is over that had the name of this group, up to its first dot.
pub(super) fn is_left_over(group: &str) -> bool {
    let name = group.split('.').next().unwrap_or_default();
    let left_over = LEFT_OVER.read().unwrap_or_else(PoisonError::into_inner);
    left_over.contains(name)
}
