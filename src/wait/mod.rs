//! Waits until the writes of a run have taken effect: applied objects are Current, deleted ones are gone.
//!
//! Each kind is listed again and again (`follow`). `tracker` decides what an observation means. `explain` looks up why an
//! object is not Current and whether its Pods have failed, and `reasons` reports it. Nothing is written here.

mod explain;
mod follow;
#[cfg(test)]
mod pod_failure_tests;
mod read_single_objects;
mod reasons;
#[cfg(test)]
mod tests;
mod tracker;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use crate::cluster::apiserver::ApiServer;
use crate::compare::status::StatusRules;
use crate::event::{Ending, Event, Interrupt, Phase, Sink, Subject, WaitStatus};
use crate::model::applyset::ApplySetId;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::message::Message;
use crate::model::resource::Resource;
use crate::model::text::{counted, format_duration};
use reasons::{Reasons, report_without_reasons};
use tracker::WaitTracker;
pub use tracker::{Goal, ObservedStatus};

/// The interval at which a run reports what it waits for, and why.
const REPORT_INTERVAL: Duration = Duration::from_secs(15);
/// The time after which reasons are first looked up.
const FIRST_REASONS: Duration = Duration::from_secs(3);
/// The time after which old failures count. A failure at the first observation may be from before the run, if the
/// controller does not report the generation that it has observed.
const OLD_FAILURE: Duration = Duration::from_secs(10);
/// Time limit of the last read at the end of the wait.
pub const LAST_READ: Duration = Duration::from_secs(5);

/// One object that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub key: ObjectKey,
    /// The resource that the object is read through.
    pub resource: Arc<Resource>,
    /// The UID, if it is known. A target with a known UID that was deleted is gone once another object has its name.
    pub uid: Option<String>,
    /// The state that is waited for.
    pub goal: Goal,
    /// The way in which the object is looked up.
    pub lookup: Lookup,
}

impl Target {
    /// Returns the target of a wait until the object is gone.
    pub fn gone(live: &Live, lookup: Lookup) -> Self {
        Self {
            key: live.key.clone(),
            resource: live.resource.clone(),
            uid: Some(live.uid.clone()),
            goal: Goal::Gone,
            lookup,
        }
    }

    fn subject(&self) -> Subject {
        Subject::new(&self.key, &self.resource, self.uid.as_deref())
    }
}

/// The way in which an object is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lookup {
    /// By the set's label, with all other members of its kind. An object that is not among them is absent.
    Label,
    /// By the set's label. An object that is not among the members is read by its name: it may still exist and have
    /// lost the label.
    LabelThenName,
    /// By its name, for an object without the set's label.
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
    /// What the wait does after an object has failed.
    pub after_failure: AfterFailure,
    /// The restarts of a container after which its workload counts as failed; `None` if Pods never make it fail.
    pub failures: Option<NonZeroU32>,
    /// Describes what the run has written, for the warning if the user stops the wait.
    pub done_before: &'a str,
}

/// The end of a wait; `None` without a time limit.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Option<Limit>);

#[derive(Debug, Clone, Copy)]
struct Limit {
    end: Instant,
    /// The time limit, for the message.
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

    async fn wait_until_over(self) {
        wait_until_time_or_forever(self.0.map(|limit| limit.end)).await;
    }

    /// Returns ` after 5m`; empty without a limit.
    fn time_limit_suffix(self) -> String {
        self.0.map_or_else(String::new, |limit| {
            format!(" after {}", format_duration(limit.time))
        })
    }
}

/// Returns the state that these objects have not reached, as `not ready`.
fn missed_goal_phrase(tracker: &WaitTracker, missed: &[usize]) -> &'static str {
    let goals = missed.iter().map(|index| tracker.targets()[*index].goal);
    let gone = goals.filter(|goal| *goal == Goal::Gone).count();
    match gone {
        0 => "not ready",
        gone if gone == missed.len() => "not gone",
        _ => "not ready or not gone",
    }
}

