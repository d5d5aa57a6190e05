//! Ends a run: the one write of the parent after the last member.

use std::time::Duration;

use tokio::time::timeout;

use super::NOT_NARROWED;
use super::begin::{KnownParent, WritableParent, WritingRun};
use super::requests::{ParentWriteError, ParentWriting, RecordAndHistory};
use crate::event::{Event, Sink};
use crate::model::applyset::Record;
use crate::model::history_annotation::{History, Run};

/// The time limit for removing the entry of a run that could not begin.
const WITHDRAWAL_LIMIT: Duration = Duration::from_secs(10);

impl ParentWriting<'_> {
    /// Replaces the entry of the run by `final_entry`; removes it if that is `None`, because the run has changed
    /// nothing. Writes the record of exactly what is left (`exact`), if the run knows it and no other run that may add members
    /// was at work; else a record that covers `needed`, which is everything that the run may have written.
    pub(super) async fn write_final_entry_and_record(
        &self,
        known: &mut KnownParent,
        needed: &Record,
        exact: Option<&Record>,
        final_entry: Option<Run>,
        sink: &mut Sink<'_>,
    ) -> Result<(), ParentWriteError> {
        let parent = Some(known.parent.clone());
        let writer = known.as_writer();
        let written = self.decide_and_write_with_retries(parent, known.is_shared, &writer, sink, |read| {
            let record = match exact {
                Some(exact) if !read.is_shared => exact.clone(),
                _ => read.record.union(needed),
            };
            let mut history = read.history.without_running(known.entry_id());
            if let Some(final_entry) = final_entry.clone() {
                history.record(final_entry);
            }
            Ok(RecordAndHistory { record, history })
        });
        let (parent, is_shared) = written.await?;
        self.server.end_lease();
        if let Some(exact) = exact
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
