//! The fields that all output documents have, and the parts that several of them share.

pub(super) mod history;
pub(super) mod list;
pub(super) mod report;
pub(super) mod set_summary;
pub(super) mod verify;
pub(super) mod view;

use serde::Serialize;

use crate::cluster::identity::ClusterUid;
use crate::error::{Error, hints_of};
use crate::event::Resume;
use crate::exit::Exit;
use crate::model::applyset::{ApplySetId, ParentIdentity};
use crate::model::identity::GroupKind;
use crate::model::message::Message;
use crate::model::set::Set;
use crate::report::style::Style;

/// `apiVersion` of all documents.
const API_VERSION: &str = "kubectl-applyset/v1";

/// A document, with the fields that all documents have.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Envelope<'a, T> {
    api_version: &'static str,
    /// The cluster; null if the command ended before it had a connection.
    cluster: Option<ClusterDocument<'a>>,
    #[serde(flatten)]
    content: &'a T,
}

/// The cluster that a document is about.
#[derive(Debug, Serialize)]
struct ClusterDocument<'a> {
    server: &'a str,
    /// The UID of the cluster; null if it could not be read.
    uid: Option<&'a str>,
}

impl<'a, T: Serialize> Envelope<'a, T> {
    pub(super) fn new(content: &'a T, place: &'a ContextAndServer) -> Self {
        let is_connected = !place.server.is_empty();
        Self {
            api_version: API_VERSION,
            cluster: is_connected.then(|| ClusterDocument {
                server: &place.server,
                uid: place.uid.get(),
            }),
            content,
        }
    }
}

/// A document that is also a table, and a list of names.
pub trait Listing: Serialize {
    /// Returns the lines of the table.
    fn lines(&self, style: Style) -> Vec<String>;

    /// Returns the names of the objects in the document.
    fn names(&self) -> Vec<String>;
}

/// The set of a command, as far as it is known: a command that fails early knows only the name.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SetDocument {
    /// The id; null if the parent's kind is unknown.
    pub id: Option<String>,
    /// The kind of the parent.
    pub kind: Option<String>,
    /// The API group of the parent.
    pub group: Option<String>,
    /// The namespace of the parent.
    pub namespace: Option<String>,
    /// The name of the parent.
    pub name: String,
    /// The tool that manages the set.
    pub tooling: Option<String>,
}

impl SetDocument {
    /// Creates the document of a set of which only the name is known.
    pub fn from_name(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    fn new(id: &ApplySetId, parent: &ParentIdentity, tooling: Option<String>) -> Self {
        Self {
            id: Some(id.to_string()),
            kind: Some(parent.group_kind.kind.clone()),
            group: Some(parent.group_kind.group.clone()),
            namespace: parent.namespace.clone(),
            name: parent.name.clone(),
            tooling,
        }
    }

    /// Returns the parent as the command line names it: `secret/web`.
    pub fn reference(&self) -> String {
        let group = self.group.as_deref().unwrap_or_default();
        GroupKind::new(group, self.kind.as_deref().unwrap_or_default()).object_name(&self.name)
    }
}

impl From<&Set> for SetDocument {
    fn from(set: &Set) -> Self {
        Self::new(&set.id, &set.parent, Some(set.tooling.to_string()))
    }
}

/// The cluster that a run works on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextAndServer {
    /// The kubeconfig's context, if there is one.
    pub context: Option<String>,
    /// The URL of the server, without credentials; empty if it is unknown.
    pub server: String,
    /// The UID of the cluster, which only documents have.
    pub uid: ClusterUid,
}

/// The end of a run.
#[derive(Debug, Clone, Copy)]
pub enum RunEnd<'e> {
    /// The run has done everything, or reported why an object failed.
    Complete,
    /// The run was interrupted, and the program exits with this code: the interrupt may be the end of `--timeout`.
    Interrupted(Resume, Exit),
    /// An error ended the run.
    Failed(&'e Error),
}

