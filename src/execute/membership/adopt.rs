//! Takes live objects into a set.

use serde_json::Value;

use super::relabel::Relabelling;
use super::{counting, ending, report_others};
use crate::event::{Action, Ending, Event, Phase};
use crate::execute::Sink;
use crate::execute::parent_record::requests::{Known, ParentWriteError, ParentWriting};
use crate::model::applyset::Record;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::parent_object::ParentObject;
use crate::model::settings::DryRun;
use crate::plan::{Candidate, FoundBy, MembershipChange, MembershipPlan, TakeOwnership, judge_adoption};

/// Taking objects into a set.
pub struct Adopting<'a> {
    /// The set, and how its parent is written.
    pub parent: ParentWriting<'a>,
    /// The parent as it was read.
    pub current: Option<&'a ParentObject>,
    /// Who is taken.
    pub plan: &'a MembershipPlan,
    /// What the parent records from the first label on: old and new places.
    pub record: &'a Record,
    /// Whether members of other sets are taken.
    pub take_ownership: TakeOwnership,
    /// The labels by which the objects were found, if they were.
    pub selector: Option<&'a str>,
    /// How an object of this key and these metadata came to be among them.
    pub way: &'a dyn Fn(&ObjectKey, &Value) -> FoundBy,
}

impl Adopting<'_> {
    /// Adopts.
    ///
    /// # Errors
    ///
    /// A parent that cannot be written; no label was written then.
    pub async fn run(&self, sink: &mut Sink<'_>) -> Result<Ending, ParentWriteError> {
        let judge = |object: &Value, live: &Live| {
            let candidate = Candidate {
                live: live.clone(),
                way: (self.way)(&live.key, &object["metadata"]),
            };
            judge_adoption(&candidate, self.parent.set, self.take_ownership)
        };
        counting(self.plan, sink, async |sink| self.write(&judge, sink).await).await
    }

    pub(super) async fn write(
        &self,
        judge: &dyn Fn(&Value, &Live) -> MembershipChange,
        sink: &mut Sink<'_>,
    ) -> Result<Ending, ParentWriteError> {
        let is_dry = self.parent.writing.dry_run != DryRun::None;
        if self.parent.interrupt.is_requested() {
            return Ok(Ending::Interrupted);
        }
        let known = if is_dry || !self.plan.takes_any() {
            None
        } else {
            let current = self.current.cloned();
            Some(self.parent.widen(current, self.record, sink).await?)
        };
        report_others(self.plan, sink);
        sink(Event::Phase {
            phase: Phase::Adopting,
            total: self.plan.changes.len(),
        });
        let relabelling = Relabelling {
            server: self.parent.server,
            interrupt: self.parent.interrupt,
            writing: self.parent.writing,
            part_of: Some(&self.parent.set.id),
            done: Action::Adopted,
            selector: self.selector,
            judge,
        };
        let relabelled = relabelling.write_all(&self.plan.changes, sink).await;
        let ending = ending(relabelled, &self.parent);
        match known {
            Some(known) => Ok(self.ensure_covers(known, ending, sink).await),
            None => Ok(ending),
        }
    }

    /// However a run ends, its members must be recorded.
    async fn ensure_covers(&self, mut known: Known, ending: Ending, sink: &mut Sink<'_>) -> Ending {
        if self.plan.changes.is_empty() {
            return ending;
        }
        match self.parent.ensure_covers(&mut known, self.record, sink).await {
            Ok(()) => ending,
            Err(error) => {
                sink(Event::failure(error.to_string()));
                Ending::Incomplete
            }
        }
    }
}
