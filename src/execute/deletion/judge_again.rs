//! Reads the members again and judges the deletes of the plan again, by what the members are now
//! (`plan/prunes_judged_again`), if what was read last is outdated (`execute/freshness`): after a wait, which may have
//! taken minutes, or after some time. It does not matter what the run has waited for: its manifests, a dependency, or a
//! webhook.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crate::cluster::apiserver::ApiError;
use crate::event::{Action, Event, ObjectOutcome, Sink};
use crate::execute::Execution;
use crate::execute::deletion::delete;
use crate::execute::deletion::delete_results::{DeleteResults, Stopped};
use crate::execute::deletion::reread_dependents::OwnerReferencesUnread;
use crate::execute::members::apply::OVERTAKEN;
use crate::model::applyset::Record;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::user_annotations::PruneOrder;
use crate::plan::{Plan, ReasonToKeep, Skip, StateAfterWait};
use crate::read::{ListError, ListTarget, ListTargets, WHOLE_OBJECTS, list_labeled_objects};

impl Execution<'_> {
    /// Returns the plan with its prunes judged again, before they begin. Reports the prunes that are kept now. If they
    /// cannot be judged, reports that nothing more is pruned. `desired_uids` are the UIDs of the objects that the run
    /// has applied.
    pub(super) async fn judge_prunes_again(
        &self,
        order: PruneOrder,
        desired_uids: &HashSet<String>,
        pruned: &mut DeleteResults,
        sink: &mut Sink<'_>,
    ) -> Result<Plan, Stopped> {
        let total: usize = match order {
            PruneOrder::Regular => self.plan.count_prunes(),
            PruneOrder::Last => self.plan.last_prunes.iter().map(Vec::len).sum(),
        };
        if total == 0 {
            return Ok(self.plan.clone());
        }
        let judged = self.list_members_and_judge(desired_uids, &pruned.uids).await;
        let judged =
            judged.map_err(|not_judged| pruned.fail_remaining(&not_judged, total, Action::Pruned, sink))?;
        // The warnings of the first plan were printed with that plan.
        let printed: BTreeSet<&String> = self.plan.edges.ignored.iter().collect();
        for warning in judged.edges.ignored.iter().filter(|text| !printed.contains(text)) {
            sink(Event::Warning(warning.clone()));
        }
        let planned = self.waves_of(order).iter().flatten();
        let planned: BTreeSet<&str> = planned.map(|live| live.uid.as_str()).collect();
        for skip in &judged.skips {
            if planned.contains(skip.live.uid.as_str()) {
                self.report_kept(skip, pruned, sink);
            }
        }
        Ok(judged)
    }

    /// Lists the members once for each kind and namespace of the set, and returns the plan with its prunes judged again.
    /// `deleted_uids` are the UIDs of the objects that the run has deleted: those that are not gone yet are no members
    /// any more.
    pub(super) async fn list_members_and_judge(
        &self,
        desired_uids: &HashSet<String>,
        deleted_uids: &BTreeSet<String>,
    ) -> Result<Plan, NotJudged> {
        let mut places = self.find_scope_of_members_now().await?;
        // With a namespace go the Roles that gave the permission to list what is in it.
        for live in self
            .plan
            .all_prunes()
            .filter(|live| deleted_uids.contains(&live.uid))
        {
            if live.key.group_kind == GroupKind::new("", "Namespace") {
                places.namespaces.remove(&live.key.name);
            }
        }
        let concurrency = self.writing.concurrency;
        let mut members = list_labeled_objects(self.server, self.set, &places, concurrency, WHOLE_OBJECTS)
            .await
            .map_err(|(place, error)| NotJudged::MembersUnread { place, error })?;
        members.retain(|live| !deleted_uids.contains(&live.uid));
        let judged_again = StateAfterWait {
            set: self.set,
            policy: self.policy,
            desired: self.desired,
            desired_uids,
            contents: self.contents_when_planned(),
            members: &members,
        };
        // What the objects to prune are needed for may be gone.
        match judged_again.desired_that_left().first() {
            Some(left) => Err(NotJudged::DesiredLeft((*left).clone())),
            None => Ok(judged_again.plan_with_prunes_judged_again(self.plan)),
        }
    }

    /// Reports an object that the plan prunes and that is kept now. A run of a saved plan fails if the object itself
    /// has changed; it does not fail if the object is kept because of other objects.
    fn report_kept(&self, skip: &Skip, pruned: &mut DeleteResults, sink: &mut Sink<'_>) {
        let skipped = delete::skipped_outcome_without_reason(&skip.live);
        let is_kept_for_others = matches!(
            skip.reason,
            ReasonToKeep::Needed { .. }
                | ReasonToKeep::HoldsKept { .. }
                | ReasonToKeep::HoldsAnnotated { .. }
                | ReasonToKeep::HoldsParent
        );
        let outcome = if self.plan.preconditions.is_of_saved_plan() && !is_kept_for_others {
            pruned.failed += 1;
            ObjectOutcome::from_error(skipped.subject, OVERTAKEN.to_owned())
        } else {
            pruned.kept += 1;
            ObjectOutcome {
                reason: skip.reason.to_string(),
                ..skipped
            }
        };
        pruned.kept_objects.note_unless_deleted(&outcome);
        sink(Event::Object(outcome));
    }

    /// Returns the scope of members now: what the plan has read, and the kinds and namespaces of the manifests.
    ///
    /// # Errors
    ///
    /// The record names more than this run knows, so that other runs may have added members which need what is to be
    /// pruned, or it cannot be read.
    async fn find_scope_of_members_now(&self) -> Result<ListTargets, NotJudged> {
        let key = &self.set.parent;
        let parent = self.parent_writing().read().await;
        let parent = parent.map_err(|error| NotJudged::ParentUnread(key.clone(), error))?;
        let reading = parent.map(|parent| parent.reading);
        let reading = reading
            .filter(|reading| reading.recorded().is_some())
            .ok_or_else(|| NotJudged::ParentLost(key.clone()))?;
        if reading.records_more_than(&self.record_of_everything_listed()) {
            return Err(NotJudged::RecordWidened(key.clone()));
        }
        let mut places = self.state.places.clone();
        let members = &self.desired.members;
        places
            .namespaces
            .extend(members.iter().filter_map(|object| object.key.namespace.clone()));
        places.add_resources_of_new_kinds(members.iter().map(|object| Arc::clone(&object.resource)));
        Ok(places)
    }

    /// Returns the kinds and namespaces that the parent may record without members that this run has not listed.
    pub(super) fn record_of_everything_listed(&self) -> Record {
        let listed = &self.plan.record_during;
        self.parent()
            .map_or_else(|| listed.clone(), |parent| parent.record_with(listed))
    }
}

