//! Reads the owner references of desired and kept objects again: right before the first delete, before the next one if
//! a delete had to wait, and before a recreation deletes its object.
//!
//! A run may take minutes. The garbage collector would delete objects that a pruned object has come to
//! own in that time, although the plan keeps them. A reference can still be added between this read and
//! a delete: the API server has no precondition on dependents.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join3;
use tokio::sync::Mutex;

use crate::cluster::apiserver::ApiError;
use crate::execute::Execution;
use crate::execute::labeled_objects::list_labeled_objects;
use crate::model::containers::Owners;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::plan::{self, Dependent, DependentNamespaces, Dependents, Observed};
use crate::read::{self, ListError, ListTarget, ListTargets, METADATA_LIST};

/// Owner references that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    #[error("{}: owner references cannot be read: {error}", .place.resource.plural)]
    Members { place: ListTarget, error: ListError },
    #[error("{parent}: owner references cannot be read: {}", .error.kind)]
    Parent { parent: ObjectKey, error: ApiError },
}

/// The state of the owner references that were read. They are outdated once something was waited for since.
#[derive(Debug, Default)]
pub(super) struct Freshness {
    is_outdated: Cell<bool>,
    rereading: Mutex<()>,
}

impl Freshness {
    /// Notes that something was waited for.
    pub(super) fn outdate(&self) {
        self.is_outdated.set(true);
    }

    /// Reads owner references again if they are outdated; others wait for that. What outdates them during the read
    /// counts for the next call.
    pub(super) async fn restore(&self, reread: impl AsyncFnOnce()) {
        let _alone = self.rereading.lock().await;
        if self.is_outdated.replace(false) {
            reread().await;
        }
    }
}

impl Execution<'_> {
    /// Finds the current dependents of prunes among desired and kept objects. `parent` is the resource of the parent,
    /// if there is one. Namespaces in which pruned objects cannot have dependents are not read.
    pub async fn reread_dependents(&self, parent: Option<&Arc<Resource>>) -> Result<Dependents, Unread> {
        let near = DependentNamespaces::for_prunes(self.plan);
        let (members, parent, container_owners) = try_join3(
            self.members_near(&near),
            self.parent_near(parent, &near),
            self.owners_of_containers(parent),
        )
        .await?;
        let observed = Observed {
            members,
            parent,
            container_owners,
            contents: self.contents().clone(),
            ..Observed::default()
        };
        Ok(Dependents::find_again(self.plan, self.desired, &observed))
    }

    /// Lists the members of the kinds and in the namespaces of desired or kept objects.
    async fn members_near(&self, near: &DependentNamespaces<'_>) -> Result<Vec<Live>, Unread> {
        let members = self.desired.members.iter();
        let desired = members.map(|object| (&object.key, &object.resource));
        let skips = self.plan.skips.iter();
        let kept = skips.map(|skip| (&skip.live.key, &skip.live.resource));
        let mut places = ListTargets::default();
        let mut kinds: BTreeSet<GroupKind> = BTreeSet::new();
        let mut resources = Vec::new();
        for (key, resource) in desired.chain(kept) {
            if near.holds(key.namespace.as_deref()) {
                places.namespaces.extend(key.namespace.clone());
                if kinds.insert(key.group_kind.clone()) {
                    resources.push(Arc::clone(resource));
                }
            }
        }
        // In the version in which they were read before.
        let known = self.state.places.resources.iter();
        places.add_resources(known.filter(|known| kinds.contains(&known.group_kind())).cloned());
        places.add_resources(resources);
        let members = list_labeled_objects(
            self.server,
            self.set,
            &places,
            self.writing.concurrency,
            METADATA_LIST,
        )
        .await;
        members.map_err(|(place, error)| Unread::Members { place, error })
    }

    async fn parent_near(
        &self,
        parent: Option<&Arc<Resource>>,
        near: &DependentNamespaces<'_>,
    ) -> Result<Option<Dependent>, Unread> {
        let key = &self.set.parent;
        let Some(resource) = parent.filter(|_| near.holds(key.namespace.as_deref())) else {
            return Ok(None);
        };
        let answer = read::parent(self.server, resource, key).await;
        let read = answer.map_err(|error| Unread::Parent {
            parent: key.clone(),
            error,
        })?;
        Ok(read.map(|parent| Dependent::from_parent(key, resource, &parent)))
    }

    /// Reads the owners of the containers of the parent, desired and kept objects.
    async fn owners_of_containers(
        &self,
        parent: Option<&Arc<Resource>>,
    ) -> Result<BTreeMap<ObjectKey, Owners>, Unread> {
        let containers = plan::containers_of_plan(self.set, parent, self.desired, self.plan);
        let owners = read::owners_of_containers(self.server, &containers).await;
        owners.map_err(|(place, error)| Unread::Members { place, error })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn what_is_waited_for_during_a_read_outdates_it_again() {
        let freshness = Freshness::default();
        let reads = Cell::new(0);
        let count = async || reads.set(reads.get() + 1);
        freshness.restore(count).await;
        assert_eq!(reads.get(), 0);
        freshness.outdate();
        let (answer, answered) = oneshot::channel::<()>();
        let slow = async || {
            count().await;
            answered.await.expect("an answer");
        };
        let meanwhile = async {
            freshness.outdate();
            answer.send(()).expect("a reader");
            // It waits for the first one, whose answer is older than the refusal.
            freshness.restore(count).await;
            assert_eq!(reads.get(), 2);
        };
        join(freshness.restore(slow), meanwhile).await;
        freshness.restore(count).await;
        assert_eq!(reads.get(), 2);
    }
}
