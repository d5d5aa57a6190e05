//! Tracks the planned objects without a reported result, so that none of them is missing from the results of a run that
//! ends early.

use std::collections::VecDeque;
use std::{fmt, mem};

use crate::event::{Action, NotDone, ObjectOutcome};
use crate::model::identity::ObjectKey;
use crate::model::text::{counted, first_names_and_more};

/// The planned objects without a result, each with the outcome that it gets if the run ends before its turn. They are
/// in the order of the plan, and objects are reported nearly in this order, so a reported object is found near the
/// front.
#[derive(Debug, Default)]
pub(super) struct ObjectsWithoutResult(VecDeque<ObjectOutcome>);

impl ObjectsWithoutResult {
    /// Adds planned objects, in the order in which they are reported if the run ends early.
    pub(super) fn add_planned(&mut self, outcomes: Vec<ObjectOutcome>) {
        if self.0.is_empty() {
            // Takes the memory over, without a second copy.
            self.0 = outcomes.into();
        } else {
            self.0.extend(outcomes);
        }
    }

    /// Removes an object that was reported, and returns its planned outcome.
    pub(super) fn remove(&mut self, outcome: &ObjectOutcome) -> Option<ObjectOutcome> {
        let index = self
            .0
            .iter()
            .position(|planned| planned.subject.has_key_of(&outcome.subject))?;
        self.remove_at(index)
    }

    fn remove_at(&mut self, index: usize) -> Option<ObjectOutcome> {
        let outcome = self.0.remove(index);
        if self.0.is_empty() {
            // Frees memory before the document of the run is created, which may be large.
            *self = Self::default();
        }
        outcome
    }

    /// Removes the objects that were not processed, and returns their outcomes. They have the reason of `not_done`,
    /// unless they have a reason of their own.
    pub(super) fn take_not_done(&mut self, not_done: &NotDone) -> Vec<ObjectOutcome> {
        let mut left: Vec<ObjectOutcome> = match &not_done.objects {
            None => mem::take(&mut self.0).into(),
            Some(keys) => keys
                .iter()
                .filter_map(|key| {
                    let index = self.0.iter().position(|ObjectOutcome { subject, .. }| {
                        subject.name == key.name && subject.key() == *key
                    })?;
                    self.remove_at(index)
                })
                .collect(),
        };
        for outcome in &mut left {
            if outcome.action == Action::Skipped && outcome.reason.is_empty() {
                outcome.reason.clone_from(&not_done.reason);
            }
        }
        left
    }
}

/// The objects that a run that ended early leaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Objects to which no request was sent.
    pub(super) not_sent: Vec<ObjectKey>,
    /// Objects of which a write was sent whose result is unknown.
    pub(super) unanswered: Vec<ObjectKey>,
    /// Objects that were deleted to be created again, and were not.
    pub(super) deleted: Vec<ObjectKey>,
    /// The number of objects that failed for a known reason.
    pub(super) failed: usize,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            describe_left_objects(
                "request",
                "with unknown outcome, which may have taken effect",
                &self.unanswered,
            ),
            describe_left_objects("object", "deleted and not created again", &self.deleted),
            describe_left_objects("request", "not sent", &self.not_sent),
            (self.failed > 0).then(|| format!("{} failed", counted(self.failed, "object"))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(&parts.join("; "))
    }
}

