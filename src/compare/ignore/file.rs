//! Reads rules: Flux's `spec.ignore` and Argo CD's `spec.ignoreDifferences`, as a list, under their
//! names, or in a Kustomization or an Application.

use kubernetes_yaml::Node;
use regex::Regex;

use super::labels::{LabelSelector, SelectorError};
use super::target::{
    Expressions, LONGEST_EXPRESSION, MAX_BYTES_OF_EXPRESSIONS, RuleTarget, anchor, exactly, glob,
};
use super::{IgnoreRule, IgnoreRules, IgnoredField};
use crate::compare::rule_file::{self, Fault, RuleFormat, fault_at};
use crate::model::applyset::parent::is_applyset_key;
use crate::model::pointer::{Pointer, PointerError};

/// The fault of a file of ignore rules, with its line.
pub type IgnoreFileError = rule_file::RuleFileError<IgnoreFault>;

type Outcome<T> = Result<T, IgnoreFileError>;

/// The faults of an ignore rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IgnoreFault {
    /// A path is not a JSON pointer.
    #[error("{0}")]
    Pointer(#[from] PointerError),
    /// A field identifies the object or the set.
    #[error("{0} cannot be ignored: {1}")]
    Never(String, &'static str),
    /// A condition is not a regular expression.
    #[error("{0} {1:?} is not a regular expression{2}")]
    Pattern(&'static str, String, String),
    /// A pattern of Argo CD has signs that are not supported.
    #[error(
        "{0} {1:?}: only * and ? are supported in patterns of Argo CD; write a rule with paths and target"
    )]
    Glob(&'static str, String),
    /// The conditions of a file are too large together.
    #[error(
        "{0}: the regular expressions of the file take more than {max} MiB of memory",
        max = MAX_BYTES_OF_EXPRESSIONS >> 20
    )]
    TooLarge(&'static str),
    /// A condition is too long.
    #[error("{0}: the regular expression has {1} bytes, more than {LONGEST_EXPRESSION}")]
    TooLong(&'static str, usize),
    /// A condition is not a label selector.
    #[error("{0}")]
    Selector(#[from] SelectorError),
    /// A rule of Argo CD has conditions that are evaluated only there.
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
            Fault::Rule(IgnoreFault::TooLong(..)) => {
                "shorten it, or write several rules, or select the objects by labelSelector"
            }
            _ => "write rules as in Flux's spec.ignore: paths (JSON pointers) and target",
        }
    }
}

const FORMAT: RuleFormat = RuleFormat {
    names: &["ignore", "ignoreDifferences"],
    described: "a list, or have ignore or ignoreDifferences at the top level or in spec",
};

const FLUX: &str = "a rule has paths and target";

const TARGET: &str =
    "a target has group, version, kind, name, namespace, labelSelector and annotationSelector";

const ARGO_CD: &str = "a rule has group, kind, name, namespace and jsonPointers";

pub(super) fn read(text: &str) -> Outcome<IgnoreRules> {
    let mut rules = Vec::new();
    let mut expressions = Expressions::default();
    FORMAT.read(text, |item| {
        let is_of_argo_cd = ARGO_CD_FIELDS[4..].iter().any(|name| item.get(name).is_some());
        rules.push(if is_of_argo_cd {
            argo_cd(item, &mut expressions)?
        } else {
            flux(item, &mut expressions)?
        });
        Ok(())
    })?;
    Ok(IgnoreRules { rules })
}

