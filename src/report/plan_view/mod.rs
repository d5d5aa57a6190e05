//! What a plan does to each object, once for all writers: the changes with what hurts first, what is
//! lost, and the counts.
//!
//! Pure. Writers only lay it out.

mod danger;
mod effect;
mod renames;

pub(super) use danger::{WARNED, consequence, loses_data, loss_row};
pub(super) use effect::{Effect, EffectCounts};

use std::borrow::Cow;

use super::diff::{Comparison, Differences};
use super::object_key;
use crate::compare::diff::{Difference, OwnershipChange};
use crate::event::{Action, Claims, ObjectOutcome};
use crate::model::identity::ObjectKey;
use crate::plan::Refusal;
use danger::{DATA_OF_IT, consequence_text, loss};

/// A plan as `diff` shows it, or a run as `apply` does.
#[derive(Default)]
pub(super) struct PlanView<'a> {
    /// The objects that change, what hurts first.
    pub(super) entries: Vec<Entry<'a>>,
    /// The parent, which no count includes.
    pub(super) parent: Option<Entry<'a>>,
    pub(super) kept: Vec<&'a ObjectOutcome>,
    unchanged: usize,
}

/// One object that changes.
pub(super) struct Entry<'a> {
    pub(super) effect: Effect,
    /// The object; the old one of a rename.
    pub(super) key: ObjectKey,
    /// Its outcome; that of the new one of a rename, and `None` for the parent.
    pub(super) outcome: Option<&'a ObjectOutcome>,
    /// Empty for a run.
    pub(super) difference: Cow<'a, Difference>,
    ownership: Option<&'a OwnershipChange>,
    /// The refusal that stops the change.
    pub(super) refusal: Option<&'a Refusal>,
    /// What is lost with the object, or why it has to stay.
    pub(super) loss: Option<Cow<'static, str>>,
}

impl<'a> PlanView<'a> {
    /// The view of a plan.
    pub(super) fn from_differences(found: &'a Differences) -> Self {
        let refused = found.refusals_by_object();
        let objects = found.objects.iter().map(|object| {
            let refusal = refused.get(&object.outcome.subject.key()).copied();
            (&object.outcome, Some(object), refusal)
        });
        Self {
            parent: found.parent.as_ref().and_then(Entry::from_parent),
            ..Self::new(objects)
        }
    }

    /// The view of a run.
    pub(super) fn from_outcomes(outcomes: &'a [ObjectOutcome]) -> Self {
        Self::new(outcomes.iter().map(|outcome| (outcome, None, None)))
    }

    fn new(
        objects: impl Iterator<Item = (&'a ObjectOutcome, Option<&'a Comparison>, Option<&'a Refusal>)>,
    ) -> Self {
        let mut view = Self::default();
        for (outcome, object, refusal) in objects {
            match effect(outcome, refusal) {
                Some(effect) => view.entries.push(Entry::new(effect, outcome, object, refusal)),
                None if outcome.action == Action::Unchanged => view.unchanged += 1,
                None => view.kept.push(outcome),
            }
        }
        let renames = renames::pairs(&view.entries);
        let mut entries: Vec<Option<Entry>> = view.entries.into_iter().map(Some).collect();
        for (old, new) in renames {
            if let (Some(old), Some(new)) = (entries[old].take(), entries[new].take()) {
                entries.push(Some(new.in_place_of(old)));
            }
        }
        view.entries = entries.into_iter().flatten().collect();
        view.entries.sort_by_key(|entry| entry.effect);
        view
    }

    /// Counts the objects; `kept` is the word for those that are kept.
    pub(super) fn counts(&self, kept: &str) -> EffectCounts {
        let count = |effect| self.entries.iter().filter(|entry| entry.effect == effect).count();
        EffectCounts::new(count, [(self.unchanged, "unchanged"), (self.kept.len(), kept)])
    }

    /// Returns the words for a plan that changes no member.
    pub(super) fn no_changes(&self) -> &'static str {
        match self.parent {
            Some(_) => "only the set's parent changes",
            None => EffectCounts::NOTHING,
        }
    }
}

impl<'a> Entry<'a> {
    fn new(
        effect: Effect,
        outcome: &'a ObjectOutcome,
        object: Option<&'a Comparison>,
        refusal: Option<&'a Refusal>,
    ) -> Self {
        let key = outcome.subject.key();
        Self {
            loss: match (effect, refusal) {
                (Effect::Pruned, Some(refusal)) => {
                    Some(consequence_text(refusal).trim_end_matches(':').to_owned().into())
                }
                (Effect::Recreated, _) if outcome.claims == Claims::Lost => Some(DATA_OF_IT.into()),
                _ => loss(effect, &key).map(Cow::from),
            },
            effect,
            key,
            outcome: Some(outcome),
            difference: object.map_or_else(Cow::default, |object| Cow::Borrowed(&object.difference)),
            ownership: object.and_then(|object| object.ownership.as_ref()),
            refusal,
        }
    }

    /// The rename of an object that this one replaces.
    fn in_place_of(self, old: Self) -> Self {
        Self {
            effect: Effect::Renamed,
            key: old.key,
            difference: Cow::Owned(old.difference.replaced_by(&self.difference)),
            ..self
        }
    }

    /// The set's parent; `None` if it does not change.
    pub(super) fn from_parent(difference: &'a Difference) -> Option<Self> {
        let predicted = difference.predicted.as_ref().filter(|_| !difference.is_empty())?;
        Some(Self {
            effect: match difference.live {
                None => Effect::Created,
                Some(_) => Effect::Changed,
            },
            key: object_key(predicted)?,
            outcome: None,
            difference: Cow::Borrowed(difference),
            ownership: None,
            refusal: None,
            loss: None,
        })
    }

    /// The change of field ownership, if nothing else of the object changes.
    pub(super) fn ownership(&self) -> Option<String> {
        self.ownership.map(|change| format!("ownership only: {change}"))
    }
}

/// Returns the effect on an object; `None` if there is none. A refused prune is a prune.
fn effect(outcome: &ObjectOutcome, refusal: Option<&Refusal>) -> Option<Effect> {
    match (outcome.action, refusal) {
        (Action::Failed, Some(Refusal::HoldsDesired { .. } | Refusal::OwnsUndetachable { .. })) => {
            Some(Effect::Pruned)
        }
        (Action::Failed, Some(refusal)) if refusal.is_data_loss() => Some(Effect::Pruned),
        (action, _) => Effect::from_action(action),
    }
}
