//! Waits until the writes have taken effect: applied objects are ready, deleted ones are gone.
//!
//! Collections are listed once and then watched, one for each kind and namespace; objects that must not
//! be watched are polled. `tracker` decides what an observation means, and `explain` looks up why an
//! object is not ready. Nothing is written here.

mod explain;
mod follow;
mod look;
#[cfg(test)]
mod tests;
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
use crate::model::text::{counted, format_duration};
use tracker::WaitTracker;
pub use tracker::{Goal, ObservedStatus};

/// The interval at which a run reports what it waits for, and why.
const SLOW: Duration = Duration::from_secs(15);
/// The time after which reasons are first looked up.
const UNEXPLAINED: Duration = Duration::from_secs(3);
/// Limit of objects that the report of a slow wait names.
const SLOW_OBJECTS: usize = 5;
/// The time after which a failure counts that existed at the first observation, if the controller does
/// not report the generation that it has observed.
const OLD_FAILURE: Duration = Duration::from_secs(10);
/// The time after which a collection is listed again: a silent watch may be broken.
pub const RELIST: Duration = Duration::from_secs(30);
/// Time limit of the last read at the end of the wait.
const LAST_READ: Duration = Duration::from_secs(5);
/// Time limit of looking up why objects are not ready.
const EXPLAINING: Duration = Duration::from_secs(5);

/// One object that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub key: ObjectKey,
    /// The resource that it is read through.
    pub resource: Arc<Resource>,
    /// The UID, if known: a target to be deleted is gone once another object has its name.
    pub uid: Option<String>,
    /// The state that is waited for.
    pub goal: Goal,
    /// The way in which it is found.
    pub path: Path,
}

impl Target {
    fn subject(&self) -> Subject {
        Subject::new(&self.key, &self.resource, self.uid.as_deref())
    }
}

/// The way in which an object is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Path {
    /// By the set's label, with all others of its kind.
    Label,
    /// The same, and by its name once the label does not show it: it may have lost the label alone.
    LabelThenName,
    /// By its name: it does not have the label.
    Name,
}

/// The time limit of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// At most this long.
    Limited(Duration),
    /// Without a limit.
    Unlimited,
}

/// What a wait does after an object has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// It ends.
    Stop,
    /// It continues until each of the others is ready or has failed.
    WaitForTheOthers,
}

/// The settings of a wait.
pub struct Waiting<'a> {
    pub server: &'a ApiServer,
    pub id: &'a ApplySetId,
    /// The rules by which objects are judged.
    pub rules: &'a StatusRules,
    /// The time limit.
    pub deadline: Deadline,
    /// The user's request to stop.
    pub interrupt: &'a Interrupt,
    /// The concurrency limit of looking up reasons.
    pub concurrency: usize,
    /// What a failed object means for the others.
    pub after_failure: AfterFailure,
    /// The time after which a collection is listed again; [`RELIST`] except in tests.
    pub relist: Duration,
    /// What the run has written, for the warning if the user stops the wait.
    pub done_before: &'a str,
}

/// The end of a wait.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Option<Limit>);

#[derive(Debug, Clone, Copy)]
struct Limit {
    end: Instant,
    /// The time that was given.
    time: Duration,
}

impl Deadline {
    /// Returns the end of a wait that begins now.
    pub fn new(patience: Patience) -> Self {
        Self(match patience {
            Patience::Limited(time) => Instant::now().checked_add(time).map(|end| Limit { end, time }),
            Patience::Unlimited => None,
        })
    }

    /// Returns the time that is left; `None` without a limit.
    fn left(self) -> Option<Duration> {
        self.0
            .map(|limit| limit.end.saturating_duration_since(Instant::now()))
    }

    async fn over(self) {
        at(self.0.map(|limit| limit.end)).await;
    }

    /// `after 5m`; empty without a limit.
    fn text(self) -> String {
        self.0.map_or_else(String::new, |limit| {
            format!(" after {}", format_duration(limit.time))
        })
    }
}

/// What objects that have not arrived are not.
fn describe_missed(tracker: &WaitTracker, missed: &[usize]) -> &'static str {
    let goals = missed.iter().map(|index| tracker.targets()[*index].goal);
    let gone = goals.filter(|goal| *goal == Goal::Gone).count();
    match gone {
        0 => "not ready",
        gone if gone == missed.len() => "not gone",
        _ => "not ready or not gone",
    }
}

/// Waits until this time; forever if there is none.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// The outcome of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is ready or gone.
    Arrived,
    /// Something is not, or will not be in time.
    Missed,
    /// The user stopped it.
    Interrupted,
}

/// The reason why a wait ended before everything arrived.
enum Stop {
    Failed,
    Over,
    /// The time is over, and no object could be read for the last time.
    Unanswered,
    Interrupted,
}

