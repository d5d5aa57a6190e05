//! Losses and changes that the user has agreed to: those that the prompt showed, not those that
//! appeared while it was open.

use crate::plan::{Plan, Refusal};

/// Refusals that the user has agreed to override.
#[derive(Default)]
pub struct Losses(Vec<Refusal>);

impl Losses {
    /// Remembers what was shown and confirmed.
    pub fn confirm(&mut self, shown: Vec<Refusal>) {
        self.0.extend(shown);
    }

    /// Removes the refusals of a plan that were confirmed: the plan keeps losses of data as accepted.
    pub fn lift(&self, plan: &mut Plan) {
        let is_confirmed = |refusal: &Refusal| self.0.iter().any(|shown| refusal.is_within(shown));
        let refusals = std::mem::take(&mut plan.refusals);
        let (mut confirmed, left): (Vec<_>, Vec<_>) = refusals.into_iter().partition(is_confirmed);
        confirmed.retain(Refusal::is_data_loss);
        plan.accepted = confirmed;
        plan.refusals = left;
    }
}