/// Describes the objects that have not reached their goals when the wait ends: `missed` were observed, `unseen` were
/// not.
fn describe_pending(tracker: &WaitTracker, stop: &Stop, missed: &[usize], unseen: &[usize]) -> String {
    let all = counted(tracker.len(), "object");
    let of_all = format!("{} of {all}", missed.len());
    let not_ready = missed_goal_phrase(tracker, missed);
    let observed = match (stop, missed.len()) {
        (Stop::TimedOutUnread, 1) => format!("{of_all} was {not_ready} when it could last be read"),
        (Stop::TimedOutUnread, _) => format!("{of_all} were {not_ready} when they could last be read"),
        (_, 1) => format!("{of_all} is {not_ready}"),
        _ => format!("{of_all} are {not_ready}"),
    };
    match (unseen.len(), missed.len()) {
        (0, _) => observed,
        (1, 0) => format!("1 of {all} was not looked at"),
        (count, 0) => format!("{count} of {all} were not looked at"),
        (1, _) => format!("{observed}, and 1 was not looked at"),
        (count, _) => format!("{observed}, and {count} were not looked at"),
    }
}

/// Describes a wait that ended because objects have failed.
fn describe_failure(tracker: &WaitTracker, what: &str) -> Message {
    let message = Message::new(format!(
        "stopped waiting: these objects will not recover by themselves: {what}"
    ));
    if (0..tracker.len()).any(|index| tracker.failure_of_pods(index).is_some()) {
        message
            .with_hint("correct the manifests and apply again")
            .with_hint("to keep waiting when Pods fail, add --wait-failures=0")
    } else {
        message
    }
}

