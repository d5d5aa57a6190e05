//! Carries out a graph of actions: `Schedule` decides which action comes next, and `Driver` begins that action and
//! takes its answer.
//!
//! Writes run at the same time, up to a limit that is learned from the server (`concurrency_limit`). A slow action does
//! not block others, and is reported. After an interrupt, no action begins, and the run waits for those under way.

mod clock;

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::time::Duration;

use clock::Clock;

use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::cluster::apiserver::{ApiServer, UnreachableWebhook};
use crate::event::{Event, Interrupt, Sink};
use crate::execute::freshness::Freshness;
use crate::execute::members::reply::MemberReply;
use crate::execute::schedule::concurrency_limit::ConcurrencyLimit;
use crate::execute::schedule::postponed::Postponed;
use crate::execute::schedule::{ActionEnd, Lane, Schedule, Skipped};
use crate::execute::starting_webhooks::StartingWebhooks;
use crate::execute::wait_notes::WaitNotes;
use crate::model::identity::ObjectKey;
use crate::plan::{Graph, NodeId};

/// The actions of a graph: how the driver carries them out, and what their answers mean. All actions run on one task,
/// so implementations keep their state in cells.
pub trait Work {
    /// An action of the graph.
    type Action;
    /// The answer to an action.
    type Answer;

    /// Returns the key of the object that the driver names if the action is slow.
    fn key<'k>(&'k self, action: &'k Self::Action) -> &'k ObjectKey;

    /// Carries out an action.
    async fn perform(&self, action: &Self::Action) -> Self::Answer;

    /// Takes the answer of an action that has ended, and reports it.
    fn take_answer(&self, action: &Self::Action, answer: Self::Answer, sink: &mut Sink<'_>) -> ActionEnd;

    /// Returns the lane of an action, which says when it begins.
    fn lane(&self, _action: &Self::Action) -> Lane {
        Lane::Write
    }

    /// Returns the webhook that could not be called, if that is the answer; the driver then postpones the action.
    fn unreachable_webhook<'w>(&self, _answer: &'w Self::Answer) -> Option<&'w UnreachableWebhook> {
        None
    }

    /// Returns the answer of a wait of `Lane::WaitTogether`, if it is known without waiting.
    fn answer_known_without_waiting(&self, _action: &Self::Action) -> Option<Self::Answer> {
        None
    }

    /// Carries out waits of `Lane::WaitTogether`, and sends the answer of each as soon as it is known.
    fn wait_together<'s>(
        &'s self,
        _waits: Vec<(NodeId, &'s Self::Action)>,
        _answers: AnswerSender<Self::Answer>,
        _sink: &'s RefCell<&mut Sink<'_>>,
    ) -> LocalBoxFuture<'s, ()> {
        Box::pin(async {})
    }

    /// Reports actions that are skipped.
    fn report_skipped(&self, _skipped: &[Skipped], _graph: &Graph<Self::Action>, _sink: &mut Sink<'_>) {}

    /// Reports the number of writes that begin after a wait.
    fn report_writes_after_wait(&self, _count: usize, _sink: &mut Sink<'_>) {}
}

/// The answer to a write.
pub trait WriteAnswer {
    /// Returns the webhook that could not be called, if the server wrote nothing for that reason.
    fn unreachable_webhook(&self) -> Option<&UnreachableWebhook>;
}

impl WriteAnswer for MemberReply {
    fn unreachable_webhook(&self) -> Option<&UnreachableWebhook> {
        self.webhook.as_ref()
    }
}

/// Sends the answers of the waits of `Lane::WaitTogether` to the driver.
pub type AnswerSender<A> = mpsc::UnboundedSender<(NodeId, A)>;

/// Carries out graphs of actions until the run has to stop.
pub struct Driver<'a> {
    server: &'a ApiServer,
    pub interrupt: &'a Interrupt,
    /// The notes about what actions wait for, which the driver reports.
    pub notes: &'a WaitNotes,
    /// The time for which writes wait for a webhook to start, once nothing else is left to do; `None` without a limit.
    webhook_patience: Option<Duration>,
    limit: ConcurrencyLimit,
    /// Tracks when the members have to be read again: each wait of an action for an object or a webhook outdates them.
    pub freshness: Rc<Freshness>,
}

