//! Finds objects that get a new name because their content changes: kustomize appends a hash to the names of its
//! ConfigMaps and Secrets.
//!
//! Renames are for display only: counts and documents have a creation and a prune.

use std::collections::BTreeMap;

use super::{Effect, Entry};
use crate::model::generated_name::without_generated_suffix;
use crate::model::identity::GroupKind;

/// Pairs each pruned object with the created one that replaces it, and returns the indexes of both. The two have the
/// same kind, the same namespace, and the same name apart from the generated suffix. If a third pruned or created
/// object has these too, there is no pair, because it would be a guess. An object with which more would be lost is in
/// no pair, so that its prune is shown.
pub(super) fn find_renames(entries: &[Entry]) -> Vec<(usize, usize)> {
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
            && let Some(stem) = without_generated_suffix(&key.name)
        {
            let stem = (&key.group_kind, key.namespace.as_deref(), stem);
            by_stem.entry(stem).or_default().push(place);
        }
    }
    by_stem
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::model::identity::ObjectKey;

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
