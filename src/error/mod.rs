//! Everything that ends a run early: its class, which is the exit code, and what to
//! type next.
//!
//! Failures of single objects are outcomes, not errors; see `event`.

mod conversions;
mod hints;

use std::fmt;

use crate::cluster::apiserver::ApiError;
use crate::cluster::connection::ConnectionError;
use crate::cluster::discovery::DiscoveryError;
use crate::execute::ParentWriteError;
use crate::manifest::desired::InvalidObject;
use crate::manifest::{ManifestError, ManifestErrors};
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::permission::Permission;
use crate::model::text::{counted, members_missed};
use crate::plan::Refusal;
use crate::plan::saved::{Alteration, Moved};
use crate::read::{ListError, MissingNamespace, Place};

/// The end of a run, as scripts see it.
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
    /// The cluster could not be reached or said no.
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

/// The reason why a run ended before it had begun to write, or could not continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user stopped it.
    #[error("interrupted before everything was done")]
    Interrupted,
    /// The command line makes no sense.
    #[error("{message}")]
    Usage {
        /// The mistake.
        message: String,
        /// The command to type instead.
        hint: String,
    },
    /// Manifests that cannot be read.
    #[error(transparent)]
    Manifests(#[from] ManifestErrors),
    /// Manifests that this cluster cannot take.
    #[error("{}", .0.iter().map(|misfit| format!("{misfit}\n  hint: {}", misfit.hint())).collect::<Vec<_>>().join("\n"))]
    InvalidObjects(Vec<InvalidObject>),
    /// Namespaces that are not there.
    #[error("{}", in_lines(.0))]
    MissingNamespaces(Vec<MissingNamespace>),
    /// Safety checks refused.
    #[error("{}", in_lines(.0))]
    Refused(Vec<Refusal>),
    /// The user was asked, and did not confirm.
    #[error("not confirmed: nothing was written")]
    NotConfirmed(Vec<Refusal>),
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
    /// A read that a decision needs did not succeed.
    #[error("{what} could not be read: {}", request(.error))]
    Read {
        /// The object that was to be read.
        what: String,
        /// The answer of the server.
        error: ApiError,
    },
    /// Members could not be listed, so it is not known what there is to prune.
    #[error("{} could not be listed{}: {error}", .place.resource.plural, in_namespace(.place.namespace.as_deref()))]
    List {
        /// The collection.
        place: Place,
        /// The answer of the server.
        error: ListError,
    },
    /// The user may not do what the run is about to do; nothing was written.
    #[error("{}", .0.iter().map(missing_right).collect::<Vec<_>>().join("\n"))]
    MissingPermissions(Vec<Permission>),
    /// A right is missing in a command whose rights `rbac` prints.
    #[error(transparent)]
    GrantedByRbac(Box<Error>),
    /// The parent does not exist, and it could not be seen whether members are left.
    #[error("{parent} is not the parent of a set, and {}", members_missed(.hidden))]
    NobodyKnows {
        /// The parent that the set would have.
        parent: ObjectKey,
        /// Names of what could not be listed in all namespaces.
        hidden: Vec<String>,
    },
    /// The parent does not exist, and objects carry the label of its set that are not taken for
    /// members.
    #[error("{parent} is not the parent of a set, and objects that carry the label of its set are left:\n{}", .left_out.join("\n"))]
    LabelledElsewhere {
        /// The parent that the set would have.
        parent: ObjectKey,
        /// The objects and the reasons, a line for each namespace.
        left_out: Vec<String>,
    },
    /// The effect of a run on some objects could not be found out.
    #[error("{}", in_lines(&unpredicted(.0)))]
    Unpredicted(Vec<(ObjectKey, Message)>),
    /// A saved plan is not what the cluster is any more.
    #[error("{OVERTAKEN}\n{}", in_lines(.0))]
    Overtaken(Vec<Moved>),
    /// Secrets among the manifests are not those that a saved plan was made with.
    #[error("{}", in_lines(.0))]
    Altered(Vec<Alteration>),
    /// A plan is not saved, because it could not be carried out.
    #[error("the plan is not saved, because it could not be carried out")]
    NotSaved,
    /// The parent could not be written.
    #[error(transparent)]
    ParentWrite(#[from] ParentWriteError),
}

impl Error {
    /// The same error, as `apply` and `diff` meet it: what they lack, `rbac` prints.
    #[must_use]
    pub fn in_reach_of_rbac(self) -> Self {
        let is_forbidden = match &self {
            Self::MissingPermissions(_) => true,
            Self::Read { error, .. } | Self::ParentWrite(ParentWriteError::Request(error)) => {
                error.is(http::StatusCode::FORBIDDEN)
            }
            Self::List { error, .. } => error.is_forbidden(),
            _ => false,
        };
        if is_forbidden {
            Self::GrantedByRbac(Box::new(self))
        } else {
            self
        }
    }

    /// The class, which scripts see as the exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage { .. }
            | Self::Manifests(_)
            | Self::InvalidObjects(_)
            | Self::MissingNamespaces(_) => Exit::Usage,
            Self::Connection(error) if error.is_usage() => Exit::Usage,
            Self::Interrupted => Exit::Interrupted,
            Self::Refused(_)
            | Self::NotConfirmed(_)
            | Self::Overtaken(_)
            | Self::Altered(_)
            | Self::NotSaved
            | Self::ParentWrite(ParentWriteError::Refused(_)) => Exit::Refused,
            Self::ParentWrite(ParentWriteError::Request(error)) if is_denied(error) => Exit::Cluster,
            Self::ParentWrite(_) | Self::DefinitionTerminating(_) | Self::LabelledElsewhere { .. } => {
                Exit::Failed
            }
            Self::GrantedByRbac(error) => error.exit(),
            Self::Connection(_)
            | Self::Discovery(_)
            | Self::KindUnknowable(_)
            | Self::KindNotServed(_)
            | Self::Read { .. }
            | Self::List { .. }
            | Self::MissingPermissions(_)
            | Self::NobodyKnows { .. }
            | Self::Unpredicted(_) => Exit::Cluster,
        }
    }

    /// The messages for people: one for each thing that is wrong, those of the manifests and of
    /// refusals with their hints. All other hints are those of `hints`.
    pub fn messages(&self) -> Vec<Message> {
        match self {
            Self::Manifests(errors) => {
                let message = |error: &ManifestError| Message::new(error.to_string()).with_hint(error.hint());
                errors.0.iter().map(message).collect()
            }
            Self::InvalidObjects(misfits) => {
                let message = |misfit: &InvalidObject| Message::new(misfit.to_string()).with_hint(misfit.hint());
                misfits.iter().map(message).collect()
            }
            Self::Refused(refusals) => {
                let message = |refusal: &Refusal| Message::new(refusal.to_string()).with_hint(refusal.hint());
                refusals.iter().map(message).collect()
            }
            Self::ParentWrite(error @ ParentWriteError::Refused(refusals)) => {
                let details = refusals.iter().map(ToString::to_string);
                vec![Message::new(error.to_string()).with_details(details)]
            }
            Self::Altered(alterations) => each(alterations),
            Self::MissingNamespaces(missing) => each(missing),
            Self::MissingPermissions(missing) => missing.iter().map(missing_right).map(Message::new).collect(),
            Self::Overtaken(moved) => {
                let first = Message::new(OVERTAKEN);
                std::iter::once(first).chain(each(moved)).collect()
            }
            Self::Unpredicted(objects) => unpredicted(objects),
            Self::LabelledElsewhere { parent, left_out } => vec![
                Message::new(format!(
                    "{parent} is not the parent of a set, and objects that carry the label of its set are left:"
                ))
                .with_details(left_out.iter().cloned()),
            ],
            Self::GrantedByRbac(error) => error.messages(),
            other => vec![Message::new(other.to_string())],
        }
    }
}

