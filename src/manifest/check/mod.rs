//! What can be said against an object without asking a cluster.
//!
//! Takes nodes, flattens lists, and makes manifests. Whether a kind exists, is namespaced,
//! or is named twice is for later stages.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize as _;
use serde_json::Value;

use super::error::Problem;
use super::node::{Content, Entry, Node};
use super::scalar::Scalar;
use super::yaml::Fault;
use super::{MOST_FAULTS, Manifest, Position, Source};
use crate::model::identity::GroupVersionKind;
use crate::model::object::Object;

const PART_OF: &str = "applyset.kubernetes.io/part-of";

/// The objects of one document: itself, or the items of a list.
///
/// As in kubectl, whatever has `items` is a list (`unstructured.IsList`), lists in lists
/// follow the other items of their list (`FlattenListVisitor`), and an item that names
/// neither `apiVersion` nor `kind` has those that the list implies.
pub(super) fn objects(document: Node) -> Vec<Result<Node, Fault>> {
    let mut objects = Vec::new();
    let mut lists = std::collections::VecDeque::from([document]);
    while let Some(node) = lists.pop_front() {
        if node.get("items").is_none() {
            objects.push(Ok(node));
            continue;
        }
        match items(node) {
            Ok(items) => {
                for item in items {
                    if item.get("items").is_some() {
                        lists.push_back(item);
                    } else {
                        objects.push(Ok(item));
                    }
                }
            }
            Err(fault) => objects.push(Err(fault)),
        }
    }
    objects
}

fn items(list: Node) -> Result<Vec<Node>, Fault> {
    let api_version = text(&list, "apiVersion")?.to_owned();
    let kind = text(&list, "kind")?;
    let item_kind = kind.strip_suffix("List").unwrap_or(kind).to_owned();
    let Content::Mapping(mut entries) = list.content else {
        return Ok(Vec::new());
    };
    let Some(items) = entries.remove("items") else {
        return Ok(Vec::new());
    };
    let line = items.line;
    let description = items.value.description();
    let mut items = match items.value.content {
        Content::Sequence(items) => items,
        Content::Scalar(Scalar::Null) => Vec::new(),
        _ => return Err((line, Problem::Items(description))),
    };
    for item in &mut items {
        let (line, description) = (item.line, item.description());
        let bare = item.get("apiVersion").is_none() && item.get("kind").is_none();
        let Content::Mapping(entries) = &mut item.content else {
            return Err((line, Problem::Items(description)));
        };
        if bare && !item_kind.is_empty() {
            entries.insert(
                "apiVersion".to_owned(),
                super::node::Entry::implied(line, &api_version),
            );
            entries.insert("kind".to_owned(), super::node::Entry::implied(line, &item_kind));
        }
    }
    Ok(items)
}

/// Makes a manifest of an object, or says everything that is wrong with it.
pub(super) fn manifest(source: &Arc<Source>, object: &Node) -> Result<Manifest, Vec<Fault>> {
    if !matches!(object.content, Content::Mapping(_)) {
        return Err(vec![(object.line, Problem::NotAnObject(object.description()))]);
    }
    let mut faults = Vec::new();
    let mut keep =
        |result: Result<String, Fault>| result.map_err(|fault| faults.push(fault)).unwrap_or_default();
    let api_version = keep(api_version(object));
    let kind = keep(kind(object));
    let name = keep(name(object));
    let namespace = keep(namespace(object));
    metadata(object, &mut faults);
    if api_version == "v1" {
        data(object, &kind, &mut faults);
    }
    if !faults.is_empty() {
        faults.sort_by_key(|(line, _)| *line);
        return Err(faults);
    }
    let line = object.line;
    let object = Object::of(object.fields());
    if serde_json::from_slice::<ObjectMeta>(object.metadata_text()).is_err() {
        return Err(vec![(line, misfit(&object))]);
    }
    Ok(Manifest {
        gvk: GroupVersionKind::from_api_version(&api_version, &kind),
        name,
        namespace: Some(namespace).filter(|namespace| !namespace.is_empty()),
        object,
        position: Position {
            source: Arc::clone(source),
            line,
        },
    })
}

/// Why metadata are none. Told of their value, since a place in their text is of no use.
fn misfit(object: &Object) -> Problem {
    let read = ObjectMeta::deserialize(Value::Object(object.metadata()));
    let message = read.err().map(|error| error.to_string()).unwrap_or_default();
    Problem::Metadata(escaped(&message))
}

/// A field of the object that has to be a string, and to say something.
fn text<'node>(object: &'node Node, field: &'static str) -> Result<&'node str, Fault> {
    let Some(value) = object.get(field).filter(|value| !value.is_null()) else {
        return Err((object.line, Problem::Missing(field)));
    };
    match value.as_str() {
        Some("") => Err((value.line, Problem::Missing(field))),
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
    (value.line, problem)
}

fn api_version(object: &Node) -> Result<String, Fault> {
    let text = text(object, "apiVersion")?;
    let valid = |part: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
        !part.is_empty() && part.bytes().all(allowed)
    };
    let (group, version) = text.split_once('/').unwrap_or(("core", text));
    if valid(group) && valid(version) {
        Ok(text.to_owned())
    } else {
        let line = object.get("apiVersion").map_or(object.line, |value| value.line);
        Err((line, Problem::ApiVersion(text.to_owned())))
    }
}

