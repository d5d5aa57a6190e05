//! Builds the body of an object in which ignored fields have their live values.
//!
//! For each ignored field, [`body_with_live_values`] descends in the manifest, the live object and `managedFields` at
//! once: only the trees of field sets show which lists have keys, and which maps and lists are owned as one value
//! (atomic). At the field, `live_value_for_body` decides which parts of the live value become part of the body.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::managed_fields_entries::{ManagedFieldsEntries, same_item_position};
use crate::compare::field_paths::{is_empty_container, leaf_paths, value_at};
use crate::compare::ownership::entries;
use crate::model::applyset::parent::is_applyset_key;
use crate::model::object::Object;
use crate::model::pointer::{Pointer, parse_index};

/// The use of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyPurpose {
    /// The body is compared with the live object. It has the parts of ignored fields that our manager owns now, so that
    /// ignored fields make no difference.
    Compare,
    /// The body is sent. A field that another manager has applied is left out. Any other field that the manifest has,
    /// or that our manager owns, is sent with its live value. So the object keeps its value.
    Send,
}

/// Returns the body of an object of the manifests with these fields ignored. `live` is the whole live object that the
/// body is compared with, or sent over. The body has values of `live`, so it may be sent only over this
/// resourceVersion.
///
/// If the list item or the mapping that holds an ignored field does not exist yet, the field has the value of the
/// manifest, because it may be required. Only a field in a map with free keys, such as labels, is left out then. Keys
/// of list items and the ApplySet's own labels and annotations are never ignored.
pub fn body_with_live_values(
    object: &Object,
    ignored: &[Pointer],
    live: &Value,
    manager: &str,
    purpose: BodyPurpose,
) -> Object {
    let manifest = object.value();
    let mut body = manifest.clone();
    for pointer in order_pointers(ignored, &manifest) {
        let place = IgnoredPlace {
            entries: ManagedFieldsEntries::read(&live["metadata"], manager),
            is_atomic: false,
            purpose,
        };
        place.merge_or_leave_out(&mut body, live, pointer.segments());
    }
    keep_applyset_metadata(&mut body, &manifest);
    Object::from(&body)
}

