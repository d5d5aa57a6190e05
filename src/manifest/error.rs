//! Faults of manifests and their hints.
//!
//! Text from a manifest is always shown quoted and escaped, so that a message cannot carry
//! control characters to a terminal.

use std::io;
use std::path::{Path, PathBuf};

use kubernetes_yaml::InvalidText;

use super::check_without_cluster::MAX_OBJECT_BYTES;
use super::remote::RemoteError;
use crate::error::{Error, ErrorKind};
use crate::model::message::Message;
use crate::model::text::{format_os_error, shell_word};

/// A problem in a source, with its line.
pub(super) struct LineFault {
    pub(super) line: usize,
    pub(super) problem: Problem,
}

impl LineFault {
    pub(super) fn new(line: usize, problem: Problem) -> Self {
        Self { line, problem }
    }
}

/// The faults of the sources, in reading order; never empty. If there are more than [`super::MAX_FAULTS`], the last one
/// is [`Problem::More`].
#[derive(Debug)]
pub struct ManifestErrors(pub Vec<ManifestError>);

impl From<ManifestErrors> for Error {
    fn from(errors: ManifestErrors) -> Self {
        let messages = errors
            .0
            .iter()
            .map(|error| Message::new(error.to_string()).with_hint(error.problem.hint()))
            .collect();
        Self::from_messages(ErrorKind::Usage, messages)
    }
}

/// A fault and its place.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ManifestError {
    /// The source, or a line of it.
    pub place: String,
    /// The fault.
    pub problem: Problem,
}

