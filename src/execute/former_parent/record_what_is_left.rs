//! Determines what a parent that cannot go has to record: what is left of its set.

use super::list_what_is_left::RemainingList;
use super::{KeptParent, ParentAim, ParentOutcome, ParentRelease, ReleaseError};
use crate::event::Sink;
use crate::execute::deletion::report_parent_and_remains::describe_unlisted_kinds;
use crate::model::applyset::Record;
use crate::model::applyset::parent::Reading;
use crate::model::identity::ObjectKey;
use crate::model::set::ParentObject;
use crate::model::text::counted;
use crate::plan::{ParentDisposition, Remains};

impl ParentRelease<'_> {
    /// Ends a run that finds another object in the parent's place, or the parent without its record. The run writes
    /// neither. A record that is gone counts as removed if nothing is left: this run may have removed it, if the answer
    /// to its request was lost.
    pub(super) async fn end_without_record(
        &mut self,
        object: &ParentObject,
        uid_of_parent: &str,
        sink: &mut Sink<'_>,
    ) -> Result<ParentOutcome, ReleaseError> {
        self.known.run = None;
        if object.reading == Reading::NoRecord && object.uid == uid_of_parent {
            let found = self
                .remaining
                .list_and_await_deletions(&ParentDisposition::Goes, sink)
                .await
                .map_err(ReleaseError::RemainingNotListed)?;
            if !self.has_anything_left(&found) {
                if self.aim == ParentAim::Delete {
                    self.report_kept_parent("only the set's record was removed", sink);
                }
                return Ok(ParentOutcome::Ordinary);
            }
        }
        Err(ReleaseError::ReplacedOrUnrecorded)
    }

    pub(super) fn has_anything_left(&self, found: &RemainingList) -> bool {
        found.remains != Remains::default() || !self.unlisted.is_empty()
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
                .has_tooling_and_record(&self.remaining.parent.set.tooling, &record)
        {
            let places = &self.remaining.places;
            let unlabeled = self
                .remaining
                .parent
                .warn_and_record_unlabeled(places, &record, sink)
                .await?;
            record = record.union(&unlabeled);
        }
        if self.aim == ParentAim::Delete && owned.is_none() {
            let reason = self.describe_remaining(&found.remains);
            self.report_kept_parent(&reason, sink);
        }
        Ok(ParentOutcome::Kept(Box::new(KeptParent { found, owned, record })))
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
        let left = found.remains_and_copies().chain(parent_containers);
        Record::from_members(left.map(|live| &live.key), &self.remaining.parent.set.parent)
            .union(&self.unlisted)
    }
}
