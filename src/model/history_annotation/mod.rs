//! The runs of a set, in an annotation of its parent: the runs under way, and the last runs that changed the set.
//!
//! While a run that may add members is under way, no other run removes kinds or namespaces from the record of the
//! parent. A run that has not renewed its entry for ten minutes counts as abandoned: it was killed, or has lost the
//! server. The entries of past runs are for users (`history`). Entries that cannot be parsed are dropped by the next
//! write.

mod message_flag;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::applyset::parent::{ANNOTATIONS_LIMIT, Pairs};
use super::identity::ObjectKey;
pub use message_flag::{MAX_MESSAGE_CHARS, shorten_message};

/// Annotation on a parent: the runs of the set as a list in JSON, first the runs under way, then the past runs, the
/// latest first. The key does not have the prefix `applyset.kubernetes.io/`, because other tools read every key with
/// this prefix.
pub const HISTORY_ANNOTATION: &str = "kubectl-applyset/history";

/// The time after which a run that has not renewed its entry counts as abandoned: it was killed, or has lost the
/// server.
pub const ABANDONED_AFTER: Duration = Duration::from_mins(10);

/// The age at which a run renews its entry. If it cannot, it stops writing a minute later (`write_lease`). So its last
/// write is at most 5 minutes after a renewal, and at least 5 minutes before other runs count it as abandoned.
pub const RENEWED_AFTER: Duration = Duration::from_mins(4);

/// The greatest number of past runs that are kept.
const MAX_PAST_RUNS: usize = 10;

/// The bytes that are left free while runs are under way, so that the entry of a run can grow by its result when the
/// run ends.
const RESULT_RESERVE_BYTES: usize = 256;

/// The limit of past runs in the value of the annotation, in bytes. The largest entry fits, whatever its user and its
/// message are: if the entry of a run that has just ended were dropped, a run under way would narrow the record.
pub const PAST_RUNS_BYTES: usize = 3072;

/// The number of characters that are kept of a user's name.
const MAX_USER_CHARS: usize = 64;

/// A run as its entry in the annotation describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The time at which the run ended, by the server's clock, RFC 3339 in UTC. For a run that is under way or was
    /// abandoned, the time at which it began.
    pub time: String,
    /// The end of the run, or that it is under way.
    pub result: RunResult,
    /// The number of objects by outcome.
    #[serde(flatten)]
    pub counts: Counts,
    /// True if the run only removes members from the set. Other runs may then narrow the record while this one is under
    /// way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_out: bool,
    /// The command.
    #[serde(default, skip_serializing_if = "RunOperation::is_apply")]
    pub operation: RunOperation,
    /// The digest of the members' manifests; empty for a run without manifests.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifests: String,
    /// The user, if the server has named one, shortened by [`shorten_user`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The text of `--message`, shortened by [`shorten_message`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The version of this program that wrote the entry.
    pub version: String,
    /// Identifies a run under way; empty for a past run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The time at which a run under way has last renewed its entry; `None` before the first renewal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed: Option<String>,
    /// Fields that a later version of this program has written. They are kept when the annotation is written again.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

impl Run {
    /// Returns whether the entry says that the run is under way. The run may have been killed since: see
    /// [`Self::is_abandoned`].
    pub fn is_running(&self) -> bool {
        matches!(self.result, RunResult::Running | RunResult::Other(_))
    }

    /// Returns whether this is the run with the id. The empty id is the id of no run: a run that has not begun has it,
    /// and an entry of another tool may have it, too.
    pub fn has_id(&self, id: &str) -> bool {
        !id.is_empty() && self.id == id
    }

    /// Returns the time at which a run under way has last written its entry: the last renewal, or the beginning.
    pub fn last_renewal(&self) -> &str {
        self.renewed.as_ref().unwrap_or(&self.time)
    }

    /// Writes how long ago a run under way began: `12 s ago`.
    pub fn describe_beginning(&self, now: Timestamp) -> String {
        let Ok(began) = self.time.parse::<Timestamp>() else {
            return format!("at {}", self.time);
        };
        match (now.as_second() - began.as_second()).max(0) {
            seconds @ ..120 => format!("{seconds} s ago"),
            seconds @ ..7200 => format!("{} min ago", seconds / 60),
            seconds @ ..172_800 => format!("{} h ago", seconds / 3600),
            seconds => format!("{} days ago", seconds / 86_400),
        }
    }

    /// Writes for the user of another run what that run has to wait for, and what to do:
    /// `an apply by ci began 12 s ago and has not ended; …`.
    pub fn wait_advice(&self, parent: &ObjectKey, now: Timestamp) -> String {
        format!(
            "{self} began {} and has not ended; run the same command again once it has; if you know that it was \
             killed, run `kubectl applyset verify {} --fix` at a terminal; otherwise it counts as abandoned from {}",
            self.describe_beginning(now),
            parent.shell_arguments(),
            self.abandonment_time()
        )
    }

