//! The runs of a set, in an annotation of its parent: those under way, and the last ones that changed it.
//!
//! A run under way keeps the record wide: no other run takes kinds or namespaces out of it. One that has not renewed
//! its entry for ten minutes counts as abandoned, and is not under way any more. Past runs are for people. What
//! cannot be read is dropped.

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

/// Annotation on a parent: its runs as a list in JSON, those under way first, then the others, the latest
/// first. It does not have the prefix `applyset.kubernetes.io/`, because other tools read every key that has it.
pub const HISTORY_ANNOTATION: &str = "kubectl-applyset/history";

/// The time without a renewal after which a run counts as abandoned: it was killed, or has lost the server.
pub const ABANDONED_AFTER: Duration = Duration::from_mins(10);

/// The age of its entry at which a run renews it. Writes stop a minute later (`write_lease`), so that what an abandoned
/// run has written is at least half of [`ABANDONED_AFTER`] old.
pub const RENEWED_AFTER: Duration = Duration::from_mins(4);

/// The greatest number of past runs that are kept.
const MOST_RUNS: usize = 10;

/// The room for the result of a run under way, in bytes: a run that begins can end.
const ROOM_FOR_RESULT: usize = 256;

/// The room for past runs in the annotation's value, in bytes.
pub const ROOM_FOR_RUNS: usize = 1024;

/// The greatest number of characters of a user's name that are kept.
const LONGEST_USER: usize = 64;

/// A run as its entry in the annotation describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The time of its end by the server's clock, RFC 3339 in UTC; the time of its beginning while it is under way,
    /// or if it was abandoned.
    pub time: String,
    /// The result, or that it is under way.
    pub result: RunResult,
    /// The number of objects by outcome.
    #[serde(flatten)]
    pub counts: Counts,
    /// True if it only takes objects out of the set, so that nothing has to stay recorded for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_out: bool,
    /// The command.
    #[serde(default, skip_serializing_if = "RunOperation::is_apply")]
    pub operation: RunOperation,
    /// The digest of the members' manifests; empty for a run without manifests.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifests: String,
    /// The user, if the server has named one, as [`kept_of_user`] returns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The version of this program.
    pub version: String,
    /// Identifies a run under way; empty for a past run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The time at which a run under way has last renewed its entry; `None` before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed: Option<String>,
    /// What a later version of this program has written, too.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
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
    /// One of a later version of this program.
    #[serde(untagged)]
    Other(String),
}

impl RunOperation {
    fn is_apply(&self) -> bool {
        *self == Self::Apply
    }

    /// Returns the name of the command.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Apply => "apply",
            Self::Adopt => "adopt",
            Self::Move => "move",
            Self::Delete => "delete",
            Self::Disband => "disband",
            Self::Other(word) => word,
        }
    }
}

/// The state of a run under way, or how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunResult {
    /// It is under way.
    Running,
    /// Everything was done.
    Done,
    /// Something failed.
    Failed,
    /// It was interrupted.
    Interrupted,
    /// It was killed, or has lost the server.
    Abandoned,
    /// One of a later version of this program: it may be under way.
    #[serde(untagged)]
    Other(String),
}

impl RunResult {
    /// Returns the word for people.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Abandoned => "abandoned",
            Self::Other(word) => word,
        }
    }
}

impl Run {
    /// Returns whether the run is under way, or was when it was killed.
    pub fn is_running(&self) -> bool {
        matches!(self.result, RunResult::Running | RunResult::Other(_))
    }

    /// Returns the time at which a run under way has last written its entry.
    pub fn last_renewal(&self) -> &str {
        self.renewed.as_ref().unwrap_or(&self.time)
    }

    /// Returns how long ago a run under way began: `12 s ago`.
    pub fn began(&self, now: Timestamp) -> String {
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

    /// Returns what another run has to wait for: `an apply by ci began 12 s ago and has not ended; …`.
    pub fn wait_advice(&self, parent: &ObjectKey, now: Timestamp) -> String {
        format!(
            "{self} began {} and has not ended; run the same command again once it has; if you know that it was killed, run `kubectl applyset verify {} --fix` at a terminal; otherwise it counts as abandoned from {}",
            self.began(now),
            parent.argument(),
            self.counts_until()
        )
    }

    /// Returns the time from which a run under way is taken for abandoned, unless it renews its entry: `10:14:02Z`.
    pub fn counts_until(&self) -> String {
        let renewed = self.last_renewal();
        let until = renewed.parse().ok().and_then(abandoned_from);
        until.unwrap_or_else(|| renewed.to_owned())
    }

    /// Returns whether a run under way has not renewed its entry for [`ABANDONED_AFTER`], so that it counts as dead.
    pub fn is_abandoned(&self, now: Timestamp) -> bool {
        let Ok(renewed) = self.last_renewal().parse::<Timestamp>() else {
            return true;
        };
        // A later time than now comes from a server whose clock was set back since.
        now.duration_since(renewed).unsigned_abs() >= ABANDONED_AFTER && renewed < now
    }
}

/// Returns the time from which a run that has last written its entry then is taken for abandoned: `10:14:02Z`.
pub fn abandoned_from(renewed: Timestamp) -> Option<String> {
    let until = renewed.checked_add(ABANDONED_AFTER).ok()?;
    Some(until.strftime("%TZ").to_string())
}

/// A run in a sentence: `an apply by ci`.
impl Display for Run {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let article = match self.operation {
            RunOperation::Apply | RunOperation::Adopt => "an",
            RunOperation::Move | RunOperation::Delete | RunOperation::Disband | RunOperation::Other(_) => "a",
        };
        write!(formatter, "{article} {}", self.operation.as_str())?;
        match &self.user {
            Some(user) => write!(formatter, " by {user}"),
            None => Ok(()),
        }
    }
}

