//! Explains why the server rejects an object, with the lines of the fields in the manifest.
//!
//! The server names fields by their paths, which this file turns into lines. Only the server knows which fields an API
//! has; the hint names the command that prints them.

use crate::cluster::apiserver::ApiError;
use crate::execute::members::{exported_fields, message_of_invalid_object};
use crate::execute::unusable_versions::is_refusal_of_unusable_version;
use crate::manifest::desired::DesiredObject;
use crate::manifest::line_of_field;
use crate::model::identity::GroupKind;
use crate::model::message::Message;

/// The message of structured-merge-diff about an unknown field.
const UNDECLARED: &str = "field not declared in schema";

/// The beginning of the server's message that a manifest does not match the schema of its kind
/// (apimachinery, `managedfields/internal/structuredmerge.go`).
const NOT_TYPED: &str = "failed to create typed patch object";

/// The words of the server for a value that a field of a built-in kind cannot have, such as a time in another format
/// (apimachinery, `runtime/scheme.go`).
const NOT_CONVERTED: &str = "unable to convert unstructured object to ";

/// The words of this program for an unknown field.
const NO_FIELD: &str = "unknown field";

/// The words of this program for a value that is a mapping or a list.
const MAPPING: &str = "a mapping";
const LIST: &str = "a list";

/// The formats in which Go prints a value of structured-merge-diff, in the order of trying.
const GO_VALUES: [&str; 2] = ["&value.valueUnstructured{Value:", "&{"];

/// Explains why a write of this object failed.
pub fn rejection_message(error: &ApiError, object: &DesiredObject) -> Message {
    let mut faults = error
        .status()
        .map_or_else(Vec::new, |status| parse_faults(&status.message));
    // The server's message may quote a value, which must not be printed for a Secret.
    if object.key.group_kind == GroupKind::new("", "Secret") {
        for fault in faults.iter_mut().filter(|fault| fault.text != NO_FIELD) {
            "wrong type".clone_into(&mut fault.text);
        }
    }
    let Some(first) = faults.first() else {
        return explain_other_rejection(error, object);
    };
    let mut lines: Vec<_> = faults
        .iter()
        .map(|fault| (line_of_field(&object.position, &fault.path), fault))
        .collect();
    lines.sort_by_key(|(line, _)| *line);
    let described: Vec<String> = lines
        .into_iter()
        .map(|(line, fault)| {
            let place = line.map_or_else(String::new, |line| format!(" (line {line})"));
            format!("{}{place}: {}", fault.path.trim_start_matches('.'), fault.text)
        })
        .collect();
    let resource = &object.resource;
    let version = if resource.group.is_empty() {
        String::new()
    } else {
        format!(" --api-version={}/{}", resource.group, resource.version)
    };
    let message = Message::new(format!("strict decoding error: {}", described.join("; ")));
    let message = if faults.iter().any(FieldFault::lacks_quotes) {
        message.with_hint("put quotes around the value: YAML reads it as a number or a boolean")
    } else {
        message
    };
    message.with_hint(format!(
        "check the fields with `kubectl explain {}{}{version}`",
        resource.plural,
        parent_path_for_kubectl_explain(&first.path)
    ))
}

/// Explains a failure whose message does not name fields that are unknown or have the wrong type.
fn explain_other_rejection(error: &ApiError, object: &DesiredObject) -> Message {
    let Some(status) = error.status() else {
        return error.kind.to_object_message();
    };
    if let Some(hint) = exported_fields::exported_fields_hint(error, object) {
        return status.explain().with_hint(hint);
    }
    let message = message_of_invalid_object::explain_unless_already_clear(status, object)
        .unwrap_or_else(|| status.explain());
    if is_refusal_of_unusable_version(error) {
        message.with_hint(unusable_managed_fields_hint(object))
    } else {
        message
    }
}

/// Returns the hint for managed fields in a version that cannot hold the object. The run has not rewritten them,
/// usually because the user may not read the CRD.
fn unusable_managed_fields_hint(object: &DesiredObject) -> String {
    let namespace = object.key.namespace.as_ref();
    let flag = namespace.map_or_else(String::new, |namespace| format!(" -n {namespace}"));
    let (kind, name) = (object.resource.group_resource(), &object.key.name);
    format!(
        "apply it as a user who can read the CustomResourceDefinition {kind}; \
         `kubectl get {kind} {name}{flag} --show-managed-fields -o yaml` shows the versions"
    )
}

/// Returns whether the server says with this message that the manifest does not match the schema of its kind. For
/// server-side apply, the status is 500 then, as for internal errors, so only the message shows it.
pub fn is_schema_violation(message: &str) -> bool {
    message.starts_with(NOT_TYPED) || message.contains(NOT_CONVERTED)
}

/// A field that the server rejects.
#[derive(Debug, PartialEq, Eq)]
struct FieldFault {
    path: String,
    text: String,
}

impl FieldFault {
    /// Returns whether the manifest has a number or a boolean where the API has a string.
    fn lacks_quotes(&self) -> bool {
        let value = self.text.strip_prefix("expected string, got ");
        value.is_some_and(|value| value != MAPPING && value != LIST)
    }
}

