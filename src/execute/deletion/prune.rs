//! Prunes objects that are no longer in the manifests, once everything is applied, or once it is ready.
//!
//! Before the first delete, owner references are read again, because the garbage collector deletes
//! by them (`dependents`).

use std::collections::{BTreeSet, HashMap};

use crate::event::{Action, Ending, Event, NotDone, ObjectOutcome, Phase};
use crate::execute::concurrent_writes::WriteEvent;
use crate::execute::deletion::delete_wave::{self, Deleting, ObjectsKeptInsteadOfDeleted, Purpose};
use crate::execute::deletion::remove_owner_references::Detacher;
use crate::execute::deletion::reread_dependents::DependentsLook;
use crate::execute::dependency_order::DependentsFirst;
use crate::execute::starting_webhooks::StartingWebhooks;
use crate::execute::{Applied, EndOfWait, Execution, RunState, Sink};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::prune_order::PruneOrder;
use crate::model::text::counted;
use crate::model::write_settings::DryRun;
use crate::plan::{Dependents, Detachment, Judge, Plan, PruneWhen};

/// Outcome of the objects that were to be pruned.
#[derive(Debug, Default)]
pub(crate) struct Pruned {
    pub(crate) failed: usize,
    /// Objects that changed since the plan was made, and are kept: the record is not narrowed.
    pub(crate) kept: usize,
    pub(super) left: ObjectsKeptInsteadOfDeleted,
}

/// Why no further prune is begun.
pub(super) struct Stopped;

