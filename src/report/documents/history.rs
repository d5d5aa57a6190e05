//! The output of `history`: a document, or a table.

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::set_summary::{UNKNOWN, reference};
use super::{ErrorDocument, SetDocument};
use crate::error::Error;
use crate::model::history_annotation::{Run, RunOperation};
use crate::report::layout::columns::{columns, fitting_columns};
use crate::report::style::Width;

/// The document of `history`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryDocument {
    set: SetDocument,
    /// The runs, the latest first.
    pub runs: Vec<RunDocument>,
    error: Option<ErrorDocument>,
}

/// One run.
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
        let named = run.counts.named();
        let changes: Vec<String> = named.map(|(count, word)| format!("{count} {word}")).collect();
        let mark = match &run.operation {
            RunOperation::Apply => String::new(),
            operation => format!("{}: ", operation.as_str()),
        };
        Self {
            time: run.time,
            result: if is_abandoned {
                "abandoned".to_owned()
            } else {
                run.result.as_str().to_owned()
            },
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
            changes: format!("{mark}{}", changes.join(", ")),
        }
    }
}

impl HistoryDocument {
    /// The document of these runs of the set, as they are `now`.
    pub fn new(set: SetDocument, runs: Vec<Run>, now: Timestamp) -> Self {
        Self {
            set,
            runs: runs.into_iter().map(|run| RunDocument::new(run, now)).collect(),
            error: None,
        }
    }

    /// The document of an error.
    pub fn failed(set: SetDocument, error: &Error) -> Self {
        Self {
            error: Some(error.into()),
            ..Self::new(set, Vec::new(), Timestamp::UNIX_EPOCH)
        }
    }

    /// The name of the parent, as the command line takes it: `secret/web`.
    pub fn reference(&self) -> String {
        reference(&self.set)
    }
}

/// The table of `history`; without runs it is empty.
pub(in crate::report) fn table(document: &HistoryDocument, width: Width) -> Vec<String> {
    if document.runs.is_empty() {
        return Vec::new();
    }
    let header = ["TIME", "RESULT", "CHANGES", "MANIFESTS", "USER", "VERSION"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(document.runs.iter().map(row));
    match width {
        Width::Usual | Width::Wide => columns(&rows),
        Width::Fitting(width) => fitting_columns(&rows, width, &["VERSION"]),
    }
}

fn row(run: &RunDocument) -> Vec<String> {
    vec![
        run.time.clone(),
        run.result.clone(),
        run.changes.clone(),
        run.manifests.clone(),
        run.user.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
        run.version.clone(),
    ]
}
