//! Determines the record that `apply` leaves: the record of the plan, and in addition what is still found in the rest
//! of the scope, which the record of the plan does not cover.

use std::collections::{BTreeSet, HashSet};
use std::iter;
use std::time::Duration;

use super::requests::ParentWriteError;
use crate::event::Sink;
use crate::execute::Execution;
use crate::execute::reread::reread;
use crate::model::applyset::Record;
use crate::model::identity::GroupKind;
use crate::model::live::Live;
use crate::model::set::ParentObject;
use crate::read::{ListError, ListTarget, ListTargets, METADATA_LIST, list_labeled_objects};

/// Pauses between lists of pruned objects, until they are gone. The server's own controllers remove their finalizers
/// within this time.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_millis(600),
];

impl Execution<'_> {
    /// Returns the record that covers the members of the plan, objects that are not gone yet, and members that have
    /// lost their part-of label. Waits up to a second until deleted objects are gone.
    ///
    /// `settled_uids` are the UIDs of the members that this run has applied or found unchanged.
    pub async fn wait_and_determine_exact_record(
        &self,
        settled_uids: &HashSet<String>,
        sink: &mut Sink<'_>,
    ) -> Result<Record, ParentWriteError> {
        let mut remaining = self.find_record_of_uncovered_members(settled_uids).await?;
        for pause in PAUSES {
            if remaining == Record::default() || self.interrupt.is_requested() {
                break;
            }
            tokio::time::sleep(pause).await;
            remaining = self.find_record_of_uncovered_members(settled_uids).await?;
        }
        let exact = self.plan.record_after.union(&remaining);
        let unlabeled = self
            .parent_writing()
            .warn_and_record_unlabeled(&self.scope_without_pruned_kinds(), &exact, sink)
            .await?;
        Ok(exact.union(&unlabeled))
    }

    /// Predicts the record that the run leaves if nothing fails. The record covers members that have lost their part-of
    /// label. If another run is under way, the record is not narrowed.
    ///
    /// # Errors
    ///
    /// A collection that the record would no longer cover could not be listed.
    pub async fn predict_record(&self) -> Result<Record, (ListTarget, ListError)> {
        if self.parent().is_some_and(ParentObject::is_being_added_to) {
            return Ok(self.plan.record_during.clone());
        }
        let after = &self.plan.record_after;
        let parent = self.parent_writing();
        let found = parent
            .list_unlabeled_outside_record(&self.scope_without_pruned_kinds(), after)
            .await?;
        Ok(after.union(&Record::from_members(
            found.iter().map(|live| &live.key),
            &self.set.parent,
        )))
    }

    /// Lists the part of the scope that the record of the plan does not cover, and returns the record of the objects
    /// that are left there. Settled objects do not count: an object that the server serves under two API groups is
    /// listed under its old group, too.
    async fn find_record_of_uncovered_members(
        &self,
        settled_uids: &HashSet<String>,
    ) -> Result<Record, ParentWriteError> {
        let mut remaining = Record::default();
        let own = self.set.parent.namespace.as_deref();
        // Two parts: kinds that the record does not name, and namespaces that it does not name, for the other kinds.
        for places in self
            .scope_without_pruned_kinds()
            .outside_recorded_kinds_and_namespaces(&self.plan.record_after, own)
        {
            let concurrency = self.writing.concurrency;
            let members = list_labeled_objects(self.server, self.set, &places, concurrency, METADATA_LIST)
                .await
                .map_err(|(_, error)| ParentWriteError::NotListed(error))?;
            let unsettled = members.iter().filter(|live| !settled_uids.contains(&live.uid));
            let keys = unsettled.map(|live| &live.key);
            remaining = remaining.union(&Record::from_members(keys, &self.set.parent));
        }
        // A pruned CRD exists until all objects of its kind are gone, so it is enough to read the CRD.
        for definition in self.plan.all_prunes() {
            let Some(kind) = &definition.defines else { continue };
            let fresh = reread(self.server, &definition.key, &definition.resource)
                .await
                .map_err(|error| ParentWriteError::NotListed(ListError::Request(error)))?;
            if fresh.is_some() {
                remaining = remaining.union(&self.record_of_pruned_kind(kind, definition));
            }
        }
        Ok(remaining)
    }

    /// Returns the record of a pruned CRD (`definition`) and of the members of its kind.
    fn record_of_pruned_kind(&self, kind: &GroupKind, definition: &Live) -> Record {
        let pruned = self.plan.all_prunes();
        let skipped = self.plan.skips.iter().map(|skip| &skip.live);
        let of_kind = pruned.chain(skipped).filter(|live| live.key.group_kind == *kind);
        let keys = iter::once(&definition.key).chain(of_kind.map(|live| &live.key));
        Record::from_members(keys, &self.set.parent)
    }

    /// Returns the scope without the kinds of pruned CRDs, which may not be served any more.
    /// `find_record_of_uncovered_members` reads the CRDs instead.
    fn scope_without_pruned_kinds(&self) -> ListTargets {
        let pruned_kinds: BTreeSet<&GroupKind> = self
            .plan
            .all_prunes()
            .filter_map(|live| live.defines.as_ref())
            .collect();
        let mut places = self.state.places.clone();
        places
            .resources
            .retain(|resource| !pruned_kinds.contains(&resource.group_kind()));
        places
    }
}
