//! Associative lists and sets: their items are found by key or value, and must be in the order
//! that the merge would give them.
//!
//! The merge (`typed/merge.go`, `visitListItems`) keeps the live list exactly if the items of the manifest are in it in
//! the same order, possibly with others between them, and no item is in it twice.

use std::cell::Cell;

use serde_json::Value;

use super::Reason;
use super::atomic_or_granular::Shape;
use super::compare_fields::{FieldComparison, Fields, UnchangedOrReason};

/// An item in the tree of our entry.
struct OwnedItem<'a, K> {
    path: &'a str,
    key: K,
    node: &'a Fields,
    is_found: Cell<bool>,
}

impl<'a> FieldComparison<'a> {
    /// Compares a list that our entry has item by item.
    pub(super) fn compare_list_items(
        &mut self,
        desired: &'a [Value],
        owned: &'a Fields,
        live: &'a [Value],
        shape: Shape<'a>,
    ) -> UnchangedOrReason {
        if owned.keys().any(|key| key.starts_with("k:")) {
            self.compare_keyed_items(desired, owned, live, shape)
        } else {
            self.compare_set_items(desired, owned, live)
        }
    }

    fn compare_keyed_items(
        &mut self,
        desired: &'a [Value],
        owned: &'a Fields,
        live: &'a [Value],
        shape: Shape<'a>,
    ) -> UnchangedOrReason {
        let entries: Vec<OwnedItem<'a, Fields>> = self.parse_items(owned, "k:")?;
        let names = key_names(&entries);
        let mut next = 0;
        for item in desired {
            let Value::Object(item) = item else {
                return Err(Reason::ValueDiffers(self.path_here()));
            };
            let entry = self.find_and_mark_entry(&entries, |entry| may_match_entry(item, entry, &names))?;
            let node = entry.node;
            let position = only_position(live, |live_item| {
                live_item
                    .as_object()
                    .is_some_and(|fields| has_key(fields, &entry.key, &names))
            });
            self.path.push(entry.path);
            let position = self.check_order(position, &mut next)?;
            if node.is_empty() {
                self.compare_leaf_item(item, &live[position], shape)?;
            } else if !node.contains_key(".") {
                return Err(Reason::Unreadable(self.path_here()));
            } else if let Value::Object(live_item) = &live[position] {
                self.compare_granular_map(item, node, live_item, shape)?;
            }
            self.path.pop();
        }
        self.check_all_entries_marked(&entries)
    }

    /// Compares an item whose tree is empty. Either the item is atomic, and owned as one value, or it is granular, and
    /// the manifest has left all its keys to their defaults.
    fn compare_leaf_item(&self, desired: &Fields, live: &Value, shape: Shape<'a>) -> UnchangedOrReason {
        if !shape.is_atomic_map_if_leaf() {
            Err(Reason::UnknownShape(self.path_here()))
        } else if live.as_object() == Some(desired) {
            Ok(())
        } else {
            Err(Reason::ValueDiffers(self.path_here()))
        }
    }

    fn compare_set_items(
        &mut self,
        desired: &'a [Value],
        owned: &'a Fields,
        live: &'a [Value],
    ) -> UnchangedOrReason {
        let entries: Vec<OwnedItem<'a, Value>> = self.parse_items(owned, "v:")?;
        let mut next = 0;
        for item in desired {
            let entry = self.find_and_mark_entry(&entries, |entry| entry.key == *item)?;
            self.path.push(entry.path);
            if !entry.node.is_empty() {
                return Err(Reason::Unreadable(self.path_here()));
            }
            self.check_order(only_position(live, |live_item| live_item == item), &mut next)?;
            self.path.pop();
        }
        self.check_all_entries_marked(&entries)
    }

    /// Checks that an item has a position in the live list, and not one before `next`. Moves `next` behind the item.
    fn check_order(&self, position: Option<usize>, next: &mut usize) -> Result<usize, Reason> {
        let position = position.ok_or_else(|| Reason::ValueDiffers(self.path_here()))?;
        if position < *next {
            return Err(Reason::OrderDiffers(self.path_here()));
        }
        *next = position + 1;
        Ok(position)
    }

    /// Reads the items of the tree, whose keys must all have the same prefix.
    fn parse_items<K: serde::de::DeserializeOwned>(
        &self,
        owned: &'a Fields,
        prefix: &str,
    ) -> Result<Vec<OwnedItem<'a, K>>, Reason> {
        let unreadable = || Reason::Unreadable(self.path_here());
        owned
            .iter()
            .filter(|(key, _)| *key != ".")
            .map(|(path, node)| {
                let text = path.strip_prefix(prefix).ok_or_else(unreadable)?;
                Ok(OwnedItem {
                    path,
                    key: serde_json::from_str(text).map_err(|_| unreadable())?,
                    node: node.as_object().ok_or_else(unreadable)?,
                    is_found: Cell::new(false),
                })
            })
            .collect()
    }

    /// Returns the one item of the tree that an item of the manifest can be.
    fn find_and_mark_entry<'e, K>(
        &self,
        entries: &'e [OwnedItem<'a, K>],
        is_it: impl Fn(&OwnedItem<'a, K>) -> bool,
    ) -> Result<&'e OwnedItem<'a, K>, Reason> {
        let mut matching_entries = entries.iter().filter(|entry| is_it(entry));
        let Some(entry) = matching_entries.next() else {
            return Err(Reason::FieldAdded(format!("{}[]", self.path_here())));
        };
        if entry.is_found.get() || matching_entries.next().is_some() {
            return Err(Reason::Ambiguous(self.path_here()));
        }
        entry.is_found.set(true);
        Ok(entry)
    }

    /// Checks that the manifest has every item of the tree.
    fn check_all_entries_marked<K>(&mut self, entries: &[OwnedItem<'a, K>]) -> UnchangedOrReason {
        match entries.iter().find(|entry| !entry.is_found.get()) {
            Some(entry) => {
                self.path.push(entry.path);
                Err(Reason::FieldDropped(self.path_here()))
            }
            None => Ok(()),
        }
    }
}

/// The fields that identify an item of this list, as far as the tree names them.
fn key_names<'e>(entries: &'e [OwnedItem<'_, Fields>]) -> Vec<&'e str> {
    let mut names: Vec<&str> = Vec::with_capacity(4);
    for name in entries.iter().flat_map(|entry| entry.key.keys()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// Returns whether an item of the manifest can be this item of the tree. If the manifest leaves a key to its default,
/// the tree of the item does not own the field of the key.
fn may_match_entry(item: &Fields, owned: &OwnedItem<'_, Fields>, names: &[&str]) -> bool {
    names
        .iter()
        .all(|name| match (item.get(*name), owned.key.get(*name)) {
            (Some(value), Some(owned_value)) => value == owned_value,
            (Some(_), None) => false,
            (None, Some(_)) => !owned.node.contains_key(&format!("f:{name}")),
            (None, None) => true,
        })
}

/// Returns whether a live item, which has defaults filled in, has this key.
fn has_key(item: &Fields, key: &Fields, names: &[&str]) -> bool {
    names.iter().all(|name| item.get(*name) == key.get(*name))
}

/// Returns the position of the one item that fits; `None` if none or several do.
fn only_position(items: &[Value], fits: impl Fn(&Value) -> bool) -> Option<usize> {
    let position = items.iter().position(&fits)?;
    (!items[position + 1..].iter().any(fits)).then_some(position)
}
