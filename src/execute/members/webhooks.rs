//! Webhooks that the API server cannot call yet, because their Pods are still starting.
//!
//! The server answers 500 to a write that such a webhook has to judge, and has written nothing. The
//! objects are set aside, and the steps of the run continue (see `steps`). While the run waits for
//! something else, and once the other objects are written, one object for each webhook is sent again,
//! with growing pauses, and the others once that one got through. What a webhook answers, such as a
//! refusal, is not retried, and neither are dry runs, which do not start a webhook.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::cluster::apiserver::{ApiError, Status};
use crate::event::Event;
use crate::execute::concurrency_limit::ConcurrencyLimit;
use crate::execute::concurrent_writes::{WriteEvent, each};
use crate::execute::kinds::Kinds;
use crate::execute::members::apply::MemberReply;
use crate::execute::{Execution, Interrupt, Sink};
use crate::plan::Apply;

/// The pause before the second attempt; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// Returns the pause after so many attempts in vain.
pub(crate) fn pause(vain: u32) -> Duration {
    (FIRST_PAUSE * 2_u32.pow(vain.min(10))).min(LONGEST_PAUSE)
}

/// A webhook that could not be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreachable {
    /// Name in messages, such as `webhook "webhook.cert-manager.io"`.
    name: String,
    /// The server's reason.
    reason: String,
}

/// The webhooks that a run has waited for.
#[derive(Debug, Default)]
pub(crate) struct Webhooks {
    /// The webhooks that were reported.
    reported: BTreeSet<String>,
    clock: Clock,
    /// The end of the wait for each webhook; `None` if only the run ends it.
    deadlines: BTreeMap<String, Option<Instant>>,
    /// Webhooks that could still not be called at the end of their wait.
    given_up: BTreeSet<String>,
}

/// The time that webhooks have.
#[derive(Debug, Clone, Copy, Default)]
enum Clock {
    /// It has not begun: the run still has other things to do, which may start the webhook.
    #[default]
    Stopped,
    /// Each webhook has this time from its first refusal on; `None` if only the run ends it.
    Running(Option<Duration>),
}

/// Objects whose webhooks cannot be called yet.
#[derive(Default)]
pub(crate) struct SetAside<'w> {
    /// By the name of the webhook: each object with its latest answer.
    waiting: BTreeMap<String, Vec<(&'w Apply, MemberReply)>>,
    /// Webhooks that could not be called in the latest round.
    refused: BTreeSet<String>,
    /// The objects of the latest round, by their indexes, that find out whether a webhook can be called.
    probes: BTreeMap<usize, String>,
    /// Rounds in which no webhook could be called.
    vain_rounds: u32,
    /// The time of the next round, once it is known.
    next: Option<Instant>,
}

/// What a run knows when it sends objects.
pub(crate) struct Sending<'p> {
    pub(crate) kinds: &'p Kinds,
    pub(crate) webhooks: &'p mut Webhooks,
    pub(crate) concurrency_limit: &'p mut ConcurrencyLimit,
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

impl Unreachable {
    /// Reads the error of a write.
    pub(crate) fn of(error: &ApiError) -> Option<Self> {
        error.status().and_then(Self::of_status)
    }

    /// Reads the server's messages (apiserver, `pkg/util/webhook/error.go`, `pkg/util/proxy/proxy.go` and
    /// `pkg/admission/plugin/webhook`; apiextensions-apiserver, `conversion/webhook_converter.go`). Older
    /// servers write the reason without `failed to call webhook`.
    fn of_status(status: &Status) -> Option<Self> {
        if ![500, 503].contains(&status.code) {
            return None;
        }
        let message = &status.message;
        if let Some((_, rest)) = message.split_once("failed calling webhook \"") {
            let (name, reason) = rest.split_once("\": ")?;
            let reason = reason.strip_prefix("failed to call webhook: ").or_else(|| {
                // The answer of a webhook is read later, and is another failure.
                reason.starts_with("Post ").then_some(reason)
            })?;
            return Some(Self::new(format!("webhook {name:?}"), reason));
        }
        if let Some((_, rest)) = message.split_once("conversion webhook for ") {
            let (kind, reason) = rest.split_once(" failed: ")?;
            let name = format!("conversion webhook for {kind}");
            return reason.starts_with("Post ").then(|| Self::new(name, reason));
        }
        let (_, rest) = message.split_once("no endpoints available for service \"")?;
        let (name, _) = rest.split_once('"')?;
        Some(Self::new(format!("service {name:?}"), "it has no endpoints"))
    }

