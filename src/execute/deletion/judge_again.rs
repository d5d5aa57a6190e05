//! Reads the members, their owner references and the parent again, and judges the deletes of the plan by what they are
//! now (`plan/prunes_judged_again`): right before the first delete, and whenever what was read last is outdated
//! (`execute/freshness`). It does not matter what the run has waited for: its manifests, a dependency, or a webhook.
//!
//! A dependency or an owner reference can still be added between this read and a delete: the API server has no
//! precondition on other objects.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use futures_util::future::{TryFutureExt as _, try_join};

use crate::cluster::apiserver::ApiError;
use crate::execute::Execution;
use crate::execute::deletion::delete_results::DeleteResults;
use crate::execute::deletion::deletes::Waves;
use crate::model::applyset::Record;
use crate::model::identity::ObjectKey;
use crate::model::resource::Resource;
use crate::model::set::ParentObject;
use crate::plan::{self, Dependent, Dependents, Observed, Plan, StateBeforeDeletes};
use crate::read::{self, ListError, ListTarget, ListTargets, WHOLE_OBJECTS, list_labeled_objects};

impl Execution<'_> {
    /// Returns the plan with its prunes and their dependents judged again. Objects that the run has deleted and that are
    /// not gone yet are no members any more.
    pub(super) async fn judge_deletes_again(
        &self,
        waves: &Waves<'_>,
        elapsed: Elapsed,
        deleted: &DeleteResults,
    ) -> Result<Plan, NotJudged> {
        let Waves {
            parent, desired_uids, ..
        } = waves;
        let mut observed = self
            .read_members_and_parent(*parent, &deleted.uids, elapsed)
            .await?;
        let state = StateBeforeDeletes {
            set: self.set,
            policy: self.policy,
            desired: self.desired,
            desired_uids,
            contents: self.contents_when_planned(),
            members: &observed.members,
            deleted: &deleted.uids,
            not_deleted: &deleted.kept_objects,
        };
        // What the objects to prune are needed for may be gone.
        if elapsed == Elapsed::Long
            && let Some(left) = state.desired_that_left().first()
        {
            return Err(NotJudged::DesiredLeft((*left).clone()));
        }
        let mut judged = state.plan_with_prunes_judged_again(self.plan);
        judged.dependents = judged.dependents.without(&deleted.detached);
        judged.dependents = self
            .find_dependents(&judged, *parent, desired_uids, &mut observed)
            .await?;
        Ok(judged)
    }

    /// Finds the current dependents of the prunes of this plan, which the run makes before it has applied everything.
    /// `unlabeled` are desired objects that may not have the label of the set yet.
    pub async fn find_current_dependents(
        &self,
        unlabeled: &[(ObjectKey, Arc<Resource>)],
    ) -> Result<Dependents, NotJudged> {
        let parent = Some(self.parent_resource);
        let mut observed = self
            .read_members_and_parent(parent, &BTreeSet::new(), Elapsed::Short)
            .await?;
        observed.others = read::find_existing(self.server, unlabeled, self.writing.concurrency).await?;
        self.find_dependents(self.plan, parent, &HashSet::new(), &mut observed)
            .await
    }

    /// Reads the owners of containers into `observed`, and finds the dependents of the prunes of `plan` in it.
    async fn find_dependents(
        &self,
        plan: &Plan,
        parent: Option<&Arc<Resource>>,
        desired_uids: &HashSet<String>,
        observed: &mut Observed,
    ) -> Result<Dependents, NotJudged> {
        let containers =
            plan::find_containers_of_staying_objects_in_plan(self.set, parent, self.desired, plan);
        observed.container_owners =
            read::read_owners_of_namespaces_and_crds(self.server, &containers, &BTreeMap::new()).await?;
        Ok(Dependents::find_again(
            plan,
            self.desired,
            desired_uids,
            observed,
            self.policy,
        ))
    }

    /// Lists the members once for each kind and namespace that the plan has read or the manifests have, and reads the
    /// parent.
    async fn read_members_and_parent(
        &self,
        parent_resource: Option<&Arc<Resource>>,
        deleted: &BTreeSet<String>,
        elapsed: Elapsed,
    ) -> Result<Observed, NotJudged> {
        let places = self.find_scope_of_members(deleted);
        let concurrency = self.writing.concurrency;
        let listing = list_labeled_objects(self.server, self.set, &places, concurrency, WHOLE_OBJECTS);
        let reading = self.reread_parent(parent_resource, elapsed);
        let (mut members, parent) = try_join(listing.err_into(), reading).await?;
        members.retain(|live| !deleted.contains(&live.uid));
        Ok(Observed {
            members,
            parent,
            contents: self.contents_when_planned().clone(),
            ..Observed::default()
        })
    }

    /// Returns the kinds and namespaces that the plan has read, and those of the manifests, without namespaces that the
    /// run has deleted: with a namespace go the Roles that gave the permission to list what is in it.
    fn find_scope_of_members(&self, deleted: &BTreeSet<String>) -> ListTargets {
        let mut places = self.state.places.clone();
        let members = &self.desired.members;
        places
            .namespaces
            .extend(members.iter().filter_map(|object| object.key.namespace.clone()));
        places.add_resources_of_new_kinds(members.iter().map(|object| Arc::clone(&object.resource)));
        for live in self.plan.all_prunes() {
            if live.key.group_kind.is_namespace() && deleted.contains(&live.uid) {
                places.namespaces.remove(&live.key.name);
            }
        }
        places
    }

    /// Reads the parent, which may have an owner that is pruned; `None` if the set has none.
    async fn reread_parent(
        &self,
        resource: Option<&Arc<Resource>>,
        elapsed: Elapsed,
    ) -> Result<Option<Dependent>, NotJudged> {
        let Some(resource) = resource else { return Ok(None) };
        let key = &self.set.parent;
        let parent = self.parent_writing().read().await;
        let parent = parent.map_err(|error| NotJudged::ParentUnread(key.clone(), error.into()))?;
        if elapsed == Elapsed::Long {
            self.check_record_of(parent.as_ref())?;
        }
        Ok(parent.map(|parent| Dependent::from_parent(key, resource, &parent)))
    }

    /// Checks that the parent still has a record, and that it does not record more than this run has listed: other runs
    /// may have added members there, which need what is to be pruned.
    fn check_record_of(&self, parent: Option<&ParentObject>) -> Result<(), NotJudged> {
        let key = &self.set.parent;
        let reading = parent
            .map(|parent| &parent.reading)
            .filter(|reading| reading.recorded().is_some())
            .ok_or_else(|| NotJudged::ParentLost(key.clone()))?;
        if reading.records_more_than(&self.record_of_everything_listed()) {
            return Err(NotJudged::RecordWidened(key.clone()));
        }
        Ok(())
    }

    /// Returns the kinds and namespaces that the parent may record without members that this run has not listed.
    pub(super) fn record_of_everything_listed(&self) -> Record {
        let listed = &self.plan.record_during;
        self.parent()
            .map_or_else(|| listed.clone(), |parent| parent.record_with(listed))
    }
}

