//! Reads status rules: a list, a mapping with `healthCheckExprs`, or a Kustomization or `HelmRelease` of
//! Flux that has them in its spec.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Clause, KindRule, RuleOrigin, RuleSet};
use crate::compare::rule_file::{RuleFileError, RuleFormat};

/// The hint for a file that is not valid.
pub const HOW_TO_WRITE_RULES: &str =
    "write each rule as Flux's healthCheckExprs: apiVersion, kind, current, inProgress, failed";

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

/// A rule of Flux (`CustomHealthCheck` of kustomize-controller).
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    rename_all = "camelCase",
    expecting = "a mapping with apiVersion and current"
)]
struct RuleFields {
    api_version: String,
    /// Empty if the rule is for all kinds of the group.
    #[serde(default)]
    kind: String,
    current: String,
    #[serde(default)]
    in_progress: Option<String>,
    #[serde(default)]
    failed: Option<String>,
}

/// Reads a rule file. `origin` makes the origin of a rule of its line and its target (`Certificate.cert-manager.io`).
pub(super) fn read(
    text: &str,
    origin: impl Fn(usize, &str) -> RuleOrigin,
    compilation: Compilation,
) -> Result<RuleSet, RuleFileError> {
    let mut rules = RuleSet::default();
    let mut lines_of_targets = BTreeMap::new();
    FORMAT.for_each_rule(text, |line, fields: RuleFields| {
        let group = read_group(&fields.api_version)?;
        let kind = Some(fields.kind).filter(|kind| !kind.is_empty());
        let target = describe_target(&group, kind.as_deref());
        if let Some(line) = lines_of_targets.insert(target.clone(), line) {
            return Err(format!("another rule for {target} is on line {line}"));
        }
        let rule = KindRule {
            kind,
            origin: origin(line, &target),
            in_progress: fields
                .in_progress
                .map(|text| read_clause("inProgress", &text, compilation))
                .transpose()?,
            failed: fields
                .failed
                .map(|text| read_clause("failed", &text, compilation))
                .transpose()?,
            current: read_clause("current", &fields.current, compilation)?,
        };
        rules.by_group.entry(group).or_default().push(rule);
        Ok(())
    })?;
    Ok(rules)
}

/// Returns the group of an API version: a rule is for all versions of its group. `v1` is the core group, whose name is
/// empty.
fn read_group(api_version: &str) -> Result<String, String> {
    match api_version.rsplit_once('/') {
        Some((group, _)) => Ok(group.to_owned()),
        None if api_version.starts_with('v') => Ok(String::new()),
        None => Err(format!("apiVersion {api_version:?} has no group")),
    }
}

/// Reads the expression of a field.
fn read_clause(field: &str, text: &str, compilation: Compilation) -> Result<Clause, String> {
    if compilation == Compilation::Now {
        super::Expression::compile(text).map_err(|error| format!("{field}: {error}"))?;
    }
    Ok(Clause::new(text))
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
