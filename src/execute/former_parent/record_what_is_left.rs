//! Records what is left of a set: in the parent that is kept, or in a parent that is created again because another
//! client has deleted the parent during the run.

use super::wait_until_members_are_gone::RemainingList;
use super::{KeptParent, ParentAim, ParentOutcome, ParentRelease, ReasonToKeep, ReleaseError};
use crate::event::{Action, Event, ObjectOutcome, Subject};
use crate::execute::deletion::report::{
    CREATED_AGAIN, describe_unlisted_kinds, describe_what_is_left, outcome_event,
};
use crate::execute::reread::GONE_ALREADY;
use crate::execute::{ParentWriting, Sink};
use crate::model::applyset::Record;
use crate::model::applyset::parent::Reading;
use crate::model::parent_object::ParentObject;
use crate::model::text::counted;
use crate::plan::{ParentDisposition, Remains};
use crate::read::WholeParent;

impl ParentRelease<'_> {
    /// Ends a run whose parent another client has deleted. Creates the parent again if members are left: without a
    /// record, no later run would find them.
    pub(super) async fn end_without_parent(self, sink: &mut Sink<'_>) -> Result<ParentOutcome, ReleaseError> {
        let ParentWriting { set, resource, .. } = self.writing;
        self.known.forget_entry();
        let uid = self.known.parent.uid.clone();
        let report = |action, reason: &str, sink: &mut Sink<'_>| {
            let subject = Subject::new(&set.parent, resource, Some(&uid));
            sink(match self.aim {
                ParentAim::Delete => Event::Object(ObjectOutcome::with_reason(subject, action, reason)),
                ParentAim::Narrow | ParentAim::RemoveRecord => {
                    Event::Warning(format!("{}: {reason}", set.parent))
                }
            });
        };
        let found = self.list_without_parent(sink).await?;
        if found.remains == Remains::default() && self.unlisted.is_empty() {
            report(Action::Deleted, GONE_ALREADY, sink);
            return Ok(ParentOutcome::Gone);
        }
        self.widen_record(None, &found, sink).await?;
        report(Action::Skipped, CREATED_AGAIN, sink);
        if self.writing.interrupt.is_requested() {
            return Ok(ParentOutcome::Untouched);
        }
        Ok(ParentOutcome::Kept(Box::new(KeptParent {
            remains: found.remains,
            owned: None,
            unlisted: self.unlisted,
            record: None,
        })))
    }

    /// Ends a run that finds another object in the parent's place. If members are left, records them in that object if
    /// it is a parent; fails if it is an ordinary object, which is not taken over.
    pub(super) async fn end_with_another_object(
        self,
        object: ParentObject,
        sink: &mut Sink<'_>,
    ) -> Result<ParentOutcome, ReleaseError> {
        let is_ordinary = object.reading == Reading::NoRecord;
        self.known.forget_entry();
        let found = self.list_without_parent(sink).await?;
        if found.remains != Remains::default() || !self.unlisted.is_empty() {
            self.widen_record(Some(object), &found, sink).await?;
        }
        Ok(if is_ordinary {
            ParentOutcome::Ordinary
        } else {
            ParentOutcome::Replaced
        })
    }

    /// Lists what is left of a set whose parent is gone, without the parent's containers.
    async fn list_without_parent(&self, sink: &mut Sink<'_>) -> Result<RemainingList, ReleaseError> {
        let listing = self.remaining.list_until_settled(&ParentDisposition::Goes, sink);
        listing.await.map_err(ReleaseError::NotListedWithoutParent)
    }

    /// Widens the record of the parent that is there now (`current`) to cover what is left; creates a parent if there
    /// is none.
    async fn widen_record(
        &self,
        current: Option<ParentObject>,
        found: &RemainingList,
        sink: &mut Sink<'_>,
    ) -> Result<(), ReleaseError> {
        let writing = ParentWriting {
            accepted: &[],
            manifest: None,
            ..self.writing
        };
        match writing.widen(current, &self.record_of(found), sink).await {
            Ok(()) => Ok(()),
            Err(error) => Err(ReleaseError::Unrecorded {
                left: describe_what_is_left(found.remains.all(), &self.unlisted),
                error,
            }),
        }
    }

    /// Keeps the parent, and determines what it has to record. If the run was to delete the parent and members keep it,
    /// reports the parent as skipped; a parent that owns an object of the new set is reported by the caller.
    pub(super) async fn keep(
        self,
        parent: &WholeParent,
        reason: ReasonToKeep,
        sink: &mut Sink<'_>,
    ) -> Result<ParentOutcome, ReleaseError> {
        let (found, owned) = match reason {
            ReasonToKeep::Members(found) => (found, None),
            ReasonToKeep::OwnsObjectOfNewSet(owned) => (RemainingList::default(), Some(owned)),
        };
        let mut record = self.record_of(&found);
        // A record that does not become narrower still leads to members without their label.
        if !self.known.is_shared && !parent.object.has_record(&self.writing.set.tooling, &record) {
            let places = &self.remaining.places;
            let unlabeled = self.writing.record_of_unlabeled(places, &record, sink).await?;
            record = record.union(&unlabeled);
        }
        if self.aim == ParentAim::Delete && owned.is_none() {
            let reason = self.describe_remaining(&found.remains);
            sink(outcome_event(&parent.live, Action::Skipped, reason));
        }
        Ok(ParentOutcome::Kept(Box::new(KeptParent {
            remains: found.remains,
            owned,
            unlisted: self.unlisted,
            record: Some(record),
        })))
    }

    fn describe_remaining(&self, remains: &Remains) -> String {
        let terminating = remains.going.len();
        let kept = remains.all().count() - terminating;
        match (kept, terminating) {
            (0, 0) => describe_unlisted_kinds(&self.unlisted),
            (0, terminating) => {
                format!(
                    "{} of its set still being deleted",
                    counted(terminating, "object")
                )
            }
            (kept, 0) => format!("{} of its set kept", counted(kept, "object")),
            (kept, terminating) => format!(
                "{} of its set kept, {terminating} still being deleted",
                counted(kept, "object")
            ),
        }
    }

    /// Returns the record of these members and copies, of the parent's containers, and of the kinds whose members a
    /// list may not show.
    fn record_of(&self, found: &RemainingList) -> Record {
        let parent_containers = self.remaining.parent_containers.iter().copied();
        let keys = found.all().chain(parent_containers).map(|live| &live.key);
        Record::from_members(keys, &self.writing.set.parent).union(&self.unlisted)
    }
}
