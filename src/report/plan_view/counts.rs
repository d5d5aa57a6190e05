//! The number of objects for each effect.

use super::Effect;
use crate::report::paint::{Color, Line};

/// The effects of a plan, in the order of all summaries.
const COUNTED: [Effect; 5] = [
    Effect::Created,
    Effect::Changed,
    Effect::Recreated,
    Effect::Pruned,
    Effect::Failed,
];

/// How many objects a plan or a run changes, and in which way. A renamed object counts as pruned and as created.
pub(in crate::report) struct Counts {
    /// The effects that there are.
    pub(in crate::report) effects: Vec<(usize, Effect)>,
    /// `2 renamed`, `24 unchanged`, `2 kept`
    pub(in crate::report) others: Vec<String>,
}

impl Counts {
    /// The words if nothing changes.
    pub(in crate::report) const NOTHING: &str = "no changes";

    pub(in crate::report) fn new(count: impl Fn(Effect) -> usize, others: [(usize, &str); 2]) -> Self {
        let renamed = count(Effect::Renamed);
        let effects = COUNTED.map(|effect| match effect {
            Effect::Created | Effect::Pruned => (count(effect) + renamed, effect),
            _ => (count(effect), effect),
        });
        let others = [(renamed, "renamed")].into_iter().chain(others);
        Self {
            effects: effects.into_iter().filter(|(count, _)| *count > 0).collect(),
            others: others
                .filter(|(count, _)| *count > 0)
                .map(|(count, word)| format!("{count} {word}"))
                .collect(),
        }
    }

    /// `Plan: +2 create  ~3 change  -4 PRUNE`, with this verb for prunes.
    pub(in crate::report) fn line(&self, deletion: &str) -> Line {
        let mut line = Line::new(Color::Plain, "Plan: ");
        for (place, (count, effect)) in self.effects.iter().enumerate() {
            let (sign, color) = effect.sign_and_color();
            let verb = match effect {
                Effect::Pruned => deletion.to_owned(),
                _ if color == Color::Danger => effect.verb().to_uppercase(),
                _ => effect.verb().to_owned(),
            };
            line.push(Color::Plain, if place == 0 { "" } else { "  " });
            line.push(color, format!("{sign}{count} {verb}"));
        }
        line
    }

    /// `  (24 unchanged, 2 kept)`
    pub(in crate::report) fn in_parentheses(&self) -> String {
        match self.others.as_slice() {
            [] => String::new(),
            others => format!("  ({})", others.join(", ")),
        }
    }
}
