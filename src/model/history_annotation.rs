//! The history of a set: the last runs of `apply` that changed it, in an annotation of the parent.
//!
//! It is for people. No decision depends on it, so it is read leniently: what cannot be read is
//! dropped.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::applyset::parent::{ANNOTATIONS_LIMIT, Pairs};

/// Annotation on a parent: its last runs as a list in JSON, the latest first. It does not have the
/// prefix `applyset.kubernetes.io/`, because other tools read every key that has it.
pub const HISTORY_ANNOTATION: &str = "kubectl-applyset/history";

/// The greatest number of runs that are kept.
const MOST_RUNS: usize = 10;

/// The greatest length of the annotation's value, in bytes.
const MOST_BYTES: usize = 1024;

/// The greatest number of characters of a user's name that are kept.
const LONGEST_USER: usize = 64;

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastRun {
    /// The time of its end by the server's clock, RFC 3339 in UTC.
    pub time: String,
    /// How it ended.
    pub result: PastResult,
    /// The number of objects by outcome.
    #[serde(flatten)]
    pub counts: Counts,
    /// Whether it undid another run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undo: bool,
    /// The digest of the members' manifests.
    pub manifests: String,
    /// The user, if the server has named one, as [`kept_of_user`] returns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The version of this program.
    pub version: String,
}

/// The result of a past run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PastResult {
    /// Everything was done.
    Done,
    /// It undid another run, except for objects that it skipped.
    Incomplete,
    /// Something failed.
    Failed,
    /// It was interrupted.
    Interrupted,
}

impl PastResult {
    /// Returns the word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
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

/// Returns as much of a user's name as the history keeps. A [`PastRun`] holds it in this form, so that a
/// run finds its own entry among those that it reads back.
pub fn kept_of_user(name: &str) -> String {
    name.chars().take(LONGEST_USER).collect()
}

/// The past runs in a parent's annotations, the latest first.
pub fn read(annotations: &Pairs) -> Vec<PastRun> {
    let entries = annotations
        .get(HISTORY_ANNOTATION)
        .and_then(|text| serde_json::from_str::<Vec<Value>>(text).ok());
    let entries = entries.unwrap_or_default().into_iter();
    entries
        .filter_map(|entry| serde_json::from_value(entry).ok())
        .collect()
}

/// The value of the annotation after this run; `None` if there is no room for it beside the
/// parent's other annotations. The oldest runs make room for the new one.
pub fn with(run: PastRun, annotations: &Pairs) -> Option<String> {
    let others = annotations.iter().filter(|(key, _)| *key != HISTORY_ANNOTATION);
    let taken: usize = others.map(|(key, value)| key.len() + value.len()).sum();
    let free = ANNOTATIONS_LIMIT.saturating_sub(taken + HISTORY_ANNOTATION.len());
    let mut runs = vec![run];
    runs.extend(read(annotations));
    runs.truncate(MOST_RUNS);
    while !runs.is_empty() {
        let text = serde_json::to_string(&runs).ok()?;
        if text.len() <= MOST_BYTES.min(free) {
            return Some(text);
        }
        runs.pop();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: usize) -> PastRun {
        PastRun {
            time: "2026-11-22T10:00:00Z".to_owned(),
            result: PastResult::Done,
            counts: Counts {
                created: number,
                ..Counts::default()
            },
            undo: false,
            manifests: "0123456789ab".to_owned(),
            user: Some("jane".to_owned()),
            version: "v0.1.0".to_owned(),
        }
    }

    fn annotated(value: &str) -> Pairs {
        Pairs::from([(HISTORY_ANNOTATION.to_owned(), value.to_owned())])
    }

    #[test]
    fn runs_are_read_back_the_latest_first() {
        let first = with(run(1), &Pairs::new()).expect("room");
        assert_eq!(
            first,
            r#"[{"time":"2026-11-22T10:00:00Z","result":"done","created":1,"manifests":"0123456789ab","user":"jane","version":"v0.1.0"}]"#
        );
        let second = with(run(2), &annotated(&first)).expect("room");
        assert_eq!(read(&annotated(&second)), [run(2), run(1)]);
    }

    #[test]
    fn an_undo_is_marked_and_runs_without_the_mark_are_read() {
        let undo = PastRun {
            undo: true,
            result: PastResult::Incomplete,
            ..run(1)
        };
        let value = with(undo.clone(), &Pairs::new()).expect("room");
        assert!(
            value.contains(r#""result":"incomplete","created":1,"undo":true"#),
            "{value}"
        );
        let value = with(run(2), &annotated(&value)).expect("room");
        assert_eq!(read(&annotated(&value)), [run(2), undo]);
    }

    #[test]
    fn the_oldest_runs_make_room() {
        let mut value = String::new();
        for number in 1..=30 {
            value = with(run(number), &annotated(&value)).expect("room");
            assert!(value.len() <= MOST_BYTES, "{}", value.len());
        }
        let runs = read(&annotated(&value));
        assert_eq!(runs[0], run(30));
        assert!((7..=MOST_RUNS).contains(&runs.len()), "{}", runs.len());
    }

    #[test]
    fn a_long_name_is_cut_before_the_run_is_written() {
        let long = PastRun {
            user: Some(kept_of_user(&"é".repeat(5000))),
            ..run(1)
        };
        let value = with(long.clone(), &Pairs::new()).expect("room");
        assert_eq!(long.user, Some("é".repeat(64)));
        assert_eq!(read(&annotated(&value)), [long]);
        assert_eq!(kept_of_user("jane"), "jane");
    }

    #[test]
    fn other_annotations_leave_less_room_or_none() {
        let mut annotations = annotated(&with(run(1), &Pairs::new()).expect("room"));
        let entry = annotations[HISTORY_ANNOTATION].len();
        let most = ANNOTATIONS_LIMIT - HISTORY_ANNOTATION.len() - "note".len();
        annotations.insert("note".to_owned(), "x".repeat(most - entry));
        let value = with(run(2), &annotations).expect("room for one");
        assert_eq!(read(&annotated(&value)), [run(2)]);
        annotations.insert("note".to_owned(), "x".repeat(most - entry + 1));
        assert_eq!(with(run(2), &annotations), None);
    }

    #[test]
    fn what_cannot_be_read_is_dropped() {
        let table = [
            ("", 0),
            ("no list", 0),
            (r#"{"time":1}"#, 0),
            (r#"[1,{"time":"2026-11-22T10:00:00Z"}]"#, 0),
            (
                r#"[7,{"time":"x","result":"failed","later":true,"manifests":"a","version":"v9"}]"#,
                1,
            ),
        ];
        for (value, count) in table {
            assert_eq!(read(&annotated(value)).len(), count, "{value}");
        }
    }
}
