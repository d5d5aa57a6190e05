//! The effects on an object, with their signs, colors and words.

use crate::event::Action;
use crate::report::paint::Color;

/// The effect of a plan or a run on an object; what hurts most is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::report) enum Effect {
    Failed,
    Recreated,
    Pruned,
    Changed,
    /// Pruned, and created under another name.
    Renamed,
    Created,
}

impl Effect {
    /// The effect of this action; `None` if it has none.
    pub(in crate::report) const fn from_action(action: Action) -> Option<Self> {
        match action {
            Action::Created | Action::Adopted => Some(Self::Created),
            Action::Configured => Some(Self::Changed),
            Action::Recreated => Some(Self::Recreated),
            Action::Pruned | Action::Deleted | Action::Released => Some(Self::Pruned),
            Action::Failed => Some(Self::Failed),
            Action::Unchanged | Action::Skipped => None,
        }
    }

    pub(in crate::report) const fn sign_and_color(self) -> (char, Color) {
        match self {
            Self::Failed => ('x', Color::Danger),
            Self::Recreated => ('±', Color::Danger),
            Self::Pruned => ('-', Color::Danger),
            Self::Changed => ('~', Color::Yellow),
            Self::Renamed => ('>', Color::Yellow),
            Self::Created => ('+', Color::Green),
        }
    }

    const fn words(self) -> [&'static str; 2] {
        match self {
            Self::Failed => ["would fail", "failed"],
            Self::Recreated => ["to recreate", "recreated"],
            Self::Pruned => ["to prune", "pruned"],
            Self::Changed => ["to change", "configured"],
            Self::Renamed => ["to rename", "renamed"],
            Self::Created => ["to create", "created"],
        }
    }

    /// `to prune`, for a plan.
    pub(in crate::report) const fn intended(self) -> &'static str {
        self.words()[0]
    }

    /// `pruned`, for a run.
    pub(in crate::report) const fn done(self) -> &'static str {
        self.words()[1]
    }

    /// `prune`
    pub(in crate::report) fn verb(self) -> &'static str {
        let (_, verb) = self.intended().split_once(' ').unwrap_or_default();
        verb
    }
}
