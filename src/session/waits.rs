//! The waits of `apply` and `delete`: between their writes, where the plan asks for that, or after them; and the objects
//! that they wait for, from the events of the run.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::LocalBoxFuture;

use super::prepare::Prepared;
use crate::cluster::apiserver::ApiServer;
use crate::compare::status::{StatusRules, Written};
use crate::event::{Action, Ending, Event, Remainder, WaitStatus};
use crate::execute::{Dependency, EndOfWait, Interrupt, Membership, Sink, WaitsForDependencies, WaitsOfRun};
use crate::manifest::desired::Desired;
use crate::model::applyset::ApplySetId;
use crate::model::identity::ObjectKey;
use crate::model::live::{Live, Presence};
use crate::model::resource::Resource;
use crate::plan::Plan;
use crate::wait::{AfterFailure, Deadline, Goal, Lookup, Outcome, Patience, RELIST, Target, Waiting};

/// The progress that a failed wait reports before the prunes of a run, or the last of them, have begun.
const NOT_ALL_IS_PRUNED: &str =
    "everything was applied, but not everything that was removed from the manifests was pruned";

/// Waits for what a run has done so far.
pub struct RunWait<'a> {
    prepared: &'a Prepared,
    rules: &'a StatusRules,
    interrupt: &'a Interrupt,
    patience: Patience,
    done: &'a RefCell<Done>,
    is_over: Cell<bool>,
}

impl<'a> RunWait<'a> {
    /// Creates the waits of one run. Each of them may take as long as `patience` says. The caller notes
    /// events in `done`.
    pub fn new(
        prepared: &'a Prepared,
        rules: &'a StatusRules,
        interrupt: &'a Interrupt,
        patience: Patience,
        done: &'a RefCell<Done>,
    ) -> Self {
        Self {
            prepared,
            rules,
            interrupt,
            patience,
            done,
            is_over: Cell::new(false),
        }
    }

    fn members(&self) -> Vec<Target> {
        members(&self.prepared.desired, &self.done.borrow())
    }

    fn objects_being_deleted(&self) -> Vec<Target> {
        objects_being_deleted(&self.prepared.plan, &self.done.borrow())
    }

    async fn wait(&self, targets: Vec<Target>, done_before: &str, sink: &mut Sink<'_>) -> Outcome {
        let waiting = Waiting {
            server: &self.prepared.cluster.server,
            id: &self.prepared.named.set.id,
            rules: self.rules,
            deadline: Deadline::new(self.patience),
            interrupt: self.interrupt,
            concurrency: self.prepared.writing.concurrency,
            after_failure: AfterFailure::Stop,
            relist: RELIST,
            done_before,
        };
        waiting.run(targets, &mut |event: Event| sink(event)).await
    }
}

impl WaitsOfRun for RunWait<'_> {
    fn ready<'g>(&'g self, sink: &'g mut Sink<'_>) -> LocalBoxFuture<'g, EndOfWait> {
        self.is_over.set(true);
        Box::pin(async { end_of_wait(self.wait(self.members(), NOT_ALL_IS_PRUNED, sink).await) })
    }

    fn all<'g>(&'g self, sink: &'g mut Sink<'_>) -> LocalBoxFuture<'g, EndOfWait> {
        Box::pin(async {
            if self.is_over.get() {
                return EndOfWait::Reached;
            }
            let targets = [self.members(), self.objects_being_deleted()].concat();
            end_of_wait(self.wait(targets, "everything was written", sink).await)
        })
    }

    fn gone<'g>(&'g self, sink: &'g mut Sink<'_>) -> LocalBoxFuture<'g, EndOfWait> {
        Box::pin(async {
            let going = self.objects_being_deleted();
            if going.is_empty() {
                return EndOfWait::Reached;
            }
            let mut last_prunes = self.prepared.plan.last_prunes.iter().flatten();
            let done_before = if last_prunes.any(|live| !self.done.borrow().is_going(live)) {
                NOT_ALL_IS_PRUNED
            } else {
                "everything was applied and pruned"
            };
            end_of_wait(self.wait(going, done_before, sink).await)
        })
    }
}

/// Waits for objects that others depend on, also in a run that does not wait otherwise.
pub struct DependencyWait<'a> {
    pub server: &'a ApiServer,
    pub id: &'a ApplySetId,
    /// The rules by which objects are judged.
    pub rules: &'a StatusRules,
    /// The interrupt of the run.
    pub interrupt: &'a Interrupt,
    /// Requests under way at once.
    pub concurrency: usize,
    /// The time limit of each wait.
    pub patience: Patience,
}

impl DependencyWait<'_> {
    /// Waits, and returns the objects that were waited for in vain.
    async fn wait_for(&self, targets: Vec<Target>, sink: &mut Sink<'_>) -> BTreeSet<ObjectKey> {
        let waiting = Waiting {
            server: self.server,
            id: self.id,
            rules: self.rules,
            deadline: Deadline::new(self.patience),
            interrupt: self.interrupt,
            concurrency: self.concurrency,
            after_failure: AfterFailure::WaitForTheOthers,
            relist: RELIST,
            done_before: "other objects depend on them, and were not written",
        };
        let mut missed = BTreeSet::new();
        let mut note = |event: Event| {
            if let Event::Awaited(awaited) = &event
                && matches!(awaited.wait_status, WaitStatus::Missed | WaitStatus::Unseen)
            {
                missed.insert(awaited.subject.key());
            }
            sink(event);
        };
        waiting.run(targets, &mut note).await;
        missed
    }
}