/// The message of a run that the user interrupted.
pub(super) const INTERRUPTED: &str = "interrupted before everything was done";

/// The error that ended a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErrorDocument {
    exit_code: u8,
    message: String,
    hints: Vec<String>,
}

impl From<&Error> for ErrorDocument {
    fn from(error: &Error) -> Self {
        Self {
            exit_code: error.exit().code(),
            message: error.to_string(),
            hints: error.hints(),
        }
    }
}

impl ErrorDocument {
    /// Creates the error of a run: the error or the interrupt that ended it, or its failures that are not about one
    /// object; `None` if there is none of these.
    pub(super) fn new(end: RunEnd, failures: &[Message]) -> Option<Self> {
        let (interrupted, exit) = match end {
            RunEnd::Failed(error) => return Some(error.into()),
            RunEnd::Interrupted(resume, exit) => (Some(resume), exit),
            RunEnd::Complete => (None, Exit::Failed),
        };
        let mut hints = hints_of(failures);
        hints.extend(interrupted.iter().map(ToString::to_string));
        let messages: Vec<String> = failures
            .iter()
            .map(Message::without_hints)
            .chain(interrupted.map(|_| INTERRUPTED.to_owned()))
            .collect();
        (!messages.is_empty()).then(|| Self {
            exit_code: exit.code(),
            message: messages.join("\n"),
            hints,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::error::ErrorKind;
    use crate::report::output;

    #[test]
    fn the_error_of_a_run_has_the_exit_code_and_all_messages() {
        let error = Error::new(ErrorKind::Usage, "wrong");
        let interrupted = |exit| RunEnd::Interrupted(Resume::SameCommand, exit);
        let resume = Resume::SameCommand.to_string();
        let both = "parent failed\ninterrupted before everything was done";
        for (end, failures, expected) in [
            (RunEnd::Complete, &[][..], None),
            (
                RunEnd::Complete,
                &["parent failed"],
                Some((1, "parent failed", vec![])),
            ),
            (
                RunEnd::Failed(&error),
                &["parent failed"],
                Some((2, "wrong", vec![])),
            ),
            (
                interrupted(Exit::Interrupted),
                &[],
                Some((130, INTERRUPTED, vec![&resume])),
            ),
            (
                interrupted(Exit::Interrupted),
                &["parent failed"],
                Some((130, both, vec![&resume])),
            ),
            (
                interrupted(Exit::Failed),
                &["parent failed"],
                Some((1, both, vec![&resume])),
            ),
        ] {
            let failures: Vec<Message> = failures.iter().copied().map(Message::from).collect();
            let document = ErrorDocument::new(end, &failures);
            let found = document.as_ref().map(|error| {
                (
                    error.exit_code,
                    error.message.as_str(),
                    error.hints.iter().collect(),
                )
            });
            assert_eq!(found, expected, "{end:?}");
        }
    }

    #[test]
    fn the_hints_of_failures_are_not_part_of_the_message() {
        let failure = Message::new("failed").with_details(["a: one".to_owned()]);
        let failures = [
            failure.with_hint("correct it"),
            Message::new("and so").with_hint("correct it"),
        ];
        let document = ErrorDocument::new(RunEnd::Complete, &failures).expect("an error");
        assert_eq!(document.message, "failed\n  a: one\nand so");
        assert_eq!(document.hints, ["correct it"]);
    }

    #[test]
    fn a_document_names_its_cluster() {
        let document = |place: &ContextAndServer| -> Value {
            let text = output::json(&Envelope::new(&json!({"sets": []}), place));
            serde_json::from_str(&text).expect("JSON")
        };
        let mut expected = json!({"apiVersion": "kubectl-applyset/v1", "cluster": null, "sets": []});
        assert_eq!(document(&ContextAndServer::default()), expected);
        let place = ContextAndServer {
            server: "https://example.com".to_owned(),
            ..ContextAndServer::default()
        };
        expected["cluster"] = json!({"server": "https://example.com", "uid": null});
        assert_eq!(document(&place), expected);
    }
}
