//! `diff --base`: divides the differences into those that the manifests cause, compared with the base, and the drift of
//! the cluster.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use crate::event::{Action, Event, ObjectOutcome, Subject};
use crate::execute::{Execution, Prediction, RedefinedKinds, Sink};
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::identity::ObjectKey;
use crate::plan::{Apply, ApplyAction, LiveMembership, Plan, Refusal};
use crate::session::command_run::CommandRun;
use crate::session::prepare::{Base, Prepared};

/// The reason of the drift of an object that only the new manifests have.
const EXISTS: &str = "exists already";
/// The reason for an object that only the base has, and that is not a member.
const NOT_A_MEMBER: &str = "not a member of the set yet";

/// The states of objects that are not compared with the live ones. `None` stands for an object that the base lacks.
pub(super) type StatesBefore = BTreeMap<ObjectKey, Option<Value>>;

/// The predictions of a run, divided by their cause.
#[derive(Default)]
pub(super) struct Divided {
    /// The objects that the manifests change, or that do not change at all.
    pub(super) objects: Vec<Prediction>,
    pub(super) states_before: StatesBefore,
    /// The objects that differ from the base in the cluster.
    pub(super) drift: Vec<ObjectOutcome>,
}

/// Predicts what a base adds to the `predictions` of a run. Objects with equal manifests are added to `predictions`, or
/// to `drift` if the plan shows that they differ: these get no dry run. If one fails, the run does not, so that its
/// prunes are predicted all the same. Returns what the base would make of the other objects that exist.
pub(super) async fn predict_base(
    prepared: &Prepared,
    base: &Base,
    predictions: &mut Vec<Prediction>,
    drift: &mut Vec<ObjectOutcome>,
    run: &mut CommandRun,
) -> Vec<Prediction> {
    let refused = Refusal::first_by_object(&prepared.plan.refusals);
    let different = index_by_key(&base.different);
    let [mut equal, mut changed] = [Vec::new(), Vec::new()];
    for apply in prepared.plan.all_applies() {
        let object = &prepared.desired.members[apply.index];
        let apply = apply.clone();
        if let Some(&index) = different.get(&object.key) {
            changed.push(Apply { index, ..apply });
        } else if base.is_equal(&object.key) && !refused.contains_key(&object.key) {
            match find_known_drift(object, &apply.live_membership) {
                Some(outcome) => drift.push(outcome),
                None => equal.push(apply),
            }
        }
    }
    predictions.extend(predict_applies(prepared, &prepared.desired, equal, run).await);
    predict_applies(prepared, &base.different, changed, run).await
}

fn index_by_key(objects: &Desired) -> HashMap<&ObjectKey, usize> {
    let members = objects.members.iter().enumerate();
    members.map(|(index, object)| (&object.key, index)).collect()
}

/// Returns how an object with an equal manifest differs from it, as far as the plan shows that.
fn find_known_drift(object: &DesiredObject, live: &LiveMembership) -> Option<ObjectOutcome> {
    let action = match live {
        LiveMembership::NotAMember => Action::Created,
        LiveMembership::OfAnotherSet { .. } => Action::Configured,
        LiveMembership::Member {
            reason: Some(reason), ..
        } if reason.shows_difference() => Action::Configured,
        LiveMembership::Member { .. } | LiveMembership::Terminating => return None,
    };
    let subject = Subject::new(&object.key, &object.resource, live.uid_of_member());
    Some(ObjectOutcome {
        source: Some(object.position.clone()),
        ..ObjectOutcome::new(subject, action)
    })
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
        redefined_kinds: &RedefinedKinds::default(),
        ..prepared.execution(&interrupt)
    };
    let mut predicted = Vec::new();
    let mut on_prediction = |prediction: Prediction, _: &mut Sink<'_>| predicted.push(prediction);
    let mut sink = |event: Event| run.reporter.take_event(event);
    // Without edges: each object is compared with what the manifests would make of it, whatever fails before it.
    let graph = plan.all_applies().map(ApplyAction::Apply).collect();
    execution
        .predict_objects(&[graph], None, |_| false, &mut on_prediction, &mut sink)
        .await;
    predicted
}

