//! `diff --base`: divides the differences into those that the manifests cause, compared with the base, and the drift of
//! the cluster.

use std::collections::{HashMap, HashSet};

use super::predict_parent;
use crate::compare::diff::Difference;
use crate::error::Error;
use crate::event::{Action, Event, ObjectOutcome, Sink, Subject};
use crate::execute::{Execution, ParentPrediction, Prediction, PreviewAfterFailure};
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::identity::ObjectKey;
use crate::plan::{Apply, Plan, Pruning, Refusal};
use crate::session::command_run::CommandRun;
use crate::session::prepare::{Base, ManifestChange, Prepared};

/// The reason of the drift of an object that only the new manifests have.
const EXISTS: &str = "exists already";
/// The reason for an object that only the base has, and that is not a member.
const NOT_A_MEMBER: &str = "not a member of the set yet";

/// The predictions of a run, divided by their cause.
#[derive(Default)]
pub(super) struct Divided {
    /// The objects that the manifests change, or that do not change at all.
    pub(super) objects: Vec<Prediction>,
    /// The objects that differ from the base in the cluster.
    pub(super) drift: Vec<ObjectOutcome>,
}

/// Returns what the base would make of the objects whose manifests have changed. Adds the `parent` to the `predictions`
/// of the new manifests.
pub(super) async fn predict_base(
    prepared: &Prepared,
    base: &Base,
    parent: Option<ParentPrediction>,
    predictions: &mut Vec<Prediction>,
    run: &mut CommandRun,
) -> Result<Vec<Prediction>, Error> {
    let mut old = Desired::default();
    let mut applies = Vec::new();
    for apply in prepared.plan.all_applies() {
        let key = &prepared.desired.members[apply.index].key;
        if let ManifestChange::Changed(object) = base.change_of(key) {
            applies.push(Apply {
                index: old.members.len(),
                ..apply.clone()
            });
            old.members.push((**object).clone());
        }
    }
    let mut of_base = predict_applies(prepared, &old, applies, run).await;
    if let Some((new, prediction)) = prepared.desired.parent.as_ref().zip(parent) {
        let change = base.change_of(&new.key);
        if let ManifestChange::Changed(object) = change {
            old.parent = Some((**object).clone());
            let prediction = predict_parent(prepared, &old, run).await?;
            of_base.extend(prediction.map(|prediction| predict_as_object(object, prediction)));
        }
        predictions.push(predict_as_object(
            new,
            match change {
                // The set itself creates a parent without a manifest, so that such a parent is no drift.
                ManifestChange::New => ParentPrediction {
                    live: None,
                    predicted: Some(new.object.value()),
                    ..prediction
                },
                _ => prediction,
            },
        ));
    }
    Ok(of_base)
}

/// Predicts these applies of `desired` alone, in the cluster that the plan was made for.
async fn predict_applies(
    prepared: &Prepared,
    desired: &Desired,
    applies: Vec<Apply>,
    run: &mut CommandRun,
) -> Vec<Prediction> {
    let plan = Plan {
        waves: vec![applies],
        dependents: prepared.plan.dependents.clone(),
        ..Plan::default()
    };
    let interrupt = run.interrupt.clone();
    let execution = Execution {
        desired,
        plan: &plan,
        ..prepared.execution(&interrupt)
    };
    let mut predicted = Vec::new();
    let mut on_prediction = |prediction: Prediction, _: &mut Sink<'_>| predicted.push(prediction);
    let mut sink = |event: Event| run.reporter.take_event(event);
    execution
        .predict_objects(
            PreviewAfterFailure::Continue,
            |_| false,
            &mut on_prediction,
            &mut sink,
        )
        .await;
    predicted
}

/// Returns the prediction of a parent with this manifest as that of any other object. The record is not part of it.
fn predict_as_object(manifest: &DesiredObject, prediction: ParentPrediction) -> Prediction {
    let ParentPrediction {
        live,
        predicted,
        error,
    } = prediction;
    let difference = Difference::new(
        &manifest.resource,
        &manifest.key,
        live.as_ref(),
        predicted.as_ref(),
    );
    let action = match (&error, &live) {
        (Some(_), _) => Action::Failed,
        (None, None) => Action::Created,
        (None, Some(_)) if difference.is_empty() => Action::Unchanged,
        (None, Some(_)) => Action::Configured,
    };
    Prediction {
        live,
        predicted,
        ..Prediction::from_outcome(ObjectOutcome {
            error: error.map(Box::new),
            source: Some(manifest.position.clone()),
            ..ObjectOutcome::new(Subject::new(&manifest.key, &manifest.resource, None), action)
        })
    }
}

