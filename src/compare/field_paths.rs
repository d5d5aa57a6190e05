//! Paths of a field set (`FieldsV1`), each as its keys: `f:spec`, `f:ports`, `k:{"port":80}`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::model::pointer::push_field_name;

/// Returns the paths of the leaves of a field set.
pub(super) fn leaf_paths(field_set: &Value) -> Vec<Vec<String>> {
    fn collect_leaf_paths(node: &Value, path: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
        if !has_parts_owned_separately(node) {
            paths.push(path.clone());
            return;
        }
        for (key, below) in node.as_object().into_iter().flatten() {
            if key != "." {
                path.push(key.clone());
                collect_leaf_paths(below, path, paths);
                path.pop();
            }
        }
    }
    let mut paths = Vec::new();
    if has_parts_owned_separately(field_set) {
        collect_leaf_paths(field_set, &mut Vec::new(), &mut paths);
    }
    paths
}

/// Returns the members of a field set, each as its keys with slashes between them. `.` at the end stands for a map,
/// list or item itself.
pub(super) fn member_paths(field_set: &Value) -> BTreeSet<String> {
    fn collect(node: &Value, path: &str, paths: &mut BTreeSet<String>) {
        for (key, below) in node.as_object().into_iter().flatten() {
            let path = format!("{path}/{key}");
            if below.as_object().is_none_or(Map::is_empty) {
                paths.insert(path);
            } else {
                collect(below, &path, paths);
            }
        }
    }
    let mut paths = BTreeSet::new();
    collect(field_set, "", &mut paths);
    paths
}

/// Returns whether a field set has a path, or owns as a whole a value that the path leads into.
pub(super) fn contains_or_owns_whole<'k>(
    fields: &Map<String, Value>,
    path: impl IntoIterator<Item = &'k str>,
) -> bool {
    let mut node = fields;
    for key in path {
        match node.get(key) {
            None => return false,
            Some(Value::Object(below)) if !below.is_empty() => node = below,
            Some(_) => return true,
        }
    }
    true
}

/// Returns whether a node has others below it: parts of its value are owned one by one. `.` stands for the value
/// itself.
pub(super) fn has_parts_owned_separately(node: &Value) -> bool {
    has_other_fields(node, &["."])
}

/// Returns whether a map has a field whose name is not in `names`.
pub(super) fn has_other_fields(map: &Value, names: &[&str]) -> bool {
    map.as_object()
        .is_some_and(|fields| fields.keys().any(|name| !names.contains(&name.as_str())))
}

/// Returns whether a value is an empty map or list.
pub(super) fn is_empty_container(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Returns the value at a path of an object.
pub(super) fn value_at<'v>(object: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, key| match value {
        Value::Array(items) => items.get(ItemKey::parse(key)?.position_in(items)?),
        value => value.get(key.strip_prefix("f:")?),
    })
}

/// Returns the field or list item that a key of a field set selects.
pub(super) fn child_mut<'v>(value: &'v mut Value, key: &str) -> Option<&'v mut Value> {
    match value {
        Value::Object(fields) => fields.get_mut(key.strip_prefix("f:")?),
        Value::Array(items) => {
            let position = ItemKey::parse(key)?.position_in(items)?;
            items.get_mut(position)
        }
        _ => None,
    }
}

/// Removes the field or list item that a key of a field set selects.
pub(super) fn remove_child(value: &mut Value, key: &str) {
    match value {
        Value::Object(fields) => {
            key.strip_prefix("f:").and_then(|name| fields.remove(name));
        }
        Value::Array(items) => {
            let position = ItemKey::parse(key).and_then(|key| key.position_in(items));
            position.map(|position| items.remove(position));
        }
        _ => {}
    }
}

/// The criterion by which a key selects an item of a list.
pub(super) enum ItemKey {
    /// `k:`: the item has these fields.
    Fields(Map<String, Value>),
    /// `v:`: the item is this value.
    Value(Value),
    /// `i:`: the item has this position.
    Position(Value),
}

impl ItemKey {
    /// Reads a key; `None` if it selects no item of a list.
    pub(super) fn parse(key: &str) -> Option<Self> {
        let (kind, text) = key.split_at_checked(2)?;
        match (kind, serde_json::from_str(text).ok()?) {
            ("k:", Value::Object(fields)) => Some(Self::Fields(fields)),
            ("v:", value) => Some(Self::Value(value)),
            ("i:", position) => Some(Self::Position(position)),
            _ => None,
        }
    }

    /// Returns whether the key selects this item.
    pub(super) fn selects(&self, position: usize, item: &Value) -> bool {
        match self {
            Self::Fields(fields) => fields.iter().all(|(name, value)| item.get(name) == Some(value)),
            Self::Value(value) => value == item,
            Self::Position(key_position) => *key_position == position,
        }
    }

    /// Returns the position of the item that the key selects.
    pub(super) fn position_in(&self, items: &[Value]) -> Option<usize> {
        (0..items.len()).find(|position| self.selects(*position, &items[*position]))
    }
}

/// Writes a path as people read it: `spec.ports[port=80,protocol=TCP].name`, `metadata.labels[a.b/c]`.
pub(super) fn format_readable_path<'k>(path: impl IntoIterator<Item = &'k str>) -> String {
    let mut text = String::new();
    for key in path {
        let (kind, name) = key.split_at_checked(2).unwrap_or(("", key));
        if kind == "f:" {
            push_field_name(&mut text, name);
        } else {
            let item_key = format_item_keys(name).unwrap_or_else(|| name.to_owned());
            text.extend(["[", &item_key, "]"]);
        }
    }
    text
}

/// Writes `{"port":80}` as `port=80`.
fn format_item_keys(text: &str) -> Option<String> {
    let keys: Map<String, Value> = serde_json::from_str(text).ok()?;
    let pairs: Vec<String> = keys
        .iter()
        .map(|(name, value)| match value {
            Value::String(value) => format!("{name}={value}"),
            other => format!("{name}={other}"),
        })
        .collect();
    Some(pairs.join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_values_and_can_be_read() {
        let object = json!({
            "metadata": {"labels": {"a.b/c": "d"}, "finalizers": ["x"]},
            "spec": {"ports": [{"port": 80, "protocol": "UDP"}, {"port": 80, "protocol": "TCP", "name": "web"}]},
        });
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:a.b/c": {}}, "f:finalizers": {"v:\"x\"": {}}},
            "f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}, "i:0": {}}},
        });
        let leaves: Vec<(String, Option<Value>)> = leaf_paths(&fields)
            .iter()
            .map(|path| {
                (
                    format_readable_path(path.iter().map(String::as_str)),
                    value_at(&object, path).cloned(),
                )
            })
            .collect();
        let expected = [
            (r#"metadata.finalizers["x"]"#, json!("x")),
            ("metadata.labels[a.b/c]", json!("d")),
            ("spec.ports[0]", json!({"port": 80, "protocol": "UDP"})),
            ("spec.ports[port=80,protocol=TCP].name", json!("web")),
        ];
        assert_eq!(
            leaves,
            expected.map(|(path, value)| (path.to_owned(), Some(value)))
        );
        assert_eq!(leaf_paths(&json!({})), Vec::<Vec<String>>::new());
    }
}