/// The reason why deletes cannot be judged, so that nothing more is deleted.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotJudged {
    #[error("{0}: cannot be read again: {error}", error = .1.kind)]
    ParentUnread(ObjectKey, ApiError),
    #[error("{0} was deleted or lost its record during the run")]
    ParentLost(ObjectKey),
    #[error("another run has added kinds or namespaces to {0} during this one")]
    RecordWidened(ObjectKey),
    #[error("{}: members cannot be listed again: {error}", .place.resource.plural)]
    MembersUnread { place: ListTarget, error: ListError },
    #[error("{0} left the set during the run, because another client deleted it or removed its label")]
    DesiredLeft(ObjectKey),
    #[error(transparent)]
    OwnerReferencesUnread(#[from] OwnerReferencesUnread),
}

impl NotJudged {
    /// Returns the reason of each object that is not deleted.
    pub(super) fn reason_of_objects(&self) -> &'static str {
        match self {
            Self::ParentUnread(..) => "the set's parent cannot be read again",
            Self::ParentLost(_) => "the set's parent has no record any more",
            Self::RecordWidened(_) => "another run has added kinds or namespaces to the set",
            Self::MembersUnread { .. } => "members cannot be listed again",
            Self::DesiredLeft(_) => "an object of the manifests left the set during the run",
            Self::OwnerReferencesUnread(_) => "owner references cannot be read",
        }
    }
}