/// Parses the fields that a message of the server rejects. There are two kinds of such messages: those of server-side
/// apply, with a fault on each line, and those of strict decoding. For any other message, returns nothing.
fn parse_faults(message: &str) -> Vec<FieldFault> {
    if is_schema_violation(message) {
        let list = message.split_once("): ").map_or("", |(_, list)| list);
        return list.lines().filter_map(parse_fault_of_apply).collect();
    }
    let Some((_, list)) = message.split_once("strict decoding error: ") else {
        return Vec::new();
    };
    list.split("unknown field \"")
        .skip(1)
        .filter_map(|rest| rest.split_once('"'))
        .map(|(path, _)| FieldFault {
            path: path.to_owned(),
            text: NO_FIELD.to_owned(),
        })
        .collect()
}

fn parse_fault_of_apply(line: &str) -> Option<FieldFault> {
    let (path, text) = line.trim().split_once(": ")?;
    path.starts_with('.').then(|| FieldFault {
        path: path.to_owned(),
        text: if text == UNDECLARED {
            NO_FIELD.to_owned()
        } else {
            without_go_notation(text)
        },
    })
}

/// Returns the server's message about a value of the wrong type, without Go's notation of the value.
fn without_go_notation(text: &str) -> String {
    let split = GO_VALUES.iter().find_map(|prefix| {
        let (said, value) = text.split_once(prefix)?;
        Some((said, value.strip_suffix('}')?))
    });
    let Some((said, value)) = split else {
        return text.to_owned();
    };
    if value.starts_with("map[") {
        format!("{said}{MAPPING}")
    } else if value.starts_with('[') {
        format!("{said}{LIST}")
    } else {
        format!("{said}{value}")
    }
}

/// Returns the path without its last field and without selectors, as `kubectl explain` takes it.
fn parent_path_for_kubectl_explain(path: &str) -> String {
    let mut parent = String::new();
    let mut depth = 0;
    for character in path.trim_start_matches('.').chars() {
        match character {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ if depth == 0 => parent.push(character),
            _ => {}
        }
    }
    parent
        .rsplit_once('.')
        .map_or_else(String::new, |(parent, _)| format!(".{parent}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &str) -> Vec<(String, String)> {
        let faults = parse_faults(message).into_iter();
        faults.map(|fault| (fault.path, fault.text)).collect()
    }

    #[test]
    fn fields_are_read_from_the_servers_messages() {
        let none = NO_FIELD;
        let one = "failed to create typed patch object (a/b; /v1, Kind=Service): .spec.prots: field not declared in schema";
        let two = "failed to create typed patch object (a/b; x.com/v1, Kind=Widget): errors:\n  \
                   .spec.list[0].b: field not declared in schema\n  .spec.size: expected numeric (int or float), got string";
        let strict = "Service in version \"v1\" cannot be handled as a Service: strict decoding error: \
                      unknown field \"spec.ports[0].protcol\", unknown field \"spec.prots\"";
        let table: [(&str, &[(&str, &str)]); 4] = [
            (one, &[(".spec.prots", none)]),
            (
                two,
                &[
                    (".spec.list[0].b", none),
                    (".spec.size", "expected numeric (int or float), got string"),
                ],
            ),
            (strict, &[("spec.ports[0].protcol", none), ("spec.prots", none)]),
            ("Service \"x\" is invalid: spec.ports: Required value", &[]),
        ];
        for (message, expected) in table {
            let expected: Vec<(String, String)> = expected
                .iter()
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
                .collect();
            assert_eq!(read(message), expected, "{message}");
        }
    }

    #[test]
    fn a_manifest_that_cannot_be_typed_is_the_fault_of_the_manifest() {
        for (message, expected) in [
            (
                "failed to create typed patch object (a/b; /v1, Kind=Service): .spec.a: field not declared in schema",
                true,
            ),
            (
                "failed to convert new object (a/b; coordination.k8s.io/v1, Kind=Lease) to proper version: unable to \
                 convert unstructured object to coordination.k8s.io/v1, Kind=Lease: parsing time \"x\" as \"y\"",
                true,
            ),
            (
                "failed to convert new object (a/b; x.com/v1, Kind=Widget) to proper version: conversion webhook \
                 for x.com/v1, Kind=Widget failed: connection refused",
                false,
            ),
        ] {
            assert_eq!(is_schema_violation(message), expected, "{message}");
        }
    }

    #[test]
    fn a_value_of_the_wrong_type_is_reported_without_words_of_go() {
        for (text, expected, lacks_quotes) in [
            (
                "expected string, got &value.valueUnstructured{Value:1}",
                "expected string, got 1",
                true,
            ),
            (
                "expected string, got &value.valueUnstructured{Value:map[string]interface {}{\"a\":1}}",
                "expected string, got a mapping",
                false,
            ),
            (
                "expected string, got &value.valueUnstructured{Value:[]interface {}{1}}",
                "expected string, got a list",
                false,
            ),
            ("expected map, got &{x}", "expected map, got x", false),
            (
                "expected numeric (int or float), got string",
                "expected numeric (int or float), got string",
                false,
            ),
        ] {
            let fault = FieldFault {
                path: ".a".to_owned(),
                text: without_go_notation(text),
            };
            assert_eq!(fault.text, expected);
            assert_eq!(fault.lacks_quotes(), lacks_quotes, "{text}");
        }
    }

    #[test]
    fn explain_is_reported_where_to_look() {
        for (path, parent) in [
            (".spec.prots", ".spec"),
            (".spec.ports[port=80,protocol=\"a.b\"].protcol", ".spec.ports"),
            ("spce", ""),
        ] {
            assert_eq!(parent_path_for_kubectl_explain(path), parent);
        }
    }
}
