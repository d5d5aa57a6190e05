//! The error that ends a run early: its kind, and its messages with their hints. Each stage creates its errors itself.
//!
//! A failure of a single object does not end the run, so it is an outcome, not an error; see `event`.

use std::collections::BTreeSet;
use std::fmt;

use crate::exit::Exit;
use crate::model::message::Message;

/// The kind of an error, which determines the exit code. Commands handle some kinds instead of failing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The user stopped the run.
    Interrupted,
    /// The command line or the manifests are wrong.
    Usage,
    /// The set does not exist.
    NoSuchSet,
    /// Safety checks refused the run.
    Refused,
    /// The user did not confirm.
    NotConfirmed,
    /// A plan is not saved, because `apply` could not execute it.
    NotSaved,
    /// The set or the manifests have changed since the plan was made.
    Outdated,
    /// Another run of the set began first, and this one has `--exclusive`: it plans again. A run that has waited in
    /// vain for another one is refused (`Refused`).
    OtherRunBegan,
    /// Something failed while writing.
    Failed,
    /// The server could not be reached, refused a request, or did not show what a decision depends on.
    Cluster,
    /// The user lacks permissions.
    Forbidden,
    /// The user lacks the permission to list a collection.
    ListForbidden,
}

/// An error that ended a run before its first write, or that prevented it from continuing.
#[derive(Debug)]
pub struct Error {
    pub kind: ErrorKind,
    /// The messages, each with its hints. A hint that belongs to all messages is below the last one.
    pub messages: Vec<Message>,
    /// The text that output documents show in place of all messages; `None` if they show the messages.
    summary: Option<String>,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<Message>) -> Self {
        Self::from_messages(kind, vec![message.into()])
    }

    pub fn from_messages(kind: ErrorKind, messages: Vec<Message>) -> Self {
        Self {
            kind,
            messages,
            summary: None,
        }
    }

    /// Creates an error about the command line or the manifests, with a hint how to correct them.
    pub fn usage(mistake: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, mistake.into()).with_hint(hint)
    }

    /// Creates the error of a command that the user stopped.
    pub fn interrupted() -> Self {
        Self::new(ErrorKind::Interrupted, "interrupted")
    }

    /// Creates an error about a kind whose API group could not be discovered, so that nothing shows whether it exists.
    pub fn for_undiscoverable_kind(message: String) -> Self {
        Self::new(ErrorKind::Cluster, message)
            .with_hint("restore the API that `kubectl get apiservices` shows as unavailable, then run again")
    }

    /// Creates an error about a kind that is defined but that the server does not serve.
    pub fn for_kind_not_served(message: String) -> Self {
        Self::new(ErrorKind::Cluster, message)
            .with_hint("check `kubectl get crds,apiservices`, then run the same command again")
    }

    /// Adds a hint below the last message.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        if let Some(last) = self.messages.last_mut() {
            last.hints.push(hint.into());
        }
        self
    }

    /// Sets the text that output documents show in place of all messages.
    #[must_use]
    pub fn with_summary_for_documents(mut self, summary: impl Into<String>) -> Self {
        self.summary = Some(summary.into());
        self
    }

    /// Replaces the hints of an error about missing permissions by one that names `kubectl applyset rbac`, which prints
    /// the permissions of `apply` and `diff`. Other errors keep their hints.
    #[must_use]
    pub fn with_rbac_hint_if_forbidden(self) -> Self {
        self.with_hint_if_forbidden("rbac SET -f …")
    }

    /// Does the same for `diff`, which users who may only read can run in another way.
    #[must_use]
    pub fn with_diff_hints_if_forbidden(self) -> Self {
        let is_forbidden = self.kind == ErrorKind::Forbidden;
        let error = self.with_rbac_hint_if_forbidden();
        if is_forbidden {
            return error.with_hint("pass --dry-run=client if you may only read");
        }
        error
    }

    /// Does the same for commands that only read.
    #[must_use]
    pub fn with_read_only_rbac_hint_if_forbidden(self) -> Self {
        self.with_hint_if_forbidden("rbac SET -f … --read-only")
    }

    fn with_hint_if_forbidden(mut self, command: &str) -> Self {
        let more = match self.kind {
            ErrorKind::Forbidden => "",
            ErrorKind::ListForbidden => {
                ", and with --include-recorded if no manifest has this kind or namespace"
            }
            _ => return self,
        };
        let hint =
            format!("print the permissions that this set needs with `kubectl applyset {command}`{more}");
        for message in &mut self.messages {
            message.hints.clear();
        }
        self.with_hint(hint)
    }

    /// Returns the hints of all messages, without repetition.
    pub fn hints(&self) -> Vec<String> {
        hints_of(&self.messages)
    }

    /// Returns how the program ends with this error.
    pub fn exit(&self) -> Exit {
        match self.kind {
            ErrorKind::Interrupted => Exit::Interrupted,
            ErrorKind::Usage | ErrorKind::NoSuchSet => Exit::Usage,
            ErrorKind::Refused
            | ErrorKind::NotConfirmed
            | ErrorKind::NotSaved
            | ErrorKind::Outdated
            | ErrorKind::OtherRunBegan => Exit::Refused,
            ErrorKind::Failed => Exit::Failed,
            ErrorKind::Cluster | ErrorKind::Forbidden | ErrorKind::ListForbidden => Exit::Cluster,
        }
    }
}

/// Returns the hints of these messages, without repetition.
pub fn hints_of(messages: &[Message]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let hints = messages.iter().flat_map(|message| &message.hints);
    hints.filter(|hint| seen.insert(*hint)).cloned().collect()
}

impl fmt::Display for Error {
    /// Writes the summary, or else all messages with their details, without the hints.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(summary) = &self.summary {
            return f.write_str(summary);
        }
        for (index, message) in self.messages.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{}", message.without_hints())?;
        }
        Ok(())
    }
}
