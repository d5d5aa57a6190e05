//! What a run waits for, as notes.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use crate::event::Event;
use crate::execute::Sink;

/// Time after which something slow is reported.
pub(super) const SLOW: Duration = Duration::from_secs(2);

/// The notes about what writes wait for while they are under way, until they are reported.
#[derive(Debug, Default)]
pub struct WaitNotes(RefCell<Vec<String>>);

impl WaitNotes {
    pub(super) fn add(&self, note: String) {
        self.0.borrow_mut().push(note);
    }

    /// Takes out what is not reported yet.
    pub(super) fn take(&self) -> Vec<String> {
        self.0.take()
    }

    /// Does some work, and reports what it waits for.
    pub(super) async fn reporting<T>(&self, work: impl Future<Output = T>, sink: &mut Sink<'_>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            let done = work.as_mut().poll(context);
            let notes = self.take().into_iter();
            notes.for_each(|note| sink(Event::Note(note)));
            done
        })
        .await
    }
}