impl Execution<'_> {
    /// Prunes as the plan says, and waits before and after it if it has to.
    ///
    /// A run that has waited once does not narrow the record before everything is gone.
    pub(crate) async fn prune_in_order(&self, run_state: &mut RunState, sink: &mut Sink<'_>) -> Ending {
        let mut pruned = Pruned::default();
        let mut has_waited = false;
        let mut plan_now: Option<Plan> = None;
        for order in [PruneOrder::Regular, PruneOrder::Last] {
            let now = self.with_plan(plan_now.as_ref());
            // What is pruned last comes only if all others have succeeded.
            if pruned.failed > 0 || self.interrupt.is_requested() {
                break;
            }
            if !has_waited && now.waits_before(order) {
                has_waited = true;
                let waited = now.until_ready(sink).await;
                if waited != EndOfWait::Reached {
                    return now.leave_unpruned(waited, order, run_state, sink);
                }
            }
            if order == PruneOrder::Last && !now.may_prune_last(&mut pruned, sink).await {
                break;
            }
            if has_waited {
                let judged = now.judge_prunes_again(order, &run_state.applied, &mut pruned, sink);
                match Box::pin(judged).await {
                    Ok(plan) => plan_now = Some(plan),
                    Err(Stopped) => break,
                }
            }
            let now = self.with_plan(plan_now.as_ref());
            let waves = now.waves_of(order);
            let stopped = now.prune_waves(waves, &mut pruned, run_state, sink).await;
            if stopped.is_err() {
                break;
            }
        }
        // They are reported with the first prune, and there may be none left.
        run_state.applied.report_held(&BTreeSet::new(), sink);
        run_state.kept = pruned.kept;
        if self.interrupt.is_requested() {
            return Ending::Interrupted;
        }
        if pruned.failed > 0 {
            return Ending::Incomplete;
        }
        let waited = match self.gate {
            Some(gate) if has_waited => gate.gone(sink).await,
            _ => EndOfWait::Reached,
        };
        match waited {
            EndOfWait::Reached => Ending::Done,
            EndOfWait::NotReached => Ending::Incomplete,
            EndOfWait::Interrupted => Ending::Interrupted,
        }
    }

    /// Predicts the prunes in a dry run: nothing is waited for.
    pub(crate) async fn predict_prunes(&self, run_state: &mut RunState, sink: &mut Sink<'_>) -> Pruned {
        let mut pruned = Pruned::default();
        for order in [PruneOrder::Regular, PruneOrder::Last] {
            let waves = self.waves_of(order);
            if self
                .prune_waves(waves, &mut pruned, run_state, sink)
                .await
                .is_err()
            {
                break;
            }
        }
        pruned
    }

    fn with_plan<'p>(&'p self, plan: Option<&'p Plan>) -> Execution<'p> {
        Execution {
            plan: plan.unwrap_or(self.plan),
            ..*self
        }
    }

    fn waves_of(&self, order: PruneOrder) -> &[Vec<Live>] {
        match order {
            PruneOrder::Regular => &self.plan.prunes,
            PruneOrder::Last => &self.plan.last_prunes,
        }
    }

    /// Returns whether the last prunes may begin: all others are gone if the run waits. An object that is
    /// pruned last may be what releases the finalizers of the others.
    async fn may_prune_last(&self, pruned: &mut Pruned, sink: &mut Sink<'_>) -> bool {
        if self.plan.last_prunes.is_empty() {
            return true;
        }
        let is_open = match self.gate {
            Some(gate) => gate.gone(sink).await == EndOfWait::Reached,
            None => true,
        };
        pruned.failed += usize::from(!is_open);
        is_open
    }

    /// Returns whether the objects of the manifests have to be Current before these prunes begin. What
    /// is pruned last waits for that only in a run that waits.
    fn waits_before(&self, order: PruneOrder) -> bool {
        match order {
            PruneOrder::Regular => self.policy.prune_when == PruneWhen::Ready,
            PruneOrder::Last => self.gate.is_some() && !self.plan.last_prunes.is_empty(),
        }
    }

    async fn until_ready(&self, sink: &mut Sink<'_>) -> EndOfWait {
        match self.gate {
            Some(gate) => gate.ready(sink).await,
            // Without a wait it is unknown whether they are ready.
            None => EndOfWait::NotReached,
        }
    }

    /// Ends a run that has applied everything and does not prune, because it waited in vain.
    fn leave_unpruned(
        &self,
        waited: EndOfWait,
        order: PruneOrder,
        run_state: &mut RunState,
        sink: &mut Sink<'_>,
    ) -> Ending {
        run_state.applied.report_held(&BTreeSet::new(), sink);
        if waited == EndOfWait::Interrupted {
            return Ending::Interrupted;
        }
        let (what, left) = match order {
            PruneOrder::Regular => ("nothing was pruned".to_owned(), self.plan.deletions()),
            PruneOrder::Last => {
                let last = self.plan.last_prunes.iter().map(Vec::len).sum();
                let were = if last == 1 { "was" } else { "were" };
                let what = format!(
                    "{} with PruneLast=true {were} not pruned",
                    counted(last, "object")
                );
                (what, last)
            }
        };
        if left > 0 {
            sink(Event::Warning(format!(
                "{what}, because not all objects of the manifests are Current; the next run prunes what left the manifests"
            )));
            sink(NotDone::all(
                "not pruned, because not all objects of the manifests are Current",
            ));
        }
        Ending::Incomplete
    }

    /// Prunes these waves one after the other.
    async fn prune_waves(
        &self,
        waves: &[Vec<Live>],
        pruned: &mut Pruned,
        run_state: &mut RunState,
        sink: &mut Sink<'_>,
    ) -> Result<(), Stopped> {
        if waves.is_empty() {
            return Ok(());
        }
        let total = waves.iter().map(Vec::len).sum();
        sink(Event::Phase {
            phase: Phase::Pruning,
            total,
        });
        let RunState {
            applied,
            concurrency_limit,
            ..
        } = run_state;
        let times = match self.writing.dry_run {
            DryRun::None => HashMap::new(),
            DryRun::Client | DryRun::Server => self.plan.prune_times(self.policy),
        };
        let desired_uids = applied.uids.clone();
        let mut judge = Judge::of_plan(
            self.set,
            self.policy,
            self.desired,
            self.contents,
            self.plan,
            desired_uids,
        );
        let Some(dependents) = self.dependents(applied, sink).await else {
            pruned.failed += total;
            return Err(Stopped);
        };
        judge.replace_dependents(&dependents);
        let approved = self.approved(&dependents, waves);
        let detached = self
            .detacher()
            .detach_all(&approved, &mut judge, concurrency_limit, sink)
            .await;
        applied.report_held(&detached, sink);
        let webhooks = StartingWebhooks::new(self.writing, self.interrupt, self.wait_notes);
        let Pruned { failed, kept, left } = pruned;
        let dependents_first = self.dependents_first();
        for wave in waves {
            let unwanted = report_desired(wave, &judge, left, sink);
            let held = dependents_first.hold(unwanted, left, sink).await;
            *kept += held.kept.len();
            *failed += held.waiting.len();
            held.report(left, sink);
            if held.outdates_dependents(self.interrupt) {
                let Some(dependents) = self.dependents(applied, sink).await else {
                    *failed += held.free.len();
                    return Err(Stopped);
                };
                judge.replace_dependents(&dependents);
            }
            let deleting = self.deleting(&judge, &webhooks);
            let mut on_event = |news: WriteEvent<ObjectOutcome>| {
                sink(at_time(news, &times).counted(|outcome| {
                    *failed += usize::from(outcome.action == Action::Failed);
                    *kept += usize::from(outcome.action == Action::Skipped);
                }));
            };
            let free = held.free.into_iter();
            deleting
                .delete_wave(free, left, self.interrupt, concurrency_limit, &mut on_event)
                .await;
        }
        Ok(())
    }

    fn deleting<'j>(&'j self, judge: &'j Judge<'j>, webhooks: &'j StartingWebhooks<'j>) -> Deleting<'j> {
        Deleting {
            server: self.server,
            judge,
            writing: self.writing,
            done: Action::Pruned,
            purpose: Purpose::Removal,
            preconditions: &self.plan.preconditions,
            webhooks,
        }
    }

    fn detacher(&self) -> Detacher<'_> {
        Detacher {
            server: self.server,
            writing: self.writing,
            interrupt: self.interrupt,
        }
    }

    fn dependents_first(&self) -> DependentsFirst<'_> {
        DependentsFirst {
            edges: &self.plan.edges,
            gate: self.dependencies,
            interrupt: self.interrupt,
            dry_run: self.writing.dry_run,
        }
    }

    /// The detachments that the prunes of these waves need. Nothing is detached that a bound plan does
    /// not name.
    fn approved(&self, dependents: &Dependents, waves: &[Vec<Live>]) -> Vec<Detachment> {
        let keys: BTreeSet<&ObjectKey> = waves.iter().flatten().map(|live| &live.key).collect();
        let is_needed = |detachment: &&Detachment| detachment.pruned.iter().any(|key| keys.contains(key));
        let is_approved = |detachment: &&Detachment| {
            let is_bound = self.plan.preconditions.require_unchanged();
            !is_bound || self.plan.dependents.includes(detachment)
        };
        let detachments = dependents.detachments.iter().filter(is_needed);
        detachments.filter(is_approved).cloned().collect()
    }

    /// Returns the current dependents of prunes; `None` if they could not be read. A dry run takes them
    /// from the plan.
    async fn dependents(&self, applied: &mut Applied, sink: &mut Sink<'_>) -> Option<Dependents> {
        if self.writing.dry_run != DryRun::None {
            return Some(self.plan.dependents.clone());
        }
        let look = DependentsLook {
            server: self.server,
            set: self.set,
            parent: Some(self.parent_resource),
            plan: self.plan,
            desired: self.desired,
            contents: self.contents,
            places: self.places,
            concurrency: self.writing.concurrency,
        };
        match Box::pin(look.dependents()).await {
            Ok(dependents) => Some(dependents),
            Err(unread) => {
                applied.report_held(&BTreeSet::new(), sink);
                sink(Event::failure(format!("{unread}; nothing more was pruned")));
                sink(NotDone::all("not pruned: owner references cannot be read"));
                None
            }
        }
    }
}

