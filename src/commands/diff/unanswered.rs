//! The error of a comparison in which the server did not answer dry runs or reads.

use crate::error::{Error, ErrorKind};
use crate::execute::Prediction;
use crate::model::message::Message;
use crate::model::text::counted;

/// Limit of objects that the error lists: usually they share one reason.
const SHOWN_OBJECTS: usize = 10;

/// Returns the error of a comparison in which requests got no usable answer; `None` if all were answered.
pub(super) fn unanswered_error(predictions: &[Prediction]) -> Option<Error> {
    let unanswered: Vec<&Prediction> = predictions
        .iter()
        .filter(|prediction| prediction.unanswered.is_some())
        .collect();
    let mut messages: Vec<Message> = unanswered
        .iter()
        .take(SHOWN_OBJECTS)
        .map(|prediction| to_message(prediction))
        .collect();
    let more = unanswered.len().saturating_sub(SHOWN_OBJECTS);
    if more > 0 {
        messages.push(format!("not compared: {} more", counted(more, "object")).into());
    }
    let is_forbidden = |prediction: &&Prediction| prediction.unanswered == Some(ErrorKind::Forbidden);
    let kind = if unanswered.iter().all(is_forbidden) {
        ErrorKind::Forbidden
    } else {
        ErrorKind::Cluster
    };
    (!unanswered.is_empty())
        .then(|| Error::from_messages(kind, messages).with_hint("run the same command again"))
}

/// Returns the message about an object. An object without an answer always has an error.
fn to_message(prediction: &Prediction) -> Message {
    let reason = prediction.outcome.error.as_deref().cloned();
    let key = prediction.outcome.subject.key();
    reason
        .unwrap_or_else(|| Message::new(""))
        .with_subject_prefix(format_args!("{key}: not compared: "))
}
