//! What the run looks at besides the parent and the members before it ends a set: the scope that another run has recorded,
//! and the objects of the new set that the parent owns.

use super::{ParentRelease, ReleaseError};
use crate::cluster::discovery::{self, Discovery};
use crate::execute::ParentWriteError;
use crate::execute::ParentWriting;
use crate::manifest::desired::Desired;
use crate::model::identity::ObjectKey;
use crate::model::set::ParentObject;
use crate::plan::{ParentStatus, judge_parent_for_deletion, member_scope, recorded_kinds};
use crate::read::{self, KindWait, ListTargets, METADATA_LIST, list_labeled_objects};

impl ParentRelease<'_> {
    /// Finds an object of the set that the members have joined, or its parent, that names this parent as its owner: the
    /// garbage collector would delete it with this parent. A reference may have been added since the plan.
    pub(super) async fn find_owned_in_new_set(&self) -> Result<Option<ObjectKey>, ReleaseError> {
        let Some(joined) = self.joined else {
            return Ok(None);
        };
        let (parent, set) = (joined.parent, self.writing.set);
        let concurrency = parent.writing.concurrency;
        for targets in joined.recorded_places(&self.remaining.places) {
            let listed =
                list_labeled_objects(parent.server, parent.set, &targets, concurrency, METADATA_LIST).await;
            let members = listed.map_err(|(_, error)| ReleaseError::NewSetNotListed(error))?;
            if let Some(live) = members.iter().find(|live| set.is_owner(&live.owners)) {
                return Ok(Some(live.key.clone()));
            }
        }
        let read = parent.read().await?;
        let is_owned = read.is_some_and(|parent| set.is_owner(&parent.owners));
        Ok(is_owned.then(|| parent.set.parent.clone()))
    }

    /// Lists members in the scope of the record that another run has written, too. The kinds of that
    /// run may be newer than discovery.
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
            .and_then(|judged| judged.accept(&[]))
            .map_err(ParentWriteError::Refused)?;
        if let ParentStatus::Recorded(applyset_record) = &parent_status {
            let unlisted =
                |discovery: &Discovery| recorded_kinds::find_undiscovered(&applyset_record.kinds, discovery);
            let wait = KindWait::unreported();
            read::settle_missing_kinds(server, &mut discovery, unlisted, &wait).await?;
        }
        let member_scope = member_scope(set, &parent_status, &Desired::default(), &discovery)?;
        self.unlisted = self.unlisted.union(&member_scope.record_to_keep);
        let ListTargets {
            resources,
            namespaces,
        } = member_scope.places;
        self.remaining.places.add_resources(resources);
        self.remaining.places.namespaces.extend(namespaces);
        self.listed_reading = parent.reading.clone();
        Ok(())
    }
}
