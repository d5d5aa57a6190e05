//! The fields of a set that `list` and `view` share, and their text.

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::SetDocument;
use super::history::RunDocument;
use crate::cluster::discovery::Discovery;
use crate::model::applyset::parent::Reading;
use crate::model::history_annotation::{Run, RunOperation, RunResult};
use crate::read::found_set::{FoundSet, RecordStatus, Visibility};

/// The fields of a set in `list` and `view`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetSummary {
    #[serde(flatten)]
    pub(super) set: SetDocument,
    /// Null if the record cannot be read.
    pub(super) group_kinds: Option<Vec<String>>,
    /// Null if the record cannot be read.
    pub(super) namespaces: Option<Vec<String>>,
    /// Null if the set could not be read: then the command has failed.
    pub(super) status: Option<RecordStatus>,
    pub(super) faults: Vec<String>,
    /// The runs that have not ended.
    pub(super) runs: Vec<RunUnderWay>,
    /// The run that has begun last, or if none is under way, the run that has ended last; null if none is known.
    pub(super) last_run: Option<RunDocument>,
    /// The time at which the set expires, RFC 3339 unless another program has written it; null if it does not expire.
    pub(super) expires: Option<String>,
    #[serde(skip)]
    pub(super) visibility: Visibility,
}

impl SetSummary {
    pub(super) fn new(set: &FoundSet, discovery: &Discovery) -> Self {
        let (tooling, faults) = match &set.reading {
            Reading::Parent(applyset_record) => (Some(applyset_record.tooling.to_string()), Vec::new()),
            Reading::Unfinished(tooling) | Reading::Unrecorded(tooling) => {
                (Some(tooling.to_string()), Vec::new())
            }
            Reading::Faulty(faults) => (None, faults.iter().map(ToString::to_string).collect()),
            Reading::NoRecord => (None, vec!["it has no record".to_owned()]),
        };
        let running = set.running.iter().map(|run| (run, RunResult::Running));
        let abandoned = set.abandoned.iter().map(|run| (run, RunResult::Abandoned));
        Self {
            set: SetDocument::new(&set.id, &set.identity, tooling),
            group_kinds: set.recorded_kind_names(discovery),
            namespaces: set
                .recorded_and_member_namespaces()
                .map(|namespaces| namespaces.into_iter().collect()),
            status: Some(set.status(discovery)),
            faults,
            runs: running.chain(abandoned).map(RunUnderWay::from).collect(),
            last_run: set.last_run.clone().map(RunDocument::from),
            expires: set.expires.clone(),
            visibility: set.determine_visible_part_of_scope(discovery),
        }
    }

    /// Returns the word for the set's status.
    pub(super) fn record_status_word(&self) -> String {
        self.status
            .as_ref()
            .map_or_else(|| UNKNOWN.to_owned(), ToString::to_string)
    }

    /// Returns `3`, or `3+` if some collections could not be listed.
    pub(super) fn member_count_text(&self, members: Option<usize>) -> String {
        match (members, self.visibility) {
            (None, _) => UNKNOWN.to_owned(),
            (Some(count), Visibility::Part) => format!("{count}+"),
            (Some(count), _) => count.to_string(),
        }
    }

    /// Describes the runs that have not ended, or if there are none, the end of the last one; empty if no run is known.
    pub(super) fn describe_last_run(&self) -> String {
        let now = Timestamp::now();
        let under_way: Vec<String> = self.runs.iter().map(|run| run.describe(now)).collect();
        match &self.last_run {
            Some(run) if under_way.is_empty() => run.describe_end(now),
            _ => under_way.join("; "),
        }
    }
}

/// The text of a table for an unknown value.
pub(super) const UNKNOWN: &str = "?";

/// A run that has not ended.
#[derive(Debug, Serialize)]
pub(super) struct RunUnderWay {
    id: String,
    operation: RunOperation,
    /// Null if the server did not name the user.
    user: Option<String>,
    /// RFC 3339.
    began: String,
    /// The time of the last renewal by the run, RFC 3339.
    renewed: String,
    /// `Running`, or `Abandoned` if the last renewal was more than ten minutes ago.
    state: RunResult,
}

impl From<(&Run, RunResult)> for RunUnderWay {
    fn from((run, state): (&Run, RunResult)) -> Self {
        Self {
            id: run.id.clone(),
            operation: run.operation.clone(),
            user: run.user.clone(),
            began: run.time.clone(),
            renewed: run.last_renewal().to_owned(),
            state,
        }
    }
}

impl RunUnderWay {
    /// Describes the run: `apply by ci, began 12s ago`.
    fn describe(&self, now: Timestamp) -> String {
        let mut text = self.operation.to_string();
        if let Some(user) = &self.user {
            text.extend([" by ", user]);
        }
        if self.state == RunResult::Abandoned {
            text.push_str(", abandoned");
        }
        format!("{text}, began {} ago", format_age(Some(&self.began), now))
    }
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Formats the age at `now` of an object that was created at `created`, RFC 3339; `?` if `created` is no time.
pub(super) fn format_age(created: Option<&str>, now: Timestamp) -> String {
    match created.and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(created) => format_span((now.as_second() - created.as_second()).max(0)),
        None => UNKNOWN.to_owned(),
    }
}

/// Formats a duration in one unit, of which it has at least two, as kubectl does for most durations.
fn format_span(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / MINUTE),
        7_200..172_800 => format!("{}h", seconds / HOUR),
        _ => format!("{}d", seconds / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_one_unit() {
        let table = [
            (0, "0s"),
            (119, "119s"),
            (2 * MINUTE, "2m"),
            (9 * MINUTE + 30, "9m"),
            (5 * HOUR + 20 * MINUTE, "5h"),
            (30 * HOUR, "30h"),
            (3 * DAY + 5 * HOUR, "3d"),
            (400 * DAY, "400d"),
        ];
        for (seconds, text) in table {
            assert_eq!(format_span(seconds), text);
        }
    }

    #[test]
    fn ages_count_from_a_time_and_never_backwards() {
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        assert_eq!(format_age(Some("2026-01-01T00:00:00Z"), now), "60s");
        assert_eq!(format_age(Some("2026-01-02T00:00:00Z"), now), "0s");
        assert_eq!(format_age(Some("yesterday"), now), "?");
        assert_eq!(format_age(None, now), "?");
    }
}
