//! Waits until an object is gone that is to be created again.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::execute::Execution;
use crate::execute::concurrent_writes::SLOW;
use crate::manifest::desired::DesiredObject;
use crate::model::live::{Live, Presence};
use crate::model::message::Message;
use crate::model::text::short;
use crate::read;

/// The pause before the second look at an object that is being deleted; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause between two looks.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The wait for a deleted object once `--timeout` ran out: shorter than the time after which nothing is awaited any
/// more, so that the run still ends with a result.
const LAST_WAIT_AFTER_TIMEOUT: Duration = Duration::from_secs(3);

const AGAIN: &str = "run the same command again to create it";

impl Execution<'_> {
    /// Waits until the object is gone; the error names what it waits for. Stopping the run ends the wait unless
    /// this run has deleted the object with this UID: that would leave a recreation half done. A run whose time is over
    /// waits a moment longer.
    pub(super) async fn until_gone(&self, object: &DesiredObject, uid: Option<&str>) -> Result<(), Message> {
        let is_half_done = uid.is_some();
        let mut uid = uid.map(str::to_owned);
        let begun = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut is_noted = false;
        loop {
            let found = read::object(self.server, &object.resource, &object.key).await;
            let found = found.map_err(|error| {
                Message::new(format!("not created again: cannot read it: {}", error.kind)).with_hint(AGAIN)
            })?;
            let live = found.and_then(|found| Live::from_object(&found, &object.resource));
            let going = live.filter(|live| live.presence == Presence::Terminating);
            let going = going.filter(|live| *uid.get_or_insert_with(|| live.uid.clone()) == live.uid);
            let limit = self.writing.deletion_patience;
            let is_stopped = if is_half_done {
                self.interrupt.is_time_over_for(LAST_WAIT_AFTER_TIMEOUT)
            } else {
                self.interrupt.is_requested()
            };
            let end = if is_stopped {
                Some(self.interrupt.cause().reason().to_owned())
            } else {
                let limit = limit.filter(|limit| begun.elapsed() >= *limit);
                limit.map(|limit| format!("timed out waiting for the condition after {}", short(limit)))
            };
            match (going, end) {
                (None, Some(end)) if is_stopped && !is_half_done => return Err(not_created(None, &end)),
                (None, _) => return Ok(()),
                (Some(live), Some(end)) => return Err(not_created(Some(&live), &end)),
                (Some(live), None) if !is_noted && begun.elapsed() >= SLOW => {
                    is_noted = true;
                    let reason = waits_for(&live).unwrap_or_else(|| "it is still being deleted".to_owned());
                    self.wait_notes.add(&format!("{}: {reason}", object.key));
                }
                (Some(_), None) => {}
            }
            tokio::select! {
                () = self.interrupt.requested(), if !is_half_done => {}
                () = sleep(pause) => {}
            }
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }
}

/// Returns the reasons why the object is still there.
fn waits_for(live: &Live) -> Option<String> {
    (!live.waits_for.is_empty()).then(|| live.waits_for.join("; "))
}

/// The error of an object that is deleted, and not created again. `going` is the live object, if it still
/// terminates.
fn not_created(going: Option<&Live>, end: &str) -> Message {
    let Some(live) = going else {
        return Message::new(format!("deleted, but not created again: {end}")).with_hint(AGAIN);
    };
    let waits_for = waits_for(live).map_or_else(String::new, |reasons| format!(": {reasons}"));
    Message::new(format!(
        "not created again: {end}: it is still being deleted{waits_for}"
    ))
    .with_hint(AGAIN)
}
