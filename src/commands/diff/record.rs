//! The record of the set as `diff` shows it: before the run, and as the run would leave it.

use crate::error::Error;
use crate::event::Action;
use crate::execute::Prediction;
use crate::model::applyset::Record;
use crate::model::applyset::parent::Reading;
use crate::read::{self, ReadError};
use crate::report::{RecordChange, RecordDocument};
use crate::session::prepare::Prepared;

/// Returns the record that the run would leave: it keeps the kinds of objects that lack their label, and everything if
/// an object would fail.
pub(super) async fn predict_record(prepared: &Prepared, predictions: &[Prediction]) -> Result<Record, Error> {
    let plan = &prepared.plan;
    if predictions
        .iter()
        .any(|object| object.outcome.action == Action::Failed)
    {
        return Ok(plan.record_during.clone());
    }
    let parent = &prepared.named.set.parent;
    let writing = &prepared.writing;
    let mut record = plan.record_after.clone();
    for places in prepared
        .state
        .places
        .outside(&plan.record_after, parent.namespace.as_deref())
    {
        let server = &prepared.cluster.server;
        let found =
            read::members_without_label(server, &places, &writing.field_manager, writing.concurrency).await;
        let found = found.map_err(ReadError::from)?;
        record = record.union(&Record::of(found.iter().map(|live| &live.key), parent));
    }
    Ok(record)
}

/// Returns the record before the run, and the one after it.
pub(super) fn record_change(prepared: &Prepared, record_after: &Record) -> RecordChange {
    let before = prepared
        .state
        .parent_object()
        .and_then(|parent| match &parent.reading {
            Reading::Parent(bookkeeping) => Some(RecordDocument::new(
                &bookkeeping.tooling,
                &prepared.state.observed.recorded,
            )),
            Reading::NoRecord | Reading::Unfinished(_) | Reading::Faulty(_) => None,
        });
    let after = RecordDocument::new(&prepared.named.set.tooling, record_after);
    RecordChange {
        before,
        after: Some(after),
    }
}