/// Gives the labels and annotations of the ApplySet the values of the manifest, even if a rule ignores all labels.
fn keep_applyset_metadata(body: &mut Value, manifest: &Value) {
    for field in ["labels", "annotations"] {
        for (key, value) in manifest["metadata"][field]
            .as_object()
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
    /// The place is part of a value that is owned as a whole.
    is_atomic: bool,
    purpose: BodyPurpose,
}

impl IgnoredPlace<'_> {
    fn below(&self, key: &str) -> Self {
        let entries = self.entries.below(key);
        Self {
            is_atomic: self.is_atomic || entries.any_owns_whole_value(),
            entries,
            purpose: self.purpose,
        }
    }

    /// Gives the ignored field to which the segments lead from this place its live value, merged with the manifest, or
    /// leaves it out of the body. `body` is the value of the manifest at this place, `live` the live value.
    fn merge_or_leave_out(&self, body: &mut Value, live: &Value, segments: &[String]) {
        let Some((segment, rest)) = segments.split_first() else {
            return;
        };
        match (body, live) {
            (Value::Object(body), Value::Object(live)) => self.merge_in_mapping(body, live, segment, rest),
            (Value::Array(body), Value::Array(live)) => {
                let Some(index) = parse_index(segment) else { return };
                if self.is_atomic || !self.entries.have_list_items() {
                    self.merge_item_by_index(body, live, index, rest);
                } else {
                    self.merge_item_by_key(body, live, index, rest);
                }
            }
            _ => {}
        }
    }

    /// Returns whether another manager owns the value here as a whole, and the body is to be compared. That manager
    /// wrote an ignored part of the value, and so became the only owner of all of it.
    fn is_compared_and_owned_by_other(&self) -> bool {
        self.purpose == BodyPurpose::Compare
            && self.entries.any_owns_whole_value()
            && self.entries.ours().is_none()
    }

    /// Merges or leaves out a field of the mapping at this place, or what `rest` leads to below the field.
    fn merge_in_mapping(
        &self,
        body: &mut Map<String, Value>,
        live: &Map<String, Value>,
        name: &str,
        rest: &[String],
    ) {
        let below = self.below(&format!("f:{name}"));
        if rest.is_empty() {
            match below.live_value_for_body(body.get(name), live.get(name)) {
                Some(value) => drop(body.insert(name.to_owned(), value)),
                None => drop(body.remove(name)),
            }
            return;
        }
        match (body.get_mut(name), live.get(name)) {
            (Some(desired), Some(live)) => {
                let was_empty = is_empty_container(desired);
                below.merge_or_leave_out(desired, live, rest);
                let is_theirs = below.is_compared_and_owned_by_other() && desired == live;
                // An apply of `{}` or `[]` would make us an owner of the mapping or list.
                let became_empty = is_empty_container(desired) && !was_empty && !is_empty_container(live);
                if is_theirs || became_empty && !below.entries.we_own_place_itself() {
                    body.remove(name);
                }
            }
            (Some(desired), None) => {
                let mut reduced = desired.clone();
                remove_field_and_empty_containers(&mut reduced, rest);
                if is_empty_container(&reduced) {
                    body.remove(name);
                } else if has_free_keys(enclosing_map_name(name, rest)) {
                    *desired = reduced;
                }
            }
            // The manifest lacks the field, but our manager may own ignored parts of it, which stay.
            (None, Some(live)) => {
                let mut desired = match live {
                    Value::Array(_) => json!([]),
                    _ => json!({}),
                };
                below.merge_or_leave_out(&mut desired, live, rest);
                if !is_empty_container(&desired) {
                    body.insert(name.to_owned(), desired);
                }
            }
            (None, None) => {}
        }
    }

    /// Merges or leaves out an item of a list without keys, or a part of the item. The list is owned as a whole.
    fn merge_item_by_index(&self, body: &mut Vec<Value>, live: &[Value], index: usize, rest: &[String]) {
        let below = Self {
            entries: ManagedFieldsEntries::default(),
            is_atomic: true,
            purpose: self.purpose,
        };
        match (body.get_mut(index), live.get(index)) {
            (Some(desired), Some(live)) if rest.is_empty() => desired.clone_from(live),
            (Some(desired), Some(live)) => below.merge_or_leave_out(desired, live, rest),
            (Some(_), None) if rest.is_empty() => drop(body.remove(index)),
            (Some(_) | None, _) => {}
        }
    }

    /// Merges or leaves out an item that is found by its keys, or by its value in a set. The index counts in the list
    /// of the manifest; if that list is shorter, in the live list.
    fn merge_item_by_key(&self, body: &mut Vec<Value>, live: &[Value], index: usize, rest: &[String]) {
        let names = self.entries.item_key_names();
        if index >= body.len() {
            let Some(item) = live.get(index) else { return };
            if same_item_position(body, item, &names).is_some() {
                return;
            }
            let below = self.below(&self.entries.item_tree_key(item, &names));
            if rest.is_empty() && !below.entries.others_own_place_itself() {
                body.extend(below.part_we_own(item));
            }
            return;
        }
        let matching_items: Vec<&Value> = live
            .iter()
            .filter(|item| same_item_position(body, item, &names) == Some(index))
            .collect();
        let desired = &mut body[index];
        let [item] = *matching_items else {
            // An item without exactly one live item is sent as the manifest has it, but an ignored item of a set is
            // left out.
            if rest.is_empty() && !desired.is_object() {
                body.remove(index);
            }
            return;
        };
        let below = self.below(&self.entries.item_tree_key(item, &names));
        match rest {
            [] => match below.live_value_for_body(Some(desired), Some(item)) {
                Some(value) => *desired = value,
                None => drop(body.remove(index)),
            },
            [name] if names.contains(name) => {}
            rest => below.merge_or_leave_out(desired, item, rest),
        }
    }

    /// Returns the live value of an ignored field, or the parts of it that the body has; `None` if the body leaves the
    /// field out.
    fn live_value_for_body(&self, desired: Option<&Value>, live: Option<&Value>) -> Option<Value> {
        let live = live?;
        if self.is_atomic && !self.entries.any_owns_whole_value() {
            return Some(live.clone());
        }
        match self.purpose {
            BodyPurpose::Compare => self.part_we_own(live),
            BodyPurpose::Send if self.entries.others_own_whole_value() => None,
            BodyPurpose::Send if desired.is_none() && !self.entries.we_own_something() => None,
            BodyPurpose::Send if !self.entries.have_parts() => Some(live.clone()),
            BodyPurpose::Send => match live {
                Value::Object(live) => self.live_mapping_to_send(desired, live),
                Value::Array(live) => self.live_items_to_send(desired, live),
                other => Some(other.clone()),
            },
        }
    }

    /// Returns a live mapping with only the fields that the manifest has or that our manager owns. `None`, so that the
    /// body leaves it out, if no field is left; but an empty mapping is sent if the live one is empty or our manager owns
    /// the mapping itself, and no other manager does.
    fn live_mapping_to_send(&self, desired: Option<&Value>, live: &Map<String, Value>) -> Option<Value> {
        let fields = self.live_fields_to_send(desired, live);
        let is_empty_there = live.is_empty() || self.entries.we_own_place_itself();
        let stays = !fields.is_empty() || (is_empty_there && !self.entries.others_own_place_itself());
        stays.then_some(Value::Object(fields))
    }

    fn live_fields_to_send(&self, desired: Option<&Value>, live: &Map<String, Value>) -> Map<String, Value> {
        let desired_fields = desired.and_then(Value::as_object);
        let names: BTreeSet<&str> = desired_fields
            .into_iter()
            .flat_map(Map::keys)
            .map(String::as_str)
            .chain(self.entries.our_field_names())
            .collect();
        names
            .into_iter()
            .filter_map(|name| {
                let below = self.below(&format!("f:{name}"));
                let desired = desired_fields.and_then(|fields| fields.get(name));
                let value = below.live_value_for_body(desired, live.get(name))?;
                Some((name.to_owned(), value))
            })
            .collect()
    }

    /// Returns a live list with only the items that the manifest has or of which our manager owns something, and of
    /// these only what others do not own. `None`, so that the body leaves the list out, if it has items and none is
    /// left.
    fn live_items_to_send(&self, desired: Option<&Value>, live: &[Value]) -> Option<Value> {
        let names = self.entries.item_key_names();
        let desired: &[Value] = desired.and_then(Value::as_array).map_or(&[], Vec::as_slice);
        let items: Vec<Value> = live
            .iter()
            .filter_map(|item| {
                let below = self.below(&self.entries.item_tree_key(item, &names));
                let desired = same_item_position(desired, item, &names).map(|index| &desired[index]);
                if desired.is_none() && !below.entries.we_own_something() {
                    return None;
                }
                let Some(live_fields) = item.as_object().filter(|_| below.entries.have_parts()) else {
                    return (!below.entries.others_own_whole_value()).then(|| item.clone());
                };
                let mut fields = below.live_fields_to_send(desired, live_fields);
                let has_more_than_keys = fields.keys().any(|name| !names.contains(name));
                if !has_more_than_keys && below.entries.others_own_place_itself() {
                    return None;
                }
                for name in &names {
                    if let Some(key) = live_fields.get(name) {
                        fields.insert(name.clone(), key.clone());
                    }
                }
                Some(Value::Object(fields))
            })
            .collect();
        (!items.is_empty() || live.is_empty()).then_some(Value::Array(items))
    }

    /// Returns the part of a live value that our manager owns; `None` if it owns no part.
    fn part_we_own(&self, live: &Value) -> Option<Value> {
        self.entries.ours().map(|tree| part_owned_by_tree(tree, live))
    }
}

