//! The entries of `metadata.managedFields` at one place of an object.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::compare::ownership;

type Tree = Map<String, Value>;

/// The trees of all entries at one place of an object. An empty tree owns the value at the place as a whole.
#[derive(Debug, Default)]
pub(in crate::compare) struct ManagedFieldsEntries<'a> {
    /// The tree of the entry that our manager has applied.
    ours: Option<&'a Tree>,
    /// The trees of the entries that other managers have applied.
    theirs: Vec<&'a Tree>,
    /// The trees of the entries of updates. They do not count as owners here, but show which lists have keys.
    updated: Vec<&'a Tree>,
}

impl<'a> ManagedFieldsEntries<'a> {
    /// Reads the entries of a live object by its metadata.
    pub(in crate::compare) fn read(metadata: &'a Value, manager: &str) -> Self {
        let mut entries = Self::default();
        for entry in metadata["managedFields"].as_array().into_iter().flatten() {
            let Some(tree) = entry["fieldsV1"].as_object() else {
                continue;
            };
            if ownership::is_apply_of(entry, manager) {
                entries.ours = Some(tree);
            } else if entry["operation"] == "Apply" {
                entries.theirs.push(tree);
            } else {
                entries.updated.push(tree);
            }
        }
        entries
    }

    /// Makes entries of a single tree.
    pub(super) fn from_tree(tree: &'a Tree) -> Self {
        Self {
            ours: Some(tree),
            ..Self::default()
        }
    }

    /// Returns the entries at the place to which a key of the trees leads from here.
    pub(in crate::compare) fn below(&self, key: &str) -> Self {
        let subtree = |tree: &&'a Tree| tree.get(key)?.as_object();
        Self {
            ours: self.ours.as_ref().and_then(subtree),
            theirs: self.theirs.iter().filter_map(subtree).collect(),
            updated: self.updated.iter().filter_map(subtree).collect(),
        }
    }

    fn all_trees(&self) -> impl Iterator<Item = &'a Tree> {
        self.ours
            .into_iter()
            .chain(self.theirs.iter().copied())
            .chain(self.updated.iter().copied())
    }

    fn keys(&self) -> impl Iterator<Item = &'a String> {
        self.all_trees().flat_map(Map::keys)
    }

    /// Returns whether any manager owns something at this place.
    pub(in crate::compare) fn have_owner(&self) -> bool {
        self.all_trees().next().is_some()
    }

    /// Returns the tree of our entry.
    pub(super) fn ours(&self) -> Option<&'a Tree> {
        self.ours
    }

    /// Returns whether our manager has applied something at this place.
    pub(super) fn we_own_something(&self) -> bool {
        self.ours.is_some()
    }

    /// Returns whether our manager has applied the mapping, list or item at this place itself, not only parts of it.
    pub(in crate::compare) fn we_own_place_itself(&self) -> bool {
        self.ours.is_some_and(owns_place_itself)
    }

    /// Returns whether another manager has applied the mapping, list or item at this place itself.
    pub(super) fn others_own_place_itself(&self) -> bool {
        self.theirs.iter().any(|tree| owns_place_itself(tree))
    }

    /// Returns whether another manager has applied the value as a whole: its tree is empty, and no entry has parts of
    /// the value. If an entry has parts, the empty tree only shows that a manifest had an empty mapping or list here.
    pub(super) fn others_own_whole_value(&self) -> bool {
        !self.have_parts() && self.theirs.iter().any(|tree| tree.is_empty())
    }

    /// Returns whether the value here is owned as a whole: it has an owner, and no entry has a part of it.
    pub(in crate::compare) fn any_owns_whole_value(&self) -> bool {
        self.have_owner() && !self.have_parts()
    }

    /// Returns whether parts of the value are owned one by one.
    pub(super) fn have_parts(&self) -> bool {
        self.keys().any(|key| key != ".")
    }

    /// Returns whether this is a list with keys, or a set.
    pub(in crate::compare) fn have_list_items(&self) -> bool {
        self.keys()
            .any(|key| key.starts_with("k:") || key.starts_with("v:"))
    }

    /// Returns the names of the fields that our entry has.
    pub(super) fn our_field_names(&self) -> impl Iterator<Item = &'a str> {
        self.ours
            .into_iter()
            .flat_map(Map::keys)
            .filter_map(|key| key.strip_prefix("f:"))
    }

    /// Returns the names of the keys that distinguish the items of a list; none for a set.
    pub(in crate::compare) fn item_key_names(&self) -> Vec<String> {
        let names: BTreeSet<String> = self
            .keys()
            .filter_map(|key| serde_json::from_str::<Tree>(key.strip_prefix("k:")?).ok())
            .flat_map(|fields| fields.into_iter().map(|(name, _)| name))
            .collect();
        names.into_iter().collect()
    }

    /// Returns the key in the trees that selects a live item; an empty text, which is no key of a tree, if no key does.
    pub(super) fn item_tree_key(&self, item: &Value, names: &[String]) -> String {
        let key = self.keys().find(|key| match key.split_at_checked(2) {
            Some(("k:", text)) => serde_json::from_str::<Tree>(text)
                .is_ok_and(|key| names.iter().all(|name| item.get(name) == key.get(name))),
            Some(("v:", text)) => serde_json::from_str::<Value>(text).is_ok_and(|value| value == *item),
            _ => false,
        });
        key.cloned().unwrap_or_default()
    }
}

/// Returns whether a tree owns the value at its place itself, and not only parts of it.
fn owns_place_itself(tree: &Tree) -> bool {
    tree.is_empty() || tree.contains_key(".")
}

/// Returns the position of the item of the manifest that is this live item; `None` if none is. If several may be, the
/// one that has most keys: `port: 80` leaves the protocol to its default, and is not the item that `port: 80, protocol:
/// UDP` names.
pub(super) fn same_item_position(desired: &[Value], live: &Value, names: &[String]) -> Option<usize> {
    let candidates = desired
        .iter()
        .enumerate()
        .filter(|(_, item)| is_same_item(item, live, names));
    let (position, _) =
        candidates.min_by_key(|(_, item)| names.iter().filter(|name| item.get(name).is_none()).count())?;
    Some(position)
}

/// Returns whether an item of the manifest is this live item. Their keys must be equal, except keys that the manifest
/// leaves to their defaults. If there are no key names, the list is a set, and the items must be equal.
fn is_same_item(desired: &Value, live: &Value, names: &[String]) -> bool {
    if names.is_empty() {
        return desired == live;
    }
    names
        .iter()
        .all(|name| desired.get(name).is_none_or(|key| live.get(name) == Some(key)))
        && names.iter().any(|name| desired.get(name).is_some())
}
