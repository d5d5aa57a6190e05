//! The findings of `verify`, and its rules: their names, their severities, and whether a repair of the parent can fix
//! what they find.
//!
//! Scripts rely on the names; docs/reference/findings.md explains each rule.

use std::fmt;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::model::identity::ObjectKey;

/// An inconsistency that a rule has found, as the output documents have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule that found the inconsistency.
    pub rule: Rule,
    /// Usually [`Rule::severity`].
    pub severity: Severity,
    /// The object that is inconsistent; `None` if the finding is about the cluster as a whole.
    pub object: Option<ObjectKey>,
    /// The id of the set; `None` if the finding does not belong to one set.
    pub set: Option<String>,
    /// A phrase about the object, printed behind its name.
    pub message: String,
    /// What the user can do; empty if there is nothing to do.
    pub hint: String,
    #[serde(flatten)]
    pub fix_status: FixStatus,
}

/// What `--fix` does about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixStatus {
    /// Nothing: only the user can decide what is right.
    ByHand,
    /// `--fix` would repair the inconsistency.
    Offered,
    /// `--fix` has repaired the inconsistency.
    Done,
}

impl Serialize for FixStatus {
    /// Writes the fields `fixable` and `fixed` of a finding.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("FixStatus", 2)?;
        fields.serialize_field("fixable", &(*self != Self::ByHand))?;
        fields.serialize_field("fixed", &(*self == Self::Done))?;
        fields.end()
    }
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

    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: hint.into(),
            ..self
        }
    }

    #[must_use]
    pub fn with_set_id(self, id: &str) -> Self {
        Self {
            set: Some(id.to_owned()),
            ..self
        }
    }

    /// Returns whether both findings have the same rule, object and set. Their messages may differ.
    pub fn has_same_rule_object_and_set(&self, other: &Self) -> bool {
        self.rule == other.rule && self.object == other.object && self.set == other.set
    }
}

/// A rule of `verify`, which finds one kind of inconsistency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The id label of a parent is not the id of its set.
    WrongId,
    /// A parent has no id label.
    MissingId,
    /// A value is written in a later format of the convention.
    LaterFormat,
    /// The tooling annotation is missing or names no tool.
    InvalidTooling,
    /// The kinds of the members are not recorded.
    MissingKinds,
    /// A list in an annotation has an invalid entry.
    MalformedValue,
    /// The parent has the deprecated annotation that lists resources instead of kinds.
    DeprecatedKinds,
    /// The parent is being deleted.
    TerminatingParent,
    /// The annotations of the parent are almost as large as the server allows.
    LargeAnnotations,
    /// A first run has ended before it recorded anything.
    UnfinishedParent,
    /// The object has no record of a set. Scripts know the name of this rule.
    #[serde(rename = "no-bookkeeping")]
    NoRecord,
    /// Objects of this kind may not be parents.
    ParentKind,
    /// The parent is labeled as a member of its own set.
    ParentInOwnSet,
    /// A recorded kind is not served.
    UnservedKind,
    /// A recorded kind cannot be listed, or discovery of its group failed.
    UnknowableKind,
    /// A cluster-scoped parent records namespaced kinds and no namespace.
    MissingNamespaces,
    /// The record does not cover all members.
    RecordTooNarrow,
    /// The record covers kinds or namespaces without members.
    RecordTooWide,
    /// A recorded kind could not be listed in a recorded namespace.
    UnreadPlace,
    /// A member outside the record, which an apply does not find.
    UnrecordedMember,
    /// A member of a set that has no parent.
    Orphan,
    /// An object that was applied as a member and is in no set.
    LostMember,
    /// An object that carries a copy of a part-of label.
    LabelCopy,
    /// A part of the cluster could not be read.
    IncompleteLook,
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The next `apply` is refused, or does not find some members.
    Error,
    /// The user should look at it.
    Warning,
    /// The user does not have to do anything.
    Info,
}

impl fmt::Display for Rule {
    /// Writes the name of the rule for scripts, in kebab-case.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl Rule {
    /// Returns the usual severity of what the rule finds.
    pub fn severity(self) -> Severity {
        match self {
            Self::WrongId
            | Self::MissingId
            | Self::LaterFormat
            | Self::InvalidTooling
            | Self::MissingKinds
            | Self::MalformedValue
            | Self::NoRecord
            | Self::ParentKind
            | Self::ParentInOwnSet
            | Self::MissingNamespaces
            | Self::RecordTooNarrow
            | Self::UnrecordedMember
            | Self::Orphan => Severity::Error,
            Self::DeprecatedKinds
            | Self::TerminatingParent
            | Self::LargeAnnotations
            | Self::UnfinishedParent
            | Self::UnservedKind
            | Self::UnknowableKind
            | Self::RecordTooWide
            | Self::UnreadPlace
            | Self::LostMember => Severity::Warning,
            Self::LabelCopy | Self::IncompleteLook => Severity::Info,
        }
    }

    /// Returns whether a repair of the parent can fix what the rule finds.
    pub fn is_repairable(self) -> bool {
        matches!(
            self,
            Self::WrongId
                | Self::MissingId
                | Self::InvalidTooling
                | Self::MissingKinds
                | Self::MalformedValue
                | Self::DeprecatedKinds
                | Self::ParentInOwnSet
                | Self::UnservedKind
                | Self::MissingNamespaces
                | Self::RecordTooNarrow
                | Self::RecordTooWide
                | Self::UnrecordedMember
        )
    }
}

impl fmt::Display for Severity {
    /// Writes the severity as output documents and screens spell it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All rules, in the order of the documentation.
    const ALL: [Rule; 24] = [
        Rule::WrongId,
        Rule::MissingId,
        Rule::LaterFormat,
        Rule::InvalidTooling,
        Rule::MissingKinds,
        Rule::MalformedValue,
        Rule::DeprecatedKinds,
        Rule::TerminatingParent,
        Rule::LargeAnnotations,
        Rule::UnfinishedParent,
        Rule::NoRecord,
        Rule::ParentKind,
        Rule::ParentInOwnSet,
        Rule::UnservedKind,
        Rule::UnknowableKind,
        Rule::MissingNamespaces,
        Rule::RecordTooNarrow,
        Rule::RecordTooWide,
        Rule::UnreadPlace,
        Rule::UnrecordedMember,
        Rule::Orphan,
        Rule::LostMember,
        Rule::LabelCopy,
        Rule::IncompleteLook,
    ];

    #[test]
    fn every_rule_has_a_name_of_its_own_and_is_documented() {
        let page = include_str!("../../docs/reference/findings.md");
        for (place, rule) in ALL.into_iter().enumerate() {
            let row = format!("| `{rule}` | {} |", rule.severity());
            assert!(page.contains(&row), "docs/reference/findings.md lacks {row}");
            assert_eq!(
                ALL.iter().position(|other| other.to_string() == rule.to_string()),
                Some(place)
            );
        }
        let rows = page.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(rows, ALL.len());
    }
}
