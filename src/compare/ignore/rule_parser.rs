//! Reads ignore rules: Flux's `spec.ignore` and Argo CD's `spec.ignoreDifferences`, as a list, under their
//! names, or in a Kustomization or an Application.

use kubernetes_yaml::Node;
use regex::Regex;

use super::target::{
    Expressions, LONGEST_EXPRESSION, MAX_BYTES_OF_EXPRESSIONS, RuleTarget, flux_pattern_to_regex,
    glob_to_regex, literal_to_regex,
};
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
    #[error("{field} {pattern:?} is not a regular expression{reason}")]
    Pattern {
        field: &'static str,
        pattern: String,
        /// Empty, or the reason after a colon.
        reason: String,
    },
    /// A pattern of Argo CD has characters that are not supported.
    #[error(
        "{field} {pattern:?}: only * and ? are supported in patterns of Argo CD; write a rule with paths and target"
    )]
    Glob { field: &'static str, pattern: String },
    /// The compiled expressions of all conditions of a file take too much memory.
    #[error(
        "{0}: the regular expressions of the file take more than {max} MiB of memory",
        max = MAX_BYTES_OF_EXPRESSIONS >> 20
    )]
    TooLarge(&'static str),
    /// A condition is too long.
    #[error("{field}: the regular expression has {bytes} bytes, more than {LONGEST_EXPRESSION}")]
    TooLong { field: &'static str, bytes: usize },
    /// A condition is not a label selector.
    #[error("{0}")]
    Selector(#[from] SelectorError),
    /// A rule of Argo CD has `jqPathExpressions` or `managedFieldsManagers`, which only Argo CD evaluates.
    #[error(
        "{0} is not supported: write the fields as JSON pointers, for example jsonPointers: [/spec/replicas]"
    )]
    NotSupported(&'static str),
}

impl IgnoreFileError {
    /// Returns what to do about the fault.
    pub fn hint(&self) -> &'static str {
        match self.fault {
            Fault::Rule(IgnoreFault::TooLarge(_)) => {
                "use fewer rules, or expressions without large counts and classes, such as \\pL{100}"
            }
            Fault::Rule(IgnoreFault::TooLong { .. }) => {
                "shorten it, or write several rules, or select the objects by labelSelector"
            }
            _ => "write rules as in Flux's spec.ignore: paths (JSON pointers) and target",
        }
    }
}

const FORMAT: RuleFormat = RuleFormat {
    list_fields: &["ignore", "ignoreDifferences"],
    expected: "a list, or have ignore or ignoreDifferences at the top level or in spec",
};

pub(super) fn read(text: &str) -> Outcome<IgnoreRules> {
    let mut rules = Vec::new();
    let mut expressions = Expressions::default();
    FORMAT.for_each_rule(text, |item| {
        let is_of_argo_cd = FIELDS_ONLY_OF_ARGO_CD
            .iter()
            .any(|field| item.get(field).is_some());
        rules.push(if is_of_argo_cd {
            read_argo_cd_rule(item, &mut expressions)?
        } else {
            read_flux_rule(item, &mut expressions)?
        });
        Ok(())
    })?;
    Ok(IgnoreRules { rules })
}

