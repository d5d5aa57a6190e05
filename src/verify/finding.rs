//! The findings of `verify`, and its rules: names, severities, and which of them writing the parent can fix.
//!
//! Scripts rely on the names; docs/reference/findings.md explains each rule.

use serde::Serialize;

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

    #[must_use]
    pub fn with_set_id(self, id: &str) -> Self {
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

/// A rule. Each finds one kind of inconsistency.
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
    /// A list cannot be read as it is written.
    MalformedValue,
    /// A list can be read, but is not in the canonical form.
    UnsortedValue,
    /// The parent has the deprecated list of resources.
    DeprecatedKinds,
    /// The parent is being deleted.
    TerminatingParent,
    /// The annotations of the parent are near the limit of the server.
    LargeAnnotations,
    /// A first run has ended before it recorded anything.
    UnfinishedParent,
    /// The object has no record of a set.
    NoBookkeeping,
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
    /// The next `apply` is refused, or objects are forgotten by it.
    Error,
    /// It should be looked at.
    Warning,
    /// Worth knowing; nothing has to be done.
    Info,
}

impl Rule {
    /// All rules, in the order of the documentation.
    #[cfg(test)]
    pub const ALL: [Self; 25] = [
        Self::WrongId,
        Self::MissingId,
        Self::LaterFormat,
        Self::InvalidTooling,
        Self::MissingKinds,
        Self::MalformedValue,
        Self::UnsortedValue,
        Self::DeprecatedKinds,
        Self::TerminatingParent,
        Self::LargeAnnotations,
        Self::UnfinishedParent,
        Self::NoBookkeeping,
        Self::ParentKind,
        Self::ParentInOwnSet,
        Self::UnservedKind,
        Self::UnknowableKind,
        Self::MissingNamespaces,
        Self::RecordTooNarrow,
        Self::RecordTooWide,
        Self::UnreadPlace,
        Self::UnrecordedMember,
        Self::Orphan,
        Self::LostMember,
        Self::LabelCopy,
        Self::IncompleteLook,
    ];

    /// The name for scripts, in kebab-case.
    pub fn name(self) -> &'static str {
        match self {
            Self::WrongId => "wrong-id",
            Self::MissingId => "missing-id",
            Self::LaterFormat => "later-format",
            Self::InvalidTooling => "invalid-tooling",
            Self::MissingKinds => "missing-kinds",
            Self::MalformedValue => "malformed-value",
            Self::UnsortedValue => "unsorted-value",
            Self::DeprecatedKinds => "deprecated-kinds",
            Self::TerminatingParent => "terminating-parent",
            Self::LargeAnnotations => "large-annotations",
            Self::UnfinishedParent => "unfinished-parent",
            Self::NoBookkeeping => "no-bookkeeping",
            Self::ParentKind => "parent-kind",
            Self::ParentInOwnSet => "parent-in-own-set",
            Self::UnservedKind => "unserved-kind",
            Self::UnknowableKind => "unknowable-kind",
            Self::MissingNamespaces => "missing-namespaces",
            Self::RecordTooNarrow => "record-too-narrow",
            Self::RecordTooWide => "record-too-wide",
            Self::UnreadPlace => "unread-place",
            Self::UnrecordedMember => "unrecorded-member",
            Self::Orphan => "orphan",
            Self::LostMember => "lost-member",
            Self::LabelCopy => "label-copy",
            Self::IncompleteLook => "incomplete-look",
        }
    }

    /// Usual severity of what the rule finds.
    pub fn severity(self) -> Severity {
        match self {
            Self::WrongId
            | Self::MissingId
            | Self::LaterFormat
            | Self::InvalidTooling
            | Self::MissingKinds
            | Self::MalformedValue
            | Self::NoBookkeeping
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
            Self::UnsortedValue | Self::LabelCopy | Self::IncompleteLook => Severity::Info,
        }
    }

    /// Returns whether writing the parent can repair what it finds.
    pub fn is_repairable(self) -> bool {
        match self {
            Self::WrongId
            | Self::MissingId
            | Self::InvalidTooling
            | Self::MissingKinds
            | Self::MalformedValue
            | Self::UnsortedValue
            | Self::DeprecatedKinds
            | Self::ParentInOwnSet
            | Self::UnservedKind
            | Self::MissingNamespaces
            | Self::RecordTooNarrow
            | Self::RecordTooWide
            | Self::UnrecordedMember => true,
            Self::LaterFormat
            | Self::TerminatingParent
            | Self::LargeAnnotations
            | Self::UnfinishedParent
            | Self::NoBookkeeping
            | Self::ParentKind
            | Self::UnknowableKind
            | Self::UnreadPlace
            | Self::Orphan
            | Self::LostMember
            | Self::LabelCopy
            | Self::IncompleteLook => false,
        }
    }
}

impl Severity {
    /// The word in output documents and for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_name_of_its_own_and_is_documented() {
        let page = include_str!("../../docs/reference/findings.md");
        for (place, rule) in Rule::ALL.into_iter().enumerate() {
            let name = serde_json::to_value(rule).expect("a name");
            assert_eq!(name, rule.name());
            let row = format!("| `{}` | {} |", rule.name(), rule.severity().word());
            assert!(page.contains(&row), "docs/reference/findings.md lacks {row}");
            assert_eq!(
                Rule::ALL.iter().position(|other| other.name() == name),
                Some(place)
            );
        }
        let rows = page.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(rows, Rule::ALL.len());
    }
}
