//! Waits until an object that is to be created again is gone. The other waits for deletions are in `wait` and in
//! `former_parent/list_what_is_left`.

use super::Execution;
use super::polling::{Polling, StopsWith};
use crate::manifest::desired::DesiredObject;
use crate::model::deletion_obstacles::{join_obstacles_after, waiting_note};
use crate::model::live::{Live, Presence};
use crate::model::message::Message;
use crate::read;

const RECREATION_HINT: &str = "run the same command again to create it";

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
        let mut wait = Polling::begin(self.interrupt, stops_with);
        let mut awaited_uid = deleted_uid.map(str::to_owned);
        while let Some(live) = self.read_if_terminating(object).await? {
            if *awaited_uid.get_or_insert_with(|| live.uid.clone()) != live.uid {
                break;
            }
            let report = || self.wait_notes.add(waiting_note([&live]));
            if let Err(end) = wait.pause(self.writing.deletion_patience, report).await {
                let obstacles = join_obstacles_after(": ", &live.waits_for);
                let text = format!("not created again: {end}: it is still being deleted{obstacles}");
                return Err(Message::new(text).with_hint(RECREATION_HINT));
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
