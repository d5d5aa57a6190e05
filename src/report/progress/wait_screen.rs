//! The lines about the objects that a run waits for at a terminal: as many objects as fit, failed ones first, each with
//! its reason.

use std::collections::HashMap;
use std::time::Duration;

use crate::compare::status::State;
use crate::event::{Awaited, Operation, Subject, WaitStatus};
use crate::model::identity::ObjectKey;
use crate::model::text::escape_as_one_line;
use crate::report::layout::paint::{NameColumn, fit};
use crate::report::progress::WIDTH_OF_INTERRUPT;

/// The most characters of the column of names.
const MAX_NAME_WIDTH: usize = 32;
/// The most characters of the column of namespaces.
const MAX_NAMESPACE_WIDTH: usize = 16;

/// The hint below the objects.
const HOW_TO_STOP: &str = "Ctrl-C stops waiting; a rerun continues";

/// The objects of one wait.
pub(in crate::report) struct WaitScreen {
    pub(super) rows: Vec<Row>,
    indexes: HashMap<ObjectKey, usize>,
    pub(super) limit: Option<Duration>,
    /// The word for objects that have reached their goal: `ready` or `gone`.
    pub(super) goal: &'static str,
}

pub(super) struct Row {
    name: String,
    namespace: String,
    status: State,
    reason: String,
    has_arrived: bool,
}

impl WaitScreen {
    pub(in crate::report) fn new(operation: Operation, objects: &[Subject], limit: Option<Duration>) -> Self {
        let mut rows = Vec::new();
        let mut indexes = HashMap::new();
        for (index, key) in objects.iter().map(Subject::key).enumerate() {
            rows.push(Row {
                name: escape_as_one_line(&key.object_name()),
                namespace: escape_as_one_line(key.namespace.as_deref().unwrap_or_default()),
                status: State::Unknown,
                reason: String::new(),
                has_arrived: false,
            });
            indexes.insert(key, index);
        }
        Self {
            rows,
            indexes,
            limit,
            goal: match operation {
                Operation::Delete => "gone",
                _ => "ready",
            },
        }
    }

    /// Counts the objects that have reached their goal.
    pub(in crate::report) fn count_arrived(&self) -> usize {
        self.rows.iter().filter(|row| row.has_arrived).count()
    }

    /// Records the status of an object.
    pub(in crate::report) fn update(&mut self, awaited: &Awaited) {
        let index = self.indexes.get(&awaited.subject.key());
        if let Some(row) = index.and_then(|index| self.rows.get_mut(*index)) {
            row.status = awaited.status;
            row.reason = escape_as_one_line(&awaited.reason);
            row.has_arrived = awaited.wait_status == WaitStatus::Arrived;
        }
    }

    /// Returns at most `max_lines` lines of `columns` characters. The last line is shorter, so that the cursor does not
    /// stay at the end of a full line (`ROOM_FOR_INTERRUPT`).
    pub(in crate::report) fn lines(&self, columns: usize, max_lines: usize) -> Vec<String> {
        let mut pending: Vec<&Row> = self.rows.iter().filter(|row| !row.has_arrived).collect();
        pending.sort_by_key(|row| (row.status != State::Failed, row.reason.is_empty()));
        // The last line explains how to stop.
        let shown = max_lines.saturating_sub(1).max(1).min(pending.len());
        let more = pending.len() - shown;
        let pending = &pending[..shown];
        let namespaces = NameColumn::new(
            pending.iter().map(|row| row.namespace.as_str()),
            MAX_NAMESPACE_WIDTH,
        );
        let namespace_width = namespaces.width;
        let most = MAX_NAME_WIDTH.min(columns.saturating_sub(namespace_width + 6));
        let names = NameColumn::new(pending.iter().map(|row| row.name.as_str()), most);
        let name_width = names.width;
        let mut lines = Vec::new();
        for row in pending {
            let mark = if row.status == State::Failed { 'x' } else { '.' };
            let name = names.fit(&row.name);
            let namespace = namespaces.fit(&row.namespace);
            let line = format!(
                "  {mark} {name:name_width$}  {namespace:namespace_width$}  {}",
                row.reason
            );
            lines.push(fit(line.trim_end(), columns));
        }
        let last = match more {
            0 => format!("    {HOW_TO_STOP}"),
            more => {
                let more = format!("and {more} more");
                format!("  . {more:name_width$}  {HOW_TO_STOP}")
            }
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
        assert_eq!((screen.count_arrived(), screen.rows.len()), (1, 6));
        assert_eq!(
            screen.lines(80, 4),
            [
                "  x deployment.apps/billing  shop-front  ImagePullBackOff: not\\nfound",
                "  . deployment.apps/web      shop-front  1 of 3 replicas are ready",
                "  . deployment.apps/a        shop-front",
                "  . and 2 more               Ctrl-C stops waiting; a rerun continues",
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
