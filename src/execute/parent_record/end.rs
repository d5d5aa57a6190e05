//! Ends a run: the one write of the parent after the last member.

use std::time::Duration;

use tokio::time::timeout;

use super::NOT_NARROWED;
use super::begin::{KnownParent, WritableParent, WritingRun};
use super::requests::{ParentWriteError, ParentWriting, RecordAndHistory};
use crate::event::{Ending, Event, Sink};
use crate::execute::history::ChangeCounter;
use crate::model::applyset::Record;
use crate::model::history_annotation::{History, Run};

/// The time limit for removing the entry of a run that could not begin.
const WITHDRAWAL_LIMIT: Duration = Duration::from_secs(10);

/// The record that a run leaves.
pub struct FinalRecord<'a> {
    /// The record of everything that the run may have written. The parent has to cover it if `exact` cannot be written.
    pub needed: &'a Record,
    /// The record of exactly what is left; `None` if the run has not done all its work.
    pub exact: Option<&'a Record>,
}

impl ParentWriting<'_> {
    /// Ends a run that has an entry or is to narrow the record, and reports an error of that write. `ending` is how the
    /// work of the run has ended. Returns how the run ends with this write.
    pub async fn end_and_report(
        &self,
        known: &mut KnownParent,
        changes: &ChangeCounter,
        final_record: FinalRecord<'_>,
        ending: Ending,
        sink: &mut Sink<'_>,
    ) -> Ending {
        if self.may_have_write_under_way(known) || (known.run.is_none() && final_record.exact.is_none()) {
            return ending;
        }
        let begun_run = known.run.clone();
        let ended_run =
            begun_run.and_then(|run| changes.build_final_entry_if_changed(self.server, run, ending));
        match self
            .write_final_entry_and_record(known, final_record, ended_run, sink)
            .await
        {
            Ok(()) => ending,
            Err(error) if ending == Ending::Done => {
                sink(Event::general_failure(error.to_string()));
                self.interrupt.ending_after_failure()
            }
            // The run has reported another failure already, so this one is only a warning.
            Err(error) => {
                sink(Event::Warning(error.to_string()));
                ending
            }
        }
    }

    /// Replaces the entry of the run by `final_entry`; removes it if that is `None`, because the run has changed
    /// nothing. Writes the exact record if no other run that may add members was at work; else a record that covers
    /// `needed`.
    pub(super) async fn write_final_entry_and_record(
        &self,
        known: &mut KnownParent,
        final_record: FinalRecord<'_>,
        final_entry: Option<Run>,
        sink: &mut Sink<'_>,
    ) -> Result<(), ParentWriteError> {
        let parent = Some(known.parent.clone());
        let writer = known.as_writer();
        let written = self.decide_and_write_with_retries(parent, known.is_shared, &writer, sink, |read| {
            let record = match final_record.exact {
                Some(exact) if !read.is_shared => exact.clone(),
                _ => read.record.union(final_record.needed),
            };
            let mut history = read.history.without_running(known.entry_id());
            if let Some(final_entry) = final_entry.clone() {
                history.record(final_entry);
            }
            Ok(RecordAndHistory { record, history })
        });
        let (parent, is_shared) = written.await?;
        self.server.end_lease();
        if let Some(exact) = final_record.exact
            && is_shared
            && !parent.has_tooling_and_record(&self.set.tooling, exact)
        {
            sink(Event::Warning(NOT_NARROWED.to_owned()));
        }
        *known = KnownParent {
            is_shared,
            takes_out: known.takes_out,
            ..KnownParent::from_read(parent)
        };
        Ok(())
    }

    /// Returns whether the server may still carry out a write of a member, because the run has not got its answer. The
    /// run then does not end: its entry stays `running` until it counts as abandoned.
    pub fn may_have_write_under_way(&self, known: &KnownParent) -> bool {
        known.run.is_some() && !known.takes_out && self.server.has_unanswered_write()
    }

    /// Removes the entry with this id, of a run that has written no member. If that fails, the entry stays, and counts
    /// as abandoned later.
    pub async fn withdraw_entry(&self, id: &str, sink: &mut Sink<'_>) {
        let withdrawing = async {
            let Ok(Some(parent)) = self.read().await else {
                return;
            };
            if History::from_annotations(&parent.annotations).is_running(id) {
                let uid = parent.uid.clone();
                let writable = WritableParent::Uid(&uid);
                let writer = WritingRun { id, writable };
                let written =
                    self.decide_and_write_with_retries(Some(parent), false, &writer, sink, |read| {
                        Ok(RecordAndHistory {
                            record: read.record,
                            history: read.history.without_running(id),
                        })
                    });
                let _ = written.await;
            }
        };
        let _ = timeout(WITHDRAWAL_LIMIT, withdrawing).await;
    }
}
