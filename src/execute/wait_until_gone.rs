//! Waits until objects that are being deleted are gone: how often a run checks, when it reports that it waits, and what
//! ends the wait. The callers read the objects, and pause between two reads with [`WaitUntilGone::pause`]. A recreation
//! waits here for its object.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Execution;
use super::wait_notes::SLOW;
use crate::event::Interrupt;
use crate::manifest::desired::DesiredObject;
use crate::model::live::{Live, Presence};
use crate::model::message::Message;
use crate::model::text::{first_names_and_more, format_duration};
use crate::read;

/// The pause between the first two reads; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between two reads.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The time for which a wait continues after `--timeout` ran out. It is shorter than `GRACE_PERIOD` in
/// `session/time_limit`, after which the run ends without waiting for anything: so there is time to report a result.
const LAST_WAIT_AFTER_TIMEOUT: Duration = Duration::from_secs(3);

const RECREATION_HINT: &str = "run the same command again to create it";

/// A wait until objects are gone.
pub(super) struct WaitUntilGone<'a> {
    interrupt: &'a Interrupt,
    stops_with: StopsWith,
    begun: Instant,
    /// The length of the next pause.
    next_pause: Duration,
    is_reported: bool,
}

/// The event that ends a wait before its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopsWith {
    /// The wait ends as soon as the run has to stop.
    Interrupt,
    /// The wait ends a few seconds after `--timeout` ran out. Ctrl-C does not end it, since the run has to complete
    /// what it has half done.
    Timeout,
}

impl<'a> WaitUntilGone<'a> {
    pub(super) fn begin(interrupt: &'a Interrupt, stops_with: StopsWith) -> Self {
        Self {
            interrupt,
            stops_with,
            begun: Instant::now(),
            next_pause: FIRST_PAUSE,
            is_reported: false,
        }
    }

    /// Pauses before the next read. `limit` is the time limit of the whole wait. `report` is called once, when the wait
    /// has taken long.
    ///
    /// # Errors
    ///
    /// The reason why the wait is over: the run has to stop, or the limit is reached.
    pub(super) async fn pause(
        &mut self,
        limit: Option<Duration>,
        report: impl FnOnce(),
    ) -> Result<(), String> {
        let waited = self.begun.elapsed();
        if let Some(limit) = limit.filter(|limit| waited >= *limit) {
            let limit = format_duration(limit);
            return Err(format!("timed out waiting for the condition after {limit}"));
        }
        if waited >= SLOW && !std::mem::replace(&mut self.is_reported, true) {
            report();
        }
        let until_limit = limit.map_or(Duration::MAX, |limit| limit.saturating_sub(waited));
        tokio::select! {
            () = self.interrupt.wait_until_requested(), if self.stops_with == StopsWith::Interrupt => {}
            () = sleep(self.next_pause.min(until_limit)) => {}
        }
        self.next_pause = LONGEST_PAUSE.min(self.next_pause * 2);
        let is_stopped = match self.stops_with {
            StopsWith::Interrupt => self.interrupt.is_requested(),
            StopsWith::Timeout => self.interrupt.is_timeout_older_than(LAST_WAIT_AFTER_TIMEOUT),
        };
        if is_stopped {
            return Err(self.interrupt.cause().reason().to_owned());
        }
        Ok(())
    }
}

impl Execution<'_> {
    /// Waits until an object that is to be created again is gone. `deleted_uid` is set if this run has deleted the object
    /// with that UID. Then only `--timeout` ends the wait, a few seconds after it ran out: an earlier end would leave the
    /// recreation half done. Otherwise, the wait ends as soon as the run has to stop.
    ///
    /// # Errors
    ///
    /// The reason why the wait ended, with what the deletion of the object waits for.
    pub(super) async fn wait_until_gone_before_recreation(
        &self,
        object: &DesiredObject,
        deleted_uid: Option<&str>,
    ) -> Result<(), Message> {
        let stops_with = match deleted_uid {
            Some(_) => StopsWith::Timeout,
            None => StopsWith::Interrupt,
        };
        let mut wait = WaitUntilGone::begin(self.interrupt, stops_with);
        let mut awaited_uid = deleted_uid.map(str::to_owned);
        while let Some(live) = self.read_if_terminating(object).await? {
            if *awaited_uid.get_or_insert_with(|| live.uid.clone()) != live.uid {
                break;
            }
            let report = || self.wait_notes.add(waiting_note([&live]));
            if let Err(end) = wait.pause(self.writing.deletion_patience, report).await {
                let mut reasons = live.waits_for.join("; ");
                if !reasons.is_empty() {
                    reasons.insert_str(0, ": ");
                }
                return Err(Message::new(format!(
                    "not created again: {end}: it is still being deleted{reasons}"
                ))
                .with_hint(RECREATION_HINT));
            }
        }
        Ok(())
    }

    /// Reads the object; `None` if it does not exist or is not being deleted.
    async fn read_if_terminating(&self, object: &DesiredObject) -> Result<Option<Live>, Message> {
        let found = read::read_object(self.server, &object.resource, &object.key)
            .await
            .map_err(|error| {
                Message::new(format!("not created again: cannot read it: {}", error.kind))
                    .with_hint(RECREATION_HINT)
            })?;
        let live = found.and_then(|found| Live::from_object(&found, &object.resource));
        Ok(live.filter(|live| live.presence == Presence::Terminating))
    }
}

/// Returns the text of a note about a wait for these objects.
pub(super) fn waiting_note<'l>(objects: impl IntoIterator<Item = &'l Live>) -> String {
    let objects = first_names_and_more(objects.into_iter().map(describe_why_it_still_exists));
    format!("waiting for {objects} to be deleted")
}

/// Returns the key of an object, followed by the reasons why it still exists, such as its finalizers.
pub(super) fn describe_why_it_still_exists(live: &Live) -> String {
    if live.waits_for.is_empty() {
        live.key.to_string()
    } else {
        format!("{} ({})", live.key, live.waits_for.join("; "))
    }
}
