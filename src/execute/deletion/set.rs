//! Deletes a whole set: its members in reverse order, then the parent, and last its containers.
//!
//! Members are deleted wave by wave, as when `apply` prunes. `delete_parent_or_narrow_record` then deletes the parent
//! and its containers (`delete_parent_and_containers`).

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::compare::ownership::{
    FOREIGN_PARENT_FIELD_MANAGER, KUBECTL_PARENT_FIELD_MANAGER, PARENT_FIELD_MANAGER,
};
use crate::event::{Action, Ending, Event, ObjectOutcome, Phase, Sink};
use crate::execute::Execution;
use crate::execute::deletion::delete::skipped_outcome;
use crate::execute::deletion::delete_results::{DeleteResults, Stopped};
use crate::execute::deletion::deletes::Waves;
use crate::execute::dry_run::Prediction;
use crate::execute::parent_record::RunOnParent;
use crate::execute::parent_record::begin::KnownParent;
use crate::execute::parent_record::requests::ParentWriteError;
use crate::model::history_annotation::RunOperation;
use crate::model::live::Live;
use crate::model::text::counted;
use crate::plan::{ReasonToKeep, holds_parent_of};

/// Returns the field managers that write a set's record on its parent. Content of any other field manager makes the
/// parent an object with another use.
pub fn record_field_managers() -> BTreeSet<String> {
    let managers = [
        PARENT_FIELD_MANAGER,
        FOREIGN_PARENT_FIELD_MANAGER,
        KUBECTL_PARENT_FIELD_MANAGER,
    ];
    managers.map(str::to_owned).into()
}

/// Returns the field managers whose content is no reason to keep a parent when its set is deleted: those that write
/// records, and the one that applies members, which also applies a parent from the manifests.
pub fn field_managers_not_keeping_parent(field_manager: &str) -> BTreeSet<String> {
    let mut managers = record_field_managers();
    managers.insert(field_manager.to_owned());
    managers
}

