//! Makes the manifest of an object, after all checks that need no cluster.

use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use kubernetes_yaml::Node;

use super::desired::remove_empty_metadata;
use super::error::{LineFault, Problem};
use super::{Hook, Manifest, Naming, Position, Source};
use crate::model::applyset::PART_OF_LABEL;
use crate::model::applyset::record::is_dns_label;
use crate::model::identity::GroupVersionKind;
use crate::model::object::Object;

/// The limit of an object in bytes: the API server refuses larger requests (`MaxRequestBodyBytes` in
/// `k8s.io/apiserver/pkg/server/config.go`).
pub(super) const MAX_OBJECT_BYTES: usize = 3 << 20;

/// Parses the manifest of an object, or returns all faults of the object, sorted by line.
pub(super) fn parse_manifest(source: &Arc<Source>, node: &Node) -> Result<Manifest, Vec<LineFault>> {
    if !node.is_mapping() {
        return Err(vec![fault_of(node, Problem::NotAnObject(node.description()))]);
    }
    let mut faults = Vec::new();
    let api_version =
        read_required(node, "apiVersion").map_or_else(|fault| note_fault(fault, &mut faults), str::to_owned);
    let kind = read_required(node, "kind").map_or_else(|fault| note_fault(fault, &mut faults), str::to_owned);
    let namespace = read_namespace(node).unwrap_or_else(|fault| note_fault(fault, &mut faults));
    let (name, naming) = read_name(node).unwrap_or_else(|fault| note_fault(fault, &mut faults));
    check_labels_and_annotations(node, &mut faults);
    if api_version == "v1" {
        check_data_fields(node, &kind, &mut faults);
    }
    if !faults.is_empty() {
        faults.sort_by_key(|fault| fault.line);
        return Err(faults);
    }
    let object = remove_nulls_from_metadata(Object::from_fields(node.entries()));
    if object.body().len() > MAX_OBJECT_BYTES {
        return Err(vec![fault_of(node, Problem::ObjectTooLarge)]);
    }
    Ok(Manifest {
        gvk: GroupVersionKind::from_api_version(&api_version, &kind),
        name,
        naming,
        namespace,
        object,
        position: Position {
            source: Arc::clone(source),
            line: node.position().line(),
        },
    })
}

/// Adds a fault, and returns an empty value in place of the field: no manifest is made of an object with faults.
fn note_fault<T: Default>(fault: LineFault, faults: &mut Vec<LineFault>) -> T {
    faults.push(fault);
    T::default()
}

fn fault_of(node: &Node, problem: Problem) -> LineFault {
    LineFault::new(node.position().line(), problem)
}

/// Returns the object without nulls in its metadata, labels and annotations, as kubectl apply sends it. An object with
/// nulls also loses the other metadata without effect.
fn remove_nulls_from_metadata(object: Object) -> Object {
    if !object.may_hold_null() {
        return object;
    }
    let mut metadata = object.metadata();
    remove_empty_metadata(&mut metadata);
    object.with_metadata(&metadata)
}

/// Returns a field that every object must have, as a string that is not empty.
pub(super) fn read_required<'node>(
    object: &'node Node,
    field: &'static str,
) -> Result<&'node str, LineFault> {
    let Some(value) = object.get(field).filter(|value| !value.is_null()) else {
        return Err(fault_of(object, Problem::Missing(field)));
    };
    match value.as_str() {
        Some("") => Err(fault_of(value, Problem::Missing(field))),
        Some(text) => Ok(text),
        None => Err(wrong_type(value, field, "string")),
    }
}

/// Returns the fault that the value of a field has another type than wanted.
fn wrong_type(value: &Node, field: impl Into<String>, wanted: &'static str) -> LineFault {
    let problem = Problem::Type {
        field: field.into(),
        wanted,
        found: value.description(),
    };
    fault_of(value, problem)
}

