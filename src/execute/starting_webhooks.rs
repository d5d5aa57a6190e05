//! Webhooks that the API server cannot call yet, because their Pods are still starting.
//!
//! The server answers 500 to a write that such a webhook has to judge, and has written nothing. The write is sent
//! again, with growing pauses, until the time limit of the webhook is over (`WebhookPatience` in
//! `model/write_settings`). A write that a webhook refuses is not sent again. Neither is a dry run: it starts no
//! webhook, so it would wait in vain.
//!
//! Writes of the parent wait here. Those of other objects wait in `schedule/postponed`, so that they do not hold up
//! each other.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::iter;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::cluster::apiserver::{
    ApiError, ApiRequest, ApiServer, EarlierAttempts, Reply, UnreachableWebhook,
};
use crate::event::Interrupt;
use crate::execute::wait_notes::WaitNotes;

/// The pause before the second attempt; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// The webhooks that a group of writes waits for: how long the writes wait, when they are sent again, and what is
/// reported.
pub struct StartingWebhooks<'a> {
    pub interrupt: &'a Interrupt,
    pub notes: &'a WaitNotes,
    /// The time limit of each webhook, from the first write that it could not judge; `None` without a limit, so that
    /// only an interrupt ends the wait.
    patience: Option<Duration>,
    /// `true` while the time limits run.
    is_clock_running: Cell<bool>,
    /// The webhooks that writes have waited for, by name, each with the end of its time limit; `None` while the limit
    /// does not run. All writes of the group share the limit.
    deadlines: RefCell<BTreeMap<String, Option<Instant>>>,
}

impl<'a> StartingWebhooks<'a> {
    /// Creates the waits of writes that wait this long for each webhook; `None` without a limit.
    pub fn new(patience: Option<Duration>, interrupt: &'a Interrupt, notes: &'a WaitNotes) -> Self {
        Self {
            interrupt,
            notes,
            patience,
            is_clock_running: Cell::new(true),
            deadlines: RefCell::default(),
        }
    }

    /// Sends a request. Sends it again as long as its webhook cannot be called and the wait for that webhook is not
    /// over.
    pub async fn send(&self, server: &ApiServer, request: ApiRequest) -> Result<Reply, ApiError> {
        let mut failed_attempts = 0;
        let mut earlier_attempts = EarlierAttempts::NoEffect;
        loop {
            let mut error = match server.send(request.clone()).await {
                Ok(reply) => return Ok(reply.add_earlier_attempts(earlier_attempts)),
                Err(error) => error,
            };
            earlier_attempts = earlier_attempts.combine_with(error.earlier_attempts);
            error.earlier_attempts = earlier_attempts;
            if !self.pause_before_retry(&error, failed_attempts).await {
                return Err(error);
            }
            failed_attempts += 1;
        }
    }

    /// Waits until the time of the next attempt. `failed_attempts` is the number of attempts before the one that failed
    /// with this error. Returns `false` if another attempt makes no sense: it is not the error of a webhook that cannot
    /// be called, the wait for that webhook is over, or the run has to stop.
    pub async fn pause_before_retry(&self, error: &ApiError, failed_attempts: u32) -> bool {
        let webhook =
            UnreachableWebhook::from_error(error).filter(|webhook| self.start_or_continue_wait(webhook));
        let Some(webhook) = webhook else {
            return false;
        };
        let next = self.next_attempt_time(Instant::now(), failed_attempts, iter::once(&webhook.name));
        tokio::select! {
            () = self.interrupt.wait_until_requested() => false,
            () = sleep_until(next) => true,
        }
    }

