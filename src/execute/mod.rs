//! Executes a plan in this order: the parent's record is widened, members are applied, objects are pruned, the record
//! is narrowed. So an interruption at any point leaves a record that covers all members.
//!
//! All writes of the program are made here. `plan` decides what is written; outcomes are reported as events.

mod adopt_move_disband;
mod applies;
mod begin_and_end_on_parent;
mod deletion;
mod dry_run;
mod former_parent;
mod freshness;
mod history;
mod kinds;
mod label_in_answer;
mod members;
mod parent_record;
mod polling;
mod report_unchanged_and_skipped;
mod reread;
mod schedule;
mod skipped_applies;
mod starting_webhooks;
mod unusable_versions;
mod wait_notes;
mod wait_until_gone_before_recreation;
mod waits;

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;
use std::sync::Arc;

pub use adopt_move_disband::{JoinedSet, LeftSet, MembershipExecution, Obstacles, report_unwritten_objects};
pub use deletion::set::field_managers_not_keeping_parent;
pub use dry_run::{ParentPrediction, Prediction, PreviewAfterFailure};
pub use former_parent::ParentAim;
pub use former_parent::list_what_is_left::TerminatingObjects;
use freshness::Freshness;
pub use kinds::ChangedKinds;
pub use parent_record::RunOnParent;
pub use parent_record::begin::refusal_of_run_under_way;
pub use parent_record::requests::{ParentWriteError, ParentWriting, Written};
pub use schedule::concurrency_limit::estimate_concurrent_writes_at_start;
use schedule::drive::Driver;
pub use wait_notes::WaitNotes;
pub use waits::{RunWaits, WaitSettings, WrittenObjects};

use crate::cluster::apiserver::ApiServer;
use crate::event::{Ending, Event, Interrupt, ObjectOutcome, Phase, Sink};
use crate::manifest::desired::Desired;
use crate::model::identity::ObjectKey;
use crate::model::resource::Resource;
use crate::model::set::{ParentObject, Set};
use crate::model::write_settings::{DryRun, WriteSettings};
use crate::plan::{Apply, Plan, Policy, Refusal};
use crate::read::ClusterState;

/// Context for executing a plan.
#[derive(Clone, Copy)]
pub struct Execution<'a> {
    pub server: &'a ApiServer,
    pub set: &'a Set,
    pub parent_resource: &'a Arc<Resource>,
    /// The state of the set when it was planned.
    pub state: &'a ClusterState,
    /// The refusals to take over the parent that the user has lifted; empty if the parent need not be taken over.
    pub accepted_take_over: &'a [Refusal],
    /// The desired objects.
    pub desired: &'a Desired,
    pub plan: &'a Plan,
    /// The policy of the plan. It also judges objects that have changed since the plan was made.
    pub policy: &'a Policy,
    pub writing: &'a WriteSettings,
    /// The interrupt of the run.
    pub interrupt: &'a Interrupt,
    /// The waits between the writes and after them; `None` if the run does not wait.
    pub waits: Option<&'a RunWaits<'a>>,
    /// The waits for objects that others depend on; `None` in a run that writes nothing.
    pub dependencies: Option<WaitSettings<'a>>,
    /// The notes about what writes wait for.
    pub wait_notes: &'a WaitNotes,
    /// The kinds whose CRDs this run has changed so far.
    pub changed_kinds: &'a ChangedKinds,
}

/// The results of the applies of a run so far.
#[derive(Debug, Default)]
pub struct Applied {
    /// The UIDs of the members that were applied or are unchanged.
    uids: HashSet<String>,
    /// The number of objects that failed.
    failed: usize,
    /// The objects from which owner references have to be removed, according to the plan.
    to_detach: BTreeSet<ObjectKey>,
    /// Unchanged members that are not reported yet, because they are in `to_detach`.
    held: Vec<ObjectOutcome>,
    /// Objects that others depend on and that are known to be Current.
    current: BTreeSet<ObjectKey>,
}

/// The state of a run between its steps.
pub struct RunState<'a> {
    applied: Applied,
    /// The number of objects that the plan prunes and the run keeps. If there are any, the record is not narrowed.
    kept: usize,
    driver: Driver<'a>,
}

impl<'a> RunState<'a> {
    fn new(execution: &Execution<'a>) -> Self {
        let detachments = execution.plan.dependents.detachments.iter();
        Self {
            applied: Applied {
                to_detach: detachments
                    .map(|detachment| detachment.dependent.key.clone())
                    .collect(),
                current: execution.plan.edges.known.current.clone(),
                ..Applied::default()
            },
            kept: 0,
            driver: execution.driver(),
        }
    }
}

impl<'a> Execution<'a> {
    /// Returns the parent as it was read for the plan.
    fn parent(&self) -> Option<&'a ParentObject> {
        self.state.parent_object()
    }

    /// Returns what the writes of the parent need.
    fn parent_writing(&self) -> ParentWriting<'a> {
        ParentWriting {
            server: self.server,
            set: self.set,
            resource: self.parent_resource,
            accepted_take_over: self.accepted_take_over,
            manifest: self.desired.parent.as_ref(),
            writing: self.writing,
            interrupt: self.interrupt,
        }
    }

    /// Creates a driver with the settings of this run.
    fn driver(&self) -> Driver<'a> {
        let mut driver = Driver::new(
            self.server,
            self.interrupt,
            self.wait_notes,
            self.writing.webhook_patience.at_end,
            self.writing.concurrency,
        );
        driver.freshness = Rc::new(Freshness::new(self.state.read_at));
        driver
    }
}

