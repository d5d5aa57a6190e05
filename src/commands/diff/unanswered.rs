//! The error of a comparison in which the server did not answer dry runs or reads.

use crate::error::{Error, ErrorKind};
use crate::event::ObjectOutcome;
use crate::execute::{Prediction, Unanswered};
use crate::model::message::Message;
use crate::model::text::counted;

/// Limit of objects that the error lists: usually they share one reason.
const SHOWN_OBJECTS: usize = 10;

/// Returns the error of a comparison in which requests got no usable answer; `None` if all were answered.
pub(super) fn unanswered_error(predictions: &[Prediction]) -> Option<Error> {
    let unanswered = predictions
        .iter()
        .filter_map(|prediction| Some((prediction.unanswered?, &prediction.outcome)));
    let requests: Vec<Unanswered> = unanswered.clone().map(|(request, _)| request).collect();
    let last = requests.last()?;
    let mut messages: Vec<Message> = unanswered
        .take(SHOWN_OBJECTS)
        .map(|(request, outcome)| to_message(request, outcome))
        .collect();
    let more = requests.len().saturating_sub(SHOWN_OBJECTS);
    if more > 0 {
        let objects = counted(more, "object");
        let text = match last {
            Unanswered::DryRun => format!("dry run failed for {objects} more"),
            Unanswered::Read | Unanswered::ForbiddenRead => format!("cannot read {objects} more"),
        };
        messages.push(text.into());
    }
    let is_forbidden = requests
        .iter()
        .all(|request| *request == Unanswered::ForbiddenRead);
    let kind = if is_forbidden {
        ErrorKind::Forbidden
    } else {
        ErrorKind::Cluster
    };
    Some(Error::from_messages(kind, messages).with_hint("run the same command again"))
}

/// Returns the message about an object. An object without an answer always has an error.
fn to_message(request: Unanswered, outcome: &ObjectOutcome) -> Message {
    let what = match request {
        Unanswered::DryRun => "dry run failed",
        Unanswered::Read | Unanswered::ForbiddenRead => "cannot be read",
    };
    let reason = outcome.error.as_deref().cloned();
    let key = outcome.subject.key();
    reason
        .unwrap_or_else(|| Message::new(""))
        .with_subject_prefix(format_args!("{key}: {what}: "))
}
