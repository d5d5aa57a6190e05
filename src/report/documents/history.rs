//! The output of `history`: a document, or a table.

use std::collections::BTreeMap;
use std::iter;

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::set_summary::{UNKNOWN, format_age};
use super::{ErrorDocument, Listing, SetDocument};
use crate::error::Error;
use crate::model::history_annotation::{Run, RunOperation, RunResult};
use crate::report::layout::align_columns::format_table;
use crate::report::style::Style;

/// The document of `history`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryDocument {
    pub set: SetDocument,
    /// The runs, the latest first.
    pub runs: Vec<RunDocument>,
    error: Option<ErrorDocument>,
}

/// A run in the document of `history`, and the last run in those of `list` and `view`.
#[derive(Debug, Serialize)]
pub struct RunDocument {
    time: String,
    result: RunResult,
    /// The command.
    operation: RunOperation,
    #[serde(flatten)]
    counts: BTreeMap<&'static str, usize>,
    manifests: String,
    /// Null if the server did not name the user.
    user: Option<String>,
    /// Null if the user has given none.
    pub(super) message: Option<String>,
    version: String,
    #[serde(skip)]
    changes: String,
}

impl From<Run> for RunDocument {
    fn from(run: Run) -> Self {
        let counts = run.counts.with_words();
        let above_zero = counts.iter().filter(|(_, count)| *count > 0);
        let changes: Vec<String> = above_zero
            .map(|(word, count)| format!("{count} {word}"))
            .collect();
        // Most runs are applies, so only other commands are named.
        let prefix = match &run.operation {
            RunOperation::Apply => String::new(),
            operation => format!("{operation}: "),
        };
        Self {
            result: run.result,
            time: run.time,
            operation: run.operation,
            counts: counts.into(),
            manifests: run.manifests,
            user: run.user,
            message: run.message,
            version: run.version,
            changes: format!("{prefix}{}", changes.join(", ")),
        }
    }
}

impl RunDocument {
    /// Describes how the run ended, and when: `done 3h ago`.
    pub(super) fn describe_end(&self, now: Timestamp) -> String {
        format!("{} {} ago", self.result, format_age(Some(&self.time), now))
    }

    fn row(&self) -> Vec<String> {
        vec![
            self.time.clone(),
            self.result.to_string(),
            self.changes.clone(),
            self.manifests.clone(),
            self.user.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
            self.version.clone(),
            self.message.clone().unwrap_or_default(),
        ]
    }
}

impl HistoryDocument {
    /// Creates the document of these runs. `now` decides which running ones count as abandoned.
    pub fn new(set: SetDocument, mut runs: Vec<Run>, now: Timestamp) -> Self {
        for run in &mut runs {
            if run.is_running() && run.is_abandoned(now) {
                run.result = RunResult::Abandoned;
            }
        }
        Self {
            set,
            runs: runs.into_iter().map(RunDocument::from).collect(),
            error: None,
        }
    }

    /// Creates the document of a command that failed.
    pub fn from_error(set: SetDocument, error: &Error) -> Self {
        Self {
            error: Some(error.into()),
            ..Self::new(set, Vec::new(), Timestamp::UNIX_EPOCH)
        }
    }
}

/// The titles of the table. The last one is left out if no run has a message.
const TITLES: [&str; 7] = [
    "TIME",
    "RESULT",
    "CHANGES",
    "MANIFESTS",
    "USER",
    "VERSION",
    "MESSAGE",
];

impl Listing for HistoryDocument {
    /// The table; without runs it is empty.
    fn lines(&self, style: Style) -> Vec<String> {
        if self.runs.is_empty() {
            return Vec::new();
        }
        let has_messages = self.runs.iter().any(|run| run.message.is_some());
        let columns = TITLES.len() - usize::from(!has_messages);
        let header = TITLES.map(str::to_owned).to_vec();
        let rows = iter::once(header).chain(self.runs.iter().map(RunDocument::row));
        let rows = rows.map(|row| row.into_iter().take(columns).collect());
        format_table(rows.collect(), style.table_width(), &["VERSION", "MANIFESTS"])
    }

    fn names(&self) -> Vec<String> {
        vec![self.set.reference()]
    }
}
