//! The error of a comparison in which the server did not answer dry runs or reads.

use crate::error::{Error, ErrorKind};
use crate::execute::Prediction;
use crate::model::message::Message;
use crate::model::text::counted;

/// Returns the error of a comparison in which requests got no usable answer; `None` if all were answered. It has the
/// reason of the first object: usually the others share it.
pub(super) fn unanswered_error(predictions: &[Prediction]) -> Option<Error> {
    let unanswered: Vec<&Prediction> = predictions
        .iter()
        .filter(|prediction| prediction.unanswered.is_some())
        .collect();
    let first = unanswered.first()?;
    let key = first.outcome.subject.key();
    let reason = first.outcome.error.as_deref().cloned();
    let mut message = reason
        .unwrap_or_else(|| Message::new(""))
        .with_subject_prefix(format_args!("{key}: not compared: "));
    let more = unanswered.len() - 1;
    if more > 0 {
        message = message.with_details([format!("not compared: {} more", counted(more, "object"))]);
    }
    let is_forbidden = |prediction: &&Prediction| prediction.unanswered == Some(ErrorKind::Forbidden);
    let kind = if unanswered.iter().all(is_forbidden) {
        ErrorKind::Forbidden
    } else {
        ErrorKind::Cluster
    };
    Some(Error::new(kind, message).with_hint("run the same command again"))
}