impl Divided {
    /// Divides `predictions`. `of_base` has what the base would make of the objects whose manifests have changed.
    pub(super) fn new(
        prepared: &Prepared,
        base: &Base,
        predictions: Vec<Prediction>,
        of_base: Vec<Prediction>,
    ) -> Self {
        let Prepared { desired, plan, .. } = prepared;
        let manifests = desired.members.iter().chain(&desired.parent);
        let manifests: HashMap<&ObjectKey, &DesiredObject> =
            manifests.map(|object| (&object.key, object)).collect();
        let mut of_base: HashMap<ObjectKey, Prediction> = of_base
            .into_iter()
            .map(|prediction| (prediction.outcome.subject.key(), prediction))
            .collect();
        let refused = Refusal::first_by_object(&plan.refusals);
        let mut divided = Self::default();
        for prediction in predictions {
            let key = prediction.outcome.subject.key();
            if refused.contains_key(&key) {
                divided.objects.push(prediction);
            } else {
                let new = manifests.get(&key).copied();
                divided.add(prediction, base.change_of(&key), new, of_base.remove(&key));
            }
        }
        let kept = plan.skips.iter().map(|skip| &skip.live);
        let members: HashSet<&ObjectKey> = plan.all_prunes().chain(kept).map(|live| &live.key).collect();
        if prepared.policy.pruning != Pruning::Disabled {
            for object in base.removed().filter(|object| !members.contains(&object.key)) {
                divided.add_removed_before_deployed(object);
            }
        }
        divided
            .drift
            .sort_by_cached_key(|outcome| outcome.subject.key().to_string());
        divided
    }

    /// Adds the prediction of an object that has the manifest `new` now. `of_base` is what the base would make of it.
    fn add(
        &mut self,
        mut prediction: Prediction,
        change: &ManifestChange,
        new: Option<&DesiredObject>,
        of_base: Option<Prediction>,
    ) {
        let outcome = &mut prediction.outcome;
        match (change, outcome.action) {
            (ManifestChange::Equal, action) if action != Action::Unchanged => {
                return self.drift.push(prediction.outcome);
            }
            (ManifestChange::Neither, Action::Pruned | Action::Failed) => {
                return self.drift.push(prediction.outcome);
            }
            // Unlike an object that does not exist yet, it is not shown as what the server would make of it.
            (ManifestChange::New, action) if action != Action::Created => {
                if prediction.live.is_some() || action == Action::Unchanged {
                    let subject = outcome.subject.clone();
                    let exists = ObjectOutcome::new_with_reason(subject, Action::Skipped, EXISTS);
                    self.drift.push(exists);
                }
                if !matches!(action, Action::Failed | Action::Recreated) {
                    outcome.action = Action::Created;
                }
                prediction.compared = Some([None, new.map(|new| new.object.value())]);
            }
            (ManifestChange::Changed(old), _) => {
                if let Some(of_base) = of_base {
                    prediction.compared = choose_states(&prediction, [Some(old), new], &of_base);
                    self.add_drift_from_base(of_base.outcome);
                }
            }
            _ => {}
        }
        self.objects.push(prediction);
    }

    fn add_drift_from_base(&mut self, outcome: ObjectOutcome) {
        if outcome.action != Action::Unchanged {
            // The reason is that of the new manifest.
            self.drift.push(ObjectOutcome {
                reason: String::new(),
                ..outcome
            });
        }
    }

    /// Adds an object that only the base has, and that is not a member, so that the plan does not prune it.
    fn add_removed_before_deployed(&mut self, object: &DesiredObject) {
        let [removed, missing] = [Action::Pruned, Action::Skipped].map(|action| {
            let subject = Subject::new(&object.key, &object.resource, None);
            ObjectOutcome::new_with_reason(subject, action, NOT_A_MEMBER)
        });
        self.objects.push(Prediction {
            compared: Some([Some(object.object.value()), None]),
            ..Prediction::from_outcome(removed)
        });
        self.drift.push(missing);
    }

    /// Removes the prediction of the parent from the objects.
    pub(super) fn take_parent(&mut self, key: &ObjectKey) -> Option<Prediction> {
        let mut objects = self.objects.iter();
        let index = objects.position(|prediction| prediction.outcome.subject.key() == *key)?;
        Some(self.objects.swap_remove(index))
    }
}

/// Returns the states in which an object is compared whose manifest has changed; `None` for the live and the predicted
/// one.
///
/// The base would make the live object what it is already, or the prediction of the base stands for the live object. If
/// one of the two would fail, there is no such prediction. Two dry runs of a creation would differ in what the server
/// makes up, such as addresses, and two API versions in how they write what has drifted. So the two manifests are
/// compared then.
fn choose_states(
    prediction: &Prediction,
    manifests: [Option<&DesiredObject>; 2],
    of_base: &Prediction,
) -> Option<[Option<serde_json::Value>; 2]> {
    let actions = [prediction.outcome.action, of_base.outcome.action];
    let is_predicted = prediction.live.is_some() && !actions.contains(&Action::Failed);
    let [old_version, new_version] =
        manifests.map(|manifest| manifest.map(|manifest| &manifest.resource.version));
    if is_predicted && actions[1] == Action::Unchanged {
        None
    } else if is_predicted && old_version == new_version {
        Some([of_base.predicted.clone(), prediction.predicted.clone()])
    } else {
        Some(manifests.map(|manifest| manifest.map(|manifest| manifest.object.value())))
    }
}

#[cfg(test)]
mod tests;
