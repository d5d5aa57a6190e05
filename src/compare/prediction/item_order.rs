//! The order of the items of an associative list after a merge (structured-merge-diff, `typed/merge.go`,
//! `visitListItems`): the items of the manifest are in its order, and those of others stay between them.

use std::collections::{HashMap, HashSet};

/// Returns the merged items in their order, each with its position in the live list and in that of the manifest. Both
/// lists are given by the keys of their items. Live items with equal keys are not merged: the item of the manifest
/// replaces them.
pub(super) fn merged_order(live: &[String], desired: &[String]) -> Vec<(Option<usize>, Option<usize>)> {
    let in_live = positions_of_single_keys(live);
    let in_desired: HashSet<&String> = desired.iter().collect();
    let mut shared = desired.iter().filter(|key| in_live.contains_key(key));
    let mut next_shared = shared.next();
    let mut merged: HashSet<&String> = HashSet::new();
    let mut order = Vec::with_capacity(live.len().max(desired.len()));
    let (mut at_live, mut at_desired) = (0, 0);
    while at_live < live.len() || at_desired < desired.len() {
        let desired_key = desired.get(at_desired);
        if let Some(key) = live.get(at_live) {
            if !in_desired.contains(key) {
                order.push((Some(at_live), None));
                at_live += 1;
                continue;
            }
            // An item that the manifest has in another order is merged when its turn comes.
            if desired_key.is_some_and(|desired| desired != key)
                && next_shared.is_some_and(|next| next != key)
            {
                at_live += 1;
                continue;
            }
            if merged.contains(key) || desired_key == Some(key) {
                at_live += 1;
            }
        }
        if let Some(key) = desired_key {
            order.push((in_live.get(key).copied().flatten(), Some(at_desired)));
            merged.insert(key);
            at_desired += 1;
            if next_shared == Some(key) {
                next_shared = shared.next();
            }
        }
    }
    order
}

/// Returns the position of each key; `None` for a key that occurs several times.
fn positions_of_single_keys(keys: &[String]) -> HashMap<&String, Option<usize>> {
    let mut positions = HashMap::new();
    for (position, key) in keys.iter().enumerate() {
        positions
            .entry(key)
            .and_modify(|known| *known = None)
            .or_insert(Some(position));
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The merged keys; capital letters are items of the manifest.
    fn merged(live: &str, desired: &str) -> String {
        let keys = |text: &str| -> Vec<String> { text.chars().map(String::from).collect() };
        let (live, desired) = (keys(live), keys(desired));
        let order = merged_order(&live, &desired).into_iter();
        order
            .filter_map(|positions| match positions {
                (_, Some(position)) => Some(desired[position].to_uppercase()),
                (Some(position), None) => Some(live[position].clone()),
                (None, None) => None,
            })
            .collect()
    }

    #[test]
    fn items_of_others_stay_between_those_of_the_manifest() {
        for (live, desired, expected) in [
            ("", "ab", "AB"),
            ("ab", "", "ab"),
            ("ab", "ab", "AB"),
            ("ab", "ba", "BA"),
            ("xay", "a", "xAy"),
            ("xay", "ab", "xAyB"),
            ("xay", "ba", "xBAy"),
            ("axb", "ba", "xBA"),
            ("abc", "ca", "bCA"),
            ("aab", "a", "Ab"),
            ("abcde", "edcba", "EDCBA"),
        ] {
            assert_eq!(merged(live, desired), expected, "{live} {desired}");
        }
    }
}