/// Counts and lists objects that a run has left in the same state; `None` if there are none.
fn describe_left_objects(counted_as: &str, what: &str, keys: &[ObjectKey]) -> Option<String> {
    let count = counted(keys.len(), counted_as);
    (!keys.is_empty()).then(|| format!("{count} {what}: {}", first_names_and_more(keys)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::{Event, Subject};
    use crate::model::resource::{Resource, Scope};

    fn outcome(kind: &str, name: &str, action: Action, reason: &str) -> ObjectOutcome {
        let subject = Subject {
            resource: Arc::new(Resource::with_regular_names("", "v1", kind, Scope::Namespaced)),
            namespace: None,
            name: name.to_owned(),
            uid: None,
        };
        ObjectOutcome::new_with_reason(subject, action, reason)
    }

    fn taken(without_result: &mut ObjectsWithoutResult, event: Event) -> Vec<String> {
        let Event::NotDone(not_done) = event else {
            panic!("another event");
        };
        let taken = without_result.take_not_done(&not_done).into_iter();
        taken
            .map(|outcome| format!("{} {}: {}", outcome.subject.name, outcome.action, outcome.reason))
            .collect()
    }

    #[test]
    fn an_early_end_says_what_is_left() {
        let keys = |names: &[&str]| -> Vec<ObjectKey> {
            let outcomes = names.iter().map(|name| outcome("A", name, Action::Skipped, ""));
            outcomes.map(|outcome| outcome.subject.key()).collect()
        };
        let table = [
            (
                &["a", "b"][..],
                &[][..],
                &[][..],
                0,
                "2 requests not sent: a/a, a/b",
            ),
            (&[], &[], &["c"], 0, "1 object deleted and not created again: a/c"),
            (
                &["a"],
                &["b"],
                &[],
                2,
                "1 request with unknown outcome, which may have taken effect: a/b; \
                 1 request not sent: a/a; 2 objects failed",
            ),
        ];
        for (not_sent, unanswered, deleted, failed, expected) in table {
            let unfinished = Unfinished {
                not_sent: keys(not_sent),
                unanswered: keys(unanswered),
                deleted: keys(deleted),
                failed,
            };
            assert_eq!(unfinished.to_string(), expected);
        }
    }

    #[test]
    fn each_object_has_its_planned_outcome_in_and_out_of_turn() {
        let names = ["a", "b", "c", "d", "e"];
        for order in [[0, 1, 2, 3, 4], [0, 2, 1, 4, 3], [4, 3, 2, 1, 0]] {
            let mut without_result = ObjectsWithoutResult::default();
            without_result.add_planned(
                names[..3]
                    .iter()
                    .map(|name| outcome("A", name, Action::Skipped, name))
                    .collect(),
            );
            without_result.add_planned(
                names[3..]
                    .iter()
                    .map(|name| outcome("A", name, Action::Skipped, name))
                    .collect(),
            );
            for index in order {
                let reported = outcome("A", names[index], Action::Created, "");
                let planned = without_result.remove(&reported).map(|planned| planned.reason);
                assert_eq!(planned.as_deref(), Some(names[index]), "{order:?}");
                assert_eq!(without_result.remove(&reported), None, "{order:?}");
            }
            assert!(without_result.0.is_empty(), "{order:?}");
        }
    }

    #[test]
    fn unreported_objects_are_in_the_order_of_the_plan() {
        let mut without_result = ObjectsWithoutResult::default();
        without_result.add_planned(vec![
            outcome("B", "b", Action::Skipped, ""),
            outcome("A", "a", Action::Skipped, ""),
            outcome("A", "kept", Action::Skipped, "marked"),
            outcome("A", "done", Action::Skipped, ""),
            outcome("A", "same", Action::Unchanged, ""),
        ]);
        without_result.remove(&outcome("A", "done", Action::Created, ""));
        without_result.remove(&outcome("A", "unplanned", Action::Created, ""));
        let of_b = NotDone::event_for_objects(
            vec![outcome("B", "b", Action::Skipped, "").subject.key()],
            "no kind",
        );
        assert_eq!(taken(&mut without_result, of_b), ["b skipped: no kind"]);
        assert_eq!(
            taken(&mut without_result, NotDone::event_for_all("stopped")),
            ["a skipped: stopped", "kept skipped: marked", "same unchanged: "]
        );
        assert_eq!(
            taken(&mut without_result, NotDone::event_for_all("again")),
            Vec::<String>::new()
        );
    }
}
