//! Waits until what was written has taken effect: applied objects are ready, deleted ones
//! are gone.
//!
//! Collections are listed once and then watched, one for each kind and place; what may not
//! be watched is asked for again and again. What an observation means is decided in
//! `tracker`, why an object is not ready is looked up in `explain`. Nothing is written here.

mod explain;
mod follow;
mod tracker;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, FuturesUnordered};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use crate::cluster::apiserver::ApiServer;
use crate::compare::status::{Others, StatusRules};
use crate::event::{Awaited, Event, Phase, Subject, WaitStatus};
use crate::execute::{Interrupt, Sink};
use crate::model::applyset::ApplySetId;
use crate::model::identity::ObjectKey;
use crate::model::resource::Resource;
use crate::model::text::counted;
use tracker::WaitTracker;
pub use tracker::{Goal, ObservedStatus};

/// The time without news after which a run reports what it waits for, and why.
const SLOW: Duration = Duration::from_secs(15);
/// The time after which the reasons are looked up for the first time.
const UNEXPLAINED: Duration = Duration::from_secs(3);
/// The most objects that the report of a slow wait names.
const SLOW_OBJECTS: usize = 5;
/// The time after which a failure is believed that was there at the first look, of an object whose
/// controller does not report which generation it has seen.
const OLD_FAILURE: Duration = Duration::from_secs(10);
/// How long the last look at the end of the wait may take.
const LAST_LOOK: Duration = Duration::from_secs(5);
/// How long it may take to look up why objects are not ready.
const EXPLAINING: Duration = Duration::from_secs(5);

/// One object that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The object.
    pub key: ObjectKey,
    /// What it is read through.
    pub resource: Arc<Resource>,
    /// The UID, if known: a target to be deleted is gone once another object has its name.
    pub uid: Option<String>,
    /// What is waited for.
    pub goal: Goal,
    /// How it is found.
    pub path: Path,
}

impl Target {
    fn subject(&self) -> Subject {
        Subject::new(&self.key, &self.resource, self.uid.as_deref())
    }
}

/// How an object that is waited for is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// By the set's label, with all others of its kind.
    Label,
    /// By its name: it does not carry the label.
    Name,
}

/// How long is waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// At most this long.
    Limited(Duration),
    /// As long as it takes.
    Unlimited,
}

/// Everything that waiting needs.
pub struct Waiting<'a> {
    /// Where to look.
    pub server: &'a ApiServer,
    /// The set.
    pub id: &'a ApplySetId,
    /// The rules by which objects are judged.
    pub rules: &'a StatusRules,
    /// When the waiting is given up.
    pub deadline: Deadline,
    /// The user's wish to stop.
    pub interrupt: &'a Interrupt,
    /// Requests under way at once when objects are looked into.
    pub concurrency: usize,
    /// What the run has done before, which is reported if the user stops the waiting.
    pub done_before: &'a str,
}

/// When waiting is given up.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// The end of patience that begins now.
    pub fn of(patience: Patience) -> Self {
        Self(match patience {
            Patience::Limited(time) => Instant::now().checked_add(time),
            Patience::Unlimited => None,
        })
    }

    /// The time that is left; `None` without a limit.
    fn left(self) -> Option<Duration> {
        self.0.map(|end| end.saturating_duration_since(Instant::now()))
    }

    async fn over(self) {
        at(self.0).await;
    }
}

/// Returns at this time; never if there is none.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// How waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is as it should be.
    Arrived,
    /// Something is not, and will not be in time.
    Missed,
    /// The user stopped it.
    Interrupted,
}

/// Why waiting stopped early.
enum Stop {
    Failed,
    Over,
    Interrupted,
}

