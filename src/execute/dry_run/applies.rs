//! Carries out the graph of applies in dry runs.

use std::cell::RefCell;

use super::Prediction;
use super::from_live::PredictedDefinitions;
use crate::event::{Event, NotDone, ObjectOutcome, Sink};
use crate::execute::Execution;
use crate::execute::schedule::drive::Work;
use crate::execute::schedule::{ActionEnd, Lane, Skipped};
use crate::manifest::desired::DesiredObject;
use crate::model::identity::ObjectKey;
use crate::plan::{Apply, ApplyAction, Graph};

/// The dry runs of a graph of applies.
pub(super) struct PredictedApplies<'r, 'a, L, P> {
    pub(super) execution: &'r Execution<'a>,
    pub(super) definitions: PredictedDefinitions,
    /// Returns whether an object gets no dry run and no prediction.
    pub(super) is_left_out: L,
    /// Takes each prediction.
    pub(super) on_prediction: RefCell<P>,
}

impl<'r, L, P> Work for PredictedApplies<'r, '_, L, P>
where
    L: Fn(&DesiredObject) -> bool,
    P: FnMut(Prediction, &mut Sink<'_>),
{
    type Action = ApplyAction<'r>;
    /// `None` for an object that is left out. `None` for a wait, too: what it waits for comes true in the run.
    type Answer = Option<Prediction>;

    fn lane(&self, action: &ApplyAction<'r>) -> Lane {
        match action {
            ApplyAction::Apply(_) => Lane::Write,
            ApplyAction::AwaitKind(_) | ApplyAction::AwaitCurrent(_) => Lane::Wait,
        }
    }

    fn key<'k>(&'k self, action: &'k ApplyAction<'r>) -> &'k ObjectKey {
        self.execution.key_of_action(action)
    }

    async fn perform(&self, action: &ApplyAction<'r>) -> Option<Prediction> {
        match action {
            ApplyAction::Apply(apply) if !self.leaves_out(apply) => {
                Some(self.execution.predict_apply(apply, &self.definitions).await)
            }
            _ => None,
        }
    }

    fn take_answer(&self, _: &ApplyAction<'r>, answer: Option<Prediction>, sink: &mut Sink<'_>) -> ActionEnd {
        let Some(prediction) = answer else {
            return ActionEnd::Done;
        };
        let end = if prediction.is_failure() {
            ActionEnd::Failed
        } else {
            ActionEnd::Done
        };
        (self.on_prediction.borrow_mut())(prediction, sink);
        end
    }

    fn report_skipped(&self, skipped: &[Skipped], graph: &Graph<ApplyAction<'r>>, sink: &mut Sink<'_>) {
        let mut skipped = skipped.to_vec();
        skipped.retain(|skipped| match graph.action(skipped.action) {
            Some(ApplyAction::Apply(apply)) => !self.leaves_out(apply),
            _ => false,
        });
        for group in self.execution.group_skipped_applies(&skipped, graph) {
            if let Some(error) = group.error {
                sink(Event::general_failure(error));
            }
            for apply in group.applies {
                self.predict_skipped(apply, &group.reason, sink);
            }
        }
    }
}

impl<L, P> PredictedApplies<'_, '_, L, P>
where
    L: Fn(&DesiredObject) -> bool,
    P: FnMut(Prediction, &mut Sink<'_>),
{
    /// Predicts the objects of a graph that is not carried out, because the run would end before it.
    pub(super) fn skip_all(&self, graph: &Graph<ApplyAction<'_>>, sink: &mut Sink<'_>) {
        for (id, _) in graph.nodes() {
            if let Some(ApplyAction::Apply(apply)) = graph.action(id)
                && !self.leaves_out(apply)
            {
                self.predict_skipped(apply, NotDone::RUN_ENDED_EARLY, sink);
            }
        }
    }

    fn predict_skipped(&self, apply: &Apply, reason: &str, sink: &mut Sink<'_>) {
        let outcome = ObjectOutcome {
            reason: reason.to_owned(),
            ..self.execution.skipped_outcome_of_apply(apply)
        };
        (self.on_prediction.borrow_mut())(Prediction::from_outcome(outcome), sink);
    }

    fn leaves_out(&self, apply: &Apply) -> bool {
        (self.is_left_out)(&self.execution.desired.members[apply.index])
    }
}
