//! What became of the objects that a run was to delete.

use std::collections::BTreeSet;

use crate::event::{Action, Event, NotDone, ObjectOutcome, Sink};
use crate::execute::deletion::judge_again::NotJudged;
use crate::model::identity::ObjectKey;
use crate::plan::{Dependents, Judge, KeptObjects, Plan};

/// Outcome of the objects that were to be deleted.
#[derive(Debug, Clone, Default)]
pub struct DeleteResults {
    pub failed: usize,
    /// The number of objects that are kept, because they changed since the plan was made. If there are any, the record
    /// is not narrowed.
    pub kept: usize,
    /// The objects that were to be deleted and failed or are kept.
    pub kept_objects: KeptObjects,
    /// UIDs of the objects that were deleted.
    pub uids: BTreeSet<String>,
    /// The objects from which the run has removed owner references.
    pub detached: BTreeSet<ObjectKey>,
    /// Kept objects with owner references to objects that are still to be deleted.
    pub attached: Dependents,
}

/// Error after which no further delete begins. Its reason has been reported.
pub struct Stopped;

impl DeleteResults {
    /// Counts the objects that are left to delete (`objects_left` is their number) as failed, because they cannot be
    /// judged, and reports why.
    pub(super) fn fail_remaining(
        &mut self,
        not_judged: &NotJudged,
        objects_left: usize,
        action: Action,
        sink: &mut Sink<'_>,
    ) -> Stopped {
        self.failed += objects_left;
        let more = if self.uids.is_empty() { "" } else { " more" };
        sink(Event::general_failure(format!(
            "{not_judged}; nothing{more} was {action}"
        )));
        let reason = not_judged.reason_of_objects();
        sink(NotDone::event_for_all(format!("not {action}: {reason}")));
        Stopped
    }

    /// Notes in the judge that the objects of the plan whose delete failed, or that were kept, do not count as deleted.
    pub(super) fn note_not_deleted(&self, plan: &Plan, judge: &mut Judge<'_>) {
        let planned = plan.all_prunes();
        judge.note_not_deleted(planned.filter(|live| self.kept_objects.contains(&live.key)));
    }

    /// Adds the object of this outcome to the kept ones, unless it was deleted.
    pub(super) fn note_kept_unless_deleted(&mut self, outcome: &ObjectOutcome) {
        if matches!(outcome.action, Action::Skipped | Action::Failed) {
            self.kept_objects.add(&outcome.subject.key());
        }
    }

    /// Counts and reports the outcome of an object that was to be deleted with this `action`.
    pub(super) fn count_and_report(&mut self, outcome: ObjectOutcome, action: Action, sink: &mut Sink<'_>) {
        self.failed += usize::from(outcome.action == Action::Failed);
        self.kept += usize::from(outcome.action == Action::Skipped);
        if outcome.action == action {
            self.uids.extend(outcome.subject.uid.clone());
        }
        self.note_kept_unless_deleted(&outcome);
        sink(Event::Object(outcome));
    }
}