impl Waiting<'_> {
    /// Waits for all of these objects, and tells of each that has not arrived in the end.
    pub async fn run(&self, targets: Vec<Target>, sink: &mut Sink<'_>) -> Outcome {
        sink(Event::Phase {
            phase: Phase::Waiting,
            total: targets.len(),
        });
        sink(Event::Waiting {
            objects: targets.iter().map(Target::subject).collect(),
            limit: self.deadline.left(),
        });
        let mut tracker = WaitTracker::new(targets);
        let stop = self.watch(&mut tracker, sink).await;
        let Some(stop) = stop else {
            return Outcome::Arrived;
        };
        let missed = tracker.pending();
        self.tell(&tracker, &missed, WaitStatus::Missed, sink).await;
        let of_all = format!("{} of {}", missed.len(), counted(tracker.len(), "object"));
        match stop {
            Stop::Interrupted => {
                sink(Event::Warning(format!(
                    "stopped waiting for {of_all}; {}",
                    self.done_before
                )));
                return Outcome::Interrupted;
            }
            Stop::Failed => sink(Event::failure(format!(
                "waiting ended early, since what has failed does not heal by itself; not as they should be: {of_all}"
            ))),
            Stop::Over => sink(Event::failure(format!(
                "the time to wait is over; not as they should be: {of_all}"
            ))),
        }
        Outcome::Missed
    }

    /// `None` where everything has arrived.
    async fn watch(&self, tracker: &mut WaitTracker, sink: &mut Sink<'_>) -> Option<Stop> {
        let (news, mut heard) = mpsc::unbounded_channel();
        let groups = follow::groups(tracker.targets());
        let follow = follow::Follow {
            server: self.server,
            id: self.id,
            rules: self.rules,
            news,
        };
        let mut followers: FuturesUnordered<_> =
            groups.into_iter().map(|group| follow.group(group)).collect();
        let deadline = self.deadline.over();
        tokio::pin!(deadline);
        let mut warned = BTreeSet::new();
        let mut slow = Instant::now() + SLOW;
        let mut old = Some(Instant::now() + OLD_FAILURE);
        let mut unexplained = Instant::now() + UNEXPLAINED;
        while !tracker.has_arrived() {
            tokio::select! {
                biased;
                () = self.interrupt.requested() => return Some(Stop::Interrupted),
                () = &mut deadline => {
                    return self.last_look(&follow, tracker, sink).await;
                }
                Some(news) = heard.recv() => match news {
                    follow::Observation::Status(index, status) => {
                        if let Some(awaited) = tracker.note(index, status) {
                            sink(Event::Awaited(awaited));
                        }
                        if tracker.has_failed() {
                            return Some(Stop::Failed);
                        }
                    }
                    follow::Observation::Warning(text) => {
                        if warned.insert(text.clone()) {
                            sink(Event::Warning(text));
                        }
                    }
                },
                Some(()) = followers.next(), if !followers.is_empty() => {}
                () = at(old) => {
                    old = None;
                    tracker.believe_old();
                    if tracker.has_failed() {
                        return Some(Stop::Failed);
                    }
                }
                () = sleep_until(unexplained), if unexplained < slow => {
                    let mut pending = tracker.pending();
                    pending.truncate(SLOW_OBJECTS);
                    self.tell(tracker, &pending, WaitStatus::Explained, sink).await;
                    unexplained = slow;
                }
                () = sleep_until(slow) => {
                    let mut pending = tracker.pending();
                    pending.truncate(SLOW_OBJECTS);
                    self.tell(tracker, &pending, WaitStatus::Slow, sink).await;
                    slow = Instant::now() + SLOW;
                }
            }
        }
        None
    }

    /// Reads once more what has not arrived when the time is over: the watch may have missed it.
    /// `None` if everything has arrived.
    async fn last_look(
        &self,
        follow: &follow::Follow<'_>,
        tracker: &mut WaitTracker,
        sink: &mut Sink<'_>,
    ) -> Option<Stop> {
        let pending: Vec<(usize, Target)> = tracker
            .pending()
            .into_iter()
            .map(|index| (index, tracker.targets()[index].clone()))
            .collect();
        let looks = pending
            .iter()
            .map(async |(index, target)| (*index, follow.look(target, Others::Report).await));
        let mut looks = stream::iter(looks).buffer_unordered(self.concurrency);
        let until = Instant::now() + LAST_LOOK;
        while let Ok(Some((index, status))) = timeout_at(until, looks.next()).await {
            // What could not be read says less than what was seen before.
            if let ObservedStatus::Unread(_) = status {
                continue;
            }
            if let Some(awaited) = tracker.note(index, status) {
                sink(Event::Awaited(awaited));
            }
        }
        (!tracker.has_arrived()).then_some(Stop::Over)
    }

    /// Tells of these objects, each with as much of a reason as can be found.
    async fn tell(
        &self,
        tracker: &WaitTracker,
        indexes: &[usize],
        wait_status: WaitStatus,
        sink: &mut Sink<'_>,
    ) {
        // Whoever wants to stop does not want to wait for explanations.
        let reasons = if self.interrupt.is_requested() {
            Vec::new()
        } else {
            let reasons = explain::reasons(self.server, tracker, indexes, self.concurrency);
            timeout(EXPLAINING, reasons).await.unwrap_or_default()
        };
        for (place, index) in indexes.iter().enumerate() {
            let readiness = tracker.readiness(*index);
            let reason = reasons.get(place).cloned().flatten();
            let reason = match reason {
                Some(why) if !readiness.reason.contains(&why) => format!("{}; {why}", readiness.reason),
                Some(_) | None => readiness.reason,
            };
            let target = &tracker.targets()[*index];
            sink(Event::Awaited(Awaited {
                subject: target.subject(),
                status: readiness.state,
                reason,
                wait_status,
            }));
        }
    }
}