impl<'a> Execution<'a> {
    /// Begins the run on the parent: writes the run's entry into the history, if the run deletes any object.
    ///
    /// # Errors
    ///
    /// The parent has changed into one that this run may not write.
    pub async fn begin_deletion(&self, sink: &mut Sink<'_>) -> Result<RunOnParent<'a>, ParentWriteError> {
        self.announce_deletion(sink);
        let recorded = &self.plan.record_during;
        let writing = self.parent_writing();
        let known = match &self.state.parent {
            None => None,
            Some(parent) if self.plan.count_prunes() == 0 => {
                Some(KnownParent::from_read_to_take_out(parent.object.clone()))
            }
            Some(parent) => {
                let begun = writing.try_to_begin_taking_out(
                    parent.object.clone(),
                    recorded,
                    RunOperation::Delete,
                    sink,
                );
                Some(begun.await?)
            }
        };
        Ok(RunOnParent::new(writing, recorded, known))
    }
}

impl Execution<'_> {
    /// Deletes the members, one wave after the other, except the parent's containers.
    ///
    /// # Errors
    ///
    /// How the run ends, if it may not continue with the parent.
    ///
    /// # Panics
    ///
    /// If the plan has refusals.
    pub async fn delete_members_while_renewing_entry(
        &self,
        run: &mut RunOnParent<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<DeleteResults, Ending> {
        run.count_changes_while_renewing(sink, async |sink| {
            self.delete_members_except_parent_containers(sink).await
        })
        .await
    }

    async fn delete_members_except_parent_containers(
        &self,
        sink: &mut Sink<'_>,
    ) -> Result<DeleteResults, Ending> {
        let plan = self.plan;
        assert!(
            plan.refusals.is_empty(),
            "a plan with refusals must not be carried out"
        );
        self.report_kept_objects(sink);
        let waves = plan.prune_waves();
        let waves = Waves {
            deletes: waves
                .map(|wave| {
                    wave.iter()
                        .filter(|live| !self.is_parent_container(live))
                        .collect()
                })
                .collect(),
            action: Action::Deleted,
            parent: self.parent().map(|_| self.parent_resource),
            desired_uids: HashSet::new(),
        };
        let mut deleted = DeleteResults::default();
        let deleting = if plan.count_prunes() == 0 {
            Ok(())
        } else {
            self.delete_waves(&waves, &mut deleted, sink).await
        };
        match self.end_with_failed_deletes(deleted.failed, sink) {
            Ending::Done if deleting.is_err() => Err(Ending::Incomplete),
            Ending::Done => Ok(deleted),
            ending => Err(ending),
        }
    }

    async fn delete_waves(
        &self,
        waves: &Waves<'_>,
        deleted: &mut DeleteResults,
        sink: &mut Sink<'_>,
    ) -> Result<(), Stopped> {
        let mut driver = self.driver();
        let owners = self.plan.all_prunes().map(|live| &live.key).collect();
        let judging = self.judge_and_remove_owner_references(waves, &owners, deleted, &mut driver, sink);
        let judge = match judging.await {
            Ok(judge) => judge,
            Err(not_judged) => {
                return Err(deleted.fail_remaining(&not_judged, waves.count(), waves.action, sink));
            }
        };
        self.delete_waves_as_judged(waves, judge, deleted, &mut driver, sink)
            .await
    }

    /// Reports what the deletion would do, by server dry runs if the user requests them.
    pub async fn report_predicted_set_deletion(&self, sink: &mut Sink<'_>) -> Ending {
        self.announce_deletion(sink);
        self.report_kept_objects(sink);
        let members = self
            .plan
            .all_prunes()
            .filter(|live| !self.is_parent_container(live));
        let ending = self.report_predicted_deletions(members, sink).await;
        self.warn_of_predicted_detachments(sink);
        match ending {
            Ending::Done => self.report_predicted_parent_and_containers(sink).await,
            ending => ending,
        }
    }

    /// Predicts the deletion of these objects.
    pub(super) async fn report_predicted_deletions<'l>(
        &self,
        objects: impl Iterator<Item = &'l Live>,
        sink: &mut Sink<'_>,
    ) -> Ending {
        let mut failed = 0;
        let mut driver = self.driver();
        let mut predicted = |prediction: Prediction, sink: &mut Sink<'_>| {
            failed += usize::from(prediction.is_failure());
            prediction.report(sink);
        };
        let times = HashMap::new();
        self.predict_deletions(
            objects,
            Action::Deleted,
            &times,
            &mut driver,
            &mut predicted,
            sink,
        )
        .await;
        self.end_with_failed_deletes(failed, sink)
    }

    /// Announces the objects that are about to be deleted, and those that are kept.
    fn announce_deletion(&self, sink: &mut Sink<'_>) {
        sink(Event::Phase {
            phase: Phase::Deleting,
            total: self.plan.count_prunes(),
        });
        sink(Event::Planned(self.deletion_outcomes_if_ended_early()));
        if self.parent().is_some() {
            sink(self.parent_writing().announcement());
        }
    }

    /// Returns how the deletion of the members ended, and reports how many of them could not be deleted (`failed`).
    fn end_with_failed_deletes(&self, failed: usize, sink: &mut Sink<'_>) -> Ending {
        if self.interrupt.is_requested() {
            Ending::Interrupted
        } else if failed > 0 {
            // The message does not say that the parent is kept: another client may have deleted it since this run read
            // it.
            let failures = counted(failed, "object");
            let parent = self
                .parent()
                .map_or("", |_| "; this run does not delete the set's parent");
            sink(Event::Warning(format!(
                "{failures} not deleted{parent}; fix the errors, then run the same command again"
            )));
            Ending::Incomplete
        } else {
            Ending::Done
        }
    }

    /// Returns the UIDs of containers that are kept because an object in them has a keep annotation.
    pub(super) fn uids_of_containers_with_kept_objects(&self) -> BTreeSet<String> {
        self.plan
            .skips
            .iter()
            .filter(|skip| matches!(skip.reason, ReasonToKeep::HoldsAnnotated { .. }))
            .map(|skip| skip.live.uid.clone())
            .collect()
    }

    /// Returns the outcome that each member and the parent have if the run ends before it deletes them.
    fn deletion_outcomes_if_ended_early(&self) -> Vec<ObjectOutcome> {
        let parent = self.state.parent.iter();
        let mut outcomes = self.outcomes_if_ended_early();
        outcomes.extend(parent.map(|parent| skipped_outcome(&parent.live, "")));
        outcomes
    }

    /// Returns the members that have to be gone before the parent is deleted: those that this run deletes, and those
    /// that were terminating already.
    pub fn members_to_be_gone_before_parent(&self) -> impl Iterator<Item = &Live> {
        let skips = self.plan.skips.iter();
        let terminating = skips.filter(|skip| matches!(skip.reason, ReasonToKeep::Terminating { .. }));
        self.plan
            .all_prunes()
            .filter(|live| !self.is_parent_container(live))
            .chain(terminating.map(|skip| &skip.live))
    }

    /// Returns the parent's containers that this run deletes.
    pub fn parent_containers_to_delete(&self) -> impl Iterator<Item = &Live> {
        self.plan
            .all_prunes()
            .filter(|live| self.is_parent_container(live))
    }

    pub(super) fn is_parent_container(&self, live: &Live) -> bool {
        holds_parent_of(self.set, live)
    }
}
