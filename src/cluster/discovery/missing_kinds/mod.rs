//! Judges a kind that discovery does not list: gone, kept in the record, or expected soon.
//!
//! Discovery may omit a kind that exists: the aggregated document lags seconds behind a new `CustomResourceDefinition`,
//! and a starting API server answers 200 without the groups of custom resources. So a kind counts as gone only if
//! discovery does not list it, no definition defines it, no aggregated API could serve it, and Kubernetes does not serve
//! its group itself. This module sends nothing; `read::kinds_missing_from_discovery` reads the evidence.

mod evidence;

use std::fmt;

pub use evidence::{AggregatedApi, Definition, Evidence, Forbidden};

use super::Discovery;
use crate::model::built_in_kinds::is_served_by_kubernetes_itself;
use crate::model::identity::GroupKind;

/// The judgement on a kind that discovery does not list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingKind {
    /// Nothing defines or serves the kind, so it has no objects.
    Gone,
    /// The kind may have objects that cannot be listed now, so it stays in the record.
    Kept(KeptKind),
    /// The server is about to serve the kind, or should be serving it. Until it does, nothing is known about the
    /// objects of the kind.
    Expected(ReasonToExpectKind),
}

/// A kind that stays in the record although its objects cannot be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptKind {
    /// The kind; `None` if only the resource is recorded, and its definition cannot be read.
    pub kind: Option<GroupKind>,
    pub reason: ReasonToKeepKind,
}

/// The reason why the objects of a kind cannot be listed, although the kind may have objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReasonToKeepKind {
    /// The `CustomResourceDefinition` of the kind, which has this name, is being deleted.
    DefinitionTerminating(String),
    /// The `CustomResourceDefinition` of the kind, which has this name, serves no version.
    NoVersionServed(String),
    /// The `CustomResourceDefinition` of the kind, which has this name, is not established.
    NotEstablished(String),
    /// Kubernetes serves the group itself. During an upgrade of a control plane, the kind may be known to only some of
    /// its API servers, and nothing but a definition takes its objects along when it goes.
    BuiltIn,
    /// Without this permission, it cannot be known whether the kind is gone.
    Forbidden(&'static str),
}

/// The reason to wait for a kind that discovery does not list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReasonToExpectKind {
    /// The `CustomResourceDefinition` of the kind, which has this name, is established and serves it.
    Defined(String),
    /// An APIService of this name delegates its group to an API that does not answer.
    Aggregated(String),
}

/// Judges a kind that `discovery` does not list. The evidence must be younger than the discovery.
pub fn judge(entry: &GroupKind, evidence: &Evidence, discovery: &Discovery) -> MissingKind {
    // The deprecated form of the record names the resource, in lower case.
    let names_kind = entry.kind.starts_with(|first: char| first.is_ascii_uppercase());
    let kind = names_kind.then(|| entry.clone());
    let definitions = evidence.definitions.iter().flatten();
    if let Some(definition) = definitions
        .filter(|definition| definition.is_named_by_entry(entry))
        .min_by_key(|definition| definition.state)
    {
        return definition.judge_missing_kind();
    }
    if is_served_by_kubernetes_itself(&entry.group) {
        let reason = ReasonToKeepKind::BuiltIn;
        return MissingKind::Kept(KeptKind { kind, reason });
    }
    let aggregated = match evidence.definitions.as_ref().and(evidence.aggregated.as_ref()) {
        Ok(aggregated) => aggregated,
        Err(Forbidden(permission)) => {
            let reason = ReasonToKeepKind::Forbidden(permission);
            return MissingKind::Kept(KeptKind { kind, reason });
        }
    };
    match aggregated
        .iter()
        .find(|api| api.group == entry.group && !api.is_known_to_discovery(discovery))
    {
        Some(api) => MissingKind::Expected(ReasonToExpectKind::Aggregated(api.name.clone())),
        None => MissingKind::Gone,
    }
}

impl ReasonToKeepKind {
    /// Returns whether there may be stored objects that no list shows, and that remain unless they
    /// are deleted.
    ///
    /// If a definition is not established now, it never was, since the server never takes this condition back
    /// (apiextensions-apiserver, `naming_controller.go`). The server does not serve a kind without the condition, so
    /// there are no objects. If a definition is being deleted, the server itself deletes the objects, whether it serves
    /// them or not (`crd_finalizer.go`).
    pub fn hides_objects(&self) -> bool {
        match self {
            Self::NoVersionServed(_) | Self::BuiltIn | Self::Forbidden(_) => true,
            Self::NotEstablished(_) | Self::DefinitionTerminating(_) => false,
        }
    }
}

impl MissingKind {
    /// Returns the reason why there may be stored objects that no list shows; `None` if there are none.
    pub fn reason_for_hidden_objects(&self) -> Option<String> {
        match self {
            Self::Gone => None,
            Self::Kept(KeptKind { reason, .. }) => reason.hides_objects().then(|| reason.to_string()),
            Self::Expected(expected) => Some(expected.to_string()),
        }
    }
}

impl fmt::Display for ReasonToKeepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DefinitionTerminating(name) => {
                write!(f, "CustomResourceDefinition {name} is being deleted")
            }
            Self::NoVersionServed(name) => {
                write!(f, "CustomResourceDefinition {name} serves no version")
            }
            Self::NotEstablished(name) => {
                write!(f, "CustomResourceDefinition {name} is not established")
            }
            Self::BuiltIn => {
                f.write_str("it is a kind of Kubernetes, which another API server may still serve")
            }
            Self::Forbidden(permission) => {
                write!(f, "it may still exist, and you cannot {permission}")
            }
        }
    }
}

impl fmt::Display for ReasonToExpectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Defined(name) => write!(
                f,
                "CustomResourceDefinition {name} exists, but the server does not serve it yet"
            ),
            Self::Aggregated(name) => {
                write!(f, "the API server of APIService {name} does not answer")
            }
        }
    }
}

#[cfg(test)]
mod tests;
