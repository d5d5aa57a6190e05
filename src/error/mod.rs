//! Errors that end a run early, with their exit codes and hints.
//!
//! Failures of single objects are outcomes, not errors; see `event`.

mod conversions;
mod hints;
mod messages;

use messages::text_without_hints;

use crate::cluster::apiserver::ApiError;
use crate::cluster::connection::ConnectionError;
use crate::cluster::discovery::DiscoveryError;
use crate::execute::ParentWriteError;
use crate::manifest::ManifestErrors;
use crate::manifest::desired::InvalidObject;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::permission::Permission;
use crate::model::text::members_missed;
use crate::plan::Refusal;
use crate::plan::saved::ChangeSincePlan;
use crate::read::{FailedList, MissingDependency, MissingNamespace};

/// The end of a run, as its exit code shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything was done.
    Done,
    /// Something failed while writing.
    Failed,
    /// The command line or the manifests are wrong.
    Usage,
    /// A safety check refused.
    Refused,
    /// The cluster could not be reached, or refused.
    Cluster,
    /// The user stopped it.
    Interrupted,
}

impl Exit {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Cluster => 4,
            Self::Interrupted => 130,
        }
    }
}

/// An error that ended a run before its first write, or that prevented it from continuing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
    /// The command line is invalid.
    #[error("{message}")]
    Usage {
        /// The mistake.
        message: String,
        /// The command to use instead.
        hint: String,
    },
    /// Manifests that cannot be read.
    #[error(transparent)]
    Manifests(#[from] ManifestErrors),
    /// Manifests that this cluster cannot accept.
    #[error("{}", text_without_hints(&messages::invalid_objects(.0)))]
    InvalidObjects(Vec<InvalidObject>),
    /// Namespaces that do not exist.
    #[error("{}", text_without_hints(&messages::each(.0)))]
    MissingNamespaces(Vec<MissingNamespace>),
    /// Objects that the manifests depend on, and that are not there.
    #[error("{}", text_without_hints(&messages::each(.0)))]
    MissingDependencies(Vec<MissingDependency>),
    /// Safety checks refused.
    #[error("{}", text_without_hints(&Refusal::messages(.0)))]
    Refused(Vec<Refusal>),
    /// The user did not confirm. No hint follows: the question has shown what was declined, and how to accept it.
    #[error("not confirmed: nothing was written")]
    NotConfirmed,
    /// No connection can be made.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// Discovery failed.
    #[error("{}", discovery(.0.request()))]
    Discovery(#[from] DiscoveryError),
    /// Discovery of one group failed.
    #[error("{0}")]
    KindUnknowable(String),
    /// The definition of a kind of the manifests is being deleted.
    #[error("{0}")]
    DefinitionTerminating(String),
    /// The server does not serve a kind that exists.
    #[error("{0}")]
    KindNotServed(String),
    /// A read that a decision depends on failed.
    #[error("{what}: cannot be read: {}", request(.error))]
    Read {
        /// The object.
        what: String,
        /// The answer of the server.
        error: ApiError,
    },
    /// Members could not be listed, so it is not known what to prune.
    #[error(transparent)]
    List(#[from] FailedList),
    /// The user lacks permissions for the run; nothing was written.
    #[error("{}", text_without_hints(&messages::forbidden(.0)))]
    MissingPermissions(Vec<Permission>),
    /// A permission is missing in a command whose permissions `rbac` prints.
    #[error(transparent)]
    GrantedByRbac(Box<Error>),
    /// The parent does not exist, and members may be left that could not be listed.
    #[error("{parent}: not the parent of a set; {}", members_missed(.hidden))]
    MembersUnknown {
        /// The parent that the set would have.
        parent: ObjectKey,
        /// Names of what could not be listed in all namespaces.
        hidden: Vec<String>,
    },
    /// Not all members of a set can be listed.
    #[error("{0}: not exported: its record is faulty, or names a kind that the server does not list")]
    ExportIncomplete(ObjectKey),
    /// The parent does not exist, and objects have the label of its set but do not count as members.
    #[error("{}", text_without_hints(&messages::members_without_parent(parent, left_out)))]
    MembersWithoutParent {
        /// The parent that the set would have.
        parent: ObjectKey,
        /// The objects and the reasons, a line for each namespace.
        left_out: Vec<String>,
    },
    /// The effect of a run on some objects could not be determined.
    #[error("{}", text_without_hints(&messages::unpredicted(.0)))]
    Unpredicted(Vec<(ObjectKey, Message)>),
    /// A saved plan is stale: the cluster has changed.
    #[error("{}", text_without_hints(&messages::stale(.0)))]
    Overtaken(Vec<ChangeSincePlan>),
    /// Secrets of the manifests have changed since a saved plan was made.
    #[error("{}", text_without_hints(&messages::each(.0)))]
    Altered(Vec<String>),
    /// A plan is not saved, because it could not be applied.
    #[error("plan not saved: it could not be applied")]
    NotSaved,
    /// The parent could not be written.
    #[error(transparent)]
    ParentWrite(#[from] ParentWriteError),
}

impl Error {
    /// Returns the same error for `apply` and `diff`, whose missing permissions `rbac` prints.
    #[must_use]
    pub fn in_reach_of_rbac(self) -> Self {
        let is_forbidden = match &self {
            Self::MissingPermissions(_) => true,
            Self::Read { error, .. } | Self::ParentWrite(ParentWriteError::Request(error)) => {
                error.is(http::StatusCode::FORBIDDEN)
            }
            Self::List(failed) => failed.error.is_forbidden(),
            _ => false,
        };
        if is_forbidden {
            Self::GrantedByRbac(Box::new(self))
        } else {
            self
        }
    }

    /// Returns whether another run is all that has stopped this one, which was to run alone, as it began.
    pub fn is_of_another_run(&self) -> bool {
        let Self::ParentWrite(ParentWriteError::Refused(refusals)) = self else {
            return false;
        };
        refusals.iter().all(Refusal::is_of_another_run)
    }

    /// Returns the class, which determines the exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage { .. }
            | Self::Manifests(_)
            | Self::InvalidObjects(_)
            | Self::MissingNamespaces(_)
            | Self::MissingDependencies(_) => Exit::Usage,
            Self::Connection(error) if error.is_usage() => Exit::Usage,
            Self::Interrupted => Exit::Interrupted,
            Self::Refused(_)
            | Self::NotConfirmed
            | Self::Overtaken(_)
            | Self::Altered(_)
            | Self::NotSaved
            | Self::ParentWrite(ParentWriteError::Refused(_)) => Exit::Refused,
            Self::ParentWrite(ParentWriteError::Request(error)) if is_denied(error) => Exit::Cluster,
            Self::ParentWrite(_) | Self::DefinitionTerminating(_) | Self::MembersWithoutParent { .. } => {
                Exit::Failed
            }
            Self::GrantedByRbac(error) => error.exit(),
            Self::Connection(_)
            | Self::Discovery(_)
            | Self::KindUnknowable(_)
            | Self::KindNotServed(_)
            | Self::Read { .. }
            | Self::List(_)
            | Self::MissingPermissions(_)
            | Self::MembersUnknown { .. }
            | Self::ExportIncomplete(_)
            | Self::Unpredicted(_) => Exit::Cluster,
        }
    }
}

/// Describes the denial: the user is known and lacks permission, or is not authenticated.
fn is_denied(error: &ApiError) -> bool {
    matches!(error.status().map(|status| status.code), Some(401 | 403))
}

fn request(error: &ApiError) -> String {
    match error.status().map(|status| status.code) {
        Some(401) => "Unauthorized: the server does not accept these credentials".to_owned(),
        _ => error.kind.to_string(),
    }
}

/// Discovery comes first: if the server does not answer, there is nothing to say about kinds.
fn discovery(error: &ApiError) -> String {
    match error.status().map(|status| status.code) {
        None | Some(401) => request(error),
        Some(_) => format!("discovery failed: {}", request(error)),
    }
}
