//! The error of a comparison in which the server did not answer dry runs.

use crate::error::{Error, ErrorKind};
use crate::event::ObjectOutcome;
use crate::execute::Prediction;
use crate::model::message::Message;
use crate::model::text::counted;

/// Returns a message for each object for which the server did not answer.
pub(super) fn unanswered_messages(predictions: &[Prediction]) -> Vec<Message> {
    let unanswered = predictions.iter().filter(|prediction| prediction.unanswered);
    unanswered
        .map(|prediction| {
            let ObjectOutcome { subject, error, .. } = &prediction.outcome;
            // An object without an answer always has an error.
            let reason = error.as_deref().cloned();
            let key = subject.key();
            reason
                .unwrap_or_else(|| Message::new(""))
                .with_subject_prefix(format_args!("{key}: dry run failed: "))
        })
        .collect()
}

/// Limit of objects that the error about dry runs lists: usually they share one reason.
const SHOWN_OBJECTS: usize = 10;

/// The error of a comparison without these answers.
pub(super) fn unanswered_error(mut unanswered: Vec<Message>) -> Error {
    let more = unanswered.len().saturating_sub(SHOWN_OBJECTS);
    unanswered.truncate(SHOWN_OBJECTS);
    if more > 0 {
        unanswered.push(format!("dry run failed for {} more", counted(more, "object")).into());
    }
    Error::from_messages(ErrorKind::Cluster, unanswered).with_hint("run the same command again")
}
