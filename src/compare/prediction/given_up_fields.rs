//! Removes what our manager has applied before and no manager owns any more (structured-merge-diff, `merge/update.go`,
//! `prune`).

use serde_json::Value;

use super::merge::{Fields, Path};
use super::owners::FieldOwners;
use crate::compare::changes::DeclaredOrKey;
use crate::compare::field_paths::{child_mut, is_empty_container, remove_child};
use crate::compare::typed_place::TypedPlace;

/// Removes the fields and items from the merged object, and returns their paths.
pub(super) fn remove<'p>(
    object: &mut Value,
    owners: &'p FieldOwners<'_>,
    place: TypedPlace<'p>,
) -> Vec<Path> {
    let mut removal = Removal {
        path: Vec::new(),
        removed: Vec::new(),
    };
    if let Some(last) = owners.last_applied {
        removal.remove_below(object, last, &owners.our_new_and_others_old_field_sets(), place);
    }
    removal.removed
}

struct Removal {
    path: Path,
    removed: Vec<Path>,
}

impl Removal {
    /// Removes from a map or list what its node in `last` has, and none of its nodes in `owned`.
    fn remove_below<'p>(
        &mut self,
        value: &mut Value,
        last: &'p Fields,
        owned: &[&Fields],
        place: TypedPlace<'p>,
    ) {
        for (key, node) in last.iter().filter(|(key, _)| *key != ".") {
            let Some(node) = node.as_object() else { continue };
            let below: Vec<&Fields> = owned
                .iter()
                .filter_map(|fields| fields.get(key)?.as_object())
                .collect();
            let name = key.strip_prefix("f:");
            let is_declared = name.is_some_and(|name| place.membership(name) != DeclaredOrKey::Key);
            // A declared field belongs to each manager that owns something below it; a free key and an item do not.
            let is_owned = |node: &Fields| is_declared || node.is_empty() || node.contains_key(".");
            // An object keeps its metadata, and an item its keys.
            let stays = key == "f:metadata" && self.path.is_empty() || self.is_item_key(name);
            self.path.push(key.clone());
            if !stays && is_owned(node) && !below.iter().any(|node| is_owned(node)) {
                if child_mut(value, key).is_some() {
                    remove_child(value, key);
                    self.removed.push(self.path.clone());
                }
            } else if let Some(child) = child_mut(value, key) {
                let place = name.map_or_else(|| place.item(), |name| place.below(name));
                let was_empty = is_empty_container(child);
                self.remove_below(child, node, &below, place);
                // The server makes a value that loses all its parts null, and leaves nulls out of built-in kinds.
                if !was_empty && is_empty_container(child) {
                    *child = Value::Null;
                    if place.is_in_built_in_kind() {
                        remove_child(value, key);
                    }
                }
            }
            self.path.pop();
        }
    }

    /// Returns whether the path leads to an item that this field distinguishes from others.
    fn is_item_key(&self, name: Option<&str>) -> bool {
        let (Some(item), Some(name)) = (self.path.last(), name) else {
            return false;
        };
        item.strip_prefix("k:")
            .and_then(|keys| serde_json::from_str::<Fields>(keys).ok())
            .is_some_and(|keys| keys.contains_key(name))
    }
}
