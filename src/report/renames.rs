//! Objects that get a new name because their content changes: kustomize appends a hash to the names
//! of its ConfigMaps and Secrets.
//!
//! Pure, and for display only: counts and documents keep a creation and a prune.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Comparison;
use crate::event::{Action, ObjectOutcome};
use crate::model::applyset::ID_LABEL;
use crate::model::generated_name::without_generated_suffix;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::plan::loses_data;

/// The objects that are pruned and created, with the renamed ones in pairs.
pub(super) struct Renames<'a, T> {
    /// Each pruned object, with the created one that replaces it.
    pub(super) pairs: Vec<(&'a T, &'a T)>,
    /// The other pruned objects.
    pub(super) pruned: Vec<&'a T>,
    /// The other created objects.
    pub(super) created: Vec<&'a T>,
}

impl<'a> Renames<'a, Comparison> {
    /// The objects of a plan.
    pub(super) fn of(objects: &'a [Comparison]) -> Self {
        let outcomes: Vec<_> = objects.iter().map(|object| (object, &object.outcome)).collect();
        Self::new(&outcomes, holds_more)
    }
}

impl<'a> Renames<'a, ObjectOutcome> {
    /// The objects of a run.
    pub(super) fn of_outcomes(outcomes: &'a [ObjectOutcome]) -> Self {
        let outcomes: Vec<_> = outcomes.iter().map(|outcome| (outcome, outcome)).collect();
        Self::new(&outcomes, |_| false)
    }
}

impl<'a, T> Renames<'a, T> {
    fn new(objects: &[(&'a T, &ObjectOutcome)], is_alone: fn(&T) -> bool) -> Self {
        let with = |action| {
            let objects = objects.iter();
            objects.filter(move |(_, outcome)| outcome.action == action)
        };
        let (alone, pruned): (Vec<_>, Vec<_>) =
            with(Action::Pruned).partition(|(object, _)| is_alone(object));
        let created: Vec<_> = with(Action::Created).collect();
        let keys = |objects: &[&(&T, &ObjectOutcome)]| -> Vec<ObjectKey> {
            let keys = objects.iter().map(|(_, outcome)| outcome.subject.key());
            keys.collect()
        };
        let (old, new) = (keys(&pruned), keys(&created));
        let pairs = pairs(&old.iter().collect::<Vec<_>>(), &new.iter().collect::<Vec<_>>());
        let [replaced, new]: [BTreeSet<usize>; 2] = [
            pairs.iter().map(|(old, _)| *old).collect(),
            pairs.iter().map(|(_, new)| *new).collect(),
        ];
        let others = |objects: &[&(&'a T, &ObjectOutcome)], paired: &BTreeSet<usize>| -> Vec<&'a T> {
            let others = objects.iter().enumerate();
            let others = others.filter(|(index, _)| !paired.contains(index));
            others.map(|(_, (object, _))| *object).collect()
        };
        let mut left = others(&alone, &BTreeSet::new());
        left.extend(others(&pruned, &replaced));
        Self {
            pruned: left,
            created: others(&created, &new),
            pairs: pairs
                .into_iter()
                .map(|(old, new)| (pruned[old].0, created[new].0))
                .collect(),
        }
    }
}

/// Returns whether more is lost with the object than itself: the members of a set whose parent it is.
/// `pairs` knows the kinds.
fn holds_more(object: &Comparison) -> bool {
    let live = object.difference.live.as_ref();
    let labels = live.and_then(|live| live.pointer("/metadata/labels"));
    labels
        .and_then(Value::as_object)
        .is_some_and(|labels| labels.contains_key(ID_LABEL))
}

/// Pairs each pruned object with the created one that replaces it: the same kind, namespace and stem,
/// and no other of either. An object whose data would be lost is never replaced. Returns the indexes of
/// both.
fn pairs(pruned: &[&ObjectKey], created: &[&ObjectKey]) -> Vec<(usize, usize)> {
    let (pruned, created) = (by_stem(pruned), by_stem(created));
    pruned
        .into_iter()
        .filter_map(
            |(stem, pruned)| match (pruned.as_slice(), created.get(&stem)?.as_slice()) {
                ([old], [new]) => Some((*old, *new)),
                _ => None,
            },
        )
        .collect()
}

type Stem<'k> = (&'k GroupKind, Option<&'k str>, &'k str);

fn by_stem<'k>(keys: &[&'k ObjectKey]) -> BTreeMap<Stem<'k>, Vec<usize>> {
    let mut by_stem: BTreeMap<Stem<'k>, Vec<usize>> = BTreeMap::new();
    for (index, key) in keys.iter().enumerate() {
        if let Some(stem) = without_generated_suffix(&key.name).filter(|_| !loses_data(&key.group_kind)) {
            let stem = (&key.group_kind, key.namespace.as_deref(), stem);
            by_stem.entry(stem).or_default().push(index);
        }
    }
    by_stem
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: &str, name: &str) -> ObjectKey {
        ObjectKey {
            group_kind: GroupKind::new("", kind),
            namespace: Some("shop".to_owned()),
            name: name.to_owned(),
        }
    }

    #[test]
    fn only_unambiguous_pairs_with_generated_suffixes_are_renames() {
        let pair = |pruned: &[(&str, &str)], created: &[(&str, &str)]| {
            let keys = |names: &[(&str, &str)]| -> Vec<ObjectKey> {
                names.iter().map(|(kind, name)| key(kind, name)).collect()
            };
            let (pruned, created) = (keys(pruned), keys(created));
            pairs(
                &pruned.iter().collect::<Vec<_>>(),
                &created.iter().collect::<Vec<_>>(),
            )
        };
        let (old, new) = (("ConfigMap", "app-5m2k8t4h9b"), ("ConfigMap", "app-bfh72cttk6"));
        assert_eq!(pair(&[("Secret", "x"), old], &[new]), [(1, 0)]);
        assert_eq!(pair(&[old], &[("Secret", "app-bfh72cttk6")]), []);
        assert_eq!(pair(&[old, ("ConfigMap", "app-2456789bcd")], &[new]), []);
        assert_eq!(pair(&[("ConfigMap", "app-one")], &[("ConfigMap", "app-two")]), []);
        assert_eq!(
            pair(&[("ConfigMap", "web-x8b2k")], &[("ConfigMap", "web-c4d5f")]),
            [(0, 0)]
        );
        for kind in ["PersistentVolumeClaim", "Namespace"] {
            assert_eq!(pair(&[(kind, "web-x8b2k")], &[(kind, "web-c4d5f")]), []);
        }
    }
}
