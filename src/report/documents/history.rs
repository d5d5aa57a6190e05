//! The output of `history`: a document, or a table.

use std::iter;

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::set_summary::UNKNOWN;
use super::{ErrorDocument, Listing, SetDocument};
use crate::error::Error;
use crate::model::history_annotation::{Run, RunOperation};
use crate::report::layout::format_table;
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

/// A run in the document of `history`.
#[derive(Debug, Serialize)]
pub struct RunDocument {
    time: String,
    result: String,
    /// The command.
    operation: String,
    created: usize,
    configured: usize,
    recreated: usize,
    pruned: usize,
    adopted: usize,
    deleted: usize,
    released: usize,
    failed: usize,
    manifests: String,
    /// Null if the server did not name the user.
    user: Option<String>,
    version: String,
    #[serde(skip)]
    changes: String,
}

impl RunDocument {
    fn new(run: Run, now: Timestamp) -> Self {
        let is_abandoned = run.is_running() && run.is_abandoned(now);
        let named = run.counts.non_zero_with_words();
        let changes: Vec<String> = named.map(|(count, word)| format!("{count} {word}")).collect();
        // Most runs are applies, so only other commands are named.
        let prefix = match &run.operation {
            RunOperation::Apply => String::new(),
            operation => format!("{}: ", operation.as_str()),
        };
        let result = match run.result {
            _ if is_abandoned => "abandoned",
            ref result => result.as_str(),
        };
        Self {
            result: result.to_owned(),
            time: run.time,
            operation: run.operation.as_str().to_owned(),
            created: run.counts.created,
            configured: run.counts.configured,
            recreated: run.counts.recreated,
            pruned: run.counts.pruned,
            adopted: run.counts.adopted,
            deleted: run.counts.deleted,
            released: run.counts.released,
            failed: run.counts.failed,
            manifests: run.manifests,
            user: run.user,
            version: run.version,
            changes: format!("{prefix}{}", changes.join(", ")),
        }
    }

    fn row(&self) -> Vec<String> {
        vec![
            self.time.clone(),
            self.result.clone(),
            self.changes.clone(),
            self.manifests.clone(),
            self.user.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
            self.version.clone(),
        ]
    }
}

impl HistoryDocument {
    /// Creates the document of these runs. `now` decides which running ones count as abandoned.
    pub fn new(set: SetDocument, runs: Vec<Run>, now: Timestamp) -> Self {
        Self {
            set,
            runs: runs.into_iter().map(|run| RunDocument::new(run, now)).collect(),
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

impl Listing for HistoryDocument {
    /// The table; without runs it is empty.
    fn lines(&self, style: Style) -> Vec<String> {
        if self.runs.is_empty() {
            return Vec::new();
        }
        let header = ["TIME", "RESULT", "CHANGES", "MANIFESTS", "USER", "VERSION"].map(str::to_owned);
        let rows = iter::once(header.to_vec()).chain(self.runs.iter().map(RunDocument::row));
        format_table(rows.collect(), style.table_width(), &["VERSION"])
    }

    fn names(&self) -> Vec<String> {
        vec![self.set.reference()]
    }
}
