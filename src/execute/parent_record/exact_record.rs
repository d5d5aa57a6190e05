//! Determines the record that `apply` leaves, from a list of the scope that the record is about to lose.

use std::collections::{BTreeSet, HashSet};
use std::iter;
use std::time::Duration;

use super::requests::ParentWriteError;
use crate::execute::reread::reread;
use crate::execute::{Execution, Sink};
use crate::model::applyset::Record;
use crate::model::identity::GroupKind;
use crate::model::live::Live;
use crate::model::set::ParentObject;
use crate::read::{ListError, ListTarget, ListTargets, METADATA_LIST, list_labeled_objects};

/// Pauses between lists of objects that are being deleted: the server's own controllers finish within
/// them.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_millis(600),
];

impl Execution<'_> {
    /// Returns the record of the plan, of objects that are not gone yet, and of what leads to members without their
    /// label. Waits a moment until deleted objects are gone.
    ///
    /// `settled` are the UIDs of the members that this run has applied or left as they are.
    pub async fn exact_record(
        &self,
        settled: &HashSet<String>,
        sink: &mut Sink<'_>,
    ) -> Result<Record, ParentWriteError> {
        let mut left = self.left(settled).await?;
        for pause in PAUSES {
            if left == Record::default() || self.interrupt.is_requested() {
                break;
            }
            tokio::time::sleep(pause).await;
            left = self.left(settled).await?;
        }
        let exact = self.plan.record_after.union(&left);
        let unlabeled = self
            .parent_writing()
            .record_of_unlabeled(&self.defined_places(), &exact, sink)
            .await?;
        Ok(exact.union(&unlabeled))
    }

    /// Returns the record as a run leaves it in which nothing fails: it keeps the kinds of objects that lack their label,
    /// and it stays wide beside another run.
    ///
    /// # Errors
    ///
    /// Something that the record would lose could not be listed.
    pub async fn predict_record(&self) -> Result<Record, (ListTarget, ListError)> {
        if self.parent().is_some_and(ParentObject::is_being_added_to) {
            return Ok(self.plan.record_during.clone());
        }
        let after = &self.plan.record_after;
        let parent = self.parent_writing();
        let found = parent
            .members_without_label(&self.defined_places(), after)
            .await?;
        Ok(after.union(&Record::from_members(
            found.iter().map(|live| &live.key),
            &self.set.parent,
        )))
    }

    /// Returns the record of the objects in the scope that the record is about to lose. An object of two groups does
    /// not count under its other name.
    async fn left(&self, settled: &HashSet<String>) -> Result<Record, ParentWriteError> {
        let mut left = Record::default();
        let own = self.set.parent.namespace.as_deref();
        // Whole kinds, and namespaces of the remaining kinds.
        for places in self.defined_places().outside(&self.plan.record_after, own) {
            let concurrency = self.writing.concurrency;
            let members = list_labeled_objects(self.server, self.set, &places, concurrency, METADATA_LIST)
                .await
                .map_err(|(_, error)| ParentWriteError::Unwatched(error))?;
            let unsettled = members.iter().filter(|live| !settled.contains(&live.uid));
            let keys = unsettled.map(|live| &live.key);
            left = left.union(&Record::from_members(keys, &self.set.parent));
        }
        // A CRD stays until all objects of its kind are gone.
        for definition in self.plan.all_prunes() {
            let Some(kind) = &definition.defines else { continue };
            let fresh = reread(self.server, &definition.key, &definition.resource).await;
            if fresh
                .map_err(|error| ParentWriteError::Unwatched(ListError::Request(error)))?
                .is_some()
            {
                left = left.union(&self.pruned_of(kind, definition));
            }
        }
        Ok(left)
    }

    /// Returns the scope of a pruned CRD and of the members of its kind.
    fn pruned_of(&self, kind: &GroupKind, definition: &Live) -> Record {
        let pruned = self.plan.all_prunes();
        let skipped = self.plan.skips.iter().map(|skip| &skip.live);
        let of_kind = pruned.chain(skipped).filter(|live| live.key.group_kind == *kind);
        let keys = iter::once(&definition.key).chain(of_kind.map(|live| &live.key));
        Record::from_members(keys, &self.set.parent)
    }

    /// Returns the scope without the kinds of pruned CRDs: their objects are gone as soon as the CRD is, and that is
    /// listed itself.
    fn defined_places(&self) -> ListTargets {
        let undefined: BTreeSet<&GroupKind> = self
            .plan
            .all_prunes()
            .filter_map(|live| live.defines.as_ref())
            .collect();
        let mut places = self.state.places.clone();
        places
            .resources
            .retain(|resource| !undefined.contains(&resource.group_kind()));
        places
    }
}