/// A fault of a source or an object. The message says what was found, and [`Problem::hint`] what to do.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The path matches nothing, neither as a path nor as a pattern.
    #[error("no such file or directory")]
    NotFound,
    /// `-f ""`.
    #[error("empty file name")]
    NoName,
    /// The operating system refused to open or read the source.
    #[error("cannot be read: {}", format_os_error(.0))]
    Unreadable(#[from] io::Error),
    /// A directory without a single manifest file.
    #[error("no .json, .yaml or .yml files in this directory")]
    NoManifestFiles,
    /// A kustomization among the files of a directory, or as a file.
    #[error("{0:?} is a kustomization, which only -k builds")]
    Kustomization(PathBuf),
    /// A pattern that cannot be understood.
    #[error("invalid file name pattern: {0}")]
    Pattern(String),
    /// `-f -` was given twice.
    #[error("standard input can be read only once")]
    StandardInputTwice,
    /// A pipe, a socket or a device among the files of a directory.
    #[error("{0:?} is a pipe, a socket or a device")]
    SpecialFile(PathBuf),
    /// A symbolic link to nothing.
    #[error("{path:?} is a link to {target:?}, which does not exist")]
    DanglingLink {
        /// The link.
        path: PathBuf,
        /// What it names.
        target: PathBuf,
    },
    /// A source with more bytes than the limit.
    #[error("larger than {} MiB", super::read_limited::MAX_SOURCE_BYTES >> 20)]
    TooLarge,
    /// A URL that yields no manifest.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// A kustomization that cannot be rendered, and what to type next.
    #[error("{text}")]
    Kustomize { text: String, hint: String },

    /// The bytes are not text.
    #[error(transparent)]
    Encoding(#[from] InvalidText),
    /// The text cannot be read as YAML or JSON, or not as kubectl reads it.
    #[error(transparent)]
    Text(#[from] kubernetes_yaml::Problem),

    /// An object with more bytes than an API server reads.
    #[error("the object is larger than {} MiB, the most that an API server reads", MAX_OBJECT_BYTES >> 20)]
    ObjectTooLarge,
    /// A document that is a list or a scalar.
    #[error("{0} is not a Kubernetes object")]
    NotAnObject(&'static str),
    /// `items` of a List that are not a list of objects.
    #[error("items: must be a list of objects, not {0}")]
    Items(&'static str),
    /// An object with a name and with empty `items`. kubectl takes such an object for a List without objects.
    #[error("items: empty, but the object has a name: is it a List?")]
    NamedList,
    /// A required field that is missing or empty.
    #[error("{0} not set")]
    Missing(&'static str),
    /// A field of the wrong type.
    #[error("{field}: must be a {wanted}, not {found}")]
    Type {
        /// The field, as `metadata.name`.
        field: String,
        /// The type that the field has in the API.
        wanted: &'static str,
        /// The type of the value.
        found: &'static str,
    },
    /// A value that must be base64. The value is not shown, because it may be secret.
    #[error("{field}: invalid base64")]
    NotBase64 {
        /// The field, as `data["key"]`.
        field: String,
    },
    /// `metadata.generateName` instead of a name.
    #[error("metadata.generateName: cannot use generate name with apply")]
    GenerateName,
    /// A name that cannot be part of a request path.
    #[error("metadata.name: invalid name {0:?}")]
    Name(String),
    /// A namespace that is not a DNS label.
    #[error("metadata.namespace: invalid namespace {0:?}")]
    Namespace(String),
    /// The manifest claims membership of a set by itself.
    #[error("label applyset.kubernetes.io/part-of: not allowed in a manifest")]
    PartOf,
    /// There are more faults than the report prints; this one stands for all that are left out.
    #[error("too many errors: only the first {} are shown", super::MAX_FAULTS)]
    More,
}

impl Problem {
    /// Returns the hint: what the user can type or change.
    pub fn hint(&self) -> String {
        match self {
            Self::NotFound => "check the path".to_owned(),
            Self::DanglingLink { .. } => "remove the link, or create its target".to_owned(),
            Self::NoName => "check that the variable with the name is set".to_owned(),
            Self::Unreadable(_) => "check that the file exists and that you can read it".to_owned(),
            Self::NoManifestFiles => "name a file, or add -R to process subdirectories".to_owned(),
            Self::Kustomization(file) => {
                let directory = file
                    .parent()
                    .filter(|path| !path.as_os_str().is_empty())
                    .unwrap_or_else(|| Path::new("."));
                format!("use -k {}", shell_word(&directory.to_string_lossy()))
            }
            Self::Pattern(_) => "use *, ?, [a-z] and [^a-z] in patterns, or -R for subdirectories".to_owned(),
            Self::StandardInputTwice => "pass - once".to_owned(),
            Self::SpecialFile(_) => "move it out of the directory, or name the file itself".to_owned(),
            Self::TooLarge => "split it into several files".to_owned(),
            Self::Remote(error) => error.hint(),
            Self::Kustomize { hint, .. } => hint.clone(),
            Self::Encoding(InvalidText) => {
                "save the file as UTF-8; store binary data as base64 in binaryData".to_owned()
            }
            Self::Text(kubernetes_yaml::Problem::Template) => {
                "render it first: `helm template CHART | kubectl applyset apply SET -f -`; quote literal {{"
                    .to_owned()
            }
            Self::Text(problem) => problem.hint(),
            Self::ObjectTooLarge => "split it into several objects".to_owned(),
            Self::NotAnObject(_) => "write a mapping with apiVersion, kind and metadata".to_owned(),
            Self::NamedList => "remove items from an object, or metadata.name from a List".to_owned(),
            Self::Items(_) => "begin each item with \"- apiVersion: …\"".to_owned(),
            Self::NotBase64 { .. } => {
                "encode it with `base64 -w0`, or write text to stringData (Secret) or data (ConfigMap)"
                    .to_owned()
            }
            Self::Missing("metadata.name") => "add a name under metadata".to_owned(),
            Self::Missing(field) => format!("add {field} to the object"),
            Self::Type {
                wanted: "string",
                found,
                ..
            } if *found != "a list" && *found != "a mapping" => "quote it".to_owned(),
            Self::Type { wanted, .. } => format!("write a {wanted}"),
            Self::GenerateName => "set metadata.name".to_owned(),
            Self::Name(_) => {
                "use a name without \"/\", \"%\" and control characters, and not \".\" or \"..\"".to_owned()
            }
            Self::Namespace(_) => {
                "use at most 63 lower-case letters, digits and \"-\"; begin and end with a letter or digit"
                    .to_owned()
            }
            Self::PartOf => "remove the label; apply sets it".to_owned(),
            Self::More => "fix these first".to_owned(),
        }
    }
}

/// Returns the texts of the problems of sources that cannot be read.
#[cfg(test)]
pub(super) fn problems<T: std::fmt::Debug>(read: Result<Vec<T>, ManifestErrors>) -> Vec<String> {
    let errors = read.expect_err("nothing to read").0;
    errors
        .into_iter()
        .map(|error| error.problem.to_string())
        .collect()
}
