//! Checks of an object that need no cluster.

use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubernetes_yaml::Node;

use super::desired::leave_out_of_metadata;
use super::error::{Fault, Problem};
use super::{Hook, MAX_FAULTS, Manifest, Naming, Position, Source};
use crate::model::applyset::record::is_dns_label;
use crate::model::identity::GroupVersionKind;
use crate::model::object::Object;

/// The most bytes of an object, which are the most of a request that an API server reads
/// (`k8s.io/apiserver/pkg/server/config.go`, `MaxRequestBodyBytes`).
pub(super) const LARGEST_OBJECT: usize = 3 << 20;

const PART_OF: &str = "applyset.kubernetes.io/part-of";

/// Makes a manifest of an object, or reports everything that is wrong with it.
pub(super) fn manifest(source: &Arc<Source>, object: &Node) -> Result<Manifest, Vec<Fault>> {
    if !object.is_mapping() {
        return Err(vec![(line(object), Problem::NotAnObject(object.description()))]);
    }
    let mut faults = Vec::new();
    let mut keep =
        |result: Result<String, Fault>| result.map_err(|fault| faults.push(fault)).unwrap_or_default();
    let api_version = keep(api_version(object));
    let kind = keep(kind(object));
    let namespace = keep(namespace(object));
    let (name, naming) = name(object).unwrap_or_else(|fault| {
        faults.push(fault);
        Default::default()
    });
    metadata(object, &mut faults);
    if api_version == "v1" {
        data(object, &kind, &mut faults);
    }
    if !faults.is_empty() {
        faults.sort_by_key(|(line, _)| *line);
        return Err(faults);
    }
    let line = line(object);
    let object = without_null_pairs(Object::from_fields(object.entries()));
    if object.body().len() > LARGEST_OBJECT {
        return Err(vec![(line, Problem::ObjectTooLarge)]);
    }
    if let Err(error) = serde_json::from_slice::<ObjectMeta>(object.metadata_json()) {
        return Err(vec![(line, schema_problem(&error))]);
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

fn line(node: &Node) -> usize {
    node.position().line()
}

/// Leaves out the labels and annotations that are null, as kubectl apply does.
fn without_null_pairs(object: Object) -> Object {
    if !object.may_hold_null() {
        return object;
    }
    let mut metadata = object.metadata();
    leave_out_of_metadata(&mut metadata);
    object.with_metadata(&metadata)
}

/// Reports why metadata do not fit the API, without the place in their text: it is not that in
/// the source.
fn schema_problem(error: &serde_json::Error) -> Problem {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    Problem::Metadata(escape(message.strip_suffix(&place).unwrap_or(&message)))
}

/// Returns a field of the object that has to be a string, and not empty.
pub(super) fn required<'node>(object: &'node Node, field: &'static str) -> Result<&'node str, Fault> {
    let Some(value) = object.get(field).filter(|value| !value.is_null()) else {
        return Err((line(object), Problem::Missing(field)));
    };
    match value.as_str() {
        Some("") => Err((line(value), Problem::Missing(field))),
        Some(text) => Ok(text),
        None => Err(wrong_type(value, field, "string")),
    }
}

fn wrong_type(value: &Node, field: impl Into<String>, wanted: &'static str) -> Fault {
    let problem = Problem::Type {
        field: field.into(),
        wanted,
        found: value.description(),
    };
    (line(value), problem)
}

fn api_version(object: &Node) -> Result<String, Fault> {
    let text = required(object, "apiVersion")?;
    let (group, version) = text.split_once('/').unwrap_or(("core", text));
    if is_group_or_version(group) && is_group_or_version(version) {
        Ok(text.to_owned())
    } else {
        let line = line(object.get("apiVersion").unwrap_or(object));
        Err((line, Problem::ApiVersion(text.to_owned())))
    }
}

fn is_group_or_version(text: &str) -> bool {
    let mut bytes = text.bytes();
    !text.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
}

fn kind(object: &Node) -> Result<String, Fault> {
    let text = required(object, "kind")?;
    if text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    {
        Ok(text.to_owned())
    } else {
        let line = line(object.get("kind").unwrap_or(object));
        Err((line, Problem::Kind(text.to_owned())))
    }
}

/// Returns `metadata.name`, by the rules of a path segment (`IsPathSegmentName` in
/// `k8s.io/apimachinery/pkg/api/validate/content`): what else a name may be depends on its
/// kind, which the server knows. A hook may leave its name to the server.
fn name(object: &Node) -> Result<(String, Naming), Fault> {
    let Some(metadata) = object.get("metadata").filter(|value| !value.is_null()) else {
        return Err((line(object), Problem::Missing("metadata.name")));
    };
    if !metadata.is_mapping() {
        return Err(wrong_type(metadata, "metadata", "mapping"));
    }
    let named = |field| {
        metadata
            .get(field)
            .filter(|value| !value.is_null() && value.as_str() != Some(""))
    };
    if let Some(value) = named("name") {
        return Ok((segment(value, "metadata.name")?, Naming::Given));
    }
    let Some(prefix) = named("generateName") else {
        return Err((line(metadata), Problem::Missing("metadata.name")));
    };
    if Hook::from_object(&Object::from_fields(object.entries())).is_none() {
        return Err((line(prefix), Problem::GenerateName));
    }
    let name = format!("{}*", segment(prefix, "metadata.generateName")?);
    Ok((name, Naming::Generated))
}

fn segment(value: &Node, field: &'static str) -> Result<String, Fault> {
    let name = value.as_str().ok_or_else(|| wrong_type(value, field, "string"))?;
    if name == "." || name == ".." || name.contains(['/', '%']) || name.contains(char::is_control) {
        return Err((line(value), Problem::Name(name.to_owned())));
    }
    Ok(name.to_owned())
}

/// Returns `metadata.namespace`: empty if it is not given, else a DNS label (RFC 1123).
fn namespace(object: &Node) -> Result<String, Fault> {
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
        Err((line(value), Problem::Namespace(namespace.to_owned())))
    }
}

fn metadata(object: &Node, faults: &mut Vec<Fault>) {
    for field in ["labels", "annotations"] {
        let value = object.get("metadata").and_then(|metadata| metadata.get(field));
        let entries = strings(value, &format!("metadata.{field}"), faults);
        if field == "labels"
            && let Some(entry) = entries.and_then(|entries| entries.entry(PART_OF))
        {
            faults.push((entry.position().line(), Problem::PartOf));
        }
    }
}

/// Checks the fields of `ConfigMap` and Secret that hold strings by key. The server refuses
/// anything else in them, after other objects are written.
fn data(object: &Node, kind: &str, faults: &mut Vec<Fault>) {
    let fields = match kind {
        "ConfigMap" => ["data", "binaryData"],
        "Secret" => ["data", "stringData"],
        _ => return,
    };
    for field in fields {
        let encoded = strings(object.get(field), field, faults)
            .filter(|_| (kind, field) != ("ConfigMap", "data") && field != "stringData");
        for (key, entry) in encoded.into_iter().flat_map(Node::entries) {
            if faults.len() > MAX_FAULTS {
                break;
            }
            let value = entry.value();
            if value.as_str().is_some_and(|text| !is_base64(text)) {
                let field = format!("{field}[{key:?}]");
                faults.push((line(value), Problem::NotBase64 { field }));
            }
        }
    }
}

/// Returns whether the server can decode a text (Go's `base64.StdEncoding`): line breaks do not
/// count, padding does, and the bits that no byte needs may be anything.
fn is_base64(text: &str) -> bool {
    const GO: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    GO.decode(text.replace(['\r', '\n'], "")).is_ok()
}

/// Checks a mapping from strings to strings, and returns it. `None` if it is missing, or not a
/// mapping. A null is as if its key were missing.
fn strings<'node>(value: Option<&'node Node>, field: &str, faults: &mut Vec<Fault>) -> Option<&'node Node> {
    let value = value.filter(|value| !value.is_null())?;
    if !value.is_mapping() {
        faults.push(wrong_type(value, field, "mapping"));
        return None;
    }
    for (key, entry) in value.entries() {
        if faults.len() > MAX_FAULTS {
            break;
        }
        let value = entry.value();
        if !value.is_null() && value.as_str().is_none() {
            faults.push(wrong_type(value, format!("{field}[{key:?}]"), "string"));
        }
    }
    Some(value)
}

fn escape(message: &str) -> String {
    message
        .chars()
        .flat_map(char::escape_debug)
        .collect::<String>()
        .replace("\\\"", "\"")
}

#[cfg(test)]
mod tests;