    fn new(name: String, reason: &str) -> Self {
        Self {
            name,
            reason: reason.to_owned(),
        }
    }

    /// Returns the name of the webhook in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns what is waited for, and why.
    pub(crate) fn text(&self) -> String {
        format!("{}, which cannot be called yet: {}", self.name, self.reason)
    }
}

impl Webhooks {
    /// Stops the time of all webhooks, which begins again with the next [`Self::start`].
    pub(crate) fn stop_clock(&mut self) {
        self.clock = Clock::Stopped;
        self.deadlines.clear();
        self.given_up.clear();
    }

    /// Starts the time of the webhooks of these objects, unless it runs.
    pub(crate) fn start(&mut self, patience: Option<Duration>, set_aside: &SetAside<'_>) {
        if let Clock::Stopped = self.clock {
            self.clock = Clock::Running(patience);
            for name in set_aside.waiting.keys() {
                self.begin(name);
            }
        }
    }

    /// Begins the time of a webhook, unless that has begun.
    fn begin(&mut self, name: &str) {
        if let Clock::Running(patience) = self.clock
            && !self.deadlines.contains_key(name)
        {
            let deadline = patience.and_then(|patience| Instant::now().checked_add(patience));
            self.deadlines.insert(name.to_owned(), deadline);
        }
    }

    fn deadline(&self, name: &str) -> Option<Instant> {
        self.deadlines.get(name).copied().flatten()
    }

    fn is_over(&self, name: &str) -> bool {
        self.deadline(name)
            .is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl Execution<'_> {
    /// Sends these objects. `answered` gets the answer of each, except of those that are set aside.
    pub(in crate::execute) async fn apply_all<'w>(
        &self,
        objects: Vec<&'w Apply>,
        set_aside: &mut SetAside<'w>,
        sending: Sending<'_>,
        mut answered: impl FnMut(&Apply, MemberReply, &mut Sink<'_>),
        sink: &mut Sink<'_>,
    ) {
        let Sending {
            kinds,
            webhooks,
            concurrency_limit,
        } = sending;
        let write = async |apply| (apply, self.apply_member(apply, kinds).await);
        let reported = |news: WriteEvent<(_, MemberReply)>| {
            // A write that waits is slow, so its note is reported within a second.
            for note in self.wait_notes.take() {
                sink(Event::Note(note));
            }
            match news {
                WriteEvent::Slowest(slowest) => sink(Event::Slowest(slowest)),
                WriteEvent::Note(text) => sink(Event::Note(text)),
                WriteEvent::Answer((apply, reply)) => {
                    if let Some(reply) = set_aside.take(apply, reply, webhooks, sink) {
                        answered(apply, reply, sink);
                    }
                }
            }
        };
        let items = objects.into_iter().map(|apply| (self.key(apply), apply));
        each(
            self.server,
            self.interrupt,
            items,
            write,
            concurrency_limit,
            reported,
        )
        .await;
    }
}

impl<'w> SetAside<'w> {
    /// Returns the objects.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &'w Apply> {
        self.waiting.values().flatten().map(|(apply, _)| *apply)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sets an object aside if its webhook can still be waited for; else returns the answer.
    fn take(
        &mut self,
        apply: &'w Apply,
        reply: MemberReply,
        webhooks: &mut Webhooks,
        sink: &mut Sink<'_>,
    ) -> Option<MemberReply> {
        let Some(unreachable) = &reply.webhook else {
            return Some(reply);
        };
        let name = unreachable.name.clone();
        if webhooks.reported.insert(name.clone()) {
            sink(Event::Note(format!("waiting for {}", unreachable.text())));
        }
        self.refused.insert(name.clone());
        // The server names one of several webhooks, so this says nothing of the one that was asked for.
        self.refused.extend(self.probes.remove(&apply.index));
        webhooks.begin(&name);
        if webhooks.is_over(&name) {
            webhooks.given_up.insert(name);
            return Some(reply);
        }
        self.waiting.entry(name).or_default().push((apply, reply));
        None
    }

    /// Returns the time of the next round; `None` if nothing is set aside.
    pub(crate) fn next_round(&mut self, webhooks: &Webhooks) -> Option<Instant> {
        if self.waiting.is_empty() {
            return None;
        }
        let now = Instant::now();
        if !self.waiting.keys().all(|name| self.refused.contains(name)) {
            // A webhook can be called.
            self.vain_rounds = 0;
            return Some(now);
        }
        let next = *self.next.get_or_insert(now + pause(self.vain_rounds));
        let deadlines = self.waiting.keys().filter_map(|name| webhooks.deadline(name));
        Some(deadlines.fold(next, Instant::min))
    }

