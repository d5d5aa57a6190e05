//! Tracks the observed status of each object that is waited for.
//!
//! Pure: observed statuses in, wait statuses out.

use serde_json::Value;

use super::explain::{Explanation, Verdict};
use super::{AfterFailure, Target};
use crate::compare::status::{Generation, Readiness, State};
use crate::event::{Awaited, Subject, WaitStatus};
use crate::manifest::desired::DesiredObject;

/// The state of an object that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The object is Current.
    Ready,
    /// The object is Current, or it does not exist: a wait that does not know the manifests cannot tell whether a member
    /// that leaves its set was to stay, and a Job may delete itself.
    ReadyOrGone,
    /// The object does not exist.
    Gone,
}

impl Goal {
    /// Returns the goal of an object of the manifests, which the run has applied. If the object deletes itself once it
    /// has finished, it may do so between two looks at it (fluxcd/pkg#1085).
    pub fn for_applied(object: &DesiredObject) -> Self {
        if object.is_deleted_once_finished() {
            Self::ReadyOrGone
        } else {
            Self::Ready
        }
    }
}

/// An observation of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedStatus {
    /// The object exists.
    Present {
        /// `metadata.uid`.
        uid: String,
        /// Its status.
        readiness: Readiness,
    },
    /// The object does not exist.
    Absent,
    /// The object could not be read, for this reason.
    Unread(String),
}

impl ObservedStatus {
    /// Creates the observation of `object`, which has the status `readiness`.
    pub fn from_object(object: &Value, readiness: Readiness) -> Self {
        let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
        Self::Present {
            uid: uid.unwrap_or_default().to_owned(),
            readiness,
        }
    }
}

/// All objects that are waited for. An index means the same object in each list.
pub(super) struct WaitTracker {
    targets: Vec<Target>,
    /// The last observed status; `None` before the first observation.
    seen: Vec<Option<Readiness>>,
    /// `true` for an object that has reached its goal.
    arrived: Vec<bool>,
    /// `true` for an object that was failed when it was first observed, and whose status has not changed since: the
    /// failure may be from before the run.
    old: Vec<bool>,
    /// The reason why an object has failed because of its Pods, as far as was looked up.
    failures_of_pods: Vec<Option<String>>,
    /// `true` once old failures count: controllers have had time to report another status.
    counts_old_failures: bool,
}

impl WaitTracker {
    pub(super) fn new(targets: Vec<Target>) -> Self {
        Self {
            seen: vec![None; targets.len()],
            arrived: vec![false; targets.len()],
            old: vec![false; targets.len()],
            failures_of_pods: vec![None; targets.len()],
            counts_old_failures: false,
            targets,
        }
    }

    pub(super) fn targets(&self) -> &[Target] {
        &self.targets
    }

    pub(super) fn len(&self) -> usize {
        self.targets.len()
    }

    /// Records a status, and returns the event to report, if any.
    pub(super) fn record_status(&mut self, index: usize, status: ObservedStatus) -> Option<Awaited> {
        let target = &self.targets[index];
        let is_arrived = has_arrived(target, &status);
        let readiness = to_readiness(target, status);
        let was_arrived = std::mem::replace(&mut self.arrived[index], is_arrived);
        let before = self.seen[index].replace(readiness.clone());
        let may_be_old = readiness.state == State::Failed && readiness.about == Generation::Unknown;
        // An observation that could not read the object does not count as the first one.
        let seen_before = before.as_ref().filter(|before| before.state != State::Unknown);
        let is_unchanged_since_first =
            seen_before.is_none_or(|before| *before == readiness && self.old[index]);
        self.old[index] = may_be_old && !self.counts_old_failures && is_unchanged_since_first;
        if is_arrived == was_arrived && before.as_ref() == Some(&readiness) {
            return None;
        }
        let wait_status = match (was_arrived, is_arrived) {
            (false, true) => WaitStatus::Arrived,
            (true, true) => return None,
            (_, false) => WaitStatus::Changed,
        };
        Some(Awaited {
            subject: Subject::new(&target.key, &target.resource, target.uid.as_deref()),
            status: readiness.state,
            reason: readiness.reason,
            wait_status,
        })
    }

    /// Returns whether every object has reached its goal.
    pub(super) fn have_all_arrived(&self) -> bool {
        self.arrived.iter().all(|arrived| *arrived)
    }

    /// Returns whether the wait ends because objects have failed.
    pub(super) fn ends_by_failure(&self, after_failure: AfterFailure) -> bool {
        match after_failure {
            AfterFailure::Stop => self.has_any_failure_that_counts(),
            AfterFailure::WaitForTheOthers => self.has_any_failure_that_counts() && self.have_all_settled(),
        }
    }

    fn has_any_failure_that_counts(&self) -> bool {
        (0..self.len()).any(|index| self.counts_as_failed(index))
    }

    /// Returns whether each object has arrived or failed.
    fn have_all_settled(&self) -> bool {
        (0..self.len()).all(|index| self.arrived[index] || self.counts_as_failed(index))
    }

