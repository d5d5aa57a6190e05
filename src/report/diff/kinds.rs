//! The kinds of difference that `diff --exit-code-on` accepts.

use std::collections::BTreeSet;

use clap::ValueEnum;

use super::{Comparison, Differences};
use crate::compare::drift::DriftedField;
use crate::event::Action;
use crate::model::pointer::Pointer;

/// A kind of difference. An object may have two kinds: drift is also a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum DifferenceKind {
    /// Objects that others have changed since the last apply.
    Drift,
    /// Objects that apply would create, change or recreate.
    Change,
    /// Objects that apply would prune.
    Prune,
}

/// What is known about the cause of a difference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Cause {
    /// The manifest has changed, or somebody has changed the object without a trace in field ownership.
    #[default]
    Unknown,
    /// Other field managers have changed these fields since the last apply.
    Taken(Vec<DriftedField>),
    /// The manifests are those of the saved plan, so somebody else has caused the difference. The list has the changed
    /// fields of which the new manager is known.
    SamePlan(Vec<DriftedField>),
}

impl Comparison {
    /// Returns the kinds of this difference (change, drift, prune); empty if there is none. Returns `None` if an apply
    /// would fail for another reason than a field conflict, so that the difference is not known.
    fn difference_kinds(&self) -> Option<Vec<DifferenceKind>> {
        let change = match self.outcome.action {
            Action::Unchanged | Action::Skipped => return Some(Vec::new()),
            Action::Pruned => return Some(vec![DifferenceKind::Prune]),
            Action::Failed => {
                let error = self.outcome.error.as_ref();
                if error.is_none_or(|error| error.conflicts.is_empty()) {
                    return None;
                }
                DifferenceKind::Change
            }
            _ => DifferenceKind::Change,
        };
        let drift = (self.cause != Cause::Unknown).then_some(DifferenceKind::Drift);
        Some(std::iter::once(change).chain(drift).collect())
    }

    /// Returns whether others have changed the object since the last apply; `None` if that is unknown, because an apply
    /// would fail for another reason than a field conflict.
    pub fn is_drift(&self) -> Option<bool> {
        Some(self.difference_kinds()?.contains(&DifferenceKind::Drift))
    }

    /// Returns a line about the fields that others have changed; `None` without drift.
    pub fn drift_line(&self) -> Option<String> {
        if self.is_drift() != Some(true) {
            return None;
        }
        let key = self.outcome.subject.key();
        match &self.cause {
            Cause::Unknown => None,
            Cause::Taken(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|taken| format!("{} by {}", taken.field, taken.manager))
                    .collect();
                Some(format!(
                    "{key} was changed since the last apply: {}",
                    fields.join(", ")
                ))
            }
            Cause::SamePlan(taken) => Some(format!(
                "{key} differs from the plan: {}",
                self.describe_drift(taken)
            )),
        }
    }

    /// Returns the fields that differ, each with the field manager that has changed it if it is known.
    fn describe_drift(&self, taken: &[DriftedField]) -> String {
        if self.outcome.action == Action::Created {
            return "it does not exist".to_owned();
        }
        let changes = self.difference.changes();
        let fields = changes.iter().map(|change| {
            let field =
                Pointer::parse(&change.field).map_or_else(|_| change.field.clone(), |field| field.readable());
            match taken.iter().find(|taken| taken.field == field) {
                Some(taken) => format!("{field} by {}", taken.manager),
                None => field,
            }
        });
        let fields: Vec<String> = fields.collect();
        if fields.is_empty() {
            "other managers own its fields".to_owned()
        } else {
            fields.join(", ")
        }
    }
}

