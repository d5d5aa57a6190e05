//! Ends the deletion of a set: deletes the parent and then the parent's containers (its namespace, or the CRD of its
//! kind), or reports why they are kept.

use std::collections::{BTreeSet, HashSet};

use crate::event::{Action, Ending, Event, ObjectOutcome, Sink, Subject};
use crate::execute::Execution;
use crate::execute::deletion::delete_results::DeleteResults;
use crate::execute::deletion::deletes::Waves;
use crate::execute::deletion::report_parent_and_remains::{
    describe_unlisted_kinds, fail_if_kinds_unlisted, join_names, outcome_event, predict_disposition,
};
use crate::execute::deletion::set::field_managers_not_keeping_parent;
use crate::execute::former_parent::list_what_is_left::{
    RemainingList, RemainingLister, RemainingNotListed, TerminatingObjects, describe_members_not_gone,
    report_members_not_gone,
};
use crate::execute::former_parent::{ParentAim, ParentOutcome, ParentRelease, ReleaseError};
use crate::execute::parent_record::RunOnParent;
use crate::execute::parent_record::begin::KnownParent;
use crate::model::applyset::Record;
use crate::model::deletion_obstacles::describe_why_it_still_exists;
use crate::model::live::Live;
use crate::model::text::counted;
use crate::model::write_settings::DryRun;
use crate::plan::{Judge, ParentDisposition, ReasonToKeep, Remains};
use crate::read::WHOLE_OBJECTS;

