//! Reports why objects are not Current: each reason once as soon as it is known, and all reasons at the end of the wait.

use std::collections::{BTreeMap, BTreeSet};

use super::explain::{Explainer, Explanation, MAX_OBJECTS};
use super::tracker::WaitTracker;
use super::{AfterFailure, Waiting};
use crate::compare::status::PodFailureRule;
use crate::event::{Awaited, Event, Interrupt, Sink, WaitStatus};

/// Limit of objects that are reported as slow.
const SLOW_OBJECTS: usize = 5;

/// The reasons of one wait.
pub(super) struct Reasons<'a> {
    explainer: Explainer<'a>,
    interrupt: &'a Interrupt,
    after_failure: AfterFailure,
    /// The reasons that were reported: the index of the object, and the key of the reason.
    reported: BTreeSet<(usize, String)>,
    /// The number of objects that were looked up so far: the next lookup begins after them.
    looked_up: usize,
}

impl<'a> Reasons<'a> {
    /// Creates the reasons of a wait that begins now.
    pub(super) fn new(waiting: &Waiting<'a>) -> Self {
        let rule = waiting.failures.map(|restarts| PodFailureRule {
            restarts,
            began: waiting.server.now(),
        });
        Self {
            explainer: Explainer::new(waiting.server, waiting.concurrency, rule),
            interrupt: waiting.interrupt,
            after_failure: waiting.after_failure,
            reported: BTreeSet::new(),
            looked_up: 0,
        }
    }

    /// Looks up the reasons of objects that have not reached their goals, and reports those that are new. If there are
    /// more objects than are looked up at once, the next lookup begins with the others.
    pub(super) async fn report_new(&mut self, tracker: &mut WaitTracker, sink: &mut Sink<'_>) {
        if let Some(found) = self.look_up_next(tracker).await {
            self.report_explanations(tracker, &found, sink);
        }
    }

    /// Reports the first objects that have not reached their goals, and the reasons that are new.
    pub(super) async fn report_slow(&mut self, tracker: &mut WaitTracker, sink: &mut Sink<'_>) {
        // A terminal shows only the last event about an object, so the lookup does not come between them.
        let Some(found) = self.look_up_next(tracker).await else {
            return;
        };
        for index in tracker.pending().into_iter().take(SLOW_OBJECTS) {
            report(tracker, index, WaitStatus::Slow, None, sink);
        }
        self.report_explanations(tracker, &found, sink);
    }

    /// Reports that these objects have not reached their goals when the wait ends. If an object has failed because of a
    /// Pod, this is the reason, and nothing is looked up again: the Pod may be running at the moment.
    pub(super) async fn report_missed(
        &mut self,
        tracker: &WaitTracker,
        indexes: &[usize],
        sink: &mut Sink<'_>,
    ) {
        let others = indexes.iter().copied();
        let others: Vec<usize> = others
            .filter(|index| tracker.failure_of_pods(*index).is_none())
            .collect();
        let explanations = self.look_up(tracker, &others).await;
        let found: BTreeMap<usize, Option<Explanation>> = others.into_iter().zip(explanations).collect();
        for index in indexes {
            let explanation = found.get(index).and_then(Option::as_ref);
            let reason = explanation.map(|explanation| explanation.reason.as_str());
            let reason = tracker.failure_of_pods(*index).or(reason);
            report(tracker, *index, WaitStatus::Missed, reason, sink);
        }
    }

    /// Looks up the reasons of the next objects, and records what they say about Pods. Returns `None` if the wait ends:
    /// its end reports the reasons.
    async fn look_up_next(&mut self, tracker: &mut WaitTracker) -> Option<Vec<(usize, Option<Explanation>)>> {
        let mut indexes = tracker.pending();
        let first = self.looked_up.checked_rem(indexes.len()).unwrap_or_default();
        if indexes.len() > MAX_OBJECTS {
            indexes.rotate_left(first);
            indexes.truncate(MAX_OBJECTS);
        }
        self.looked_up += indexes.len();
        let explanations = self.look_up(tracker, &indexes).await;
        let found: Vec<_> = indexes.into_iter().zip(explanations).collect();
        for (index, explanation) in &found {
            tracker.record_explanation(*index, explanation.as_ref());
        }
        let ends = self.interrupt.is_requested() || tracker.ends_by_failure(self.after_failure);
        (!ends).then_some(found)
    }

    /// Looks up reasons, in the order of the indexes. None are found if that takes too long, or if the user stops the
    /// run.
    async fn look_up(&mut self, tracker: &WaitTracker, indexes: &[usize]) -> Vec<Option<Explanation>> {
        let interrupt = self.interrupt;
        tokio::select! {
            biased;
            () = interrupt.wait_until_requested() => Vec::new(),
            found = self.explainer.find_reasons(tracker, indexes) => found,
        }
    }

    fn report_explanations(
        &mut self,
        tracker: &WaitTracker,
        found: &[(usize, Option<Explanation>)],
        sink: &mut Sink<'_>,
    ) {
        for (index, explanation) in found {
            let Some(explanation) = explanation else { continue };
            let is_new = self.reported.insert((*index, explanation.key.clone()));
            let wait_status = if is_new {
                WaitStatus::NewReason
            } else {
                WaitStatus::Explained
            };
            report(tracker, *index, wait_status, Some(&explanation.reason), sink);
        }
    }
}

/// Reports objects without looking up reasons.
pub(super) fn report_without_reasons(
    tracker: &WaitTracker,
    indexes: &[usize],
    wait_status: WaitStatus,
    sink: &mut Sink<'_>,
) {
    for index in indexes {
        report(tracker, *index, wait_status, None, sink);
    }
}

fn report(
    tracker: &WaitTracker,
    index: usize,
    wait_status: WaitStatus,
    found: Option<&str>,
    sink: &mut Sink<'_>,
) {
    let readiness = tracker.readiness(index);
    let reason = match found.filter(|found| !readiness.reason.contains(found)) {
        Some(found) => format!("{found}; {}", readiness.reason),
        None => readiness.reason,
    };
    sink(Event::Awaited(Awaited {
        subject: tracker.targets()[index].subject(),
        status: readiness.state,
        reason,
        wait_status,
    }));
}
