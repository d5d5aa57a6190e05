//! Reads status rules: a list, a mapping with `healthCheckExprs`, or a Kustomization or `HelmRelease` of
//! Flux that has them in its spec.

use std::collections::BTreeMap;

use kubernetes_yaml::Node;

use super::expression::ExpressionError;
use super::{Clause, KindRule, RuleOrigin, RuleSet};
use crate::compare::rule_file::{self, Fault, RuleFormat, error_at};

/// A fault in a file of status rules, with its line.
pub type RuleFileError = rule_file::RuleFileError<RuleFault>;

/// The faults of a status rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleFault {
    /// The version has no group.
    #[error("apiVersion {0:?} has no group")]
    NoGroup(String),
    /// There are two rules for a kind.
    #[error("another rule for {target} is on line {line}")]
    Duplicate {
        /// The kind and group of the rules.
        target: String,
        /// The line of the earlier rule.
        line: usize,
    },
    /// The expression of a field cannot be compiled.
    #[error("{field}: {error}")]
    Expression {
        field: &'static str,
        error: ExpressionError,
    },
}

impl RuleFileError {
    /// Returns what to do about the fault.
    pub fn hint(&self) -> &'static str {
        match self.fault {
            Fault::Rule(RuleFault::Expression { .. }) => {
                "change the expression: it may use the functions of CEL and cel-go's strings, sets and encoders, but no times, and none that make long texts"
            }
            _ => "write each rule as Flux's healthCheckExprs: apiVersion, kind, current, inProgress, failed",
        }
    }
}

const FORMAT: RuleFormat = RuleFormat {
    list_field: "healthCheckExprs",
    expected: "a list, healthCheckExprs or spec.healthCheckExprs",
};

/// The time at which the expressions of rules are compiled, and their faults found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compilation {
    /// When the file is read, so that a fault in the user's file is reported before anything runs.
    Now,
    /// When an expression is first needed, because compiling all built-in rules takes time. A test compiles them all.
    WhenNeeded,
}

/// Reads a rule file. `origin` makes the origin of a rule of its line and its target (`Certificate.cert-manager.io`).
pub(super) fn read(
    text: &str,
    origin: impl Fn(usize, &str) -> RuleOrigin,
    compilation: Compilation,
) -> Result<RuleSet, RuleFileError> {
    let mut rules = RuleSet::default();
    let mut lines_of_targets = BTreeMap::new();
    FORMAT.for_each_rule(text, |item| {
        let (group, rule) = read_rule(item, &origin, compilation)?;
        let target = describe_target(&group, rule.kind.as_deref());
        let line = item.position().line();
        if let Some(line) = lines_of_targets.insert(target.clone(), line) {
            return Err(error_at(item, Fault::Rule(RuleFault::Duplicate { target, line })));
        }
        rules.by_group.entry(group).or_default().push(rule);
        Ok(())
    })?;
    Ok(rules)
}

const FIELDS: [&str; 5] = ["apiVersion", "kind", "current", "inProgress", "failed"];

/// Reads a rule, and returns the API group that it is for with it.
fn read_rule(
    item: &Node,
    origin: &impl Fn(usize, &str) -> RuleOrigin,
    compilation: Compilation,
) -> Result<(String, KindRule), RuleFileError> {
    rule_file::check_no_unknown_field(
        item,
        &FIELDS,
        "a rule has apiVersion, kind, current, inProgress and failed",
    )?;
    let Some(api_version) = rule_file::read_string(item, "apiVersion")? else {
        return Err(error_at(item, Fault::Missing("apiVersion")));
    };
    // A rule is for all versions of its group. `v1` is the core group, whose name is empty.
    let group = match api_version.rsplit_once('/') {
        Some((group, _)) => group.to_owned(),
        None if api_version.starts_with('v') => String::new(),
        None => {
            return Err(error_at(
                item,
                Fault::Rule(RuleFault::NoGroup(api_version.to_owned())),
            ));
        }
    };
    let kind = rule_file::read_string(item, "kind")?.filter(|kind| !kind.is_empty());
    let Some(current) = read_clause(item, "current", compilation)? else {
        return Err(error_at(item, Fault::Missing("current")));
    };
    let target = describe_target(&group, kind);
    let rule = KindRule {
        kind: kind.map(str::to_owned),
        origin: origin(item.position().line(), &target),
        in_progress: read_clause(item, "inProgress", compilation)?,
        failed: read_clause(item, "failed", compilation)?,
        current,
    };
    Ok((group, rule))
}

/// Reads a field that holds an expression; `None` if the rule does not have the field.
fn read_clause(
    item: &Node,
    field: &'static str,
    compilation: Compilation,
) -> Result<Option<Clause>, RuleFileError> {
    let Some(expression) = rule_file::read_string(item, field)? else {
        return Ok(None);
    };
    if compilation == Compilation::Now
        && let Err(error) = super::Expression::compile(expression)
    {
        let node = item.get(field).unwrap_or(item);
        return Err(error_at(
            node,
            Fault::Rule(RuleFault::Expression { field, error }),
        ));
    }
    Ok(Some(Clause::new(expression)))
}

/// Returns the kind and group that a rule is for, as in `Certificate.cert-manager.io`; the group alone if the rule is
/// for all kinds of the group.
fn describe_target(group: &str, kind: Option<&str>) -> String {
    match (kind, group) {
        (Some(kind), "") => kind.to_owned(),
        (Some(kind), group) => format!("{kind}.{group}"),
        (None, "") => "v1".to_owned(),
        (None, group) => group.to_owned(),
    }
}
