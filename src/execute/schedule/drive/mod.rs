//! Carries out a graph of actions: `Schedule` decides what comes next, and `Driver` begins it and takes its answer.
//!
//! Writes run at the same time, up to a limit that is learned from the server. A slow action does not block others,
//! and is reported. After an interrupt nothing begins, and what is under way is awaited.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use crate::cluster::apiserver::{ApiServer, UnreachableWebhook};
use crate::event::Event;
use crate::execute::members::reply::MemberReply;
use crate::execute::schedule::concurrency_limit::ConcurrencyLimit;
use crate::execute::schedule::postponed::Postponed;
use crate::execute::schedule::{End, Lane, Schedule, Skipped};
use crate::execute::starting_webhooks::StartingWebhooks;
use crate::execute::wait_notes::{SLOW, WaitNotes};
use crate::execute::{Interrupt, Sink};
use crate::model::identity::ObjectKey;
use crate::plan::{ActionId, Graph};

/// A kind of work that the driver carries out. It runs on one task, so implementations keep their state in cells.
pub trait Work {
    /// An action of the graph.
    type Action;
    /// The answer to an action.
    type Answer;

    /// Returns the object that is named if the action is slow.
    fn key<'k>(&'k self, action: &'k Self::Action) -> &'k ObjectKey;

    /// Carries out an action.
    async fn perform(&self, action: &Self::Action) -> Self::Answer;

    /// Takes the answer of an action that has ended, and reports it.
    fn take_answer(&self, action: &Self::Action, answer: Self::Answer, sink: &mut Sink<'_>) -> End;

    /// Returns the way in which an action begins.
    fn lane(&self, _: &Self::Action) -> Lane {
        Lane::Write
    }

    /// Returns the webhook that could not be called, if any; the action is then postponed.
    fn unreachable_webhook<'w>(&self, _: &'w Self::Answer) -> Option<&'w UnreachableWebhook> {
        None
    }

    /// Returns the answer of a wait, if it is known without waiting.
    fn known_answer(&self, _: &Self::Action) -> Option<Self::Answer> {
        None
    }

    /// Carries out waits together, and sends each answer to `found`.
    fn wait_together<'s>(
        &'s self,
        _: Vec<(ActionId, &'s Self::Action)>,
        _: AnswerSender<Self::Answer>,
        _: &'s RefCell<&mut Sink<'_>>,
    ) -> LocalBoxFuture<'s, ()> {
        Box::pin(async {})
    }

    /// Reports actions that are skipped.
    fn report_skipped(&self, _: &[Skipped], _: &Graph<Self::Action>, _: &Schedule, _: &mut Sink<'_>) {}

    /// Reports the number of writes that begin after a wait.
    fn report_resumed(&self, _: usize, _: &mut Sink<'_>) {}
}

/// The answer to a write.
pub trait WriteAnswer {
    /// Returns the webhook that could not be called, so that nothing was written.
    fn webhook(&self) -> Option<&UnreachableWebhook>;
}

impl WriteAnswer for MemberReply {
    fn webhook(&self) -> Option<&UnreachableWebhook> {
        self.webhook.as_ref()
    }
}

/// Sends the answers of waits that run together.
pub type AnswerSender<A> = mpsc::UnboundedSender<(ActionId, A)>;

/// Carries out graphs of actions until the run has to stop.
pub struct Driver<'a> {
    server: &'a ApiServer,
    pub interrupt: &'a Interrupt,
    /// The notes about what actions wait for, which the driver reports.
    pub notes: &'a WaitNotes,
    /// The time limit for webhooks to start, once nothing else is left to do; `None` without a limit.
    webhook_patience: Option<Duration>,
    limit: ConcurrencyLimit,
}

impl<'a> Driver<'a> {
    /// Creates a driver that never runs more than `most` writes at once.
    pub fn new(
        server: &'a ApiServer,
        interrupt: &'a Interrupt,
        notes: &'a WaitNotes,
        webhook_patience: Option<Duration>,
        most: usize,
    ) -> Self {
        Self {
            server,
            interrupt,
            notes,
            webhook_patience,
            limit: ConcurrencyLimit::for_server(server, most),
        }
    }

    /// Changes the time for webhooks to start.
    pub fn set_webhook_patience(&mut self, patience: Option<Duration>) {
        self.webhook_patience = patience;
    }

    /// Returns how many of these writes will soon run at once, if the server keeps up.
    pub fn soon_under_way(&self, writes: usize) -> usize {
        self.limit.soon_under_way(writes)
    }

