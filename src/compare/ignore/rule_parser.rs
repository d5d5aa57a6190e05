//! Reads ignore rules: Flux's `spec.ignore`, as a list, under its name, or in a Kustomization.

use kubernetes_yaml::Node;
use regex::Regex;

use super::target::{RuleTarget, compile_whole_text_pattern};
use super::{IgnoreRule, IgnoreRules, IgnoredField};
use crate::compare::rule_file::{self, Fault, RuleFormat, error_at};
use crate::model::applyset::parent::is_applyset_key;
use crate::model::label_selector::{LabelSelector, SelectorError};
use crate::model::pointer::{Pointer, PointerError};

/// A fault in a file of ignore rules, with its line.
pub type IgnoreFileError = rule_file::RuleFileError<IgnoreFault>;

type Outcome<T> = Result<T, IgnoreFileError>;

/// The faults of an ignore rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IgnoreFault {
    /// A path is not a JSON pointer.
    #[error("{0}")]
    Pointer(#[from] PointerError),
    /// A path names a field that no rule may ignore, such as one that identifies the object or the set.
    #[error("{path:?} cannot be ignored: {reason}")]
    Never { path: String, reason: &'static str },
    /// A condition is not a regular expression.
    #[error("{field} {pattern:?} is not a regular expression: {reason}")]
    Pattern {
        field: &'static str,
        pattern: String,
        reason: String,
    },
    /// A condition is not a label selector.
    #[error("{0}")]
    Selector(#[from] SelectorError),
}

/// The hint for a file that is not valid.
pub const HOW_TO_WRITE_RULES: &str = "write rules as in Flux's spec.ignore: paths (JSON pointers) and target";

const FORMAT: RuleFormat = RuleFormat {
    list_field: "ignore",
    expected: "a list, or have ignore at the top level or in spec",
};

pub(super) fn read(text: &str) -> Outcome<IgnoreRules> {
    let mut rules = Vec::new();
    FORMAT.for_each_rule(text, |item| {
        rules.push(read_rule(item)?);
        Ok(())
    })?;
    Ok(IgnoreRules { rules })
}

/// Reads a rule of Flux (`IgnoreRule` of kustomize-controller). A rule without a target is for all objects.
fn read_rule(item: &Node) -> Outcome<IgnoreRule> {
    rule_file::check_no_unknown_field(item, &["paths", "target"], "a rule has paths and target")?;
    let target = match item.get("target") {
        None => RuleTarget::default(),
        Some(target) if target.is_null() => RuleTarget::default(),
        Some(target) if target.is_mapping() => read_target(target)?,
        Some(other) => return Err(rule_file::wrong_type(other, "target", "a mapping")),
    };
    read_rule_with_paths(item, target)
}

const TARGET_FIELDS: [&str; 7] = [
    "group",
    "version",
    "kind",
    "name",
    "namespace",
    "labelSelector",
    "annotationSelector",
];

fn read_target(target: &Node) -> Outcome<RuleTarget> {
    rule_file::check_no_unknown_field(
        target,
        &TARGET_FIELDS,
        "a target has group, version, kind, name, namespace, labelSelector and annotationSelector",
    )?;
    Ok(RuleTarget {
        group: read_pattern(target, "group")?,
        version: read_pattern(target, "version")?,
        kind: read_pattern(target, "kind")?,
        name: read_pattern(target, "name")?,
        namespace: read_pattern(target, "namespace")?,
        labels: read_selector(target, "labelSelector")?,
        annotations: read_selector(target, "annotationSelector")?,
    })
}

/// Reads a label selector; `None` if it is missing or empty, so that it matches any object.
fn read_selector(target: &Node, field: &str) -> Outcome<Option<LabelSelector>> {
    match rule_file::read_string(target, field)? {
        None | Some("") => Ok(None),
        Some(text) => LabelSelector::parse(text)
            .map(Some)
            .map_err(|error| error_at_field(target, field, error.into())),
    }
}

/// Reads a condition that is a regular expression for the whole text; `None` if any text meets it.
fn read_pattern(target: &Node, field: &'static str) -> Outcome<Option<Regex>> {
    let pattern = rule_file::read_string(target, field)?.filter(|pattern| !pattern.is_empty());
    let compiled = pattern.map(|pattern| {
        compile_whole_text_pattern(pattern).map_err(|reason| {
            let pattern = pattern.to_owned();
            let fault = IgnoreFault::Pattern {
                field,
                pattern,
                reason,
            };
            error_at_field(target, field, fault)
        })
    });
    compiled.transpose()
}

/// Reads the paths of a rule, and returns the rule.
fn read_rule_with_paths(item: &Node, target: RuleTarget) -> Outcome<IgnoreRule> {
    let mut paths = Vec::new();
    for (text, node) in rule_file::read_strings(item, "paths")? {
        let pointer =
            Pointer::parse(text).map_err(|error| error_at(node, Fault::Rule(IgnoreFault::Pointer(error))))?;
        if let Some(reason) = reason_not_to_ignore(&pointer) {
            let path = text.to_owned();
            return Err(error_at(node, Fault::Rule(IgnoreFault::Never { path, reason })));
        }
        let line = node.position().line();
        paths.push(IgnoredField { pointer, line });
    }
    if paths.is_empty() {
        return Err(error_at(item, Fault::Missing("paths")));
    }
    Ok(IgnoreRule {
        line: item.position().line(),
        target,
        paths,
    })
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

/// Returns an error about the value of a field, or about the rule if the field is missing.
fn error_at_field(item: &Node, field: &str, fault: IgnoreFault) -> IgnoreFileError {
    error_at(item.get(field).unwrap_or(item), Fault::Rule(fault))
}
