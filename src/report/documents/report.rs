//! The output document of commands that write: `kubectl-applyset/v1`, `Report`.
//!
//! Fields may be added; none is renamed or removed within v1.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{ErrorDocument, SetDocument};
use crate::compare::diff::Change;
use crate::error::Error;
use crate::event::{Action, Awaited, ObjectOutcome, Operation};
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::write_settings::DryRun;
use crate::report::RunEnd;
use crate::report::diff::{Differences, RecordChange};

/// The cost of a run.
#[derive(Debug, Clone, Copy)]
pub struct RequestsAndSeconds {
    /// HTTP requests sent, repeated ones included.
    pub requests: u64,
    /// Time since the start.
    pub seconds: f64,
}

/// The events of a run, collected for the document.
#[derive(Debug)]
pub struct Collected {
    /// The command.
    pub operation: Operation,
    /// The dry-run mode.
    pub dry_run: DryRun,
    /// The outcome of each object; empty if no document is printed at the end.
    pub results: Vec<ObjectOutcome>,
    /// The objects that were not ready in time; `None` if the run did not wait.
    pub waiting: Option<Vec<Awaited>>,
    pub warnings: Vec<String>,
    /// Failures that do not concern an object of the set.
    pub failures: Vec<Message>,
}

/// The document of a run, and of `diff`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report<'a> {
    kind: &'static str,
    command: Operation,
    dry_run: &'static str,
    set: SetDocument,
    results: Vec<ObjectDocument<'a>>,
    summary: BTreeMap<Action, usize>,
    #[serde(flatten)]
    of_diff: Option<DiffDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<&'a [Awaited]>,
    warnings: &'a [String],
    error: Option<ErrorDocument>,
    requests: u64,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct ObjectDocument<'a> {
    #[serde(flatten)]
    outcome: &'a ObjectOutcome,
    #[serde(flatten)]
    of_diff: Option<ComparisonDocument>,
}

/// The fields of an object that only `diff` has.
#[derive(Debug, Serialize)]
struct ComparisonDocument {
    drift: Option<bool>,
    changes: Vec<Change>,
    diff: String,
}

/// The fields that only `diff` has.
#[derive(Debug, Serialize)]
struct DiffDocument<'a> {
    record: &'a RecordChange,
    refusals: Vec<RefusalDocument>,
}

#[derive(Debug, Serialize)]
struct RefusalDocument {
    object: Option<ObjectKey>,
    message: String,
    hint: String,
}

impl<'a> Report<'a> {
    /// The document of a run.
    pub fn new(
        set: SetDocument,
        collected: &'a Collected,
        error: Option<&Error>,
        completeness: RunEnd,
        cost: RequestsAndSeconds,
    ) -> Self {
        let results = collected.results.iter();
        let results: Vec<ObjectDocument> = results
            .map(|outcome| ObjectDocument {
                outcome,
                of_diff: None,
            })
            .collect();
        Self {
            kind: "Report",
            command: collected.operation,
            dry_run: match collected.dry_run {
                DryRun::None => "none",
                DryRun::Client => "client",
                DryRun::Server => "server",
            },
            set,
            summary: summary(collected.operation, &results),
            results,
            of_diff: None,
            waiting: collected.waiting.as_deref(),
            warnings: &collected.warnings,
            error: error
                .map(ErrorDocument::from)
                .or_else(|| ErrorDocument::from_failures(&collected.failures))
                .or_else(|| ErrorDocument::from_run_end(completeness)),
            requests: cost.requests,
            seconds: cost.seconds,
        }
    }

    /// The same with what `diff` found.
    #[must_use]
    pub(in crate::report) fn with(self, found: &'a Differences) -> Self {
        let results = found.objects.iter().map(|object| ObjectDocument {
            outcome: &object.outcome,
            of_diff: Some(ComparisonDocument {
                drift: object.is_drift(),
                changes: object.difference.changes(),
                diff: object.difference.unified(),
            }),
        });
        let results: Vec<ObjectDocument> = results.collect();
        let refusals = found.refusals.iter().map(|refusal| RefusalDocument {
            object: refusal.object().cloned(),
            message: refusal.to_string(),
            hint: refusal.hint(),
        });
        Self {
            summary: summary(self.command, &results),
            results,
            of_diff: Some(DiffDocument {
                record: &found.record,
                refusals: refusals.collect(),
            }),
            ..self
        }
    }
}

/// Counts the objects of each action of the command.
fn summary(operation: Operation, results: &[ObjectDocument]) -> BTreeMap<Action, usize> {
    let mut summary = BTreeMap::new();
    for action in operation.actions() {
        summary.insert(action, 0);
    }
    for object in results {
        if let Some(count) = summary.get_mut(&object.outcome.action) {
            *count += 1;
        }
    }
    summary
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::event::Resume;

    #[test]
    fn a_document_of_diff_has_the_fields_of_a_run_and_more() {
        let collected = Collected {
            operation: Operation::Diff,
            dry_run: DryRun::Server,
            results: Vec::new(),
            waiting: None,
            warnings: Vec::new(),
            failures: Vec::new(),
        };
        let interrupted = RunEnd::Interrupted(Resume::SameCommand);
        let cost = RequestsAndSeconds {
            requests: 1,
            seconds: 0.0,
        };
        let report = || Report::new(SetDocument::named("web"), &collected, None, interrupted, cost);
        let found = Differences::default();
        let [run, diff] = [report(), report().with(&found)].map(|report| json!(report));
        let fields = |document: &Value| -> Vec<String> {
            let fields = document.as_object().into_iter().flat_map(|fields| fields.keys());
            fields.cloned().collect()
        };
        let (run_fields, diff_fields) = (fields(&run), fields(&diff));
        assert!(run_fields.iter().all(|field| diff_fields.contains(field)));
        let more: Vec<&String> = diff_fields
            .iter()
            .filter(|field| !run_fields.contains(field))
            .collect();
        assert_eq!(more, ["record", "refusals"]);
        assert_eq!(diff["error"]["exitCode"], 130);
    }
}
