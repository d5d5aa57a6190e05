//! Applies the steps of the plan one after the other, and waits where an object has to wait.
//!
//! An object waits for what it depends on, or for a webhook that is still starting. Either wait may need
//! what the other one holds back: a Deployment is Current once a certificate exists, and the certificate
//! waits for its webhook. So both waits run at the same time, and each object is sent once it is free. A step
//! ends when each of its objects is sent, skipped, or postponed behind one that waits for a webhook: the
//! Pods of the webhook may come with a later step.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::dependency_order::Hindrance;
use super::members::webhooks::{Round, SetAside};
use super::starting_webhooks::StartingWebhooks;
use super::{Execution, RunState, Sink};
use crate::event::{Event, NotDone, Phase, WaitStatus};
use crate::model::identity::ObjectKey;
use crate::model::text::listed;
use crate::plan::Apply;

/// Steps in progress, with the objects still to be written.
struct Steps<'w, 's> {
    /// Objects that were not sent yet, step by step.
    unsent: Vec<Vec<&'w Apply>>,
    /// Objects that wait for webhooks.
    set_aside: SetAside<'w>,
    waits: Waits<'s>,
    phase: Shown,
}

/// The phase that the user sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Applying,
    Waiting,
}

/// The waits for objects that others depend on.
struct Waits<'s> {
    under_way: FuturesUnordered<LocalBoxFuture<'s, ()>>,
    found: mpsc::UnboundedSender<WaitOutcome>,
    news: mpsc::UnboundedReceiver<WaitOutcome>,
}

/// What a wait has found out about an object.
enum WaitOutcome {
    /// It is Current.
    Current(ObjectKey),
    /// The wait is over, and it is not Current.
    Missed(ObjectKey),
}

/// The end of a piece of work.
#[derive(Clone, Copy)]
enum Until {
    /// All objects of the last step are sent, skipped or postponed.
    LastStepIsOver,
    /// All objects are sent, skipped or postponed. Webhooks have this time to start once nothing else is
    /// left to do; `None` if they have until the end of the run.
    AllIsOver(Option<Duration>),
}

impl<'w> Steps<'w, '_> {
    fn new(set_aside: SetAside<'w>) -> Self {
        let (found, news) = mpsc::unbounded_channel();
        Self {
            unsent: Vec::new(),
            set_aside,
            waits: Waits {
                under_way: FuturesUnordered::new(),
                found,
                news,
            },
            phase: Shown::Applying,
        }
    }

    fn is_over(&self) -> bool {
        self.unsent.iter().all(Vec::is_empty) && self.set_aside.is_empty()
    }

    /// Returns whether nothing can free an object any more. The plan has no cycles, so this would be a
    /// fault of it, and a run must not wait endlessly because of one.
    fn is_stuck(&self) -> bool {
        self.set_aside.is_empty() && self.waits.under_way.is_empty() && self.waits.news.is_empty()
    }
}

impl Waits<'_> {
    /// Does some work while the waits continue.
    async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                Some(()) = self.under_way.next(), if !self.under_way.is_empty() => {}
            }
        }
    }

    /// Returns when something was found out, or at this time.
    async fn next(&mut self, time: Option<Instant>) -> Option<WaitOutcome> {
        let over = async {
            match time {
                Some(time) => sleep_until(time).await,
                None => std::future::pending().await,
            }
        };
        let mut over = pin!(over);
        loop {
            tokio::select! {
                biased;
                found = self.news.recv() => return found,
                Some(()) = self.under_way.next(), if !self.under_way.is_empty() => {}
                () = &mut over => return None,
            }
        }
    }

    /// Runs the stopping waits to their end, so that their results arrive.
    async fn stop(&mut self) {
        while let Some(()) = self.under_way.next().await {}
    }
}

