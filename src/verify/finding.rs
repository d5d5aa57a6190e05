//! What a rule of `verify` finds: which rule, how bad, where, and what to do.
//!
//! The names of the rules are part of what scripts rely on; docs/verify.md explains each.

use serde::Serialize;

use crate::model::identity::ObjectKey;

/// One thing to report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which rule found it.
    pub rule: Rule,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about; `None` for the cluster as a whole.
    pub object: Option<ObjectKey>,
    /// The id of the set that it concerns, where there is one.
    pub set: Option<String>,
    /// What is found, in a sentence.
    pub message: String,
    /// What a person can do about it; empty where there is nothing to do.
    pub hint: String,
    /// Whether `--fix` mends it.
    pub mending: Mending,
}

/// Whether `--fix` mends a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mending {
    /// It does not: only people can tell what is right.
    ByHand,
    /// It would.
    Offered,
    /// It has.
    Done,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The next `apply` is refused, or objects are forgotten by it.
    Error,
    /// Something that ought to be looked at.
    Warning,
    /// Worth knowing; nothing has to be done.
    Info,
}

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The id label of a parent is not the id of its set.
    WrongId,
    /// A parent has no id label.
    MissingId,
    /// A value is written in a later format of the convention.
    LaterFormat,
    /// The tooling annotation is missing or names nobody.
    InvalidTooling,
    /// Nobody recorded which kinds the members have.
    MissingKinds,
    /// A list cannot be read as it is written.
    MalformedValue,
    /// A list is readable, and not in the canonical form.
    UnsortedValue,
    /// The deprecated list of resources is there.
    DeprecatedKinds,
    /// The parent is being deleted.
    TerminatingParent,
    /// The annotations of the parent are near the limit of the server.
    LargeAnnotations,
    /// A first run has ended before it recorded anything.
    UnfinishedParent,
    /// The object has no bookkeeping at all.
    NoBookkeeping,
    /// Objects of this kind may not be parents.
    ParentKind,
    /// The parent is labelled as a member of its own set.
    ParentInOwnSet,
    /// A recorded kind is not served.
    UnservedKind,
    /// Whether a recorded kind is served could not be found out.
    UnknowableKind,
    /// A cluster-scoped parent records namespaced kinds and no namespace.
    MissingNamespaces,
    /// The record does not name all places of members.
    RecordTooNarrow,
    /// The record names places without members.
    RecordTooWide,
    /// A place that the record names could not be read.
    UnreadPlace,
    /// A member that no run would find.
    UnrecordedMember,
    /// A member of a set that has no parent.
    Orphan,
    /// An object that was applied as a member, and is in no set.
    LostMember,
    /// An object that carries a copy of a part-of label.
    LabelCopy,
    /// Not everything could be looked at.
    IncompleteLook,
}

impl Finding {
    /// A finding of this rule, as bad as the rule usually is.
    pub fn new(rule: Rule, object: &ObjectKey, message: impl Into<String>) -> Self {
        Self {
            rule,
            severity: rule.severity(),
            object: Some(object.clone()),
            set: None,
            message: message.into(),
            hint: String::new(),
            mending: Mending::ByHand,
        }
    }

    /// The same with what a person can do about it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: hint.into(),
            ..self
        }
    }

    /// The same of the set with this id.
    #[must_use]
    pub fn of_set(self, id: &str) -> Self {
        Self {
            set: Some(id.to_owned()),
            ..self
        }
    }

    /// Whether both say the same of the same object.
    pub fn is_same(&self, other: &Self) -> bool {
        self.rule == other.rule && self.object == other.object && self.set == other.set
    }
}

impl Rule {
    /// All rules, in the order of the documentation.
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

    fn severity(self) -> Severity {
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

    /// Whether writing the parent could mend what it finds.
    pub fn is_of_bookkeeping(self) -> bool {
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
    /// The word for people and scripts.
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
        let page = include_str!("../../docs/verify.md");
        for (place, rule) in Rule::ALL.into_iter().enumerate() {
            let name = serde_json::to_value(rule).expect("a name");
            assert_eq!(name, rule.name());
            let row = format!("| `{}` | {} |", rule.name(), rule.severity().word());
            assert!(page.contains(&row), "docs/verify.md lacks {row}");
            assert_eq!(
                Rule::ALL.iter().position(|other| other.name() == name),
                Some(place)
            );
        }
        let rows = page.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(rows, Rule::ALL.len());
    }
}