fn kind(object: &Node) -> Result<String, Fault> {
    let text = text(object, "kind")?;
    if text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    {
        Ok(text.to_owned())
    } else {
        let line = object.get("kind").map_or(object.line, |value| value.line);
        Err((line, Problem::Kind(text.to_owned())))
    }
}

/// `metadata.name`, by the rules of a path segment (`IsPathSegmentName` in
/// `k8s.io/apimachinery/pkg/api/validate/content`): what else a name may be depends on its
/// kind, which the server knows.
fn name(object: &Node) -> Result<String, Fault> {
    let Some(metadata) = object.get("metadata").filter(|value| !value.is_null()) else {
        return Err((object.line, Problem::Missing("metadata.name")));
    };
    if !matches!(metadata.content, Content::Mapping(_)) {
        return Err(wrong_type(metadata, "metadata", "mapping"));
    }
    let named = |field| {
        metadata
            .get(field)
            .filter(|value| !value.is_null() && value.as_str() != Some(""))
    };
    let Some(value) = named("name") else {
        return Err(match named("generateName") {
            Some(value) => (value.line, Problem::GenerateName),
            None => (metadata.line, Problem::Missing("metadata.name")),
        });
    };
    let name = value
        .as_str()
        .ok_or_else(|| wrong_type(value, "metadata.name", "string"))?;
    let forbidden = |character: char| matches!(character, '/' | '%') || character.is_control();
    if name == "." || name == ".." || name.contains(forbidden) {
        return Err((value.line, Problem::Name(name.to_owned())));
    }
    Ok(name.to_owned())
}

/// `metadata.namespace`, empty if it is not given; a DNS label (RFC 1123) otherwise.
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
    let letter = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = namespace.as_bytes();
    let valid = bytes.len() <= 63
        && bytes.iter().all(|byte| letter(byte) || *byte == b'-')
        && bytes.first().is_none_or(letter)
        && bytes.last().is_none_or(letter);
    if valid {
        Ok(namespace.to_owned())
    } else {
        Err((value.line, Problem::Namespace(namespace.to_owned())))
    }
}

fn metadata(object: &Node, faults: &mut Vec<Fault>) {
    for field in ["labels", "annotations"] {
        let value = object.get("metadata").and_then(|metadata| metadata.get(field));
        let entries = strings(value, &format!("metadata.{field}"), Nulls::Wrong, faults);
        if field == "labels"
            && let Some(entry) = entries.and_then(|entries| entries.get(PART_OF))
        {
            faults.push((entry.line, Problem::PartOf));
        }
    }
}

/// The fields of `ConfigMap` and Secret that hold strings by key. The server refuses anything
/// else there, after other objects are written.
fn data(object: &Node, kind: &str, faults: &mut Vec<Fault>) {
    let fields = match kind {
        "ConfigMap" => ["data", "binaryData"],
        "Secret" => ["data", "stringData"],
        _ => return,
    };
    for field in fields {
        let entries = strings(object.get(field), field, Nulls::Taken, faults);
        let is_encoded = (kind, field) != ("ConfigMap", "data") && field != "stringData";
        for (key, entry) in entries.into_iter().flatten().filter(|_| is_encoded) {
            if faults.len() > MOST_FAULTS {
                break;
            }
            if entry.value.as_str().is_some_and(|text| !is_base64(text)) {
                let field = format!("{field}[{key:?}]");
                faults.push((entry.value.line, Problem::NotBase64 { field }));
            }
        }
    }
}

/// As the server decodes it (Go's `base64.StdEncoding`): line breaks do not count, padding does,
/// and the bits that no byte needs may be anything.
fn is_base64(text: &str) -> bool {
    const GO: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    GO.decode(text.replace(['\r', '\n'], "")).is_ok()
}

/// What null is among strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nulls {
    /// As good as an empty string.
    Taken,
    /// No string.
    Wrong,
}

/// The entries of a mapping from strings to strings, and what is wrong with it. `None` where
/// it is none, or not there.
fn strings<'node>(
    value: Option<&'node Node>,
    field: &str,
    nulls: Nulls,
    faults: &mut Vec<Fault>,
) -> Option<&'node BTreeMap<String, Entry>> {
    let value = value.filter(|value| !value.is_null())?;
    let Content::Mapping(entries) = &value.content else {
        faults.push(wrong_type(value, field, "mapping"));
        return None;
    };
    for (key, entry) in entries {
        if faults.len() > MOST_FAULTS {
            break;
        }
        let is_taken = nulls == Nulls::Taken && entry.value.is_null();
        if !is_taken && entry.value.as_str().is_none() {
            faults.push(wrong_type(&entry.value, format!("{field}[{key:?}]"), "string"));
        }
    }
    Some(entries)
}

fn escaped(message: &str) -> String {
    message
        .chars()
        .flat_map(char::escape_debug)
        .collect::<String>()
        .replace("\\\"", "\"")
}

#[cfg(test)]
mod tests;
