//! Errors of manifests that cannot be resolved, with their hints.

use crate::cluster::discovery::{FailedVersion, KeptReason};
use crate::manifest::Position;
use crate::model::identity::{GroupKind, GroupVersionKind, ObjectKey};

/// Error if manifests cannot become objects of this cluster.
#[derive(Debug, thiserror::Error)]
pub enum DesiredError {
    /// The manifests are wrong.
    #[error("{} of the manifests cannot be applied to this cluster", .0.len())]
    InvalidObjects(Vec<InvalidObject>),
    /// The definition of the kind of a manifest is being deleted.
    #[error("{position}: {kind} cannot be applied: {reason}")]
    DefinitionTerminating {
        /// Where the object was written.
        position: Position,
        /// Its kind.
        kind: String,
        /// Names the definition.
        reason: KeptReason,
    },
    /// The server could not tell whether it serves the kind of a manifest.
    #[error("{position}: whether the server has the kind {kind} could not be found out: {failure}")]
    KindUnknowable {
        /// Where the object was written.
        position: Position,
        /// Its kind.
        kind: String,
        /// What the server said.
        failure: FailedVersion,
    },
}

/// A manifest that this cluster cannot take, or that does not go with another one.
#[derive(Debug, thiserror::Error)]
#[error("{position}: {problem}")]
pub struct InvalidObject {
    /// Where the object was written.
    pub position: Position,
    /// What is wrong.
    pub problem: InvalidObjectProblem,
}

/// What is wrong with a manifest in the light of discovery and of the other manifests.
#[derive(Debug, thiserror::Error)]
pub enum InvalidObjectProblem {
    /// The server does not serve the kind in this version.
    #[error("the server has no kind {:?} in apiVersion {:?}", .kind.kind, .kind.api_version())]
    UnknownKind {
        /// As the manifest has it.
        kind: GroupVersionKind,
        /// Versions of the same group that have the kind.
        served_versions: Vec<String>,
        /// Kinds that may have been meant.
        similar: Vec<String>,
        /// Why the server does not serve the kind although it is defined.
        definition: Option<KeptReason>,
    },
    /// Objects of this kind could not be found again, or not be pruned.
    #[error("{kind} cannot be a member of a set: the server offers no {} for it", .missing_verbs.join(", "))]
    NoMembersOfThisKind {
        /// The kind.
        kind: GroupKind,
        /// Verbs that the server does not offer.
        missing_verbs: Vec<&'static str>,
    },
    /// A member's manifest carries what only a set's own run writes on its parent.
    #[error("{key} carries {bookkeeping}, which belongs to the bookkeeping of a set's parent")]
    Bookkeeping {
        /// The object.
        key: ObjectKey,
        /// The label or annotation.
        bookkeeping: String,
    },
    /// The server would not take the name.
    #[error("{key} cannot be named so: {:?} is no DNS subdomain", .key.name)]
    InvalidName {
        /// The object.
        key: ObjectKey,
    },
    /// The same object stands in two places of the manifests.
    #[error("{key} is given twice; the first is at {first}")]
    GivenTwice {
        /// The object.
        key: ObjectKey,
        /// Where it was given before.
        first: Position,
    },
}

impl InvalidObject {
    /// What to type or change.
    pub fn hint(&self) -> String {
        match &self.problem {
            InvalidObjectProblem::UnknownKind {
                kind,
                served_versions,
                ..
            } if !served_versions.is_empty() => {
                let versions: Vec<String> = served_versions
                    .iter()
                    .map(|version| {
                        GroupVersionKind {
                            version: version.clone(),
                            ..kind.clone()
                        }
                        .api_version()
                    })
                    .collect();
                format!(
                    "the server has this kind in apiVersion {}",
                    versions.join(" and ")
                )
            }
            InvalidObjectProblem::UnknownKind {
                definition: Some(reason),
                ..
            } => format!("make the server serve it first: {reason}"),
            InvalidObjectProblem::UnknownKind { similar, .. } if !similar.is_empty() => {
                format!("did you mean {}?", similar.join(" or "))
            }
            InvalidObjectProblem::UnknownKind { .. } => {
                "put its CustomResourceDefinition among the manifests, or install it first".to_owned()
            }
            InvalidObjectProblem::NoMembersOfThisKind { .. } => {
                "take it out of the manifests, and create it with kubectl where it is needed".to_owned()
            }
            InvalidObjectProblem::Bookkeeping { .. } => {
                "take it out of the manifest: the run of that set writes it, and a copy would narrow its record".to_owned()
            }
            InvalidObjectProblem::InvalidName { .. } => {
                "use lower-case letters, digits, \"-\" and \".\", beginning and ending with a letter or digit".to_owned()
            }
            InvalidObjectProblem::GivenTwice { .. } => "take one of the two out".to_owned(),
        }
    }
}
