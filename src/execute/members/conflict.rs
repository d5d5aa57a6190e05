//! Describes a field conflict: each field, its owner, and the live and the desired
//! value.
//!
//! Reads the live object once. Values of Secrets are left out.

use std::collections::BTreeSet;

use serde_json::{Deserializer, Value};

use crate::cluster::apiserver::{ApiError, ApiServer, Status, StatusCause};
use crate::execute::members::refused;
use crate::manifest::desired::DesiredObject;
use crate::model::identity::GroupKind;
use crate::model::message::Message;
use crate::model::text::counted;
use crate::read::WHOLE_OBJECTS;

/// The longest value that is shown whole, in characters.
const LONGEST: usize = 60;

/// Returns the error for people, with a detail for each field in conflict.
pub(crate) async fn explained(server: &ApiServer, object: &DesiredObject, error: &ApiError) -> Message {
    let Some(status) = error.status().filter(|status| status.is_field_conflict()) else {
        return refused::reason(error, object);
    };
    let path = object.resource.path_of(&object.key);
    // Without the live values, the message still names the fields.
    let live = match server.get(&path, WHOLE_OBJECTS).await {
        Ok(reply) => serde_json::from_slice(&reply.body).unwrap_or_default(),
        Err(_) => Value::Null,
    };
    conflict_message(status, &object.key.group_kind, &object.object.value(), &live)
}

fn conflict_message(status: &Status, kind: &GroupKind, manifest: &Value, live: &Value) -> Message {
    let is_secret = *kind == GroupKind::new("", "Secret");
    let line = |cause: &StatusCause| {
        let owner = owner(cause);
        let values = [live, manifest].map(|object| at(object, &cause.field).map(short));
        match values {
            [Some(there), Some(here)] if !is_secret => {
                format!(
                    "conflict with {owner}: {}: live {there}, manifest {here}",
                    cause.field
                )
            }
            _ => format!("conflict with {owner}: {}", cause.field),
        }
    };
    let conflicts = counted(status.field_conflicts().count(), "conflict");
    Message::new(format!(
        "Apply failed with {conflicts}: other field managers own these fields"
    ))
    .with_details(status.field_conflicts().map(line))
    .in_group(format!(
        "Apply failed with conflicts: conflict with {}",
        owners(status)
    ))
    .with_hint("remove these fields from the manifest, or take them over with --force-conflicts")
}

/// The other field managers, as the server names them.
fn owners(status: &Status) -> String {
    let owners: BTreeSet<&str> = status.field_conflicts().map(owner).collect();
    owners.into_iter().collect::<Vec<_>>().join(" and ")
}

fn owner(cause: &StatusCause) -> &str {
    cause
        .message
        .strip_prefix("conflict with ")
        .unwrap_or(&cause.message)
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// The value at a path as the server writes it (structured-merge-diff, `Path.String`):
/// `.spec.containers[name="web"].image`. Names may hold dots, so the object decides where
/// one ends.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    if path.is_empty() {
        return Some(value);
    }
    if let Some(rest) = path.strip_prefix('.') {
        let behind = |key: &str| {
            rest.strip_prefix(key)
                .filter(|behind| behind.is_empty() || behind.starts_with(['.', '[']))
        };
        let fields = value.as_object()?.iter();
        return fields
            .filter_map(|(key, field)| at(field, behind(key)?))
            .next_back();
    }
    let items = value.as_array()?;
    let rest = path.strip_prefix('[')?;
    if let Some(rest) = rest.strip_prefix('=') {
        let (wanted, behind) = json(rest)?;
        let item = items.iter().find(|item| **item == wanted)?;
        return at(item, behind.strip_prefix(']')?);
    }
    if let Some((index, behind)) = rest.split_once(']')
        && let Ok(index) = index.parse::<usize>()
    {
        return at(items.get(index)?, behind);
    }
    let (keys, behind) = keys(rest)?;
    let item = items
        .iter()
        .find(|item| keys.iter().all(|(key, wanted)| item.get(key) == Some(wanted)))?;
    at(item, behind)
}

/// Reads `name="web",port=80]`, and returns what is behind the bracket, too.
fn keys(mut rest: &str) -> Option<(Vec<(&str, Value)>, &str)> {
    let mut keys = Vec::new();
    loop {
        let (key, value) = rest.split_once('=')?;
        let (wanted, behind) = json(value)?;
        keys.push((key, wanted));
        match behind.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Some((keys, behind.strip_prefix(']')?)),
        }
    }
}

/// Reads one JSON value from the beginning of a text, and returns what is behind it, too.
fn json(text: &str) -> Option<(Value, &str)> {
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, &text[values.byte_offset()..]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::apiserver::StatusDetails;

    fn conflict(field: &str) -> Status {
        let cause = StatusCause {
            reason: "FieldManagerConflict".to_owned(),
            message: "conflict with \"helm\" using v1".to_owned(),
            field: field.to_owned(),
        };
        Status {
            details: StatusDetails {
                causes: vec![cause],
                ..StatusDetails::default()
            },
            ..Status::default()
        }
    }

    #[test]
    fn paths_lead_to_values() {
        let object = json!({
            "metadata": {"labels": {"a": "no", "a.b/c": "yes"}, "finalizers": ["x]", "y"]},
            "spec": {"ports": [{"port": 80, "protocol": "TCP", "name": "a,b=]"}], "list": [[1], [2]]},
        });
        let table = [
            (".metadata.labels.a.b/c", Some(json!("yes"))),
            (".metadata.labels.a", Some(json!("no"))),
            (".metadata.finalizers[=\"x]\"]", Some(json!("x]"))),
            (".spec.ports[port=80,protocol=\"TCP\"].name", Some(json!("a,b=]"))),
            (".spec.ports[name=\"a,b=]\"].port", Some(json!(80))),
            (".spec.list[1][0]", Some(json!(2))),
            (".spec.list[7]", None),
            (".spec.gone", None),
            (".spec.ports[port", None),
        ];
        for (path, value) in table {
            assert_eq!(at(&object, path), value.as_ref(), "{path}");
        }
    }

    #[test]
    fn both_values_are_reported_but_not_those_of_secrets() {
        let manifest = json!({"data": {"a": "mine"}});
        let live = json!({"data": {"a": "x".repeat(100)}});
        let status = conflict(".data.a");
        let text = conflict_message(&status, &GroupKind::new("", "ConfigMap"), &manifest, &live).to_string();
        assert!(
            text.contains("conflict with \"helm\" using v1: .data.a"),
            "{text}"
        );
        assert!(text.contains("…") && text.contains("manifest \"mine\""), "{text}");
        let text = conflict_message(&status, &GroupKind::new("", "Secret"), &manifest, &live).to_string();
        assert!(!text.contains("mine") && !text.contains("xxx"), "{text}");
    }
}
