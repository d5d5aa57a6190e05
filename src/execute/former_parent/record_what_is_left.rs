//! Records what is left of a set whose parent cannot go: in the parent that is kept, or in the one that is in its place.

use super::wait_until_members_are_gone::RemainingList;
use super::{KeptParent, ParentAim, ParentOutcome, ParentRelease, ReleaseError};
use crate::event::Sink;
use crate::execute::ParentWriting;
use crate::execute::deletion::report_parent_and_remains::{describe_unlisted_kinds, describe_what_is_left};
use crate::model::applyset::Record;
use crate::model::applyset::parent::Reading;
use crate::model::identity::ObjectKey;
use crate::model::set::ParentObject;
use crate::model::text::counted;
use crate::plan::{ParentDisposition, Remains};

impl ParentRelease<'_> {
    /// Ends a run that finds an ordinary object in the parent's place, or the parent of another set of this name: what
    /// is left is recorded on it, if it may be a parent. An ordinary object is not taken over.
    pub(super) async fn record_on_object_in_parents_place(
        &mut self,
        object: ParentObject,
        sink: &mut Sink<'_>,
    ) -> Result<ParentOutcome, ReleaseError> {
        let is_ordinary = object.reading == Reading::NoRecord;
        // Its record may have been removed by this run, if the answer to its request was lost.
        let is_as_wanted = is_ordinary
            && self.aim == ParentAim::RemoveRecord
            && self.writing.set.parent_uid.as_ref() == Some(&object.uid);
        self.known.forget_entry();
        if !is_as_wanted {
            let reason = "it changed during the run and is no longer this set's parent";
            self.report_kept_parent(reason, sink);
        }
        // They hold the object, so the run does not delete them: the list shows them as left.
        self.remaining.parent_containers.clear();
        let found = self.list_remaining_after_parent_is_gone(sink).await?;
        if self.has_anything_left(&found) {
            self.widen_record(object, &found, sink).await?;
            if is_ordinary {
                return Ok(self.build_kept_outcome(found, None, None));
            }
        }
        Ok(if is_ordinary {
            ParentOutcome::Ordinary
        } else {
            ParentOutcome::Replaced
        })
    }

    pub(super) fn has_anything_left(&self, found: &RemainingList) -> bool {
        found.remains != Remains::default() || !self.unlisted.is_empty()
    }

    /// Lists what is left of a set whose parent has disappeared. The parent's containers go last.
    async fn list_remaining_after_parent_is_gone(
        &self,
        sink: &mut Sink<'_>,
    ) -> Result<RemainingList, ReleaseError> {
        self.remaining
            .list_and_await_deletions(&ParentDisposition::Goes, sink)
            .await
            .map_err(ReleaseError::NotListedWithoutParent)
    }

    async fn widen_record(
        &self,
        current: ParentObject,
        found: &RemainingList,
        sink: &mut Sink<'_>,
    ) -> Result<(), ReleaseError> {
        let writing = ParentWriting {
            accepted: &[],
            manifest: None,
            ..self.writing
        };
        let left = self.build_record_of_everything_left(found);
        let widened = writing.widen_record(current, &left, sink).await;
        widened.map_err(|error| {
            let parent_containers = self.remaining.parent_containers.iter().copied();
            let left = found.remains.all().chain(parent_containers);
            ReleaseError::Unrecorded {
                left: describe_what_is_left(left, &self.unlisted),
                error,
            }
        })
    }

    /// Determines what the parent has to record, which is kept. If it was to be deleted and is kept because of what is
    /// left, reports that. The end of the run writes the record.
    pub(super) async fn keep_parent_for_remaining(
        &mut self,
        found: RemainingList,
        owned: Option<ObjectKey>,
        sink: &mut Sink<'_>,
    ) -> Result<ParentOutcome, ReleaseError> {
        let mut record = self.build_record_of_everything_left(&found);
        if !self.known.is_shared
            && !self
                .known
                .parent
                .has_tooling_and_record(&self.writing.set.tooling, &record)
        {
            let places = &self.remaining.places;
            let unlabeled = self
                .writing
                .warn_and_record_unlabeled(places, &record, sink)
                .await?;
            record = record.union(&unlabeled);
        }
        if self.aim == ParentAim::Delete && owned.is_none() {
            let reason = self.describe_remaining(&found.remains);
            self.report_kept_parent(&reason, sink);
        }
        Ok(self.build_kept_outcome(found, owned, Some(record)))
    }

    fn build_kept_outcome(
        &self,
        found: RemainingList,
        owned: Option<ObjectKey>,
        record: Option<Record>,
    ) -> ParentOutcome {
        ParentOutcome::Kept(Box::new(KeptParent {
            found,
            owned,
            unlisted: self.unlisted.clone(),
            record,
        }))
    }

    fn describe_remaining(&self, remains: &Remains) -> String {
        let going = remains.going.len();
        let staying = remains.all().count() - going;
        match (staying, going) {
            (0, 0) => describe_unlisted_kinds(&self.unlisted),
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
    fn build_record_of_everything_left(&self, found: &RemainingList) -> Record {
        let parent_containers = self.remaining.parent_containers.iter().copied();
        let keys = found.all().chain(parent_containers).map(|live| &live.key);
        Record::from_members(keys, &self.writing.set.parent).union(&self.unlisted)
    }
}
