//! Other runs of the set that are under way: reports them, or waits for them with `--exclusive`. The parent lists them;
//! a run that was killed stays in this list until it counts as abandoned (`model/history_annotation`).

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::command_run::CommandRun;
use super::plan_and_write::SetToWrite;
use crate::error::{Error, ErrorKind};
use crate::event::Event;
use crate::execute::refusal_of_run_under_way;
use crate::model::history_annotation::Run;
use crate::model::write_settings::Exclusive;
use crate::plan::Refusal;
use crate::read;

/// The most times that a run plans again because another run began first. Then the run fails with that error: without a
/// limit, two pipelines could keep each other planning.
const MAX_REPLANS: usize = 20;

/// The pause between two reads of the parent.
const READ_INTERVAL: Duration = Duration::from_secs(2);

/// The result of waiting for other runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherRuns {
    /// The run has not waited: no other run is under way, or `--exclusive` is not set.
    NotAwaited,
    /// The run has waited until the others ended. What it read before is outdated.
    Ended,
}

impl CommandRun {
    /// Reports the other runs of the set that are under way. With `--exclusive`, waits until there are none instead, at
    /// most for the time of that flag since this run began.
    ///
    /// # Errors
    ///
    /// Another run is still under way after that time, or the parent cannot be read.
    pub(super) async fn report_or_await_other_runs(
        &mut self,
        set: SetToWrite<'_>,
        exclusive: Exclusive,
    ) -> Result<OtherRuns, Error> {
        let SetToWrite {
            key,
            resource,
            parent,
        } = set;
        let Some(server) = self.server.clone() else {
            // Without a connection nothing was read, so no other run is known.
            return Ok(OtherRuns::NotAwaited);
        };
        let Exclusive::Within(time) = exclusive else {
            let running = parent.into_iter().flat_map(|parent| &parent.running);
            let notes = running.map(|run| describe_other_run(run, server.now()));
            self.report_new_notes(notes.collect());
            return Ok(OtherRuns::NotAwaited);
        };
        let end = self.began + time;
        let mut other_runs = OtherRuns::NotAwaited;
        let mut current = parent.cloned();
        while let Some(other) = current.as_ref().and_then(|parent| parent.running.first()) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Refusal::error(&[refusal_of_run_under_way(
                    key,
                    other,
                    server.now(),
                )]));
            }
            if other_runs == OtherRuns::NotAwaited {
                let began = other.describe_beginning(server.now());
                let time = format_duration_rounded_up(left);
                let text = format!("waiting up to {time} for {other}, which began {began}");
                self.reporter.take_event(Event::Note(text));
            }
            other_runs = OtherRuns::Ended;
            sleep(READ_INTERVAL.min(left)).await;
            let found = read::read_parent(&server, resource, key).await;
            current = found.map_err(|error| error.to_error_while_reading(key))?;
        }
        Ok(other_runs)
    }

    /// Counts one more attempt and returns `true` if the error says that another run began before this one, which is to
    /// run alone: the caller then reads and plans again. Returns `false` for other errors, and after [`MAX_REPLANS`].
    pub(super) fn should_replan_after(&mut self, error: &Error) -> bool {
        if self.replans >= MAX_REPLANS || error.kind != ErrorKind::OtherRunBegan {
            return false;
        }
        self.replans += 1;
        self.reporter.forget_plan();
        true
    }
}

/// Returns the note about another run that is under way. Two runs at once leave the record too wide, unless the other
/// one takes members out.
fn describe_other_run(run: &Run, now: Timestamp) -> String {
    let began = run.describe_beginning(now);
    let consequence = if run.takes_out {
        ""
    } else {
        "; the next run after both narrows the record of the set"
    };
    format!("{run} began {began} and has not ended{consequence}")
}

/// Formats a duration for a message, rounded up: `45 s`, `10 min`.
fn format_duration_rounded_up(time: Duration) -> String {
    match time.as_millis().div_ceil(1000) {
        seconds @ ..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}
