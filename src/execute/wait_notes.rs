//! Notes about what a run waits for.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use crate::event::{Event, Sink};

/// The time that an action or a wait takes before the run reports it as slow.
pub(super) const SLOW: Duration = Duration::from_secs(2);

/// Notes about what writes wait for, which are not reported yet. A write that is under way has no sink, so it adds a
/// note here, and the code that awaits the write reports the note.
#[derive(Debug, Default)]
pub struct WaitNotes(RefCell<Vec<String>>);

impl WaitNotes {
    /// Adds a note, to be reported soon.
    pub(super) fn add(&self, note: String) {
        self.0.borrow_mut().push(note);
    }

    /// Removes and returns all notes.
    pub(super) fn take(&self) -> Vec<String> {
        self.0.take()
    }

    /// Does some work, and reports the notes that it adds as soon as it waits.
    pub(super) async fn work_while_reporting<T>(
        &self,
        work: impl Future<Output = T>,
        sink: &mut Sink<'_>,
    ) -> T {
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
