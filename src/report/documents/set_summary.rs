//! The fields of a set that `list` and `view` share, and their text.

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::SetDocument;
use crate::cluster::discovery::Discovery;
use crate::model::applyset::parent::Reading;
use crate::model::history_annotation::{Run, RunOperation};
use crate::model::identity::GroupKind;
use crate::read::found_set::{FoundSet, RecordStatus, Visibility};

/// The fields of a set in `list` and `view`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::report) struct SetSummary {
    #[serde(flatten)]
    pub(in crate::report) set: SetDocument,
    /// Null if the record cannot be read.
    pub(in crate::report) group_kinds: Option<Vec<String>>,
    /// Null if the record cannot be read.
    pub(in crate::report) namespaces: Option<Vec<String>>,
    /// Null if the set could not be read.
    pub(in crate::report) status: Option<RecordStatus>,
    pub(in crate::report) faults: Vec<String>,
    /// The runs that have not ended.
    pub(in crate::report) runs: Vec<RunUnderWay>,
}

impl SetSummary {
    pub(in crate::report) fn new(set: &FoundSet, discovery: &Discovery) -> Self {
        let (tooling, faults) = match &set.reading {
            Reading::Parent(applyset_record) => (Some(applyset_record.tooling.to_string()), Vec::new()),
            Reading::Unfinished(tooling) => (Some(tooling.to_string()), Vec::new()),
            Reading::Faulty(faults) => (None, faults.iter().map(ToString::to_string).collect()),
            Reading::NoRecord => (None, vec!["it has no record".to_owned()]),
        };
        Self {
            set: SetDocument {
                id: Some(set.id.to_string()),
                kind: Some(set.identity.group_kind.kind.clone()),
                group: Some(set.identity.group_kind.group.clone()),
                namespace: set.identity.namespace.clone(),
                name: set.identity.name.clone(),
                tooling,
            },
            group_kinds: set.group_kinds(discovery),
            namespaces: set
                .namespaces()
                .map(|namespaces| namespaces.into_iter().collect()),
            status: Some(set.status(discovery)),
            faults,
            runs: RunUnderWay::all_on(set),
        }
    }
}

/// Text for an unknown value.
pub(in crate::report) const UNKNOWN: &str = "?";

pub(in crate::report) fn record_status(status: Option<&RecordStatus>) -> &'static str {
    match status {
        Some(RecordStatus::Consistent) => "consistent",
        Some(RecordStatus::Unfinished) => "unfinished",
        Some(RecordStatus::Invalid) => "invalid",
        Some(RecordStatus::Unknown) => "unknown",
        None => UNKNOWN,
    }
}

/// `3`, or `3+` if there may be more.
pub(in crate::report) fn member_count(members: Option<usize>, sight: Visibility) -> String {
    let more = if sight == Visibility::Part { "+" } else { "" };
    members.map_or_else(|| UNKNOWN.to_owned(), |count| format!("{count}{more}"))
}

/// The name of a set's parent as the command line takes it: `secret/web`.
pub(in crate::report) fn reference(set: &SetDocument) -> String {
    let group = set.group.as_deref().unwrap_or_default();
    GroupKind::new(group, set.kind.as_deref().unwrap_or_default()).object_name(&set.name)
}

/// A run that has not ended.
#[derive(Debug, Serialize)]
pub(in crate::report) struct RunUnderWay {
    id: String,
    operation: RunOperation,
    /// Null if the server did not name the user.
    user: Option<String>,
    /// RFC 3339.
    began: String,
    /// When the run last said that it is alive, RFC 3339.
    renewed: String,
    state: RunState,
}

/// The state of a run that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum RunState {
    /// It renews its entry.
    Running,
    /// It has not done so for ten minutes.
    Abandoned,
}

impl RunUnderWay {
    /// The runs under way on a set.
    pub(in crate::report) fn all_on(set: &FoundSet) -> Vec<Self> {
        let running = set.running.iter().map(|run| Self::new(run, RunState::Running));
        let abandoned = set
            .abandoned
            .iter()
            .map(|run| Self::new(run, RunState::Abandoned));
        running.chain(abandoned).collect()
    }

    fn new(run: &Run, state: RunState) -> Self {
        Self {
            id: run.id.clone(),
            operation: run.operation.clone(),
            user: run.user.clone(),
            began: run.time.clone(),
            renewed: run.last_renewal().to_owned(),
            state,
        }
    }

    /// Returns the run in words: `apply by ci, began 12s ago`.
    fn text(&self, now: Timestamp) -> String {
        let user = self
            .user
            .as_ref()
            .map_or_else(String::new, |user| format!(" by {user}"));
        let age = age(Some(&self.began), now);
        let operation = self.operation.as_str();
        match self.state {
            RunState::Running => format!("{operation}{user}, began {age} ago"),
            RunState::Abandoned => format!("{operation}{user}, abandoned, began {age} ago"),
        }
    }
}

/// Returns the runs in words; empty without any.
pub(in crate::report) fn runs_in_words(runs: &[RunUnderWay]) -> String {
    let now = Timestamp::now();
    let texts: Vec<String> = runs.iter().map(|run| run.text(now)).collect();
    texts.join("; ")
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Returns the age at `now` of an object created at `created`, RFC 3339; `?` if that is not a time.
pub(in crate::report) fn age(created: Option<&str>, now: Timestamp) -> String {
    match created.and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(created) => span((now.as_second() - created.as_second()).max(0)),
        None => super::set_summary::UNKNOWN.to_owned(),
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
