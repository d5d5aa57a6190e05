//! The entries of `metadata.managedFields` at one place of an object.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::compare::ownership;

type Tree = Map<String, Value>;

/// The trees of all entries at one place. An empty tree owns the value there as a whole.
#[derive(Debug, Clone, Default)]
pub(super) struct ManagedFieldsEntries<'a> {
    /// The entry that our manager has applied.
    ours: Option<&'a Tree>,
    /// Those that other managers have applied.
    theirs: Vec<&'a Tree>,
    /// Those that were written otherwise. They show which lists have keys.
    updated: Vec<&'a Tree>,
}

impl<'a> ManagedFieldsEntries<'a> {
    /// Reads the entries of a live object by its metadata.
    pub(super) fn read(metadata: &'a Value, manager: &str) -> Self {
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

    /// Returns the entries one step further.
    pub(super) fn below(&self, key: &str) -> Self {
        let step = |tree: &&'a Tree| tree.get(key)?.as_object();
        Self {
            ours: self.ours.as_ref().and_then(step),
            theirs: self.theirs.iter().filter_map(step).collect(),
            updated: self.updated.iter().filter_map(step).collect(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &'a Tree> {
        self.ours
            .into_iter()
            .chain(self.theirs.iter().copied())
            .chain(self.updated.iter().copied())
    }

    fn keys(&self) -> impl Iterator<Item = &'a String> {
        self.all().flat_map(Map::keys)
    }

    /// Returns the entries of a field; those of a value that is owned as a whole are those of its parts, too.
    pub(super) fn field(&self, name: &str) -> Self {
        if self.are_of_one_value() {
            return self.clone();
        }
        self.below(&format!("f:{name}"))
    }

    /// Returns whether any manager has anything here.
    pub(super) fn are_any(&self) -> bool {
        self.all().next().is_some()
    }

    /// Returns the tree of our entry.
    pub(super) fn ours(&self) -> Option<&'a Tree> {
        self.ours
    }

    /// Returns whether our entry has anything here.
    pub(super) fn own_any(&self) -> bool {
        self.ours.is_some()
    }

    /// Returns whether our entry has the place itself, not only what is below it.
    pub(super) fn own_it(&self) -> bool {
        self.ours.is_some_and(owns_itself)
    }

    /// Returns whether another manager has applied the place itself.
    pub(super) fn others_own_it(&self) -> bool {
        self.theirs.iter().any(|tree| owns_itself(tree))
    }

    /// Returns whether another manager has applied the whole value. If parts of it are owned one by one,
    /// an entry for the whole is that of a manifest with an empty mapping or list.
    pub(super) fn others_own_it_whole(&self) -> bool {
        !self.have_parts() && self.theirs.iter().any(|tree| tree.is_empty())
    }

    /// Returns whether the value here is owned as a whole: some entry says so, and none has a part.
    pub(super) fn are_of_one_value(&self) -> bool {
        self.are_any() && !self.have_parts()
    }

    /// Returns whether parts of the value are owned one by one.
    pub(super) fn have_parts(&self) -> bool {
        self.keys().any(|key| key != ".")
    }

    /// Returns whether this is a list with keys, or a set.
    pub(super) fn have_items(&self) -> bool {
        self.keys()
            .any(|key| key.starts_with("k:") || key.starts_with("v:"))
    }

    /// Returns the names of the fields that our entry has.
    pub(super) fn own_fields(&self) -> impl Iterator<Item = &'a str> {
        self.ours
            .into_iter()
            .flat_map(Map::keys)
            .filter_map(|key| key.strip_prefix("f:"))
    }

    /// Returns the names of the keys that distinguish the items of a list; none for a set.
    pub(super) fn key_names(&self) -> Vec<String> {
        let names: BTreeSet<String> = self
            .keys()
            .filter_map(|key| serde_json::from_str::<Tree>(key.strip_prefix("k:")?).ok())
            .flat_map(|fields| fields.into_iter().map(|(name, _)| name))
            .collect();
        names.into_iter().collect()
    }

    /// Returns the key in the trees that selects a live item; an empty text if none does.
    pub(super) fn key_of(&self, item: &Value, names: &[String]) -> String {
        let key = self.keys().find(|key| match key.split_at_checked(2) {
            Some(("k:", text)) => serde_json::from_str::<Tree>(text)
                .is_ok_and(|key| names.iter().all(|name| item.get(name) == key.get(name))),
            Some(("v:", text)) => serde_json::from_str::<Value>(text).is_ok_and(|value| value == *item),
            _ => false,
        });
        key.cloned().unwrap_or_default()
    }
}

fn owns_itself(tree: &Tree) -> bool {
    tree.is_empty() || tree.contains_key(".")
}

/// Returns whether an item of the manifest is the live one: their keys are equal, except those that
/// the manifest leaves to their defaults. Items of a set are equal.
pub(super) fn same_item(mine: &Value, live: &Value, names: &[String]) -> bool {
    if names.is_empty() {
        return mine == live;
    }
    let is_same = |name: &String| mine.get(name).is_none_or(|key| live.get(name) == Some(key));
    names.iter().all(is_same) && names.iter().any(|name| mine.get(name).is_some())
}
