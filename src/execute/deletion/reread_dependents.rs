//! Reads the owner references of desired and kept objects again: right before the first delete, whenever the deletes are
//! judged again (`judge_again`), and before a recreation deletes its object.
//!
//! A run may take minutes. If an object has gained an owner reference to a pruned object in that time, the garbage
//! collector would delete that object, although the plan keeps it. A reference can still be added between this read and
//! a delete: the API server has no precondition on dependents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join3;

use crate::cluster::apiserver::ApiError;
use crate::execute::Execution;
use crate::model::containers::Owners;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::plan::{self, Dependent, DependentNamespaces, Dependents, Observed};
use crate::read::{self, ListError, ListTarget, ListTargets, METADATA_LIST, list_labeled_objects};

/// Error if owner references could not be read.
#[derive(Debug, thiserror::Error)]
pub enum OwnerReferencesUnread {
    #[error("{}: owner references cannot be read: {error}", .place.resource.plural)]
    Members { place: ListTarget, error: ListError },
    #[error("{parent}: owner references cannot be read: {}", .error.kind)]
    Parent { parent: ObjectKey, error: ApiError },
}

impl Execution<'_> {
    /// Finds the current dependents of prunes; those of the plan if there are no prunes.
    pub(super) async fn reread_dependents_if_deleting(
        &self,
        parent_resource: Option<&Arc<Resource>>,
    ) -> Result<Dependents, OwnerReferencesUnread> {
        if self.plan.count_prunes() == 0 {
            return Ok(self.plan.dependents.clone());
        }
        self.reread_dependents(parent_resource, Vec::new()).await
    }

    /// Finds the current dependents of prunes among desired and kept objects. `parent_resource` is the resource of the
    /// parent, if there is one. `unlabeled` are desired objects that may not have the label of the set yet: none, once
    /// all of them are applied. Namespaces in which pruned objects cannot have dependents are not read.
    pub async fn reread_dependents(
        &self,
        parent_resource: Option<&Arc<Resource>>,
        mut unlabeled: Vec<(ObjectKey, Arc<Resource>)>,
    ) -> Result<Dependents, OwnerReferencesUnread> {
        let namespaces = DependentNamespaces::for_prunes(self.plan);
        unlabeled.retain(|(key, _)| namespaces.may_hold_dependents(key.namespace.as_deref()));
        let others = read::find_existing(self.server, &unlabeled, self.writing.concurrency)
            .await
            .map_err(|(place, error)| OwnerReferencesUnread::Members { place, error })?;
        let (members, parent, container_owners) = try_join3(
            self.list_members_in(&namespaces),
            self.read_parent_if_in(&namespaces, parent_resource),
            self.read_owners_of_staying_containers(parent_resource),
        )
        .await?;
        let observed = Observed {
            members,
            others,
            parent,
            container_owners,
            contents: self.contents_when_planned().clone(),
            ..Observed::default()
        };
        Ok(Dependents::find_again(
            self.plan,
            self.desired,
            &observed,
            self.policy,
        ))
    }

    /// Takes the desired and kept objects that are in one of `namespaces`, and lists the members of all their kinds in
    /// all their namespaces.
    async fn list_members_in(
        &self,
        namespaces: &DependentNamespaces<'_>,
    ) -> Result<Vec<Live>, OwnerReferencesUnread> {
        let members = self.desired.members.iter();
        let desired = members.map(|object| (&object.key, &object.resource));
        let skips = self.plan.skips.iter();
        let kept = skips.map(|skip| (&skip.live.key, &skip.live.resource));
        let mut places = ListTargets::default();
        let mut kinds: BTreeSet<GroupKind> = BTreeSet::new();
        let mut resources = Vec::new();
        for (key, resource) in desired.chain(kept) {
            if namespaces.may_hold_dependents(key.namespace.as_deref()) {
                places.namespaces.extend(key.namespace.clone());
                if kinds.insert(key.group_kind.clone()) {
                    resources.push(Arc::clone(resource));
                }
            }
        }
        // A kind that the plan has read is listed in the same version. `resources` adds only kinds that are missing.
        let known = self.state.places.resources.iter();
        places.add_resources_of_new_kinds(known.filter(|known| kinds.contains(&known.group_kind())).cloned());
        places.add_resources_of_new_kinds(resources);
        list_labeled_objects(
            self.server,
            self.set,
            &places,
            self.writing.concurrency,
            METADATA_LIST,
        )
        .await
        .map_err(|(place, error)| OwnerReferencesUnread::Members { place, error })
    }

    /// Reads the parent, if it is in one of the namespaces: it may be a dependent of a prune, too.
    async fn read_parent_if_in(
        &self,
        namespaces: &DependentNamespaces<'_>,
        parent_resource: Option<&Arc<Resource>>,
    ) -> Result<Option<Dependent>, OwnerReferencesUnread> {
        let key = &self.set.parent;
        let Some(resource) =
            parent_resource.filter(|_| namespaces.may_hold_dependents(key.namespace.as_deref()))
        else {
            return Ok(None);
        };
        let parent = read::read_parent(self.server, resource, key)
            .await
            .map_err(|error| OwnerReferencesUnread::Parent {
                parent: key.clone(),
                error,
            })?;
        Ok(parent.map(|parent| Dependent::from_parent(key, resource, &parent)))
    }

    /// Reads the owners of namespaces and CRDs that contain the parent, a desired object or a kept object.
    async fn read_owners_of_staying_containers(
        &self,
        parent_resource: Option<&Arc<Resource>>,
    ) -> Result<BTreeMap<ObjectKey, Owners>, OwnerReferencesUnread> {
        let containers = plan::find_containers_of_staying_objects_in_plan(
            self.set,
            parent_resource,
            self.desired,
            self.plan,
        );
        read::read_owners_of_namespaces_and_crds(self.server, &containers, &BTreeMap::new())
            .await
            .map_err(|(place, error)| OwnerReferencesUnread::Members { place, error })
    }
}