/// Adds to the outcome of a prune when it would happen: at one of these times, by UID.
fn at_time(news: WriteEvent<ObjectOutcome>, times: &HashMap<&str, String>) -> WriteEvent<ObjectOutcome> {
    let WriteEvent::Answer(mut outcome) = news else {
        return news;
    };
    let uid = outcome.subject.uid.as_deref();
    if outcome.action == Action::Pruned
        && outcome.reason.is_empty()
        && let Some(time) = uid.and_then(|uid| times.get(uid))
    {
        outcome.reason.clone_from(time);
    }
    WriteEvent::Answer(outcome)
}

/// Divides a wave from the objects that the manifests hold under another group, and reports these: what
/// was just applied under one name is not deleted under the other, nor is what it depends on.
fn report_desired<'l>(
    wave: &'l [Live],
    judge: &Judge<'_>,
    left: &mut ObjectsKeptInsteadOfDeleted,
    sink: &mut Sink<'_>,
) -> Vec<&'l Live> {
    let (desired, unwanted): (Vec<&Live>, Vec<&Live>) = wave.iter().partition(|live| judge.is_desired(live));
    for live in desired {
        let outcome = ObjectOutcome {
            reason: "applied under another API group".to_owned(),
            ..delete_wave::untouched(live)
        };
        left.note(&outcome);
        sink(Event::Object(outcome));
    }
    unwanted
}