/// The server knows who asks, and does not let them; or does not know them.
fn is_denied(error: &ApiError) -> bool {
    matches!(error.status().map(|status| status.code), Some(401 | 403))
}

fn request(error: &ApiError) -> String {
    match error.status().map(|status| status.code) {
        Some(401) => "the server does not accept these credentials".to_owned(),
        _ => error.kind.to_string(),
    }
}

/// Discovery comes first: if the server does not answer, there is nothing to say about kinds.
fn discovery(error: &ApiError) -> String {
    match error.status().map(|status| status.code) {
        None | Some(401) => request(error),
        Some(_) => format!("the cluster's kinds could not be found out: {}", request(error)),
    }
}

fn unpredicted(objects: &[(ObjectKey, Message)]) -> Vec<Message> {
    let reported = objects.iter().take(SHOWN_OBJECTS).map(|(key, reason)| {
        reason.clone().behind(format_args!(
            "what would become of {key} could not be found out: "
        ))
    });
    let more = objects.len().saturating_sub(SHOWN_OBJECTS);
    let more = (more > 0).then(|| {
        Message::new(format!(
            "what would become of {} more could not be found out either",
            counted(more, "object")
        ))
    });
    reported.chain(more).collect()
}

/// The most objects that an error lists: mostly all of them share one reason.
const SHOWN_OBJECTS: usize = 10;

fn in_namespace(namespace: Option<&str>) -> String {
    namespace.map_or_else(String::new, |namespace| format!(" in namespace {namespace}"))
}

/// The headline of what a plan and the cluster differ in.
const OVERTAKEN: &str = "the cluster is not what the plan was made for:";

fn missing_right(right: &Permission) -> String {
    format!("you may not {right}")
}

fn each<T: fmt::Display>(errors: &[T]) -> Vec<Message> {
    errors
        .iter()
        .map(|error| Message::new(error.to_string()))
        .collect()
}

fn in_lines<T: fmt::Display>(errors: &[T]) -> String {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