/// The time since the members were read for the plan, or for the last judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Elapsed {
    /// Moments. What other runs do at the same time does not count: each run prunes what it has read. Objects of the
    /// manifests that vanish by themselves, such as a Job that has ended, need not be there.
    Short,
    /// The run has waited, or has read the members some time ago. The parent has to have a record of no more than the
    /// run has listed, and the objects of the manifests have to be members.
    Long,
}

/// The reason why deletes cannot be judged, so that nothing more is deleted.
#[derive(Debug, thiserror::Error)]
pub enum NotJudged {
    #[error("{0}: cannot be read again: {error}", error = .1.kind)]
    ParentUnread(ObjectKey, Box<ApiError>),
    #[error("{0} was deleted or lost its record during the run")]
    ParentLost(ObjectKey),
    #[error("another run has added kinds or namespaces to {0} during this one")]
    RecordWidened(ObjectKey),
    #[error("{}: objects of the set cannot be read again: {error}", .place.resource.plural)]
    ObjectsUnread { place: ListTarget, error: ListError },
    #[error("{0} left the set during the run, because another client deleted it or removed its label")]
    DesiredLeft(ObjectKey),
}

impl From<(ListTarget, ListError)> for NotJudged {
    fn from((place, error): (ListTarget, ListError)) -> Self {
        Self::ObjectsUnread { place, error }
    }
}

impl NotJudged {
    /// Returns the reason of each object that is not deleted.
    pub(super) fn reason_of_objects(&self) -> &'static str {
        match self {
            Self::ParentUnread(..) => "the set's parent cannot be read again",
            Self::ParentLost(_) => "the set's parent has no record any more",
            Self::RecordWidened(_) => "another run has added kinds or namespaces to the set",
            Self::ObjectsUnread { .. } => "objects of the set cannot be read again",
            Self::DesiredLeft(_) => "an object of the manifests left the set during the run",
        }
    }
}