impl Waiting<'_> {
    /// Waits for all of these objects, and reports each that has not arrived in the end.
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
        let Some(stop) = self.watch(&mut tracker, sink).await else {
            return Outcome::Arrived;
        };
        let pending = tracker.pending().into_iter();
        let (missed, unseen): (Vec<usize>, Vec<usize>) = pending.partition(|index| tracker.is_seen(*index));
        let of_all = format!("{} of {}", missed.len(), counted(tracker.len(), "object"));
        if let Stop::Interrupted = stop {
            self.report(&tracker, &missed, WaitStatus::Missed, sink).await;
            report_with(&tracker, &unseen, WaitStatus::Unseen, &[], sink);
            let what = match unseen.len() {
                0 => format!(" for {of_all}"),
                count => format!(": {} not checked yet", counted(count, "object")),
            };
            sink(Event::Warning(format!(
                "stopped waiting{what}; {}",
                self.done_before
            )));
            return Outcome::Interrupted;
        }
        match stop {
            // Reasons would only take longer.
            Stop::Unanswered => report_with(&tracker, &missed, WaitStatus::Missed, &[], sink),
            _ => self.report(&tracker, &missed, WaitStatus::Missed, sink).await,
        }
        report_with(&tracker, &unseen, WaitStatus::Unseen, &[], sink);
        let lacking = describe_missed(&tracker, &missed);
        let what = match (&stop, missed.len()) {
            (Stop::Unanswered, 1) => format!("{of_all} was {lacking} when it could last be read"),
            (Stop::Unanswered, _) => format!("{of_all} were {lacking} when they could last be read"),
            (_, 1) => format!("{of_all} is {lacking}"),
            _ => format!("{of_all} are {lacking}"),
        };
        let what = match (unseen.len(), missed.len()) {
            (0, _) => what,
            (1, 0) => format!("1 of {} was not looked at", counted(tracker.len(), "object")),
            (count, 0) => format!(
                "{count} of {} were not looked at",
                counted(tracker.len(), "object")
            ),
            (1, _) => format!("{what}, and 1 was not looked at"),
            (count, _) => format!("{what}, and {count} were not looked at"),
        };
        sink(Event::failure(match stop {
            Stop::Failed => {
                format!("stopped waiting: failed objects do not recover by themselves: {what}")
            }
            Stop::Over | Stop::Unanswered | Stop::Interrupted => format!(
                "timed out waiting for the condition{}: {what}",
                self.deadline.text()
            ),
        }));
        Outcome::Missed
    }

    /// Watches until the wait ends. Returns `None` if everything has arrived.
    async fn watch(&self, tracker: &mut WaitTracker, sink: &mut Sink<'_>) -> Option<Stop> {
        let (observations, mut observed) = mpsc::unbounded_channel();
        let groups = follow::groups(tracker.targets());
        let follow = follow::Follow {
            server: self.server,
            id: self.id,
            rules: self.rules,
            relist: self.relist,
            observations,
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
                    return self.last_read(&follow, tracker, sink).await;
                }
                Some(observation) = observed.recv() => {
                    match observation {
                        follow::Observation::Status(index, status) => {
                            if let Some(awaited) = tracker.note(index, status) {
                                sink(Event::Awaited(awaited));
                            }
                        }
                        follow::Observation::Warning(text) => {
                            if warned.insert(text.clone()) {
                                sink(Event::Warning(text));
                            }
                        }
                    }
                    // The answer that shows the failure may show others.
                    if observed.is_empty() && self.is_lost(tracker) {
                        return Some(Stop::Failed);
                    }
                }
                Some(()) = followers.next(), if !followers.is_empty() => {}
                () = at(old) => {
                    old = None;
                    tracker.believe_old();
                    if self.is_lost(tracker) {
                        return Some(Stop::Failed);
                    }
                }
                () = sleep_until(unexplained), if unexplained < slow => {
                    let mut pending = tracker.pending();
                    pending.truncate(SLOW_OBJECTS);
                    self.report(tracker, &pending, WaitStatus::Explained, sink).await;
                    unexplained = slow;
                }
                () = sleep_until(slow) => {
                    let mut pending = tracker.pending();
                    pending.truncate(SLOW_OBJECTS);
                    self.report(tracker, &pending, WaitStatus::Slow, sink).await;
                    slow = Instant::now() + SLOW;
                }
            }
        }
        None
    }

    /// Returns whether the wait ends because of failures.
    fn is_lost(&self, tracker: &WaitTracker) -> bool {
        match self.after_failure {
            AfterFailure::Stop => tracker.has_failed(),
            AfterFailure::WaitForTheOthers => tracker.has_failed() && tracker.is_settled(),
        }
    }

    /// Reads what has not arrived once more when the time is over: the watch may have missed it.
    /// Returns `None` if everything has arrived.
    async fn last_read(
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
        let until = Instant::now() + LAST_READ;
        let mut stop = Stop::Unanswered;
        while let Ok(Some((index, status))) = timeout_at(until, looks.next()).await {
            // A failed read does not replace an earlier observation.
            if let ObservedStatus::Unread(_) = status {
                continue;
            }
            stop = Stop::Over;
            if let Some(awaited) = tracker.note(index, status) {
                sink(Event::Awaited(awaited));
            }
        }
        (!tracker.has_arrived()).then_some(stop)
    }

    /// Reports these objects, each with the reason as far as it can be looked up.
    async fn report(
        &self,
        tracker: &WaitTracker,
        indexes: &[usize],
        wait_status: WaitStatus,
        sink: &mut Sink<'_>,
    ) {
        // A user who stops the run does not want to wait for reasons.
        let reasons = if self.interrupt.is_requested() {
            Vec::new()
        } else {
            let reasons = explain::reasons(self.server, tracker, indexes, self.concurrency);
            timeout(EXPLAINING, reasons).await.unwrap_or_default()
        };
        report_with(tracker, indexes, wait_status, &reasons, sink);
    }
}

/// Reports these objects, each with the reason at the same place of `reasons`, if there is one.
fn report_with(
    tracker: &WaitTracker,
    indexes: &[usize],
    wait_status: WaitStatus,
    reasons: &[Option<String>],
    sink: &mut Sink<'_>,
) {
    for (place, index) in indexes.iter().enumerate() {
        let readiness = tracker.readiness(*index);
        let reason = match reasons.get(place).cloned().flatten() {
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
