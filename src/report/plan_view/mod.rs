//! The effects of a plan or a run on each object, with their losses and counts. The screen of `diff`, the pages and the
//! prompt show the same effects; they differ only in the layout.

mod danger;
mod effect;

pub(super) use danger::{WARNED, consequence_row, pruned_container_row};
pub(super) use effect::{Effect, EffectCounts};

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::diff::{Comparison, Differences};
use super::object_key;
use crate::compare::diff::{Difference, OldSide, OwnershipChange};
use crate::event::{Action, Claims, ObjectOutcome};
use crate::model::generated_name::strip_generated_suffix;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::plan::Refusal;
use danger::{ITS_DATA_IS_LOST, consequence_text, describe_container_contents};

/// A plan as `diff` shows it, or a run as `apply` does.
#[derive(Default)]
pub(super) struct PlanView<'a> {
    /// The objects that change, the most dangerous effect first.
    pub(super) entries: Vec<Entry<'a>>,
    /// The parent, if it changes. No count includes it.
    pub(super) parent: Option<Entry<'a>>,
    /// The outcomes of the members that a plan keeps; empty for a run, which skips them.
    pub(super) kept: Vec<&'a ObjectOutcome>,
    /// The outcomes of the other objects that are skipped.
    pub(super) skipped: Vec<&'a ObjectOutcome>,
    unchanged: usize,
}

/// An object that changes.
pub(super) struct Entry<'a> {
    pub(super) effect: Effect,
    /// The key of the object; for a rename, that of the old object.
    pub(super) key: ObjectKey,
    /// The outcome; for a rename, that of the new object; `None` for the parent.
    pub(super) outcome: Option<&'a ObjectOutcome>,
    /// The difference between the live and the predicted object; empty for a run, which has no prediction.
    pub(super) difference: Cow<'a, Difference>,
    ownership: Option<&'a OwnershipChange>,
    /// The refusal that stops the change.
    pub(super) refusal: Option<&'a Refusal>,
    /// The loss that the change means, whether it is refused or allowed.
    pub(super) loss: Option<Cow<'static, str>>,
}

impl<'a> PlanView<'a> {
    /// Creates the view of a plan.
    pub(super) fn from_differences(found: &'a Differences) -> Self {
        let refused = Refusal::first_by_object(&found.refusals);
        let objects = found.objects.iter().map(|object| {
            let refusal = refused.get(&object.outcome.subject.key()).copied();
            (&object.outcome, Some(object), refusal)
        });
        let view = Self::new(objects, &found.losses);
        let is_in_manifests = |outcome: &&ObjectOutcome| outcome.source.is_some();
        let (skipped, kept) = view.skipped.into_iter().partition(is_in_manifests);
        Self {
            parent: found.parent.as_ref().and_then(Entry::from_parent),
            kept,
            skipped,
            ..view
        }
    }

    /// Creates the view of a run with these losses of data.
    pub(super) fn from_outcomes(outcomes: &'a [ObjectOutcome], losses: &[Refusal]) -> Self {
        Self::new(outcomes.iter().map(|outcome| (outcome, None, None)), losses)
    }

    fn new(
        objects: impl Iterator<Item = (&'a ObjectOutcome, Option<&'a Comparison>, Option<&'a Refusal>)>,
        losses: &[Refusal],
    ) -> Self {
        let losses: BTreeMap<&ObjectKey, &Refusal> = losses
            .iter()
            .filter_map(|loss| Some((loss.object()?, loss)))
            .collect();
        let mut view = Self::default();
        for (outcome, object, refusal) in objects {
            let loss = losses.get(&outcome.subject.key()).copied();
            match Effect::from_action(outcome.action) {
                Some(effect) => view
                    .entries
                    .push(Entry::new(effect, outcome, (object, refusal, loss))),
                None if outcome.action == Action::Unchanged => view.unchanged += 1,
                None => view.skipped.push(outcome),
            }
        }
        let renames = find_renames(&view.entries);
        let mut entries: Vec<Option<Entry>> = view.entries.into_iter().map(Some).collect();
        for (old, new) in renames {
            if let (Some(old), Some(new)) = (entries[old].take(), entries[new].take()) {
                entries.push(Some(new.into_rename_of(old)));
            }
        }
        view.entries = entries.into_iter().flatten().collect();
        view.entries.sort_by_key(|entry| entry.effect);
        view
    }

    /// Counts the objects.
    pub(super) fn counts(&self) -> EffectCounts {
        let count = |effect| self.entries.iter().filter(|entry| entry.effect == effect).count();
        let [kept, skipped] = [&self.kept, &self.skipped].map(Vec::len);
        EffectCounts::new(
            count,
            [
                (self.unchanged, "unchanged"),
                (kept, "kept"),
                (skipped, "skipped"),
            ],
        )
    }

    /// Returns the words for a plan that changes no member.
    pub(super) fn describe_no_changes(&self) -> &'static str {
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
        (object, refusal, loss): (Option<&'a Comparison>, Option<&'a Refusal>, Option<&Refusal>),
    ) -> Self {
        let key = outcome.subject.key();
        Self {
            loss: match (effect, refusal.or(loss)) {
                (Effect::Pruned, Some(loss)) => {
                    Some(consequence_text(loss).trim_end_matches(':').to_owned().into())
                }
                (Effect::Pruned, None) => describe_container_contents(&key).map(Cow::from),
                (Effect::Recreated, _) if outcome.claims == Claims::Lost => Some(ITS_DATA_IS_LOST.into()),
                _ => None,
            },
            effect,
            key,
            outcome: Some(outcome),
            difference: object.map_or_else(Cow::default, |object| Cow::Borrowed(&object.difference)),
            ownership: object.and_then(|object| object.ownership.as_ref()),
            refusal,
        }
    }