/// The runs in the annotation: those under way first, then past ones, the latest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History(Vec<Run>);

/// There is no room for a run under way beside the parent's other annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom;

impl History {
    /// The runs in a parent's annotations.
    pub fn from_annotations(annotations: &Pairs) -> Self {
        let entries: Vec<Value> = annotations
            .get(HISTORY_ANNOTATION)
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let runs = entries
            .into_iter()
            .filter_map(|entry| serde_json::from_value(entry).ok());
        Self(runs.collect())
    }

    /// Returns all runs, those under way first.
    pub fn into_runs(self) -> Vec<Run> {
        self.0
    }

    /// Returns the runs under way except that with this id.
    pub fn running_beside<'h>(&'h self, id: &'h str) -> impl Iterator<Item = &'h Run> {
        self.0.iter().filter(move |run| run.is_running() && run.id != id)
    }

    /// Returns the runs that may have added members, except that with this id which is under way.
    #[must_use]
    pub fn adding_beside(self, id: &str) -> Self {
        let mut others = self.without(id);
        others.0.retain(|run| !run.takes_out);
        others
    }

    /// Returns a run that takes objects out of the set, and has begun or ended since the history was `before`.
    pub fn taken_out_since(&self, before: &Self) -> Option<&Run> {
        let mut takes_out = self.0.iter().filter(|run| run.takes_out);
        takes_out.find(|run| !before.is_running(&run.id) && !before.0.contains(run))
    }

    /// Returns whether the run with this id is under way.
    pub fn is_running(&self, id: &str) -> bool {
        self.0.iter().any(|run| run.is_running() && run.id == id)
    }

    /// Returns the history without the run under way with this id.
    #[must_use]
    pub fn without(mut self, id: &str) -> Self {
        self.0.retain(|run| !run.is_running() || run.id != id);
        self
    }

    /// Makes the run under way with this id a past run that was abandoned.
    pub fn abandon(&mut self, id: &str) {
        let Some(place) = self.0.iter().position(|run| run.is_running() && run.id == id) else {
            return;
        };
        let run = self.0.remove(place);
        self.add(Run {
            result: RunResult::Abandoned,
            id: String::new(),
            renewed: None,
            ..run
        });
    }

    /// Takes out the runs that were abandoned before `now`, and returns them.
    pub fn take_abandoned(&mut self, now: Timestamp) -> Vec<Run> {
        let abandoned = self
            .0
            .extract_if(.., |run| run.is_running() && run.is_abandoned(now));
        abandoned.collect()
    }

    /// Adds a run. One under way takes the place of its older entry; one that has ended comes before other past
    /// runs.
    pub fn add(&mut self, run: Run) {
        if run.is_running() {
            self.0.retain(|other| !other.is_running() || other.id != run.id);
            self.0.insert(0, run);
        } else {
            let running = self.0.iter().take_while(|other| other.is_running()).count();
            self.0.insert(running, run);
        }
    }

    /// Returns the value of the annotation beside the parent's other annotations; `None` without any run. The oldest
    /// past runs make room for the others.
    ///
    /// # Errors
    ///
    /// There is no room for the runs under way.
    pub fn value(&self, annotations: &Pairs) -> Result<Option<String>, NoRoom> {
        let others = annotations.iter().filter(|(key, _)| *key != HISTORY_ANNOTATION);
        let taken: usize = others.map(|(key, value)| key.len() + value.len()).sum();
        let free = ANNOTATIONS_LIMIT.saturating_sub(taken + HISTORY_ANNOTATION.len());
        let (mut runs, past): (Vec<&Run>, Vec<&Run>) = self.0.iter().partition(|run| run.is_running());
        let running = runs.len();
        // A run that has ended beside those under way leaves its trace: they would narrow the record otherwise.
        let room = serde_json::to_string(&runs).map_err(|_| NoRoom)?.len() + ROOM_FOR_RUNS;
        runs.extend(past.into_iter().take(MOST_RUNS));
        while !runs.is_empty() {
            let text = serde_json::to_string(&runs).map_err(|_| NoRoom)?;
            let limit = if runs.len() > running {
                room.min(free)
            } else {
                free
            };
            if running > 0 && runs.len() == running && text.len() + ROOM_FOR_RESULT > free {
                return Err(NoRoom);
            }
            if text.len() <= limit {
                return Ok(Some(text));
            }
            runs.pop();
        }
        Ok(None)
    }
}

/// The number of objects of a past run by outcome; unchanged and skipped ones are not counted.
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
    /// Returns each count that is not zero, with its word.
    pub fn named(&self) -> impl Iterator<Item = (usize, &'static str)> {
        [
            (self.created, "created"),
            (self.configured, "configured"),
            (self.recreated, "recreated"),
            (self.pruned, "pruned"),
            (self.adopted, "adopted"),
            (self.deleted, "deleted"),
            (self.released, "released"),
            (self.failed, "failed"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Returns as much of a user's name as the history keeps. A [`Run`] holds it in this form, so that a
/// run finds its own entry among those that it reads back.
pub fn kept_of_user(name: &str) -> String {
    name.chars().take(LONGEST_USER).collect()
}