/// Returns the part of a value that a field set owns.
fn part_owned_by_tree(tree: &Map<String, Value>, live: &Value) -> Value {
    if tree.is_empty() {
        return live.clone();
    }
    match live {
        Value::Object(live) => {
            let fields = tree
                .iter()
                .filter_map(|(key, below)| {
                    let name = key.strip_prefix("f:")?;
                    let part = part_owned_by_tree(below.as_object()?, live.get(name)?);
                    Some((name.to_owned(), part))
                })
                .collect();
            Value::Object(fields)
        }
        Value::Array(live) => {
            let entries = ManagedFieldsEntries::from_tree(tree);
            let names = entries.item_key_names();
            live.iter()
                .filter_map(|item| {
                    let below = tree.get(&entries.item_tree_key(item, &names))?;
                    Some(part_owned_by_tree(below.as_object()?, item))
                })
                .collect()
        }
        other => other.clone(),
    }
}

/// Returns the name of the mapping that holds the field to which `rest` leads from the field `name`.
fn enclosing_map_name<'n>(name: &'n str, rest: &'n [String]) -> &'n str {
    rest.iter().rev().nth(1).map_or(name, String::as_str)
}

/// Returns whether people choose the keys of the map with this name, so that no key is required.
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

/// Returns the pointers in an order in which each still means the same item of `object` after the earlier ones were
/// followed. Items that the object lacks are added at the end of a list, so the first of them comes first. Then items
/// are removed: the last one first, and each after its own fields.
pub(super) fn order_pointers<'p>(pointers: &'p [Pointer], object: &Value) -> Vec<&'p Pointer> {
    let (mut to_present_fields, mut ordered_pointers): (Vec<_>, Vec<_>) =
        pointers.iter().partition(|pointer| pointer.is_field_of(object));
    to_present_fields.sort_by_key(|pointer| Reverse((pointer.segments().len(), last_index(pointer))));
    ordered_pointers.sort_by_key(|pointer| last_index(pointer));
    ordered_pointers.extend(to_present_fields);
    ordered_pointers
}

