//! The runs under way on a set, in `list` and `view`.

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::age::age;
use crate::model::history_annotation::{Run, RunOperation};
use crate::read::found_set::FoundSet;

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
    pub(super) fn all_on(set: &FoundSet) -> Vec<Self> {
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
pub(super) fn runs_in_words(runs: &[RunUnderWay]) -> String {
    let now = Timestamp::now();
    let texts: Vec<String> = runs.iter().map(|run| run.text(now)).collect();
    texts.join("; ")
}