impl<'a> Driver<'a> {
    /// Creates a driver that never runs more than `max_writes` at once.
    pub fn new(
        server: &'a ApiServer,
        interrupt: &'a Interrupt,
        notes: &'a WaitNotes,
        webhook_patience: Option<Duration>,
        max_writes: usize,
    ) -> Self {
        Self {
            server,
            interrupt,
            notes,
            webhook_patience,
            limit: ConcurrencyLimit::for_server(server, max_writes),
            freshness: Rc::new(Freshness::new(Instant::now())),
        }
    }

    /// Changes how long writes wait for a webhook to start; `None` without a limit.
    pub fn set_webhook_patience(&mut self, patience: Option<Duration>) {
        self.webhook_patience = patience;
    }

    /// Carries out `write` for each item, in any order, and passes each answer to `on_answer` as it arrives.
    pub async fn run_independent<'k, T, A: WriteAnswer>(
        &mut self,
        items: impl IntoIterator<Item = (&'k ObjectKey, T)>,
        on_answer: impl FnMut(A, &mut Sink<'_>),
        sink: &mut Sink<'_>,
        write: impl AsyncFn(&T) -> A,
    ) {
        let work = IndependentWrites {
            write,
            on_answer: RefCell::new(on_answer),
            types: PhantomData,
        };
        let graph: Graph<(&ObjectKey, T)> = items.into_iter().collect();
        self.run(&graph, &work, sink).await;
    }

    /// Carries out a graph, and returns once all of its actions have ended or the run has stopped.
    pub async fn run<W: Work>(&mut self, graph: &Graph<W::Action>, work: &W, sink: &mut Sink<'_>) {
        let sink = RefCell::new(sink);
        let (answer_sender, mut answers_from_batches) = mpsc::unbounded_channel();
        let webhooks = StartingWebhooks::new(self.webhook_patience, self.interrupt, self.notes);
        let mut running = RunningGraph {
            work,
            graph,
            sink: &sink,
            schedule: Schedule::new(graph, |action| work.lane(action)),
            postponed: Postponed::new(webhooks),
            waits_to_begin: Vec::new(),
            batches_of_waits: FuturesUnordered::new(),
            answer_sender,
            is_next_write_after_wait: false,
        };
        let mut under_way = FuturesUnordered::new();
        let mut clock = Clock::new();
        loop {
            running.stop_if_requested(self.interrupt);
            running.end_or_collect_waits();
            while let Some(id) = self.take_next(&mut running, &clock) {
                let action = running.begin(id, &mut clock);
                under_way.push(async move { (id, work.perform(action).await) });
            }
            // Probes of webhooks do not count: they may be sent until the end of the run.
            let is_idle = under_way.len() == running.postponed.count_probes_under_way();
            if is_idle && !running.waits_to_begin.is_empty() {
                running.begin_batch_of_waits();
            }
            if is_idle && running.batches_of_waits.is_empty() {
                running.postponed.start_time_limits();
            } else {
                running.postponed.stop_time_limits();
            }
            let next_probe = running.postponed.next_probe_time();
            let has_ended = under_way.is_empty()
                && running.batches_of_waits.is_empty()
                && answers_from_batches.is_empty();
            if has_ended && next_probe.is_none() {
                break;
            }
            self.report_notes(&sink);
            let throttled_before = self.server.throttled_answer_count();
            // In this order, so that the answers that have arrived are taken before anything else.
            tokio::select! {
                biased;
                Some((id, answer)) = under_way.next(), if !under_way.is_empty() => {
                    if let Some(latency) = clock.stop(id) {
                        self.adjust_limit(latency, throttled_before, clock.writes);
                    }
                    running.end_or_postpone(id, answer);
                }
                Some((id, answer)) = answers_from_batches.recv() => {
                    self.freshness.mark_outdated();
                    running.record_end_and_report_skipped(id, answer);
                    // What has waited together begins after all answers, so that it is read again once.
                    while let Ok((id, answer)) = answers_from_batches.try_recv() {
                        running.record_end_and_report_skipped(id, answer);
                    }
                }
                Some(()) = running.batches_of_waits.next(), if !running.batches_of_waits.is_empty() => {}
                () = sleep_until_probe(next_probe), if next_probe.is_some() => {
                    self.freshness.mark_outdated();
                    running.begin_due_probes();
                }
                () = self.interrupt.wait_until_requested(), if !running.schedule.is_stopped() => {}
                _ = clock.interval.tick() => running.with_sink(|sink| clock.report_slowest(sink)),
            }
        }
        self.report_notes(&sink);
        running.with_sink(|sink| clock.report_none_slow(sink));
    }

    /// Takes the next action of `Lane::Wait` or `Lane::Write` that can begin; `None` if none can begin now.
    fn take_next<W: Work>(
        &self,
        running: &mut RunningGraph<'_, '_, '_, W>,
        clock: &Clock<'_>,
    ) -> Option<NodeId> {
        if let Some(id) = running.schedule.take_next(Lane::Wait) {
            return Some(id);
        }
        if !self
            .limit
            .allows_one_more(clock.writes, self.server.waiting_throttled_request_count())
        {
            return None;
        }
        running.schedule.take_next(Lane::Write)
    }

    /// Adjusts the concurrency limit after a write has ended. `throttled_before` is the number of answers with 429 (Too
    /// Many Requests) when the driver began to wait for the write. If there are more now, the server refuses requests,
    /// whether this write was refused or another one.
    fn adjust_limit(&mut self, latency: Duration, throttled_before: u64, under_way: usize) {
        if self.server.throttled_answer_count() > throttled_before {
            self.limit.record_refusal(under_way);
        } else if !self.server.is_silent() {
            self.limit.record_answer(latency);
        }
    }

    fn report_notes(&self, sink: &RefCell<&mut Sink<'_>>) {
        for note in self.notes.take() {
            (sink.borrow_mut())(Event::Note(note));
        }
    }
}

/// Sleeps until the time of the next probe; returns at once if there is none.
async fn sleep_until_probe(time: Option<Instant>) {
    if let Some(time) = time {
        sleep_until(time).await;
    }
}

/// A graph that is being carried out.
struct RunningGraph<'p, 's, 't, W: Work> {
    work: &'p W,
    graph: &'p Graph<W::Action>,
    /// The sink, which the driver and the waits share.
    sink: &'p RefCell<&'s mut Sink<'t>>,
    schedule: Schedule,
    postponed: Postponed<'p, W::Answer>,
    /// The actions of `Lane::WaitTogether` that begin once nothing else can begin.
    waits_to_begin: Vec<NodeId>,
    /// The waits of `Lane::WaitTogether` that are under way.
    batches_of_waits: FuturesUnordered<LocalBoxFuture<'p, ()>>,
    /// Gives the batches their way to answer.
    answer_sender: AnswerSender<W::Answer>,
    /// `true` from the begin of a batch until the first write after it.
    is_next_write_after_wait: bool,
}

