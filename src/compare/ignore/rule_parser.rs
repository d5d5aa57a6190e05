//! Reads ignore rules: Flux's `spec.ignore`, as a list, under its name, or in a Kustomization.

use regex::Regex;
use serde::Deserialize;

use super::target::{RuleTarget, compile_whole_text_pattern};
use super::{IgnoreRule, IgnoreRules};
use crate::compare::rule_file::{RuleFileError, RuleFormat};
use crate::model::applyset::parent::is_applyset_key;
use crate::model::label_selector::LabelSelector;
use crate::model::pointer::Pointer;

/// The hint for a file that is not valid.
pub const HOW_TO_WRITE_RULES: &str = "write rules as in Flux's spec.ignore: paths (JSON pointers) and target";

const FORMAT: RuleFormat = RuleFormat {
    list_field: "ignore",
    expected: "a list, or have ignore at the top level or in spec",
};

/// A rule of Flux (`IgnoreRule` of kustomize-controller). A rule without a target is for all objects.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a mapping with paths")]
struct RuleFields {
    paths: Vec<String>,
    #[serde(default)]
    target: Option<TargetFields>,
}

/// The target of a rule. An empty condition holds for any object.
#[derive(Default, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "camelCase",
    expecting = "a mapping with conditions"
)]
struct TargetFields {
    group: String,
    version: String,
    kind: String,
    name: String,
    namespace: String,
    label_selector: String,
    annotation_selector: String,
}

pub(super) fn read(text: &str) -> Result<IgnoreRules, RuleFileError> {
    let mut rules = Vec::new();
    FORMAT.for_each_rule(text, |line, fields: RuleFields| {
        if fields.paths.is_empty() {
            return Err("a rule without paths".to_owned());
        }
        rules.push(IgnoreRule {
            line,
            target: read_target(&fields.target.unwrap_or_default())?,
            paths: fields
                .paths
                .iter()
                .map(|path| read_path(path))
                .collect::<Result<_, _>>()?,
        });
        Ok(())
    })?;
    Ok(IgnoreRules { rules })
}

fn read_path(path: &str) -> Result<Pointer, String> {
    let pointer = Pointer::parse(path)?;
    match reason_not_to_ignore(&pointer) {
        None => Ok(pointer),
        Some(reason) => Err(format!("{path:?} cannot be ignored: {reason}")),
    }
}

fn read_target(target: &TargetFields) -> Result<RuleTarget, String> {
    Ok(RuleTarget {
        group: read_pattern("group", &target.group)?,
        version: read_pattern("version", &target.version)?,
        kind: read_pattern("kind", &target.kind)?,
        name: read_pattern("name", &target.name)?,
        namespace: read_pattern("namespace", &target.namespace)?,
        labels: LabelSelector::parse(&target.label_selector)?,
        annotations: LabelSelector::parse(&target.annotation_selector)?,
    })
}

/// Reads a condition that is a regular expression for the whole text; `None` if any text meets it.
fn read_pattern(field: &str, pattern: &str) -> Result<Option<Regex>, String> {
    if pattern.is_empty() {
        return Ok(None);
    }
    compile_whole_text_pattern(pattern)
        .map(Some)
        .map_err(|reason| format!("{field} {pattern:?} is not a regular expression: {reason}"))
}

/// Returns whether a rule may ignore the field.
pub fn may_be_ignored(pointer: &Pointer) -> bool {
    reason_not_to_ignore(pointer).is_none()
}

/// Returns the reason why no rule may ignore a field; `None` if rules may ignore the field.
fn reason_not_to_ignore(pointer: &Pointer) -> Option<&'static str> {
    let segments: Vec<&str> = pointer.segments().iter().map(String::as_str).collect();
    match segments.as_slice() {
        [] => Some("it is the whole object; remove the object from the manifests"),
        ["metadata"] => Some("it holds the name; write /metadata/labels or /metadata/annotations"),
        ["apiVersion" | "kind", ..] | ["metadata", "name" | "namespace" | "generateName", ..] => {
            Some("it identifies the object")
        }
        [
            "metadata",
            "uid" | "resourceVersion" | "managedFields" | "creationTimestamp" | "generation",
            ..,
        ] => Some("the server writes it"),
        ["metadata", "labels" | "annotations", key, ..] if is_applyset_key(key) => {
            Some("it belongs to the ApplySet")
        }
        _ => None,
    }
}
