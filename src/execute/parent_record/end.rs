//! Ends a run: the one write of the parent after the last member.

use std::time::Duration;

use tokio::time::timeout;

use super::OVERTAKEN;
use super::begin::{Known, Writer};
use super::requests::{ParentWriteError, ParentWriting, Target};
use crate::event::{Ending, Event};
use crate::execute::Sink;
use crate::execute::history::HistoryEntry;
use crate::model::applyset::Record;
use crate::model::history_annotation::{History, Run};
use crate::model::set::ParentObject;

/// The time limit for removing the entry of a run that could not begin.
const PATIENCE: Duration = Duration::from_secs(10);

/// The record that a run leaves.
pub struct FinalRecord<'a> {
    /// The record of everything that it may have written, which the parent records in any case.
    pub needed: &'a Record,
    /// The record of everything that is left, if all was done.
    pub exact: Option<&'a Record>,
}

impl ParentWriting<'_> {
    /// Ends a run, if it has written the parent or is to narrow its record, and reports what its last write meets.
    /// Returns how the run ends.
    pub async fn end_reported(
        &self,
        known: &mut Known,
        entry: &HistoryEntry,
        final_record: FinalRecord<'_>,
        ending: Ending,
        sink: &mut Sink<'_>,
    ) -> Ending {
        if self.may_still_write(known) || (known.run.is_none() && final_record.exact.is_none()) {
            return ending;
        }
        let begun = known.run.clone();
        let adds = begun.is_some() && !known.takes_out;
        let before = known.runs_before.clone();
        let run = begun.and_then(|begun| entry.entry_at_end(self.server, begun, ending));
        match self.end(known, final_record, run, sink).await {
            Ok(()) => {
                if adds && ending == Ending::Done {
                    warn_of_runs_that_took_out(&before, &known.parent, sink);
                }
                ending
            }
            Err(error) if ending == Ending::Done => {
                sink(Event::failure(error.to_string()));
                self.interrupt.ending_after_failure()
            }
            // What has ended the run is an error already.
            Err(error) => {
                sink(Event::Warning(error.to_string()));
                ending
            }
        }
    }

    /// Writes the run as it is in the history from now on, if it has changed anything, and a record that is exact if it
    /// can be.
    pub(super) async fn end(
        &self,
        known: &mut Known,
        final_record: FinalRecord<'_>,
        run: Option<Run>,
        sink: &mut Sink<'_>,
    ) -> Result<(), ParentWriteError> {
        let parent = Some(known.parent.clone());
        let writer = known.writer();
        let written = self.write_as_decided(parent, known.is_shared, &writer, sink, |read| {
            let record = match final_record.exact {
                Some(exact) if !read.is_shared => exact.clone(),
                _ => read.record.union(final_record.needed),
            };
            let mut history = read.history.without(known.id());
            if let Some(run) = run.clone() {
                history.add(run);
            }
            Ok(Target { record, history })
        });
        let (parent, is_shared) = written.await?;
        self.server.end_lease();
        if let Some(exact) = final_record.exact
            && is_shared
            && !parent.has_record(&self.set.tooling, exact)
        {
            sink(Event::Warning(OVERTAKEN.to_owned()));
        }
        *known = Known {
            is_shared,
            takes_out: known.takes_out,
            ..Known::read(parent)
        };
        Ok(())
    }

    /// Returns whether a write of a member may still be carried out: no answer of the server came for it. The entry of
    /// the run stays until it counts as abandoned.
    pub fn may_still_write(&self, known: &Known) -> bool {
        known.run.is_some() && !known.takes_out && self.server.has_write_under_way()
    }

    /// Removes the entry of a run that has written no member, if it was written. A failure leaves it: it is
    /// abandoned later.
    pub async fn withdraw(&self, id: &str, sink: &mut Sink<'_>) {
        let withdrawing = async {
            let Ok(Some(parent)) = self.read().await else {
                return;
            };
            if History::from_annotations(&parent.annotations).is_running(id) {
                let uid = parent.uid.clone();
                let only = Some(uid.as_str());
                let writer = Writer { id, only };
                let written = self.write_as_decided(Some(parent), false, &writer, sink, |read| {
                    Ok(Target {
                        record: read.record,
                        history: read.history.without(id),
                    })
                });
                let _ = written.await;
            }
        };
        let _ = timeout(PATIENCE, withdrawing).await;
    }

    /// Widens the record to cover these members of a run that has lost its parent, or whose parent another run has
    /// written; creates a parent that does not exist.
    pub async fn widen(
        &self,
        parent: Option<ParentObject>,
        needed: &Record,
        sink: &mut Sink<'_>,
    ) -> Result<(), ParentWriteError> {
        let writer = Writer { id: "", only: None };
        let written = self.write_as_decided(parent, false, &writer, sink, |read| {
            Ok(Target {
                record: read.record.union(needed),
                history: read.history,
            })
        });
        written.await.map(drop)
    }
}

/// Warns of a run that took objects out of the set after the history was `before`: it may have taken out what this one
/// has applied.
fn warn_of_runs_that_took_out(before: &History, parent: &ParentObject, sink: &mut Sink<'_>) {
    let now = History::from_annotations(&parent.annotations);
    if let Some(other) = now.taken_out_since(before) {
        sink(Event::Warning(format!(
            "{other} worked on this set at the same time, and may have taken out what this run has put in; see what is left with `kubectl applyset view SET`"
        )));
    }
}