    /// Joins the prune of `old` and this creation to a rename.
    fn into_rename_of(self, old: Self) -> Self {
        Self {
            effect: Effect::Renamed,
            key: old.key,
            difference: Cow::Owned(old.difference.as_replacement_by(&self.difference)),
            ..self
        }
    }

    /// Returns whether the object was removed from the manifests since a base, and is not deleted, because it is not a
    /// member: a member is compared as it is in the cluster.
    pub(super) fn is_removed_before_deployed(&self) -> bool {
        self.effect == Effect::Pruned && self.difference.old_side == OldSide::Base
    }

    /// Creates the entry of the set's parent; `None` if the parent does not change.
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

    /// Describes the change of field ownership, if nothing else of the object changes.
    pub(super) fn ownership_change_text(&self) -> Option<String> {
        self.ownership.map(|change| format!("ownership only: {change}"))
    }
}

/// Pairs each pruned object with the created one that replaces it, and returns the indexes of both: kustomize appends a
/// hash of the content to the names of its ConfigMaps and Secrets. Such a rename is for display only: counts and
/// documents have a creation and a prune.
///
/// The two have the same kind, the same namespace, and the same name apart from the generated suffix. If a third pruned
/// or created object has the same kind, namespace and name, too, there is no pair, because it would be a guess. An
/// object with which more would be lost is in no pair, so that its prune is shown.
fn find_renames(entries: &[Entry]) -> Vec<(usize, usize)> {
    let created = group_by_stem(entries, Effect::Created);
    group_by_stem(entries, Effect::Pruned)
        .into_iter()
        .filter_map(
            |(stem, pruned)| match (pruned.as_slice(), created.get(&stem)?.as_slice()) {
                ([old], [new]) => Some((*old, *new)),
                _ => None,
            },
        )
        .collect()
}

/// Kind, namespace, and name without its generated suffix.
type Stem<'k> = (&'k GroupKind, Option<&'k str>, &'k str);

/// Returns the indexes of the entries with this effect, by stem.
fn group_by_stem<'k>(entries: &'k [Entry], effect: Effect) -> BTreeMap<Stem<'k>, Vec<usize>> {
    let mut by_stem: BTreeMap<Stem<'k>, Vec<usize>> = BTreeMap::new();
    for (place, entry) in entries.iter().enumerate() {
        let key = &entry.key;
        if entry.effect == effect
            && entry.loss.is_none()
            && let Some(stem) = strip_generated_suffix(&key.name)
        {
            let stem = (&key.group_kind, key.namespace.as_deref(), stem);
            by_stem.entry(stem).or_default().push(place);
        }
    }
    by_stem
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(effect: Effect, kind: &str, name: &str) -> Entry<'static> {
        Entry {
            effect,
            key: ObjectKey {
                group_kind: GroupKind::new("", kind),
                namespace: Some("shop".to_owned()),
                name: name.to_owned(),
            },
            outcome: None,
            difference: Cow::default(),
            ownership: None,
            refusal: None,
            loss: None,
        }
    }

    #[test]
    fn only_unambiguous_pairs_with_generated_suffixes_are_renames() {
        let pair = |pruned: &[(&str, &str)], created: &[(&str, &str)]| {
            let of = |effect, names: &[(&str, &str)]| -> Vec<Entry> {
                let entries = names.iter().map(|(kind, name)| entry(effect, kind, name));
                entries.collect()
            };
            let mut entries = of(Effect::Pruned, pruned);
            entries.extend(of(Effect::Created, created));
            find_renames(&entries)
        };
        let (old, new) = (("ConfigMap", "app-5m2k8t4h9b"), ("ConfigMap", "app-bfh72cttk6"));
        assert_eq!(pair(&[("Secret", "x"), old], &[new]), [(1, 2)]);
        assert_eq!(pair(&[old], &[("Secret", "app-bfh72cttk6")]), []);
        assert_eq!(pair(&[old, ("ConfigMap", "app-2456789bcd")], &[new]), []);
        assert_eq!(pair(&[("ConfigMap", "app-one")], &[("ConfigMap", "app-two")]), []);
        assert_eq!(
            pair(&[("ConfigMap", "web-x8b2k")], &[("ConfigMap", "web-c4d5f")]),
            [(0, 1)]
        );
    }
}