    /// Writes the time from which a run under way counts as abandoned, unless it renews its entry before: `10:14:02Z`.
    /// A time that cannot be parsed is returned as it is.
    pub fn abandonment_time(&self) -> String {
        let renewal = self.last_renewal();
        renewal
            .parse()
            .ok()
            .and_then(format_abandonment_time)
            .unwrap_or_else(|| renewal.to_owned())
    }

    /// Returns whether a run under way counts as abandoned, because it has not renewed its entry for
    /// [`ABANDONED_AFTER`], or because the time of its last renewal cannot be parsed.
    pub fn is_abandoned(&self, now: Timestamp) -> bool {
        match self.last_renewal().parse::<Timestamp>() {
            // If the server's clock was set back, the last renewal may be later than now. Such a run counts as under
            // way.
            Ok(renewal) => renewal
                .checked_add(ABANDONED_AFTER)
                .is_ok_and(|abandonment| abandonment <= now),
            Err(_) => true,
        }
    }
}

/// Writes a run as part of a sentence: `an apply by ci`.
impl Display for Run {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let article = match self.operation {
            RunOperation::Apply | RunOperation::Adopt => "an",
            RunOperation::Move | RunOperation::Delete | RunOperation::Disband | RunOperation::Other(_) => "a",
        };
        write!(formatter, "{article} {}", self.operation)?;
        match &self.user {
            Some(user) => write!(formatter, " by {user}"),
            None => Ok(()),
        }
    }
}

/// Writes the time from which a run counts as abandoned after its last renewal: `10:14:02Z`. `None` if the time is out
/// of range.
pub fn format_abandonment_time(renewal: Timestamp) -> Option<String> {
    let abandonment = renewal.checked_add(ABANDONED_AFTER).ok()?;
    Some(abandonment.strftime("%TZ").to_string())
}

/// The command of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunOperation {
    /// `apply`.
    #[default]
    Apply,
    /// `adopt`.
    Adopt,
    /// `move`.
    Move,
    /// `delete`.
    Delete,
    /// `disband`.
    Disband,
    /// A command of a later version of this program.
    #[serde(untagged)]
    Other(String),
}

impl RunOperation {
    fn is_apply(&self) -> bool {
        *self == Self::Apply
    }
}

impl Display for RunOperation {
    /// Writes the name of the command.
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        // A `Formatter` is a serializer for variants without fields.
        self.serialize(formatter)
    }
}

/// The end of a run, or that it is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunResult {
    /// The run is under way.
    Running,
    /// Everything was done.
    Done,
    /// Something failed.
    Failed,
    /// The run was interrupted.
    Interrupted,
    /// The run was killed, or has lost the server.
    Abandoned,
    /// A result of a later version of this program, which may mean that the run is under way. So it counts as under
    /// way.
    #[serde(untagged)]
    Other(String),
}

impl Display for RunResult {
    /// Writes the word for messages and tables.
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        // A `Formatter` is a serializer for variants without fields.
        self.serialize(formatter)
    }
}

/// The runs in the annotation: first the runs under way, then the past runs, the latest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History(Vec<Run>);

/// The error that the other annotations of the parent leave no room for the entries of the runs under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom;

impl History {
    /// Reads the runs from the annotations of a parent. A value or an entry that cannot be parsed is ignored: the
    /// history must not keep users from working with the set.
    pub fn from_annotations(annotations: &Pairs) -> Self {
        let entries: Vec<Value> = annotations
            .get(HISTORY_ANNOTATION)
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        Self(
            entries
                .into_iter()
                .filter_map(|entry| serde_json::from_value(entry).ok())
                .collect(),
        )
    }

    /// Returns all runs, the runs under way first.
    pub fn into_runs(self) -> Vec<Run> {
        self.0
    }

    /// Returns the runs under way, except the run with this id.
    pub fn other_running<'h>(&'h self, id: &'h str) -> impl Iterator<Item = &'h Run> {
        self.0
            .iter()
            .filter(move |run| run.is_running() && !run.has_id(id))
    }

    /// Returns the history without the run under way that has this id, and without the runs that only remove members.
    /// The rest, past or under way, may have added members.
    #[must_use]
    pub fn without_run_and_removals(self, id: &str) -> Self {
        let mut history = self.without_running(id);
        history.0.retain(|run| !run.takes_out);
        history
    }

    /// Returns whether the run with this id is under way.
    pub fn is_running(&self, id: &str) -> bool {
        self.0.iter().any(|run| run.is_running() && run.has_id(id))
    }