    /// Carries out independent writes, and passes each answer to `answered` as it arrives.
    pub async fn run_independent<'k, T, A: WriteAnswer>(
        &mut self,
        items: impl IntoIterator<Item = (&'k ObjectKey, T)>,
        answered: impl FnMut(A, &mut Sink<'_>),
        sink: &mut Sink<'_>,
        write: impl AsyncFn(&T) -> A,
    ) {
        let work = Independent {
            write,
            answered: RefCell::new(answered),
            of: PhantomData,
        };
        let graph: Graph<(&ObjectKey, T)> = items.into_iter().collect();
        self.run(&graph, &work, sink).await;
    }

    /// Carries out a graph, and returns once all of its actions have ended or the run has stopped.
    pub async fn run<W: Work>(&mut self, graph: &Graph<W::Action>, work: &W, sink: &mut Sink<'_>) {
        let shared = RefCell::new(sink);
        let (found, mut news) = mpsc::unbounded_channel();
        let webhooks = StartingWebhooks::with_patience(self.webhook_patience, self.interrupt, self.notes);
        let mut progress = Progress {
            work,
            graph,
            shared: &shared,
            schedule: Schedule::new(graph, |action| work.lane(action)),
            postponed: Postponed::new(webhooks),
            together: Vec::new(),
        };
        let mut under_way = FuturesUnordered::new();
        let mut waits: FuturesUnordered<LocalBoxFuture<'_, ()>> = FuturesUnordered::new();
        let mut clock = Clock::new();
        let mut has_waited = false;
        loop {
            progress.stop_if_requested(self.interrupt);
            progress.end_known();
            while let Some(id) = self.next(&mut progress, &clock) {
                let action = progress.action(id);
                let lane = work.lane(action);
                if lane == Lane::Write && waits.is_empty() && std::mem::take(&mut has_waited) {
                    let total = 1 + progress.schedule.ready_count(Lane::Write);
                    progress.report(|sink| work.report_resumed(total, sink));
                }
                clock.begin(id, lane, work.key(action));
                progress.postponed.begin(id);
                under_way.push(async move { (id, work.perform(action).await) });
            }
            let is_idle = under_way.len() == progress.postponed.probes();
            if is_idle && !progress.together.is_empty() {
                let ids = std::mem::take(&mut progress.together);
                let batch = ids.into_iter().map(|id| (id, progress.action(id)));
                waits.push(work.wait_together(batch.collect(), found.clone(), &shared));
                has_waited = true;
            }
            if is_idle && waits.is_empty() {
                progress.postponed.start_clock();
            } else {
                progress.postponed.stop_clock();
            }
            let due = progress.postponed.next_attempt();
            if under_way.is_empty() && waits.is_empty() && news.is_empty() && due.is_none() {
                break;
            }
            self.report_notes(&shared);
            let throttled_answers = self.server.throttled_answers();
            tokio::select! {
                biased;
                Some((id, answer)) = under_way.next(), if !under_way.is_empty() => {
                    if let Some(latency) = clock.end(id) {
                        self.learn(latency, throttled_answers, clock.writes);
                    }
                    progress.take(id, answer);
                }
                Some((id, answer)) = news.recv() => progress.end(id, answer),
                Some(()) = waits.next(), if !waits.is_empty() => {}
                () = until(due), if due.is_some() => progress.resume_due(),
                () = self.interrupt.requested(), if !progress.schedule.is_stopped() => {}
                _ = clock.interval.tick() => progress.report(|sink| clock.report_slowest(sink)),
            }
        }
        self.report_notes(&shared);
        progress.report(|sink| clock.report_none_slow(sink));
    }

    /// Begins an action, if one can begin.
    fn next<W: Work>(&self, progress: &mut Progress<'_, '_, '_, W>, clock: &Clock<'_>) -> Option<ActionId> {
        if let Some(id) = progress.schedule.take_next(Lane::Wait) {
            return Some(id);
        }
        if !self.limit.allows(clock.writes, self.server.throttled_requests()) {
            return None;
        }
        progress.schedule.take_next(Lane::Write)
    }

    /// Adjusts the concurrency limit by the answer to a write.
    fn learn(&mut self, latency: Duration, throttled_answers: u64, under_way: usize) {
        if self.server.throttled_answers() > throttled_answers {
            self.limit.record_refusal(under_way);
        } else if !self.server.is_silent() {
            self.limit.record_answer(latency);
        }
    }

    fn report_notes(&self, shared: &RefCell<&mut Sink<'_>>) {
        for note in self.notes.take() {
            (shared.borrow_mut())(Event::Note(note));
        }
    }
}

async fn until(time: Option<tokio::time::Instant>) {
    if let Some(time) = time {
        sleep_until(time).await;
    }
}

/// A graph that is being carried out.
struct Progress<'p, 's, 't, W: Work> {
    work: &'p W,
    graph: &'p Graph<W::Action>,
    shared: &'p RefCell<&'s mut Sink<'t>>,
    schedule: Schedule,
    postponed: Postponed<'p, W::Answer>,
    /// Actions that are waited for together once nothing else can begin.
    together: Vec<ActionId>,
}

