//! A finding of `verify`: rule, severity, object, message and hint.

use serde::Serialize;

use super::finding_rules::{Rule, Severity};
use crate::model::identity::ObjectKey;

/// One thing to report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule that found it.
    pub rule: Rule,
    /// Severity, usually that of the rule.
    pub severity: Severity,
    /// The object; null for the cluster as a whole.
    pub object: Option<ObjectKey>,
    /// The id of the set; null if it does not concern one.
    pub set: Option<String>,
    /// Message, a sentence about the object.
    pub message: String,
    /// Advice to the user; empty if there is nothing to do.
    pub hint: String,
    /// What `--fix` does about it.
    #[serde(skip)]
    pub fix_status: FixStatus,
}

/// State of a finding with regard to `--fix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixStatus {
    /// Only the user can decide what is right.
    ByHand,
    /// `--fix` would repair it.
    Offered,
    /// `--fix` has repaired it.
    Done,
}

impl Finding {
    /// Creates a finding with the severity of the rule.
    pub fn new(rule: Rule, object: &ObjectKey, message: impl Into<String>) -> Self {
        Self {
            rule,
            severity: rule.severity(),
            object: Some(object.clone()),
            set: None,
            message: message.into(),
            hint: String::new(),
            fix_status: FixStatus::ByHand,
        }
    }

    /// Sets the advice to the user.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: hint.into(),
            ..self
        }
    }

    /// Sets the id of the set.
    #[must_use]
    pub fn of_set(self, id: &str) -> Self {
        Self {
            set: Some(id.to_owned()),
            ..self
        }
    }

    /// Returns whether both are of the same rule, object and set.
    pub fn is_same(&self, other: &Self) -> bool {
        self.rule == other.rule && self.object == other.object && self.set == other.set
    }
}
