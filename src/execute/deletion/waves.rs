//! Deletes waves of objects one after the other: the prunes of a run, or the members of a set.
//!
//! Before the first delete, owner references are read again, because the garbage collector deletes
//! by them (`reread_dependents`), and removed from objects that stay.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crate::event::{Action, Event, NotDone, ObjectOutcome};
use crate::execute::concurrent_writes::ConcurrentWrites;
use crate::execute::concurrent_writes::WriteEvent;
use crate::execute::deletion::delete_wave::{Deleting, ObjectsKeptInsteadOfDeleted, Purpose, untouched};
use crate::execute::deletion::reread_dependents::Unread;
use crate::execute::starting_webhooks::StartingWebhooks;
use crate::execute::{Execution, Sink};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::plan::{Dependents, Detachment, Judge};

/// Objects to delete, wave by wave.
pub(crate) struct Waves<'l> {
    pub(crate) deletes: Vec<Vec<&'l Live>>,
    /// Objects that stay lose their owner references to these first.
    pub(crate) owners: BTreeSet<&'l ObjectKey>,
    /// The action reported for a deleted object.
    pub(crate) action: Action,
    /// The resource of the parent, if there is one.
    pub(crate) parent: Option<&'l Arc<Resource>>,
}

/// Outcome of the objects that were to be deleted.
#[derive(Debug, Default)]
pub struct Deleted {
    pub(crate) failed: usize,
    /// Objects that changed since the plan was made, and are kept: the record is not narrowed.
    pub(crate) kept: usize,
    pub(crate) left: ObjectsKeptInsteadOfDeleted,
    /// UIDs of those that were deleted.
    pub(crate) uids: BTreeSet<String>,
    /// Objects that stay and are owned by objects still to be deleted.
    pub(crate) attached: Dependents,
}

/// No further delete begins; the reason has been reported.
pub(crate) struct Stopped;

impl Deleted {
    /// Reports that owner references could not be read, so that this many objects are not deleted.
    fn stop(&mut self, unread: &Unread, objects: usize, action: Action, sink: &mut Sink<'_>) -> Stopped {
        self.failed += objects;
        let more = if self.uids.is_empty() { "" } else { " more" };
        sink(Event::failure(format!("{unread}; nothing{more} was {action}")));
        sink(NotDone::all(format!(
            "not {action}: owner references cannot be read"
        )));
        Stopped
    }
}

impl Execution<'_> {
    /// Deletes these waves. `desired_uids` are those of the objects that the run has applied. `on_detached` learns
    /// which objects have lost owner references.
    pub(super) async fn delete_waves(
        &self,
        waves: &Waves<'_>,
        desired_uids: HashSet<String>,
        deleted: &mut Deleted,
        writes: &mut ConcurrentWrites<'_>,
        on_detached: impl FnOnce(&BTreeSet<ObjectKey>, &mut Sink<'_>),
        sink: &mut Sink<'_>,
    ) -> Result<(), Stopped> {
        let dependents = match self.current_dependents(waves).await {
            Ok(dependents) => dependents,
            Err(unread) => {
                on_detached(&BTreeSet::new(), sink);
                let objects = waves.deletes.iter().map(Vec::len).sum();
                return Err(deleted.stop(&unread, objects, waves.action, sink));
            }
        };
        let mut judge = self.judge(&dependents, desired_uids);
        let detached = self
            .detach_all(
                &self.approved(&dependents, &waves.owners),
                &mut judge,
                writes,
                sink,
            )
            .await;
        on_detached(&detached, sink);
        deleted.attached = dependents.without(&detached);
        let webhooks = StartingWebhooks::new(self.writing, self.interrupt, self.wait_notes);
        for wave in &waves.deletes {
            let unwanted = report_desired(wave, &judge, &mut deleted.left, sink);
            let held = Box::pin(self.hold_for_dependents(unwanted, &deleted.left, sink)).await;
            deleted.kept += held.kept.len();
            deleted.failed += held.waiting.len();
            held.report(&mut deleted.left, sink);
            if held.outdates_dependents(self.interrupt) {
                let objects = held.free.len();
                deleted.attached = self
                    .current_dependents(waves)
                    .await
                    .map_err(|unread| deleted.stop(&unread, objects, waves.action, sink))?;
                judge.replace_dependents(&deleted.attached);
            }
            let Deleted {
                failed,
                kept,
                left,
                uids,
                ..
            } = deleted;
            let mut on_event = |news: WriteEvent<ObjectOutcome>| {
                sink(news.counted(|outcome| {
                    *failed += usize::from(outcome.action == Action::Failed);
                    *kept += usize::from(outcome.action == Action::Skipped);
                    if outcome.action == waves.action {
                        uids.extend(outcome.subject.uid.clone());
                    }
                }));
            };
            let deleting = self.deleting(waves.action, &judge, &webhooks);
            let free = held.free.into_iter();
            deleting.delete_wave(free, left, writes, &mut on_event).await;
        }
        Ok(())
    }

    async fn current_dependents(&self, waves: &Waves<'_>) -> Result<Dependents, Unread> {
        if self.plan.deletions() == 0 {
            return Ok(self.plan.dependents.clone());
        }
        Box::pin(self.reread_dependents(waves.parent)).await
    }

    /// Creates the judge of deletions, of whose objects these are dependents.
    pub(crate) fn judge(&self, dependents: &Dependents, desired_uids: HashSet<String>) -> Judge<'_> {
        let mut judge = Judge::of_plan(
            self.set,
            self.policy,
            self.desired,
            self.contents,
            self.plan,
            desired_uids,
        );
        judge.replace_dependents(dependents);
        judge
    }

    pub(super) fn deleting<'j>(
        &'j self,
        done: Action,
        judge: &'j Judge<'j>,
        webhooks: &'j StartingWebhooks<'j>,
    ) -> Deleting<'j> {
        Deleting {
            server: self.server,
            judge,
            writing: self.writing,
            done,
            purpose: Purpose::Removal,
            preconditions: &self.plan.preconditions,
            webhooks,
        }
    }

    /// The detachments that the deletes of these owners need. Nothing is detached that a bound plan does not name.
    fn approved(&self, dependents: &Dependents, owners: &BTreeSet<&ObjectKey>) -> Vec<Detachment> {
        let is_needed = |detachment: &&Detachment| detachment.pruned.iter().any(|key| owners.contains(key));
        let is_approved = |detachment: &&Detachment| {
            let is_bound = self.plan.preconditions.require_unchanged();
            !is_bound || self.plan.dependents.includes(detachment)
        };
        let detachments = dependents.detachments.iter().filter(is_needed);
        detachments.filter(is_approved).cloned().collect()
    }
}

/// Separates from a wave the objects that the manifests hold under another group, and reports these: what
/// was just applied under one name is not deleted under the other, nor is what it depends on.
fn report_desired<'l>(
    wave: &[&'l Live],
    judge: &Judge<'_>,
    left: &mut ObjectsKeptInsteadOfDeleted,
    sink: &mut Sink<'_>,
) -> Vec<&'l Live> {
    let (desired, unwanted): (Vec<&Live>, Vec<&Live>) = wave.iter().partition(|live| judge.is_desired(live));
    for live in desired {
        let outcome = ObjectOutcome {
            reason: "applied under another API group".to_owned(),
            ..untouched(live)
        };
        left.note(&outcome);
        sink(Event::Object(outcome));
    }
    unwanted
}