impl Differences {
    /// Returns whether there is a difference of one of these kinds. An object whose apply would fail or be refused
    /// always counts, because the effect of an apply is not known then.
    pub fn may_have_any_of(&self, kinds: &BTreeSet<DifferenceKind>) -> bool {
        let parent_differs = self.parent.as_ref().is_some_and(|parent| !parent.is_empty());
        !self.refusals.is_empty()
            || !self.failures.is_empty()
            || (parent_differs && kinds.contains(&DifferenceKind::Change))
            || self.objects.iter().any(|object| match object.difference_kinds() {
                None => true,
                Some(found) => found.iter().any(|kind| kinds.contains(kind)),
            })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::compare::diff::Difference;
    use crate::event::{ObjectOutcome, Subject};
    use crate::model::identity::{GroupKind, ObjectKey};
    use crate::model::message::{FieldConflict, Message};
    use crate::model::resource::{Resource, Scope};
    use crate::plan::Refusal;

    fn key() -> ObjectKey {
        ObjectKey {
            group_kind: GroupKind::new("", "ConfigMap"),
            namespace: Some("shop".to_owned()),
            name: "web".to_owned(),
        }
    }

    fn comparison(action: Action, cause: Cause) -> Comparison {
        let resource = Arc::new(Resource::with_regular_names(
            "",
            "v1",
            "ConfigMap",
            Scope::Namespaced,
        ));
        Comparison {
            difference: Difference::new(&resource, &key(), None, None),
            outcome: ObjectOutcome::new(Subject::new(&key(), &resource, None), action),
            ownership: None,
            cause,
        }
    }

    fn fields() -> Vec<DriftedField> {
        vec![DriftedField {
            field: "data.color".to_owned(),
            manager: "kubectl-edit".to_owned(),
        }]
    }

    fn taken() -> Cause {
        Cause::Taken(fields())
    }

    fn same_plan() -> Cause {
        Cause::SamePlan(fields())
    }

    #[test]
    fn each_word_counts_its_kind_of_difference() {
        let mut conflicting = comparison(Action::Failed, taken());
        let conflict = Message::new("conflict").with_conflicts(vec![FieldConflict {
            object: key(),
            place: String::new(),
            field: ".data.color".to_owned(),
            owner: "\"kubectl-edit\"".to_owned(),
            since: None,
            values: None,
            pointer: None,
        }]);
        conflicting.outcome.error = Some(conflict.into());
        let table = [
            (
                comparison(Action::Unchanged, Cause::Unknown),
                [false, false, false],
            ),
            (comparison(Action::Skipped, same_plan()), [false, false, false]),
            (comparison(Action::Created, Cause::Unknown), [false, true, false]),
            (comparison(Action::Created, same_plan()), [true, true, false]),
            (
                comparison(Action::Configured, Cause::Unknown),
                [false, true, false],
            ),
            (comparison(Action::Configured, taken()), [true, true, false]),
            (
                comparison(Action::Recreated, Cause::Unknown),
                [false, true, false],
            ),
            (comparison(Action::Pruned, same_plan()), [false, false, true]),
            (comparison(Action::Failed, Cause::Unknown), [true, true, true]),
            (conflicting, [true, true, false]),
        ];
        for (object, expected) in table {
            let description = format!("{:?} {:?}", object.outcome.action, object.cause);
            let found = Differences {
                objects: vec![object],
                ..Differences::default()
            };
            let words = [
                DifferenceKind::Drift,
                DifferenceKind::Change,
                DifferenceKind::Prune,
            ];
            let counted = words.map(|word| found.may_have_any_of(&[word].into()));
            assert_eq!(counted, expected, "{description}");
        }
    }

    #[test]
    fn the_parent_is_a_change_and_a_refusal_always_counts() {
        let parent = Difference {
            predicted: Some(json!({})),
            ..Difference::default()
        };
        let with_parent = Differences {
            parent: Some(parent),
            ..Differences::default()
        };
        let refused = Differences {
            refusals: vec![Refusal::EmptyManifests { objects: Vec::new() }],
            ..Differences::default()
        };
        let words = [
            DifferenceKind::Drift,
            DifferenceKind::Change,
            DifferenceKind::Prune,
        ];
        let counted = |found: &Differences| words.map(|word| found.may_have_any_of(&[word].into()));
        assert_eq!(counted(&with_parent), [false, true, false]);
        assert_eq!(counted(&refused), [true, true, true]);
    }

    #[test]
    fn drift_is_described_with_its_fields_and_managers() {
        let line = comparison(Action::Configured, taken()).drift_line();
        let expected =
            "configmap/web in namespace shop was changed since the last apply: data.color by kubectl-edit";
        assert_eq!(line.as_deref(), Some(expected));
        for (action, cause) in [
            (Action::Created, Cause::Unknown),
            (Action::Unchanged, same_plan()),
            (Action::Pruned, same_plan()),
        ] {
            assert_eq!(comparison(action, cause).drift_line(), None, "{action:?}");
        }
    }

    #[test]
    fn drift_from_a_plan_is_described_by_what_differs() {
        let mut taken = fields();
        taken.push(DriftedField {
            field: "data[a/b]".to_owned(),
            manager: "kubectl-scale".to_owned(),
        });
        let mut changed = comparison(Action::Configured, Cause::SamePlan(taken));
        changed.difference.live = Some(json!({"data": {"color": "red", "a/b": "1"}, "list": [1]}));
        changed.difference.predicted = Some(json!({"data": {"color": "blue"}, "list": [2]}));
        let table = [
            (
                changed,
                "data[a/b] by kubectl-scale, data.color by kubectl-edit, list[0]",
            ),
            (comparison(Action::Created, same_plan()), "it does not exist"),
            (
                comparison(Action::Configured, same_plan()),
                "other managers own its fields",
            ),
        ];
        for (object, expected) in table {
            let expected = format!("configmap/web in namespace shop differs from the plan: {expected}");
            assert_eq!(object.drift_line(), Some(expected));
        }
    }

    #[test]
    fn drift_is_unknown_if_an_apply_would_fail() {
        let table = [
            (Action::Failed, Cause::Unknown, None),
            (Action::Configured, Cause::Unknown, Some(false)),
            (Action::Configured, taken(), Some(true)),
            (Action::Pruned, same_plan(), Some(false)),
            (Action::Unchanged, same_plan(), Some(false)),
        ];
        for (action, cause, expected) in table {
            assert_eq!(comparison(action, cause).is_drift(), expected, "{action:?}");
        }
    }
}
