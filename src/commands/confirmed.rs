//! What a person has read and said yes to: that may be lost, and nothing that came up while
//! the question stood.

use crate::plan::Refusal;

/// Losses that a person has said yes to.
#[derive(Default)]
pub(super) struct Losses(Vec<Refusal>);

impl Losses {
    /// Remembers what was shown and confirmed.
    pub(super) fn confirm(&mut self, shown: Vec<Refusal>) {
        self.0.extend(shown.into_iter().filter(Refusal::is_data_loss));
    }

    /// What is left of these refusals when everything that was confirmed is lifted.
    pub(super) fn lift(&self, refusals: &mut Vec<Refusal>) {
        refusals.retain(|refusal| !self.0.iter().any(|shown| refusal.is_within(shown)));
    }
}