/// Returns `metadata.name`, which must be a segment of a request path. Other rules for names depend on the kind, and
/// are left to the server.
///
/// A hook may have `metadata.generateName` in place of a name. Then the returned name is the prefix with an asterisk,
/// which stands in messages for what the server adds; [`Naming::Generated`] says that it is not the name of an object.
fn read_name(object: &Node) -> Result<(String, Naming), LineFault> {
    let Some(metadata) = object.get("metadata").filter(|value| !value.is_null()) else {
        return Err(fault_of(object, Problem::Missing("metadata.name")));
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
        return Ok((read_path_segment(value, "metadata.name")?, Naming::Given));
    }
    let Some(prefix) = get_unless_empty("generateName") else {
        return Err(fault_of(metadata, Problem::Missing("metadata.name")));
    };
    if Hook::from_object(&Object::from_fields(object.entries())).is_none() {
        return Err(fault_of(prefix, Problem::GenerateName));
    }
    let prefix = read_path_segment(prefix, "metadata.generateName")?;
    Ok((format!("{prefix}*"), Naming::Generated))
}

/// Returns a string that can be one segment of a request path (`IsPathSegmentName` in
/// `k8s.io/apimachinery/pkg/api/validate/content`).
fn read_path_segment(value: &Node, field: &'static str) -> Result<String, LineFault> {
    let name = value.as_str().ok_or_else(|| wrong_type(value, field, "string"))?;
    if name == "." || name == ".." || name.contains(['/', '%']) || name.contains(char::is_control) {
        return Err(fault_of(value, Problem::Name(name.to_owned())));
    }
    Ok(name.to_owned())
}

/// Returns `metadata.namespace`, a DNS label (RFC 1123); `None` if it is absent or empty.
fn read_namespace(object: &Node) -> Result<Option<String>, LineFault> {
    let Some(value) = object
        .get("metadata")
        .and_then(|metadata| metadata.get("namespace"))
        .filter(|value| !value.is_null())
    else {
        return Ok(None);
    };
    match value.as_str() {
        Some("") => Ok(None),
        Some(namespace) if is_dns_label(namespace) => Ok(Some(namespace.to_owned())),
        Some(namespace) => Err(fault_of(value, Problem::Namespace(namespace.to_owned()))),
        None => Err(wrong_type(value, "metadata.namespace", "string")),
    }
}

/// Checks that both are mappings of strings, and that there is no part-of label.
fn check_labels_and_annotations(object: &Node, faults: &mut Vec<LineFault>) {
    let get = |field| object.get("metadata").and_then(|metadata| metadata.get(field));
    let labels = check_map_of_strings(get("labels"), "metadata.labels", faults);
    if let Some(entry) = labels.and_then(|labels| labels.entry(PART_OF_LABEL)) {
        faults.push(LineFault::new(entry.position().line(), Problem::PartOf));
    }
    check_map_of_strings(get("annotations"), "metadata.annotations", faults);
}

/// Checks the fields of a `ConfigMap` or Secret that hold strings by key. If only the server checked them, it would
/// refuse the object after the apply has written others.
fn check_data_fields(object: &Node, kind: &str, faults: &mut Vec<LineFault>) {
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
fn check_map_of_base64(value: Option<&Node>, field: &str, faults: &mut Vec<LineFault>) {
    let pairs = check_map_of_strings(value, field, faults);
    for (key, entry) in pairs.into_iter().flat_map(Node::entries) {
        let value = entry.value();
        if value.as_str().is_some_and(|text| !is_base64(text)) {
            let field = format!("{field}[{key:?}]");
            faults.push(fault_of(value, Problem::NotBase64 { field }));
        }
    }
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
    faults: &mut Vec<LineFault>,
) -> Option<&'node Node> {
    let value = value.filter(|value| !value.is_null())?;
    if !value.is_mapping() {
        faults.push(wrong_type(value, field, "mapping"));
        return None;
    }
    for (key, entry) in value.entries() {
        let value = entry.value();
        if !value.is_null() && value.as_str().is_none() {
            faults.push(wrong_type(value, format!("{field}[{key:?}]"), "string"));
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests;
