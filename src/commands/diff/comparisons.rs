//! The comparison of each object with its prediction.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::compare::diff::{Difference, OldSide, OwnershipChange};
use crate::compare::drift::{self, DriftedField};
use crate::event::{Action, ObjectOutcome, Subject};
use crate::execute::Prediction;
use crate::model::identity::ObjectKey;
use crate::plan::Refusal;
use crate::plan::saved::SavedPlan;
use crate::report::{Cause, Comparison};
use crate::session::prepare::{Base, Prepared};

/// Compares all objects with their predictions. The result is sorted by the file names of the objects, as the output of
/// `kubectl diff` is.
pub(super) fn build_comparisons(
    prepared: &Prepared,
    predictions: Vec<Prediction>,
    plan: Option<&SavedPlan>,
) -> Vec<Comparison> {
    let resources: BTreeMap<&ObjectKey, _> = prepared
        .state
        .observed
        .members
        .iter()
        .map(|live| (&live.key, &live.resource))
        .chain(
            prepared
                .desired
                .members
                .iter()
                .chain(prepared.base.iter().flat_map(Base::removed))
                .map(|member| (&member.key, &member.resource)),
        )
        .collect();
    let mut refused = Refusal::first_by_object(&prepared.plan.refusals);
    let mut comparisons = Vec::new();
    for Prediction {
        mut outcome,
        live,
        predicted,
        compared,
        ..
    } in predictions
    {
        let key = outcome.subject.key();
        if let Some(refusal) = refused.remove(&key) {
            outcome = refused_outcome(outcome.subject, refusal);
        }
        if let Some(resource) = resources.get(&key) {
            let is_base_compared = compared.is_some();
            let taken = find_fields_taken_by_others(&outcome, live.as_ref(), predicted.as_ref(), prepared);
            let [before, after] = compared.unwrap_or([live, predicted]);
            let mut difference = Difference::new(resource, &key, before.as_ref(), after.as_ref());
            if is_base_compared {
                difference.old_side = OldSide::Base;
                decide_action_from_states(&mut outcome, &difference, before.as_ref().zip(after.as_ref()));
            }
            comparisons.push(Comparison {
                ownership: find_ownership_only_change(&outcome, &difference, before.as_ref(), after.as_ref()),
                cause: match plan {
                    Some(_) => Cause::SamePlan(taken),
                    None if taken.is_empty() => Cause::Unknown,
                    None => Cause::Taken(taken),
                },
                difference,
                outcome,
            });
        }
    }
    // The remaining refusals are of objects that were not sent to the server, so that they have no difference.
    for (key, refusal) in refused {
        if let Some(resource) = resources.get(key) {
            comparisons.push(Comparison {
                difference: Difference::new(resource, key, None, None),
                outcome: refused_outcome(Subject::new(key, resource, None), refusal),
                ownership: None,
                cause: Cause::Unknown,
            });
        }
    }
    comparisons.sort_by(|one, other| one.difference.file.cmp(&other.difference.file));
    comparisons
}

/// Returns the outcome of an object that may not be written. A refused prune is one of the prunes of the plan, which
/// the user may consent to.
fn refused_outcome(subject: Subject, refusal: &Refusal) -> ObjectOutcome {
    let action = if refusal.is_of_prune() {
        Action::Pruned
    } else {
        Action::Failed
    };
    ObjectOutcome {
        action,
        ..ObjectOutcome::from_error(subject, refusal.to_string())
    }
}

/// Decides whether an object that exists before and after is changed, if the states are not those of the live object and
/// of its prediction. What would fail, or be recreated, stays so.
fn decide_action_from_states(
    outcome: &mut ObjectOutcome,
    difference: &Difference,
    states: Option<(&Value, &Value)>,
) {
    let Some((before, after)) = states else { return };
    if matches!(outcome.action, Action::Failed | Action::Recreated) {
        return;
    }
    let is_same = difference.is_empty() && OwnershipChange::new(before, after) == OwnershipChange::default();
    outcome.action = if is_same {
        Action::Unchanged
    } else {
        Action::Configured
    };
    outcome.reason.clear();
    outcome.taken_in = false;
}

/// Returns the change of field ownership of an object that would be written only because of this change.
fn find_ownership_only_change(
    outcome: &ObjectOutcome,
    difference: &Difference,
    live: Option<&Value>,
    predicted: Option<&Value>,
) -> Option<OwnershipChange> {
    let is_only_change = outcome.action == Action::Configured && difference.is_empty();
    live.zip(predicted)
        .filter(|_| is_only_change)
        .map(|(live, predicted)| OwnershipChange::new(live, predicted))
}

/// Returns the fields that others have changed since the last apply, as far as `managedFields` shows them.
fn find_fields_taken_by_others(
    outcome: &ObjectOutcome,
    live: Option<&Value>,
    predicted: Option<&Value>,
    prepared: &Prepared,
) -> Vec<DriftedField> {
    let (Some(live), Some(predicted)) = (live, predicted) else {
        return Vec::new();
    };
    let manager = &prepared.writing.field_manager;
    let conflicts = outcome.error.iter().flat_map(|error| &error.conflicts);
    let fields = conflicts.map(|conflict| (conflict.field.as_str(), conflict.owner.as_str()));
    let mut taken = drift::drifted_fields(live, predicted, manager);
    taken.extend(drift::drifted_fields_of_conflict(live, fields, manager));
    taken
}
