//! Makes the manifest of an object, after all checks that need no cluster.

use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubernetes_yaml::Node;

use super::desired::remove_meaningless_metadata;
use super::error::{Fault, Problem};
use super::{Hook, MAX_FAULTS, Manifest, Naming, Position, Source};
use crate::model::applyset::record::is_dns_label;
use crate::model::identity::GroupVersionKind;
use crate::model::object::Object;

/// The limit of an object in bytes: the API server refuses larger requests (`MaxRequestBodyBytes` in
/// `k8s.io/apiserver/pkg/server/config.go`).
pub(super) const LARGEST_OBJECT: usize = 3 << 20;

const PART_OF_LABEL: &str = "applyset.kubernetes.io/part-of";

/// Makes a manifest of an object, or returns all faults of the object, sorted by line.
pub(super) fn check_and_make_manifest(source: &Arc<Source>, object: &Node) -> Result<Manifest, Vec<Fault>> {
    if !object.is_mapping() {
        return Err(vec![(
            line_of(object),
            Problem::NotAnObject(object.description()),
        )]);
    }
    let mut faults = Vec::new();
    // A field with a fault is empty from here on. No manifest is made then: see `faults.is_empty()` below.
    let mut or_empty =
        |result: Result<String, Fault>| result.map_err(|fault| faults.push(fault)).unwrap_or_default();
    let api_version = or_empty(read_api_version(object));
    let kind = or_empty(read_kind(object));
    let namespace = or_empty(read_namespace(object));
    let (name, naming) = read_name_or_generate_name(object).unwrap_or_else(|fault| {
        faults.push(fault);
        Default::default()
    });
    check_labels_and_annotations(object, &mut faults);
    if api_version == "v1" {
        check_config_map_or_secret_data(object, &kind, &mut faults);
    }
    if !faults.is_empty() {
        faults.sort_by_key(|(line, _)| *line);
        return Err(faults);
    }
    let line = line_of(object);
    let object = without_nulls_in_metadata(Object::from_fields(object.entries()));
    if object.body().len() > LARGEST_OBJECT {
        return Err(vec![(line, Problem::ObjectTooLarge)]);
    }
    if let Err(error) = serde_json::from_slice::<ObjectMeta>(object.metadata_json()) {
        return Err(vec![(line, to_metadata_problem(&error))]);
    }
    Ok(Manifest {
        gvk: GroupVersionKind::from_api_version(&api_version, &kind),
        name,
        naming,
        namespace: Some(namespace).filter(|namespace| !namespace.is_empty()),
        object,
        position: Position {
            source: Arc::clone(source),
            line,
        },
    })
}

fn line_of(node: &Node) -> usize {
    node.position().line()
}

/// Returns the object without nulls in its metadata, labels and annotations, as kubectl apply sends it. An object with
/// nulls also loses other metadata that mean nothing.
fn without_nulls_in_metadata(object: Object) -> Object {
    if !object.may_hold_null() {
        return object;
    }
    let mut metadata = object.metadata();
    remove_meaningless_metadata(&mut metadata);
    object.with_metadata(&metadata)
}

/// Returns why the metadata do not fit the API. The message of `serde_json` ends with a line and a column; they are cut
/// off, because they count in our JSON of the metadata and not in the user's file.
fn to_metadata_problem(error: &serde_json::Error) -> Problem {
    let message = error.to_string();
    let suffix = format!(" at line {} column {}", error.line(), error.column());
    Problem::Metadata(escape_for_terminal(
        message.strip_suffix(&suffix).unwrap_or(&message),
    ))
}

/// Returns a field that every object must have, as a string that is not empty.
pub(super) fn read_required<'node>(object: &'node Node, field: &'static str) -> Result<&'node str, Fault> {
    let Some(value) = object.get(field).filter(|value| !value.is_null()) else {
        return Err((line_of(object), Problem::Missing(field)));
    };
    match value.as_str() {
        Some("") => Err((line_of(value), Problem::Missing(field))),
        Some(text) => Ok(text),
        None => Err(wrong_type(value, field, "string")),
    }
}

/// Returns the fault that the value of a field has another type than wanted.
fn wrong_type(value: &Node, field: impl Into<String>, wanted: &'static str) -> Fault {
    let problem = Problem::Type {
        field: field.into(),
        wanted,
        found: value.description(),
    };
    (line_of(value), problem)
}

/// Returns `apiVersion`: `VERSION` or `GROUP/VERSION`.
fn read_api_version(object: &Node) -> Result<String, Fault> {
    let text = read_required(object, "apiVersion")?;
    let is_valid = match text.split_once('/') {
        Some((group, version)) => is_group_or_version(group) && is_group_or_version(version),
        None => is_group_or_version(text),
    };
    if is_valid {
        Ok(text.to_owned())
    } else {
        let line = line_of(object.get("apiVersion").unwrap_or(object));
        Err((line, Problem::ApiVersion(text.to_owned())))
    }
}

fn is_group_or_version(text: &str) -> bool {
    let mut bytes = text.bytes();
    !text.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
}

fn read_kind(object: &Node) -> Result<String, Fault> {
    let text = read_required(object, "kind")?;
    if text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    {
        Ok(text.to_owned())
    } else {
        let line = line_of(object.get("kind").unwrap_or(object));
        Err((line, Problem::Kind(text.to_owned())))
    }
}

