//! Ends a run: the one write of the parent after the last member.

use std::time::Duration;

use tokio::time::timeout;

use super::begin::Known;
use super::requests::{ParentWriteError, ParentWriting, Target};
use crate::execute::Sink;
use crate::model::applyset::Record;
use crate::model::history_annotation::{History, Run};
use crate::model::parent_object::ParentObject;

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
    /// Writes the result of a run, and a record that is exact if it can be. Returns whether it is.
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
            Some(exact) if is_shared && !known.records(&self.set.tooling, exact) => RecordAtEnd::Shared,
            Some(_) => RecordAtEnd::Exact,
            None => RecordAtEnd::Wide,
        })
    }
}

impl ParentWriting<'_> {
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
    /// It names what is left, and nothing else.
    Exact,
    /// It was to be exact, and another run was at work.
    Shared,
    /// It covers what the run may have written.
    Wide,
}
