//! Ends a run: the one write of the parent after the last member.

use std::time::Duration;

use tokio::time::timeout;

use super::OVERTAKEN;
use super::begin::Known;
use super::requests::{ParentWriteError, ParentWriting, Target};
use crate::event::Event;
use crate::execute::Sink;
use crate::model::applyset::Record;
use crate::model::history_annotation::{History, Run};
use crate::model::parent_object::ParentObject;
use crate::read::ListTargets;

/// The time to take off the entry of a run that could not begin.
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
        let decide = |recorded: &Record, history: History, is_shared: bool| {
            let record = match left.exact {
                Some(exact) if !is_shared => exact.clone(),
                _ => recorded.union(left.needed),
            };
            let mut history = history.without(&own);
            if let Some(run) = &left.run
                && !history.has(run)
            {
                history.add(run.clone());
            }
            Target { record, history }
        };
        let parent = Some(known.parent.clone());
        let (parent, is_shared) = self
            .write_as_decided(parent, known.is_shared, &own, decide, sink)
            .await?;
        self.server.end_lease();
        *known = Known {
            parent,
            run: None,
            is_shared,
        };
        Ok(match left.exact {
            Some(exact) if is_shared && !known.parent.has_record(&self.set.tooling, exact) => {
                RecordAtEnd::Shared
            }
            _ => RecordAtEnd::AsPlanned,
        })
    }

    /// Narrows the record of a parent, as it was read before the list that `record` comes from, to that record and what
    /// leads to members without their label; `wide` is the record so far, and `places` is its scope. It stays wide if
    /// another run was at work, which is reported.
    pub(crate) async fn narrow(
        &self,
        parent: ParentObject,
        record: &Record,
        (wide, places): (&Record, &ListTargets),
        sink: &mut Sink<'_>,
    ) -> Result<(), ParentWriteError> {
        let unlabeled = self.record_of_unlabeled(places, record, sink).await?;
        let left = Left {
            needed: wide,
            exact: Some(&record.union(&unlabeled)),
            run: None,
        };
        if self.end(&mut Known::read(parent), left, sink).await? == RecordAtEnd::Shared {
            sink(Event::Warning(OVERTAKEN.to_owned()));
        }
        Ok(())
    }

    /// Takes off the entry of a run that has written no member, if it was written. A failure leaves it: it is
    /// abandoned later.
    pub(crate) async fn withdraw(&self, id: &str, sink: &mut Sink<'_>) {
        let withdrawing = async {
            let Ok(Some(parent)) = self.read().await else {
                return;
            };
            let decide = |recorded: &Record, history: History, _is_shared: bool| Target {
                record: recorded.clone(),
                history: history.without(id),
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
        let decide = |recorded: &Record, history: History, _is_shared: bool| Target {
            record: recorded.union(needed),
            history,
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