/// Returns `metadata.name`, which must be a segment of a request path. Other rules for names depend on the kind, and
/// are left to the server.
///
/// A hook may have `metadata.generateName` in place of a name. Then the returned name is the prefix with an asterisk,
/// which stands in messages for what the server adds; [`Naming::Generated`] says that it is not the name of an object.
fn read_name_or_generate_name(object: &Node) -> Result<(String, Naming), Fault> {
    let Some(metadata) = object.get("metadata").filter(|value| !value.is_null()) else {
        return Err((line_of(object), Problem::Missing("metadata.name")));
    };
    if !metadata.is_mapping() {
        return Err(wrong_type(metadata, "metadata", "mapping"));
    }
    let get_unless_empty = |field| {
        metadata
            .get(field)
            .filter(|value| !value.is_null() && value.as_str() != Some(""))
    };
    if let Some(value) = get_unless_empty("name") {
        return Ok((read_name_for_request_path(value, "metadata.name")?, Naming::Given));
    }
    let Some(prefix) = get_unless_empty("generateName") else {
        return Err((line_of(metadata), Problem::Missing("metadata.name")));
    };
    if Hook::from_object(&Object::from_fields(object.entries())).is_none() {
        return Err((line_of(prefix), Problem::GenerateName));
    }
    let name = format!(
        "{}*",
        read_name_for_request_path(prefix, "metadata.generateName")?
    );
    Ok((name, Naming::Generated))
}

/// Returns a string that can be one segment of a request path (`IsPathSegmentName` in
/// `k8s.io/apimachinery/pkg/api/validate/content`).
fn read_name_for_request_path(value: &Node, field: &'static str) -> Result<String, Fault> {
    let name = value.as_str().ok_or_else(|| wrong_type(value, field, "string"))?;
    if name == "." || name == ".." || name.contains(['/', '%']) || name.contains(char::is_control) {
        return Err((line_of(value), Problem::Name(name.to_owned())));
    }
    Ok(name.to_owned())
}

/// Returns `metadata.namespace`: empty if the manifest does not set it, else a DNS label (RFC 1123).
fn read_namespace(object: &Node) -> Result<String, Fault> {
    let value = object
        .get("metadata")
        .and_then(|metadata| metadata.get("namespace"));
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(String::new());
    };
    let namespace = value
        .as_str()
        .ok_or_else(|| wrong_type(value, "metadata.namespace", "string"))?;
    if namespace.is_empty() || is_dns_label(namespace) {
        Ok(namespace.to_owned())
    } else {
        Err((line_of(value), Problem::Namespace(namespace.to_owned())))
    }
}

fn check_labels_and_annotations(object: &Node, faults: &mut Vec<Fault>) {
    for field in ["labels", "annotations"] {
        let value = object.get("metadata").and_then(|metadata| metadata.get(field));
        let pairs = check_map_of_strings(value, &format!("metadata.{field}"), faults);
        if field == "labels"
            && let Some(entry) = pairs.and_then(|pairs| pairs.entry(PART_OF_LABEL))
        {
            faults.push((entry.position().line(), Problem::PartOf));
        }
    }
}

/// Checks the fields of a `ConfigMap` or Secret that hold strings by key. If only the server checked them, it would
/// refuse the object after the apply has written others.
fn check_config_map_or_secret_data(object: &Node, kind: &str, faults: &mut Vec<Fault>) {
    match kind {
        "ConfigMap" => {
            check_map_of_strings(object.get("data"), "data", faults);
            check_map_of_base64(object.get("binaryData"), "binaryData", faults);
        }
        "Secret" => {
            check_map_of_base64(object.get("data"), "data", faults);
            check_map_of_strings(object.get("stringData"), "stringData", faults);
        }
        _ => {}
    }
}

/// Checks that a field is a mapping from strings to base64.
fn check_map_of_base64(value: Option<&Node>, field: &str, faults: &mut Vec<Fault>) {
    let pairs = check_map_of_strings(value, field, faults);
    for (key, entry) in pairs.into_iter().flat_map(Node::entries) {
        if has_enough_faults(faults) {
            break;
        }
        let value = entry.value();
        if value.as_str().is_some_and(|text| !is_base64(text)) {
            let field = format!("{field}[{key:?}]");
            faults.push((line_of(value), Problem::NotBase64 { field }));
        }
    }
}

/// Returns whether an object has more faults than the report prints. Checks stop then, since a short text can hold
/// millions of faults. The fault beyond the limit makes the report say that there are others ([`Problem::More`]).
fn has_enough_faults(faults: &[Fault]) -> bool {
    faults.len() > MAX_FAULTS
}

/// Returns whether the server can decode a text (Go's `base64.StdEncoding`). Line breaks are ignored, and padding is
/// required. The bits of the last character that belong to no byte need not be zero.
fn is_base64(text: &str) -> bool {
    const LIKE_GO: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    LIKE_GO.decode(text.replace(['\r', '\n'], "")).is_ok()
}

/// Checks that a field is a mapping from strings to strings, and returns the mapping; `None` if the field is missing,
/// null or not a mapping. A value that is null is no fault: the server takes its key as missing.
fn check_map_of_strings<'node>(
    value: Option<&'node Node>,
    field: &str,
    faults: &mut Vec<Fault>,
) -> Option<&'node Node> {
    let value = value.filter(|value| !value.is_null())?;
    if !value.is_mapping() {
        faults.push(wrong_type(value, field, "mapping"));
        return None;
    }
    for (key, entry) in value.entries() {
        if has_enough_faults(faults) {
            break;
        }
        let value = entry.value();
        if !value.is_null() && value.as_str().is_none() {
            faults.push(wrong_type(value, format!("{field}[{key:?}]"), "string"));
        }
    }
    Some(value)
}

/// Escapes control characters, which a message could carry from a manifest to the terminal. Quotation marks stay.
fn escape_for_terminal(message: &str) -> String {
    message
        .chars()
        .flat_map(char::escape_debug)
        .collect::<String>()
        .replace("\\\"", "\"")
}

#[cfg(test)]
mod tests;
