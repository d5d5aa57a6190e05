//! The summary of a run.

use std::collections::BTreeMap;

use super::Action;

/// The number of objects for each action.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionCounts(BTreeMap<Action, usize>);

impl ActionCounts {
    /// Counts an object with this action.
    pub fn add(&mut self, action: Action) {
        *self.0.entry(action).or_default() += 1;
    }

    /// Counts an object for the action `now` that was counted for the action `before`.
    pub fn recount_one(&mut self, before: Action, now: Action) {
        if let Some(count) = self.0.get_mut(&before) {
            *count = count.saturating_sub(1);
        }
        self.add(now);
    }

    /// Returns the number of objects with this action.
    pub fn count(&self, action: Action) -> usize {
        self.0.get(&action).copied().unwrap_or_default()
    }
}
