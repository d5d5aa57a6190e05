//! Actions that begin again later, because the webhook that judges their write cannot be called yet.
//!
//! For each webhook, one action is the probe: it is begun again after the pauses of `starting_webhooks`. The other
//! actions of the webhook begin again once the webhook has judged the probe. The time limit of a webhook runs only
//! while nothing else is left to do, because another action of the run may start the webhook.

use std::collections::BTreeMap;

use tokio::time::Instant;

use crate::cluster::apiserver::UnreachableWebhook;
use crate::execute::starting_webhooks::StartingWebhooks;
use crate::plan::NodeId;

/// Postponed actions with the latest answer of each, by the name of their webhook.
pub(super) struct Postponed<'a, A> {
    webhooks: StartingWebhooks<'a>,
    queues: BTreeMap<String, Queue<A>>,
    /// Actions that may begin again and have not yet begun, probes among them.
    resumed: BTreeMap<NodeId, A>,
}

/// The actions that wait for one webhook.
struct Queue<A> {
    waiting: Vec<(NodeId, A)>,
    /// The action that begins again, or is under way again, to find out whether the webhook can be called.
    probe: Option<NodeId>,
    failed_probes: u32,
    /// The end of the latest probe, or of the first write that the webhook could not judge.
    last_failure: Instant,
}

/// The consequences of an answer.
pub(super) struct AnswerEffect<A> {
    /// The actions that end, with their answers; empty if the action of the answer is postponed.
    pub(super) ended: Vec<(NodeId, A)>,
    /// The actions that begin again now.
    pub(super) resumed: Vec<NodeId>,
}

impl<'a, A> Postponed<'a, A> {
    /// Creates a collection without actions. The time limits of these webhooks stand still until `start_time_limits`.
    pub(super) fn new(webhooks: StartingWebhooks<'a>) -> Self {
        webhooks.stop_time_limits();
        Self {
            webhooks,
            queues: BTreeMap::new(),
            resumed: BTreeMap::new(),
        }
    }

    /// Takes the answer of an action. If a `webhook` could not be called, the action is postponed as long as the run
    /// waits for that webhook.
    pub(super) fn postpone_or_end(
        &mut self,
        id: NodeId,
        answer: A,
        webhook: Option<&UnreachableWebhook>,
    ) -> AnswerEffect<A> {
        let mut queues = self.queues.iter();
        let probed = queues.find_map(|(name, queue)| (queue.probe == Some(id)).then(|| name.clone()));
        let Some(webhook) = webhook else {
            let queue = probed.and_then(|name| self.queues.remove(&name));
            let others = queue.map(|queue| queue.waiting).unwrap_or_default();
            let resumed = others.iter().map(|(other, _)| *other).collect();
            self.resumed.extend(others);
            return AnswerEffect {
                ended: vec![(id, answer)],
                resumed,
            };
        };
        // If several webhooks cannot be called, the server names only one of them. So if the answer to a probe names
        // another webhook than the probed one, the probed one may still be down: the action stays in its queue.
        let name = probed.unwrap_or_else(|| webhook.name.clone());
        let is_awaited = self.webhooks.start_or_continue_wait(webhook) && !self.webhooks.is_time_over(&name);
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
            queue.last_failure = Instant::now();
        }
        queue.waiting.push((id, answer));
        AnswerEffect {
            ended: Vec::new(),
            resumed: Vec::new(),
        }
    }

    /// Records that an action begins.
    pub(super) fn record_begin(&mut self, id: NodeId) {
        self.resumed.remove(&id);
    }

    /// Returns the number of probes that are under way.
    pub(super) fn count_probes_under_way(&self) -> usize {
        self.queues
            .values()
            .filter_map(|queue| queue.probe)
            .filter(|id| !self.resumed.contains_key(id))
            .count()
    }

    /// Returns the time at which the next probe begins; `None` if no webhook waits for its next probe.
    pub(super) fn next_probe_time(&self) -> Option<Instant> {
        self.queues
            .iter()
            .filter(|(_, queue)| queue.probe.is_none())
            .map(|(name, queue)| self.next_probe_of(name, queue))
            .min()
    }

    fn next_probe_of(&self, name: &String, queue: &Queue<A>) -> Instant {
        let names = std::iter::once(name);
        self.webhooks
            .next_attempt_time(queue.last_failure, queue.failed_probes, names)
    }

    /// Makes the first waiting action of each webhook whose pause is over the next probe, and returns these actions.
    pub(super) fn take_due_probes(&mut self) -> Vec<NodeId> {
        let now = Instant::now();
        let queues = self.queues.iter();
        let due =
            queues.filter(|(name, queue)| queue.probe.is_none() && self.next_probe_of(name, queue) <= now);
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

    /// Removes and returns all actions, with their latest answers: none begins again.
    pub(super) fn give_up_all(&mut self) -> Vec<(NodeId, A)> {
        let queues = std::mem::take(&mut self.queues).into_values();
        let resumed = std::mem::take(&mut self.resumed);
        queues.flat_map(|queue| queue.waiting).chain(resumed).collect()
    }

    /// Lets the time limits of the webhooks run.
    pub(super) fn start_time_limits(&self) {
        self.webhooks.start_time_limits();
    }

    /// Lets the time limits of the webhooks stand still.
    pub(super) fn stop_time_limits(&self) {
        self.webhooks.stop_time_limits();
    }
}

impl<A> Queue<A> {
    fn new() -> Self {
        Self {
            waiting: Vec::new(),
            probe: None,
            failed_probes: 0,
            last_failure: Instant::now(),
        }
    }
}
