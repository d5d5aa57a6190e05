//! Takes live objects into a set.

use serde_json::Value;

use super::relabel::Relabelling;
use super::{announce, ending, report_others, unless_none_is_taken};
use crate::event::{Action, Ending, Event, Phase};
use crate::execute::Sink;
use crate::execute::parent_record::requests::{Known, ParentWriteError, ParentWriting};
use crate::model::applyset::Record;
use crate::model::live::Live;
use crate::model::parent_object::ParentObject;
use crate::model::write_settings::DryRun;
use crate::plan::{MembershipChange, MembershipPlan};

/// Everything that adopting objects needs.
pub struct Adopting<'a> {
    /// The set, and how its parent is written.
    pub parent: ParentWriting<'a>,
    /// The parent as it was read.
    pub current: Option<&'a ParentObject>,
    /// The objects to adopt.
    pub plan: &'a MembershipPlan,
    /// The record of the parent before the first label is written: old and new kinds and namespaces.
    pub record: &'a Record,
    /// The label selector that found the objects, if one did.
    pub selector: Option<&'a str>,
    /// Judges an object that has changed since it was read, by the rules of the plan.
    pub judge: &'a dyn Fn(&Value, &Live) -> MembershipChange,
}

impl Adopting<'_> {
    /// Adopts the objects of the plan.
    ///
    /// # Errors
    ///
    /// The parent cannot be written; no label was written then.
    pub async fn run(&self, sink: &mut Sink<'_>) -> Result<Ending, ParentWriteError> {
        announce(&[&self.parent], self.plan, sink);
        let ending = self.write(sink).await?;
        let none_is_adopted = || format!("{}: nothing to adopt", self.parent.set.parent);
        Ok(unless_none_is_taken(ending, self.plan, none_is_adopted, sink))
    }

    pub(super) async fn write(&self, sink: &mut Sink<'_>) -> Result<Ending, ParentWriteError> {
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
            moved_fields: &self.plan.moved_fields,
            done: Action::Adopted,
            selector: self.selector,
            judge: self.judge,
        };
        let mut relabeled = relabelling.write_all(&self.plan.changes, sink).await;
        relabeled.failed += self.plan.not_found();
        let ending = ending(relabeled, &self.parent);
        match known {
            Some(known) => Ok(self.ensure_covers(known, ending, sink).await),
            None => Ok(ending),
        }
    }

    /// Checks that the parent still records the members, however the run ends, and widens its record if not.
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