impl<'p, W: Work> Progress<'p, '_, '_, W> {
    /// # Panics
    ///
    /// For a barrier, which never begins.
    fn action(&self, id: ActionId) -> &'p W::Action {
        self.graph.action(id).expect("only actions begin")
    }

    fn report(&self, report: impl FnOnce(&mut Sink<'_>)) {
        report(&mut |event| (self.shared.borrow_mut())(event));
    }

    fn stop_if_requested(&mut self, interrupt: &Interrupt) {
        if interrupt.is_requested() {
            self.schedule.stop();
        }
        if self.schedule.is_stopped() {
            self.together.clear();
            for (id, answer) in self.postponed.give_up() {
                self.end(id, answer);
            }
        }
    }

    /// Ends the waits whose answer is already known, and collects the others.
    fn end_known(&mut self) {
        while let Some(id) = self.schedule.take_next(Lane::WaitTogether) {
            match self.work.known_answer(self.action(id)) {
                Some(answer) => self.end(id, answer),
                None => self.together.push(id),
            }
        }
    }

    /// Takes the answer of an action, and postpones it if its webhook could not be called.
    fn take(&mut self, id: ActionId, answer: W::Answer) {
        let webhook = self.work.unreachable_webhook(&answer).cloned();
        let is_postponed = webhook.is_some();
        let effect = self.postponed.take(id, answer, webhook.as_ref());
        if is_postponed && effect.ended.is_empty() {
            self.schedule.postpone(id);
        }
        for other in effect.resumed {
            self.schedule.resume(other);
        }
        for (ended, answer) in effect.ended {
            self.end(ended, answer);
        }
    }

    fn end(&mut self, id: ActionId, answer: W::Answer) {
        let action = self.action(id);
        let mut sink = |event: Event| (self.shared.borrow_mut())(event);
        let end = self.work.take_answer(action, answer, &mut sink);
        let skipped = self.schedule.record_end(id, end);
        if !skipped.is_empty() {
            self.work
                .report_skipped(&skipped, self.graph, &self.schedule, &mut sink);
        }
    }

    fn resume_due(&mut self) {
        for id in self.postponed.take_due() {
            self.schedule.resume(id);
        }
    }
}

/// The actions under way, each with its start.
struct Clock<'k> {
    begun: BTreeMap<ActionId, (Lane, &'k ObjectKey, Instant)>,
    /// The number of writes among them.
    writes: usize,
    interval: tokio::time::Interval,
    was_slow: bool,
}

impl<'k> Clock<'k> {
    fn new() -> Self {
        Self {
            begun: BTreeMap::new(),
            writes: 0,
            interval: tokio::time::interval(Duration::from_secs(1)),
            was_slow: false,
        }
    }

    fn begin(&mut self, id: ActionId, lane: Lane, key: &'k ObjectKey) {
        self.begun.insert(id, (lane, key, Instant::now()));
        self.writes += usize::from(lane == Lane::Write);
    }

    /// Returns how long a write has taken; `None` for other actions.
    fn end(&mut self, id: ActionId) -> Option<Duration> {
        let (lane, _, since) = self.begun.remove(&id)?;
        if lane != Lane::Write {
            return None;
        }
        self.writes -= 1;
        Some(since.elapsed())
    }

    fn report_slowest(&mut self, sink: &mut Sink<'_>) {
        let oldest = self.begun.values().min_by_key(|(_, _, since)| *since);
        let slowest = oldest.and_then(|(_, key, since)| {
            let elapsed = since.elapsed();
            (elapsed >= SLOW).then(|| ((*key).clone(), elapsed))
        });
        if self.was_slow || slowest.is_some() {
            self.was_slow = slowest.is_some();
            sink(Event::Slowest(slowest));
        }
    }

    fn report_none_slow(&mut self, sink: &mut Sink<'_>) {
        if std::mem::take(&mut self.was_slow) {
            sink(Event::Slowest(None));
        }
    }
}

/// Writes that do not wait for each other.
struct Independent<'k, T, A, W, R> {
    write: W,
    answered: RefCell<R>,
    of: PhantomData<fn(&'k T) -> A>,
}

impl<'i, T, A, W, R> Work for Independent<'i, T, A, W, R>
where
    A: WriteAnswer,
    W: AsyncFn(&T) -> A,
    R: FnMut(A, &mut Sink<'_>),
{
    type Action = (&'i ObjectKey, T);
    type Answer = A;

    fn key<'k>(&'k self, action: &'k Self::Action) -> &'k ObjectKey {
        action.0
    }

    async fn perform(&self, action: &Self::Action) -> A {
        (self.write)(&action.1).await
    }

    fn unreachable_webhook<'w>(&self, answer: &'w A) -> Option<&'w UnreachableWebhook> {
        answer.webhook()
    }

    fn take_answer(&self, _: &Self::Action, answer: A, sink: &mut Sink<'_>) -> End {
        (self.answered.borrow_mut())(answer, sink);
        End::Done
    }
}

#[cfg(test)]
mod tests;
