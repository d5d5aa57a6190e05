//! Rules for kinds as CEL expressions, in the format of Flux's `healthCheckExprs`.
//!
//! `rules.yaml` holds the built-in rules; `--wait-rules` names a file with more. The expressions of a rule are
//! evaluated in this order: `inProgress`, `failed`, `current`; if none is true, the object is `InProgress`.

mod deadline;
mod expression;
mod inputs;
mod rule_parser;

#[cfg(test)]
mod flux_library_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::Value;

pub use rule_parser::HOW_TO_WRITE_RULES;

use super::State;
use crate::cluster::discovery::{Discovery, KindLookup};
use crate::compare::rule_file::RuleFileError;
use crate::model::identity::GroupKind;
use expression::{Evaluation, Expression};

const BUILT_IN: &str = include_str!("../rules.yaml");

/// Status rules by API group and kind.
#[derive(Debug, Default)]
pub struct RuleSet {
    by_group: BTreeMap<String, Vec<KindRule>>,
}

/// The rule of a kind, or of all kinds of a group that have no rule of their own.
#[derive(Debug)]
struct KindRule {
    /// `None` for all kinds of the group that have no rule of their own.
    kind: Option<String>,
    origin: RuleOrigin,
    in_progress: Option<Clause>,
    failed: Option<Clause>,
    current: Clause,
}

/// The source of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleOrigin {
    /// The program, with the kind and group that the rule is for.
    BuiltIn(String),
    /// A file, with the line of the rule.
    File(Arc<str>, usize),
}

impl fmt::Display for RuleOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(target) => write!(f, "built-in rule {target}"),
            Self::File(file, line) => write!(f, "{file}:{line}"),
        }
    }
}

/// An expression, compiled when it is first needed.
#[derive(Debug)]
struct Clause {
    text: String,
    compiled: OnceLock<Result<Expression, String>>,
}

impl Clause {
    fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            compiled: OnceLock::new(),
        }
    }

    fn compile(&self) -> Result<&Expression, &String> {
        self.compiled
            .get_or_init(|| Expression::compile(&self.text))
            .as_ref()
    }

    fn evaluate(&self, object: &Value) -> Evaluation {
        match self.compile() {
            Ok(expression) => expression.evaluate(object),
            Err(error) => Evaluation::Unclear(error.clone()),
        }
    }

    /// Returns the text of the expression for messages, as it was written if it cannot be compiled.
    fn display_text(&self) -> &str {
        self.compile().map_or(&self.text, Expression::one_line_text)
    }
}

/// The result of a rule for an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RuleVerdict {
    pub(super) state: State,
    /// The expression that decided, as the rest of a sentence about the object.
    pub(super) reason: String,
    pub(super) certainty: Certainty,
    pub(super) origin: RuleOrigin,
}

/// The certainty of the verdict of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    /// The expressions have decided.
    Clear,
    /// One expression could not be evaluated: most often, the object lacks a field of the expression.
    Unclear,
}

impl RuleSet {
    /// Returns the rules that come with the program.
    pub(super) fn built_in() -> &'static Self {
        static RULES: LazyLock<RuleSet> = LazyLock::new(|| {
            let read = rule_parser::read(
                BUILT_IN,
                |_, target| RuleOrigin::BuiltIn(target.to_owned()),
                rule_parser::Compilation::WhenNeeded,
            );
            debug_assert!(read.is_ok(), "{read:?}");
            read.unwrap_or_default()
        });
        &RULES
    }

    /// Reads the rules of a file: its text, and its name for messages.
    pub fn read(text: &str, name: &str) -> Result<Self, RuleFileError> {
        let name: Arc<str> = name.into();
        rule_parser::read(
            text,
            |line, _| RuleOrigin::File(Arc::clone(&name), line),
            rule_parser::Compilation::Now,
        )
    }

    /// Returns a warning for each kind with a rule that the server does not have, although it has the group: the name
    /// is probably mistyped. Rules for groups that are not installed are of use on other clusters.
    pub fn warn_of_unknown_kinds(&self, discovery: &Discovery) -> Vec<String> {
        let mut warnings = Vec::new();
        for (group, rules) in self
            .by_group
            .iter()
            .filter(|(group, _)| discovery.has_group(group))
        {
            for rule in rules {
                let Some(kind) = &rule.kind else { continue };
                let kind = GroupKind::new(group, kind);
                if matches!(discovery.find_preferred(&kind), KindLookup::Absent) {
                    warnings.push(format!(
                        "{}: the server has no kind {kind}, so this rule matches no object",
                        rule.origin
                    ));
                }
            }
        }
        warnings
    }

    /// Returns whether there is a rule for the kind.
    pub(super) fn covers(&self, group_kind: &GroupKind) -> bool {
        self.find_rule(group_kind).is_some()
    }

    /// Returns the result of the rule of a kind for an object; `None` if there is no rule.
    pub(super) fn judge(&self, object: &Value, group_kind: &GroupKind) -> Option<RuleVerdict> {
        Some(self.find_rule(group_kind)?.judge(object))
    }

    /// Returns the rule of the kind, else the rule of its group, else the rule of the nearest domain above the group
    /// (`*.example.com`).
    fn find_rule(&self, group_kind: &GroupKind) -> Option<&KindRule> {
        let group = group_kind.group.as_str();
        let domains = group
            .match_indices('.')
            .map(|(dot, _)| format!("*{}", &group[dot..]));
        std::iter::once(group.to_owned())
            .chain(domains)
            .find_map(|pattern| {
                let rules = self.by_group.get(&pattern)?;
                let of_kind = rules
                    .iter()
                    .find(|rule| rule.kind.as_deref() == Some(&group_kind.kind));
                of_kind.or_else(|| rules.iter().find(|rule| rule.kind.is_none()))
            })
    }
}

impl KindRule {
    fn judge(&self, object: &Value) -> RuleVerdict {
        let clauses = [
            ("inProgress", self.in_progress.as_ref(), State::InProgress),
            ("failed", self.failed.as_ref(), State::Failed),
            ("current", Some(&self.current), State::Current),
        ];
        for (name, clause, state) in clauses {
            let Some(clause) = clause else { continue };
            match clause.evaluate(object) {
                Evaluation::Yes => {
                    let reason = format!("its rule says {name}: {}", clause.display_text());
                    return self.verdict(state, reason, Certainty::Clear);
                }
                Evaluation::No => {}
                // The later expressions are not tried: an object that lacks a field of `failed` could otherwise count
                // as Current.
                Evaluation::Unclear(why) => {
                    let reason = format!("{why}, in its rule {name}: {}", clause.display_text());
                    return self.verdict(State::InProgress, reason, Certainty::Unclear);
                }
            }
        }
        let reason = format!("not Current by its rule yet: {}", self.current.display_text());
        self.verdict(State::InProgress, reason, Certainty::Clear)
    }

    fn verdict(&self, state: State, reason: String, certainty: Certainty) -> RuleVerdict {
        RuleVerdict {
            state,
            reason,
            certainty,
            origin: self.origin.clone(),
        }
    }
}
