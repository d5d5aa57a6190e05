//! Other runs of the set: names them, or waits for them with `--exclusive`. A run that was killed is among them until
//! it counts as abandoned (`model/history_annotation`).

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::command_run::CommandRun;
use crate::error::{Error, ErrorKind};
use crate::event::Event;
use crate::execute::run_under_way;
use crate::model::history_annotation::Run;
use crate::model::set::ParentObject;
use crate::model::write_settings::Exclusive;
use crate::plan::Refusal;
use crate::read::{self, NamedSet};

/// The number of times that a run plans again because another run began first.
const ATTEMPTS: usize = 20;

/// The pause between looks at the parent.
const PAUSE: Duration = Duration::from_secs(2);

/// The result of waiting for other runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherRuns {
    /// None was under way.
    None,
    /// One has ended: what was read before is outdated.
    Ended,
}

impl CommandRun {
    /// Names the other runs of the set that are under way. With `--exclusive`, waits as long as that allows until
    /// there are none. `parent` is the parent as it was read.
    ///
    /// # Errors
    ///
    /// One is still under way, or the parent cannot be read.
    pub(super) async fn await_other_runs(
        &mut self,
        named: &NamedSet,
        parent: Option<&ParentObject>,
        exclusive: Exclusive,
    ) -> Result<OtherRuns, Error> {
        let Some(server) = self.server.clone() else {
            return Ok(OtherRuns::None);
        };
        let Exclusive::Within(time) = exclusive else {
            let running = parent.into_iter().flat_map(|parent| &parent.running);
            let notes = running.map(|run| note(run, server.now()));
            self.report_notes(notes.collect());
            return Ok(OtherRuns::None);
        };
        let end = self.began + time;
        let mut awaited = OtherRuns::None;
        let mut current = parent.cloned();
        while let Some(other) = current.as_ref().and_then(|parent| parent.running.first()) {
            let key = &named.set.parent;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Refusal::error(&[run_under_way(key, other, server.now())]));
            }
            if awaited == OtherRuns::None {
                let began = other.began(server.now());
                let time = duration(left);
                let text = format!("waiting up to {time} for {other}, which began {began}");
                self.reporter.event(Event::Note(text));
            }
            awaited = OtherRuns::Ended;
            sleep(PAUSE.min(left)).await;
            let found = read::parent(&server, &named.resource, key).await;
            current = found.map_err(|error| error.while_reading(key))?;
        }
        Ok(awaited)
    }

    /// Returns whether a run that was to run alone reads the set and plans again after this error: another run has
    /// begun before it could.
    pub(super) fn plans_again(&mut self, error: &Error) -> bool {
        if self.attempts >= ATTEMPTS || error.kind != ErrorKind::OtherRun {
            return false;
        }
        self.attempts += 1;
        self.reporter.forget_plan();
        true
    }
}

/// Names a run that is under way, and what that means to another one.
fn note(run: &Run, now: Timestamp) -> String {
    let began = run.began(now);
    let consequence = if run.takes_out {
        ""
    } else {
        "; the next run after both narrows the record of the set"
    };
    format!("{run} began {began} and has not ended{consequence}")
}

/// Returns a time for people, rounded up: `45 s`, `10 min`.
fn duration(time: Duration) -> String {
    match time.as_millis().div_ceil(1000) {
        seconds @ ..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}
