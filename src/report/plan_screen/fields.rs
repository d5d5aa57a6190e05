//! The fields that change in an object, as a person reads them: `containers[web].image`. Items of lists are compared by
//! their names, not by their places.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::model::applyset::PART_OF_LABEL;
use crate::model::pointer::push_field_name;

/// One field that changes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FieldChange {
    pub(super) path: String,
    pub(super) before: Option<Value>,
    pub(super) after: Option<Value>,
}

impl FieldChange {
    fn new(path: &str, before: Option<&Value>, after: Option<&Value>) -> Self {
        Self {
            path: path.to_owned(),
            before: before.cloned(),
            after: after.cloned(),
        }
    }
}

/// Fields that may name the items of a list. The first one that names every item before and after is used.
const NAMING_FIELDS: [&str; 8] = [
    "name",
    "mountPath",
    "containerPort",
    "port",
    "key",
    "type",
    "ip",
    "uid",
];

/// Fields of metadata that are not shown.
const HIDDEN_METADATA: [&str; 4] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Returns the fields that differ, without the set's own label and [`HIDDEN_METADATA`].
pub(super) fn changes(live: &Value, predicted: &Value) -> Vec<FieldChange> {
    let mut found = Vec::new();
    let [live, predicted] = [live, predicted].map(without_hidden_metadata);
    add_changed_fields("", Some(&live), Some(&predicted), &mut found);
    for change in &mut found {
        change.path = without_spec_prefix(&change.path);
    }
    found
}

fn without_hidden_metadata(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in HIDDEN_METADATA {
            metadata.remove(field);
        }
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            labels.remove(PART_OF_LABEL);
            if labels.is_empty() {
                metadata.remove("labels");
            }
        }
    }
    object
}

/// Returns the path without the prefix that most fields of an object have in common.
fn without_spec_prefix(path: &str) -> String {
    let shortened = ["spec.template.spec.", "spec."]
        .into_iter()
        .find_map(|prefix| path.strip_prefix(prefix));
    shortened.unwrap_or(path).to_owned()
}

/// Adds the fields below `path` that differ to `found`.
fn add_changed_fields(
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    found: &mut Vec<FieldChange>,
) {
    if before == after {
        return;
    }
    match (before, after) {
        (Some(Value::Object(_)), Some(Value::Object(_)) | None) | (None, Some(Value::Object(_)))
            if is_non_empty_object(before) || is_non_empty_object(after) =>
        {
            let [before, after] = [before, after].map(|value| value.and_then(Value::as_object));
            let added = after
                .into_iter()
                .flatten()
                .filter(|(key, _)| before.is_none_or(|before| !before.contains_key(*key)));
            let keys = before.into_iter().flatten().chain(added).map(|(key, _)| key);
            for key in keys {
                let [before, after] = [before, after].map(|object| object?.get(key));
                add_changed_fields(&join(path, key), before, after, found);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            add_changed_items(path, before, after, found);
        }
        (Some(Value::Array(before)), None) if is_named(before) => add_changed_items(path, before, &[], found),
        (None, Some(Value::Array(after))) if is_named(after) => add_changed_items(path, &[], after, found),
        _ => found.push(FieldChange::new(path, before, after)),
    }
}

fn is_non_empty_object(value: Option<&Value>) -> bool {
    value
        .and_then(Value::as_object)
        .is_some_and(|fields| !fields.is_empty())
}

fn join(path: &str, key: &str) -> String {
    let mut joined = path.to_owned();
    push_field_name(&mut joined, key);
    joined
}

/// Compares two lists: by the names of their items, or by their places if both have the same length. Otherwise, adds
/// the items between the common beginning and the common end as removed and added.
fn add_changed_items(path: &str, before: &[Value], after: &[Value], found: &mut Vec<FieldChange>) {
    if let Some(field) = naming_field(before, after) {
        let name_of = |item: &Value| format_value(&item[field]);
        let names: BTreeSet<String> = before.iter().map(name_of).collect();
        let added = after.iter().filter(|item| !names.contains(&name_of(item)));
        for name in before.iter().chain(added).map(name_of) {
            let [before, after] =
                [before, after].map(|items| items.iter().find(|item| name_of(item) == name));
            add_changed_fields(&format!("{path}[{name}]"), before, after, found);
        }
        return;
    }
    if before.len() == after.len() {
        for (index, (before, after)) in before.iter().zip(after).enumerate() {
            add_changed_fields(&format!("{path}[{index}]"), Some(before), Some(after), found);
        }
        return;
    }
    let head = before
        .iter()
        .zip(after)
        .take_while(|(one, other)| one == other)
        .count();
    let (before, after) = (&before[head..], &after[head..]);
    let pairs = before.iter().rev().zip(after.iter().rev());
    let tail = pairs.take_while(|(one, other)| one == other).count();
    let removed = before[..before.len() - tail].iter();
    let added = after[..after.len() - tail].iter();
    found.extend(removed.map(|item| FieldChange::new(path, Some(item), None)));
    found.extend(added.map(|item| FieldChange::new(path, None, Some(item))));
}

fn is_named(items: &[Value]) -> bool {
    naming_field(items, &[]).is_some()
}

/// Returns the field whose values name each item of both lists once.
fn naming_field(before: &[Value], after: &[Value]) -> Option<&'static str> {
    if before.is_empty() && after.is_empty() {
        return None;
    }
    NAMING_FIELDS
        .into_iter()
        .find(|field| names_each_item_once(field, before) && names_each_item_once(field, after))
}

