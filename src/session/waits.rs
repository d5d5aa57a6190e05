//! The waits of `apply` and `delete`: after their writes, or between them if the plan asks for that. The events of a
//! run show which objects to wait for. `view` waits for the members that it has read.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use futures_util::future::LocalBoxFuture;

use super::prepare::Prepared;
use crate::cluster::apiserver::ApiServer;
use crate::compare::status::{StatusRules, WriteOutcome};
use crate::event::{Action, Ending, Event, StateAfterDelete, WaitStatus};
use crate::execute::{Dependency, EndOfWait, Interrupt, Membership, Sink, WaitsForDependencies, WaitsOfRun};
use crate::manifest::desired::Desired;
use crate::model::applyset::ApplySetId;
use crate::model::identity::ObjectKey;
use crate::model::live::{Live, Presence};
use crate::model::resource::Resource;
use crate::plan::Plan;
use crate::wait::{AfterFailure, Deadline, Goal, Lookup, Outcome, Patience, Target, Waiting};

/// What the message about a wait that was stopped says was done, if not all prunes of the run had begun.
const APPLIED_BUT_NOT_ALL_PRUNED: &str =
    "everything was applied, but not everything that was removed from the manifests was pruned";

/// What ends a wait before its goal.
#[derive(Debug, Clone, Copy)]
pub struct WaitLimits {
    pub patience: Patience,
    /// The restarts of a container after which its workload counts as failed; `None` if Pods never make it fail.
    pub failures: Option<NonZeroU32>,
}

/// Waits for the objects that `apply` has written or deleted so far (`--wait`).
pub struct RunWait<'a> {
    prepared: &'a Prepared,
    rules: &'a StatusRules,
    interrupt: &'a Interrupt,
    limits: WaitLimits,
    written: &'a RefCell<WrittenObjects>,
    /// Whether the run has waited between its writes, so that it does not wait again at its end.
    has_waited_for_members: Cell<bool>,
}

impl<'a> RunWait<'a> {
    /// Creates the waits of one run. Each wait may take as long as `limits` says. The caller passes every event of
    /// the run to `written`.
    pub fn new(
        prepared: &'a Prepared,
        rules: &'a StatusRules,
        interrupt: &'a Interrupt,
        limits: WaitLimits,
        written: &'a RefCell<WrittenObjects>,
    ) -> Self {
        Self {
            prepared,
            rules,
            interrupt,
            limits,
            written,
            has_waited_for_members: Cell::new(false),
        }
    }

    fn member_targets(&self) -> Vec<Target> {
        list_member_targets(&self.prepared.desired, &self.written.borrow())
    }

    fn deletion_targets(&self) -> Vec<Target> {
        list_deletion_targets(&self.prepared.plan, &self.written.borrow())
    }

    async fn wait(&self, targets: Vec<Target>, done_before: &str, sink: &mut Sink<'_>) -> Outcome {
        let waiting = Waiting {
            server: &self.prepared.cluster.server,
            id: &self.prepared.named.set.id,
            rules: self.rules,
            deadline: Deadline::new(self.limits.patience),
            interrupt: self.interrupt,
            concurrency: self.prepared.writing.concurrency,
            after_failure: AfterFailure::Stop,
            failures: self.limits.failures,
            done_before,
        };
        waiting.run(targets, &mut |event: Event| sink(event)).await
    }
}

