//! Webhooks that the API server cannot call yet, because their Pods are still starting.
//!
//! The server answers 500 to a write that such a webhook has to judge, and has written nothing. The write is sent
//! again, with growing pauses, until the time of the webhook is over (`WebhookPatience` in `model/write_settings`).
//! What a webhook answers, such as a refusal, is not retried, and neither are dry runs, which do not start a webhook.
//!
//! Writes of the parent wait here. Those of other objects need not wait for each other: see `postponed`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::iter;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::cluster::apiserver::{
    ApiError, ApiRequest, ApiServer, EarlierAttempts, Reply, UnreachableWebhook,
};
use crate::execute::Interrupt;
use crate::execute::wait_notes::WaitNotes;
use crate::model::write_settings::{DryRun, WriteSettings};

/// The pause before the second attempt; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// The webhooks that some writes wait for: how long the writes wait, how often they are sent again, and what is
/// reported.
pub struct StartingWebhooks<'a> {
    pub interrupt: &'a Interrupt,
    pub notes: &'a WaitNotes,
    /// The time of each webhook from its first refusal on; `None` if only the run ends it.
    patience: Option<Duration>,
    /// `true` while the time limits run.
    runs: Cell<bool>,
    /// The webhooks that were waited for, each with the end of its time, which all writes share.
    deadlines: RefCell<BTreeMap<String, Option<Instant>>>,
}

impl<'a> StartingWebhooks<'a> {
    /// Creates the waits of some writes. A dry run starts no webhook, so it does not wait.
    pub fn new(writing: &WriteSettings, interrupt: &'a Interrupt, notes: &'a WaitNotes) -> Self {
        let patience = match writing.dry_run {
            DryRun::None => writing.webhook_patience.at_end,
            DryRun::Client | DryRun::Server => Some(Duration::ZERO),
        };
        Self::with_patience(patience, interrupt, notes)
    }

    /// Creates the waits of some writes, each webhook of which has this time; `None` if only the run ends it.
    pub fn with_patience(patience: Option<Duration>, interrupt: &'a Interrupt, notes: &'a WaitNotes) -> Self {
        Self {
            interrupt,
            notes,
            patience,
            runs: Cell::new(true),
            deadlines: RefCell::default(),
        }
    }

    /// Sends a request, and again as long as its webhook cannot be called and may be waited for.
    pub async fn send(&self, server: &ApiServer, request: ApiRequest) -> Result<Reply, ApiError> {
        let mut vain = 0;
        let mut earlier_attempts = EarlierAttempts::NoEffect;
        loop {
            let mut error = match server.send(request.clone()).await {
                Ok(reply) => return Ok(reply.after(earlier_attempts)),
                Err(error) => error,
            };
            earlier_attempts = earlier_attempts.or(error.earlier_attempts);
            error.earlier_attempts = earlier_attempts;
            if !self.pause_after(&error, vain).await {
                return Err(error);
            }
            vain += 1;
        }
    }

    /// Waits until a request is to be sent again that failed with this error, after `vain` attempts before it. Returns
    /// `false` at once if no webhook is waited for because of it, or as soon as the user stops the run.
    pub async fn pause_after(&self, error: &ApiError, vain: u32) -> bool {
        let webhook = UnreachableWebhook::from_error(error).filter(|webhook| self.awaits(webhook));
        let Some(webhook) = webhook else {
            return false;
        };
        let next = self.next_attempt(Instant::now(), vain, iter::once(&webhook.name));
        tokio::select! {
            () = self.interrupt.requested() => false,
            () = sleep_until(next) => true,
        }
    }

