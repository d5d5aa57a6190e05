//! Reports why objects are not Current: each reason once as soon as it is known, and all reasons at the end of the wait.

use std::collections::BTreeSet;

use super::Waiting;
use super::explain::{Explainer, Explanation, MAX_OBJECTS, Verdict};
use super::tracker::WaitTracker;
use crate::compare::status::PodFailureRule;
use crate::event::{Awaited, Event, WaitStatus};
use crate::execute::{Interrupt, Sink};

/// Limit of objects that are reported as slow.
const SLOW_OBJECTS: usize = 5;

/// The reasons of one wait.
pub(super) struct Reasons<'a> {
    explainer: Explainer<'a>,
    interrupt: &'a Interrupt,
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
            reported: BTreeSet::new(),
            looked_up: 0,
        }
    }

    /// Looks up the reasons of objects that have not reached their goals, and reports those that are new. If there are
    /// more objects than are looked up at once, the next lookup begins with the others.
    pub(super) async fn report_new(&mut self, tracker: &mut WaitTracker, sink: &mut Sink<'_>) {
        let (indexes, explanations) = self.look_up_next(tracker).await;
        self.report_explanations(tracker, indexes.into_iter().zip(explanations), sink);
    }

    /// Reports the first objects that have not reached their goals, and the reasons that are new.
    pub(super) async fn report_slow(&mut self, tracker: &mut WaitTracker, sink: &mut Sink<'_>) {
        // A terminal shows only the last event about an object, so the lookup does not come between them.
        let (indexes, explanations) = self.look_up_next(tracker).await;
        for index in tracker.pending().into_iter().take(SLOW_OBJECTS) {
            report(tracker, index, WaitStatus::Slow, None, sink);
        }
        self.report_explanations(tracker, indexes.into_iter().zip(explanations), sink);
    }

    /// Reports that these objects have not reached their goals when the wait ends.
    pub(super) async fn report_missed(
        &mut self,
        tracker: &WaitTracker,
        indexes: &[usize],
        sink: &mut Sink<'_>,
    ) {
        let explanations = self.look_up(tracker, indexes).await;
        for (position, index) in indexes.iter().enumerate() {
            let explanation = explanations.get(position).and_then(Option::as_ref);
            report(tracker, *index, WaitStatus::Missed, explanation, sink);
        }
    }

    async fn look_up_next(&mut self, tracker: &WaitTracker) -> (Vec<usize>, Vec<Option<Explanation>>) {
        let mut indexes = tracker.pending();
        let first = self.looked_up.checked_rem(indexes.len()).unwrap_or_default();
        if indexes.len() > MAX_OBJECTS {
            indexes.rotate_left(first);
            indexes.truncate(MAX_OBJECTS);
        }
        self.looked_up += indexes.len();
        let explanations = self.look_up(tracker, &indexes).await;
        (indexes, explanations)
    }

    async fn look_up(&mut self, tracker: &WaitTracker, indexes: &[usize]) -> Vec<Option<Explanation>> {
        // A user who stops the run does not want to wait for reasons.
        if self.interrupt.is_requested() {
            return Vec::new();
        }
        self.explainer.find_reasons(tracker, indexes).await
    }

    fn report_explanations(
        &mut self,
        tracker: &mut WaitTracker,
        explanations: impl Iterator<Item = (usize, Option<Explanation>)>,
        sink: &mut Sink<'_>,
    ) {
        for (index, explanation) in explanations {
            let Some(explanation) = explanation else {
                tracker.record_verdict(index, Verdict::MayRecover);
                continue;
            };
            tracker.record_verdict(index, explanation.verdict);
            let is_new = self.reported.insert((index, explanation.key.clone()));
            let wait_status = if is_new {
                WaitStatus::NewReason
            } else {
                WaitStatus::Explained
            };
            report(tracker, index, wait_status, Some(&explanation), sink);
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
    explanation: Option<&Explanation>,
    sink: &mut Sink<'_>,
) {
    let readiness = tracker.readiness(index);
    let found = explanation.map(|explanation| &explanation.reason);
    let reason = match found.filter(|found| !readiness.reason.contains(found.as_str())) {
        Some(found) => format!("{}; {found}", readiness.reason),
        None => readiness.reason,
    };
    sink(Event::Awaited(Awaited {
        subject: tracker.targets()[index].subject(),
        status: readiness.state,
        reason,
        wait_status,
    }));
}
