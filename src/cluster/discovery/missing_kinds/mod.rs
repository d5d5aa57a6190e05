//! Judges a kind that discovery does not list: gone, kept in the record, or expected soon.
//!
//! Discovery omits what exists: the aggregated document lags seconds behind a new
//! `CustomResourceDefinition`, and a starting API server answers 200 without the groups of custom
//! resources. So a kind is gone only if discovery lacks it, no definition has it, and no aggregated
//! API could serve it. Pure; `read::kinds_missing_from_discovery` reads the evidence.

mod evidence;

use std::fmt;

pub use evidence::{AggregatedApi, Definition, Evidence, Forbidden};

use super::Discovery;
use crate::model::identity::GroupKind;

/// The judgement on a kind that discovery does not list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingKind {
    /// Nothing defines or serves it, so it has no objects.
    Gone,
    /// It may have objects that cannot be listed now: it stays in the record.
    Kept(KeptKind),
    /// The server is about to serve it, or should: nothing may be concluded before it does.
    Expected(Expected),
}

/// A kind that stays in the record although its objects cannot be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptKind {
    /// The kind; `None` where only the resource is recorded, and its definition cannot be read.
    pub kind: Option<GroupKind>,
    pub reason: KeptReason,
}

/// The reason why the objects of a kind cannot be listed, although it may have some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptReason {
    /// Its `CustomResourceDefinition`, of this name, is being deleted.
    DefinitionTerminating(String),
    /// Its `CustomResourceDefinition`, of this name, serves no version.
    NoVersionServed(String),
    /// Its `CustomResourceDefinition`, of this name, is not established.
    NotEstablished(String),
    /// Without this permission, it cannot be known whether the kind is gone.
    Forbidden(&'static str),
}

/// The reason to wait for a kind that discovery does not list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// Its `CustomResourceDefinition`, of this name, is established and serves it.
    Defined(String),
    /// An APIService of this name delegates its group to an API that does not answer.
    Aggregated(String),
}

/// Judges a kind that `discovery` does not list. The evidence must be younger than it.
pub fn judge(entry: &GroupKind, evidence: &Evidence, discovery: &Discovery) -> MissingKind {
    let hidden = |Forbidden(permission): &Forbidden, kind: Option<GroupKind>| {
        MissingKind::Kept(KeptKind {
            kind,
            reason: KeptReason::Forbidden(permission),
        })
    };
    let is_camel_case = entry.kind.starts_with(|first: char| first.is_ascii_uppercase());
    let kind = is_camel_case.then(|| entry.clone());
    let definitions = match &evidence.definitions {
        Ok(definitions) => definitions,
        Err(forbidden) => return hidden(forbidden, kind),
    };
    if let Some(definition) = definitions
        .iter()
        .find(|definition| definition.is_meant_by(entry))
    {
        return definition.missing_kind();
    }
    let aggregated = match &evidence.aggregated {
        Ok(aggregated) => aggregated,
        Err(forbidden) => return hidden(forbidden, kind),
    };
    let mut apis = aggregated.iter();
    match apis.find(|api| api.group == entry.group && !api.is_discovered(discovery)) {
        Some(api) => MissingKind::Expected(Expected::Aggregated(api.name.clone())),
        None => MissingKind::Gone,
    }
}

impl KeptReason {
    /// Returns whether there may be stored objects that no list shows, and that remain unless they
    /// are deleted.
    ///
    /// A definition that is not established has never been: the server does not take the
    /// condition back (apiextensions-apiserver, `naming_controller.go`), and lists no kind without
    /// it, so there are no objects. The objects of a definition that is being deleted are deleted
    /// by the server itself, served or not (`crd_finalizer.go`).
    pub fn hides_objects(&self) -> bool {
        match self {
            Self::NoVersionServed(_) | Self::Forbidden(_) => true,
            Self::NotEstablished(_) | Self::DefinitionTerminating(_) => false,
        }
    }
}

impl MissingKind {
    /// The reason why there may be stored objects that no list shows; `None` if there are none.
    pub fn hidden_reason(&self) -> Option<String> {
        match self {
            Self::Gone => None,
            Self::Kept(KeptKind { reason, .. }) => reason.hides_objects().then(|| reason.to_string()),
            Self::Expected(expected) => Some(expected.to_string()),
        }
    }
}

impl fmt::Display for KeptReason {
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
            Self::Forbidden(permission) => {
                write!(f, "it may still exist, and you cannot {permission}")
            }
        }
    }
}

impl fmt::Display for Expected {
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
