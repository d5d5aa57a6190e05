//! Shortens the server's messages about an invalid object, adds the lines of the fields, and hints for
//! immutable fields.
//!
//! `message_of_rejected_manifest` handles manifests that do not match the API's schema.

use crate::cluster::apiserver::{Status, StatusCause};
use crate::manifest::desired::DesiredObject;
use crate::manifest::line_of_field;
use crate::model::message::Message;
use crate::model::recreatable_kind::{Loss, RecreatableKind};
use crate::plan::loses_data;

/// The longest text about one field that is shown whole, in characters.
const LONGEST: usize = 200;

/// Phrases of the API server about fields that cannot change after creation (`validation` of the
/// built-in kinds, and of CEL rules as custom resources have them).
const UNCHANGEABLE: [&str; 5] = [
    "immutable",
    "may not change",
    "cannot change",
    "cannot be changed",
    "updates to ",
];

/// Kinds whose deletion also deletes other objects or data.
const PRECIOUS: [&str; 4] = [
    "CustomResourceDefinition",
    "Namespace",
    "PersistentVolume",
    "PersistentVolumeClaim",
];

/// Returns what the server finds invalid; `None` if its own message is as good.
pub(crate) fn invalid_message(status: &Status, object: &DesiredObject) -> Option<Message> {
    let causes = &status.details.causes;
    let is_unchangeable = causes.iter().any(|cause| is_unchangeable(&cause.message));
    let is_long = causes.iter().any(|cause| cause.message.chars().count() > LONGEST);
    if status.reason != "Invalid" || !(is_unchangeable || is_long) {
        return None;
    }
    let faults = causes.iter().map(|cause| fault(cause, object));
    let message = match causes.as_slice() {
        [cause] => fault(cause, object),
        _ => Message::new("invalid fields").with_details(faults.flat_map(|fault| {
            let differing = fault.details.into_iter().map(|line| format!("  {line}"));
            std::iter::once(fault.text).chain(differing)
        })),
    };
    Some(if is_unchangeable {
        with_way_out(message, object)
    } else {
        message
    })
}

fn is_unchangeable(message: &str) -> bool {
    UNCHANGEABLE.iter().any(|words| message.contains(words))
}

fn fault(cause: &StatusCause, object: &DesiredObject) -> Message {
    let line = line_of_field(&object.position, &cause.field);
    let line = line.map_or_else(String::new, |line| format!(" (line {line})"));
    in_short(&cause.message).behind(format_args!("{}{line}: ", cause.field))
}

/// Removes the value as Go prints it, and of a comparison keeps only the differences.
fn in_short(message: &str) -> Message {
    let (first, rest) = message.split_once('\n').unwrap_or((message, ""));
    let first = match first
        .strip_prefix("Invalid value: ")
        .and_then(|invalid_message| invalid_message.rsplit_once(": "))
    {
        Some((_, reason)) if first.chars().count() > LONGEST => reason,
        _ => first,
    };
    let first = match first.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &first[..end]),
        None => first.to_owned(),
    };
    let differing = rest
        .lines()
        .map(str::trim_end)
        .filter(|line| line.starts_with(['-', '+']))
        .map(|line| line.replace('\t', "  "));
    Message::new(first).with_details(differing)
}

/// Adds the ways out for a field that cannot change.
fn with_way_out(message: Message, object: &DesiredObject) -> Message {
    match recreatable_kind(object) {
        Some(kind) => message.with_recreation(kind),
        None => message.with_hint("keep the old value, or give the object another name"),
    }
}

/// Returns the kind of the object, if a hint may name the flag that recreates it.
pub(crate) fn recreatable_kind(object: &DesiredObject) -> Option<RecreatableKind> {
    let kind = &object.key.group_kind;
    let loss = if loses_data(kind) { Loss::Data } else { Loss::None };
    (!PRECIOUS.contains(&kind.kind.as_str())).then(|| RecreatableKind {
        kind: kind.clone(),
        loss,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_prints_is_left_out() {
        let go = "core.PodTemplateSpec{ObjectMeta:v1.ObjectMeta{Name:\"\", ".repeat(40);
        let long = "x".repeat(300);
        for (message, expected) in [
            (
                format!("Invalid value: {go}: field is immutable"),
                "field is immutable".to_owned(),
            ),
            (
                "Invalid value: 0: must be greater".to_owned(),
                "Invalid value: 0: must be greater".to_owned(),
            ),
            (
                "Forbidden: spec is immutable\n  core.Spec{\n- \ta: 1,\n+ \ta: 2,\n  }\n".to_owned(),
                "Forbidden: spec is immutable\n  -   a: 1,\n  +   a: 2,".to_owned(),
            ),
            (
                format!("Forbidden: {long}"),
                format!("Forbidden: {}…", "x".repeat(189)),
            ),
        ] {
            assert_eq!(in_short(&message).to_string(), expected);
        }
    }
}