fn names_each_item_once(field: &str, items: &[Value]) -> bool {
    let mut seen = BTreeSet::new();
    items.iter().all(|item| {
        let name = &item[field];
        (name.is_string() || name.is_number()) && seen.insert(format_value(name))
    })
}

/// Formats a value: strings without quotation marks if they cannot be mistaken for another type.
pub(super) fn format_value(value: &Value) -> String {
    let Value::String(text) = value else {
        return value.to_string();
    };
    let is_plain = !text.is_empty() && text.trim() == text && serde_json::from_str::<Value>(text).is_err();
    if is_plain { text.clone() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(before: &Value, after: &Value) -> Vec<String> {
        let text = |value: &Option<Value>| value.as_ref().map_or("none".to_owned(), format_value);
        changes(before, after)
            .iter()
            .map(|change| {
                format!(
                    "{} {} -> {}",
                    change.path,
                    text(&change.before),
                    text(&change.after)
                )
            })
            .collect()
    }

    #[test]
    fn items_of_lists_go_by_their_names() {
        let deployment = |replicas: u32, containers: Value| json!({"spec": {"replicas": replicas, "template": {"spec": {"containers": containers}}}});
        let before = deployment(
            2,
            json!([{"name": "log", "image": "l:1"}, {"name": "web", "image": "w:1", "args": ["a", "b"]}]),
        );
        let after = deployment(
            3,
            json!([{"name": "web", "image": "w:2", "args": ["a", "x", "b"]}, {"name": "log", "image": "l:1"}]),
        );
        assert_eq!(
            lines(&before, &after),
            [
                "replicas 2 -> 3",
                "containers[web].args none -> x",
                "containers[web].image w:1 -> w:2",
            ]
        );
    }

    #[test]
    fn what_is_added_or_removed_is_shown_field_by_field() {
        let before = json!({"data": {"a": "1"}, "spec": {"ports": [{"port": 80, "name": "http"}]}});
        let after = json!({
            "data": {"a": "1", "b.c": "yes"},
            "metadata": {"labels": {PART_OF_LABEL: "x"}, "uid": "u"},
            "spec": {"ports": [{"port": 80, "name": "http"}, {"port": 443, "name": "tls"}], "limits": {"cpu": "1", "memory": "2Gi"}},
        });
        assert_eq!(
            lines(&before, &after),
            [
                "data[b.c] none -> yes",
                "ports[tls].name none -> tls",
                "ports[tls].port none -> 443",
                "limits.cpu none -> \"1\"",
                "limits.memory none -> 2Gi",
                "metadata none -> {}",
            ]
        );
    }
}