    /// Returns whether the object has failed, or its Pods have. An object that is to go does not count, nor does a
    /// failure that may be from before the run, until [`Self::count_old_failures_from_now_on`].
    fn counts_as_failed(&self, index: usize) -> bool {
        let seen = self.seen[index].as_ref();
        let has_failed = seen.is_some_and(|seen| seen.state == State::Failed);
        let has_failed_itself = has_failed && self.targets[index].goal != Goal::Gone && !self.old[index];
        has_failed_itself || self.failure_of_pods(index).is_some()
    }

    /// Records what the Pods of an object say about it.
    pub(super) fn record_explanation(&mut self, index: usize, explanation: Option<&Explanation>) {
        let failed = explanation.filter(|explanation| explanation.verdict == Verdict::Failed);
        self.failures_of_pods[index] = failed.map(|failed| failed.reason.clone());
    }

    /// Returns the reason of an object that would be `InProgress`, but Pods of it will not recover by themselves.
    pub(super) fn failure_of_pods(&self, index: usize) -> Option<&str> {
        let seen = self.seen[index].as_ref();
        let is_in_progress = seen.is_some_and(|seen| seen.state == State::InProgress);
        self.failures_of_pods[index].as_deref().filter(|_| is_in_progress)
    }

    /// From now on, lets a failure count although the object was failed when it was first observed, also if it is first
    /// observed later than now: its controller has had time to report another status.
    pub(super) fn count_old_failures_from_now_on(&mut self) {
        self.counts_old_failures = true;
        self.old.fill(false);
    }

    /// Returns the indexes of the objects that have not reached their goals, failed objects first.
    pub(super) fn pending(&self) -> Vec<usize> {
        let mut pending: Vec<usize> = (0..self.len()).filter(|index| !self.arrived[*index]).collect();
        pending.sort_by_key(|index| self.readiness(*index).state != State::Failed);
        pending
    }

    /// Returns whether the object was observed at least once.
    pub(super) fn is_seen(&self, index: usize) -> bool {
        self.seen[index].is_some()
    }

    pub(super) fn readiness(&self, index: usize) -> Readiness {
        match self.seen[index].clone() {
            None => Readiness::new(State::Unknown, "it was not looked at before the wait ended"),
            Some(seen) if self.failure_of_pods(index).is_some() => Readiness {
                state: State::Failed,
                ..seen
            },
            Some(seen) => seen,
        }
    }
}

/// Returns whether the target has reached its goal in the observed status.
pub(super) fn has_arrived(target: &Target, status: &ObservedStatus) -> bool {
    match (target.goal, status) {
        (Goal::Ready | Goal::ReadyOrGone, ObservedStatus::Present { readiness, .. }) => {
            readiness.state == State::Current
        }
        (Goal::Gone | Goal::ReadyOrGone, ObservedStatus::Absent) => true,
        (Goal::Gone, ObservedStatus::Present { uid, .. }) => is_other_object(target, uid),
        (Goal::Ready, ObservedStatus::Absent) | (_, ObservedStatus::Unread(_)) => false,
    }
}

/// Returns whether an object with this UID is not the target, but another one with its name. An empty UID proves
/// nothing.
fn is_other_object(target: &Target, uid: &str) -> bool {
    !uid.is_empty() && target.uid.as_deref().is_some_and(|known| known != uid)
}

/// Returns the status to report for an observation: an object that is to be gone is Current once it is.
fn to_readiness(target: &Target, status: ObservedStatus) -> Readiness {
    match (target.goal, status) {
        (Goal::Gone, ObservedStatus::Present { uid, .. }) if is_other_object(target, &uid) => {
            readiness_of_gone()
        }
        (Goal::Gone, ObservedStatus::Present { readiness, .. }) if readiness.state != State::Terminating => {
            Readiness::new(State::InProgress, "it still exists")
        }
        (_, ObservedStatus::Present { readiness, .. }) => readiness,
        (Goal::Gone | Goal::ReadyOrGone, ObservedStatus::Absent) => readiness_of_gone(),
        (Goal::Ready, ObservedStatus::Absent) => Readiness::new(State::InProgress, "it does not exist"),
        (_, ObservedStatus::Unread(reason)) => Readiness::new(State::Unknown, reason),
    }
}

fn readiness_of_gone() -> Readiness {
    Readiness::new(State::Current, "it is gone")
}

#[cfg(test)]
mod tests {
    use super::super::Lookup;
    use super::*;
    use crate::plan::fixtures::live;

    fn target(goal: Goal) -> Target {
        let live = live("Widget.example.com", Some("shop"), "a");
        Target {
            key: live.key,
            resource: live.resource,
            uid: Some("u".to_owned()),
            goal,
            lookup: Lookup::Label,
        }
    }

    fn present(uid: &str, state: State) -> ObservedStatus {
        ObservedStatus::Present {
            uid: uid.to_owned(),
            readiness: Readiness::new(state, "so"),
        }
    }

