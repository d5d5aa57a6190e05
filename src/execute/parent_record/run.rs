//! A run on its parent, from the write of the parent that begins the run to the write that ends it.

use super::begin::KnownParent;
use super::end::FinalRecord;
use super::requests::ParentWriting;
use crate::event::Ending;
use crate::execute::Sink;
use crate::execute::history::ChangeCounter;
use crate::model::applyset::Record;

/// A run that is under way.
pub struct RunOnParent<'a> {
    pub parent: ParentWriting<'a>,
    /// The parent, and the entry of the run if it has one; `None` if there is no parent, or if the run has not written
    /// it yet.
    pub known: Option<KnownParent>,
    /// Counts the changes of the run, for its entry in the history.
    pub entry: ChangeCounter,
    /// The record of everything that the run may write.
    needed: &'a Record,
}

impl<'a> RunOnParent<'a> {
    pub fn new(parent: ParentWriting<'a>, needed: &'a Record, known: Option<KnownParent>) -> Self {
        Self {
            parent,
            known,
            entry: ChangeCounter::default(),
            needed,
        }
    }

    /// Does a part of the run's work, counts its changes, and renews the entry of the run at the same time.
    pub async fn count_changes_while_renewing<T>(
        &mut self,
        sink: &mut Sink<'_>,
        work: impl AsyncFnOnce(&mut Sink<'_>) -> T,
    ) -> T {
        let entry = std::mem::take(&mut self.entry);
        let done = self
            .work_while_renewing(Box::pin(work(&mut entry.counting_sink(sink))))
            .await;
        self.entry = entry;
        done
    }

    /// Does something, and renews the entry of the run at the same time.
    pub async fn work_while_renewing<T>(&mut self, work: impl Future<Output = T>) -> T {
        match &mut self.known {
            None => work.await,
            Some(known) => self.parent.work_while_renewing(known, work).await,
        }
    }

    /// Removes the entry of a run that has written no member and cannot continue.
    pub async fn withdraw_entry(&self, sink: &mut Sink<'_>) {
        if let Some(known) = &self.known {
            self.parent.withdraw_entry(known.entry_id(), sink).await;
        }
        self.parent.server.end_lease();
    }

    /// Ends the run on the parent, if there is one. `exact` is the record of exactly what is left, if the run knows it.
    /// Returns how the run ends.
    pub async fn end(&mut self, exact: Option<&Record>, ending: Ending, sink: &mut Sink<'_>) -> Ending {
        let Some(known) = &mut self.known else {
            return ending;
        };
        let needed = self.needed;
        let final_record = FinalRecord { needed, exact };
        self.parent
            .end_and_report(known, &self.entry, final_record, ending, sink)
            .await
    }
}
