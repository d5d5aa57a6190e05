//! `--exclusive`: waits until no other run of the set is under way.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::command_run::CommandRun;
use crate::cluster::apiserver::ApiServer;
use crate::error::Error;
use crate::event::Event;
use crate::execute::run_under_way;
use crate::model::parent_object::ParentObject;
use crate::model::write_settings::Exclusive;
use crate::read::{self, NamedSet};

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
    /// Waits as long as `--exclusive` allows until no other run of the set is under way. `parent` is the parent as it
    /// was read.
    ///
    /// # Errors
    ///
    /// One is still under way, or the parent cannot be read.
    pub async fn await_other_runs(
        &mut self,
        server: &ApiServer,
        named: &NamedSet,
        parent: Option<&ParentObject>,
        exclusive: Exclusive,
    ) -> Result<OtherRuns, Error> {
        let Exclusive::Within(time) = exclusive else {
            return Ok(OtherRuns::None);
        };
        let end = self.began + time;
        let mut awaited = OtherRuns::None;
        let mut current = parent.cloned();
        while let Some(other) = current.as_ref().and_then(|parent| parent.running.first()) {
            let key = &named.set.parent;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Refused(vec![run_under_way(key, other, server.now())]));
            }
            if awaited == OtherRuns::None {
                let began = other.began(server.now());
                let text = format!(
                    "waiting up to {} for {other}, which began {began}",
                    duration(left)
                );
                self.reporter.event(Event::Note(text));
            }
            awaited = OtherRuns::Ended;
            sleep(PAUSE.min(left)).await;
            let found = read::parent(server, &named.resource, key).await;
            current = found.map_err(|error| Error::Read {
                what: key.to_string(),
                error,
            })?;
        }
        Ok(awaited)
    }
}

/// Returns a time for people: `45 s`, `10 min`.
fn duration(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}
