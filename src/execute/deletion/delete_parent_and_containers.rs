//! Ends the deletion of a set: deletes the parent and then its containers (its namespace or CRD), or
//! reports what keeps them.

use std::collections::{BTreeSet, HashSet};

use crate::event::{Action, Ending, Event, ObjectOutcome, Subject};
use crate::execute::Execution;
use crate::execute::Sink;
use crate::execute::deletion::deletes::{Deleted, Waves};
use crate::execute::deletion::report::{
    names, outcome_event, predicted_disposition, report_unlisted, unlistable,
};
use crate::execute::deletion::set::parent_managers;
use crate::execute::former_parent::wait_until_members_are_gone::{
    Remaining, RemainingList, TerminatingObjects, Unlisted, fail, obstacles,
};
use crate::execute::former_parent::{ParentAim, ParentOutcome, ParentRelease, ReleaseError};
use crate::execute::parent_record::begin::Known;
use crate::execute::parent_record::run::RunOnParent;
use crate::execute::wait_until_gone::with_reasons;
use crate::model::applyset::Record;
use crate::model::identity::GroupKind;
use crate::model::live::Live;
use crate::model::text::counted;
use crate::model::write_settings::DryRun;
use crate::plan::{ParentDisposition, Remains, SkipReason};
use crate::read::WHOLE_OBJECTS;

