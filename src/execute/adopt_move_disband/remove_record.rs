//! Removes the record of a set that has ended, and keeps its parent.

use super::former_parent::LeftSet;
use super::members;
use crate::event::{Ending, Event};
use crate::execute::Sink;
use crate::execute::deletion::report::report_unlisted;
use crate::execute::parent_record::ATTEMPTS;
use crate::execute::parent_record::begin::Known;
use crate::execute::parent_record::requests::ParentWriteError;
use crate::model::applyset::parent::Reading;
use crate::model::write_settings::DryRun;
use crate::read::ListError;

impl LeftSet<'_> {
    /// Removes the record once all members are released.
    pub(super) async fn remove_record(&self, known: &mut Known, sink: &mut Sink<'_>) -> Ending {
        let consequence = match self.parent.writing.dry_run {
            DryRun::None => "the record was not removed",
            DryRun::Client | DryRun::Server => "the record would not be removed",
        };
        let (parent, unlisted) = (&self.parent.set.parent, &self.state.observed.unlisted);
        let ending = report_unlisted(parent, unlisted, consequence, sink);
        if ending != Ending::Done || self.parent.writing.dry_run != DryRun::None {
            return ending;
        }
        self.try_to_remove_record(known, sink)
            .await
            .unwrap_or_else(|error| {
                sink(Event::failure(match &error {
                    ParentWriteError::Request(error) => {
                        format!("the set's parent cannot be written: {}", error.kind)
                    }
                    error => error.to_string(),
                }));
                self.parent.interrupt.ending_after_failure()
            })
    }

    /// Removes the record from the parent unless another run has written it or added a member since. A
    /// change of another field of the parent does not matter.
    async fn try_to_remove_record(
        &self,
        known: &mut Known,
        sink: &mut Sink<'_>,
    ) -> Result<Ending, ParentWriteError> {
        for _ in 0..ATTEMPTS {
            let Some(current) = self.parent.read().await? else {
                let parent = &self.parent.set.parent;
                known.forget_entry();
                sink(Event::failure(format!(
                    "{parent}: the record could not be removed: the parent was deleted during the run"
                )));
                return Ok(Ending::Incomplete);
            };
            if current.reading == Reading::NoRecord {
                // The write succeeded, and its answer was lost.
                known.forget_entry();
                return Ok(Ending::Done);
            }
            known.replace(current.clone());
            let has_newcomers = match members(&self.parent, &self.state.places).await {
                Ok(members) => !members.is_empty(),
                Err(ListError::Request(error)) => return Err(error.into()),
                Err(_) => true,
            };
            if known.is_shared || has_newcomers {
                break;
            }
            if self.parent.interrupt.is_requested() {
                return Ok(Ending::Interrupted);
            }
            if self.parent.take_off(&current, sink).await? {
                known.forget_entry();
                return Ok(Ending::Done);
            }
        }
        let reason = match known.parent.adding_beside(known.id()).next() {
            Some(running) => running.wait_advice(&self.parent.set.parent, self.parent.server.now()),
            None => "another run or client has changed the set; run the same command again".to_owned(),
        };
        sink(Event::failure(format!("the set's record is kept: {reason}")));
        Ok(Ending::Incomplete)
    }
}