/// Waits until this time; forever if it is `None`.
pub async fn wait_until_time_or_forever(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// The reason why a wait ended before every object has reached its goal.
enum Stop {
    /// An object has failed.
    Failed,
    TimedOut,
    /// The time is over, and in the last read no object could be read.
    TimedOutUnread,
    Interrupted,
}

impl Waiting<'_> {
    /// Waits for all of these objects, and reports each that has not reached its goal in the end. `Incomplete` if there
    /// is one.
    pub async fn run(&self, targets: Vec<Target>, sink: &mut Sink<'_>) -> Ending {
        sink(Event::Phase {
            phase: Phase::Waiting,
            total: targets.len(),
        });
        sink(Event::Waiting {
            objects: targets.iter().map(Target::subject).collect(),
            limit: self.deadline.left(),
        });
        let mut tracker = WaitTracker::new(targets);
        let mut reasons = Reasons::new(self);
        let Some(stop) = self.follow(&mut tracker, &mut reasons, sink).await else {
            return Ending::Done;
        };
        let pending = tracker.pending().into_iter();
        // `unseen` are the objects that were not observed before the wait ended.
        let (missed, unseen): (Vec<usize>, Vec<usize>) = pending.partition(|index| tracker.is_seen(*index));
        if let Stop::Interrupted = stop {
            reasons.report_missed(&tracker, &missed, sink).await;
            report_without_reasons(&tracker, &unseen, WaitStatus::Unseen, sink);
            let what = match unseen.len() {
                0 => format!(" for {} of {}", missed.len(), counted(tracker.len(), "object")),
                count => format!(": {} not checked yet", counted(count, "object")),
            };
            sink(Event::Warning(format!(
                "stopped waiting{what}; {}",
                self.done_before
            )));
            return Ending::Interrupted;
        }
        match stop {
            // The server does not answer, so looking up reasons would take until its time limit and find none.
            Stop::TimedOutUnread => report_without_reasons(&tracker, &missed, WaitStatus::Missed, sink),
            _ => reasons.report_missed(&tracker, &missed, sink).await,
        }
        report_without_reasons(&tracker, &unseen, WaitStatus::Unseen, sink);
        let what = describe_pending(&tracker, &stop, &missed, &unseen);
        sink(Event::Failure(match stop {
            Stop::Failed => describe_failure(&tracker, &what),
            Stop::TimedOut | Stop::TimedOutUnread | Stop::Interrupted => Message::new(format!(
                "timed out waiting for the condition{}: {what}",
                self.deadline.time_limit_suffix()
            )),
        }));
        Ending::Incomplete
    }

    /// Follows the targets until the wait ends. Returns `None` if every object has reached its goal.
    async fn follow(
        &self,
        tracker: &mut WaitTracker,
        reasons: &mut Reasons<'_>,
        sink: &mut Sink<'_>,
    ) -> Option<Stop> {
        let (observations, mut observed) = mpsc::unbounded_channel();
        let groups = follow::group_targets(tracker.targets());
        let follow = follow::Follow {
            waiting: self,
            observations,
        };
        let followed = groups.into_iter().map(|group| follow.follow_group(group));
        let mut followers: FuturesUnordered<_> = followed.collect();
        let mut arrived = Vec::new();
        let deadline = self.deadline.wait_until_over();
        tokio::pin!(deadline);
        let mut next_report = Instant::now() + REPORT_INTERVAL;
        let mut old_failures_count = Some(Instant::now() + OLD_FAILURE);
        let mut first_reasons = Some(Instant::now() + FIRST_REASONS);
        while !(followers.is_empty() && observed.is_empty()) {
            tokio::select! {
                biased;
                () = self.interrupt.wait_until_requested() => return Some(Stop::Interrupted),
                () = &mut deadline => {
                    return self.look_once_more(&follow, &mut observed, tracker, sink).await;
                }
                Some((index, status)) = observed.recv() => {
                    if let Some(awaited) = tracker.record_status(index, status) {
                        sink(Event::Awaited(awaited));
                    }
                }
                Some(group) = followers.next(), if !followers.is_empty() => {
                    arrived.push(group);
                    if followers.is_empty() && !follow::have_arrived_together(&arrived) {
                        followers.extend(arrived.drain(..).map(|group| follow.follow_group(group)));
                    }
                }
                () = wait_until_time_or_forever(old_failures_count) => {
                    old_failures_count = None;
                    tracker.count_old_failures_from_now_on();
                }
                () = wait_until_time_or_forever(first_reasons) => {
                    // From now on, only the regular reports look up reasons.
                    first_reasons = None;
                    reasons.report_new(tracker, sink).await;
                }
                () = sleep_until(next_report) => {
                    reasons.report_slow(tracker, sink).await;
                    next_report = Instant::now() + REPORT_INTERVAL;
                }
            }
            // The list that shows the failure may show others, which are to be reported, too. So the wait ends only after
            // all observations that have come are noted.
            if observed.is_empty() && tracker.ends_by_failure(self.after_failure) {
                return Some(Stop::Failed);
            }
        }
        None
    }

    /// When the time is over, looks once more at all objects: those that have not reached their goals may have changed
    /// since the last look, and so may the others. Returns `None` if every object has reached its goal now.
    async fn look_once_more(
        &self,
        follow: &follow::Follow<'_>,
        observed: &mut mpsc::UnboundedReceiver<(usize, ObservedStatus)>,
        tracker: &mut WaitTracker,
        sink: &mut Sink<'_>,
    ) -> Option<Stop> {
        let groups = follow::group_targets(tracker.targets()).into_iter();
        let looks = join_all(groups.map(|group| follow.look_for_the_last_time(group)));
        // What was seen of the kinds that were listed in time counts.
        let _ = timeout(LAST_READ, looks).await;
        let mut stop = Stop::TimedOutUnread;
        while let Ok((index, status)) = observed.try_recv() {
            // A failed read does not replace an earlier observation.
            if let ObservedStatus::Unread(_) = status {
                continue;
            }
            stop = Stop::TimedOut;
            if let Some(awaited) = tracker.record_status(index, status) {
                sink(Event::Awaited(awaited));
            }
        }
        (!tracker.have_all_arrived()).then_some(stop)
    }
}