/// Returns the index at the end of a pointer to a list item; `None` for a pointer that ends with another segment.
fn last_index(pointer: &Pointer) -> Option<usize> {
    parse_index(pointer.segments().last()?)
}

/// Removes the field to which the segments lead, and the mappings and lists that become empty by that.
pub(super) fn remove_field_and_empty_containers(value: &mut Value, segments: &[String]) {
    let Some((segment, rest)) = segments.split_first() else {
        return;
    };
    match value {
        Value::Object(fields) if rest.is_empty() => drop(fields.remove(segment)),
        Value::Object(fields) => {
            if let Some(below) = fields.get_mut(segment) {
                remove_field_and_empty_containers(below, rest);
                if is_empty_container(below) {
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
                remove_field_and_empty_containers(&mut items[index], rest);
            }
        }
        _ => {}
    }
}

/// Returns whether the manifest lacks a field that the live object has at this place or below it, and that a manager
/// owns. The status does not count.
pub(super) fn manifest_lacks_owned_field(live: &Value, manifest: &Value, segments: &[String]) -> bool {
    if segments.first().is_some_and(|first| first == "status") {
        return false;
    }
    let place: Vec<String> = segments.iter().map(|segment| format!("f:{segment}")).collect();
    entries(&live["metadata"])
        .iter()
        .flat_map(|entry| leaf_paths(&entry["fieldsV1"]))
        .any(|leaf| {
            let shorter = leaf.len().min(place.len());
            // A leaf above the place owns the value around it.
            let path = if leaf.len() > shorter { &leaf } else { &place };
            leaf[..shorter] == place[..shorter]
                && value_at(live, path).is_some()
                && value_at(manifest, path).is_none()
        })
}
