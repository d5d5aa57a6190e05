//! Measures how long actions take, and reports the slowest one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::event::{Event, Sink};
use crate::execute::schedule::Lane;
use crate::execute::wait_notes::SLOW;
use crate::model::identity::ObjectKey;
use crate::plan::NodeId;

/// The actions under way, and since when.
pub(super) struct Clock<'k> {
    under_way: BTreeMap<NodeId, Begun<'k>>,
    /// The number of writes in `under_way`.
    pub(super) writes: usize,
    /// The interval at which the slowest action is reported.
    pub(super) interval: tokio::time::Interval,
    /// `true` if the last report named an action.
    was_slow: bool,
}

/// An action under way.
struct Begun<'k> {
    lane: Lane,
    key: &'k ObjectKey,
    since: Instant,
}

impl<'k> Clock<'k> {
    pub(super) fn new() -> Self {
        Self {
            under_way: BTreeMap::new(),
            writes: 0,
            interval: tokio::time::interval(Duration::from_secs(1)),
            was_slow: false,
        }
    }

    pub(super) fn begin(&mut self, id: NodeId, lane: Lane, key: &'k ObjectKey) {
        let since = Instant::now();
        self.under_way.insert(id, Begun { lane, key, since });
        self.writes += usize::from(lane == Lane::Write);
    }

    /// Removes an action that has ended. Returns how long it took; `None` if it was not a write.
    pub(super) fn stop(&mut self, id: NodeId) -> Option<Duration> {
        let Begun { lane, since, .. } = self.under_way.remove(&id)?;
        if lane != Lane::Write {
            return None;
        }
        self.writes -= 1;
        Some(since.elapsed())
    }

    /// Reports the action that has been under way for the longest time, or that none is slow any more.
    pub(super) fn report_slowest(&mut self, sink: &mut Sink<'_>) {
        let oldest = self.under_way.values().min_by_key(|begun| begun.since);
        let slowest = oldest.and_then(|begun| {
            let elapsed = begun.since.elapsed();
            (elapsed >= SLOW).then(|| (begun.key.clone(), elapsed))
        });
        if self.was_slow || slowest.is_some() {
            self.was_slow = slowest.is_some();
            sink(Event::Slowest(slowest));
        }
    }

    /// Reports that no action is slow any more, at the end of a graph.
    pub(super) fn report_none_slow(&mut self, sink: &mut Sink<'_>) {
        if std::mem::take(&mut self.was_slow) {
            sink(Event::Slowest(None));
        }
    }
}
