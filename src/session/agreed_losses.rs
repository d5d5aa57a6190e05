//! Losses that the user has agreed to: those that the question showed, and none that came up
//! while it was open.

use std::collections::BTreeMap;

use crate::model::identity::ObjectKey;
use crate::plan::{Plan, Refusal};

/// Losses that the user has agreed to, by the object that would be deleted.
#[derive(Default)]
pub struct Losses(BTreeMap<ObjectKey, Vec<Refusal>>);

impl Losses {
    /// Remembers what was shown and confirmed.
    pub fn confirm(&mut self, shown: Vec<Refusal>) {
        for refusal in shown.into_iter().filter(Refusal::is_data_loss) {
            if let Some(object) = refusal.object().cloned() {
                self.0.entry(object).or_default().push(refusal);
            }
        }
    }

    /// Lifts the refusals of a plan that were confirmed: the plan keeps them as accepted.
    pub fn lift(&self, plan: &mut Plan) {
        let is_confirmed = |refusal: &Refusal| {
            let shown = refusal.object().and_then(|object| self.0.get(object));
            let mut shown = shown.into_iter().flatten();
            shown.any(|shown| refusal.is_within(shown))
        };
        let refusals = std::mem::take(&mut plan.refusals);
        let (confirmed, left) = refusals.into_iter().partition(is_confirmed);
        plan.accepted = confirmed;
        plan.refusals = left;
    }
}
