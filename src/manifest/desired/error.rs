//! Errors of manifests that cannot be resolved, with their hints.

use crate::cluster::discovery::{FailedVersion, KeptReason};
use crate::manifest::Position;
use crate::model::depends_on::{DEPENDS_ON, MalformedReference};
use crate::model::identity::{GroupKind, GroupVersionKind, ObjectKey};

/// Error if manifests cannot become objects of this cluster.
#[derive(Debug, thiserror::Error)]
pub enum DesiredError {
    /// The manifests are wrong.
    #[error("{} invalid objects in the manifests", .0.len())]
    InvalidObjects(Vec<InvalidObject>),
    /// The definition of the kind of a manifest is being deleted.
    #[error("{position}: {kind} cannot be applied: {reason}")]
    DefinitionTerminating {
        /// Where the object was written.
        position: Position,
        kind: String,
        /// Names the definition.
        reason: KeptReason,
    },
    /// The server could not report whether it serves the kind of a manifest.
    #[error("{position}: cannot determine whether the server has kind {kind}: {failure}")]
    KindUnknowable {
        /// Where the object was written.
        position: Position,
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
    #[error("no matches for kind {:?} in version {:?}", .kind.kind, .kind.api_version())]
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
    #[error("kind {kind} cannot be in a set: the server does not support {} for it", .missing_verbs.join(", "))]
    NoMembersOfThisKind {
        kind: GroupKind,
        /// Verbs that the server does not offer.
        missing_verbs: Vec<&'static str>,
    },
    /// The manifest of a member has ApplySet metadata that only a run of a set writes on its parent.
    #[error("{key}: {metadata_key} is reserved for parents of sets")]
    ApplySetMetadata {
        key: ObjectKey,
        /// The label or annotation.
        metadata_key: String,
    },
    /// A hook that is to be applied has no name of its own.
    #[error("metadata.generateName: cannot use generate name with apply")]
    GeneratedName,
    /// The same object stands in two places of the manifests.
    #[error("{key} is defined twice: first at {first}")]
    DefinedTwice {
        key: ObjectKey,
        /// Where it was given before.
        first: Position,
    },
    /// The annotation of dependencies does not follow its syntax.
    #[error("{key}: annotation {DEPENDS_ON}: {fault}")]
    MalformedDependency {
        key: ObjectKey,
        /// What is wrong with it.
        fault: MalformedReference,
    },
    /// Objects depend on each other.
    #[error("dependencies form a cycle: {}", arrows(.path))]
    DependencyCycle {
        /// The objects, each depending on the next one; the last is the first.
        path: Vec<ObjectKey>,
    },
    /// An object has to exist before the parent of the set, and depends on one that is applied after it.
    #[error("{key}: depends on {dependency}, which is applied after it: the set's parent needs {key} first")]
    NeededByParent {
        key: ObjectKey,
        /// What it depends on.
        dependency: ObjectKey,
    },
}

fn arrows(keys: &[ObjectKey]) -> String {
    let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
    names.join(" -> ")
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
                format!("use apiVersion {}", versions.join(" and "))
            }
            InvalidObjectProblem::UnknownKind {
                definition: Some(reason),
                ..
            } => format!("fix its CustomResourceDefinition first: {reason}"),
            InvalidObjectProblem::UnknownKind { similar, .. } if !similar.is_empty() => {
                format!("did you mean {}?", similar.join(" or "))
            }
            InvalidObjectProblem::UnknownKind { .. } => {
                "ensure CRDs are installed first, or add its CustomResourceDefinition to the manifests"
                    .to_owned()
            }
            InvalidObjectProblem::NoMembersOfThisKind { .. } => {
                "remove it from the manifests, and create it with kubectl".to_owned()
            }
            InvalidObjectProblem::ApplySetMetadata { .. } => "remove it from the manifest".to_owned(),
            InvalidObjectProblem::GeneratedName => {
                "give the hook a name, or leave hooks out with --hooks=skip".to_owned()
            }
            InvalidObjectProblem::DefinedTwice { first, .. } if first.is_same_place(&self.position) => {
                "name this file once with -f, or write the object once on this line".to_owned()
            }
            InvalidObjectProblem::DefinedTwice { .. } => "remove one of the two".to_owned(),
            InvalidObjectProblem::MalformedDependency { .. } => {
                "write group/Kind/name or group/namespaces/NAMESPACE/Kind/name, with an empty group for core kinds: /namespaces/shop/Secret/login"
                    .to_owned()
            }
            InvalidObjectProblem::DependencyCycle { .. } | InvalidObjectProblem::NeededByParent { .. } => {
                format!("remove one of them from the annotation {DEPENDS_ON}")
            }
        }
    }
}