/// Reads a rule of Flux (`IgnoreRule` of kustomize-controller). A rule without a target is for all objects.
fn read_flux_rule(item: &Node, expressions: &mut Expressions) -> Outcome<IgnoreRule> {
    rule_file::check_no_unknown_field(item, &["paths", "target"], "a rule has paths and target")?;
    let target = match item.get("target") {
        None => RuleTarget::default(),
        Some(target) if target.is_null() => RuleTarget::default(),
        Some(target) if target.is_mapping() => read_flux_target(target, expressions)?,
        Some(other) => return Err(rule_file::wrong_type(other, "target", "a mapping")),
    };
    read_rule_with_paths(item, "paths", target)
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

fn read_flux_target(target: &Node, expressions: &mut Expressions) -> Outcome<RuleTarget> {
    rule_file::check_no_unknown_field(
        target,
        &TARGET_FIELDS,
        "a target has group, version, kind, name, namespace, labelSelector and annotationSelector",
    )?;
    let mut read_regex =
        |field: &'static str| read_pattern(target, field, flux_pattern_to_regex, expressions);
    Ok(RuleTarget {
        group: read_regex("group")?,
        version: read_regex("version")?,
        kind: read_regex("kind")?,
        name: read_regex("name")?,
        namespace: read_regex("namespace")?,
        labels: read_selector(target, "labelSelector")?,
        annotations: read_selector(target, "annotationSelector")?,
    })
}

/// Reads a label selector; `None` if it is missing or empty, so that it matches any object.
fn read_selector(target: &Node, field: &str) -> Outcome<Option<LabelSelector>> {
    let text = rule_file::read_string(target, field)?.filter(|text| !text.is_empty());
    text.map(|text| LabelSelector::parse(text).map_err(|error| error_at_field(target, field, error.into())))
        .transpose()
}

const ARGO_CD_FIELDS: [&str; 7] = [
    "group",
    "kind",
    "name",
    "namespace",
    "jsonPointers",
    "jqPathExpressions",
    "managedFieldsManagers",
];

/// The fields of [`ARGO_CD_FIELDS`] by which a rule is recognized as one of Argo CD: the other fields are also
/// conditions of Flux, though Flux has them in `target`.
const FIELDS_ONLY_OF_ARGO_CD: [&str; 3] = ["jsonPointers", "jqPathExpressions", "managedFieldsManagers"];

/// Reads a rule of Argo CD (`ResourceIgnoreDifferences`): group and kind are globs, and a missing group is the core
/// group.
fn read_argo_cd_rule(item: &Node, expressions: &mut Expressions) -> Outcome<IgnoreRule> {
    rule_file::check_no_unknown_field(
        item,
        &ARGO_CD_FIELDS,
        "a rule has group, kind, name, namespace and jsonPointers",
    )?;
    for field in ["jqPathExpressions", "managedFieldsManagers"] {
        // An empty list changes nothing.
        let list = item.get(field);
        if list.is_some_and(|list| list.items().is_none_or(|items| !items.is_empty())) {
            return Err(error_at_field(item, field, IgnoreFault::NotSupported(field)));
        }
    }
    for field in ["group", "kind"] {
        let pattern = rule_file::read_string(item, field)?
            .unwrap_or_default()
            .to_owned();
        if pattern.contains(['[', ']', '{', '}', '\\']) {
            return Err(error_at_field(item, field, IgnoreFault::Glob { field, pattern }));
        }
    }
    let group = rule_file::read_string(item, "group")?.map_or_else(|| "^$".to_owned(), glob_to_regex);
    let kind = rule_file::read_string(item, "kind")?
        .map(glob_to_regex)
        .ok_or_else(|| error_at(item, Fault::Missing("kind")))?;
    let target = RuleTarget {
        group: Some(compile(item, "group", &group, expressions)?),
        kind: Some(compile(item, "kind", &kind, expressions)?),
        name: read_pattern(item, "name", literal_to_regex, expressions)?,
        namespace: read_pattern(item, "namespace", literal_to_regex, expressions)?,
        ..RuleTarget::default()
    };
    read_rule_with_paths(item, "jsonPointers", target)
}

/// Reads a condition that is a pattern; `None` if any text meets the condition. `to_expression` turns the pattern into
/// a regular expression, or returns `None` for a pattern that any text matches.
fn read_pattern(
    item: &Node,
    field: &'static str,
    to_expression: impl Fn(&str) -> Option<String>,
    expressions: &mut Expressions,
) -> Outcome<Option<Regex>> {
    rule_file::read_string(item, field)?
        .and_then(to_expression)
        .map(|expression| compile(item, field, &expression, expressions))
        .transpose()
}

fn compile(
    item: &Node,
    field: &'static str,
    expression: &str,
    expressions: &mut Expressions,
) -> Outcome<Regex> {
    if expression.len() > LONGEST_EXPRESSION {
        let bytes = expression.len();
        return Err(error_at_field(item, field, IgnoreFault::TooLong { field, bytes }));
    }
    expressions
        .compile_within_memory_limit(expression)
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => error_at_field(item, field, IgnoreFault::TooLarge(field)),
            error => invalid_pattern(item, field, &error),
        })
}

/// Returns the error that the pattern in a field is not a regular expression.
fn invalid_pattern(item: &Node, field: &'static str, error: &regex::Error) -> IgnoreFileError {
    let pattern = item
        .get(field)
        .and_then(Node::as_str)
        .unwrap_or_default()
        .to_owned();
    // The message of the parser has several lines: the pattern, a mark, and the reason.
    let message = error.to_string();
    let reason = message
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("error: "))
        .map_or_else(String::new, |reason| format!(": {reason}"));
    let fault = IgnoreFault::Pattern {
        field,
        pattern,
        reason,
    };
    error_at_field(item, field, fault)
}

/// Reads the paths of a rule, which are in `field`, and returns the rule.
fn read_rule_with_paths(item: &Node, field: &'static str, target: RuleTarget) -> Outcome<IgnoreRule> {
    let mut paths = Vec::new();
    for (text, node) in rule_file::read_strings(item, field)? {
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
        return Err(error_at(item, Fault::Missing(field)));
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
