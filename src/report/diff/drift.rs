//! The drift that `diff --base` lists apart: the objects that differ from the base, whatever the manifests change.

use std::borrow::Cow;

use super::Differences;
use crate::event::{Action, ObjectOutcome};
use crate::model::text::first_lines_and_more;

/// The words before drift.
pub(in crate::report) const DRIFT: &str = "drift, not from these manifests";

/// Describes how the cluster differs from the base.
pub(in crate::report) fn describe_drift(outcome: &ObjectOutcome) -> Cow<'_, str> {
    match outcome.action {
        Action::Created => "missing".into(),
        Action::Pruned => "in no manifest, would be pruned".into(),
        Action::Failed => match &outcome.error {
            Some(error) => format!("would fail: {}", error.text).into(),
            None => "would fail".into(),
        },
        Action::Skipped => outcome.reason.as_str().into(),
        _ => "changed".into(),
    }
}

impl Differences {
    /// Returns a line for each of the first ten objects that drifted, and one with the number of the others.
    pub(in crate::report) fn short_drift_list(&self) -> Vec<String> {
        let objects = self.drift.iter().flatten();
        first_lines_and_more(
            objects.map(|outcome| format!("{}: {}", outcome.subject.key(), describe_drift(outcome))),
        )
    }

    /// Returns the lines of the list, each with words that say that it is drift.
    pub fn drift_lines(&self) -> Vec<String> {
        let list = self.short_drift_list().into_iter();
        list.map(|line| format!("{DRIFT}: {line}")).collect()
    }
}