    /// Returns whether a write that this webhook could not judge may wait and be sent again. The first call for a
    /// webhook starts its time limit, and adds a note about the wait.
    pub fn start_or_continue_wait(&self, webhook: &UnreachableWebhook) -> bool {
        let mut deadlines = self.deadlines.borrow_mut();
        let is_new = !deadlines.contains_key(&webhook.name);
        let deadline = deadlines.entry(webhook.name.clone()).or_default();
        *deadline = deadline.or_else(|| self.deadline_from_now());
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

    /// Returns whether the time limit of the webhook with this name is over.
    pub fn is_time_over(&self, name: &str) -> bool {
        let deadline = self.deadlines.borrow().get(name).copied().flatten();
        deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Returns the time of the next attempt, if the latest one ended at `last_failure` after `failed_attempts` others.
    /// The next attempt is made at the latest when the time limit of one of these webhooks is over.
    pub fn next_attempt_time<'n>(
        &self,
        last_failure: Instant,
        failed_attempts: u32,
        names: impl Iterator<Item = &'n String>,
    ) -> Instant {
        // The bound on the exponent prevents an overflow; the longest pause is reached before.
        let pause = (FIRST_PAUSE * 2_u32.pow(failed_attempts.min(10))).min(LONGEST_PAUSE);
        let deadlines = self.deadlines.borrow();
        let ends = names.filter_map(|name| deadlines.get(name).copied().flatten());
        ends.fold(last_failure + pause, Instant::min)
    }

    /// Stops the time limits of all webhooks. A run calls this while it still has other things to do, since these may
    /// start the webhooks.
    pub fn stop_time_limits(&self) {
        if self.is_clock_running.replace(false) {
            self.set_deadlines(None);
        }
    }

    /// Starts the time limits of all webhooks from the beginning, unless they run already.
    pub fn start_time_limits(&self) {
        if !self.is_clock_running.replace(true) {
            self.set_deadlines(self.deadline_from_now());
        }
    }

    /// Returns the end of a time limit that starts now; `None` without a limit, or if the limits do not run.
    fn deadline_from_now(&self) -> Option<Instant> {
        let patience = self.patience.filter(|_| self.is_clock_running.get())?;
        Instant::now().checked_add(patience)
    }

    fn set_deadlines(&self, new_deadline: Option<Instant>) {
        let mut deadlines = self.deadlines.borrow_mut();
        deadlines
            .values_mut()
            .for_each(|deadline| *deadline = new_deadline);
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
        let webhooks = StartingWebhooks::new(patience, &interrupt, &notes);
        let [one, two] = ["one", "two"].map(|name| UnreachableWebhook::new(name.to_owned(), "EOF"));
        assert!(webhooks.start_or_continue_wait(&one));
        advance(Duration::from_secs(20)).await;
        assert!(webhooks.start_or_continue_wait(&two));
        advance(Duration::from_secs(10)).await;
        assert_eq!(
            [&one, &two].map(|webhook| webhooks.start_or_continue_wait(webhook)),
            [false, true]
        );
        webhooks.stop_time_limits();
        advance(Duration::from_mins(10)).await;
        assert_eq!(
            [&one, &two].map(|webhook| webhooks.start_or_continue_wait(webhook)),
            [true, true]
        );
        webhooks.start_time_limits();
        let (now, both) = (Instant::now(), [one.name.clone(), two.name.clone()]);
        for (failed_attempts, pause) in [(0, 250), (1, 500), (3, 2_000), (9, 4_000)] {
            let next = webhooks.next_attempt_time(now, failed_attempts, both.iter());
            assert_eq!(next - now, Duration::from_millis(pause), "{failed_attempts}");
        }
        advance(Duration::from_secs(29)).await;
        let last = webhooks.next_attempt_time(Instant::now(), 9, both.iter());
        assert_eq!(last - now, Duration::from_secs(30));
        advance(Duration::from_secs(1)).await;
        assert_eq!(
            [&one, &two].map(|webhook| webhooks.start_or_continue_wait(webhook)),
            [false, false]
        );
        let mut count = 0;
        let mut counted = |event| count += usize::from(matches!(event, Event::Note(_)));
        notes.work_while_reporting(async {}, &mut counted).await;
        assert_eq!(count, 2);
    }
}
