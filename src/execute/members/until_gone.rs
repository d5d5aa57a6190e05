//! Waits until an object that is to be created again is gone. If this run has deleted the object, a first Ctrl-C does
//! not end the wait, but the end of the run's time does.

use crate::execute::Execution;
use crate::execute::wait_until_gone::{StopsWith, WaitUntilGone, report_of};
use crate::manifest::desired::DesiredObject;
use crate::model::live::{Live, Presence};
use crate::model::message::Message;
use crate::read;

const AGAIN: &str = "run the same command again to create it";

impl Execution<'_> {
    /// Waits until the object is gone; the error names what it waits for. Stopping the run ends the wait unless
    /// this run has deleted the object with this UID: that would leave a recreation half done. A run whose time is over
    /// waits a moment longer.
    pub(super) async fn until_gone(&self, object: &DesiredObject, uid: Option<&str>) -> Result<(), Message> {
        let stops_with = match uid {
            Some(_) => StopsWith::Timeout,
            None => StopsWith::Interrupt,
        };
        let mut wait = WaitUntilGone::begin(self.interrupt, stops_with);
        let mut uid = uid.map(str::to_owned);
        while let Some(live) = self.terminating_object(object).await? {
            if *uid.get_or_insert_with(|| live.uid.clone()) != live.uid {
                break;
            }
            let report = || self.wait_notes.add(report_of([&live]));
            if let Err(end) = wait.pause(self.writing.deletion_patience, report).await {
                let reasons = match live.waits_for.join("; ") {
                    unknown if unknown.is_empty() => unknown,
                    reasons => format!(": {reasons}"),
                };
                return Err(Message::new(format!(
                    "not created again: {end}: it is still being deleted{reasons}"
                ))
                .with_hint(AGAIN));
            }
        }
        Ok(())
    }

    /// Reads the object; `None` unless it is being deleted.
    async fn terminating_object(&self, object: &DesiredObject) -> Result<Option<Live>, Message> {
        let read = read::object(self.server, &object.resource, &object.key).await;
        let found = read.map_err(|error| {
            Message::new(format!("not created again: cannot read it: {}", error.kind)).with_hint(AGAIN)
        })?;
        let live = found.and_then(|found| Live::from_object(&found, &object.resource));
        Ok(live.filter(|live| live.presence == Presence::Terminating))
    }
}
