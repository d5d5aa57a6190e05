//! The cascade of a run: everything that is deleted with the pruned objects.

use std::collections::{BTreeMap, HashMap};

use super::super::Observed;
use super::Dependent;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;

/// Returns the UIDs of everything that is deleted: the pruned objects, the objects in them, and the
/// dependents of either that are not guarded. Each has the pruned object that it is deleted with.
pub(super) fn cascade(
    observed: &Observed,
    prunes: &[Live],
    guarded: &BTreeMap<&str, Dependent>,
) -> BTreeMap<String, ObjectKey> {
    let mut by_owner: HashMap<&str, Vec<&str>> = HashMap::new();
    for live in &observed.members {
        for owner in &live.owners {
            by_owner.entry(&owner.uid).or_default().push(&live.uid);
        }
    }
    for held in observed.contents.values().flat_map(|contents| &contents.objects) {
        for owner in &held.owners {
            by_owner.entry(owner).or_default().push(&held.uid);
        }
    }
    let mut cascade: BTreeMap<String, ObjectKey> = BTreeMap::new();
    let mut found: Vec<(&str, &ObjectKey)> = prunes.iter().map(|live| (&*live.uid, &live.key)).collect();
    for live in prunes {
        cascade.insert(live.uid.clone(), live.key.clone());
    }
    for live in prunes {
        let held = observed.contents.get(&live.key);
        for object in held.into_iter().flat_map(|held| &held.objects) {
            found.push((&object.uid, &live.key));
        }
    }
    while let Some((uid, pruned)) = found.pop() {
        if guarded.contains_key(uid) {
            continue;
        }
        cascade.entry(uid.to_owned()).or_insert_with(|| pruned.clone());
        // Each list is followed once, so circles of owners end.
        let owned = by_owner.remove(uid).unwrap_or_default();
        found.extend(owned.into_iter().map(|owned| (owned, pruned)));
    }
    cascade
}