    /// Returns whether a write is sent again that this webhook could not judge. Notes what is waited for, once.
    pub fn awaits(&self, webhook: &UnreachableWebhook) -> bool {
        let mut deadlines = self.deadlines.borrow_mut();
        let is_new = !deadlines.contains_key(&webhook.name);
        let deadline = deadlines.entry(webhook.name.clone()).or_default();
        *deadline = deadline.or_else(|| self.end_of_time());
        let is_over =
            self.interrupt.is_requested() || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_new && !is_over {
            let UnreachableWebhook { name, reason } = webhook;
            self.notes.add(format!(
                "waiting for {name}, which cannot be called yet: {reason}"
            ));
        }
        !is_over
    }

    /// Returns whether the time of this webhook is over.
    pub fn is_time_over(&self, name: &str) -> bool {
        let deadline = self.deadlines.borrow().get(name).copied().flatten();
        deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Returns the time of the next attempt after `vain` failed ones, the last of which ended at `since`: at the latest
    /// when the time of one of these webhooks is over.
    pub fn next_attempt<'n>(
        &self,
        since: Instant,
        vain: u32,
        names: impl Iterator<Item = &'n String>,
    ) -> Instant {
        let pause = (FIRST_PAUSE * 2_u32.pow(vain.min(10))).min(LONGEST_PAUSE);
        let deadlines = self.deadlines.borrow();
        let ends = names.filter_map(|name| deadlines.get(name).copied().flatten());
        ends.fold(since + pause, Instant::min)
    }

    /// Stops the time of all webhooks: the run still has other things to do, which may start them.
    pub fn stop_clock(&self) {
        if self.runs.replace(false) {
            self.set_deadlines(None);
        }
    }

    /// Starts the time of all webhooks, unless it runs.
    pub fn start_clock(&self) {
        if !self.runs.replace(true) {
            self.set_deadlines(self.end_of_time());
        }
    }

    /// Returns the end of the time of a webhook that begins to be waited for now.
    fn end_of_time(&self) -> Option<Instant> {
        let patience = self.patience.filter(|_| self.runs.get())?;
        Instant::now().checked_add(patience)
    }

    fn set_deadlines(&self, end: Option<Instant>) {
        let mut deadlines = self.deadlines.borrow_mut();
        deadlines.values_mut().for_each(|deadline| *deadline = end);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::event::Event;

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_webhook_begins_with_its_first_refusal_unless_the_clock_stands() {
        let (interrupt, notes) = (Interrupt::default(), WaitNotes::default());
        let patience = Some(Duration::from_secs(30));
        let webhooks = StartingWebhooks::with_patience(patience, &interrupt, &notes);
        let [one, two] = ["one", "two"].map(|name| UnreachableWebhook::new(name.to_owned(), "EOF"));
        assert!(webhooks.awaits(&one));
        advance(Duration::from_secs(20)).await;
        assert!(webhooks.awaits(&two));
        advance(Duration::from_secs(10)).await;
        assert_eq!(
            [&one, &two].map(|webhook| webhooks.awaits(webhook)),
            [false, true]
        );
        webhooks.stop_clock();
        advance(Duration::from_mins(10)).await;
        assert_eq!([&one, &two].map(|webhook| webhooks.awaits(webhook)), [true, true]);
        webhooks.start_clock();
        let (now, both) = (Instant::now(), [one.name.clone(), two.name.clone()]);
        for (vain, pause) in [(0, 250), (1, 500), (3, 2_000), (9, 4_000)] {
            let next = webhooks.next_attempt(now, vain, both.iter());
            assert_eq!(next - now, Duration::from_millis(pause), "{vain}");
        }
        advance(Duration::from_secs(29)).await;
        let last = webhooks.next_attempt(Instant::now(), 9, both.iter());
        assert_eq!(last - now, Duration::from_secs(30));
        advance(Duration::from_secs(1)).await;
        assert_eq!(
            [&one, &two].map(|webhook| webhooks.awaits(webhook)),
            [false, false]
        );
        let mut count = 0;
        let mut counted = |event| count += usize::from(matches!(event, Event::Note(_)));
        notes.reporting(async {}, &mut counted).await;
        assert_eq!(count, 2);
    }
}
