//! Sets objects aside whose webhooks cannot be called yet, so that the steps of the run continue (see `steps`).
//!
//! While the run waits for something else, and once the other objects are written, one object for each
//! webhook is sent again, with growing pauses, and the others once that one got through.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use crate::event::Event;
use crate::execute::concurrent_writes::{ConcurrentWrites, WriteEvent};
use crate::execute::kinds::Kinds;
use crate::execute::members::apply::MemberReply;
use crate::execute::starting_webhooks::StartingWebhooks;
use crate::execute::{Execution, Sink};
use crate::plan::Apply;

/// Objects whose webhooks cannot be called yet.
pub(crate) struct SetAside<'w> {
    pub(crate) webhooks: StartingWebhooks<'w>,
    /// By the name of the webhook: each object with its latest answer.
    waiting: BTreeMap<String, Vec<(&'w Apply, MemberReply)>>,
    /// Webhooks that could not be called in the latest round.
    refused: BTreeSet<String>,
    /// The objects of the latest round, by their indexes, that find out whether a webhook can be called.
    probes: BTreeMap<usize, String>,
    /// Rounds in which no webhook could be called.
    vain_rounds: u32,
    /// The end of the latest round, if a next one is due.
    since: Option<Instant>,
}

/// What is sent at once.
pub(crate) struct Round<'w> {
    /// Objects to send.
    pub(crate) objects: Vec<&'w Apply>,
    /// Answers of objects that are not sent again.
    pub(crate) given_up: Vec<(&'w Apply, MemberReply)>,
}

impl<'w> Round<'w> {
    /// A round of objects that were not sent yet.
    pub(crate) fn of(objects: Vec<&'w Apply>) -> Self {
        Self {
            objects,
            given_up: Vec::new(),
        }
    }
}

impl Execution<'_> {
    /// Sends these objects. `answered` gets the answer of each, except of those that are set aside.
    pub(in crate::execute) async fn apply_all<'w>(
        &self,
        objects: Vec<&'w Apply>,
        set_aside: &mut SetAside<'w>,
        kinds: &Kinds,
        writes: &mut ConcurrentWrites<'_>,
        mut answered: impl FnMut(&Apply, MemberReply, &mut Sink<'_>),
        sink: &mut Sink<'_>,
    ) {
        let write = async |apply| (apply, self.apply_member(apply, kinds).await);
        let reported = |news: WriteEvent<(_, MemberReply)>| match news {
            WriteEvent::Slowest(slowest) => sink(Event::Slowest(slowest)),
            WriteEvent::Note(text) => sink(Event::Note(text)),
            WriteEvent::Answer((apply, reply)) => {
                for (apply, reply) in set_aside.take(apply, reply) {
                    answered(apply, reply, sink);
                }
            }
        };
        let items = objects.into_iter().map(|apply| (self.key(apply), apply));
        writes.each(items, write, reported).await;
    }
}

impl<'w> SetAside<'w> {
    pub(crate) fn new(webhooks: StartingWebhooks<'w>) -> Self {
        Self {
            webhooks,
            waiting: BTreeMap::new(),
            refused: BTreeSet::new(),
            probes: BTreeMap::new(),
            vain_rounds: 0,
            since: None,
        }
    }

    /// Returns the objects.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &'w Apply> {
        self.waiting.values().flatten().map(|(apply, _)| *apply)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sets an object aside if its webhook can still be waited for. Returns the objects that are not sent again, with
    /// their answers: this one, and those that wait for the same webhook.
    fn take(&mut self, apply: &'w Apply, reply: MemberReply) -> Vec<(&'w Apply, MemberReply)> {
        let Some(webhook) = &reply.webhook else {
            return vec![(apply, reply)];
        };
        self.refused.insert(webhook.name.clone());
        // The server names one of several webhooks, so this says nothing of the one that was asked for.
        self.refused.extend(self.probes.remove(&apply.index));
        let is_awaited = self.webhooks.awaits(webhook);
        let mut objects = self.waiting.remove(&webhook.name).unwrap_or_default();
        let name = webhook.name.clone();
        objects.push((apply, reply));
        if is_awaited {
            self.waiting.insert(name, std::mem::take(&mut objects));
        }
        objects
    }

    /// Returns the time of the next round; `None` if nothing is set aside.
    pub(crate) fn next_round(&mut self) -> Option<Instant> {
        if self.waiting.is_empty() {
            return None;
        }
        let now = Instant::now();
        if !self.waiting.keys().all(|name| self.refused.contains(name)) {
            // A webhook can be called.
            self.vain_rounds = 0;
            return Some(now);
        }
        let since = *self.since.get_or_insert(now);
        Some(
            self.webhooks
                .next_attempt(since, self.vain_rounds, self.waiting.keys()),
        )
    }

    /// Chooses what is sent in the next round: one object for each webhook that could not be called, and
    /// all objects of the others. Nothing is sent once the run has to stop.
    pub(crate) fn round(&mut self) -> Round<'w> {
        self.since = None;
        self.vain_rounds += 1;
        let refused = std::mem::take(&mut self.refused);
        self.probes.clear();
        let mut round = Round::of(Vec::new());
        for (name, mut objects) in std::mem::take(&mut self.waiting) {
            if self.webhooks.interrupt.is_requested() {
                round.given_up.extend(objects);
                continue;
            }
            if refused.contains(&name) {
                let others = objects.split_off(1);
                let probes = objects.iter().map(|(apply, _)| (apply.index, name.clone()));
                self.probes.extend(probes);
                if !others.is_empty() {
                    self.waiting.insert(name, others);
                }
            }
            round.objects.extend(objects.into_iter().map(|(apply, _)| apply));
        }
        round
    }
}
