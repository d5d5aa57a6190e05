//! The waits of `apply` and `delete`: for objects that others depend on, and with `--wait` for everything that the run
//! has written or deleted. The events of a run show which objects to wait for.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use crate::cluster::apiserver::ApiServer;
use crate::compare::status::StatusRules;
use crate::event::{Action, Ending, Event, Interrupt, Sink, StateAfterDelete, WaitStatus};
use crate::manifest::desired::Desired;
use crate::model::applyset::ApplySetId;
use crate::model::identity::ObjectKey;
use crate::model::live::{Live, Presence};
use crate::plan::Plan;
use crate::wait::{AfterFailure, Deadline, Goal, Lookup, Patience, Target, Waiting};

/// The words for what was done, in the message about a stopped wait, if not all prunes had begun.
const APPLIED_BUT_NOT_ALL_PRUNED: &str =
    "everything was applied, but not everything that was removed from the manifests was pruned";

/// The settings of the waits of a run.
#[derive(Clone, Copy)]
pub struct WaitSettings<'a> {
    pub server: &'a ApiServer,
    pub id: &'a ApplySetId,
    /// The rules that compute the status of objects.
    pub rules: &'a StatusRules,
    pub interrupt: &'a Interrupt,
    /// How many requests run at once.
    pub concurrency: usize,
    /// The restarts of a container after which its workload counts as failed; `None` if Pods never make it fail.
    pub failures: Option<NonZeroU32>,
    /// The time limit of each wait.
    pub patience: Patience,
}

impl<'a> WaitSettings<'a> {
    /// Returns a wait that begins now. `done_before` describes what the run has written, for the warning if the user
    /// stops the wait.
    pub fn begin(&self, after_failure: AfterFailure, done_before: &'a str) -> Waiting<'a> {
        Waiting {
            server: self.server,
            id: self.id,
            rules: self.rules,
            deadline: Deadline::new(self.patience),
            interrupt: self.interrupt,
            concurrency: self.concurrency,
            after_failure,
            failures: self.failures,
            done_before,
        }
    }

    /// Waits for objects that others depend on, even in a run without `--wait`. Returns the objects that have not
    /// reached their goal in time, or cannot be read.
    pub(super) async fn wait_and_list_missed(
        &self,
        targets: Vec<Target>,
        done_before: &str,
        sink: &mut Sink<'_>,
    ) -> BTreeSet<ObjectKey> {
        let mut missed = BTreeSet::new();
        let mut note = |event: Event| {
            if let Event::Awaited(awaited) = &event
                && matches!(awaited.wait_status, WaitStatus::Missed | WaitStatus::Unseen)
            {
                missed.insert(awaited.subject.key());
            }
            sink(event);
        };
        let waiting = self.begin(AfterFailure::WaitForTheOthers, done_before);
        waiting.run(targets, &mut note).await;
        missed
    }
}

/// The waits of `apply --wait`, between its writes and at its end.
pub struct RunWaits<'a> {
    settings: WaitSettings<'a>,
    desired: &'a Desired,
    /// The plan as it was made first: what was pruned is not in a plan that was judged again.
    plan: &'a Plan,
    written: RefCell<WrittenObjects>,
    /// `true` if the run has waited between its writes, so that it does not wait again at its end.
    has_waited_for_members: Cell<bool>,
}

impl<'a> RunWaits<'a> {
    /// Creates the waits of one run. The caller passes every event of the run to [`RunWaits::take_note`].
    pub fn new(settings: WaitSettings<'a>, desired: &'a Desired, plan: &'a Plan) -> Self {
        Self {
            settings,
            desired,
            plan,
            written: RefCell::default(),
            has_waited_for_members: Cell::new(false),
        }
    }

    /// Notes what the run has written.
    pub fn take_note(&self, event: &Event) {
        self.written.borrow_mut().add_from_event(event);
    }

    /// Waits until all objects of the manifests are Current, whether the run has written them or not. Then the run does
    /// not wait for them again at its end.
    pub(super) async fn wait_until_all_members_are_current(&self, sink: &mut Sink<'_>) -> Ending {
        self.has_waited_for_members.set(true);
        let done_before = match self.plan.count_prunes() {
            0 => "everything was applied",
            _ => APPLIED_BUT_NOT_ALL_PRUNED,
        };
        self.wait(self.member_targets(), done_before, sink).await
    }

    /// Waits for everything after the last write, unless the run has waited between its writes.
    pub(super) async fn wait_at_end_unless_waited_before(&self, sink: &mut Sink<'_>) -> Ending {
        if self.has_waited_for_members.get() {
            return Ending::Done;
        }
        let targets = [self.member_targets(), self.deletion_targets()].concat();
        self.wait(targets, "everything was written", sink).await
    }

    /// Waits until everything that was pruned is gone. Members may have needed it, so they are looked at again.
    pub(super) async fn wait_until_pruned_are_gone(&self, sink: &mut Sink<'_>) -> Ending {
        let mut targets = self.deletion_targets();
        if targets.is_empty() {
            return Ending::Done;
        }
        targets.extend(self.member_targets());
        let mut last_prunes = self.plan.last_prunes.iter().flatten();
        let done_before = if last_prunes.any(|live| !self.written.borrow().is_being_deleted(live)) {
            APPLIED_BUT_NOT_ALL_PRUNED
        } else {
            "everything was applied and pruned"
        };
        self.wait(targets, done_before, sink).await
    }

    async fn wait(&self, targets: Vec<Target>, done_before: &str, sink: &mut Sink<'_>) -> Ending {
        let waiting = self.settings.begin(AfterFailure::Stop, done_before);
        waiting.run(targets, sink).await
    }

    /// Lists all objects of the manifests, whether they changed or not.
    fn member_targets(&self) -> Vec<Target> {
        let written = self.written.borrow();
        let members = self.desired.members.iter().map(|member| Target {
            key: member.key.clone(),
            resource: member.resource.clone(),
            uid: written.applied.get(&member.key).cloned(),
            goal: Goal::for_applied(member),
            lookup: Lookup::Label,
        });
        members.collect()
    }

    /// Lists the objects that this run has pruned, and those that were terminating before the run.
    fn deletion_targets(&self) -> Vec<Target> {
        let written = self.written.borrow();
        let skipped = self.plan.skips.iter().map(|skip| &skip.live);
        let unwanted = self.plan.all_prunes().chain(skipped);
        unwanted
            .filter(|live| written.is_being_deleted(live))
            .map(|live| written.deletion_target(live))
            .collect()
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
        Target::gone(live, lookup)
    }

    /// Returns whether this run has deleted the object of the target. A target without a UID was not deleted.
    pub fn has_deleted(&self, target: &Target) -> bool {
        target.uid.as_ref().is_some_and(|uid| self.deleted.contains(uid))
    }
}
