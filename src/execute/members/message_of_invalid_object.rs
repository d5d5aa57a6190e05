//! Shortens the server's messages about an invalid object, and adds the lines of the fields and hints for immutable
//! fields.
//!
//! `message_of_rejected_manifest` handles manifests that do not match the schema of their kind.

use crate::cluster::apiserver::{Status, StatusCause};
use crate::manifest::desired::DesiredObject;
use crate::manifest::line_of_field;
use crate::model::identity::GroupKind;
use crate::model::message::{Message, recreate_flag};
use crate::plan::loses_data;

/// The longest value that a message repeats, in characters.
const LONGEST_VALUE: usize = 200;

/// Phrases in the server's messages about fields that cannot change after creation. They are from
/// `pkg/apis/*/validation` in Kubernetes 1.36, from declarative validation (apimachinery,
/// `pkg/api/validate/update.go`), and from CEL rules that CRDs commonly have.
const IMMUTABLE_FIELD: [&str; 15] = [
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

/// Returns the message about an object that the server finds invalid; `None` if the server's own message is as good.
/// That is so for a short message without a field, such as that of an admission policy.
pub fn explain_unless_already_clear(status: &Status, object: &DesiredObject) -> Option<Message> {
    let causes: Vec<&StatusCause> = status.causes_with_field().collect();
    let has_immutable_field = causes
        .iter()
        .any(|cause| is_about_immutable_field(&cause.message));
    let names_field = causes.iter().any(|cause| !cause.field.is_empty());
    let is_long = causes
        .iter()
        .any(|cause| cause.message.chars().count() > LONGEST_VALUE);
    if status.reason != "Invalid" || !(has_immutable_field || names_field || is_long) {
        return None;
    }
    let explained = causes.iter().map(|cause| explain_cause(cause, object));
    let message = match causes.as_slice() {
        [cause] => explain_cause(cause, object),
        _ => Message::new("invalid fields").with_details(explained.flat_map(|cause| {
            let differing = cause.details.into_iter().map(|line| format!("  {line}"));
            std::iter::once(cause.text).chain(differing)
        })),
    };
    Some(if has_immutable_field {
        with_immutable_field_hint(message, object)
    } else {
        message
    })
}

fn is_about_immutable_field(message: &str) -> bool {
    IMMUTABLE_FIELD.iter().any(|words| message.contains(words))
}

/// Returns the message of one cause, after its field and the line of that field.
fn explain_cause(cause: &StatusCause, object: &DesiredObject) -> Message {
    // An admission policy names no field.
    if cause.field.is_empty() {
        return shorten(&cause.message);
    }
    let line =
        find_nearest_line(object, &cause.field).map_or_else(String::new, |line| format!(" (line {line})"));
    shorten(&cause.message).with_subject_prefix(format_args!("{}{line}: ", cause.field))
}

/// Returns the line of the field. If the manifest does not have the field, returns the line of the nearest field around
/// it that the manifest has.
fn find_nearest_line(object: &DesiredObject, field: &str) -> Option<usize> {
    let mut path = field;
    loop {
        let line = line_of_field(&object.position, path);
        if line.is_some() {
            return line;
        }
        path = &path[..path.rfind(['.', '['])?];
    }
}

/// Removes a long value from a message. If the message has a comparison line by line, keeps only the lines that differ,
/// as details. The reason after the value is never shortened.
fn shorten(message: &str) -> Message {
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
        // The lines of the server are joined: a line of its own could look like a message of this program.
        let trimmed = others.iter().map(|line| line.trim());
        let filled = trimmed.filter(|line| !line.is_empty());
        let text: Vec<&str> = std::iter::once(first).chain(filled).collect();
        return Message::new(text.join(" "));
    }
    Message::new(first).with_details(differing.iter().map(|line| line.replace('\t', "  ")))
}

/// Splits a value in the notation of Go or JSON from the reason after it, at the first colon outside quotes and
/// brackets.
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
    // The brackets do not match, so the last colon has to do.
    text.rsplit_once(": ")
}

/// Adds the hint for a field that cannot change: to recreate the object, or to keep the value.
fn with_immutable_field_hint(message: Message, object: &DesiredObject) -> Message {
    let Some(kind) = kind_for_recreation_hint(object) else {
        return message.with_hint("keep the old value, or give the object another name");
    };
    let flag = recreate_flag([kind]);
    message.with_hint(format!(
        "keep the old value, give the object another name, or recreate it with {flag}"
    ))
}

/// Returns the kind of the object, if a hint may suggest to recreate objects of that kind: no data is lost with them.
pub fn kind_for_recreation_hint(object: &DesiredObject) -> Option<&GroupKind> {
    let kind = &object.key.group_kind;
    (!loses_data(kind)).then_some(kind)
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
            assert_eq!(is_about_immutable_field(message), expected, "{message}");
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
            assert_eq!(shorten(&message).to_string(), expected);
        }
    }
}