impl Divided {
    /// Divides `predictions`. `of_base` has what the base would make of some of the objects, and `drift` what is known to
    /// be drift.
    pub(super) fn new(
        prepared: &Prepared,
        base: &Base,
        predictions: Vec<Prediction>,
        of_base: Vec<Prediction>,
        drift: Vec<ObjectOutcome>,
    ) -> Self {
        let [desired, different] = [&prepared.desired, &base.different].map(index_by_key);
        let of_base = of_base.into_iter();
        let mut of_base: HashMap<ObjectKey, Prediction> = of_base
            .map(|prediction| (prediction.outcome.subject.key(), prediction))
            .collect();
        let refused = Refusal::first_by_object(&prepared.plan.refusals);
        let mut divided = Self {
            drift,
            ..Self::default()
        };
        for prediction in predictions {
            let key = prediction.outcome.subject.key();
            let is_equal = base.is_equal(&key) && prediction.outcome.action != Action::Unchanged;
            if refused.contains_key(&key) {
                divided.objects.push(prediction);
            } else if is_equal {
                divided.drift.push(prediction.outcome);
            } else {
                let new = desired.get(&key).map(|index| &prepared.desired.members[*index]);
                let old = different.get(&key).map(|index| &base.different.members[*index]);
                divided.add(prediction, new, old, of_base.remove(&key));
            }
        }
        let plan = &prepared.plan;
        let kept = plan.skips.iter().map(|skip| &skip.live);
        let members: HashSet<&ObjectKey> = plan.all_prunes().chain(kept).map(|live| &live.key).collect();
        for object in &base.different.members {
            if !desired.contains_key(&object.key) && !members.contains(&object.key) {
                divided.add_removed_before_deployed(object);
            }
        }
        divided
            .drift
            .sort_by_cached_key(|outcome| outcome.subject.key().to_string());
        divided
    }

    /// Adds the prediction of an object that has the manifest `new` now, and had `old` in the base.
    fn add(
        &mut self,
        mut prediction: Prediction,
        new: Option<&DesiredObject>,
        old: Option<&DesiredObject>,
        of_base: Option<Prediction>,
    ) {
        let outcome = &mut prediction.outcome;
        match (new, old) {
            (None, None) if matches!(outcome.action, Action::Pruned | Action::Failed) => {
                return self.drift.push(prediction.outcome);
            }
            (Some(_), None) if prediction.live.is_some() => {
                let subject = outcome.subject.clone();
                if !matches!(outcome.action, Action::Failed | Action::Recreated) {
                    outcome.action = Action::Created;
                    self.states_before.insert(subject.key(), None);
                }
                self.drift
                    .push(ObjectOutcome::new_with_reason(subject, Action::Skipped, EXISTS));
            }
            (Some(new), Some(old)) if !matches!(outcome.action, Action::Failed | Action::Skipped) => {
                if let Some(of_base) = of_base {
                    self.add_state_of_base(&mut prediction, [new, old], of_base);
                }
            }
            _ => {}
        }
        self.objects.push(prediction);
    }

    /// Compares an object with what the base would make of it, or with the live object if that would fail. If the object
    /// does not exist, the manifests themselves are compared: two dry runs would differ in what the server makes up, such
    /// as addresses.
    fn add_state_of_base(
        &mut self,
        prediction: &mut Prediction,
        [new, old]: [&DesiredObject; 2],
        of_base: Prediction,
    ) {
        let outcome = &mut prediction.outcome;
        if of_base.outcome.action != Action::Failed {
            let state = match prediction.live {
                Some(_) => of_base.predicted,
                None => Some(old.object.value()),
            };
            self.states_before.insert(outcome.subject.key(), state);
        }
        if prediction.live.is_none() {
            prediction.predicted = Some(new.object.value());
        }
        if of_base.outcome.action != Action::Unchanged {
            self.drift.push(ObjectOutcome {
                reason: String::new(),
                ..of_base.outcome
            });
        }
        if outcome.action != Action::Recreated {
            outcome.action = Action::Configured;
            outcome.reason.clear();
            outcome.taken_in = false;
        }
    }

    /// Adds an object that only the base has, and that is not a member, so that the plan does not prune it.
    fn add_removed_before_deployed(&mut self, object: &DesiredObject) {
        let [removed, missing] = [Action::Pruned, Action::Skipped].map(|action| {
            let subject = Subject::new(&object.key, &object.resource, None);
            ObjectOutcome::new_with_reason(subject, action, NOT_A_MEMBER)
        });
        self.states_before
            .insert(object.key.clone(), Some(object.object.value()));
        self.objects.push(Prediction::from_outcome(removed));
        self.drift.push(missing);
    }
}

#[cfg(test)]
mod tests;