impl Execution<'_> {
    /// Deletes the parent and then its containers if no member is left; else narrows its record to the
    /// remaining members.
    ///
    /// It is `Done` only if nothing is left, or only objects that users keep.
    pub async fn finish_deletion(
        &self,
        run: &mut RunOnParent<'_>,
        members: Deleted,
        terminating_objects: TerminatingObjects,
        sink: &mut Sink<'_>,
    ) -> Ending {
        let Some(known) = &mut run.known else {
            if self.interrupt.is_requested() {
                return Ending::Interrupted;
            }
            return self
                .finish_without_parent(members, terminating_objects, sink)
                .await;
        };
        let mut record = None;
        let mut noting = run.entry.counting_sink(sink);
        let finishing = self.finish_parent(known, members, terminating_objects, &mut record, &mut noting);
        let ending = finishing.await;
        drop(noting);
        run.end(record.as_ref(), ending, sink).await
    }

    /// Deletes the parent and its containers. The record of what is left, if it is known, is put into `record`.
    async fn finish_parent(
        &self,
        known: &mut Known,
        mut members: Deleted,
        terminating_objects: TerminatingObjects,
        record: &mut Option<Record>,
        sink: &mut Sink<'_>,
    ) -> Ending {
        if self.interrupt.is_requested() {
            return Ending::Interrupted;
        }
        // An object that cannot be deleted keeps the parent.
        let ending = self.leave_filled(&mut members, sink).await;
        let left = &members.left;
        let uid = known.parent.uid.clone();
        let release = ParentRelease {
            aim: ParentAim::Delete,
            joined: None,
            writing: self.parent_writing(),
            scope_of: known.listed(self.parent().map_or(&known.parent.reading, |read| &read.reading)),
            known,
            left,
            remaining: self.remaining(
                self.parent_containers().collect(),
                terminating_objects,
                &members.uids,
            ),
            unlisted: self.unlisted().clone(),
            managers: parent_managers(&self.writing.field_manager),
        };
        match release.see_to_parent(sink).await {
            Err(ReleaseError::Request(error)) => {
                let subject = Subject::new(&self.set.parent, self.parent_resource, Some(&uid));
                let outcome = ObjectOutcome::failed(subject, error.kind.of_object());
                sink(Event::Object(outcome));
                self.interrupt.ending_after_failure()
            }
            Err(error) => {
                sink(Event::failure(error.to_string()));
                self.interrupt.ending_after_failure()
            }
            Ok(ParentOutcome::Gone) => self.delete_last(members, terminating_objects, sink).await,
            Ok(ParentOutcome::Terminating(live)) => {
                self.delete_parent_containers(&mut members, sink).await;
                sink(Event::failure(format!(
                    "{}: the set's parent is still being deleted: {}",
                    self.set.parent,
                    with_reasons(&live)
                )));
                Ending::Incomplete
            }
            Ok(ParentOutcome::Ordinary) => ending,
            Ok(ParentOutcome::Replaced) => {
                sink(Event::failure(format!(
                    "{}: set not deleted: another run created it again",
                    self.set.parent
                )));
                Ending::Incomplete
            }
            Ok(ParentOutcome::Kept(kept)) => {
                *record = kept.record;
                for live in self.parent_containers().filter(|live| !left.contains(live)) {
                    sink(outcome_event(
                        live,
                        Action::Skipped,
                        SkipReason::HoldsParent.to_string(),
                    ));
                }
                let ending = worse(
                    ending,
                    self.report_remains(&kept.found.remains, terminating_objects, sink),
                );
                worse(ending, self.report_unlisted(&kept.unlisted, sink))
            }
            Ok(ParentOutcome::Untouched) => Ending::Interrupted,
        }
    }

    /// Ends a deletion without a parent: nothing is recorded, and nothing is deleted in its place.
    async fn finish_without_parent(
        &self,
        mut members: Deleted,
        terminating_objects: TerminatingObjects,
        sink: &mut Sink<'_>,
    ) -> Ending {
        let ending = self.delete_parent_containers(&mut members, sink).await;
        if ending == Ending::Interrupted {
            return ending;
        }
        match self.rest(terminating_objects, &members, sink).await {
            Ok(RemainingList { remains, .. }) => {
                if !remains.kept.is_empty() {
                    sink(Event::Warning(format!(
                        "{} kept without a parent to record them: {}",
                        counted(remains.kept.len(), "object"),
                        names(&remains.kept)
                    )));
                }
                worse(ending, self.report_rest(&remains, terminating_objects, sink))
            }
            Err(unseen) => self.report_unseen(&unseen, sink),
        }
    }

    /// Deletes the containers of the parent, and waits until they are gone.
    async fn delete_last(
        &self,
        mut members: Deleted,
        terminating_objects: TerminatingObjects,
        sink: &mut Sink<'_>,
    ) -> Ending {
        let ending = self.delete_parent_containers(&mut members, sink).await;
        let awaits_containers =
            terminating_objects == TerminatingObjects::Awaited && self.parent_containers().next().is_some();
        if ending == Ending::Interrupted || !awaits_containers {
            return ending;
        }
        match self.rest(terminating_objects, &members, sink).await {
            Ok(RemainingList { remains, .. }) => {
                worse(ending, self.report_rest(&remains, terminating_objects, sink))
            }
            Err(unseen) => self.report_unseen(&unseen, sink),
        }
    }

    /// Lists what is left in the end, including the parent's containers, unless the run waits for it in
    /// another way.
    async fn rest(
        &self,
        terminating_objects: TerminatingObjects,
        members: &Deleted,
        sink: &mut Sink<'_>,
    ) -> Result<RemainingList, Unlisted> {
        let parent_containers = match terminating_objects {
            TerminatingObjects::Awaited => Vec::new(),
            TerminatingObjects::Reported => self.parent_containers().collect(),
        };
        let mut remaining = self.remaining(parent_containers, terminating_objects, &members.uids);
        // What is in a namespace goes with it, and so do the Roles that allowed to list it.
        for container in self
            .parent_containers()
            .filter(|live| !members.left.contains(live))
        {
            if container.key.group_kind == GroupKind::new("", "Namespace") {
                remaining.places.namespaces.remove(&container.key.name);
            }
        }
        remaining.settled(&ParentDisposition::Goes, sink).await
    }

    /// Returns the part of the record that stays, because a list of members does not show all that it leads to.
    fn unlisted(&self) -> &Record {
        &self.state.observed.record_to_keep
    }

    /// Returns the scope of the rest of the set, without these containers of its parent.
    fn remaining<'a>(
        &'a self,
        parent_containers: Vec<&'a Live>,
        terminating_objects: TerminatingObjects,
        deleted: &BTreeSet<String>,
    ) -> Remaining<'a> {
        Remaining {
            server: self.server,
            set: self.set,
            interrupt: self.interrupt,
            concurrency: self.writing.concurrency,
            appliers: &self.policy.appliers,
            places: self.state.places.clone(),
            accept: WHOLE_OBJECTS,
            parent_containers,
            deleted: deleted.clone(),
            containers_of_kept: self.containers_of_kept(),
            terminating_objects,
        }
    }

    /// Reports what keeps the parent: objects that users keep are a warning, all others a failure.
    fn report_remains(
        &self,
        remains: &Remains,
        terminating_objects: TerminatingObjects,
        sink: &mut Sink<'_>,
    ) -> Ending {
        if !remains.kept.is_empty() {
            sink(Event::Warning(format!(
                "set kept, because it still has {}: {}; use `kubectl applyset disband` to end a set and keep its objects",
                counted(remains.kept.len(), "object"),
                names(&remains.kept)
            )));
        }
        fail(
            remains,
            self.set,
            &self.policy.appliers,
            terminating_objects,
            sink,
        )
    }

    /// Reports what is left in the end. It is not a failure if the user stopped the wait for it.
    fn report_rest(
        &self,
        remains: &Remains,
        terminating_objects: TerminatingObjects,
        sink: &mut Sink<'_>,
    ) -> Ending {
        if !self.interrupt.is_requested() {
            return fail(
                remains,
                self.set,
                &self.policy.appliers,
                terminating_objects,
                sink,
            );
        }
        match obstacles(remains, self.set, &self.policy.appliers) {
            Some(obstacles) => {
                sink(Event::Warning(format!("{}: {obstacles}", self.set.parent)));
                Ending::Interrupted
            }
            None => Ending::Done,
        }
    }

    /// Fails if objects that cannot be listed may be members: the parent stays because of them.
    fn report_unlisted(&self, unlisted: &Record, sink: &mut Sink<'_>) -> Ending {
        let consequence = match self.writing.dry_run {
            DryRun::None => "the set cannot be deleted",
            DryRun::Client | DryRun::Server => "the set would not be deleted",
        };
        report_unlisted(&self.set.parent, unlisted, consequence, sink)
    }

    fn report_unseen(&self, unseen: &Unlisted, sink: &mut Sink<'_>) -> Ending {
        sink(Event::failure(format!(
            "{}: remaining members cannot be listed: {unseen}",
            self.set.parent
        )));
        Ending::Incomplete
    }

    /// Keeps the parent's containers if they have gained objects.
    async fn leave_filled(&self, members: &mut Deleted, sink: &mut Sink<'_>) -> Ending {
        let mut ending = Ending::Done;
        let judge = self.deletion_judge(&members.attached, HashSet::new());
        let context = self.delete_context(Action::Deleted, &judge);
        for outcome in context.keep_filled(self.parent_containers()).await {
            if outcome.action == Action::Failed {
                ending = Ending::Incomplete;
            }
            members.left.note(&outcome);
            sink(Event::Object(outcome));
        }
        ending
    }

    /// Deletes the parent's containers, which are in a set without a parent now.
    async fn delete_parent_containers(&self, members: &mut Deleted, sink: &mut Sink<'_>) -> Ending {
        let waves = self.plan.prune_waves();
        let waves = Waves {
            deletes: waves
                .map(|wave| wave.iter().filter(|live| self.contains_parent(live)).collect())
                .collect(),
            owners: BTreeSet::new(),
            action: Action::Deleted,
            parent: None,
        };
        let judge = self.deletion_judge(&members.attached, HashSet::new());
        let mut driver = self.driver();
        let failed = members.failed;
        let deleting = self.delete_as_judged(&waves, judge, members, &mut driver, sink);
        let is_stopped = deleting.await.is_err();
        if self.interrupt.is_requested() {
            return Ending::Interrupted;
        }
        let left = &members.left;
        let mut kept = self
            .parent_containers()
            .filter(|live| left.contains(live))
            .peekable();
        let is_done = !is_stopped && members.failed == failed && kept.peek().is_none();
        for live in kept {
            sink(Event::failure(format!(
                "{}: kept, in a set without a parent; run the same command again",
                live.key
            )));
        }
        if is_done { Ending::Done } else { Ending::Incomplete }
    }

    /// Predicts what becomes of the parent and its containers once the members are gone.
    pub(super) async fn predict_end_of_set(&self, sink: &mut Sink<'_>) -> Ending {
        let Some(parent) = &self.state.parent else {
            return self.predict_deletion_of(self.parent_containers(), sink).await;
        };
        // An object that is left to a deleted owner is deleted with it.
        let going = &self.plan.dependents.deleted;
        let left = self.plan.skips.iter().filter(|skip| {
            !matches!(skip.reason, SkipReason::OwnedCopy(_)) && !going.contains_key(&skip.live.uid)
        });
        let left_behind = left.count();
        if left_behind > 0 {
            let count = counted(left_behind, "object");
            sink(outcome_event(
                &parent.live,
                Action::Skipped,
                format!("{count} of its set kept"),
            ));
            return self.report_unlisted(self.unlisted(), sink);
        }
        if !self.unlisted().is_empty() {
            sink(outcome_event(
                &parent.live,
                Action::Skipped,
                unlistable(self.unlisted()),
            ));
            return self.report_unlisted(self.unlisted(), sink);
        }
        let managers = parent_managers(&self.writing.field_manager);
        let (disposition, event) = predicted_disposition(self.set, parent, &managers);
        sink(event);
        match disposition {
            ParentDisposition::Goes => self.predict_deletion_of(self.parent_containers(), sink).await,
            ParentDisposition::Stays(_) => Ending::Done,
        }
    }
}

/// Returns the worse of two endings.
fn worse(one: Ending, other: Ending) -> Ending {
    match (one, other) {
        (Ending::Interrupted, _) | (_, Ending::Interrupted) => Ending::Interrupted,
        (Ending::Incomplete, _) | (_, Ending::Incomplete) => Ending::Incomplete,
        (Ending::Done, Ending::Done) => Ending::Done,
    }
}
