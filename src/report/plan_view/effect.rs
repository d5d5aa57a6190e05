//! The effects on an object, with their signs, colors and words.

use crate::event::Action;
use crate::report::layout::paint::{Color, Line};

/// The effect of a plan or a run on an object. The order is that of screens: the most dangerous effect is first.
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
    /// Returns the effect of an action; `None` if the action does not change the object.
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

    /// Returns the phrases for a plan and for a run.
    const fn plan_and_run_words(self) -> [&'static str; 2] {
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
    pub(in crate::report) const fn plan_words(self) -> &'static str {
        self.plan_and_run_words()[0]
    }

    /// `pruned`, for a run.
    pub(in crate::report) const fn run_words(self) -> &'static str {
        self.plan_and_run_words()[1]
    }

    /// `prune`; `fail` for `would fail`.
    pub(in crate::report) fn verb(self) -> &'static str {
        let (_, verb) = self.plan_words().split_once(' ').unwrap_or_default();
        verb
    }
}

/// The effects that are counted, in the order of all summaries. A rename counts as a prune and as a creation.
const COUNTED: [Effect; 5] = [
    Effect::Created,
    Effect::Changed,
    Effect::Recreated,
    Effect::Pruned,
    Effect::Failed,
];

/// The numbers of objects that a plan or a run changes, by effect. A renamed object counts as pruned and as created.
pub(in crate::report) struct EffectCounts {
    /// The effects with a count above 0.
    pub(in crate::report) effects: Vec<(usize, Effect)>,
    /// What is counted beside the effects, in words: `2 renamed`, `24 unchanged`, `2 kept`, `1 skipped`.
    pub(in crate::report) beside_effects: Vec<String>,
}

impl EffectCounts {
    /// The text if nothing changes.
    pub(in crate::report) const NOTHING: &str = "no changes";

    pub(in crate::report) fn new(
        count: impl Fn(Effect) -> usize,
        others: impl IntoIterator<Item = (usize, &'static str)>,
    ) -> Self {
        let renamed = count(Effect::Renamed);
        let effects = COUNTED.map(|effect| match effect {
            Effect::Created | Effect::Pruned => (count(effect) + renamed, effect),
            _ => (count(effect), effect),
        });
        let others = [(renamed, "renamed")].into_iter().chain(others);
        Self {
            effects: effects.into_iter().filter(|(count, _)| *count > 0).collect(),
            beside_effects: others
                .filter(|(count, _)| *count > 0)
                .map(|(count, word)| format!("{count} {word}"))
                .collect(),
        }
    }

    /// `Plan: +2 create  ~3 change  -4 PRUNE`, with `prune_verb` for prunes.
    pub(in crate::report) fn line(&self, prune_verb: &str) -> Line {
        let mut line = Line::new(Color::Plain, "Plan: ");
        for (place, (count, effect)) in self.effects.iter().enumerate() {
            let (sign, color) = effect.sign_and_color();
            let verb = match effect {
                Effect::Pruned => prune_verb.to_owned(),
                _ if color == Color::Danger => effect.verb().to_uppercase(),
                _ => effect.verb().to_owned(),
            };
            line.push(Color::Plain, if place == 0 { "" } else { "  " });
            line.push(color, format!("{sign}{count} {verb}"));
        }
        line
    }

    /// `  (24 unchanged, 2 kept)`
    pub(in crate::report) fn beside_effects_in_parentheses(&self) -> String {
        match self.beside_effects.as_slice() {
            [] => String::new(),
            counts => format!("  ({})", counts.join(", ")),
        }
    }
}
