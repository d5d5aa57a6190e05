//! Deletes a whole set: its members in reverse order, then the parent, and last its containers.
//!
//! Members go wave by wave, as when `apply` prunes; `finish` ends the run.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crate::cluster::apiserver::ApiServer;
use crate::compare::ownership::{
    FOREIGN_PARENT_FIELD_MANAGER, KUBECTL_PARENT_FIELD_MANAGER, PARENT_FIELD_MANAGER,
};
use crate::event::{Action, Ending, Event, ObjectOutcome, Phase};
use crate::execute::concurrency_limit::ConcurrencyLimit;
use crate::execute::concurrent_writes::{WaitNotes, WriteEvent};
use crate::execute::deletion::delete_wave::{Deleting, ObjectsKeptInsteadOfDeleted, Purpose, untouched};
use crate::execute::deletion::remove_owner_references::Detacher;
use crate::execute::deletion::report::{outcome_event, report_unread};
use crate::execute::deletion::reread_dependents::{DependentsLook, Unread};
use crate::execute::dependency_order::DependentsFirst;
use crate::execute::history::HistoryEntry;
use crate::execute::parent_record::begin::Known;
use crate::execute::parent_record::end::Left;
use crate::execute::parent_record::requests::ParentWriteError;
use crate::execute::starting_webhooks::StartingWebhooks;
use crate::execute::{DependencyGate, Interrupt, ParentWriting, Sink};
use crate::manifest::desired::Desired;
use crate::model::applyset::Record;
use crate::model::contents::Contents;
use crate::model::history_annotation::RunOperation;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::model::set::Set;
use crate::model::text::counted;
use crate::model::write_settings::{DryRun, WriteSettings};
use crate::plan::{Dependents, Judge, Plan, Policy, Skip, SkipReason, holds_parent_of};
use crate::read::{ListTargets, WholeParent};

/// Context for deleting a set.
pub struct SetDeletion<'a> {
    /// The server.
    pub server: &'a ApiServer,
    /// The set; its tooling is that of the parent.
    pub set: &'a Set,
    /// The resource of the parent.
    pub parent_resource: &'a Arc<Resource>,
    /// The parent as it was read for the plan; `None` if there is none with a record.
    pub parent: Option<&'a WholeParent>,
    /// The scope in which members were listed.
    pub places: &'a ListTargets,
    /// The part of the record that stays, because a list of members does not show all that it leads to.
    pub unlisted: &'a Record,
    /// The plan.
    pub plan: &'a Plan,
    /// The policy of the plan; objects that have changed since are judged again.
    pub policy: &'a Policy,
    /// The contents of namespaces and CRDs when their deletion was judged.
    pub contents: &'a BTreeMap<ObjectKey, Contents>,
    /// The write settings.
    pub writing: &'a WriteSettings,
    /// The interrupt of the run.
    pub interrupt: &'a Interrupt,
    /// What waits for objects that depend on others to be gone; `None` in a run that writes nothing.
    pub dependencies: Option<&'a dyn DependencyGate>,
}

/// A deletion under way.
pub struct DeletionRun {
    /// The parent, and the entry of the run if it has one; `None` without a parent.
    pub(super) known: Option<Known>,
    pub(super) entry: HistoryEntry,
}

/// Outcome of deleting the members.
#[derive(Debug)]
pub struct MembersDeleted {
    /// `Done` if the run may continue with the parent.
    pub ending: Ending,
    /// Members that are kept.
    pub left: ObjectsKeptInsteadOfDeleted,
    /// UIDs of those that were deleted.
    pub deleted: BTreeSet<String>,
    /// Kept objects that objects still to be deleted own.
    pub attached: Dependents,
}

/// Returns the field managers of records: no other content belongs to a parent itself.
pub(crate) fn record_managers() -> BTreeSet<String> {
    let managers = [
        PARENT_FIELD_MANAGER,
        FOREIGN_PARENT_FIELD_MANAGER,
        KUBECTL_PARENT_FIELD_MANAGER,
    ];
    managers.map(str::to_owned).into()
}

/// Returns the field managers whose content of a parent is deleted with the set: those of records, and that
/// of members, for a parent from the manifests.
pub fn parent_managers(field_manager: &str) -> BTreeSet<String> {
    let mut managers = record_managers();
    managers.insert(field_manager.to_owned());
    managers
}