impl<'p, W: Work> RunningGraph<'p, '_, '_, W> {
    /// # Panics
    ///
    /// For a barrier, which never begins.
    fn action_with_id(&self, id: NodeId) -> &'p W::Action {
        self.graph.action(id).expect("only actions begin")
    }

    /// Notes the begin of an action, and returns it.
    fn begin(&mut self, id: NodeId, clock: &mut Clock<'p>) -> &'p W::Action {
        let action = self.action_with_id(id);
        let lane = self.work.lane(action);
        if lane == Lane::Write && self.batches_of_waits.is_empty() && self.is_next_write_after_wait {
            self.is_next_write_after_wait = false;
            let total = 1 + self.schedule.ready_count(Lane::Write);
            self.with_sink(|sink| self.work.report_writes_after_wait(total, sink));
        }
        clock.begin(id, lane, self.work.key(action));
        self.postponed.record_begin(id);
        action
    }

    fn begin_batch_of_waits(&mut self) {
        let ids = std::mem::take(&mut self.waits_to_begin);
        let batch = ids.into_iter().map(|id| (id, self.action_with_id(id)));
        let waiting = self
            .work
            .wait_together(batch.collect(), self.answer_sender.clone(), self.sink);
        self.batches_of_waits.push(waiting);
        self.is_next_write_after_wait = true;
    }

    fn with_sink(&self, report: impl FnOnce(&mut Sink<'_>)) {
        report(&mut |event| (self.sink.borrow_mut())(event));
    }

    /// Stops the schedule if the user has stopped the run. Once it has stopped, the actions that have not begun are
    /// dropped, and the postponed ones end with their latest answers.
    fn stop_if_requested(&mut self, interrupt: &Interrupt) {
        if interrupt.is_requested() {
            self.schedule.stop();
        }
        if self.schedule.is_stopped() {
            self.waits_to_begin.clear();
            for (id, answer) in self.postponed.give_up_all() {
                self.record_end_and_report_skipped(id, answer);
            }
        }
    }

    /// Ends the actions of `Lane::WaitTogether` whose answer is already known, and collects the others in
    /// `waits_to_begin`.
    fn end_or_collect_waits(&mut self) {
        while let Some(id) = self.schedule.take_next(Lane::WaitTogether) {
            match self.work.answer_known_without_waiting(self.action_with_id(id)) {
                Some(answer) => self.record_end_and_report_skipped(id, answer),
                None => self.waits_to_begin.push(id),
            }
        }
    }

    /// Takes the answer of an action that was under way: ends the action, or postpones it if its webhook could not be
    /// called.
    fn end_or_postpone(&mut self, id: NodeId, answer: W::Answer) {
        let webhook = self.work.unreachable_webhook(&answer).cloned();
        let effect = self.postponed.postpone_or_end(id, answer, webhook.as_ref());
        if effect.ended.is_empty() {
            self.schedule.postpone(id);
        }
        for other in effect.resumed {
            self.schedule.resume(other);
        }
        for (ended, answer) in effect.ended {
            self.record_end_and_report_skipped(ended, answer);
        }
    }

    /// Records the end of an action, and reports it and the actions that are skipped because of it.
    fn record_end_and_report_skipped(&mut self, id: NodeId, answer: W::Answer) {
        let action = self.action_with_id(id);
        let mut sink = |event: Event| (self.sink.borrow_mut())(event);
        let end = self.work.take_answer(action, answer, &mut sink);
        let skipped = self.schedule.record_end(id, end);
        if !skipped.is_empty() {
            self.work.report_skipped(&skipped, self.graph, &mut sink);
        }
    }

    fn begin_due_probes(&mut self) {
        for id in self.postponed.take_due_probes() {
            self.schedule.resume(id);
        }
    }
}

/// Writes that do not wait for each other.
struct IndependentWrites<'k, T, A, W, R> {
    write: W,
    on_answer: RefCell<R>,
    /// The types of items and answers, which no field holds.
    types: PhantomData<fn(&'k T) -> A>,
}

impl<'i, T, A, W, R> Work for IndependentWrites<'i, T, A, W, R>
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
        answer.unreachable_webhook()
    }

    fn take_answer(&self, _: &Self::Action, answer: A, sink: &mut Sink<'_>) -> ActionEnd {
        (self.on_answer.borrow_mut())(answer, sink);
        ActionEnd::Done
    }
}

#[cfg(test)]
mod tests;
