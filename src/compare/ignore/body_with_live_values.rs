//! The body of an object in which ignored fields are as they are live.
//!
//! The way to a field leads through the manifest, the live object and `managedFields` at once: only
//! the trees of field sets show which lists have keys, and which maps and lists are one value
//! (atomic). At the field, `merge` decides what of the live value is part of the body.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::managed_fields_entries::{ManagedFieldsEntries, same_item};
use crate::compare::field_paths::is_empty;
use crate::model::applyset::parent::is_applyset_key;
use crate::model::object::Object;
use crate::model::pointer::{Pointer, parse_index};

/// The use of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It is compared with the live object: ignored fields count as applied exactly as far as our
    /// manager owns them now.
    Compare,
    /// It is sent: a field that another manager owns by an apply is left out, any other one that the
    /// manifest has or that our manager owns is sent as it is live. So the object keeps it.
    Send,
}

/// Returns the body of an object of the manifests with these fields ignored. `live` is the whole
/// live object that the body is compared with, or sent over; it may be sent over no other version.
///
/// A field is taken from the manifest if it is created together with the list item or the mapping that
/// holds it, since it may be required there; labels, annotations and other maps of free keys are left
/// as they are. Keys of list items and the ApplySet's own labels and annotations are never ignored.
pub fn body(object: &Object, ignored: &[Pointer], live: &Value, manager: &str, purpose: Purpose) -> Object {
    let manifest = object.value();
    let mut body = manifest.clone();
    for pointer in ignored {
        let place = IgnoredPlace {
            entries: ManagedFieldsEntries::read(&live["metadata"], manager),
            is_atomic: false,
            purpose,
        };
        place.set_field(&mut body, live, pointer.segments());
    }
    keep_applyset_metadata(&mut body, &manifest);
    Object::from(&body)
}

/// Labels and annotations of the ApplySet are those of the manifest.
fn keep_applyset_metadata(body: &mut Value, manifest: &Value) {
    for field in ["labels", "annotations"] {
        let pairs = manifest["metadata"][field].as_object();
        for (key, value) in pairs
            .into_iter()
            .flatten()
            .filter(|(key, _)| is_applyset_key(key))
        {
            let metadata = &mut body["metadata"];
            if !metadata[field].is_object() {
                metadata[field] = json!({});
            }
            metadata[field][key] = value.clone();
        }
    }
}

/// A mapping or a list on the way to an ignored field.
struct IgnoredPlace<'a> {
    entries: ManagedFieldsEntries<'a>,
    /// It is part of a value that is owned as a whole.
    is_atomic: bool,
    purpose: Purpose,
}

