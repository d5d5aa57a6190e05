//! Everything that ends a run early: its class, which is the exit code, and what to
//! type next.
//!
//! Failures of single objects are no errors but outcomes; see `event`.

use std::collections::BTreeSet;
use std::fmt;

use crate::cluster::apiserver::{ApiError, ApiErrorKind};
use crate::cluster::connection::ConnectionError;
use crate::cluster::discovery::DiscoveryError;
use crate::execute::ParentWriteError;
use crate::manifest::desired::{DesiredError, Misfit};
use crate::manifest::{ManifestError, ManifestErrors, Position};
use crate::model::applyset::ApplySetId;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::permission::Right;
use crate::model::text::{counted, members_missed};
use crate::plan::saved::{Alteration, Moved};
use crate::plan::{Refusal, SurveyError};
use crate::read::{ContentsError, ListError, Place, UnsettledError};

/// How a run ended, as scripts see it.
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

/// Why a run ended before it had begun to write, or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user stopped it.
    #[error("interrupted before everything was done")]
    Interrupted,
    /// The command line makes no sense.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to type instead.
        hint: String,
    },
    /// Manifests that cannot be read.
    #[error(transparent)]
    Manifests(#[from] ManifestErrors),
    /// Manifests that this cluster cannot take.
    #[error("{}", .0.iter().map(|misfit| format!("{misfit}\n  hint: {}", misfit.hint())).collect::<Vec<_>>().join("\n"))]
    Misfits(Vec<Misfit>),
    /// Namespaces that are not there.
    #[error("{}", in_lines(.0))]
    MissingNamespaces(Vec<MissingNamespace>),
    /// Safety checks refused.
    #[error("{}", in_lines(.0))]
    Refused(Vec<Refusal>),
    /// No connection can be made.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The server did not tell which kinds it serves.
    #[error("{}", discovery(.0.request()))]
    Discovery(#[from] DiscoveryError),
    /// The server did not tell of one group.
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
        /// What was to be read.
        what: String,
        /// What the server said.
        error: ApiError,
    },
    /// Members could not be listed, so nobody knows what there is to prune.
    #[error("{} could not be listed{}: {error}", .place.resource.plural, in_namespace(.place.namespace.as_deref()))]
    List {
        /// The collection.
        place: Place,
        /// What the server said.
        error: ListError,
    },
    /// The user may not do what the run is about to do; nothing was written.
    #[error("{}", .0.iter().map(missing_right).collect::<Vec<_>>().join("\n"))]
    MissingRights(Vec<Right>),
    /// A right is missing in a command whose rights `rbac` prints.
    #[error(transparent)]
    GrantedByRbac(Box<Error>),
    /// There is no parent, and whether members are left without one could not be seen.
    #[error("{parent} is not the parent of a set, and {}", members_missed(.hidden))]
    NobodyKnows {
        /// The parent that the set would have.
        parent: ObjectKey,
        /// What could not be listed in all namespaces.
        hidden: Vec<String>,
    },
    /// There is no parent, and objects carry the label of its set that are not taken for members.
    #[error("{parent} is not the parent of a set, and objects that carry the label of its set are left:\n{}", .left_out.join("\n"))]
    LabelledElsewhere {
        /// The parent that the set would have.
        parent: ObjectKey,
        /// What is left and why, a line for each namespace.
        left_out: Vec<String>,
    },
    /// What a run would do to some objects could not be found out.
    #[error("{}", in_lines(&unforeseen(.0)))]
    Unforeseen(Vec<(ObjectKey, Message)>),
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

/// A namespace that neither exists nor comes with the manifests.
#[derive(Debug)]
pub struct MissingNamespace {
    /// Its name.
    pub namespace: String,
    /// The first object that is to live there, and where it is written; `None` for the parent.
    pub wanted_by: Option<(Position, ObjectKey)>,
}

impl From<DesiredError> for Error {
    fn from(error: DesiredError) -> Self {
        match error {
            DesiredError::Misfits(misfits) => Self::Misfits(misfits),
            terminating @ DesiredError::DefinitionTerminating { .. } => {
                Self::DefinitionTerminating(terminating.to_string())
            }
            unknowable @ DesiredError::KindUnknowable { .. } => Self::KindUnknowable(unknowable.to_string()),
        }
    }
}

impl From<SurveyError> for Error {
    fn from(error: SurveyError) -> Self {
        match error {
            SurveyError::Refused(refusals) => Self::Refused(refusals),
            unknowable @ SurveyError::KindUnknowable { .. } => Self::KindUnknowable(unknowable.to_string()),
            unlisted @ SurveyError::NotListed { .. } => Self::KindNotServed(unlisted.to_string()),
        }
    }
}

impl From<UnsettledError> for Error {
    fn from(error: UnsettledError) -> Self {
        match error {
            UnsettledError::Discovery(error) => Self::Discovery(error),
            unread @ UnsettledError::Unread { .. } => Self::KindUnknowable(unread.to_string()),
            expected @ UnsettledError::StillExpected { .. } => Self::KindNotServed(expected.to_string()),
        }
    }
}

impl From<ContentsError> for Error {
    fn from(error: ContentsError) -> Self {
        match error {
            ContentsError::Unsettled(error) => error.into(),
            ContentsError::List { place, error } => Self::List { place, error },
        }
    }
}

impl From<Vec<Refusal>> for Error {
    fn from(refusals: Vec<Refusal>) -> Self {
        Self::Refused(refusals)
    }
}

impl Error {
    /// The same error, as `apply` and `diff` meet it: what they lack, `rbac` prints.
    #[must_use]
    pub fn in_reach_of_rbac(self) -> Self {
        let is_forbidden = match &self {
            Self::MissingRights(_) => true,
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
            Self::Usage { .. } | Self::Manifests(_) | Self::Misfits(_) | Self::MissingNamespaces(_) => {
                Exit::Usage
            }
            Self::Connection(error) if error.is_usage() => Exit::Usage,
            Self::Interrupted => Exit::Interrupted,
            Self::Refused(_)
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
            | Self::MissingRights(_)
            | Self::NobodyKnows { .. }
            | Self::Unforeseen(_) => Exit::Cluster,
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
            Self::Misfits(misfits) => {
                let message = |misfit: &Misfit| Message::new(misfit.to_string()).with_hint(misfit.hint());
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
            Self::MissingRights(missing) => missing.iter().map(missing_right).map(Message::new).collect(),
            Self::Overtaken(moved) => {
                let first = Message::new(OVERTAKEN);
                std::iter::once(first).chain(each(moved)).collect()
            }
            Self::Unforeseen(objects) => unforeseen(objects),
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

    /// What to type next; a line for each thing, without repetition.
    pub fn hints(&self) -> Vec<String> {
        let hints: Vec<String> = match self {
            Self::Usage { hint, .. } => vec![hint.clone()],
            // Each fault of a manifest is printed with its hint beside it.
            Self::Manifests(_) | Self::Misfits(_) => Vec::new(),
            Self::Interrupted => vec!["the same command does the rest".to_owned()],
            Self::MissingNamespaces(missing) => vec![namespace_hint(missing)],
            Self::Refused(refusals) | Self::ParentWrite(ParentWriteError::Refused(refusals)) => {
                refusals.iter().map(Refusal::hint).collect()
            }
            Self::Overtaken(_) | Self::Altered(_) => vec![
                "nothing was written; make the plan anew with `kubectl applyset diff SET -f … --out FILE`".to_owned(),
            ],
            Self::NotSaved => vec!["see above what stands against it, and which flag lifts that".to_owned()],
            Self::Connection(error) => vec![error.hint()],
            Self::Discovery(error) => vec![request_hint(error.request())],
            Self::KindUnknowable(_) => vec![
                "`kubectl get apiservices` shows which API is down; nothing is pruned while it cannot be asked".to_owned(),
            ],
            Self::DefinitionTerminating(_) => {
                vec!["wait until it is gone, then run the same command again".to_owned()]
            }
            Self::KindNotServed(_) => vec![
                "look at `kubectl get crds,apiservices` for what is not available, then run the same command again".to_owned(),
            ],
            Self::ParentWrite(ParentWriteError::Request(error)) | Self::Read { error, .. } | Self::List { error: ListError::Request(error), .. } => vec![request_hint(error)],
            Self::GrantedByRbac(_) => vec![
                "`kubectl applyset rbac SET -f …` prints the rights that this set needs".to_owned(),
            ],
            Self::MissingRights(_) => vec![ASK_AN_ADMINISTRATOR.to_owned()],
            Self::LabelledElsewhere { .. } => vec![
                "look at who wrote the labels; a user who may delete these objects can run the same command, and --field-manager NAME names another applier".to_owned(),
            ],
            Self::NobodyKnows { parent, .. } => vec![format!(
                "somebody who may list everything can run the same command, or see with `kubectl get KIND -A -l applyset.kubernetes.io/part-of={}`",
                ApplySetId::of(parent)
            )],
            Self::List { .. } | Self::ParentWrite(_) | Self::Unforeseen(_) => vec!["run the same command again".to_owned()],
        };
        let mut seen = BTreeSet::new();
        hints
            .into_iter()
            .filter(|hint| seen.insert(hint.clone()))
            .collect()
    }
}

/// `rbac` prints what applying a set takes. Other commands may look elsewhere, too.
const ASK_AN_ADMINISTRATOR: &str =
    "an administrator of the cluster has to grant this; `kubectl auth can-i --list` shows what you may do";

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

/// Discovery comes first: where nobody answers, there is nothing to say of kinds.
fn discovery(error: &ApiError) -> String {
    match error.status().map(|status| status.code) {
        None | Some(401) => request(error),
        Some(_) => format!("the cluster's kinds could not be found out: {}", request(error)),
    }
}

fn request_hint(error: &ApiError) -> String {
    match &*error.kind {
        ApiErrorKind::Status(status) => match status.code {
            401 => "log in again, or check --token and the user of the kubeconfig's context".to_owned(),
            403 => ASK_AN_ADMINISTRATOR.to_owned(),
            _ => "`kubectl version` shows whether the server answers at all".to_owned(),
        },
        ApiErrorKind::Connection { proxy: Some(proxy), .. } => format!(
            "check that this proxy runs, and that {} is right; NO_PROXY names servers that are asked without one",
            proxy.named_by()
        ),
        ApiErrorKind::Untrusted { .. } => {
            "check certificate-authority of the cluster in the kubeconfig, or --certificate-authority; --tls-server-name \
             says which name the certificate is for"
                .to_owned()
        }
        ApiErrorKind::Connection { .. } | ApiErrorKind::Timeout(_) => {
            "check that the server runs, and --server, --context or KUBECONFIG; `kubectl cluster-info` asks the same server"
                .to_owned()
        }
        ApiErrorKind::Credential(_) => "log in again as the credentials plugin asks, and repeat the command".to_owned(),
        ApiErrorKind::Unreadable(_) => "is this the address of a Kubernetes API server?".to_owned(),
    }
}

fn unforeseen(objects: &[(ObjectKey, Message)]) -> Vec<Message> {
    let told = objects.iter().take(SHOWN_OBJECTS).map(|(key, reason)| {
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
    told.chain(more).collect()
}

/// How many objects an error tells of: mostly all of them share one reason.
const SHOWN_OBJECTS: usize = 10;

fn in_namespace(namespace: Option<&str>) -> String {
    namespace.map_or_else(String::new, |namespace| format!(" in namespace {namespace}"))
}

/// What is said before all that a plan and the cluster differ in.
const OVERTAKEN: &str = "the cluster is not what the plan was made for:";

fn missing_right(right: &Right) -> String {
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

impl fmt::Display for MissingNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, wanted_by } = self;
        match wanted_by {
            Some((position, key)) => write!(f, "{position}: {key}: there is no namespace {namespace}"),
            None => write!(f, "there is no namespace {namespace} for the set's parent"),
        }
    }
}

fn namespace_hint(missing: &[MissingNamespace]) -> String {
    let names: BTreeSet<&str> = missing.iter().map(|missing| missing.namespace.as_str()).collect();
    let commands: Vec<String> = names
        .iter()
        .map(|name| format!("`kubectl create namespace {name}`"))
        .collect();
    format!(
        "{}, or put the {} among the manifests",
        commands.join(", "),
        counted(names.len(), "Namespace")
            .trim_start_matches(|first: char| first.is_ascii_digit() || first == ' ')
    )
}
