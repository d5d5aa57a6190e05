//! Shortens the server's messages about an invalid object, adds the lines of the fields, and hints for
//! immutable fields.
//!
//! `message_of_rejected_manifest` handles manifests that do not match the API's schema.

use crate::cluster::apiserver::{Status, StatusCause};
use crate::manifest::desired::DesiredObject;
use crate::manifest::line_of_field;
use crate::model::message::{Message, RecreatableKind};
use crate::plan::loses_data;

/// The longest value that a message repeats, in characters.
const LONGEST_VALUE: usize = 200;

/// Phrases of the API server about fields that cannot change after creation: those of `pkg/apis/*/validation` in
/// Kubernetes 1.36, of declarative validation (apimachinery, `pkg/api/validate/update.go`), and of CEL rules as custom
/// resources have them.
const UNCHANGEABLE: [&str; 15] = [
    "immutable",
    "may not change",
    "may not be changed",
    "may not be updated",
    "may not modify",
    "cannot change",
    "cannot be changed",
    "cannot be modified once set",
    "cannot be set once created",
    "cannot be cleared once set",
    "can not be unset",
    "updates to ",
    "updates may not ",
    "must not update ",
    "less than previous value",
];

/// Kinds whose deletion also deletes other objects or data.
const PRECIOUS: [&str; 4] = [
    "CustomResourceDefinition",
    "Namespace",
    "PersistentVolume",
    "PersistentVolumeClaim",
];

/// Returns what the server finds invalid; `None` if its own message is as good, as that of an admission policy.
pub fn invalid_message(status: &Status, object: &DesiredObject) -> Option<Message> {
    let causes: Vec<&StatusCause> = status.causes().collect();
    let is_unchangeable = causes.iter().any(|cause| is_unchangeable(&cause.message));
    let names_field = causes.iter().any(|cause| !cause.field.is_empty());
    let is_long = causes
        .iter()
        .any(|cause| cause.message.chars().count() > LONGEST_VALUE);
    if status.reason != "Invalid" || !(is_unchangeable || names_field || is_long) {
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
    // An admission policy names no field.
    if cause.field.is_empty() {
        return in_short(&cause.message);
    }
    let line = nearest_line(object, &cause.field).map_or_else(String::new, |line| format!(" (line {line})"));
    in_short(&cause.message).with_prefix(format_args!("{}{line}: ", cause.field))
}

/// Returns the line of the field, or of the nearest one around it that the manifest has.
fn nearest_line(object: &DesiredObject, field: &str) -> Option<usize> {
    let mut path = field;
    loop {
        let line = line_of_field(&object.position, path);
        if line.is_some() {
            return line;
        }
        path = &path[..path.rfind(['.', '['])?];
    }
}

/// Removes a long value as Go prints it, and of a comparison keeps only the differences. What is said of the value is
/// never cut.
fn in_short(message: &str) -> Message {
    let (first, rest) = message.split_once('\n').unwrap_or((message, ""));
    let invalid = first.strip_prefix("Invalid value: ").and_then(split_after_value);
    let first = match invalid {
        Some((value, reason)) if value.chars().count() > LONGEST_VALUE => reason,
        _ => first,
    };
    let (differing, others): (Vec<&str>, Vec<&str>) = rest
        .lines()
        .map(str::trim_end)
        .partition(|line| line.starts_with(['-', '+']));
    if differing.is_empty() {
        // A line of its own could pass for one of this program.
        let trimmed = others.iter().map(|line| line.trim());
        let filled = trimmed.filter(|line| !line.is_empty());
        let text: Vec<&str> = std::iter::once(first).chain(filled).collect();
        return Message::new(text.join(" "));
    }
    Message::new(first).with_details(differing.iter().map(|line| line.replace('\t', "  ")))
}

/// Splits a value as Go or JSON writes it from the reason after it: colons in quotes and brackets are the value's.
fn split_after_value(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let mut is_quoted = false;
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '\\' if is_quoted => drop(characters.next()),
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => {
                if let Some(reason) = text[index..].strip_prefix(": ") {
                    return Some((&text[..index], reason));
                }
            }
            _ => {}
        }
    }
    // Brackets that do not match.
    text.rsplit_once(": ")
}

/// Adds the ways out for a field that cannot change.
fn with_way_out(message: Message, object: &DesiredObject) -> Message {
    match recreatable_kind(object) {
        Some(kind) => message.with_recreation(kind),
        None => message.with_hint("keep the old value, or give the object another name"),
    }
}

/// Returns the kind of the object, if a hint may name the flag that recreates it.
pub fn recreatable_kind(object: &DesiredObject) -> Option<RecreatableKind> {
    let kind = &object.key.group_kind;
    (!PRECIOUS.contains(&kind.kind.as_str())).then(|| RecreatableKind {
        kind: kind.clone(),
        loses_data: loses_data(kind),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_cannot_change_are_recognized_by_the_words_of_kubernetes() {
        for (message, expected) in [
            // PriorityClass
            ("Forbidden: may not be changed in an update.", true),
            // RuntimeClass, IngressClass, StorageClass, EndpointSlice, Deployment, Job
            ("Invalid value: \"a\": field is immutable", true),
            ("Forbidden: field is immutable when `immutable` is set", true),
            // Service
            ("Invalid value: []: may not change once set", true),
            ("Invalid value: []: primary clusterIP can not be unset", true),
            // RoleBinding
            ("Invalid value: {}: cannot change roleRef", true),
            // VolumeAttributesClass, StatefulSet
            ("Forbidden: updates to driverName are forbidden.", true),
            (
                "Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden",
                true,
            ),
            // Pod, Node, CertificateSigningRequest
            (
                "Forbidden: pod updates may not change fields other than `spec.containers[*].image`",
                true,
            ),
            ("Forbidden: pod updates may not add or remove containers", true),
            (
                "Invalid value: null: must not update from a positive integer to nil value",
                true,
            ),
            (
                "Forbidden: node updates may not change podCIDR except from \"\" to valid",
                true,
            ),
            ("Forbidden: may not be updated", true),
            (
                "Forbidden: updates may not modify existing certificate content",
                true,
            ),
            // PersistentVolume, PersistentVolumeClaim
            (
                "Forbidden: spec.persistentvolumesource is immutable after creation",
                true,
            ),
            ("Forbidden: field can not be less than previous value", true),
            // declarative validation
            ("Invalid value: null: field cannot be cleared once set", true),
            ("Invalid value: \"a\": field cannot be set once created", true),
            ("Invalid value: \"a\": field cannot be modified once set", true),
            ("Invalid value: 0: must be greater than 0", false),
            ("Forbidden: may not be set for ExternalName services", false),
            ("Required value: may not be empty", false),
            (
                "Invalid value: \"a\": may only be used when `type` is 'LoadBalancer'",
                false,
            ),
        ] {
            assert_eq!(is_unchangeable(message), expected, "{message}");
        }
    }

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
            (format!("Forbidden: {long}"), format!("Forbidden: {long}")),
            (
                format!("Invalid value: \"object\": ask first: {long}"),
                format!("Invalid value: \"object\": ask first: {long}"),
            ),
            (
                format!("Invalid value: \"a: \\\" {long}\": ask: them"),
                "ask: them".to_owned(),
            ),
            (
                format!("Invalid value: {{\"a\": [\"{long}\"]}}: ask: them"),
                "ask: them".to_owned(),
            ),
            ("denied:\nask them".to_owned(), "denied: ask them".to_owned()),
        ] {
            assert_eq!(in_short(&message).to_string(), expected);
        }
    }
}
