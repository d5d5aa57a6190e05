//! Ends a run: the one write of the parent after the last member.

use std::time::Duration;

use tokio::time::timeout;

use super::OVERTAKEN;
use super::begin::{Known, ParentRead};
use super::requests::{ParentWriteError, ParentWriting, Target};
use crate::event::{Ending, Event};
use crate::execute::Sink;
use crate::model::applyset::Record;
use crate::model::history_annotation::{History, Run};
use crate::model::parent_object::ParentObject;

/// The time limit for removing the entry of a run that could not begin.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a run leaves.
pub(crate) struct Left<'a> {
    /// What it may have written: the record covers it in any case.
    pub(crate) needed: &'a Record,
    /// The record of everything that is left, if all was done.
    pub(crate) exact: Option<&'a Record>,
    /// The run as it is in the history from now on; `None` if it has changed nothing.
    pub(crate) run: Option<Run>,
}

impl ParentWriting<'_> {
    /// Writes the result of a run, and a record that is exact if it can be.
    pub(crate) async fn end(
        &self,
        known: &mut Known,
        left: Left<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<RecordAtEnd, ParentWriteError> {
        let own = known.id().to_owned();
        let decide = |read: ParentRead| {
            let record = match left.exact {
                Some(exact) if !read.is_shared => exact.clone(),
                _ => read.record.union(left.needed),
            };
            let mut history = read.history.without(&own);
            if let Some(run) = &left.run
                && !history.has(run)
            {
                history.add(run.clone());
            }
            Ok(Target { record, history })
        };
        let parent = Some(known.parent.clone());
        let (parent, is_shared) = self
            .write_as_decided(parent, known.is_shared, &own, decide, sink)
            .await?;
        self.server.end_lease();
        *known = Known {
            is_shared,
            ..Known::read(parent)
        };
        Ok(match left.exact {
            Some(exact) if is_shared && !known.parent.has_record(&self.set.tooling, exact) => {
                RecordAtEnd::Shared
            }
            _ => RecordAtEnd::AsPlanned,
        })
    }

    /// Ends a run, and reports what its last write meets. Returns how the run ends.
    pub(crate) async fn end_reported(
        &self,
        known: &mut Known,
        left: Left<'_>,
        ending: Ending,
        sink: &mut Sink<'_>,
    ) -> Ending {
        match self.end(known, left, sink).await {
            Ok(RecordAtEnd::AsPlanned) => ending,
            Ok(RecordAtEnd::Shared) => {
                sink(Event::Warning(OVERTAKEN.to_owned()));
                ending
            }
            Err(error) if ending == Ending::Done => {
                sink(Event::failure(error.to_string()));
                Ending::Incomplete
            }
            // What has ended the run is an error already.
            Err(error) => {
                sink(Event::Warning(error.to_string()));
                ending
            }
        }
    }

    /// Returns whether a write of this run may still be carried out: its answer did not come in time. Its entry stays
    /// until it counts as abandoned.
    pub(crate) fn may_still_write(&self, known: &Known) -> bool {
        known.run.is_some() && self.server.has_write_under_way()
    }

    /// Removes the entry of a run that has written no member, if it was written. A failure leaves it: it is
    /// abandoned later.
    pub(crate) async fn withdraw(&self, id: &str, sink: &mut Sink<'_>) {
        let withdrawing = async {
            let Ok(Some(parent)) = self.read().await else {
                return;
            };
            let decide = |read: ParentRead| {
                Ok(Target {
                    record: read.record,
                    history: read.history.without(id),
                })
            };
            if History::of(&parent.annotations).is_running(id) {
                let _ = self.write_as_decided(Some(parent), false, id, decide, sink).await;
            }
        };
        let _ = timeout(PATIENCE, withdrawing).await;
    }

    /// Widens the record to cover these members of a run that has lost its parent, or whose parent another run has
    /// written; creates a parent that does not exist.
    pub(crate) async fn cover(
        &self,
        parent: Option<ParentObject>,
        needed: &Record,
        sink: &mut Sink<'_>,
    ) -> Result<(), ParentWriteError> {
        let decide = |read: ParentRead| {
            Ok(Target {
                record: read.record.union(needed),
                history: read.history,
            })
        };
        self.write_as_decided(parent, false, "", decide, sink)
            .await
            .map(drop)
    }
}

/// The record that a run leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordAtEnd {
    /// It is exact if it was to be.
    AsPlanned,
    /// It was to be exact, and another run was at work.
    Shared,
}