impl SetDeletion<'_> {
    /// Begins the run on the parent, if it deletes a member.
    ///
    /// # Errors
    ///
    /// The parent has become one that this run may not write.
    pub async fn begin(&self, sink: &mut Sink<'_>) -> Result<DeletionRun, ParentWriteError> {
        self.announce(sink);
        let known = match self.parent {
            None => None,
            Some(parent) if self.plan.deletions() == 0 => {
                Some(Known::read_to_take_out(parent.object.clone()))
            }
            Some(parent) => {
                let (writing, recorded) = (self.parent_writing(), &self.plan.record_during);
                let begun =
                    writing.begin_to_take_out(parent.object.clone(), recorded, RunOperation::Delete, sink);
                Some(Box::pin(begun).await?)
            }
        };
        Ok(DeletionRun {
            known,
            entry: HistoryEntry::default(),
        })
    }

    /// Does a part of the work of this run, and renews its entry at the same time.
    pub async fn while_renewing<T>(&self, run: &mut DeletionRun, work: impl Future<Output = T>) -> T {
        match &mut run.known {
            None => work.await,
            Some(known) => self.parent_writing().while_renewing(known, work).await,
        }
    }

    /// Ends the run on the parent, if that still has its entry. `record` is that of what is left, if it is known.
    pub async fn end(
        &self,
        run: &mut DeletionRun,
        ending: Ending,
        record: Option<&Record>,
        sink: &mut Sink<'_>,
    ) -> Ending {
        let Some(known) = &mut run.known else {
            return ending;
        };
        let left = Left {
            needed: &self.plan.record_during,
            exact: record,
        };
        self.parent_writing()
            .end_reported(known, &run.entry, left, ending, sink)
            .await
    }

    /// Deletes the members, one wave after the other, except the parent's containers.
    ///
    /// # Panics
    ///
    /// If the plan has refusals: executing it would be worse.
    pub async fn delete_members(&self, run: &mut DeletionRun, sink: &mut Sink<'_>) -> MembersDeleted {
        let entry = std::mem::take(&mut run.entry);
        let mut noting = |event: Event| {
            entry.note(&event);
            sink(event);
        };
        let deleting = Box::pin(self.delete_waves(&mut noting));
        let members = self.while_renewing(run, deleting).await;
        run.entry = entry;
        members
    }

    async fn delete_waves(&self, sink: &mut Sink<'_>) -> MembersDeleted {
        assert!(
            self.plan.refusals.is_empty(),
            "a plan with refusals must not be carried out"
        );
        self.report_skips(sink);
        let mut failed = 0;
        let mut left = ObjectsKeptInsteadOfDeleted::default();
        let mut deleted = BTreeSet::new();
        let mut concurrency_limit = ConcurrencyLimit::for_server(self.server, self.writing.concurrency);
        let nothing = Desired::default();
        let dependents = match self.dependents(&nothing).await {
            Ok(dependents) => dependents,
            Err(unread) => {
                report_unread(&unread, "nothing was deleted", sink);
                return MembersDeleted {
                    ending: Ending::Incomplete,
                    left,
                    deleted,
                    attached: self.plan.dependents.clone(),
                };
            }
        };
        let mut judge = self.judge(&nothing, &dependents);
        let detached = self
            .detacher()
            .detach_all(&dependents.detachments, &mut judge, &mut concurrency_limit, sink)
            .await;
        let mut attached = dependents.without(&detached);
        let dependents_first = self.dependents_first();
        let notes = WaitNotes::default();
        let webhooks = StartingWebhooks::new(self.writing, self.interrupt, &notes);
        for wave in self.plan.prune_waves() {
            let members = wave.iter().filter(|live| !holds_parent_of(self.set, live));
            let held = Box::pin(dependents_first.hold(members.collect(), &left, sink)).await;
            failed += held.waiting.len();
            held.report(&mut left, sink);
            if held.outdates_dependents(self.interrupt) {
                match self.dependents(&nothing).await {
                    Ok(now) => attached = now,
                    Err(unread) => {
                        report_unread(&unread, "nothing more was deleted", sink);
                        failed += held.free.len();
                        break;
                    }
                }
                judge.replace_dependents(&attached);
            }
            let mut outcome_event = |news: WriteEvent<ObjectOutcome>| {
                sink(news.counted(|outcome| {
                    failed += usize::from(outcome.action == Action::Failed);
                    if outcome.action == Action::Deleted {
                        deleted.extend(outcome.subject.uid.clone());
                    }
                }));
            };
            let (free, deleting) = (held.free.into_iter(), self.deleting(&judge, &webhooks));
            deleting
                .delete_wave(
                    free,
                    &mut left,
                    self.interrupt,
                    &mut concurrency_limit,
                    &mut outcome_event,
                )
                .await;
        }
        MembersDeleted {
            ending: self.ending(failed, sink),
            left,
            deleted,
            attached,
        }
    }

    fn detacher(&self) -> Detacher<'_> {
        Detacher {
            server: self.server,
            writing: self.writing,
            interrupt: self.interrupt,
        }
    }

    pub(super) fn dependents_first(&self) -> DependentsFirst<'_> {
        DependentsFirst {
            edges: &self.plan.edges,
            gate: self.dependencies,
            interrupt: self.interrupt,
            dry_run: self.writing.dry_run,
        }
    }

    /// Announces what is about to be deleted, and what is kept.
    fn announce(&self, sink: &mut Sink<'_>) {
        sink(Event::Phase {
            phase: Phase::Deleting,
            total: self.plan.deletions(),
        });
        sink(Event::Planned(self.planned()));
        if self.parent.is_some() {
            sink(self.parent_writing().announcement());
        }
    }

    fn report_skips(&self, sink: &mut Sink<'_>) {
        for skip in &self.plan.skips {
            sink(outcome_event(
                &skip.live,
                Action::Skipped,
                skip.reason.to_string(),
            ));
        }
    }

    /// Returns how the deletion of the members ended, where so many could not be deleted, and warns of those.
    fn ending(&self, failed: usize, sink: &mut Sink<'_>) -> Ending {
        if self.interrupt.is_requested() {
            Ending::Interrupted
        } else if failed > 0 {
            // The parent may have changed since it was read.
            let failures = counted(failed, "object");
            let parent = self
                .parent
                .map_or("", |_| "; this run does not delete the set's parent");
            sink(Event::Warning(format!(
                "{failures} not deleted{parent}; once the errors are solved, run the same command again"
            )));
            Ending::Incomplete
        } else {
            Ending::Done
        }
    }

    /// Returns the current dependents of the deletions among the parent and kept objects. A dry run
    /// takes them from the plan.
    async fn dependents(&self, nothing: &Desired) -> Result<Dependents, Unread> {
        if self.writing.dry_run != DryRun::None || self.plan.deletions() == 0 {
            return Ok(self.plan.dependents.clone());
        }
        let look = DependentsLook {
            server: self.server,
            set: self.set,
            parent: self.parent.map(|_| self.parent_resource),
            plan: self.plan,
            desired: nothing,
            contents: self.contents,
            places: self.places,
            concurrency: self.writing.concurrency,
        };
        Box::pin(look.dependents()).await
    }

    /// The UIDs of containers that are kept because an object in them has a keep annotation.
    pub(super) fn containers_of_kept(&self) -> BTreeSet<String> {
        let skips = self.plan.skips.iter();
        let skips = skips.filter(|skip| matches!(skip.reason, SkipReason::HoldsAnnotated { .. }));
        skips.map(|skip| skip.live.uid.clone()).collect()
    }

    pub(super) fn parent_writing(&self) -> ParentWriting<'_> {
        ParentWriting {
            server: self.server,
            set: self.set,
            resource: self.parent_resource,
            accepted: &[],
            manifest: None,
            writing: self.writing,
            interrupt: self.interrupt,
        }
    }

    /// Returns the outcome of each member and of the parent if the run ends before it.
    fn planned(&self) -> Vec<ObjectOutcome> {
        let skipped = self.plan.skips.iter().map(|skip| ObjectOutcome {
            reason: skip.reason.to_string(),
            ..untouched(&skip.live)
        });
        let members = self.plan.all_prunes();
        let (homes, members): (Vec<&Live>, Vec<&Live>) =
            members.partition(|live| holds_parent_of(self.set, live));
        let parent = self.parent.map(|parent| untouched(&parent.live));
        let deleted = members.into_iter().map(untouched);
        let homes = homes.into_iter().map(untouched);
        skipped.chain(deleted).chain(parent).chain(homes).collect()
    }

    /// Returns the members that are deleted or being deleted before the parent.
    pub fn going(&self) -> impl Iterator<Item = &Live> {
        let is_terminating = |skip: &&Skip| matches!(skip.reason, SkipReason::Terminating { .. });
        let terminating = self.plan.skips.iter().filter(is_terminating);
        let deleted = self.plan.all_prunes();
        deleted
            .filter(|live| !holds_parent_of(self.set, live))
            .chain(terminating.map(|skip| &skip.live))
    }

    /// Returns the parent's containers that are deleted.
    pub fn homes(&self) -> impl Iterator<Item = &Live> {
        let prunes = self.plan.all_prunes();
        prunes.filter(|live| holds_parent_of(self.set, live))
    }

    /// Creates the judge of the deletions. `nothing` are the desired objects of a deleted set.
    pub(super) fn judge<'j>(&'j self, nothing: &'j Desired, attached: &Dependents) -> Judge<'j> {
        let uids = HashSet::new();
        let mut judge = Judge::of_plan(self.set, self.policy, nothing, self.contents, self.plan, uids);
        judge.replace_dependents(attached);
        judge
    }

    pub(super) fn deleting<'j>(
        &'j self,
        judge: &'j Judge<'j>,
        webhooks: &'j StartingWebhooks<'j>,
    ) -> Deleting<'j> {
        Deleting {
            server: self.server,
            judge,
            writing: self.writing,
            done: Action::Deleted,
            purpose: Purpose::Removal,
            preconditions: &self.plan.preconditions,
            webhooks,
        }
    }
}