impl Execution<'_> {
    /// Executes the plan.
    ///
    /// # Errors
    ///
    /// The parent could not be written before the first member. Failures of single objects are events, and make the run
    /// `Incomplete`.
    ///
    /// # Panics
    ///
    /// If the plan has refusals.
    pub async fn run(&self, sink: &mut Sink<'_>) -> Result<Ending, ParentWriteError> {
        assert!(
            self.plan.refusals.is_empty(),
            "a plan with refusals must not be carried out"
        );
        sink(Event::Planned(self.outcomes_if_ended_early()));
        sink(self.parent_writing().announcement());
        if self.writing.dry_run == DryRun::None {
            self.write(sink).await
        } else {
            Ok(self.dry_run(sink).await)
        }
    }

    /// Writes the parent, the members, and the parent again.
    async fn write(&self, sink: &mut Sink<'_>) -> Result<Ending, ParentWriteError> {
        let mut run = RunOnParent::new(self.parent_writing(), &self.plan.record_during, None);
        sink(Event::Phase {
            phase: Phase::Applying,
            total: self.plan.count_applies(),
        });
        let mut run_state = RunState::new(self);
        if self.interrupt.is_requested() {
            return Ok(Ending::Interrupted);
        }
        if self.parent().is_none() {
            // The parent is created after the members that it needs, such as its namespace.
            let writing = async |sink: &mut Sink<'_>| self.write_prerequisites(&mut run_state, sink).await;
            if let Some(ending) = run.count_changes_while_renewing(sink, writing).await {
                return Ok(ending);
            }
        }
        match self
            .begin_on_parent_if_needed(&mut run.changes.counting_sink(sink))
            .await?
        {
            Ok(known) => run.known = Some(known),
            Err(ending) => return Ok(ending),
        }
        if self.interrupt.is_requested() {
            return Ok(self
                .end_on_parent(&mut run, Ending::Interrupted, None, sink)
                .await);
        }
        if let Some(ending) = self.apply_parent_manifest(&mut run, &mut run_state, sink).await {
            return Ok(self.end_on_parent(&mut run, ending, None, sink).await);
        }
        let working = run.count_changes_while_renewing(sink, async |sink| {
            let ending = self.apply_and_prune_members(&mut run_state, sink).await;
            // Decided before the wait, so that the record is narrowed even if an object does not become Current.
            let is_all_done = ending == Ending::Done && run_state.kept == 0;
            let ending = match self.waits {
                Some(waits) if ending == Ending::Done => waits.wait_at_end_unless_waited_before(sink).await,
                _ => ending,
            };
            (ending, is_all_done)
        });
        let (ending, is_all_done) = working.await;
        let settled = is_all_done.then_some(&run_state.applied.uids);
        Ok(self.end_on_parent(&mut run, ending, settled, sink).await)
    }

    /// Applies the objects that have to exist before the parent, such as its namespace. Returns how the run ends, if it
    /// cannot continue.
    async fn write_prerequisites(&self, run_state: &mut RunState<'_>, sink: &mut Sink<'_>) -> Option<Ending> {
        let patience = self.writing.webhook_patience;
        run_state.driver.set_webhook_patience(Some(patience.in_step));
        self.apply_steps(&self.plan.prerequisites, run_state, sink).await;
        run_state.driver.set_webhook_patience(patience.at_end);
        let stopped = self.ending_if_it_must_stop(run_state);
        if stopped.is_none() {
            self.report_unchanged(&mut run_state.applied, sink);
        }
        stopped
    }

    /// Applies the members, and prunes.
    async fn apply_and_prune_members(&self, run_state: &mut RunState<'_>, sink: &mut Sink<'_>) -> Ending {
        let mut prerequisites: &[Vec<Apply>] = &[];
        if self.parent().is_some() {
            self.report_unchanged(&mut run_state.applied, sink);
            prerequisites = &self.plan.prerequisites;
        }
        let steps = prerequisites.iter().chain(&self.plan.waves);
        self.apply_steps(steps, run_state, sink).await;
        self.report_kept_objects(sink);
        self.prune_unless_stopped(run_state, sink).await
    }

    /// Returns how the run ends, if it must stop now: the user has stopped it, or an object has failed.
    fn ending_if_it_must_stop(&self, run_state: &RunState<'_>) -> Option<Ending> {
        if self.interrupt.is_requested() {
            Some(Ending::Interrupted)
        } else {
            (run_state.applied.failed > 0).then_some(Ending::Incomplete)
        }
    }

    /// Returns the key of the object that this apply sends.
    fn key_of(&self, apply: &Apply) -> &ObjectKey {
        &self.desired.members[apply.index].key
    }
}