impl WaitsForDependencies for DependencyWait<'_> {
    fn is_current_once_written(&self, resource: &Resource, written: Written) -> bool {
        let group_kind = resource.group_kind();
        self.rules
            .are_current_once_written(&group_kind, resource.status, written)
    }

    fn current<'g>(
        &'g self,
        objects: Vec<Dependency>,
        sink: &'g mut Sink<'_>,
    ) -> LocalBoxFuture<'g, BTreeSet<ObjectKey>> {
        let targets = objects.into_iter().map(|dependency| Target {
            key: dependency.key,
            resource: dependency.resource,
            uid: None,
            goal: Goal::Ready,
            lookup: match dependency.membership {
                Membership::Member => Lookup::Label,
                Membership::Outside => Lookup::Name,
            },
        });
        Box::pin(self.wait_for(targets.collect(), sink))
    }

    fn gone<'g>(
        &'g self,
        objects: Vec<&'g Live>,
        sink: &'g mut Sink<'_>,
    ) -> LocalBoxFuture<'g, BTreeSet<ObjectKey>> {
        let targets = objects.into_iter().map(|live| gone(live, Lookup::LabelThenName));
        Box::pin(self.wait_for(targets.collect(), sink))
    }
}

fn end_of_wait(outcome: Outcome) -> EndOfWait {
    match outcome {
        Outcome::Arrived => EndOfWait::Reached,
        Outcome::Missed => EndOfWait::NotReached,
        Outcome::Interrupted => EndOfWait::Interrupted,
    }
}

/// The objects that a run has deleted or applied.
#[derive(Default)]
pub struct Done {
    /// UIDs of deleted and pruned objects.
    deleted: BTreeSet<String>,
    /// UIDs of those that were gone at once.
    gone: BTreeSet<String>,
    /// UIDs of applied and unchanged objects.
    applied: BTreeMap<ObjectKey, String>,
}

impl Done {
    /// Records an event.
    pub fn note(&mut self, event: &Event) {
        let Event::Object(outcome) = event else { return };
        let Some(uid) = outcome.subject.uid.clone() else {
            return;
        };
        match outcome.action {
            Action::Deleted | Action::Pruned => {
                if outcome.remainder == Remainder::Nothing {
                    self.gone.insert(uid.clone());
                }
                self.deleted.insert(uid);
            }
            Action::Created | Action::Configured | Action::Recreated | Action::Unchanged => {
                self.applied.insert(outcome.subject.key(), uid);
            }
            Action::Released | Action::Adopted | Action::Skipped | Action::Failed => {}
        }
    }

    /// Returns whether the object is being deleted, by this run or before it.
    pub fn is_going(&self, live: &Live) -> bool {
        live.presence == Presence::Terminating || self.deleted.contains(&live.uid)
    }

    /// Returns the target of an object that is to be gone. One that terminates may lose its label before.
    pub fn gone(&self, live: &Live) -> Target {
        let lookup = if self.gone.contains(&live.uid) {
            Lookup::Label
        } else {
            Lookup::LabelThenName
        };
        gone(live, lookup)
    }

    /// Returns whether this run has deleted the object.
    pub fn has_deleted(&self, target: &Target) -> bool {
        target.uid.as_ref().is_some_and(|uid| self.deleted.contains(uid))
    }
}

/// Lists the members that `apply` waits for: all of the manifests, whether they changed or not.
pub fn members(desired: &Desired, done: &Done) -> Vec<Target> {
    let members = desired.members.iter().map(|member| Target {
        key: member.key.clone(),
        resource: member.resource.clone(),
        uid: done.applied.get(&member.key).cloned(),
        goal: Goal::Ready,
        lookup: Lookup::Label,
    });
    members.collect()
}

/// Lists the objects that `apply` waits for to be gone: what was pruned by this run or is still going
/// since an earlier one.
pub fn objects_being_deleted(plan: &Plan, done: &Done) -> Vec<Target> {
    let skipped = plan.skips.iter().map(|skip| &skip.live);
    let unwanted = plan.all_prunes().chain(skipped);
    let going = unwanted.filter(|live| done.is_going(live));
    going.map(|live| done.gone(live)).collect()
}

/// Returns the target of an object that is to be deleted.
pub fn gone(live: &Live, lookup: Lookup) -> Target {
    Target {
        key: live.key.clone(),
        resource: live.resource.clone(),
        uid: Some(live.uid.clone()),
        goal: Goal::Gone,
        lookup,
    }
}

/// Returns the ending of a run from that of its writes and the outcome of its wait.
pub fn ending(outcome: Outcome, ending: Ending) -> Ending {
    match outcome {
        Outcome::Arrived => ending,
        Outcome::Missed => Ending::Incomplete,
        Outcome::Interrupted => Ending::Interrupted,
    }
}
