//! Reads rules: a list, a mapping with `healthCheckExprs`, or a Kustomization or `HelmRelease` of
//! Flux that has them in its spec.

use std::collections::BTreeMap;

use kubernetes_yaml::Node;

use super::expression::ExpressionError;
use super::{Clause, KindRule, Origin, RuleSet};
use crate::compare::rule_file::{self, Fault, RuleFormat, fault_at};

/// The fault of a file of status rules, with its line.
pub type RuleFileError = rule_file::RuleFileError<RuleFault>;

/// The faults of a status rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleFault {
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

impl RuleFileError {
    /// Returns what to do about the fault.
    pub fn hint(&self) -> &'static str {
        match self.fault {
            Fault::Rule(RuleFault::Expression(..)) => {
                "change the expression: it may use the functions of CEL and cel-go's strings, sets and encoders, but no timestamp or duration"
            }
            _ => "write each rule as Flux's healthCheckExprs: apiVersion, kind, current, inProgress, failed",
        }
    }
}

const FORMAT: RuleFormat = RuleFormat {
    names: &["healthCheckExprs"],
    described: "a list, healthCheckExprs or spec.healthCheckExprs",
};

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
    FORMAT.read(text, |item| {
        let (group, rule) = rule(item, &origin, check)?;
        let name = name_of(&group, rule.kind.as_deref());
        let line = item.position().line();
        if let Some(before) = lines.insert(name.clone(), line) {
            return Err(fault_at(item, Fault::Rule(RuleFault::Duplicate(name, before))));
        }
        rules.by_group.entry(group).or_default().push(rule);
        Ok(())
    })?;
    Ok(rules)
}

const FIELDS: [&str; 5] = ["apiVersion", "kind", "current", "inProgress", "failed"];

fn rule(
    item: &Node,
    origin: &impl Fn(usize, &str) -> Origin,
    check: Check,
) -> Result<(String, KindRule), RuleFileError> {
    rule_file::only_fields(
        item,
        &FIELDS,
        "a rule has apiVersion, kind, current, inProgress and failed",
    )?;
    let Some(api_version) = rule_file::text(item, "apiVersion")? else {
        return Err(fault_at(item, Fault::Missing("apiVersion")));
    };
    // The version does not matter; the core group is `v1`.
    let group = match api_version.rsplit_once('/') {
        Some((group, _)) => group.to_owned(),
        None if api_version.starts_with('v') => String::new(),
        None => {
            return Err(fault_at(
                item,
                Fault::Rule(RuleFault::NoGroup(api_version.to_owned())),
            ));
        }
    };
    let kind = rule_file::text(item, "kind")?.filter(|kind| !kind.is_empty());
    let Some(current) = clause(item, "current", check)? else {
        return Err(fault_at(item, Fault::Missing("current")));
    };
    let name = name_of(&group, kind);
    let rule = KindRule {
        kind: kind.map(str::to_owned),
        origin: origin(item.position().line(), &name),
        in_progress: clause(item, "inProgress", check)?,
        failed: clause(item, "failed", check)?,
        current,
    };
    Ok((group, rule))
}

fn clause(item: &Node, name: &'static str, check: Check) -> Result<Option<Clause>, RuleFileError> {
    let Some(expression) = rule_file::text(item, name)? else {
        return Ok(None);
    };
    if check == Check::Now
        && let Err(error) = super::Expression::compile(expression)
    {
        let node = item.get(name).unwrap_or(item);
        return Err(fault_at(node, Fault::Rule(RuleFault::Expression(name, error))));
    }
    Ok(Some(Clause::new(expression)))
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
