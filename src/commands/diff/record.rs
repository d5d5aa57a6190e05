//! The record of the set as `diff` shows it: before the run, and as the run would leave it.

use crate::error::Error;
use crate::event::{Action, Interrupt};
use crate::execute::Prediction;
use crate::model::applyset::Record;
use crate::model::applyset::parent::Reading;
use crate::report::{RecordChange, RecordDocument};
use crate::session::prepare::Prepared;

/// Returns the record that the run would leave. If an object would fail, the run would not narrow the record.
pub(super) async fn predict_record(
    prepared: &Prepared,
    interrupt: &Interrupt,
    predictions: &[Prediction],
) -> Result<Record, Error> {
    let mut outcomes = predictions.iter().map(|object| &object.outcome);
    if outcomes.any(|outcome| outcome.action == Action::Failed) {
        return Ok(prepared.plan.record_during.clone());
    }
    Ok(prepared.execution(interrupt).predict_record().await?)
}

/// Returns the record before the run and after it.
pub(super) fn compare_records(prepared: &Prepared, record_after: &Record) -> RecordChange {
    let before = prepared
        .state
        .parent_object()
        .and_then(|parent| match &parent.reading {
            Reading::Parent(record) => Some(RecordDocument::new(
                &record.tooling,
                &prepared.state.observed.recorded,
            )),
            Reading::NoRecord | Reading::Unfinished(_) | Reading::Unrecorded(_) | Reading::Faulty(_) => None,
        });
    let after = RecordDocument::new(&prepared.named.set.tooling, record_after);
    RecordChange {
        before,
        after: Some(after),
    }
}
