//! Objects that get a new name because their content changes: kustomize appends a hash to the names
//! of its ConfigMaps and Secrets.
//!
//! Pure.

use std::collections::BTreeMap;

use crate::model::identity::{GroupKind, ObjectKey};

/// The characters of kustomize's hashes and of names that the API server generates.
const GENERATED: &str = "bcdfghjklmnpqrstvwxz2456789";

/// Pairs each pruned object with the created one that replaces it: the same kind, namespace and stem,
/// and no other of either. Returns the indexes of both.
pub(super) fn pairs(pruned: &[&ObjectKey], created: &[&ObjectKey]) -> Vec<(usize, usize)> {
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
        if let Some(stem) = stem(&key.name) {
            let stem = (&key.group_kind, key.namespace.as_deref(), stem);
            by_stem.entry(stem).or_default().push(index);
        }
    }
    by_stem
}

/// Returns the name without a generated suffix: 5 characters by the API server, 10 by kustomize.
fn stem(name: &str) -> Option<&str> {
    let (stem, suffix) = name.rsplit_once('-')?;
    let is_generated = matches!(suffix.len(), 5 | 10) && suffix.chars().all(|it| GENERATED.contains(it));
    (is_generated && !stem.is_empty()).then_some(stem)
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
    }
}
