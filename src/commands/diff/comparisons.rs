//! The comparison of each object with its prediction.

use std::collections::BTreeMap;

use serde_json::Value;

use super::base::StatesBefore;
use crate::compare::diff::{Difference, OwnershipChange};
use crate::compare::drift::{self, DriftedField};
use crate::event::{Action, ObjectOutcome, Subject};
use crate::execute::Prediction;
use crate::model::identity::ObjectKey;
use crate::plan::Refusal;
use crate::plan::saved::SavedPlan;
use crate::report::{Cause, Comparison};
use crate::session::prepare::Prepared;

/// Compares all objects with their predictions. The result is sorted by the file names of the objects, as the output of
/// `kubectl diff` is.
pub(super) fn build_comparisons(
    prepared: &Prepared,
    predictions: Vec<Prediction>,
    states_before: &StatesBefore,
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
                .chain(prepared.base.iter().flat_map(|base| &base.different.members))
                .map(|member| (&member.key, &member.resource)),
        )
        .collect();
    let mut refused = Refusal::first_by_object(&prepared.plan.refusals);
    let mut comparisons = Vec::new();
    for Prediction {
        mut outcome,
        live,
        predicted,
        ..
    } in predictions
    {
        let key = outcome.subject.key();
        if let Some(refusal) = refused.remove(&key) {
            outcome.action = Action::Failed;
            outcome.error = Some(refusal.to_string().into());
        }
        if let Some(resource) = resources.get(&key) {
            let before = states_before.get(&key).map_or(live.as_ref(), Option::as_ref);
            let difference = Difference::new(resource, &key, before, predicted.as_ref());
            let taken = find_fields_taken_by_others(&outcome, live.as_ref(), predicted.as_ref(), prepared);
            let mut comparison = Comparison {
                ownership: find_ownership_only_change(&outcome, &difference, before, predicted.as_ref()),
                cause: match plan {
                    Some(_) => Cause::SamePlan(taken),
                    None if taken.is_empty() => Cause::Unknown,
                    None => Cause::Taken(taken),
                },
                difference,
                outcome,
            };
            // The server would make the same of both manifests.
            let is_same = comparison.ownership == Some(OwnershipChange::default());
            if is_same && states_before.contains_key(&key) {
                comparison.outcome.action = Action::Unchanged;
                comparison.ownership = None;
            }
            comparisons.push(comparison);
        }
    }
    // The remaining refusals are of objects that were not sent to the server, so that they have no difference.
    for (key, refusal) in refused {
        if let Some(resource) = resources.get(key) {
            comparisons.push(Comparison {
                difference: Difference::new(resource, key, None, None),
                outcome: ObjectOutcome::from_error(Subject::new(key, resource, None), refusal.to_string()),
                ownership: None,
                cause: Cause::Unknown,
            });
        }
    }
    comparisons.sort_by(|one, other| one.difference.file.cmp(&other.difference.file));
    comparisons
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