impl IgnoredPlace<'_> {
    fn below(&self, key: &str) -> Self {
        let entries = self.entries.below(key);
        Self {
            is_atomic: self.is_atomic || entries.are_of_one_value(),
            entries,
            purpose: self.purpose,
        }
    }

    /// Sets the field to which the segments lead from here. `body` is the manifest's value of this
    /// place.
    fn set_field(&self, body: &mut Value, live: &Value, segments: &[String]) {
        let Some((segment, rest)) = segments.split_first() else {
            return;
        };
        match (body, live) {
            (Value::Object(body), Value::Object(live)) => self.field(body, live, segment, rest),
            (Value::Array(body), Value::Array(live)) => {
                let Some(index) = parse_index(segment) else { return };
                if self.is_atomic || !self.entries.have_items() {
                    self.item_by_index(body, live, index, rest);
                } else {
                    self.item_by_key(body, live, index, rest);
                }
            }
            _ => {}
        }
    }

    /// Returns whether this is a value that is owned as a whole, and that is not ours when it is compared:
    /// a writer of an ignored part of it has become its only owner.
    fn is_of_another_writer(&self) -> bool {
        self.purpose == Purpose::Compare && self.entries.are_of_one_value() && self.entries.ours().is_none()
    }

    fn field(&self, body: &mut Map<String, Value>, live: &Map<String, Value>, name: &str, rest: &[String]) {
        let below = self.below(&format!("f:{name}"));
        if rest.is_empty() {
            match below.merge(body.get(name), live.get(name)) {
                Some(value) => drop(body.insert(name.to_owned(), value)),
                None => drop(body.remove(name)),
            }
            return;
        }
        match (body.get_mut(name), live.get(name)) {
            (Some(mine), Some(live)) => {
                let was_empty = is_empty(mine);
                below.set_field(mine, live, rest);
                let is_theirs = below.is_of_another_writer() && mine == live;
                let is_emptied = is_empty(mine) && !was_empty && !is_empty(live);
                if is_theirs || is_emptied && !below.entries.own_it() {
                    body.remove(name);
                }
            }
            (Some(mine), None) => {
                let mut left = mine.clone();
                remove(&mut left, rest);
                if is_empty(&left) {
                    body.remove(name);
                } else if has_free_keys(rest.iter().rev().nth(1).map_or(name, String::as_str)) {
                    *mine = left;
                }
            }
            // The manifest has dropped what our manager owns.
            (None, Some(live)) => {
                let mut mine = match live {
                    Value::Array(_) => json!([]),
                    _ => json!({}),
                };
                below.set_field(&mut mine, live, rest);
                if !is_empty(&mine) {
                    body.insert(name.to_owned(), mine);
                }
            }
            (None, None) => {}
        }
    }

    /// Sets an item of a list without keys, or part of one.
    fn item_by_index(&self, body: &mut Vec<Value>, live: &[Value], index: usize, rest: &[String]) {
        let below = Self {
            entries: ManagedFieldsEntries::default(),
            is_atomic: true,
            purpose: self.purpose,
        };
        match (body.get_mut(index), live.get(index)) {
            (Some(mine), Some(live)) if rest.is_empty() => mine.clone_from(live),
            (Some(mine), Some(live)) => below.set_field(mine, live, rest),
            (Some(_), None) if rest.is_empty() => drop(body.remove(index)),
            (Some(_) | None, _) => {}
        }
    }

    /// Sets an item that is found by its keys, or by its value in a set. The index is that of the
    /// manifest, or of the live object for an item that the manifest does not have.
    fn item_by_key(&self, body: &mut Vec<Value>, live: &[Value], index: usize, rest: &[String]) {
        let names = self.entries.key_names();
        let Some(mine) = body.get_mut(index) else {
            let Some(item) = live.get(index) else { return };
            if body.iter().any(|mine| same_item(mine, item, &names)) {
                return;
            }
            let below = self.below(&self.entries.key_of(item, &names));
            let whole = below.project(item).filter(|_| rest.is_empty());
            body.extend(whole.filter(|_| !below.entries.others_own_it()));
            return;
        };
        let mut matching = live.iter().filter(|item| same_item(mine, item, &names));
        // An item that is not there yet is created as the manifest has it.
        let (Some(item), None) = (matching.next(), matching.next()) else {
            if rest.is_empty() && !mine.is_object() {
                body.remove(index);
            }
            return;
        };
        let below = self.below(&self.entries.key_of(item, &names));
        match rest {
            [] => match below.merge(Some(mine), Some(item)) {
                Some(value) => *mine = value,
                None => drop(body.remove(index)),
            },
            [name] if names.contains(name) => {}
            rest => below.set_field(mine, item, rest),
        }
    }

    /// Returns the value of an ignored field in the body; `None` if it is left out.
    fn merge(&self, mine: Option<&Value>, live: Option<&Value>) -> Option<Value> {
        let live = live?;
        if self.is_atomic && !self.entries.are_of_one_value() {
            return Some(live.clone());
        }
        match self.purpose {
            Purpose::Compare => self.project(live),
            Purpose::Send if self.entries.others_own_it_whole() => None,
            Purpose::Send if mine.is_none() && !self.entries.own_any() => None,
            Purpose::Send if !self.entries.have_parts() => Some(live.clone()),
            Purpose::Send => match live {
                Value::Object(live) => self.merge_fields(mine, live),
                Value::Array(live) => self.merge_items(mine, live),
                other => Some(other.clone()),
            },
        }
    }

    fn merge_fields(&self, mine: Option<&Value>, live: &Map<String, Value>) -> Option<Value> {
        let fields = self.fields_of(mine, live);
        let is_empty_there = live.is_empty() || self.entries.own_it();
        let stays = !fields.is_empty() || (is_empty_there && !self.entries.others_own_it());
        stays.then_some(Value::Object(fields))
    }

    fn fields_of(&self, mine: Option<&Value>, live: &Map<String, Value>) -> Map<String, Value> {
        let mine = mine.and_then(Value::as_object);
        let names: BTreeSet<&str> = mine
            .into_iter()
            .flat_map(Map::keys)
            .map(String::as_str)
            .chain(self.entries.own_fields())
            .collect();
        names
            .into_iter()
            .filter_map(|name| {
                let below = self.below(&format!("f:{name}"));
                let value = below.merge(mine.and_then(|mine| mine.get(name)), live.get(name))?;
                Some((name.to_owned(), value))
            })
            .collect()
    }

    fn merge_items(&self, mine: Option<&Value>, live: &[Value]) -> Option<Value> {
        let names = self.entries.key_names();
        let mine: &[Value] = mine.and_then(Value::as_array).map_or(&[], Vec::as_slice);
        let items: Vec<Value> = live
            .iter()
            .filter_map(|item| {
                let below = self.below(&self.entries.key_of(item, &names));
                let mine = mine.iter().find(|mine| same_item(mine, item, &names));
                if mine.is_none() && !below.entries.own_any() {
                    return None;
                }
                let Some(whole) = item.as_object().filter(|_| below.entries.have_parts()) else {
                    return (!below.entries.others_own_it_whole()).then(|| item.clone());
                };
                let mut fields = below.fields_of(mine, whole);
                let has_more = fields.keys().any(|name| !names.contains(name));
                for name in &names {
                    if let Some(key) = whole
                        .get(name)
                        .filter(|_| has_more || !below.entries.others_own_it())
                    {
                        fields.insert(name.clone(), key.clone());
                    }
                }
                (has_more || !below.entries.others_own_it()).then_some(Value::Object(fields))
            })
            .collect();
        (!items.is_empty() || live.is_empty()).then_some(Value::Array(items))
    }

    /// Returns what our manager owns of a live value; `None` if that is nothing.
    fn project(&self, live: &Value) -> Option<Value> {
        self.entries.ours().map(|tree| project(tree, live))
    }
}

