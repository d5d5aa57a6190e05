//! Actions that begin again later, because the webhook that judges their write cannot be called yet.
//!
//! For each webhook, one action is tried again, after the pauses of `starting_webhooks`; the others follow once it gets
//! through. The time limit of a webhook runs only while nothing else is left to do, because the run may still start it.

use std::collections::BTreeMap;

use tokio::time::Instant;

use crate::cluster::apiserver::UnreachableWebhook;
use crate::execute::starting_webhooks::StartingWebhooks;
use crate::plan::ActionId;

/// Postponed actions with the latest answer of each, by the name of their webhook.
pub(super) struct Postponed<'a, A> {
    webhooks: StartingWebhooks<'a>,
    queues: BTreeMap<String, Queue<A>>,
    /// Actions that may begin again and have not yet begun.
    resumed: BTreeMap<ActionId, A>,
}

/// The actions that wait for one webhook.
struct Queue<A> {
    waiting: Vec<(ActionId, A)>,
    /// The action that is under way again to find out whether the webhook can be called.
    probe: Option<ActionId>,
    /// The number of failed probes.
    failed_probes: u32,
    /// The end of the latest attempt.
    since: Instant,
}

/// The consequences of an answer.
pub(super) struct AnswerEffect<A> {
    /// Actions that end, with their answers.
    pub(super) ended: Vec<(ActionId, A)>,
    /// Actions that are begun again now.
    pub(super) resumed: Vec<ActionId>,
}

impl<'a, A> Postponed<'a, A> {
    pub(super) fn new(webhooks: StartingWebhooks<'a>) -> Self {
        webhooks.stop_clock();
        Self {
            webhooks,
            queues: BTreeMap::new(),
            resumed: BTreeMap::new(),
        }
    }

    /// Takes an answer. `webhook` is the one that could not be called, if any: the action is then postponed, unless the
    /// webhook is no longer waited for.
    pub(super) fn take(
        &mut self,
        id: ActionId,
        answer: A,
        webhook: Option<&UnreachableWebhook>,
    ) -> AnswerEffect<A> {
        let mut queues = self.queues.iter();
        let asked_for = queues.find_map(|(name, queue)| (queue.probe == Some(id)).then(|| name.clone()));
        let Some(webhook) = webhook else {
            let queue = asked_for.and_then(|name| self.queues.remove(&name));
            let others = queue.map(|queue| queue.waiting).unwrap_or_default();
            let resumed = others.iter().map(|(other, _)| *other).collect();
            self.resumed.extend(others);
            return AnswerEffect {
                ended: vec![(id, answer)],
                resumed,
            };
        };
        // The server names one of several webhooks, so another name says nothing about the one that is probed.
        let name = asked_for.unwrap_or_else(|| webhook.name.clone());
        let is_awaited = self.webhooks.awaits(webhook) && !self.webhooks.is_time_over(&name);
        if !is_awaited {
            let queue = self.queues.remove(&name);
            let mut ended = queue.map(|queue| queue.waiting).unwrap_or_default();
            ended.push((id, answer));
            return AnswerEffect {
                ended,
                resumed: Vec::new(),
            };
        }
        let queue = self.queues.entry(name).or_insert_with(Queue::new);
        if queue.probe == Some(id) {
            queue.probe = None;
            queue.failed_probes += 1;
            queue.since = Instant::now();
        }
        queue.waiting.push((id, answer));
        AnswerEffect {
            ended: Vec::new(),
            resumed: Vec::new(),
        }
    }

    /// Notes that an action begins.
    pub(super) fn begin(&mut self, id: ActionId) {
        self.resumed.remove(&id);
    }

    /// Returns the number of actions that are under way to find out whether a webhook can be called.
    pub(super) fn probes(&self) -> usize {
        let probes = self.queues.values().filter_map(|queue| queue.probe);
        probes.filter(|id| !self.resumed.contains_key(id)).count()
    }

    /// Returns the time at which the next action is begun again; `None` if none waits for that.
    pub(super) fn next_attempt(&self) -> Option<Instant> {
        let queues = self.queues.iter().filter(|(_, queue)| queue.probe.is_none());
        queues
            .map(|(name, queue)| self.next_attempt_of(name, queue))
            .min()
    }

    fn next_attempt_of(&self, name: &String, queue: &Queue<A>) -> Instant {
        let names = std::iter::once(name);
        self.webhooks
            .next_attempt(queue.since, queue.failed_probes, names)
    }

    /// Takes the next action of each webhook whose pause is over.
    pub(super) fn take_due(&mut self) -> Vec<ActionId> {
        let now = Instant::now();
        let queues = self.queues.iter();
        let due =
            queues.filter(|(name, queue)| queue.probe.is_none() && self.next_attempt_of(name, queue) <= now);
        let names: Vec<String> = due.map(|(name, _)| name.clone()).collect();
        let mut probes = Vec::new();
        for name in names {
            if let Some(queue) = self.queues.get_mut(&name) {
                let (id, answer) = queue.waiting.remove(0);
                queue.probe = Some(id);
                self.resumed.insert(id, answer);
                probes.push(id);
            }
        }
        probes
    }

    /// Takes out all actions: none is begun again.
    pub(super) fn give_up(&mut self) -> Vec<(ActionId, A)> {
        let queues = std::mem::take(&mut self.queues).into_values();
        let resumed = std::mem::take(&mut self.resumed);
        queues.flat_map(|queue| queue.waiting).chain(resumed).collect()
    }

    /// Starts the clock of the webhooks.
    pub(super) fn start_clock(&self) {
        self.webhooks.start_clock();
    }

    /// Stops the clock of the webhooks.
    pub(super) fn stop_clock(&self) {
        self.webhooks.stop_clock();
    }
}

impl<A> Queue<A> {
    fn new() -> Self {
        Self {
            waiting: Vec::new(),
            probe: None,
            failed_probes: 0,
            since: Instant::now(),
        }
    }
}
