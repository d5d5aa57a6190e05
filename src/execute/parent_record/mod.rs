//! The protocol of the parent: a run that writes members writes the parent before the first and after the last.
//!
//! - **Begin** (`begin`): the run widens the record to cover everything that the run may write, and adds an entry with
//!   the result `running` to the history.
//! - **End** (`end`): the run writes its result into its entry. It narrows the record to what is left if all its work
//!   was done and no other run was at work on the set since this run read the parent. Otherwise the record stays as
//!   wide as it is, and the next run narrows it. A run that writes no member ends without having begun.
//! - A run that only takes objects out of the set also has an entry, which people and `--exclusive` see. Other runs
//!   narrow the record all the same, because such a run adds no member. If no member is left, it ends by removing the
//!   parent or its record.
//!
//! Each write has as its precondition the resourceVersion of the parent that the write was decided on. After a conflict
//! the run reads the parent, decides again, and writes again.
//!
//! So the record covers every member at every moment, except what a new parent needs to exist, which is written before
//! it. A run narrows or removes the record only if the parent showed no entry of another run that may add members when
//! this run read it, and only after it has listed the members. If another run begins after that read, it changes the
//! resourceVersion, so the narrowing write fails. If another run ended before that read, it wrote its members before
//! they were listed. A run that has not got the answer to one of its writes does not end: the server may still carry
//! out that write.
//!
//! The entry of a run that was killed stays `running`. Ten minutes after its last renewal the entry counts as
//! abandoned, and the next run gives it that result. A live run renews its entry in time (`renew`). If it cannot, it
//! writes nothing more.
//!
//! `interleavings` checks this protocol for all interleavings of short runs. The protocol does not protect from tools
//! that do not know these entries, such as kubectl.

pub mod begin;
pub mod end;
mod exact_record;
#[cfg(test)]
mod interleavings;
mod members_without_label;
mod own_manifest;
pub mod remove;
pub mod renew;
pub mod repair;
pub mod requests;

use begin::KnownParent;
use requests::ParentWriting;

use crate::event::{Ending, Event, Sink};
use crate::execute::history::ChangeCounter;
use crate::model::applyset::Record;

/// Limit of attempts to write a parent that other clients keep writing.
pub const MAX_ATTEMPTS: usize = 20;

/// The warning of a run that does not narrow the record because another run was at work on the set.
pub const NOT_NARROWED: &str =
    "another run was under way on this set, so the set's record was not narrowed; the next run narrows it";

/// A run that is under way, from the write of the parent that begins it to the write that ends it.
pub struct RunOnParent<'a> {
    pub parent: ParentWriting<'a>,
    /// The parent, and the entry of the run if it has one; `None` if there is no parent, or if the run has not written
    /// it yet.
    pub known: Option<KnownParent>,
    /// Counts the changes of the run, for its entry in the history.
    pub changes: ChangeCounter,
    /// The record of everything that the run may write.
    needed: &'a Record,
}

impl<'a> RunOnParent<'a> {
    pub fn new(parent: ParentWriting<'a>, needed: &'a Record, known: Option<KnownParent>) -> Self {
        Self {
            parent,
            known,
            changes: ChangeCounter::default(),
            needed,
        }
    }

    /// Does a part of the run's work, counts its changes, and renews the entry of the run at the same time.
    pub async fn count_changes_while_renewing<T>(
        &mut self,
        sink: &mut Sink<'_>,
        work: impl AsyncFnOnce(&mut Sink<'_>) -> T,
    ) -> T {
        let changes = std::mem::take(&mut self.changes);
        let done = self
            .work_while_renewing(Box::pin(work(&mut changes.counting_sink(sink))))
            .await;
        self.changes = changes;
        done
    }

    /// Does something, and renews the entry of the run at the same time.
    pub async fn work_while_renewing<T>(&mut self, work: impl Future<Output = T>) -> T {
        match &mut self.known {
            None => work.await,
            Some(known) => self.parent.work_while_renewing(known, work).await,
        }
    }

    /// Ends the run on the parent, if it has an entry there or is to narrow the record, and reports an error of that write.
    /// `exact` is the record of exactly what is left, if the run knows it; `ending` is how the work of the run has ended.
    /// Returns how the run ends with this write.
    pub async fn end(&mut self, exact: Option<&Record>, ending: Ending, sink: &mut Sink<'_>) -> Ending {
        let Some(known) = &mut self.known else {
            return ending;
        };
        if self.parent.may_have_write_under_way(known) || (known.run.is_none() && exact.is_none()) {
            return ending;
        }
        let entry = known.run.clone().and_then(|run| {
            self.changes
                .build_final_entry_if_changed(self.parent.server, run, ending)
        });
        match self
            .parent
            .write_final_entry_and_record(known, self.needed, exact, entry, sink)
            .await
        {
            Ok(()) => ending,
            Err(error) if ending == Ending::Done => {
                sink(Event::general_failure(error.to_string()));
                self.parent.interrupt.ending_after_failure()
            }
            // The run has reported another failure already, so this one is only a warning.
            Err(error) => {
                sink(Event::Warning(error.to_string()));
                ending
            }
        }
    }
}