/// Returns the part of a value that a field set owns.
fn project(tree: &Map<String, Value>, live: &Value) -> Value {
    if tree.is_empty() {
        return live.clone();
    }
    match live {
        Value::Object(live) => {
            let fields = tree.iter().filter_map(|(key, below)| {
                let name = key.strip_prefix("f:")?;
                Some((name.to_owned(), project(below.as_object()?, live.get(name)?)))
            });
            Value::Object(fields.collect())
        }
        Value::Array(live) => {
            let entries = ManagedFieldsEntries::from_tree(tree);
            let names = entries.key_names();
            let items = live.iter().filter_map(|item| {
                let below = tree.get(&entries.key_of(item, &names))?;
                Some(project(below.as_object()?, item))
            });
            Value::Array(items.collect())
        }
        other => other.clone(),
    }
}

/// Returns whether people choose the keys of this map, so that none of them is required.
fn has_free_keys(name: &str) -> bool {
    const MAPS: [&str; 8] = [
        "labels",
        "annotations",
        "data",
        "binaryData",
        "nodeSelector",
        "matchLabels",
        "limits",
        "requests",
    ];
    MAPS.contains(&name)
}

/// Removes the field to which the segments lead, and what becomes empty by that.
pub(super) fn remove(value: &mut Value, segments: &[String]) {
    let Some((segment, rest)) = segments.split_first() else {
        return;
    };
    match value {
        Value::Object(fields) if rest.is_empty() => drop(fields.remove(segment)),
        Value::Object(fields) => {
            if let Some(below) = fields.get_mut(segment) {
                remove(below, rest);
                if is_empty(below) {
                    fields.remove(segment);
                }
            }
        }
        Value::Array(items) => {
            let Some(index) = parse_index(segment).filter(|index| *index < items.len()) else {
                return;
            };
            if rest.is_empty() {
                items.remove(index);
            } else {
                remove(&mut items[index], rest);
            }
        }
        _ => {}
    }
}

/// Returns whether the live object has an owned field at this place or below that its manifest lacks. The
/// status does not count; items of lists are not looked up, and always count.
pub(super) fn has_more_than(live: &Value, manifest: &Value, segments: &[String]) -> bool {
    let Some((first, rest)) = segments.split_first().filter(|(first, _)| *first != "status") else {
        return false;
    };
    let mut entries = ManagedFieldsEntries::read(&live["metadata"], "");
    let (mut live, mut mine) = (live, Some(manifest));
    for segment in std::iter::once(first).chain(rest) {
        let Some(fields) = live.as_object() else {
            return live.is_array() && mine.is_none();
        };
        let Some(below) = fields.get(segment) else {
            return false;
        };
        live = below;
        mine = mine.and_then(|mine| mine.get(segment));
        entries = entries.field(segment);
    }
    has_decided(&entries, live, mine)
}

fn has_decided(entries: &ManagedFieldsEntries<'_>, live: &Value, mine: Option<&Value>) -> bool {
    match live {
        Value::Object(fields) if !fields.is_empty() => fields.iter().any(|(name, value)| {
            let mine = mine.and_then(|mine| mine.get(name));
            has_decided(&entries.field(name), value, mine)
        }),
        _ => mine.is_none() && entries.are_any(),
    }
}
