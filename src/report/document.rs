//! The document that commands which write print for scripts: `kubectl-applyset/v1`, `Report`.
//!
//! Fields may be added; none is renamed or removed within v1.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{API_VERSION, Completeness};
use crate::error::{Error, Exit};
use crate::event::{Action, Awaited, ObjectOutcome, Operation};
use crate::model::message::Message;
use crate::model::set::Set;
use crate::model::settings::DryRun;

/// What is known of the set.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SetDocument {
    /// The id; null as long as the parent's kind is not known.
    pub id: Option<String>,
    /// Kind of the parent.
    pub kind: Option<String>,
    /// Group of the parent.
    pub group: Option<String>,
    /// Namespace of the parent.
    pub namespace: Option<String>,
    /// Name of the parent.
    pub name: String,
    /// Who manages the set.
    pub tooling: Option<String>,
}

impl SetDocument {
    /// A set of which only the name is known.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }
}

impl From<&Set> for SetDocument {
    fn from(set: &Set) -> Self {
        Self {
            id: Some(set.id.to_string()),
            kind: Some(set.parent.group_kind.kind.clone()),
            group: Some(set.parent.group_kind.group.clone()),
            namespace: set.parent.namespace.clone(),
            name: set.parent.name.clone(),
            tooling: Some(set.tooling.to_string()),
        }
    }
}

/// What a run took.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// HTTP requests sent, repeated ones included.
    pub requests: u64,
    /// Time since the start.
    pub seconds: f64,
}

/// What a run has told of itself.
#[derive(Debug)]
pub struct Account {
    /// Which command it is of.
    pub operation: Operation,
    /// Whether it writes.
    pub dry_run: DryRun,
    /// What became of each object; empty where no document is printed in the end.
    pub results: Vec<ObjectOutcome>,
    /// What was waited for in vain; `None` where nothing was waited for.
    pub waiting: Option<Vec<Awaited>>,
    /// What people should know.
    pub warnings: Vec<String>,
    /// What failed and is no object of the set.
    pub failures: Vec<Message>,
}

/// The document.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report<'a> {
    api_version: &'static str,
    kind: &'static str,
    command: Operation,
    dry_run: &'static str,
    set: SetDocument,
    results: &'a [ObjectOutcome],
    summary: BTreeMap<Action, usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<&'a [Awaited]>,
    warnings: &'a [String],
    error: Option<ErrorDocument>,
    requests: u64,
    seconds: f64,
}

/// Why there is nothing more to tell.
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
    /// That somebody stopped the run.
    pub(super) fn of_the_end(completeness: Completeness) -> Option<Self> {
        let Completeness::BrokenOff(resume) = completeness else {
            return None;
        };
        Some(Self {
            exit_code: Exit::Interrupted.code(),
            message: "interrupted before everything was done".to_owned(),
            hints: vec![resume.to_string()],
        })
    }

    /// What failed while writing and is no object of the set.
    pub(super) fn of_failures(failures: &[Message]) -> Option<Self> {
        (!failures.is_empty()).then(|| Self {
            exit_code: Exit::Failed.code(),
            message: failures
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("\n"),
            hints: Vec::new(),
        })
    }
}

impl<'a> Report<'a> {
    /// The document of a run.
    pub fn new(
        set: SetDocument,
        account: &'a Account,
        error: Option<&Error>,
        completeness: Completeness,
        cost: Cost,
    ) -> Self {
        let Account {
            operation,
            dry_run,
            results,
            waiting,
            warnings,
            failures,
        } = account;
        let actions = operation.actions();
        let count = |action| results.iter().filter(|outcome| outcome.action == action).count();
        Self {
            api_version: API_VERSION,
            kind: "Report",
            command: *operation,
            dry_run: match dry_run {
                DryRun::None => "none",
                DryRun::Client => "client",
                DryRun::Server => "server",
            },
            set,
            results,
            summary: actions
                .into_iter()
                .map(|action| (action, count(action)))
                .collect(),
            waiting: waiting.as_deref(),
            warnings,
            error: error
                .map(ErrorDocument::from)
                .or_else(|| ErrorDocument::of_failures(failures))
                .or_else(|| ErrorDocument::of_the_end(completeness)),
            requests: cost.requests,
            seconds: cost.seconds,
        }
    }
}
