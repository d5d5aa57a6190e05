//! Repeats single writes while a webhook that judges them cannot be called yet: those of the parent, and
//! deletes. `members::webhooks` does so for the objects of the manifests, which need not wait for each
//! other.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::cluster::apiserver::{ApiError, ApiRequest, ApiServer, EarlierAttempts, Reply};
use crate::execute::Interrupt;
use crate::execute::members::webhooks::{Unreachable, pause};
use crate::model::write_settings::{DryRun, WriteSettings};

/// The webhooks that writes wait for.
pub(crate) struct StartingWebhooks<'a> {
    interrupt: &'a Interrupt,
    /// The time for each webhook; `None` if only the run ends it.
    patience: Option<Duration>,
    /// The end of the wait for each webhook that was waited for, which all writes share.
    deadlines: RefCell<BTreeMap<String, Option<Instant>>>,
    /// What was waited for and is not reported yet.
    notes: RefCell<Vec<String>>,
}

impl<'a> StartingWebhooks<'a> {
    /// Creates the waits of some writes. A dry run starts no webhook, so it does not wait.
    pub(crate) fn new(writing: &WriteSettings, interrupt: &'a Interrupt) -> Self {
        Self {
            interrupt,
            patience: match writing.dry_run {
                DryRun::None => writing.webhook_patience.at_end,
                DryRun::Client | DryRun::Server => Some(Duration::ZERO),
            },
            deadlines: RefCell::default(),
            notes: RefCell::default(),
        }
    }

    /// Sends a request, and again as long as its webhook cannot be called and may be waited for.
    pub(crate) async fn send(&self, server: &ApiServer, request: ApiRequest) -> Result<Reply, ApiError> {
        self.send_noting(server, request, |_| {}).await
    }

    /// The same; `noted` is called when the wait begins.
    pub(crate) async fn send_noting(
        &self,
        server: &ApiServer,
        request: ApiRequest,
        noted: impl Fn(&Self),
    ) -> Result<Reply, ApiError> {
        match self
            .attempts(server, request, noted, async || None::<Infallible>)
            .await
        {
            Ok(reply) => reply,
            Err(never) => match never {},
        }
    }

    /// The same; before each further attempt an obstacle is looked for, and returned if there is one: what
    /// was judged before the wait may have changed.
    pub(crate) async fn send_unless<T>(
        &self,
        server: &ApiServer,
        request: ApiRequest,
        obstacle: impl AsyncFn() -> Option<T>,
    ) -> Result<Result<Reply, ApiError>, T> {
        self.attempts(server, request, |_| {}, obstacle).await
    }

    async fn attempts<T>(
        &self,
        server: &ApiServer,
        request: ApiRequest,
        noted: impl Fn(&Self),
        obstacle: impl AsyncFn() -> Option<T>,
    ) -> Result<Result<Reply, ApiError>, T> {
        let mut vain = 0;
        let mut earlier_attempts = EarlierAttempts::NoEffect;
        loop {
            let error = match server.send(request.clone()).await {
                Ok(reply) => return Ok(Ok(reply.after(earlier_attempts))),
                Err(error) => error,
            };
            earlier_attempts = earlier_attempts.or(error.earlier_attempts);
            let Some(time) = self.next_attempt(&error, vain) else {
                return Ok(Err(ApiError {
                    earlier_attempts,
                    ..error
                }));
            };
            noted(self);
            tokio::select! {
                () = self.interrupt.requested() => return Ok(Err(error)),
                () = sleep_until(time) => vain += 1,
            }
            if let Some(obstacle) = obstacle().await {
                return Err(obstacle);
            }
        }
    }

    /// Returns the time of the next attempt after an error; `None` if it is final.
    fn next_attempt(&self, error: &ApiError, vain: u32) -> Option<Instant> {
        let unreachable = Unreachable::of(error)?;
        let now = Instant::now();
        let mut deadlines = self.deadlines.borrow_mut();
        let is_new = !deadlines.contains_key(unreachable.name());
        let deadline = *deadlines
            .entry(unreachable.name().to_owned())
            .or_insert_with(|| self.patience.and_then(|patience| now.checked_add(patience)));
        let is_over = deadline.is_some_and(|deadline| now >= deadline);
        if is_over || self.interrupt.is_requested() {
            return None;
        }
        if is_new {
            let note = format!("waiting for {}", unreachable.text());
            self.notes.borrow_mut().push(note);
        }
        let next = now + pause(vain);
        Some(deadline.map_or(next, |deadline| next.min(deadline)))
    }

    /// Takes the notes about what is waited for.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        self.notes.take()
    }
}
