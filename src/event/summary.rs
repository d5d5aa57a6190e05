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

    /// Returns the number of objects with this action.
    pub fn count(&self, action: Action) -> usize {
        self.0.get(&action).copied().unwrap_or_default()
    }
}
