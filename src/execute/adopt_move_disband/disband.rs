//! Ends a set and keeps its objects.

use serde_json::Value;

use super::relabel::Relabelling;
use super::{announce, ending, members};
use crate::event::{Action, Ending, Event, Phase};
use crate::execute::Sink;
use crate::execute::deletion::report::unlistable;
use crate::execute::parent_record::ATTEMPTS;
use crate::execute::parent_record::begin::Known;
use crate::execute::parent_record::requests::{ParentWriteError, ParentWriting};
use crate::execute::parent_record::run::RunOnParent;
use crate::model::applyset::Record;
use crate::model::applyset::parent::Reading;
use crate::model::history_annotation::RunOperation;
use crate::model::live::Live;
use crate::model::parent_object::ParentObject;
use crate::model::write_settings::DryRun;
use crate::plan::{MembershipPlan, judge_release};
use crate::read::{ListError, ListTargets};

/// Everything that disbanding a set needs.
pub struct Disbanding<'a> {
    /// The set, and how its parent is written.
    pub parent: ParentWriting<'a>,
    /// The parent as it was read.
    pub current: &'a ParentObject,
    /// The scope of its members.
    pub targets: &'a ListTargets,
    /// Its record, without the kinds that are not served any more.
    pub recorded: &'a Record,
    /// The part of the record that stays, because a list of members does not show all that it leads to.
    pub unlisted: &'a Record,
    /// The objects to release.
    pub plan: &'a MembershipPlan,
}

impl Disbanding<'_> {
    /// Releases the members, and removes the record.
    ///
    /// # Errors
    ///
    /// Only before the first write; later failures are reported as events.
    pub async fn run(&self, sink: &mut Sink<'_>) -> Result<Ending, ParentWriteError> {
        announce(&[&self.parent], self.plan, sink);
        let current = self.current.clone();
        let known = if self.plan.changes.is_empty() {
            Known::read_to_take_out(current)
        } else {
            let begun = self
                .parent
                .begin_to_take_out(current, self.recorded, RunOperation::Disband, sink);
            begun.await?
        };
        let mut run = RunOnParent::new(self.parent, self.recorded, Some(known));
        let released = run.work(async |sink| self.release(sink).await, sink).await;
        let ending = match (&mut run.known, released) {
            (Some(known), Ending::Done) => self.finish(known, sink).await,
            (_, ending) => ending,
        };
        Ok(run.end(None, ending, sink).await)
    }

    /// Removes the record once all members are released.
    async fn finish(&self, known: &mut Known, sink: &mut Sink<'_>) -> Ending {
        if !self.unlisted.is_empty() {
            let reason = unlistable(self.unlisted);
            let is_not_removed = match self.parent.writing.dry_run {
                DryRun::None => "was not removed",
                DryRun::Client | DryRun::Server => "would not be removed",
            };
            let parent = &self.parent.set.parent;
            let failure = format!("{parent}: the record {is_not_removed}: {reason}");
            sink(Event::failure(failure));
            return Ending::Incomplete;
        }
        if self.parent.writing.dry_run != DryRun::None {
            return Ending::Done;
        }
        self.remove_record(known, sink).await.unwrap_or_else(|error| {
            sink(Event::failure(match &error {
                ParentWriteError::Request(error) => {
                    format!("the set's parent cannot be written: {}", error.kind)
                }
                error => error.to_string(),
            }));
            Ending::Incomplete
        })
    }

    async fn release(&self, sink: &mut Sink<'_>) -> Ending {
        sink(Event::Phase {
            phase: Phase::Releasing,
            total: self.plan.changes.len(),
        });
        let judge = |_: &Value, live: &Live| judge_release(live, self.parent.set);
        let relabelling = Relabelling {
            server: self.parent.server,
            interrupt: self.parent.interrupt,
            writing: self.parent.writing,
            part_of: None,
            moved_fields: &self.plan.moved_fields,
            done: Action::Released,
            selector: None,
            judge: &judge,
        };
        let relabeled = relabelling.write_all(&self.plan.changes, sink).await;
        ending(relabeled, &self.parent)
    }

    /// Removes the record from the parent unless another run has written it or added a member since. A
    /// change of another field of the parent does not matter.
    async fn remove_record(
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
            known.find(current.clone());
            let has_newcomers = match members(&self.parent, self.targets).await {
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
