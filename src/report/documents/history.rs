//! The output of `history`: a document, or a table.

use std::iter;

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::set_summary::{UNKNOWN, format_age};
use super::{ErrorDocument, Listing, SetDocument};
use crate::error::Error;
use crate::model::history_annotation::{Run, RunOperation, RunResult};
use crate::model::text::escape_as_one_line;
use crate::report::layout::paint::fit;
use crate::report::layout::plan_rows::widest;
use crate::report::layout::tables::{align_columns, format_table};
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
    /// Null if the user has given none.
    pub(super) message: Option<String>,
    version: String,
    #[serde(skip)]
    changes: String,
}

impl From<Run> for RunDocument {
    fn from(run: Run) -> Self {
        let named = run.counts.non_zero_with_words();
        let changes: Vec<String> = named.map(|(count, word)| format!("{count} {word}")).collect();
        // Most runs are applies, so only other commands are named.
        let prefix = match &run.operation {
            RunOperation::Apply => String::new(),
            operation => format!("{operation}: "),
        };
        Self {
            result: run.result,
            time: run.time,
            operation: run.operation,
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

/// The titles of the table, without that of the messages.
const TITLES: [&str; 6] = ["TIME", "RESULT", "CHANGES", "MANIFESTS", "USER", "VERSION"];
/// The titles of the columns that make room for others, the first one first.
const DISPENSABLE: [&str; 2] = ["VERSION", "MANIFESTS"];
/// The least width of the column of messages.
const MIN_MESSAGE_WIDTH: usize = 12;

/// Formats the rows as a table with a last column for the messages. If a message does not fit, drops the dispensable
/// columns, then cuts off its end.
fn format_with_messages(mut rows: Vec<Vec<String>>, messages: &[&str], table_width: usize) -> Vec<String> {
    let messages: Vec<String> = messages.iter().map(|text| escape_as_one_line(text)).collect();
    let mut room = table_width.saturating_sub(3 + widest(messages.iter().map(String::as_str)));
    let mut short_rows = rows.clone();
    for row in &mut short_rows {
        let mut titles = TITLES.iter();
        row.retain(|_| titles.next().is_some_and(|title| !DISPENSABLE.contains(title)));
    }
    if widest(align_columns(&short_rows).iter().map(String::as_str)) > room {
        rows = short_rows;
        room = table_width.saturating_sub(3 + MIN_MESSAGE_WIDTH);
    }
    let table = format_table(rows, room, &DISPENSABLE);
    let width = widest(table.iter().map(String::as_str));
    table
        .iter()
        .zip(messages)
        .map(|(row, message)| fit(format!("{row:width$}   {message}").trim_end(), table_width))
        .collect()
}

impl Listing for HistoryDocument {
    /// The table; without runs it is empty.
    fn lines(&self, style: Style) -> Vec<String> {
        if self.runs.is_empty() {
            return Vec::new();
        }
        let header = TITLES.map(str::to_owned).to_vec();
        let rows = iter::once(header).chain(self.runs.iter().map(RunDocument::row));
        if self.runs.iter().all(|run| run.message.is_none()) {
            return format_table(rows.collect(), style.table_width(), &DISPENSABLE[..1]);
        }
        let messages = self
            .runs
            .iter()
            .map(|run| run.message.as_deref().unwrap_or_default());
        let messages: Vec<&str> = iter::once("MESSAGE").chain(messages).collect();
        format_with_messages(rows.collect(), &messages, style.table_width())
    }

    fn names(&self) -> Vec<String> {
        vec![self.set.reference()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_message_that_does_not_fit_is_cut_off() {
        let rows = [
            TITLES,
            ["T1", "done", "1 created", "0123456789ab", "ci", "v0.1.0"],
            ["T22", "done", "1 created", "", "jane", "v1"],
        ]
        .map(|row| row.map(str::to_owned).to_vec());
        let messages = ["MESSAGE", "fix the login page", ""];
        let lines = |width| format_with_messages(rows.to_vec(), &messages, width);
        assert_eq!(
            lines(usize::MAX),
            [
                "TIME   RESULT   CHANGES     MANIFESTS      USER   VERSION   MESSAGE",
                "T1     done     1 created   0123456789ab   ci     v0.1.0    fix the login page",
                "T22    done     1 created                  jane   v1"
            ]
        );
        assert_eq!(
            lines(50),
            [
                "TIME   RESULT   CHANGES     USER   MESSAGE",
                "T1     done     1 created   ci     fix the login …",
                "T22    done     1 created   jane"
            ]
        );
    }
}
