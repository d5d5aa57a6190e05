//! What can be said against an object without asking a cluster.
//!
//! Takes nodes, flattens lists, and makes manifests. Whether a kind exists, is namespaced,
//! or is named twice is for later stages.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize as _;
use serde_json::Value;

use super::error::Problem;
use super::node::{Content, Entry, Node};
use super::scalar::Scalar;
use super::yaml::Fault;
use super::{Manifest, Position, Source};
use crate::identity::GroupVersionKind;
use crate::object::Object;

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
        strings(object.get(field), field, Nulls::Taken, faults);
    }
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
mod tests {
    use super::super::{Manifest, ManifestErrors, Recursion, Source, read_with};

    fn read(text: &str) -> Result<Vec<Manifest>, ManifestErrors> {
        read_with(&[Source::StandardInput], Recursion::Flat, text.as_bytes())
    }

    /// The errors of a text, one per line, without hints.
    fn errors(text: &str) -> Vec<String> {
        let errors = read(text).expect_err("the text is wrong");
        errors.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_manifest_tells_its_identity_and_its_line() {
        let text = "# first\n---\n\n# why\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  \
                    name: web\n  namespace: shop\nstatus: {}\n---\napiVersion: v1\nkind: Node\n\
                    metadata: {name: 'a:b', namespace: ''}\n";
        let manifests = read(text).expect("the text is right");
        let seen: Vec<_> = manifests
            .iter()
            .map(|manifest| {
                (
                    manifest.gvk.api_version(),
                    manifest.gvk.kind.as_str(),
                    manifest.namespace.as_deref(),
                    manifest.name.as_str(),
                    manifest.position.to_string(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                (
                    "apps/v1".to_owned(),
                    "Deployment",
                    Some("shop"),
                    "web",
                    "standard input:5".to_owned()
                ),
                (
                    "v1".to_owned(),
                    "Node",
                    None,
                    "a:b",
                    "standard input:12".to_owned()
                ),
            ]
        );
        assert!(manifests[0].object.value().get("status").is_some());
    }

    #[test]
    fn lists_are_flattened_and_their_items_keep_their_lines() {
        let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  \
                    metadata: {name: a}\n- apiVersion: v1\n  kind: ConfigMapList\n  items:\n  \
                    - metadata: {name: b}\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: c}\n";
        let manifests = read(text).expect("the text is right");
        let seen: Vec<_> = manifests
            .iter()
            .map(|manifest| {
                (
                    manifest.gvk.kind.as_str(),
                    manifest.name.as_str(),
                    manifest.position.line,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [("Secret", "a", 4), ("Secret", "c", 11), ("ConfigMap", "b", 10)]
        );
        assert_eq!(manifests[2].object.value()["apiVersion"], "v1");
    }

    #[test]
    fn what_is_no_object_is_told_with_its_line() {
        let table = [
            ("- a\n", "1: a list is not a Kubernetes object"),
            ("\n\nhello\n", "3: a string is not a Kubernetes object"),
            ("kind: A\nmetadata: {name: a}", "1: apiVersion is missing"),
            (
                "apiVersion: ''\nkind: A\nmetadata: {name: a}",
                "1: apiVersion is missing",
            ),
            (
                "apiVersion: 1\nkind: A\nmetadata: {name: a}",
                "1: apiVersion must be a string, this is a number",
            ),
            (
                "apiVersion: a/b/c\nkind: A\nmetadata: {name: a}",
                "1: apiVersion \"a/b/c\" is neither VERSION nor GROUP/VERSION",
            ),
            ("apiVersion: v1\nkind:\nmetadata: {name: a}", "1: kind is missing"),
            (
                "apiVersion: v1\nkind: [A]\nmetadata: {name: a}",
                "2: kind must be a string, this is a list",
            ),
            (
                "apiVersion: v1\nkind: \"a\\e[1m\"\nmetadata: {name: a}",
                "2: kind \"a\\u{1b}[1m\" is not a kind",
            ),
            ("apiVersion: v1\nkind: A\n", "1: metadata.name is missing"),
            (
                "apiVersion: v1\nkind: List\nitems:\n- 5",
                "4: items must be a list of objects, this is a number",
            ),
            (
                "apiVersion: v1\nkind: List\nitems: {}",
                "3: items must be a list of objects, this is a mapping",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(errors(text), [format!("standard input:{expected}")], "{text}");
        }
    }

    #[test]
    fn what_is_wrong_with_metadata_is_told_with_its_line() {
        let thing = |metadata: &str| format!("apiVersion: v1\nkind: Thing\nmetadata: {metadata}\n");
        let long = "a".repeat(64);
        let table = [
            (thing("[]"), "3: metadata must be a mapping, this is a list"),
            (thing("{}"), "3: metadata.name is missing"),
            (thing("{name: ''}"), "3: metadata.name is missing"),
            (
                thing("\n  name: y"),
                "4: metadata.name must be a string, this is a boolean",
            ),
            (
                thing("\n  generateName: a-"),
                "4: metadata.generateName makes a new object of every apply",
            ),
            (
                thing("{name: a/b}"),
                "3: metadata.name \"a/b\" cannot be the name of an object",
            ),
            (
                thing("{name: ..}"),
                "3: metadata.name \"..\" cannot be the name of an object",
            ),
            (
                thing("{name: a%b}"),
                "3: metadata.name \"a%b\" cannot be the name of an object",
            ),
            (
                thing("{name: \"a\\e\\u009b\"}"),
                "3: metadata.name \"a\\u{1b}\\u{9b}\" cannot be the name of an object",
            ),
            (
                thing("{name: a, namespace: 5}"),
                "3: metadata.namespace must be a string, this is a number",
            ),
            (
                thing("{name: a, namespace: Shop}"),
                "3: metadata.namespace \"Shop\" cannot be the name of a namespace",
            ),
            (
                thing("{name: a, namespace: a.b}"),
                "3: metadata.namespace \"a.b\" cannot be the name of a namespace",
            ),
            (
                thing("{name: a, namespace: a-}"),
                "3: metadata.namespace \"a-\" cannot be the name of a namespace",
            ),
            (
                thing(&format!("{{name: a, namespace: {long}}}")),
                &format!("3: metadata.namespace {long:?} cannot be the name of a namespace"),
            ),
            (
                thing("\n  name: a\n  labels:\n    x: 1"),
                "6: metadata.labels[\"x\"] must be a string, this is a number",
            ),
            (
                thing("\n  name: a\n  labels: [x]"),
                "5: metadata.labels must be a mapping, this is a list",
            ),
            (
                thing("\n  name: a\n  annotations:\n    \"\\e\": yes"),
                "6: metadata.annotations[\"\\u{1b}\"] must be a string, this is a boolean",
            ),
            (
                thing("\n  name: a\n  labels:\n    applyset.kubernetes.io/part-of: x"),
                "6: label applyset.kubernetes.io/part-of is already in the manifest",
            ),
            (
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  b: ~\n  a: 1".to_owned(),
                "6: data[\"a\"] must be a string, this is a number",
            ),
            (
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nbinaryData:\n  a: [x]".to_owned(),
                "5: binaryData[\"a\"] must be a string, this is a list",
            ),
            (
                "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  a: true".to_owned(),
                "5: stringData[\"a\"] must be a string, this is a boolean",
            ),
            (
                "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: x".to_owned(),
                "4: data must be a mapping, this is a string",
            ),
            (
                thing("{name: a, finalizers: x}"),
                "1: metadata: invalid type: string \"x\", expected a sequence",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(errors(&text), [format!("standard input:{expected}")], "{text}");
        }
    }

    #[test]
    fn all_errors_are_told_in_reading_order() {
        let text = "kind: A\nmetadata:\n  name: 5\n  labels: {a: 1}\n---\na: b: c\n---\na: 1\na: 2\n\
                    a: 3\n---\napiVersion: v1\nkind: Fine\nmetadata: {name: fine}\n";
        assert_eq!(
            errors(text),
            [
                "standard input:1: apiVersion is missing",
                "standard input:3: metadata.name must be a string, this is a number",
                "standard input:4: metadata.labels[\"a\"] must be a string, this is a number",
                "standard input:6: YAML syntax error: mapping values are not allowed in this context",
                "standard input:9: key \"a\" was already set in line 8",
                "standard input:10: key \"a\" was already set in line 8",
            ]
        );
    }

    #[test]
    fn a_large_text_is_read_as_a_small_one() {
        let expected: Vec<_> = (0..5_000)
            .map(|number| (format!("a{number}"), 5 * number + 2))
            .collect();
        let document = |(name, _): &(String, usize)| {
            format!("---\napiVersion: v1\nkind: Thing\nmetadata:\n  name: {name}\n")
        };
        let text = expected.iter().map(document).collect::<Vec<_>>().concat();
        let manifests = read(&text).expect("the text is right");
        let seen: Vec<_> = manifests
            .into_iter()
            .map(|manifest| (manifest.name, manifest.position.line))
            .collect();
        // The first separator has nothing above it and belongs to its document.
        assert_eq!(seen, expected);

        let wrong = text.replace("99\n", "99: x\n");
        let expected: Vec<_> = (0..50).map(|hundred| 5 * (100 * hundred + 99) + 5).collect();
        let seen: Vec<usize> = errors(&wrong)
            .iter()
            .filter_map(|error| error.split(':').nth(1)?.parse().ok())
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_template_is_called_one() {
        let object = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n";
        let template = "this looks like a template that nobody has rendered";
        for (text, line) in [
            (format!("{object}spec:\n  replicas: {{{{ .Values.x }}}}\n"), 5),
            (format!("{{{{- if .Values.x }}}}\n{object}{{{{- end }}}}\n"), 1),
        ] {
            let expected = format!("standard input:{line}: {template}");
            assert_eq!(errors(&text).first(), Some(&expected), "{text}");
        }
        assert!(read(&format!("{object}spec: \"{{{{ x }}}}\"\n")).is_ok());
    }

    #[test]
    fn an_empty_name_is_told_to_be_empty() {
        let errors = read_with(&[Source::from_argument("")], Recursion::Flat, &b""[..]);
        let errors = errors.expect_err("there is no such file");
        assert_eq!(errors.0[0].to_string(), "\"\": this is no name of a file");
        assert!(errors.0[0].hint().contains("empty"));
    }

    #[test]
    fn a_hint_says_what_to_type() {
        let errors = read("apiVersion: v1\nkind: A\nmetadata: {name: a, labels: {x: 1}}")
            .expect_err("a label is no number");
        assert_eq!(errors.0[0].hint(), "quote it");
        assert!(errors.to_string().ends_with("\n  hint: quote it"));
    }
}
