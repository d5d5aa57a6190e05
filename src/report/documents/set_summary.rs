//! The fields of a set that `list` and `view` share, and their text.

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::SetDocument;
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
    /// Null if the set could not be read.
    pub(super) status: Option<RecordStatus>,
    pub(super) faults: Vec<String>,
    /// The runs that have not ended.
    pub(super) runs: Vec<RunUnderWay>,
    #[serde(skip)]
    pub(super) visibility: Visibility,
}

impl SetSummary {
    pub(super) fn new(set: &FoundSet, discovery: &Discovery) -> Self {
        let (tooling, faults) = match &set.reading {
            Reading::Parent(applyset_record) => (Some(applyset_record.tooling.to_string()), Vec::new()),
            Reading::Unfinished(tooling) => (Some(tooling.to_string()), Vec::new()),
            Reading::Faulty(faults) => (None, faults.iter().map(ToString::to_string).collect()),
            Reading::NoRecord => (None, vec!["it has no record".to_owned()]),
        };
        let running = set.running.iter().map(|run| (run, RunResult::Running));
        let abandoned = set.abandoned.iter().map(|run| (run, RunResult::Abandoned));
        Self {
            set: SetDocument::new(&set.id, &set.identity, tooling),
            group_kinds: set.group_kinds(discovery),
            namespaces: set
                .namespaces()
                .map(|namespaces| namespaces.into_iter().collect()),
            status: Some(set.status(discovery)),
            faults,
            runs: running.chain(abandoned).map(RunUnderWay::from).collect(),
            visibility: set.visibility(discovery),
        }
    }

    /// The word for the set's status.
    pub(super) fn status(&self) -> &'static str {
        match self.status {
            Some(RecordStatus::Consistent) => "consistent",
            Some(RecordStatus::Unfinished) => "unfinished",
            Some(RecordStatus::Invalid) => "invalid",
            Some(RecordStatus::Unknown) => "unknown",
            None => UNKNOWN,
        }
    }

    /// `3`, or `3+` if there may be more.
    pub(super) fn member_count(&self, members: Option<usize>) -> String {
        match (members, self.visibility) {
            (None, _) => UNKNOWN.to_owned(),
            (Some(count), Visibility::Part) => format!("{count}+"),
            (Some(count), _) => count.to_string(),
        }
    }

    /// Returns the runs in words; empty without any.
    pub(super) fn runs_in_words(&self) -> String {
        let now = Timestamp::now();
        let texts: Vec<String> = self.runs.iter().map(|run| run.text(now)).collect();
        texts.join("; ")
    }
}

/// Text for an unknown value.
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
    /// When the run last said that it is alive, RFC 3339.
    renewed: String,
    /// Running, or abandoned if it has not said so for ten minutes.
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
    /// Returns the run in words: `apply by ci, began 12s ago`.
    fn text(&self, now: Timestamp) -> String {
        let mut text = self.operation.as_str().to_owned();
        if let Some(user) = &self.user {
            text.extend([" by ", user]);
        }
        if self.state == RunResult::Abandoned {
            text.push_str(", abandoned");
        }
        format!("{text}, began {} ago", age(Some(&self.began), now))
    }
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Returns the age at `now` of an object created at `created`, RFC 3339; `?` if that is not a time.
pub(super) fn age(created: Option<&str>, now: Timestamp) -> String {
    match created.and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(created) => span((now.as_second() - created.as_second()).max(0)),
        None => UNKNOWN.to_owned(),
    }
}

fn span(seconds: i64) -> String {
    let single = |unit: i64, letter: char| format!("{}{letter}", seconds / unit);
    let double = |unit: i64, letter: char, smaller: i64, small: char| match seconds % unit / smaller {
        0 => single(unit, letter),
        rest => format!("{}{letter}{rest}{small}", seconds / unit),
    };
    match seconds {
        ..120 => single(1, 's'),
        120..600 => double(MINUTE, 'm', 1, 's'),
        600..10_800 => single(MINUTE, 'm'),
        10_800..28_800 => double(HOUR, 'h', MINUTE, 'm'),
        28_800..172_800 => single(HOUR, 'h'),
        172_800..691_200 => double(DAY, 'd', HOUR, 'h'),
        691_200..63_072_000 => single(DAY, 'd'),
        63_072_000..252_288_000 => double(YEAR, 'y', DAY, 'd'),
        _ => single(YEAR, 'y'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_printed_as_by_kubectl() {
        let table = [
            (0, "0s"),
            (119, "119s"),
            (2 * MINUTE, "2m"),
            (9 * MINUTE + 30, "9m30s"),
            (125 * MINUTE, "125m"),
            (5 * HOUR + 20 * MINUTE, "5h20m"),
            (30 * HOUR, "30h"),
            (3 * DAY + 5 * HOUR, "3d5h"),
            (400 * DAY, "400d"),
            (3 * YEAR + 45 * DAY, "3y45d"),
            (9 * YEAR + 45 * DAY, "9y"),
        ];
        for (seconds, text) in table {
            assert_eq!(span(seconds), text);
        }
    }

    #[test]
    fn ages_count_from_a_time_and_never_backwards() {
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        assert_eq!(age(Some("2026-01-01T00:00:00Z"), now), "60s");
        assert_eq!(age(Some("2026-01-02T00:00:00Z"), now), "0s");
        assert_eq!(age(Some("yesterday"), now), "?");
        assert_eq!(age(None, now), "?");
    }
}
