//! Takes live objects into a set, moves them to another, or releases them. The record is widened first,
//! then labels are written, and the record is narrowed last: an interrupted run leaves no member
//! outside of a record.
//!
//! `plan` decides which objects are taken; `relabel` writes single labels.

mod adopt;
mod disband;
mod move_members;
mod relabel;

pub use adopt::Adopting;
pub use disband::Disbanding;
pub use move_members::{Moving, Obstacles, OldParent};
use relabel::Relabeled;

use crate::event::{Action, Ending, Event, ObjectOutcome, Subject};
use crate::execute::Sink;
use crate::execute::deletion::delete::untouched;
use crate::execute::labeled_objects::list_labeled_objects;
use crate::execute::parent_record::requests::ParentWriting;
use crate::model::live::Live;
use crate::plan::{Left, MembershipPlan};
use crate::read::{ListError, ListTargets, METADATA_LIST};

/// Lists the objects with the label of the set within this scope.
async fn members(parent: &ParentWriting<'_>, targets: &ListTargets) -> Result<Vec<Live>, ListError> {
    let concurrency = parent.writing.concurrency;
    let found = list_labeled_objects(parent.server, parent.set, targets, concurrency, METADATA_LIST).await;
    found.map_err(|(_, error)| error)
}

fn ending(relabeled: Relabeled, parent: &ParentWriting<'_>) -> Ending {
    match relabeled.failed {
        _ if parent.interrupt.is_requested() => Ending::Interrupted,
        0 => Ending::Done,
        _ => Ending::Incomplete,
    }
}

/// Fails with an error if the set gets none of the objects that were found: a script would then apply it, and
/// the objects would still be where they were.
fn unless_none_is_taken(
    ending: Ending,
    plan: &MembershipPlan,
    error: impl FnOnce() -> String,
    sink: &mut Sink<'_>,
) -> Ending {
    if ending != Ending::Done || plan.takes_any() || plan.left.is_empty() {
        return ending;
    }
    sink(Event::failure(error()));
    Ending::Incomplete
}

/// Announces the objects of the plan, each with its outcome if the run ends before it, and the parents.
fn announce(parents: &[&ParentWriting<'_>], plan: &MembershipPlan, sink: &mut Sink<'_>) {
    for parent in parents {
        sink(parent.announcement());
    }
    let left = plan.left.iter().map(left_alone);
    let changes = plan.changes.iter().map(untouched);
    let planned = plan.settled.iter().map(settled).chain(left).chain(changes);
    sink(Event::Planned(planned.collect()));
}

/// Reports the objects that stay as they are.
pub fn report_others(plan: &MembershipPlan, sink: &mut Sink<'_>) {
    let outcomes = plan.settled.iter().map(settled);
    for outcome in outcomes.chain(plan.left.iter().map(left_alone)) {
        sink(Event::Object(outcome));
    }
}

fn settled(live: &Live) -> ObjectOutcome {
    ObjectOutcome {
        action: Action::Unchanged,
        ..untouched(live)
    }
}

fn left_alone(left: &Left) -> ObjectOutcome {
    let subject = Subject::new(&left.key, &left.resource, left.uid.as_deref());
    if left.is_failure() {
        return ObjectOutcome::failed(subject, left.reason.to_string());
    }
    ObjectOutcome::with_reason(subject, Action::Skipped, left.reason.to_string())
}
