//! What the run looks at besides the parent and the members before it ends a set: the scope that another run has
//! recorded, and the objects of the new set that the parent owns.

use super::{ParentRelease, ReleaseError};
use crate::cluster::discovery::{self, Discovery};
use crate::execute::ParentWriteError;
use crate::execute::ParentWriting;
use crate::manifest::desired::Desired;
use crate::model::identity::ObjectKey;
use crate::model::set::ParentObject;
use crate::plan::{ParentStatus, determine_member_scope, judge_parent_for_deletion, recorded_kinds};
use crate::read::{self, KindWait, ListError, ListTargets, METADATA_LIST, list_labeled_objects};

impl ParentRelease<'_> {
    /// Finds what the old parent owns in the new set, which the members have joined: a member, or the new parent. The
    /// garbage collector would delete it together with the old parent. The owner reference may have been added since
    /// the plan.
    pub(super) async fn find_owned_in_new_set(&self) -> Result<Option<ObjectKey>, ReleaseError> {
        let Some(joined) = self.joined else {
            return Ok(None);
        };
        let (new_parent, old_set) = (joined.parent, self.writing.set);
        let concurrency = new_parent.writing.concurrency;
        for targets in joined.list_recorded_scopes_after_move(&self.remaining.places) {
            let (server, new_set) = (new_parent.server, new_parent.set);
            let members = list_labeled_objects(server, new_set, &targets, concurrency, METADATA_LIST)
                .await
                .map_err(|(_, error)| ReleaseError::NewSetNotListed(error))?;
            if let Some(live) = members
                .iter()
                .find(|live| old_set.is_parent_among_owners(&live.owners))
            {
                return Ok(Some(live.key.clone()));
            }
        }
        let found = new_parent
            .read()
            .await
            .map_err(|error| ReleaseError::NewSetNotListed(ListError::Request(error)))?;
        let is_owned = found.is_some_and(|found| old_set.is_parent_among_owners(&found.owners));
        Ok(is_owned.then(|| new_parent.set.parent.clone()))
    }

    /// Adds the scope of a record that another run has written to what is listed next. The kinds of that run may be
    /// newer than discovery. Does nothing if the record is as it was when the scope was determined.
    pub(super) async fn add_scope_of_other_runs(
        &mut self,
        parent: &ParentObject,
    ) -> Result<(), ReleaseError> {
        if parent.reading == self.listed_reading {
            return Ok(());
        }
        let ParentWriting { server, set, .. } = self.writing;
        let mut discovery = discovery::fetch(server).await?;
        let parent_status = judge_parent_for_deletion(set, parent)
            // No refusal is lifted: the set was this run's own when it began.
            .and_then(|judged| judged.into_status_if_accepted(&[]))
            .map_err(ParentWriteError::Refused)?;
        if let ParentStatus::Recorded(applyset_record) = &parent_status {
            let find_undiscovered =
                |discovery: &Discovery| recorded_kinds::find_undiscovered(&applyset_record.kinds, discovery);
            let wait = KindWait::without_report();
            read::await_or_judge_missing_kinds(server, &mut discovery, find_undiscovered, &wait).await?;
        }
        let scope = determine_member_scope(set, &parent_status, &Desired::default(), &discovery)?;
        // Kinds whose members a list may not show stay in the record.
        self.unlisted = self.unlisted.union(&scope.record_to_keep);
        let ListTargets {
            resources,
            namespaces,
        } = scope.places;
        self.remaining.places.add_resources_of_new_kinds(resources);
        self.remaining.places.namespaces.extend(namespaces);
        self.listed_reading = parent.reading.clone();
        Ok(())
    }
}
