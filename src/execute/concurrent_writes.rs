//! Runs writes concurrently, up to the limit.
//!
//! The caller defines each write, and reports its outcome. A slow write does not block others, and is
//! reported.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, StreamExt as _};

use crate::cluster::apiserver::ApiServer;
use crate::event::{Event, ObjectOutcome};
use crate::execute::concurrency_limit::ConcurrencyLimit;
use crate::execute::{Interrupt, Sink};
use crate::model::identity::ObjectKey;

/// An event of writes that run concurrently.
#[derive(Debug)]
pub enum WriteEvent<A> {
    /// The outcome of one item.
    Answer(A),
    /// What a write waits for.
    Note(String),
    /// The object whose write has taken longest, and its duration, if it is slow; `None` once none is
    /// slow.
    Slowest(Option<(ObjectKey, Duration)>),
}

/// What writes wait for while they are under way, as far as it is not reported yet.
#[derive(Debug, Default)]
pub struct WaitNotes(RefCell<Vec<String>>);

impl WaitNotes {
    pub(super) fn add(&self, note: String) {
        self.0.borrow_mut().push(note);
    }

    /// Does some work, and reports what it waits for.
    pub(super) async fn reporting<T>(&self, work: impl Future<Output = T>, sink: &mut Sink<'_>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            let done = work.as_mut().poll(context);
            let notes = self.0.take().into_iter();
            notes.for_each(|note| sink(Event::Note(note)));
            done
        })
        .await
    }
}

impl WriteEvent<ObjectOutcome> {
    /// The event for this; `count` sees the outcome first, if it is one.
    pub(super) fn counted(self, count: impl FnOnce(&ObjectOutcome)) -> Event {
        match self {
            Self::Slowest(slowest) => Event::Slowest(slowest),
            Self::Note(text) => Event::Note(text),
            Self::Answer(outcome) => {
                count(&outcome);
                Event::Object(outcome)
            }
        }
    }
}

/// Time after which a slow write is reported.
pub(super) const SLOW: Duration = Duration::from_secs(2);

/// Runs writes to a server at the same time, up to a limit that it learns, until the run is to stop.
pub(super) struct ConcurrentWrites<'a> {
    server: &'a ApiServer,
    pub(super) interrupt: &'a Interrupt,
    /// What the writes wait for.
    pub(super) notes: &'a WaitNotes,
    limit: ConcurrencyLimit,
}

impl<'a> ConcurrentWrites<'a> {
    /// Never runs more than `most` writes at once.
    pub(super) fn new(
        server: &'a ApiServer,
        interrupt: &'a Interrupt,
        notes: &'a WaitNotes,
        most: usize,
    ) -> Self {
        Self {
            server,
            interrupt,
            notes,
            limit: ConcurrencyLimit::for_server(server, most),
        }
    }

    /// Returns how many of these writes are soon under way at once, if the server keeps up.
    pub(super) fn soon(&self, writes: usize) -> usize {
        self.limit.soon(writes)
    }

    /// Starts a write for each of `items` and passes on each answer as it arrives. After an interrupt no
    /// write starts, and the run waits for those in flight.
    pub(super) async fn each<'k, T, A>(
        &mut self,
        items: impl IntoIterator<Item = (&'k ObjectKey, T)>,
        write: impl AsyncFn(T) -> A,
        mut reported: impl FnMut(WriteEvent<A>),
    ) {
        let mut items = items.into_iter().enumerate();
        let mut under_way = FuturesUnordered::new();
        let mut begun: BTreeMap<usize, (&ObjectKey, Instant)> = BTreeMap::new();
        let mut clock = tokio::time::interval(Duration::from_secs(1));
        let mut was_slow = false;
        loop {
            while self.limit.allows(under_way.len(), self.server.postponed())
                && !self.interrupt.is_requested()
            {
                let Some((number, (key, item))) = items.next() else {
                    break;
                };
                begun.insert(number, (key, Instant::now()));
                let write = &write;
                under_way.push(async move { (number, write(item).await) });
            }
            let throttled_answers = self.server.throttled_answers();
            let answer = loop {
                let notes = self.notes.0.take().into_iter();
                notes.for_each(|note| reported(WriteEvent::Note(note)));
                tokio::select! {
                    biased;
                    answer = under_way.next() => break answer,
                    _ = clock.tick() => {
                        let slowest = slowest(&begun);
                        if was_slow || slowest.is_some() {
                            was_slow = slowest.is_some();
                            reported(WriteEvent::Slowest(slowest));
                        }
                    }
                }
            };
            let Some((number, answer)) = answer else { break };
            let latency = begun.remove(&number).map(|(_, since)| since.elapsed());
            if self.server.throttled_answers() > throttled_answers {
                self.limit.refused(under_way.len());
            } else if !self.server.is_silent() {
                self.limit.answered(latency.unwrap_or_default());
            }
            reported(WriteEvent::Answer(answer));
        }
        if was_slow {
            reported(WriteEvent::Slowest(None));
        }
    }
}

/// Waits for what the object `key` needs. Once that takes long, it reports the object, and once each
/// line of `reasons`, which describe what is waited for.
pub(super) async fn showing<T>(
    key: &ObjectKey,
    wait: impl Future<Output = T>,
    reasons: impl Fn() -> Vec<String>,
    sink: &mut Sink<'_>,
) -> T {
    let begun = Instant::now();
    let mut clock = tokio::time::interval(Duration::from_secs(1));
    let mut was_slow = false;
    let mut wait = std::pin::pin!(wait);
    let waited = loop {
        tokio::select! {
            biased;
            waited = &mut wait => break waited,
            _ = clock.tick() => {
                if begun.elapsed() >= SLOW {
                    if !was_slow {
                        let notes = reasons().into_iter();
                        notes.for_each(|reason| sink(Event::Note(format!("waiting for {reason}"))));
                    }
                    was_slow = true;
                    sink(Event::Slowest(Some((key.clone(), begun.elapsed()))));
                }
            }
        }
    };
    if was_slow {
        sink(Event::Slowest(None));
    }
    waited
}

/// They were begun in the order of their numbers.
fn slowest(begun: &BTreeMap<usize, (&ObjectKey, Instant)>) -> Option<(ObjectKey, Duration)> {
    let (key, since) = begun.values().next()?;
    let elapsed = since.elapsed();
    (elapsed >= SLOW).then(|| ((*key).clone(), elapsed))
}
