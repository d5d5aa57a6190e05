//! Reads rules: a list, a mapping with `healthCheckExprs`, or a Kustomization or `HelmRelease` of
//! Flux that has them in its spec.

use std::collections::BTreeMap;

use kubernetes_yaml::Node;

use super::expression::ExpressionError;
use super::{Clause, Origin, Rule, RuleSet};

/// The fault of a file of rules, with its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct RuleFileError {
    /// The line, if the fault has one.
    pub line: Option<usize>,
    /// The fault.
    pub fault: Fault,
}

/// The faults of a file of rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It is not YAML.
    #[error("{0}")]
    Yaml(String),
    /// It holds no rules.
    #[error("no rules: must be a list, healthCheckExprs or spec.healthCheckExprs")]
    NoRules,
    /// A value has another type.
    #[error("{0} is {1}, not {2}")]
    Type(String, &'static str, &'static str),
    /// A field is missing.
    #[error("a rule without {0}")]
    Missing(&'static str),
    /// A field that rules do not have.
    #[error("unknown field {0:?}; a rule has apiVersion, kind, current, inProgress and failed")]
    UnknownField(String),
    /// The version has no group.
    #[error("apiVersion {0:?} has no group")]
    NoGroup(String),
    /// There are two rules for a kind.
    #[error("another rule for {0} is on line {1}")]
    Duplicate(String, usize),
    /// An expression cannot be compiled.
    #[error("{0}: {1}")]
    Expression(&'static str, ExpressionError),
}

/// The time at which expressions are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    Now,
    /// When they are first needed; a test compiles all.
    Later,
}

pub(super) fn read(
    text: &str,
    origin: impl Fn(usize, &str) -> Origin,
    check: Check,
) -> Result<RuleSet, RuleFileError> {
    let mut rules = RuleSet::default();
    let mut lines = BTreeMap::new();
    let mut has_rules = false;
    for document in kubernetes_yaml::documents(text) {
        let document = document.map_err(|errors| RuleFileError {
            line: None,
            fault: Fault::Yaml(errors.to_string()),
        })?;
        let Some(list) = list_of(&document) else { continue };
        let items = list.items().ok_or_else(|| {
            at(
                list,
                Fault::Type("healthCheckExprs".to_owned(), list.description(), "a list"),
            )
        })?;
        for item in items {
            let (group, rule) = rule(item, &origin, check)?;
            has_rules = true;
            let name = name_of(&group, rule.kind.as_deref());
            let line = item.position().line();
            if let Some(before) = lines.insert(name.clone(), line) {
                return Err(at(item, Fault::Duplicate(name, before)));
            }
            rules.by_group.entry(group).or_default().push(rule);
        }
    }
    if has_rules {
        Ok(rules)
    } else {
        Err(RuleFileError {
            line: None,
            fault: Fault::NoRules,
        })
    }
}

/// The list of rules of a document, if it has one.
fn list_of(document: &Node) -> Option<&Node> {
    if document.items().is_some() {
        return Some(document);
    }
    let inner = document.get("healthCheckExprs");
    inner.or_else(|| document.get("spec")?.get("healthCheckExprs"))
}

/// The fields of a rule.
const FIELDS: [&str; 5] = ["apiVersion", "kind", "current", "inProgress", "failed"];

fn rule(
    item: &Node,
    origin: &impl Fn(usize, &str) -> Origin,
    check: Check,
) -> Result<(String, Rule), RuleFileError> {
    if !item.is_mapping() {
        return Err(at(
            item,
            Fault::Type("a rule".to_owned(), item.description(), "a mapping"),
        ));
    }
    if let Some((name, entry)) = item.entries().find(|(name, _)| !FIELDS.contains(&name.as_str())) {
        return Err(RuleFileError {
            line: Some(entry.position().line()),
            fault: Fault::UnknownField(name.clone()),
        });
    }
    let text = |name: &'static str| match item.get(name) {
        None => Ok(None),
        Some(value) => match value.as_str() {
            Some(text) => Ok(Some(text)),
            None => Err(at(
                value,
                Fault::Type(name.to_owned(), value.description(), "a string"),
            )),
        },
    };
    let needed = |name: &'static str| text(name)?.ok_or_else(|| at(item, Fault::Missing(name)));
    let clause = |name: &'static str| {
        let Some(expression) = text(name)? else {
            return Ok(None);
        };
        let clause = Clause::new(expression);
        if check == Check::Now
            && let Err(error) = super::Expression::compile(expression)
        {
            let node = item.get(name).unwrap_or(item);
            return Err(at(node, Fault::Expression(name, error)));
        }
        Ok(Some(clause))
    };
    let api_version = needed("apiVersion")?;
    // The version does not matter; the core group is `v1`.
    let group = match api_version.rsplit_once('/') {
        Some((group, _)) => group.to_owned(),
        None if api_version.starts_with('v') => String::new(),
        None => return Err(at(item, Fault::NoGroup(api_version.to_owned()))),
    };
    let kind = text("kind")?.filter(|kind| !kind.is_empty()).map(str::to_owned);
    let current = clause("current")?.ok_or_else(|| at(item, Fault::Missing("current")))?;
    let name = name_of(&group, kind.as_deref());
    let rule = Rule {
        kind,
        origin: origin(item.position().line(), &name),
        in_progress: clause("inProgress")?,
        failed: clause("failed")?,
        current,
    };
    Ok((group, rule))
}

/// `Certificate.cert-manager.io`, or the group alone.
fn name_of(group: &str, kind: Option<&str>) -> String {
    match (kind, group) {
        (Some(kind), "") => kind.to_owned(),
        (Some(kind), group) => format!("{kind}.{group}"),
        (None, "") => "v1".to_owned(),
        (None, group) => group.to_owned(),
    }
}

fn at(node: &Node, fault: Fault) -> RuleFileError {
    RuleFileError {
        line: Some(node.position().line()),
        fault,
    }
}