impl Execution<'_> {
    /// Deletes the parent and then its containers if no member is left; else narrows its record to the
    /// remaining members.
    ///
    /// Returns `Done` only if nothing is left, or only objects that a keep annotation or another owner keeps.
    pub async fn delete_parent_or_narrow_record(
        &self,
        run: &mut RunOnParent<'_>,
        members: DeleteResults,
        terminating_objects: TerminatingObjects,
        sink: &mut Sink<'_>,
    ) -> Ending {
        let Some(known) = &mut run.known else {
            if self.interrupt.is_requested() {
                return Ending::Interrupted;
            }
            return self
                .delete_containers_and_report_remains(members, terminating_objects, sink)
                .await;
        };
        let mut record = None;
        let mut counting_sink = run.changes.counting_sink(sink);
        let finishing = self.delete_parent_and_containers_unless_kept(
            known,
            members,
            terminating_objects,
            &mut record,
            &mut counting_sink,
        );
        let ending = finishing.await;
        drop(counting_sink);
        run.end(record.as_ref(), ending, sink).await
    }

    /// Deletes the parent and its containers. If the parent is kept, puts the record of what is left into
    /// `remaining_record`.
    async fn delete_parent_and_containers_unless_kept(
        &self,
        known: &mut KnownParent,
        mut members: DeleteResults,
        terminating_objects: TerminatingObjects,
        remaining_record: &mut Option<Record>,
        sink: &mut Sink<'_>,
    ) -> Ending {
        if self.interrupt.is_requested() {
            return Ending::Interrupted;
        }
        // A container that must not be deleted keeps the parent, so the containers are listed first.
        let ending = self.list_and_report_containers_to_keep(&mut members, sink).await;
        let kept_objects = &members.kept_objects;
        let uid = known.parent.uid.clone();
        let release = ParentRelease {
            aim: ParentAim::Delete,
            joined: None,
            listed: self.record_of_everything_listed(),
            known,
            kept_objects,
            remaining: self.lister_without_containers(
                self.parent_containers_to_delete().collect(),
                terminating_objects,
                &members.uids,
            ),
            unlisted: self.record_of_unlisted_kinds().clone(),
            managers_not_keeping_parent: field_managers_not_keeping_parent(&self.writing.field_manager),
        };
        match release.carry_out(sink).await {
            Err(ReleaseError::Request(error)) => {
                let subject = Subject::new(&self.set.parent, self.parent_resource, Some(&uid));
                let outcome = ObjectOutcome::from_error(subject, error.kind.to_object_message());
                sink(Event::Object(outcome));
                self.interrupt.ending_after_failure()
            }
            Err(error) => {
                sink(Event::general_failure(error.to_string()));
                self.interrupt.ending_after_failure()
            }
            Ok(ParentOutcome::Gone) => {
                self.delete_containers_and_report_remains(members, terminating_objects, sink)
                    .await
            }
            Ok(ParentOutcome::Terminating(live)) => {
                self.delete_parent_containers(&mut members, sink).await;
                sink(Event::general_failure(format!(
                    "{}: the set's parent is still being deleted: {}",
                    self.set.parent,
                    describe_why_it_still_exists(&live)
                )));
                Ending::Incomplete
            }
            Ok(ParentOutcome::Ordinary) => ending,
            Ok(ParentOutcome::Kept(kept)) => {
                *remaining_record = Some(kept.record);
                // Containers in `kept_objects` have an outcome already.
                for live in self
                    .parent_containers_to_delete()
                    .filter(|live| !kept_objects.contains(&live.key))
                {
                    sink(outcome_event(
                        live,
                        Action::Skipped,
                        ReasonToKeep::HoldsParent.to_string(),
                    ));
                }
                ending
                    .max(self.end_with_objects_keeping_parent(&kept.found.remains, sink))
                    .max(self.fail_deletion_if_kinds_unlisted(sink))
            }
            Ok(ParentOutcome::Untouched) => Ending::Interrupted,
        }
    }

    /// Deletes the containers of a parent that is gone or never was, and reports what is left of the set, which nothing
    /// records. If this run has deleted the parent, nothing but its containers can be left: without any, or if the run
    /// waits for them in another way, nothing is listed.
    async fn delete_containers_and_report_remains(
        &self,
        mut members: DeleteResults,
        terminating_objects: TerminatingObjects,
        sink: &mut Sink<'_>,
    ) -> Ending {
        let ending = self.delete_parent_containers(&mut members, sink).await;
        let awaits_containers = terminating_objects == TerminatingObjects::Awaited
            && self.parent_containers_to_delete().next().is_some();
        let has_deleted_parent = self.state.parent.is_some();
        if ending == Ending::Interrupted || (has_deleted_parent && !awaits_containers) {
            return ending;
        }
        let listing = self.list_remaining_after_last_delete(terminating_objects, &members, sink);
        let remains = match listing.await {
            Ok(found) => found.remains,
            Err(error) => {
                sink(Event::general_failure(format!(
                    "{}: remaining members cannot be listed: {error}",
                    self.set.parent
                )));
                return ending.max(Ending::Incomplete);
            }
        };
        if !remains.kept.is_empty() {
            sink(Event::Warning(format!(
                "{} kept without a parent to record them: {}",
                counted(remains.kept.len(), "object"),
                join_names(&remains.kept)
            )));
        }
        ending.max(self.end_with_remains_after_last_delete(&remains, sink))
    }

    /// Lists what is left of the set after the last delete. The parent's containers are listed, too, if this run awaits
    /// terminating objects; otherwise they are left out, because the run waits for them in another way or not at all.
    async fn list_remaining_after_last_delete(
        &self,
        terminating_objects: TerminatingObjects,
        members: &DeleteResults,
        sink: &mut Sink<'_>,
    ) -> Result<RemainingList, RemainingNotListed> {
        let excluded = match terminating_objects {
            TerminatingObjects::Awaited => Vec::new(),
            TerminatingObjects::Reported => self.parent_containers_to_delete().collect(),
        };
        let mut remaining = self.lister_without_containers(excluded, terminating_objects, &members.uids);
        // A namespace that is being deleted is not listed: its objects are deleted with it, and so are the Roles that
        // gave the user the permission to list them.
        for container in self
            .parent_containers_to_delete()
            .filter(|live| !members.kept_objects.contains(&live.key))
        {
            if container.key.group_kind.is_namespace() {
                remaining.places.namespaces.remove(&container.key.name);
            }
        }
        remaining
            .list_and_await_deletions(&ParentDisposition::Goes, sink)
            .await
    }

    /// Returns the part of the record that has to stay: the kinds of it whose members a list may not show.
    fn record_of_unlisted_kinds(&self) -> &Record {
        &self.state.observed.record_to_keep
    }

    /// Returns the context for listing what is left of the set, without these containers of its parent. `deleted` are
    /// the UIDs of the objects that the run has deleted.
    fn lister_without_containers<'a>(
        &'a self,
        parent_containers: Vec<&'a Live>,
        terminating_objects: TerminatingObjects,
        deleted: &BTreeSet<String>,
    ) -> RemainingLister<'a> {
        RemainingLister {
            parent: self.parent_writing(),
            appliers: &self.policy.appliers,
            places: self.state.places.clone(),
            accept: WHOLE_OBJECTS,
            parent_containers,
            deleted: deleted.clone(),
            containers_of_kept: self.uids_of_containers_with_kept_objects(),
            terminating_objects,
        }
    }

    /// Reports the objects that keep the parent: those that a keep annotation or another owner keeps as a warning, all
    /// others as a failure.
    fn end_with_objects_keeping_parent(&self, remains: &Remains, sink: &mut Sink<'_>) -> Ending {
        if !remains.kept.is_empty() {
            sink(Event::Warning(format!(
                "set kept, because it still has {}: {}; use `kubectl applyset disband` to end a set and keep its objects",
                counted(remains.kept.len(), "object"),
                join_names(&remains.kept)
            )));
        }
        report_members_not_gone(remains, self.set, &self.policy.appliers, sink)
    }

    /// Reports what is left after the last delete: as a failure, or as a warning if the user stopped the wait for it.
    fn end_with_remains_after_last_delete(&self, remains: &Remains, sink: &mut Sink<'_>) -> Ending {
        if !self.interrupt.is_requested() {
            return report_members_not_gone(remains, self.set, &self.policy.appliers, sink);
        }
        match describe_members_not_gone(remains, self.set, &self.policy.appliers) {
            Some(obstacles) => {
                sink(Event::Warning(format!("{}: {obstacles}", self.set.parent)));
                Ending::Interrupted
            }
            None => Ending::Done,
        }
    }

    /// Reports a failure if the record has kinds whose members a list may not show: such members keep the parent.
    fn fail_deletion_if_kinds_unlisted(&self, sink: &mut Sink<'_>) -> Ending {
        let consequence = match self.writing.dry_run {
            DryRun::None => "the set cannot be deleted",
            DryRun::Client | DryRun::Server => "the set would not be deleted",
        };
        fail_if_kinds_unlisted(
            &self.set.parent,
            self.record_of_unlisted_kinds(),
            consequence,
            sink,
        )
    }

    fn judge_of_parent_containers(&self, members: &DeleteResults) -> Judge<'_> {
        let mut judge = self.judge_of_deletes(self.plan, HashSet::new());
        judge.replace_dependents(&members.attached);
        judge
    }

    /// Lists what the parent's containers hold. Reports and notes in `members` those that must not be deleted.
    async fn list_and_report_containers_to_keep(
        &self,
        members: &mut DeleteResults,
        sink: &mut Sink<'_>,
    ) -> Ending {
        let mut ending = Ending::Done;
        let judge = self.judge_of_parent_containers(members);
        let context = self.delete_context(Action::Deleted, &judge);
        for outcome in context
            .outcomes_of_containers_to_keep(self.parent_containers_to_delete())
            .await
        {
            if outcome.action == Action::Failed {
                ending = Ending::Incomplete;
            }
            members.note_kept_unless_deleted(&outcome);
            sink(Event::Object(outcome));
        }
        ending
    }

    /// Deletes the parent's containers. The parent is gone by now, so no record leads to a container that is kept: that
    /// is a failure.
    async fn delete_parent_containers(&self, members: &mut DeleteResults, sink: &mut Sink<'_>) -> Ending {
        // A container that must not be deleted has been reported already.
        let kept_objects = &members.kept_objects;
        let deletes = self.plan.prune_waves().map(|wave| {
            wave.iter()
                .filter(|live| self.is_parent_container(live) && !kept_objects.contains(&live.key))
                .collect()
        });
        let waves = Waves {
            deletes: deletes.collect(),
            action: Action::Deleted,
            parent: None,
            desired_uids: HashSet::new(),
        };
        let judge = self.judge_of_parent_containers(members);
        let mut driver = self.driver();
        let failed_before = members.failed;
        let deleting = self.delete_waves_as_judged(&waves, judge, members, &mut driver, sink);
        let is_stopped = deleting.await.is_err();
        if self.interrupt.is_requested() {
            return Ending::Interrupted;
        }
        let kept_objects = &members.kept_objects;
        let mut kept = self
            .parent_containers_to_delete()
            .filter(|live| kept_objects.contains(&live.key))
            .peekable();
        let is_done = !is_stopped && members.failed == failed_before && kept.peek().is_none();
        for live in kept {
            sink(Event::general_failure(format!(
                "{}: kept, in a set without a parent; run the same command again",
                live.key
            )));
        }
        if is_done { Ending::Done } else { Ending::Incomplete }
    }

    /// Predicts what becomes of the parent and its containers once the members are gone.
    pub(super) async fn report_predicted_parent_and_containers(&self, sink: &mut Sink<'_>) -> Ending {
        let Some(parent) = &self.state.parent else {
            return self
                .report_predicted_deletions(self.parent_containers_to_delete(), sink)
                .await;
        };
        // A skipped object does not keep the parent if the garbage collector deletes it with its owner.
        let going = &self.plan.dependents.deleted;
        let skips = self.plan.skips.iter();
        let kept = skips
            .filter(|skip| {
                !matches!(skip.reason, ReasonToKeep::OwnedCopy(_)) && !going.contains_key(&skip.live.uid)
            })
            .count();
        if kept > 0 {
            let count = counted(kept, "object");
            sink(outcome_event(
                &parent.live,
                Action::Skipped,
                format!("{count} of its set kept"),
            ));
            return self.fail_deletion_if_kinds_unlisted(sink);
        }
        if !self.record_of_unlisted_kinds().is_empty() {
            sink(outcome_event(
                &parent.live,
                Action::Skipped,
                describe_unlisted_kinds(self.record_of_unlisted_kinds()),
            ));
            return self.fail_deletion_if_kinds_unlisted(sink);
        }
        let managers = field_managers_not_keeping_parent(&self.writing.field_manager);
        let (disposition, event) = predict_disposition(self.set, parent, &managers);
        sink(event);
        match disposition {
            ParentDisposition::Goes => {
                self.report_predicted_deletions(self.parent_containers_to_delete(), sink)
                    .await
            }
            ParentDisposition::Stays(_) => Ending::Done,
        }
    }
}