impl Execution<'_> {
    /// Applies what has to exist before the parent.
    pub(super) async fn write_prerequisites(&self, run_state: &mut RunState<'_>, sink: &mut Sink<'_>) {
        let until = Until::AllIsOver(Some(self.writing.webhook_patience.in_step));
        let shared = RefCell::new(sink);
        let mut steps = Steps::new(self.set_aside());
        for step in &self.plan.prerequisites {
            if self.interrupt.is_requested() {
                break;
            }
            steps.unsent.push(step.iter().collect());
            Box::pin(self.work(&mut steps, until, run_state, &shared)).await;
        }
    }

    /// Applies the steps of the plan.
    pub(super) async fn write_steps(&self, run_state: &mut RunState<'_>, sink: &mut Sink<'_>) {
        let shared = RefCell::new(sink);
        let mut steps = Steps::new(self.set_aside());
        for wave in &self.plan.waves {
            if self.interrupt.is_requested() {
                return;
            }
            steps.unsent.retain(|step| !step.is_empty());
            steps.unsent.push(wave.iter().collect());
            let until = Until::LastStepIsOver;
            self.work(&mut steps, until, run_state, &shared).await;
        }
        let until = Until::AllIsOver(self.writing.webhook_patience.at_end);
        self.work(&mut steps, until, run_state, &shared).await;
    }

    /// Sends objects once they are free, and waits for the others.
    async fn work<'s>(
        &'s self,
        steps: &mut Steps<'s, 's>,
        until: Until,
        run_state: &mut RunState<'_>,
        shared: &'s RefCell<&mut Sink<'_>>,
    ) {
        let mut sink = |event: Event| (shared.borrow_mut())(event);
        loop {
            if self.interrupt.is_requested() {
                steps.waits.stop().await;
                let round = steps.set_aside.round();
                self.send(round, steps, run_state, &mut sink).await;
                return;
            }
            self.skip_lost(steps, run_state, &mut sink);
            let free = self.take_free(steps, run_state);
            let round = if free.is_empty() {
                let is_waiting = self.begin_waits(steps, run_state, shared);
                let is_over = match until {
                    Until::LastStepIsOver => !is_waiting,
                    Until::AllIsOver(_) => steps.is_over(),
                };
                if is_over {
                    return;
                }
                if steps.is_stuck() {
                    self.leave(steps, run_state, &mut sink);
                    return;
                }
                let Some(round) = self.wait(steps, until, run_state).await else {
                    continue;
                };
                round
            } else {
                steps.set_aside.webhooks.stop_clock();
                Round::of(free)
            };
            self.send(round, steps, run_state, &mut sink).await;
        }
    }

    /// Waits until an object may be free, or until webhooks are to be called again. Returns what is sent
    /// to them.
    async fn wait<'w>(
        &self,
        steps: &mut Steps<'w, '_>,
        until: Until,
        run_state: &mut RunState<'_>,
    ) -> Option<Round<'w>> {
        let webhooks = &steps.set_aside.webhooks;
        match until {
            Until::AllIsOver(patience) if steps.waits.under_way.is_empty() => webhooks.start_clock(patience),
            Until::AllIsOver(_) | Until::LastStepIsOver => webhooks.stop_clock(),
        }
        let time = steps.set_aside.next_round();
        let found = tokio::select! {
            biased;
            () = self.interrupt.requested() => return None,
            found = steps.waits.next(time) => found,
        };
        let Some(found) = found else {
            return Some(steps.set_aside.round());
        };
        let mut next = Some(found);
        while let Some(found) = next {
            match found {
                WaitOutcome::Current(key) => run_state.applied.dependencies.arrived(key),
                WaitOutcome::Missed(key) => run_state.applied.dependencies.missed(key),
            }
            next = steps.waits.news.try_recv().ok();
        }
        None
    }

    /// Takes the objects of the first step that has any that can be sent.
    fn take_free<'w>(&self, steps: &mut Steps<'w, '_>, run_state: &RunState<'_>) -> Vec<&'w Apply> {
        let states = &run_state.applied.dependencies;
        let last = steps.unsent.len().saturating_sub(1);
        if states.is_trivial() && steps.set_aside.is_empty() && steps.unsent[..last].iter().all(Vec::is_empty)
        {
            return steps.unsent.last_mut().map(std::mem::take).unwrap_or_default();
        }
        let unwritten = self.unwritten(steps);
        for step in &mut steps.unsent {
            let is_free = |apply: &&Apply| {
                let object = &self.desired.members[apply.index];
                self.hindrance(object, states, &unwritten).is_none()
            };
            let (free, rest) = std::mem::take(step).into_iter().partition(is_free);
            *step = rest;
            if !Vec::is_empty(&free) {
                return free;
            }
        }
        Vec::new()
    }

    /// Returns the objects of steps that have begun that are still to be written.
    fn unwritten<'s>(&'s self, steps: &Steps<'s, '_>) -> HashSet<&'s ObjectKey> {
        let unsent = steps.unsent.iter().flatten().copied();
        let applies = unsent.chain(steps.set_aside.objects());
        applies.map(|apply| self.key(apply)).collect()
    }

    /// Skips all objects that are left, and makes the run fail.
    fn leave(&self, steps: &mut Steps<'_, '_>, run_state: &mut RunState<'_>, sink: &mut Sink<'_>) {
        let left = steps.unsent.drain(..).flatten();
        let left: Vec<ObjectKey> = left.map(|apply| self.key(apply).clone()).collect();
        run_state.applied.failed += left.len();
        sink(NotDone::some(left, "what it depends on was not applied"));
    }

    /// Skips objects that depend on what will not be Current in this run, and makes the run fail.
    fn skip_lost(&self, steps: &mut Steps<'_, '_>, run_state: &mut RunState<'_>, sink: &mut Sink<'_>) {
        let applied = &mut run_state.applied;
        if applied.dependencies.is_trivial() {
            return;
        }
        loop {
            let nothing = HashSet::new();
            let mut lost: BTreeMap<(ObjectKey, &'static str), Vec<ObjectKey>> = BTreeMap::new();
            for step in &mut steps.unsent {
                step.retain(|apply| {
                    let object = &self.desired.members[apply.index];
                    match self.hindrance(object, &applied.dependencies, &nothing) {
                        Some(Hindrance::Lost(dependency, state)) => {
                            let dependents = lost.entry((dependency, state)).or_default();
                            dependents.push(object.key.clone());
                            false
                        }
                        _ => true,
                    }
                });
            }
            if lost.is_empty() {
                return;
            }
            for ((dependency, state), dependents) in lost {
                applied.failed += dependents.len();
                sink(Event::failure(format!(
                    "{dependency} {state}, so these objects that depend on it are not applied: {}",
                    listed(&dependents)
                )));
                for dependent in &dependents {
                    applied.dependencies.skip(dependent.clone());
                }
                let reason = format!("it depends on {dependency}, which {state}");
                sink(NotDone::some(dependents, reason));
            }
        }
    }

    /// Starts a wait for each dependency that has none yet. Returns whether an object
    /// of the last step waits for it.
    fn begin_waits<'s>(
        &'s self,
        steps: &mut Steps<'s, 's>,
        run_state: &mut RunState<'_>,
        shared: &'s RefCell<&mut Sink<'_>>,
    ) -> bool {
        let states = &mut run_state.applied.dependencies;
        if states.is_trivial() {
            return false;
        }
        let unwritten = self.unwritten(steps);
        let mut is_waiting = false;
        let mut keys = BTreeSet::new();
        for step in &steps.unsent {
            is_waiting = false;
            for apply in step {
                let object = &self.desired.members[apply.index];
                if let Some(Hindrance::NotCurrent(awaited)) = self.hindrance(object, states, &unwritten) {
                    is_waiting = true;
                    keys.extend(awaited.into_iter().filter(|key| !states.is_awaited(key)));
                }
            }
        }
        if keys.is_empty() {
            return is_waiting;
        }
        states.wait_for(keys.iter().cloned());
        steps.phase = Shown::Waiting;
        let found = steps.waits.found.clone();
        steps
            .waits
            .under_way
            .push(Box::pin(self.await_all(keys, found, shared)));
        is_waiting
    }

    /// Waits for objects that others depend on, and sends on what becomes of each.
    async fn await_all(
        &self,
        keys: BTreeSet<ObjectKey>,
        found: mpsc::UnboundedSender<WaitOutcome>,
        shared: &RefCell<&mut Sink<'_>>,
    ) {
        // The channel is closed once the steps are over.
        let mut noting = |event: Event| {
            if let Event::Awaited(awaited) = &event
                && awaited.wait_status == WaitStatus::Arrived
            {
                let _ = found.send(WaitOutcome::Current(awaited.subject.key()));
            }
            (shared.borrow_mut())(event);
        };
        let missed = match self.dependencies {
            Some(gate) => gate.current(self.dependencies(&keys), &mut noting).await,
            None => keys.clone(),
        };
        for key in keys {
            let _ = found.send(if missed.contains(&key) {
                WaitOutcome::Missed(key)
            } else {
                WaitOutcome::Current(key)
            });
        }
    }

    /// Sends objects while the waits continue.
    async fn send<'w>(
        &self,
        round: Round<'w>,
        steps: &mut Steps<'w, '_>,
        run_state: &mut RunState<'_>,
        sink: &mut Sink<'_>,
    ) {
        if steps.phase == Shown::Waiting && steps.waits.under_way.is_empty() {
            steps.phase = Shown::Applying;
            sink(Event::Phase {
                phase: Phase::Applying,
                total: round.objects.len(),
            });
        }
        let Steps { set_aside, waits, .. } = steps;
        waits
            .during(Box::pin(self.apply_round(round, set_aside, run_state, sink)))
            .await;
    }

    fn set_aside(&self) -> SetAside<'_> {
        SetAside::new(StartingWebhooks::new(
            self.writing,
            self.interrupt,
            self.wait_notes,
        ))
    }
}
