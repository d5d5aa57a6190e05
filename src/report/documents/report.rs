//! The output document of commands that write: `kubectl-applyset/v1`, `Report`.
//!
//! Fields may be added; none is renamed or removed within v1.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{ErrorDocument, RunEnd, SetDocument};
use crate::compare::diff::Change;
use crate::event::{Action, ActionCounts, Awaited, ObjectOutcome, Operation};
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::write_settings::DryRun;
use crate::plan::Refusal;
use crate::report::diff::{Comparison, Differences, RecordChange};

/// The number of requests and the duration of a run.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RequestsAndSeconds {
    /// The number of HTTP requests, with repeated ones.
    pub requests: u64,
    /// The time since the start, without open questions.
    pub seconds: f64,
}

/// The events of a run, collected for the document.
#[derive(Debug)]
pub(in crate::report) struct Collected {
    /// The command.
    pub operation: Operation,
    /// The dry-run mode.
    pub dry_run: DryRun,
    /// The outcome of each object; empty if no document is printed at the end.
    pub results: Vec<ObjectOutcome>,
    /// The losses of data that the user has agreed to.
    pub losses: Vec<Refusal>,
    /// The objects that the run has waited for in vain; `None` if the run did not wait.
    pub waiting: Option<Vec<Awaited>>,
    pub warnings: Vec<String>,
    /// Failures that do not concern an object of the set.
    pub failures: Vec<Message>,
}

/// The document of a run, and of `diff`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::report) struct Report<'a> {
    kind: &'static str,
    command: Operation,
    dry_run: &'static str,
    set: SetDocument,
    results: Vec<ObjectDocument<'a>>,
    summary: BTreeMap<Action, usize>,
    #[serde(flatten)]
    diff_fields: Option<DiffDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<&'a [Awaited]>,
    warnings: &'a [String],
    error: Option<ErrorDocument>,
    #[serde(flatten)]
    cost: RequestsAndSeconds,
}

#[derive(Debug, Serialize)]
struct ObjectDocument<'a> {
    #[serde(flatten)]
    outcome: &'a ObjectOutcome,
    #[serde(flatten)]
    diff_fields: Option<ComparisonDocument>,
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
#[serde(rename_all = "camelCase")]
struct DiffDocument<'a> {
    validated_by_server: bool,
    record: &'a RecordChange,
    /// Only with `--base`.
    #[serde(skip_serializing_if = "Option::is_none")]
    drift: Option<Vec<ObjectDocument<'a>>>,
    refusals: Vec<RefusalDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct RefusalDocument<'a> {
    object: Option<&'a ObjectKey>,
    message: String,
    hint: String,
}

impl<'a> Report<'a> {
    /// Creates the document of a run, or of `diff` if there is `found`.
    pub(in crate::report) fn new(
        set: SetDocument,
        collected: &'a Collected,
        found: Option<&'a Differences>,
        end: RunEnd,
        cost: RequestsAndSeconds,
    ) -> Self {
        let results: Vec<ObjectDocument> = match found {
            None => collected.results.iter().map(ObjectDocument::from).collect(),
            Some(found) => found.objects.iter().map(ObjectDocument::from).collect(),
        };
        let mut counts = ActionCounts::default();
        for object in &results {
            counts.add(object.outcome.action);
        }
        let actions = collected.operation.actions_in_summary().into_iter();
        Self {
            kind: "Report",
            command: collected.operation,
            dry_run: match collected.dry_run {
                DryRun::None => "none",
                DryRun::Client => "client",
                DryRun::Server => "server",
            },
            set,
            results,
            summary: actions.map(|action| (action, counts.count(action))).collect(),
            diff_fields: found.map(DiffDocument::from),
            waiting: collected.waiting.as_deref(),
            warnings: &collected.warnings,
            error: ErrorDocument::new(end, &collected.failures),
            cost,
        }
    }
}

impl<'a> From<&'a ObjectOutcome> for ObjectDocument<'a> {
    fn from(outcome: &'a ObjectOutcome) -> Self {
        Self {
            outcome,
            diff_fields: None,
        }
    }
}

impl<'a> From<&'a Comparison> for ObjectDocument<'a> {
    fn from(object: &'a Comparison) -> Self {
        Self {
            outcome: &object.outcome,
            diff_fields: Some(ComparisonDocument {
                drift: object.is_drift(),
                changes: object.difference.changes(),
                diff: object.difference.unified(),
            }),
        }
    }
}

impl<'a> From<&'a Differences> for DiffDocument<'a> {
    fn from(found: &'a Differences) -> Self {
        let refusals = found.refusals.iter().map(|refusal| RefusalDocument {
            object: refusal.object(),
            message: refusal.to_string(),
            hint: refusal.hint(),
        });
        Self {
            validated_by_server: found.dry_run != DryRun::Client,
            record: &found.record,
            drift: found
                .drift
                .as_ref()
                .map(|drift| drift.iter().map(ObjectDocument::from).collect()),
            refusals: refusals.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::event::Resume;
    use crate::exit::Exit;

    #[test]
    fn a_document_diff_fields_has_the_fields_of_a_run_and_more() {
        let collected = Collected {
            operation: Operation::Diff,
            dry_run: DryRun::Server,
            results: Vec::new(),
            losses: Vec::new(),
            waiting: None,
            warnings: Vec::new(),
            failures: Vec::new(),
        };
        let interrupted = RunEnd::Interrupted(Resume::SameCommand, Exit::Interrupted);
        let cost = RequestsAndSeconds {
            requests: 1,
            seconds: 0.0,
        };
        let found = Differences::default();
        let [run, diff] = [None, Some(&found)].map(|found| {
            json!(Report::new(
                SetDocument::from_name("web"),
                &collected,
                found,
                interrupted,
                cost
            ))
        });
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
        assert_eq!(more, ["record", "refusals", "validatedByServer"]);
        assert_eq!(diff["error"]["exitCode"], 130);
    }
}
