//! Merges a manifest into the live object (structured-merge-diff, `typed/merge.go`), and collects the field set that an
//! apply of the manifest owns (`typed/tofieldset.go`).

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use crate::compare::changes::DeclaredOrKey;
use crate::compare::ignore::ManagedFieldsEntries;
use crate::compare::typed_place::TypedPlace;
use crate::model::built_in_kinds::Ownership;

/// A map of an object, or a field set.
pub(super) type Fields = Map<String, Value>;

/// The keys of a field set that lead to a value.
pub(super) type Path = Vec<String>;

/// The merge of one object.
#[derive(Default)]
pub(super) struct Merge {
    /// The path of the value that is being merged.
    path: Path,
    /// The paths of the values that the manifest adds or changes.
    pub(super) changed: Vec<Path>,
    /// True if a live map or list was merged whose type is not known.
    pub(super) has_unknown_type: bool,
}

/// A merged value.
struct Merged {
    /// `None` if the server does not store the value.
    value: Option<Value>,
    /// The field set below the value; `None` if the apply owns nothing there, not even the value itself.
    owned: Option<Fields>,
}

impl Merge {
    /// Merges a map field by field. Returns the merged map, and the field set of the manifest.
    pub(super) fn merge_fields<'d>(
        &mut self,
        live: &Fields,
        desired: &'d Fields,
        place: TypedPlace<'d>,
        entries: &ManagedFieldsEntries<'_>,
    ) -> (Fields, Fields) {
        let mut merged = live.clone();
        let mut owned = Fields::new();
        for (name, value) in desired {
            let key = format!("f:{name}");
            let below = entries.below(&key);
            let Merged { value, owned: node } =
                self.merge_at(&key, live.get(name), value, place.below(name), &below);
            match value {
                Some(value) => drop(merged.insert(name.clone(), value)),
                None => drop(merged.remove(name)),
            }
            // The key of a map with free keys is owned itself, a declared field only with its value.
            let is_key = match place.membership(name) {
                DeclaredOrKey::Key => true,
                DeclaredOrKey::Declared => false,
                DeclaredOrKey::Unknown => below.we_own_place_itself(),
            };
            let node = if is_key {
                Some(add_itself(node.unwrap_or_default()))
            } else {
                node
            };
            owned.extend(node.map(|node| (key, Value::Object(node))));
        }
        (merged, owned)
    }

    /// Merges the value to which `key` leads.
    fn merge_at<'d>(
        &mut self,
        key: &str,
        live: Option<&Value>,
        desired: &'d Value,
        place: TypedPlace<'d>,
        entries: &ManagedFieldsEntries<'_>,
    ) -> Merged {
        self.path.push(key.to_owned());
        let merged = match desired {
            Value::Object(desired)
                if !desired.is_empty()
                    && self.is_granular(place.map_ownership(), live, entries, |entries| {
                        !entries.any_owns_whole_value()
                    }) =>
            {
                let no_fields = Fields::new();
                let live = self.note_if_added(live.and_then(Value::as_object));
                let (merged, owned) = self.merge_fields(live.unwrap_or(&no_fields), desired, place, entries);
                Merged {
                    value: Some(Value::Object(merged)),
                    owned: (!owned.is_empty()).then_some(owned),
                }
            }
            Value::Array(desired)
                if !desired.is_empty()
                    && self.is_granular(place.list_ownership(), live, entries, |entries| {
                        entries.have_list_items()
                    }) =>
            {
                let live = self.note_if_added(live.and_then(Value::as_array));
                self.merge_items(live.map_or(&[], Vec::as_slice), desired, place, entries)
            }
            desired => self.replace(live, desired, place),
        };
        self.path.pop();
        merged
    }

    /// Returns whether the parts of a map or list are merged one by one. If its type is not known, `have_parts` says so
    /// by the entries of managedFields.
    fn is_granular(
        &mut self,
        ownership: Ownership,
        live: Option<&Value>,
        entries: &ManagedFieldsEntries<'_>,
        have_parts: fn(&ManagedFieldsEntries<'_>) -> bool,
    ) -> bool {
        match ownership {
            Ownership::Granular => true,
            Ownership::Atomic => false,
            Ownership::Unknown => {
                self.has_unknown_type |= live.is_some() && !entries.have_owner();
                have_parts(entries)
            }
        }
    }

    /// Merges a list with keys or a set, item by item.
    fn merge_items<'d>(
        &mut self,
        live: &[Value],
        desired: &'d [Value],
        list: TypedPlace<'d>,
        entries: &ManagedFieldsEntries<'_>,
    ) -> Merged {
        let keys = item_keys(list, entries);
        let [live_keys, desired_keys] =
            [live, desired].map(|items| items.iter().map(|item| key_of(item, &keys)).collect::<Vec<_>>());
        let mut merged_items = Vec::new();
        let mut owned = Fields::new();
        for MergedItem {
            live_position,
            desired_position,
        } in merged_order(&live_keys, &desired_keys)
        {
            let live_item = live_position.map(|position| &live[position]);
            let Some(position) = desired_position else {
                merged_items.extend(live_item.cloned());
                continue;
            };
            let key = &desired_keys[position];
            let Merged {
                mut value,
                owned: node,
            } = self.merge_at(
                key,
                live_item,
                &desired[position],
                list.item(),
                &entries.below(key),
            );
            if let Some(item) = &mut value {
                fill_in_keys(item, &keys);
            }
            merged_items.extend(value);
            let node = add_itself(node.unwrap_or_default());
            owned.insert(key.clone(), Value::Object(node));
        }
        Merged {
            value: Some(Value::Array(merged_items)),
            owned: Some(owned),
        }
    }

    /// Replaces a value that is owned as a whole. A value that is only written in another way than the live one stays,
    /// but the server counts it as changed: it compares before it normalizes.
    fn replace(&mut self, live: Option<&Value>, desired: &Value, place: TypedPlace<'_>) -> Merged {
        let is_granular = match (desired, live) {
            (Value::Object(_), _) | (Value::Null, Some(Value::Object(_))) => {
                place.map_ownership() == Ownership::Granular
            }
            (Value::Array(_), _) | (Value::Null, Some(Value::Array(_))) => {
                place.list_ownership() == Ownership::Granular
            }
            _ => false,
        };
        let owned = (!(is_granular && desired.is_array())).then(Fields::new);
        let is_live_of_same_type = live.is_some_and(|live| live.is_object() || live.is_array());
        if is_granular && is_live_of_same_type {
            // An empty map or list whose parts are merged one by one changes nothing.
            return Merged {
                value: live.cloned(),
                owned,
            };
        }
        if live != Some(desired) {
            self.changed.push(self.path.clone());
        }
        let value = match live {
            Some(live) => place.as_server_writes_it(desired, live),
            None => desired.clone(),
        };
        // An empty value over another one is not stored, so it cannot be told from a default.
        let is_stored = live == Some(&value) || !place.is_left_out(&value);
        Merged {
            value: is_stored.then_some(value),
            owned,
        }
    }

    /// Notes that the value is added, if there is no live map or list. Returns the live one.
    fn note_if_added<'l, T: ?Sized>(&mut self, live: Option<&'l T>) -> Option<&'l T> {
        if live.is_none() {
            self.changed.push(self.path.clone());
        }
        live
    }
}

