//! Errors of reading the cluster state, and of states that must not be acted on.

use std::fmt;

use http::StatusCode;

use super::list::{FailedList, ListError};
use super::{ContentsError, ListTarget, UnsettledError};
use crate::cluster::apiserver::{ApiError, ApiErrorKind};
use crate::cluster::discovery::FailedVersion;
use crate::manifest::Position;
use crate::model::applyset::{IS_PARENT_TYPE_LABEL, ParentIdentity};
use crate::model::identity::ObjectKey;
use crate::model::resource::Resource;
use crate::plan::{MemberScopeUnknown, Refusal};

/// Why the state of a cluster could not be read, or must not be acted on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The state of unlisted kinds is not known.
    #[error(transparent)]
    Unsettled(#[from] UnsettledError),
    /// The scope of the members is not known.
    #[error(transparent)]
    Scope(#[from] MemberScopeUnknown),
    /// The contents of a namespace or of a defined kind are not known.
    #[error(transparent)]
    Contents(#[from] ContentsError),
    /// One object could not be read.
    #[error("{what}: cannot be read: {error}")]
    Object {
        /// The object, with its article.
        what: String,
        /// The answer of the server.
        error: ApiError,
    },
    /// A collection could not be listed.
    #[error(transparent)]
    List(#[from] FailedList),
    /// The label selector is invalid.
    #[error("-l {labels:?}: invalid label selector: {error}")]
    Selector {
        /// The selector.
        labels: String,
        /// The answer of the server.
        error: Box<ApiErrorKind>,
    },
    /// The parent must not be written.
    #[error("the parent must not be written")]
    Refused(Vec<Refusal>),
    /// Namespaces that neither exist nor are among the manifests.
    #[error("namespaces are missing")]
    MissingNamespaces(Vec<MissingNamespace>),
    /// Objects that the manifests depend on do not exist.
    #[error("{} objects that the manifests depend on do not exist", .0.len())]
    MissingDependencies(Vec<MissingDependency>),
    /// It could not be determined whether the server has the resource of the parent.
    #[error("resource {argument:?}: cannot determine whether the server has it: {failure}")]
    ResourceUnknowable {
        /// The resource as it was typed.
        argument: String,
        /// The answer of the server.
        failure: FailedVersion,
    },
    /// The kind of the parent is defined, but not served.
    #[error("kind {kind} is not served: {reason}")]
    KindNotServed { kind: String, reason: String },
    /// The object that the command line names cannot be used as a parent.
    #[error(transparent)]
    Parent(#[from] ParentError),
    /// The parent does not exist, and members may be left that could not be listed.
    #[error("{parent} is not the parent of a set")]
    MembersUnseen {
        /// The parent that the set would have.
        parent: ParentIdentity,
        /// Names of what could not be listed in all namespaces.
        hidden: Vec<String>,
    },
    /// The parent does not exist, and objects have the label of its set but do not count as members.
    #[error("{parent} is not the parent of a set")]
    MembersWithoutParent {
        /// The parent that the set would have.
        parent: ParentIdentity,
        /// The objects and the reasons, a line for each namespace.
        left_out: Vec<String>,
    },
}

/// The reason why the object that the command line names cannot be used as a parent.
#[derive(Debug, thiserror::Error)]
pub enum ParentError {
    /// The server has no such resource.
    #[error("the server doesn't have a resource type {argument:?} that can be the parent of a set")]
    UnknownResource {
        /// The resource as it was typed.
        argument: String,
    },
    /// Objects of the kind cannot be parents.
    #[error("{kind} cannot be the parent of a set")]
    ForbiddenKind { kind: String },
    /// The definition of the kind lacks the label of parents.
    #[error("{kind} cannot be the parent of a set: its CustomResourceDefinition is not labeled for it")]
    UnlabeledKind {
        kind: String,
        /// The name of its definition.
        definition: String,
    },
    /// A custom resource does not exist, and its content is unknown.
    #[error("{parent}: the set's parent does not exist")]
    CustomResourceMissing { parent: ParentIdentity, kind: String },
    /// The set does not exist.
    #[error("set not found: {0}")]
    NoSuchSet(ParentIdentity),
    /// The set to move members from does not exist; an earlier run may have finished, since a move
    /// of all members ends the old set.
    #[error("set not found: {0}")]
    NoSetToMove(ParentIdentity),
}

impl ParentError {
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownResource { .. } => {
                "use secret/NAME, configmap/NAME or RESOURCE.GROUP/NAME".to_owned()
            }
            Self::ForbiddenKind { .. } => {
                "use a Secret (NAME), a ConfigMap (configmap/NAME) or a custom resource whose CRD allows it"
                    .to_owned()
            }
            Self::UnlabeledKind { definition, .. } => {
                format!("allow it with `kubectl label crd {definition} {IS_PARENT_TYPE_LABEL}=true`")
            }
            Self::CustomResourceMissing { parent, kind } => {
                format!(
                    "add the {kind} {} to the manifests, or create it first",
                    parent.name
                )
            }
            Self::NoSuchSet(_) => {
                "list all sets with `kubectl applyset list -A`, or select a namespace with -n".to_owned()
            }
            Self::NoSetToMove(_) => {
                "check the new set with `kubectl applyset view`: an earlier move may have finished".to_owned()
            }
        }
    }
}

/// A namespace that neither exists nor is among the manifests.
#[derive(Debug)]
pub struct MissingNamespace {
    /// Its name.
    pub namespace: String,
    /// The first object in it, with its position in the manifests; `None` for the parent.
    pub wanted_by: Option<(Position, ObjectKey)>,
}

impl fmt::Display for MissingNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, wanted_by } = self;
        match wanted_by {
            Some((position, key)) => write!(f, "{position}: {key}: namespaces \"{namespace}\" not found"),
            None => write!(f, "the set's parent: namespaces \"{namespace}\" not found"),
        }
    }
}

/// An object that neither exists nor comes with the manifests, and that one of these depends on.
#[derive(Debug, thiserror::Error)]
#[error("{position}: {object}: depends on {dependency}, which is neither live nor among the manifests")]
pub struct MissingDependency {
    /// Where the dependent is written.
    pub position: Position,
    /// The dependent.
    pub object: ObjectKey,
    /// What it depends on.
    pub dependency: ObjectKey,
}

impl ReadError {
    /// Converts the error of a list by the user's selector: the server's refusal of it is a usage
    /// error.
    pub fn from_selector((place, error): (ListTarget, ListError), labels: Option<&str>) -> Self {
        match (error, labels) {
            (ListError::Request(request), Some(labels)) if request.is(StatusCode::BAD_REQUEST) => {
                Self::Selector {
                    labels: labels.to_owned(),
                    error: request.kind,
                }
            }
            (error, _) => Self::List(FailedList { place, error }),
        }
    }

    /// An object that could not be read.
    pub(super) fn object(key: &ObjectKey, error: ApiError) -> Self {
        Self::Object {
            what: key.to_string(),
            error,
        }
    }

    /// A parent that could not be read.
    pub(super) fn parent(parent: &ParentIdentity, error: ApiError) -> Self {
        Self::Object {
            what: format!("the set's parent {parent}"),
            error,
        }
    }

    /// A definition that could not be read.
    pub(super) fn definition(resource: &Resource, error: ApiError) -> Self {
        Self::Object {
            what: format!("CustomResourceDefinition {}", resource.group_resource()),
            error,
        }
    }
}

impl From<(ListTarget, ListError)> for ReadError {
    fn from(failed: (ListTarget, ListError)) -> Self {
        Self::List(failed.into())
    }
}