    /// Returns the history without the run under way that has this id.
    #[must_use]
    pub fn without_running(mut self, id: &str) -> Self {
        self.0.retain(|run| !run.is_running() || !run.has_id(id));
        self
    }

    /// Turns the run under way that has this id into a past run that was abandoned.
    pub fn mark_as_abandoned(&mut self, id: &str) {
        let Some(index) = self.0.iter().position(|run| run.is_running() && run.id == id) else {
            return;
        };
        let run = self.0.remove(index);
        self.record(Run {
            result: RunResult::Abandoned,
            id: String::new(),
            renewed: None,
            ..run
        });
    }

    /// Removes the runs that count as abandoned at `now`, and returns them.
    pub fn take_abandoned(&mut self, now: Timestamp) -> Vec<Run> {
        self.0
            .extract_if(.., |run| run.is_running() && run.is_abandoned(now))
            .collect()
    }

    /// Records a run. A run under way replaces its older entry, and a past run becomes the first of the past runs.
    pub fn record(&mut self, run: Run) {
        if run.is_running() {
            self.0.retain(|other| !other.is_running() || other.id != run.id);
            self.0.insert(0, run);
        } else {
            let running_count = self.0.iter().take_while(|other| other.is_running()).count();
            self.0.insert(running_count, run);
        }
    }

    /// Writes the value of the annotation, which has to fit in the limit together with the `annotations` of the parent;
    /// `None` if there are no runs. The oldest past runs are dropped until the value fits.
    ///
    /// # Errors
    ///
    /// Returns [`NoRoom`] if the runs under way do not fit.
    pub fn to_annotation_value(&self, annotations: &Pairs) -> Result<Option<String>, NoRoom> {
        let other_bytes: usize = annotations
            .iter()
            .filter(|(key, _)| *key != HISTORY_ANNOTATION)
            .map(|(key, value)| key.len() + value.len())
            .sum();
        let free_bytes = ANNOTATIONS_LIMIT.saturating_sub(other_bytes + HISTORY_ANNOTATION.len());
        let (running, past): (Vec<&Run>, Vec<&Run>) = self.0.iter().partition(|run| run.is_running());
        let running_text = serde_json::to_string(&running).map_err(|_| NoRoom)?;
        // Past runs have a limit of their own, in addition to the runs under way. If the entry of a run that has just
        // ended were dropped, a run under way would not see that members were added, and would narrow the record.
        let limit = (running_text.len() + PAST_RUNS_BYTES).min(free_bytes);
        for past_count in (1..=past.len().min(MAX_PAST_RUNS)).rev() {
            let runs: Vec<&Run> = running.iter().chain(&past[..past_count]).copied().collect();
            let text = serde_json::to_string(&runs).map_err(|_| NoRoom)?;
            if text.len() <= limit {
                return Ok(Some(text));
            }
        }
        if running.is_empty() {
            Ok(None)
        } else if running_text.len() + RESULT_RESERVE_BYTES > free_bytes {
            Err(NoRoom)
        } else {
            Ok(Some(running_text))
        }
    }
}

/// The number of objects of a past run by outcome. Unchanged and skipped objects are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Objects that did not exist before.
    #[serde(skip_serializing_if = "is_zero")]
    pub created: usize,
    /// Objects that were changed.
    #[serde(skip_serializing_if = "is_zero")]
    pub configured: usize,
    /// Objects that were deleted and created again.
    #[serde(skip_serializing_if = "is_zero")]
    pub recreated: usize,
    /// Objects that were deleted because they left the manifests.
    #[serde(skip_serializing_if = "is_zero")]
    pub pruned: usize,
    /// Objects that were taken into the set with their content as it was.
    #[serde(skip_serializing_if = "is_zero")]
    pub adopted: usize,
    /// Objects that were deleted with their set.
    #[serde(skip_serializing_if = "is_zero")]
    pub deleted: usize,
    /// Objects that were taken out of the set with their content as it was.
    #[serde(skip_serializing_if = "is_zero")]
    pub released: usize,
    /// Objects that failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: usize,
}

impl Counts {
    /// Returns each count with the word for its outcome.
    pub fn with_words(&self) -> [(&'static str, usize); 8] {
        [
            ("created", self.created),
            ("configured", self.configured),
            ("recreated", self.recreated),
            ("pruned", self.pruned),
            ("adopted", self.adopted),
            ("deleted", self.deleted),
            ("released", self.released),
            ("failed", self.failed),
        ]
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Shortens a user's name to the length that the history keeps. A [`Run`] has the short name from the start, so that
/// its own entry in the annotation is equal to it.
pub fn shorten_user(name: &str) -> String {
    name.chars().take(MAX_USER_CHARS).collect()
}