/// Returns a node of a field set that owns the value itself: `.` beside the fields below it, or an empty node.
fn add_itself(mut node: Fields) -> Fields {
    if !node.is_empty() {
        node.insert(".".to_owned(), json!({}));
    }
    node
}

/// The names of the fields that distinguish the items of a list, each with its default; none for a set.
type ItemKeys = Vec<(String, Option<Value>)>;

fn item_keys(list: TypedPlace<'_>, entries: &ManagedFieldsEntries<'_>) -> ItemKeys {
    list.keys_of_list_with_defaults().unwrap_or_else(|| {
        entries
            .item_key_names()
            .into_iter()
            .map(|name| (name, None))
            .collect()
    })
}

/// Returns the key of a field set that selects this item, as Go's JSON encoder writes it.
fn key_of(item: &Value, keys: &ItemKeys) -> String {
    let (prefix, key) = if keys.is_empty() {
        ("v:", item.to_string())
    } else {
        let fields: Fields = keys
            .iter()
            .filter_map(|(name, default)| Some((name.clone(), item.get(name).or(default.as_ref())?.clone())))
            .collect();
        ("k:", Value::Object(fields).to_string())
    };
    let mut text = format!("{prefix}{key}");
    for (character, escape) in [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026")] {
        if text.contains(character) {
            text = text.replace(character, escape);
        }
    }
    text
}

/// Adds the keys that an item leaves to their defaults.
fn fill_in_keys(item: &mut Value, keys: &ItemKeys) {
    let Some(fields) = item.as_object_mut() else {
        return;
    };
    for (name, default) in keys {
        if let Some(default) = default
            && !fields.contains_key(name)
        {
            fields.insert(name.clone(), default.clone());
        }
    }
}

/// An item of a merged list.
struct MergedItem {
    /// The position in the live list.
    live_position: Option<usize>,
    /// The position in the list of the manifest.
    desired_position: Option<usize>,
}

/// Returns the items of an associative list after a merge, in their order. The items of the manifest are in its order,
/// and items of others stay between them (`visitListItems`).
///
/// Both lists are given by the keys of their items. Live items with equal keys are not merged: the item of the manifest
/// replaces them.
fn merged_order(live: &[String], desired: &[String]) -> Vec<MergedItem> {
    let live_positions = single_key_positions(live);
    let desired_keys: HashSet<&String> = desired.iter().collect();
    let mut common_keys = desired.iter().filter(|key| live_positions.contains_key(key));
    let mut next_common_key = common_keys.next();
    let mut merged_keys: HashSet<&String> = HashSet::new();
    let mut order = Vec::with_capacity(live.len().max(desired.len()));
    let mut live_index = 0;
    let mut desired_index = 0;
    while live_index < live.len() || desired_index < desired.len() {
        let desired_key = desired.get(desired_index);
        if let Some(key) = live.get(live_index) {
            if !desired_keys.contains(key) {
                order.push(MergedItem {
                    live_position: Some(live_index),
                    desired_position: None,
                });
                live_index += 1;
                continue;
            }
            // An item that the manifest has in another order is merged when its turn comes.
            if desired_key.is_some_and(|desired| desired != key)
                && next_common_key.is_some_and(|next| next != key)
            {
                live_index += 1;
                continue;
            }
            if merged_keys.contains(key) || desired_key == Some(key) {
                live_index += 1;
            }
        }
        if let Some(key) = desired_key {
            order.push(MergedItem {
                live_position: live_positions.get(key).copied().flatten(),
                desired_position: Some(desired_index),
            });
            merged_keys.insert(key);
            desired_index += 1;
            if next_common_key == Some(key) {
                next_common_key = common_keys.next();
            }
        }
    }
    order
}

/// Returns the position of each key; `None` for a key that occurs several times.
fn single_key_positions(keys: &[String]) -> HashMap<&String, Option<usize>> {
    let mut positions = HashMap::new();
    for (position, key) in keys.iter().enumerate() {
        positions
            .entry(key)
            .and_modify(|single_position| *single_position = None)
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
        let live = keys(live);
        let desired = keys(desired);
        merged_order(&live, &desired)
            .into_iter()
            .filter_map(|item| match (item.live_position, item.desired_position) {
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