impl WaitsOfRun for RunWait<'_> {
    fn wait_until_ready<'g>(&'g self, sink: &'g mut Sink<'_>) -> LocalBoxFuture<'g, EndOfWait> {
        self.has_waited_for_members.set(true);
        Box::pin(async {
            let done_before = match self.prepared.plan.count_prunes() {
                0 => "everything was applied",
                _ => APPLIED_BUT_NOT_ALL_PRUNED,
            };
            outcome_to_end_of_wait(self.wait(self.member_targets(), done_before, sink).await)
        })
    }

    fn wait_at_end_unless_waited_before<'g>(
        &'g self,
        sink: &'g mut Sink<'_>,
    ) -> LocalBoxFuture<'g, EndOfWait> {
        Box::pin(async {
            if self.has_waited_for_members.get() {
                return EndOfWait::Reached;
            }
            let targets = [self.member_targets(), self.deletion_targets()].concat();
            outcome_to_end_of_wait(self.wait(targets, "everything was written", sink).await)
        })
    }

    fn wait_until_pruned_are_gone<'g>(&'g self, sink: &'g mut Sink<'_>) -> LocalBoxFuture<'g, EndOfWait> {
        Box::pin(async {
            let targets = self.deletion_targets();
            if targets.is_empty() {
                return EndOfWait::Reached;
            }
            let mut last_prunes = self.prepared.plan.last_prunes.iter().flatten();
            let done_before = if last_prunes.any(|live| !self.written.borrow().is_being_deleted(live)) {
                APPLIED_BUT_NOT_ALL_PRUNED
            } else {
                "everything was applied and pruned"
            };
            outcome_to_end_of_wait(self.wait(targets, done_before, sink).await)
        })
    }
}

/// Waits for objects that others depend on, even in a run without `--wait`.
pub struct DependencyWait<'a> {
    pub server: &'a ApiServer,
    pub id: &'a ApplySetId,
    /// The rules that compute the status of objects.
    pub rules: &'a StatusRules,
    pub interrupt: &'a Interrupt,
    /// How many requests run at once.
    pub concurrency: usize,
    /// The limits of each wait.
    pub limits: WaitLimits,
}

impl DependencyWait<'_> {
    /// Waits for the targets, and returns the objects that have not reached their goal in time, or cannot be read.
    async fn wait_and_list_missed(
        &self,
        targets: Vec<Target>,
        done_before: &str,
        sink: &mut Sink<'_>,
    ) -> BTreeSet<ObjectKey> {
        let waiting = Waiting {
            server: self.server,
            id: self.id,
            rules: self.rules,
            deadline: Deadline::new(self.limits.patience),
            interrupt: self.interrupt,
            concurrency: self.concurrency,
            after_failure: AfterFailure::WaitForTheOthers,
            failures: self.limits.failures,
            done_before,
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
    fn is_current_once_written(&self, resource: &Resource, outcome: WriteOutcome) -> bool {
        let group_kind = resource.group_kind();
        self.rules
            .are_current_once_written(&group_kind, resource.status, outcome)
    }

    fn wait_and_list_not_current<'g>(
        &'g self,
        objects: Vec<Dependency>,
        sink: &'g mut Sink<'_>,
    ) -> LocalBoxFuture<'g, BTreeSet<ObjectKey>> {
        let targets = objects.into_iter().map(|dependency| Target {
            key: dependency.key,
            resource: dependency.resource,
            uid: None,
            goal: Goal::Ready,
            // An object outside of the set does not have the set's label.
            lookup: match dependency.membership {
                Membership::Member => Lookup::Label,
                Membership::Outside => Lookup::Name,
            },
        });
        let done_before = "other objects depend on them, and were not written";
        Box::pin(self.wait_and_list_missed(targets.collect(), done_before, sink))
    }

    fn wait_and_list_not_gone<'g>(
        &'g self,
        objects: Vec<&'g Live>,
        sink: &'g mut Sink<'_>,
    ) -> LocalBoxFuture<'g, BTreeSet<ObjectKey>> {
        let targets = objects
            .into_iter()
            .map(|live| deletion_target(live, Lookup::LabelThenName));
        let done_before = "what they depend on was not deleted";
        Box::pin(self.wait_and_list_missed(targets.collect(), done_before, sink))
    }
}

fn outcome_to_end_of_wait(outcome: Outcome) -> EndOfWait {
    match outcome {
        Outcome::Arrived => EndOfWait::Reached,
        Outcome::Missed => EndOfWait::NotReached,
        Outcome::Interrupted => EndOfWait::Interrupted,
    }
}