    #[test]
    fn what_is_seen_arrives_or_not() {
        use State::{Current, Failed, InProgress, Terminating, Unknown};
        let table = [
            (Goal::Ready, present("u", Current), true, Current),
            (Goal::Ready, present("other", Current), true, Current),
            (Goal::Ready, present("u", InProgress), false, InProgress),
            (Goal::Ready, present("u", Terminating), false, Terminating),
            (Goal::Ready, present("u", Failed), false, Failed),
            (Goal::Ready, ObservedStatus::Absent, false, InProgress),
            (
                Goal::Ready,
                ObservedStatus::Unread("no".to_owned()),
                false,
                Unknown,
            ),
            (Goal::ReadyOrGone, present("u", Current), true, Current),
            (Goal::ReadyOrGone, present("u", Terminating), false, Terminating),
            (Goal::ReadyOrGone, present("u", Failed), false, Failed),
            (Goal::ReadyOrGone, ObservedStatus::Absent, true, Current),
            (Goal::Gone, ObservedStatus::Absent, true, Current),
            (Goal::Gone, present("other", Current), true, Current),
            (Goal::Gone, present("u", Current), false, InProgress),
            (Goal::Gone, present("", Current), false, InProgress),
            (Goal::Gone, present("u", Failed), false, InProgress),
            (Goal::Gone, present("u", Terminating), false, Terminating),
            (
                Goal::Gone,
                ObservedStatus::Unread("no".to_owned()),
                false,
                Unknown,
            ),
        ];
        for (goal, status, arrived, state) in table {
            let mut tracker = WaitTracker::new(vec![target(goal)]);
            let awaited = tracker.record_status(0, status.clone()).expect("an event");
            assert_eq!(awaited.status, state, "{goal:?} {status:?}");
            assert_eq!(tracker.have_all_arrived(), arrived, "{goal:?} {status:?}");
            assert_eq!(
                tracker.has_any_failure_that_counts(),
                state == Failed,
                "{goal:?} {status:?}"
            );
            assert_eq!(
                tracker.have_all_settled(),
                arrived || state == Failed,
                "{goal:?} {status:?}"
            );
            assert_eq!(tracker.pending().is_empty(), arrived);
            assert_eq!(tracker.record_status(0, status), None, "reported twice");
        }
    }

    #[test]
    fn a_failure_that_may_be_old_counts_later() {
        let failed = |reason: &str| ObservedStatus::Present {
            uid: "u".to_owned(),
            readiness: Readiness {
                about: Generation::Unknown,
                ..Readiness::new(State::Failed, reason)
            },
        };
        let mut tracker = WaitTracker::new(vec![target(Goal::Ready)]);
        tracker.record_status(0, failed("so"));
        assert!(!tracker.has_any_failure_that_counts());
        tracker.record_status(0, failed("so"));
        assert!(!tracker.has_any_failure_that_counts());
        tracker.count_old_failures_from_now_on();
        assert!(tracker.has_any_failure_that_counts());
        // A change since the first observation is from this run.
        for change in [failed("otherwise"), present("u", State::InProgress)] {
            let mut tracker = WaitTracker::new(vec![target(Goal::Ready)]);
            tracker.record_status(0, failed("so"));
            tracker.record_status(0, change);
            tracker.record_status(0, failed("so"));
            assert!(tracker.has_any_failure_that_counts());
        }
        // A failed read is not the first observation.
        let unread = || ObservedStatus::Unread("no".to_owned());
        let mut tracker = WaitTracker::new(vec![target(Goal::Ready)]);
        tracker.record_status(0, unread());
        tracker.record_status(0, failed("so"));
        assert!(!tracker.has_any_failure_that_counts());
        // A failure that is first observed when controllers have had time counts at once.
        for before in [None, Some(unread())] {
            let mut tracker = WaitTracker::new(vec![target(Goal::Ready)]);
            if let Some(before) = before {
                tracker.record_status(0, before);
            }
            tracker.count_old_failures_from_now_on();
            tracker.record_status(0, failed("so"));
            assert!(tracker.has_any_failure_that_counts());
        }
    }

    #[test]
    fn what_has_arrived_may_leave_again() {
        let mut tracker = WaitTracker::new(vec![target(Goal::Ready), target(Goal::Ready)]);
        let note = |tracker: &mut WaitTracker, index, state| {
            let awaited = tracker.record_status(index, present("u", state));
            awaited.map(|awaited| awaited.wait_status)
        };
        assert_eq!(note(&mut tracker, 0, State::Current), Some(WaitStatus::Arrived));
        assert_eq!(
            note(&mut tracker, 0, State::InProgress),
            Some(WaitStatus::Changed)
        );
        assert_eq!(note(&mut tracker, 1, State::Failed), Some(WaitStatus::Changed));
        assert_eq!(tracker.pending(), [1, 0]);
        assert_eq!(note(&mut tracker, 0, State::Current), Some(WaitStatus::Arrived));
        assert!(!tracker.have_all_arrived());
    }
}