    /// Chooses what is sent in the next round: one object for each webhook that could not be called, and
    /// all objects of the others.
    pub(crate) fn round(&mut self, webhooks: &Webhooks, interrupt: &Interrupt) -> Round<'w> {
        self.next = None;
        self.vain_rounds += 1;
        let refused = std::mem::take(&mut self.refused);
        self.probes.clear();
        let mut round = Round::of(Vec::new());
        for (name, mut objects) in std::mem::take(&mut self.waiting) {
            if interrupt.is_requested() || webhooks.given_up.contains(&name) {
                round.given_up.extend(objects);
            } else if refused.contains(&name) {
                let others = objects.split_off(1);
                let probes = objects.iter().map(|(apply, _)| (apply.index, name.clone()));
                self.probes.extend(probes);
                round.objects.extend(objects.into_iter().map(|(apply, _)| apply));
                if !others.is_empty() {
                    self.waiting.insert(name, others);
                }
            } else {
                round.objects.extend(objects.into_iter().map(|(apply, _)| apply));
            }
        }
        round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: u16, message: &str) -> Option<(String, String)> {
        let status = Status {
            code,
            message: message.to_owned(),
            ..Status::default()
        };
        Unreachable::of_status(&status).map(|found| (found.name, found.reason))
    }

    #[test]
    fn webhooks_that_cannot_be_called_are_read_from_the_servers_messages() {
        let called = "Internal error occurred: failed calling webhook \"webhook.cert-manager.io\": ";
        let post = "Post \"https://cert-manager-webhook.cert-manager.svc:443/validate?timeout=30s\": ";
        let of_cert_manager = Some("webhook \"webhook.cert-manager.io\"");
        let table = [
            (
                500,
                format!(
                    "{called}failed to call webhook: {post}dial tcp 10.0.0.1:443: connect: connection refused"
                ),
                of_cert_manager,
            ),
            (
                500,
                format!(
                    "{called}failed to call webhook: {post}no endpoints available for service \"cert-manager-webhook\""
                ),
                of_cert_manager,
            ),
            (
                500,
                format!("{called}failed to call webhook: {post}service \"cert-manager-webhook\" not found"),
                of_cert_manager,
            ),
            (
                500,
                format!(
                    "{called}failed to call webhook: {post}tls: failed to verify certificate: x509: certificate signed by unknown authority"
                ),
                of_cert_manager,
            ),
            (
                500,
                format!("{called}failed to call webhook: {post}context deadline exceeded"),
                of_cert_manager,
            ),
            (
                500,
                format!(
                    "{called}failed to call webhook: the server is currently unable to handle the request"
                ),
                of_cert_manager,
            ),
            (
                503,
                format!("{called}failed to call webhook: {post}EOF"),
                of_cert_manager,
            ),
            (
                500,
                format!("{called}{post}dial tcp: connection refused"),
                of_cert_manager,
            ),
            (
                500,
                format!("conversion webhook for cert-manager.io/v1, Kind=Certificate failed: {post}EOF"),
                Some("conversion webhook for cert-manager.io/v1, Kind=Certificate"),
            ),
            (
                503,
                "no endpoints available for service \"metrics\"".to_owned(),
                Some("service \"metrics\""),
            ),
            // The webhook has answered, or is misconfigured.
            (
                500,
                format!("{called}received invalid webhook response: expected response.uid=\"a\", got \"\""),
                None,
            ),
            (500, format!("{called}Webhook SideEffects is nil"), None),
            (
                400,
                "admission webhook \"w.example.com\" does not support dry run".to_owned(),
                None,
            ),
            (
                403,
                "admission webhook \"w.example.com\" denied the request: failed to call webhook".to_owned(),
                None,
            ),
            (403, format!("{called}failed to call webhook: {post}EOF"), None),
            (
                500,
                "conversion webhook for a/v1, Kind=B failed: the object is broken".to_owned(),
                None,
            ),
            (500, "etcdserver: leader changed".to_owned(), None),
            (
                503,
                "the server is currently unable to handle the request".to_owned(),
                None,
            ),
        ];
        for (code, message, expected) in table {
            let found = read(code, &message).map(|(name, _)| name);
            assert_eq!(found.as_deref(), expected, "{code} {message}");
        }
        let (_, reason) =
            read(500, &format!("{called}failed to call webhook: {post}EOF")).expect("a webhook");
        assert_eq!(reason, format!("{post}EOF"));
    }
}