/// Reads a rule of Flux (`IgnoreRule` of kustomize-controller).
fn flux(item: &Node, expressions: &mut Expressions) -> Outcome<IgnoreRule> {
    rule_file::only_fields(item, &["paths", "target"], FLUX)?;
    let target = match item.get("target") {
        None => RuleTarget::default(),
        Some(target) if target.is_null() => RuleTarget::default(),
        Some(target) if target.is_mapping() => flux_target(target, expressions)?,
        Some(other) => return Err(rule_file::wrong_type(other, "target", "a mapping")),
    };
    rule(item, "paths", target)
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

fn flux_target(target: &Node, expressions: &mut Expressions) -> Outcome<RuleTarget> {
    rule_file::only_fields(target, &TARGET_FIELDS, TARGET)?;
    let mut pattern = |name: &'static str| pattern(target, name, anchor, expressions);
    Ok(RuleTarget {
        group: pattern("group")?,
        version: pattern("version")?,
        kind: pattern("kind")?,
        name: pattern("name")?,
        namespace: pattern("namespace")?,
        labels: selector(target, "labelSelector")?,
        annotations: selector(target, "annotationSelector")?,
    })
}

fn selector(target: &Node, name: &str) -> Outcome<Option<LabelSelector>> {
    let text = rule_file::text(target, name)?.filter(|text| !text.is_empty());
    text.map(|text| LabelSelector::parse(text).map_err(|error| fault(target, name, error.into())))
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

/// Reads a rule of Argo CD (`ResourceIgnoreDifferences`): group and kind are globs, and a missing
/// group is the core one.
fn argo_cd(item: &Node, expressions: &mut Expressions) -> Outcome<IgnoreRule> {
    rule_file::only_fields(item, &ARGO_CD_FIELDS, ARGO_CD)?;
    for name in ["jqPathExpressions", "managedFieldsManagers"] {
        let list = item.get(name);
        if list.is_some_and(|list| list.items().is_none_or(|items| !items.is_empty())) {
            return Err(fault(item, name, IgnoreFault::NotSupported(name)));
        }
    }
    for name in ["group", "kind"] {
        let text = rule_file::text(item, name)?.unwrap_or_default();
        if text.contains(['[', ']', '{', '}', '\\']) {
            return Err(fault(item, name, IgnoreFault::Glob(name, text.to_owned())));
        }
    }
    let group = rule_file::text(item, "group")?.map_or_else(|| "^$".to_owned(), glob);
    let kind = rule_file::text(item, "kind")?
        .map(glob)
        .ok_or_else(|| fault_at(item, Fault::Missing("kind")))?;
    let target = RuleTarget {
        group: Some(compile(item, "group", &group, expressions)?),
        kind: Some(compile(item, "kind", &kind, expressions)?),
        name: pattern(item, "name", exactly, expressions)?,
        namespace: pattern(item, "namespace", exactly, expressions)?,
        ..RuleTarget::default()
    };
    rule(item, "jsonPointers", target)
}

/// Reads a condition that is a pattern, which `expression` turns into an expression.
fn pattern(
    item: &Node,
    name: &'static str,
    expression: impl Fn(&str) -> Option<String>,
    expressions: &mut Expressions,
) -> Outcome<Option<Regex>> {
    rule_file::text(item, name)?
        .and_then(expression)
        .map(|expression| compile(item, name, &expression, expressions))
        .transpose()
}

fn compile(
    item: &Node,
    name: &'static str,
    expression: &str,
    expressions: &mut Expressions,
) -> Outcome<Regex> {
    if expression.len() > LONGEST_EXPRESSION {
        return Err(fault(item, name, IgnoreFault::TooLong(name, expression.len())));
    }
    expressions.compile(expression).map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => fault(item, name, IgnoreFault::TooLarge(name)),
        error => not_a_pattern(item, name, &error),
    })
}

fn not_a_pattern(item: &Node, name: &'static str, error: &regex::Error) -> IgnoreFileError {
    let text = item.get(name).and_then(Node::as_str).unwrap_or_default();
    // The message of the parser has several lines: the pattern, a mark, and the reason.
    let message = error.to_string();
    let reason = message
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("error: "));
    let suffix = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    fault(item, name, IgnoreFault::Pattern(name, text.to_owned(), suffix))
}

fn rule(item: &Node, name: &'static str, target: RuleTarget) -> Outcome<IgnoreRule> {
    let mut paths = Vec::new();
    for (text, node) in rule_file::texts(item, name)? {
        let pointer =
            Pointer::parse(text).map_err(|error| fault_at(node, Fault::Rule(IgnoreFault::Pointer(error))))?;
        if let Some(reason) = reason_against(&pointer) {
            return Err(fault_at(
                node,
                Fault::Rule(IgnoreFault::Never(format!("{text:?}"), reason)),
            ));
        }
        let line = node.position().line();
        paths.push(IgnoredField { pointer, line });
    }
    if paths.is_empty() {
        return Err(fault_at(item, Fault::Missing(name)));
    }
    Ok(IgnoreRule {
        line: item.position().line(),
        target,
        paths,
    })
}

/// Returns whether a rule may name the field.
pub fn may_be_ignored(pointer: &Pointer) -> bool {
    reason_against(pointer).is_none()
}

/// Returns the reason why a field cannot be left to others.
fn reason_against(pointer: &Pointer) -> Option<&'static str> {
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

/// Returns a fault of the value of a field.
fn fault(item: &Node, name: &str, error: IgnoreFault) -> IgnoreFileError {
    let line = item.get(name).unwrap_or(item).position().line();
    rule_file::RuleFileError {
        line: Some(line),
        fault: Fault::Rule(error),
    }
}
