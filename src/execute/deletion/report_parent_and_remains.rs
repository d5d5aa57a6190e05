//! Reports on the parent of a deleted set, and on what is left of the set.

use std::collections::BTreeSet;

use crate::event::{Action, Ending, Event, ObjectOutcome, Sink, Subject};
use crate::model::applyset::Record;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::set::Set;
use crate::model::text::first_names_and_more;
use crate::plan::{ParentDisposition, decide_parent_disposition};
use crate::read::LiveParent;

/// Returns the reason to keep a parent that records the kinds in `unlisted`, whose members a list may not show.
pub fn describe_unlisted_kinds(unlisted: &Record) -> String {
    let kinds = first_names_and_more(&unlisted.group_kinds);
    format!("members may remain that no list of members shows: objects of kind {kinds}")
}

/// Reports a failure, with its `consequence` for the set, if there are kinds in `unlisted`, whose members a list may
/// not show.
pub fn fail_if_kinds_unlisted(
    parent: &ObjectKey,
    unlisted: &Record,
    consequence: &str,
    sink: &mut Sink<'_>,
) -> Ending {
    if unlisted.is_empty() {
        return Ending::Done;
    }
    let reason = describe_unlisted_kinds(unlisted);
    sink(Event::general_failure(format!(
        "{parent}: {consequence}: {reason}"
    )));
    Ending::Incomplete
}

/// Returns the event that reports this action for an object, with the reason.
pub fn outcome_event(live: &Live, action: Action, reason: String) -> Event {
    let subject = Subject::from_live(live);
    Event::Object(ObjectOutcome::new_with_reason(subject, action, reason))
}

/// Returns the names of objects, joined in one line.
pub fn join_names(objects: &[Live]) -> String {
    first_names_and_more(objects.iter().map(|live| &live.key))
}

/// Predicts what becomes of the parent once its set has no members. Content of the field managers in `managers` does
/// not keep the parent. Also returns the event that reports the prediction.
pub fn predict_disposition(
    set: &Set,
    parent: &LiveParent,
    managers: &BTreeSet<String>,
) -> (ParentDisposition, Event) {
    let disposition = decide_parent_disposition(set, &parent.live, &parent.content_writers, managers);
    let event = match &disposition {
        ParentDisposition::Goes => outcome_event(&parent.live, Action::Deleted, String::new()),
        ParentDisposition::Stays(why) => outcome_event(&parent.live, Action::Skipped, why.to_string()),
    };
    (disposition, event)
}
