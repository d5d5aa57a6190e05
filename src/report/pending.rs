//! Tracks the planned objects that were not reported yet.
//!
//! Pure. No planned object may be missing from the results of a run that ends early.

use std::collections::HashMap;

use crate::event::{Action, NotDone, NotDoneScope, ObjectOutcome};
use crate::model::identity::ObjectKey;

/// Planned objects, each with its outcome if the run ends before it.
#[derive(Debug, Default)]
pub(super) struct Pending {
    outcomes: Vec<Option<ObjectOutcome>>,
    indexes: HashMap<ObjectKey, usize>,
}

impl Pending {
    /// Adds planned objects, in the order in which they are reported if the run ends early.
    pub(super) fn plan(&mut self, outcomes: Vec<ObjectOutcome>) {
        let keys = outcomes.iter().map(|outcome| outcome.subject.key());
        self.indexes.extend(keys.zip(self.outcomes.len()..));
        let outcomes = outcomes.into_iter().map(Some);
        if self.outcomes.is_empty() {
            // Collects in place, without a second copy in memory.
            self.outcomes = outcomes.collect();
        } else {
            self.outcomes.extend(outcomes);
        }
    }

    /// Removes an object that was reported, and returns its planned outcome.
    pub(super) fn note(&mut self, outcome: &ObjectOutcome) -> Option<ObjectOutcome> {
        if self.indexes.is_empty() {
            return None;
        }
        let index = self.indexes.remove(&outcome.subject.key())?;
        let outcome = self.outcomes[index].take();
        if self.indexes.is_empty() {
            // Frees memory for the document, which may be large and is made next.
            self.outcomes = Vec::new();
        }
        outcome
    }

    /// Removes the objects that were not processed, and returns their outcomes. An outcome with a
    /// reason of its own keeps it.
    pub(super) fn take(&mut self, not_done: &NotDone) -> Vec<ObjectOutcome> {
        let mut left: Vec<ObjectOutcome> = match &not_done.scope {
            NotDoneScope::All => {
                self.indexes.clear();
                self.outcomes.drain(..).flatten().collect()
            }
            NotDoneScope::Objects(keys) => keys
                .iter()
                .filter_map(|key| self.outcomes[self.indexes.remove(key)?].take())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Subject};

    fn outcome(kind: &str, name: &str, action: Action, reason: &str) -> ObjectOutcome {
        let subject = Subject {
            group: String::new(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            resource: "things".to_owned(),
            namespace: None,
            name: name.to_owned(),
            uid: None,
        };
        ObjectOutcome::with_reason(subject, action, reason)
    }

    fn taken(pending: &mut Pending, event: Event) -> Vec<String> {
        let Event::NotDone(not_done) = event else {
            panic!("another event");
        };
        let taken = pending.take(&not_done).into_iter();
        taken
            .map(|outcome| format!("{} {}: {}", outcome.subject.name, outcome.action, outcome.reason))
            .collect()
    }

    #[test]
    fn unreported_objects_are_in_the_order_of_the_plan() {
        let mut pending = Pending::default();
        pending.plan(vec![
            outcome("B", "b", Action::Skipped, ""),
            outcome("A", "a", Action::Skipped, ""),
            outcome("A", "kept", Action::Skipped, "marked"),
            outcome("A", "done", Action::Skipped, ""),
            outcome("A", "same", Action::Unchanged, ""),
        ]);
        pending.note(&outcome("A", "done", Action::Created, ""));
        pending.note(&outcome("A", "unplanned", Action::Created, ""));
        let of_b = NotDone::some(
            vec![outcome("B", "b", Action::Skipped, "").subject.key()],
            "no kind",
        );
        assert_eq!(taken(&mut pending, of_b), ["b skipped: no kind"]);
        assert_eq!(
            taken(&mut pending, NotDone::all("stopped")),
            ["a skipped: stopped", "kept skipped: marked", "same unchanged: "]
        );
        assert_eq!(taken(&mut pending, NotDone::all("again")), Vec::<String>::new());
    }
}
