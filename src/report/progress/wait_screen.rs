//! The lines about the objects that a run waits for at a terminal: as many objects as fit, failed ones first, each with
//! its reason.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::compare::status::State;
use crate::event::{Awaited, Operation, Subject, WaitStatus};
use crate::model::identity::ObjectKey;
use crate::report::layout::align_columns::format_table;
use crate::report::layout::paint::fit;
use crate::report::progress::WIDTH_OF_INTERRUPT;

/// The hint below the objects.
const HOW_TO_STOP: &str = "Ctrl-C stops waiting; a rerun continues";

/// The objects of one wait.
pub(in crate::report) struct WaitScreen {
    pub(super) objects: BTreeMap<ObjectKey, Progress>,
    pub(super) limit: Option<Duration>,
    /// The word for objects that have reached their goal: `ready` or `gone`.
    pub(super) goal: &'static str,
}

/// How far an object has come.
pub(super) struct Progress {
    status: State,
    reason: String,
    has_arrived: bool,
}

impl WaitScreen {
    pub(in crate::report) fn new(operation: Operation, objects: &[Subject], limit: Option<Duration>) -> Self {
        let mut progress = BTreeMap::new();
        for subject in objects {
            let unknown = Progress {
                status: State::Unknown,
                reason: String::new(),
                has_arrived: false,
            };
            progress.insert(subject.key(), unknown);
        }
        Self {
            objects: progress,
            limit,
            goal: match operation {
                Operation::Delete => "gone",
                _ => "ready",
            },
        }
    }

    /// Counts the objects that have reached their goal.
    pub(in crate::report) fn count_arrived(&self) -> usize {
        self.objects.values().filter(|object| object.has_arrived).count()
    }

    /// Records the status of an object.
    pub(in crate::report) fn update(&mut self, awaited: &Awaited) {
        if let Some(object) = self.objects.get_mut(&awaited.subject.key()) {
            object.status = awaited.status;
            object.reason.clone_from(&awaited.reason);
            object.has_arrived = awaited.wait_status == WaitStatus::Arrived;
        }
    }

    /// Returns at most `max_lines` lines of `columns` characters. The last line is shorter, so that the cursor does not
    /// stay at the end of a full line (`ROOM_FOR_INTERRUPT`).
    pub(in crate::report) fn lines(&self, columns: usize, max_lines: usize) -> Vec<String> {
        let mut pending: Vec<_> = self.objects.iter().collect();
        pending.retain(|(_, object)| !object.has_arrived);
        pending.sort_by_key(|(_, object)| (object.status != State::Failed, object.reason.is_empty()));
        // The last line explains how to stop.
        let shown = max_lines.saturating_sub(1).max(1).min(pending.len());
        let more = pending.len() - shown;
        let mut rows = Vec::new();
        for (key, object) in &pending[..shown] {
            let mark = if object.status == State::Failed { 'x' } else { '.' };
            let name = format!("{mark} {}", key.object_name());
            let namespace = key.namespace.clone().unwrap_or_default();
            rows.push(vec![name, namespace, object.reason.clone()]);
        }
        let mut lines: Vec<String> = format_table(rows, columns.saturating_sub(2), &[])
            .iter()
            .map(|line| format!("  {line}"))
            .collect();
        let last = match more {
            0 => format!("    {HOW_TO_STOP}"),
            more => format!("  . and {more} more   {HOW_TO_STOP}"),
        };
        lines.push(fit(&last, columns.saturating_sub(WIDTH_OF_INTERRUPT)));
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::resource::{Resource, Scope};

    fn subject(name: &str) -> Subject {
        Subject {
            resource: Arc::new(Resource::with_regular_names(
                "apps",
                "v1",
                "Deployment",
                Scope::Namespaced,
            )),
            namespace: Some("shop-front".to_owned()),
            name: name.to_owned(),
            uid: None,
        }
    }

    fn awaited(name: &str, status: State, reason: &str, wait_status: WaitStatus) -> Awaited {
        Awaited {
            subject: subject(name),
            status,
            reason: reason.to_owned(),
            wait_status,
        }
    }

    #[test]
    fn failures_come_first_and_what_has_arrived_is_gone() {
        let names = ["web", "redis", "billing", "a", "b", "c"];
        let subjects: Vec<Subject> = names.iter().map(|name| subject(name)).collect();
        let mut screen = WaitScreen::new(Operation::Apply, &subjects, None);
        screen.update(&awaited(
            "web",
            State::InProgress,
            "1 of 3 replicas are ready",
            WaitStatus::Changed,
        ));
        screen.update(&awaited(
            "billing",
            State::Failed,
            "ImagePullBackOff: not\nfound",
            WaitStatus::Changed,
        ));
        screen.update(&awaited("redis", State::Current, "ready", WaitStatus::Arrived));
        assert_eq!((screen.count_arrived(), screen.objects.len()), (1, 6));
        assert_eq!(
            screen.lines(80, 4),
            [
                "  x deployment.apps/billing   shop-front   ImagePullBackOff: not\\nfound",
                "  . deployment.apps/web       shop-front   1 of 3 replicas are ready",
                "  . deployment.apps/a         shop-front",
                "  . and 2 more   Ctrl-C stops waiting; a rerun continues",
            ]
        );
        let narrow = screen.lines(40, 10);
        assert!(narrow.iter().all(|line| line.chars().count() <= 40), "{narrow:?}");
        assert_eq!(narrow.len(), 6);
        assert_eq!(narrow[5], "    Ctrl-C stops waiting; a rerun c…");
    }

    #[test]
    fn long_names_look_different() {
        let names = ["blue", "green", "eu-west-1", "us-east-1"];
        let names = names.map(|end| format!("checkout-of-all-orders-and-payments-{end}-production"));
        let subjects: Vec<Subject> = names.iter().map(|name| subject(name)).collect();
        let screen = WaitScreen::new(Operation::Apply, &subjects, None);
        let lines = screen.lines(80, 10);
        let different: std::collections::BTreeSet<&String> = lines.iter().collect();
        assert_eq!(different.len(), lines.len(), "{lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:?}");
    }
}