/// The objects that a run has deleted or applied so far, from its events.
#[derive(Default)]
pub struct WrittenObjects {
    /// The UIDs of deleted and pruned objects.
    deleted: BTreeSet<String>,
    /// The UIDs of those deleted objects that did not exist any more once the delete request was answered.
    gone_at_once: BTreeSet<String>,
    /// The UIDs of applied and unchanged objects.
    applied: BTreeMap<ObjectKey, String>,
}

impl WrittenObjects {
    /// Records the object of an event, if the event is about one.
    pub fn add_from_event(&mut self, event: &Event) {
        let Event::Object(outcome) = event else { return };
        let Some(uid) = outcome.subject.uid.clone() else {
            return;
        };
        match outcome.action {
            Action::Deleted | Action::Pruned => {
                if outcome.remainder == StateAfterDelete::Nothing {
                    self.gone_at_once.insert(uid.clone());
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
    pub fn is_being_deleted(&self, live: &Live) -> bool {
        live.presence == Presence::Terminating || self.deleted.contains(&live.uid)
    }

    /// Returns the target of a wait until the object is gone. An object that terminates may lose the set's label before
    /// it is gone, so it is looked up by its name too, unless it was gone at once.
    pub fn deletion_target(&self, live: &Live) -> Target {
        let lookup = if self.gone_at_once.contains(&live.uid) {
            Lookup::Label
        } else {
            Lookup::LabelThenName
        };
        deletion_target(live, lookup)
    }

    /// Returns whether this run has deleted the object of the target. A target without a UID was not deleted.
    pub fn has_deleted(&self, target: &Target) -> bool {
        target.uid.as_ref().is_some_and(|uid| self.deleted.contains(uid))
    }
}

/// Lists the members that `apply` waits for to be Current: all objects of the manifests, whether they changed or not.
fn list_member_targets(desired: &Desired, written: &WrittenObjects) -> Vec<Target> {
    let members = desired.members.iter().map(|member| Target {
        key: member.key.clone(),
        resource: member.resource.clone(),
        uid: written.applied.get(&member.key).cloned(),
        goal: Goal::Ready,
        lookup: Lookup::Label,
    });
    members.collect()
}

/// Lists the objects that `apply` waits for to be gone: those that this run has pruned, and those that were terminating
/// before the run.
fn list_deletion_targets(plan: &Plan, written: &WrittenObjects) -> Vec<Target> {
    let skipped = plan.skips.iter().map(|skip| &skip.live);
    let unwanted = plan.all_prunes().chain(skipped);
    unwanted
        .filter(|live| written.is_being_deleted(live))
        .map(|live| written.deletion_target(live))
        .collect()
}

/// Lists the members of a set as targets of a wait that knows no manifests. A member that loses the set's label is no
/// longer waited for.
pub fn list_targets_without_manifests(members: &[Live]) -> Vec<Target> {
    let targets = members.iter().map(|live| Target {
        key: live.key.clone(),
        resource: live.resource.clone(),
        uid: Some(live.uid.clone()),
        goal: Goal::ReadyOrGone,
        lookup: Lookup::Label,
    });
    targets.collect()
}

/// Returns the target of a wait until the object is gone.
pub fn deletion_target(live: &Live, lookup: Lookup) -> Target {
    Target {
        key: live.key.clone(),
        resource: live.resource.clone(),
        uid: Some(live.uid.clone()),
        goal: Goal::Gone,
        lookup,
    }
}

/// Returns how the run ends, if its writes ended with `ending_of_writes` and its wait with `outcome`.
pub fn ending_after_wait(outcome: Outcome, ending_of_writes: Ending) -> Ending {
    match outcome {
        Outcome::Arrived => ending_of_writes,
        Outcome::Missed => Ending::Incomplete,
        Outcome::Interrupted => Ending::Interrupted,
    }
}
