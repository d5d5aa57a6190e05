//! Describes the field conflicts of an apply: the line of each field, its owner, the live and the desired value, and
//! the rule for `--ignore` that leaves the fields to their owners.
//!
//! Reads the live object once. Values of Secrets are left out.

use std::sync::Arc;

use serde_json::{Deserializer, Value, json};

use crate::cluster::apiserver::{ApiError, ApiServer, Status, StatusCause};
use crate::compare::ignore;
use crate::execute::members::message_of_rejected_manifest;
use crate::manifest::desired::DesiredObject;
use crate::manifest::{Position, line_of_field};
use crate::model::message::{FieldConflict, Message};
use crate::model::pointer::Pointer;
use crate::model::text::counted;
use crate::read;

/// The longest value that is shown whole, in characters.
const LONGEST_VALUE: usize = 60;

const CONFLICT_HINT: &str = "remove these fields from the manifest, take them over with --force-conflicts";

/// Explains why an apply failed, with a detail for each field in conflict.
pub async fn failed_apply_message(server: &ApiServer, object: &DesiredObject, error: &ApiError) -> Message {
    let Some(status) = error.status().filter(|status| status.is_field_conflict()) else {
        return message_of_rejected_manifest::rejection_message(error, object);
    };
    // If the object cannot be read, the message names the fields without their live values.
    let live = read::read_object(server, &object.resource, &object.key).await;
    let live = live.ok().flatten().unwrap_or_default();
    conflict_message(status, object, &object.object.value(), &live)
}

/// Returns the error of an object with field conflicts. Output documents have the conflicts as details of the object;
/// for people, the report shows the conflicts of all objects together.
pub fn conflict_message(status: &Status, object: &DesiredObject, manifest: &Value, live: &Value) -> Message {
    let conflicts: Vec<FieldConflict> = status
        .field_conflicts()
        .map(|cause| to_field_conflict(cause, object, manifest, live))
        .collect();
    let hint = match build_ignore_rule(object, &conflicts) {
        Some(rule) => {
            format!("{CONFLICT_HINT}, or leave them to their owners with --ignore FILE and this rule: {rule}")
        }
        None => "remove these fields from the manifest, or take them over with --force-conflicts".to_owned(),
    };
    let count = counted(conflicts.len(), "conflict");
    Message::new(format!(
        "Apply failed with {count}: other field managers own these fields"
    ))
    .with_details(conflicts.iter().map(describe))
    .with_hint(hint)
    .with_conflicts(conflicts)
}

/// Makes a conflict of one cause in the server's answer, whose message is `conflict with "OWNER" using VERSION`.
fn to_field_conflict(
    cause: &StatusCause,
    object: &DesiredObject,
    manifest: &Value,
    live: &Value,
) -> FieldConflict {
    let owner = cause.owner_as_written();
    let in_manifest = find_at_path(manifest, &cause.field);
    let both = find_at_path(live, &cause.field).zip(in_manifest.as_ref());
    let values = both.filter(|_| !object.is_secret());
    let position = Position {
        line: line_of_field(&object.position, &cause.field).unwrap_or(object.position.line),
        source: Arc::clone(&object.position.source),
    };
    FieldConflict {
        object: object.key.clone(),
        place: position.to_string(),
        field: cause.field.clone(),
        owner: owner.to_owned(),
        since: find_time_of_last_write(live, owner),
        values: values.map(|((_, live), (_, manifest))| [shorten(live), shorten(manifest)]),
        pointer: in_manifest
            .map(|(segments, _)| Pointer::from_segments(segments))
            .filter(ignore::may_be_ignored),
    }
}

/// Describes a conflict on one line.
fn describe(conflict: &FieldConflict) -> String {
    let FieldConflict {
        place,
        field,
        owner,
        values,
        ..
    } = conflict;
    let compared = values.as_ref().map_or_else(String::new, |[live, manifest]| {
        format!(": live {live}, manifest {manifest}")
    });
    format!("{place}: conflict with {owner}: {field}{compared}")
}

/// Writes the rule for `--ignore` that leaves the fields to their owners, on one line; `None` if no field can be
/// ignored.
fn build_ignore_rule(object: &DesiredObject, conflicts: &[FieldConflict]) -> Option<String> {
    let pointers = conflicts.iter().filter_map(|conflict| conflict.pointer.as_ref());
    let paths: Vec<String> = pointers.map(ToString::to_string).collect();
    let mut target = json!({"kind": object.key.group_kind.kind, "name": regex::escape(&object.key.name)});
    let group = &object.key.group_kind.group;
    if !group.is_empty() {
        target["group"] = json!(regex::escape(group));
    }
    if let Some(namespace) = &object.key.namespace {
        target["namespace"] = json!(namespace);
    }
    let rule = json!({"paths": paths, "target": target});
    (!paths.is_empty()).then(|| format!("[{rule}]"))
}

/// Reads the time of the last write of a field manager, whose name `quoted_manager` has in quotes. `None` if the
/// manager has several entries, because the time of each is then only that of a part of its fields.
fn find_time_of_last_write(live: &Value, quoted_manager: &str) -> Option<String> {
    let (manager, _) = parse_leading_json_value(quoted_manager)?;
    let entries = live["metadata"]["managedFields"].as_array()?;
    let mut of_manager = entries.iter().filter(|entry| entry["manager"] == manager);
    let time = of_manager.next()?["time"].as_str()?.to_owned();
    of_manager.next().is_none().then_some(time)
}

