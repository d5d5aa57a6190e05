//! Records what is left of a set whose parent cannot go: in the parent that is kept, or in one that is created again.

use super::wait_until_members_are_gone::RemainingList;
use super::{KeptParent, ParentAim, ParentOutcome, ParentRelease, ReasonToKeep, ReleaseError};
use crate::event::{Action, Event, ObjectOutcome, Subject};
use crate::execute::deletion::report::{CREATED_AGAIN, left_behind, outcome_event, unlistable};
use crate::execute::reread::GONE_ALREADY;
use crate::execute::{ParentWriting, Sink};
use crate::model::applyset::Record;
use crate::model::applyset::parent::Reading;
use crate::model::parent_object::ParentObject;
use crate::model::text::counted;
use crate::plan::{ParentDisposition, Remains};
use crate::read::WholeParent;

impl ParentRelease<'_> {
    /// Creates the parent again if anything is left of its set: without a record, no later run
    /// finds it.
    pub(super) async fn without_parent(self, sink: &mut Sink<'_>) -> Result<ParentOutcome, ReleaseError> {
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
        let found = self.left_without_record(sink).await?;
        if found.remains == Remains::default() && self.unlisted.is_empty() {
            report(Action::Deleted, GONE_ALREADY, sink);
            return Ok(ParentOutcome::Gone);
        }
        self.record_left(None, &found, sink).await?;
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

    /// Makes another object in the parent's place record what is left of the set, if that
    /// object is a parent. An ordinary object is not taken over.
    pub(super) async fn with_another_object(
        self,
        object: ParentObject,
        sink: &mut Sink<'_>,
    ) -> Result<ParentOutcome, ReleaseError> {
        let is_ordinary = object.reading == Reading::NoRecord;
        self.known.forget_entry();
        let found = self.left_without_record(sink).await?;
        if found.remains != Remains::default() || !self.unlisted.is_empty() {
            self.record_left(Some(object), &found, sink).await?;
        }
        Ok(if is_ordinary {
            ParentOutcome::Ordinary
        } else {
            ParentOutcome::Replaced
        })
    }

    /// Lists what is left of a set whose parent has disappeared. The parent's containers go last.
    async fn left_without_record(&self, sink: &mut Sink<'_>) -> Result<RemainingList, ReleaseError> {
        let found = self.remaining.settled(&ParentDisposition::Goes, sink).await;
        found.map_err(ReleaseError::Unwatched)
    }

    async fn record_left(
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
        match writing.widen(current, &self.record(found), sink).await {
            Ok(()) => Ok(()),
            Err(error) => Err(ReleaseError::Unrecorded {
                left: left_behind(found.remains.all(), &self.unlisted),
                error,
            }),
        }
    }

    /// Keeps the parent, and determines what it has to record. It is reported here if it was to be deleted because of
    /// what is left.
    pub(super) async fn keep(
        self,
        parent: &WholeParent,
        reason: ReasonToKeep,
        sink: &mut Sink<'_>,
    ) -> Result<ParentOutcome, ReleaseError> {
        let (found, owned) = match reason {
            ReasonToKeep::Left(found) => (found, None),
            ReasonToKeep::Owner(owned) => (RemainingList::default(), Some(owned)),
        };
        let mut record = self.record(&found);
        if !self.known.is_shared && !parent.object.has_record(&self.writing.set.tooling, &record) {
            let places = &self.remaining.places;
            let unlabeled = self.writing.record_of_unlabeled(places, &record, sink).await?;
            record = record.union(&unlabeled);
        }
        if self.aim == ParentAim::Delete && owned.is_none() {
            let reason = self.describe_rest(&found.remains);
            sink(outcome_event(&parent.live, Action::Skipped, reason));
        }
        Ok(ParentOutcome::Kept(Box::new(KeptParent {
            remains: found.remains,
            owned,
            unlisted: self.unlisted,
            record: Some(record),
        })))
    }

    fn describe_rest(&self, remains: &Remains) -> String {
        let going = remains.going.len();
        let staying = remains.all().count() - going;
        match (staying, going) {
            (0, 0) => unlistable(&self.unlisted),
            (0, going) => format!("{} of its set still being deleted", counted(going, "object")),
            (staying, 0) => format!("{} of its set kept", counted(staying, "object")),
            (staying, going) => format!(
                "{} of its set kept, {going} still being deleted",
                counted(staying, "object")
            ),
        }
    }

    /// Returns the record of these members, of copies and of the parent's containers, and of kinds that
    /// cannot be listed.
    fn record(&self, found: &RemainingList) -> Record {
        let parent_containers = self.remaining.parent_containers.iter().copied();
        let keys = found.all().chain(parent_containers).map(|live| &live.key);
        Record::from_members(keys, &self.writing.set.parent).union(&self.unlisted)
    }
}
