//! The number of objects for each action of a run.

use std::collections::BTreeMap;

use super::Action;

/// Number of objects for each action.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary(BTreeMap<Action, usize>);

impl Summary {
    /// Adds an object.
    pub fn add(&mut self, action: Action) {
        *self.0.entry(action).or_default() += 1;
    }

    /// Moves an object from one action to another.
    pub fn recount(&mut self, before: Action, now: Action) {
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