fn shorten(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_VALUE) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Finds the value at a path as the server writes it (structured-merge-diff, `Path.String`), such as
/// `.spec.containers[name="web"].image`. Returns the names and indices that lead to the value, and the value. Names may
/// contain dots, so the object decides where a name ends.
fn find_at_path<'v>(value: &'v Value, path: &str) -> Option<(Vec<String>, &'v Value)> {
    if path.is_empty() {
        return Some((Vec::new(), value));
    }
    if let Some(rest) = path.strip_prefix('.') {
        let fields = value.as_object()?.iter();
        return fields
            .filter_map(|(key, field)| {
                let path = rest
                    .strip_prefix(key.as_str())
                    .filter(|path| path.is_empty() || path.starts_with(['.', '[']))?;
                Some(prepend_segment(key.clone(), find_at_path(field, path)?))
            })
            .next_back();
    }
    let items = value.as_array()?;
    let rest = path.strip_prefix('[')?;
    // A set of scalars: `[="value"]`.
    if let Some(rest) = rest.strip_prefix('=') {
        let (value, path) = parse_leading_json_value(rest)?;
        let index = items.iter().position(|item| *item == value)?;
        return find_in_item(items, index, path.strip_prefix(']')?);
    }
    // A list without keys: `[0]`.
    if let Some((index, path)) = rest.split_once(']')
        && let Ok(index) = index.parse::<usize>()
    {
        return find_in_item(items, index, path);
    }
    // A list with keys: `[port=80,protocol="TCP"]`. An item without one of the keys matches, too: the manifest may
    // leave the key to its default.
    let (keys, path) = parse_keys(rest)?;
    let index = items.iter().position(|item| {
        keys.iter()
            .all(|(key, value)| item.get(key).is_none_or(|found| found == value))
    })?;
    find_in_item(items, index, path)
}

fn find_in_item<'v>(items: &'v [Value], index: usize, path: &str) -> Option<(Vec<String>, &'v Value)> {
    let found = find_at_path(items.get(index)?, path)?;
    Some(prepend_segment(index.to_string(), found))
}

/// Puts a segment before the others of a path.
fn prepend_segment(segment: String, (mut rest, value): (Vec<String>, &Value)) -> (Vec<String>, &Value) {
    rest.insert(0, segment);
    (rest, value)
}

/// Parses keys with values, such as `name="web",port=80]`. Returns them, and the text after the bracket.
fn parse_keys(mut rest: &str) -> Option<(Vec<(&str, Value)>, &str)> {
    let mut keys = Vec::new();
    loop {
        let (key, after_key) = rest.split_once('=')?;
        let (value, after_value) = parse_leading_json_value(after_key)?;
        keys.push((key, value));
        match after_value.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Some((keys, after_value.strip_prefix(']')?)),
        }
    }
}

/// Parses one JSON value at the beginning of a text. Returns the value, and the text after it.
fn parse_leading_json_value(text: &str) -> Option<(Value, &str)> {
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, &text[values.byte_offset()..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fixtures::desired;

    fn status_with_conflict(field: &str) -> Status {
        let cause = StatusCause {
            reason: "FieldManagerConflict".to_owned(),
            message: "conflict with \"helm\" using v1".to_owned(),
            field: field.to_owned(),
        };
        let mut status = Status::default();
        status.details.causes.push(cause);
        status
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
            let found = find_at_path(&object, path);
            let pointer = found
                .as_ref()
                .map(|(segments, _)| Pointer::from_segments(segments.clone()).to_string());
            assert_eq!(found.map(|(_, value)| value), value.as_ref(), "{path}");
            assert_eq!(
                pointer.and_then(|pointer| object.pointer(&pointer)),
                value.as_ref(),
                "{path}"
            );
        }
    }

    #[test]
    fn both_values_are_reported_but_not_those_of_secrets() {
        let manifest = json!({"data": {"a": "mine"}});
        let entry = json!({"manager": "helm", "time": "2026-01-01T00:00:00Z"});
        let live = json!({"data": {"a": "x".repeat(100)}, "metadata": {"managedFields": [entry]}});
        let status = status_with_conflict(".data.a");
        let message =
            |kind: &str| conflict_message(&status, &desired(kind, Some("shop"), "one"), &manifest, &live);
        let map = message("ConfigMap");
        let text = map.to_string();
        assert!(
            text.contains("manifests.yaml:1: conflict with \"helm\": .data.a"),
            "{text}"
        );
        assert!(text.contains("…") && text.contains("manifest \"mine\""), "{text}");
        let rule = r#"[{"paths":["/data/a"],"target":{"kind":"ConfigMap","name":"one","namespace":"shop"}}]"#;
        assert!(text.contains(rule), "{text}");
        assert!(ignore::IgnoreRules::read(rule).is_ok());
        assert_eq!(map.conflicts[0].since.as_deref(), Some("2026-01-01T00:00:00Z"));
        let secret = message("Secret");
        assert!(secret.conflicts[0].values.is_none());
        let text = secret.to_string();
        assert!(!text.contains("mine") && !text.contains("xxx"), "{text}");
    }
}
