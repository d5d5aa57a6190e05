//! The entry of a run in the history of its set: while it is under way, and once it has ended.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::Execution;
use crate::cluster::apiserver::ApiServer;
use crate::event::{Action, ActionCounts, Ending, Event, Sink};
use crate::manifest::desired;
use crate::model::history_annotation::{self, Counts, Run, RunOperation, RunResult};
use crate::read;

/// Counts the changes of a run for its entry in the history.
#[derive(Debug, Default)]
pub struct ChangeCounter {
    changes: RefCell<Changes>,
}

impl ChangeCounter {
    /// Returns a sink that counts the changes among events, and passes all events on.
    pub fn counting_sink(&self, sink: &mut Sink<'_>) -> impl FnMut(Event) {
        |event| {
            self.changes.borrow_mut().count_event(&event);
            sink(event);
        }
    }

    /// Returns whether the run has changed anything.
    pub fn has_changes(&self) -> bool {
        !self.changes.borrow().is_empty()
    }

    /// Returns the entry of a run that ends now; `None` if it has changed nothing.
    pub fn build_final_entry_if_changed(
        &self,
        server: &ApiServer,
        begun: Run,
        ending: Ending,
    ) -> Option<Run> {
        if !self.has_changes() {
            return None;
        }
        let counts = self.changes.borrow().counts();
        Some(Run {
            time: timestamp(server),
            result: match ending {
                Ending::Done => RunResult::Done,
                Ending::Incomplete => RunResult::Failed,
                Ending::Interrupted => RunResult::Interrupted,
            },
            // In a move, this is the entry of the set that objects leave. The run counts them as adopted by the other
            // set; for this set, they are released.
            counts: if begun.takes_out {
                Counts {
                    released: counts.released + counts.adopted,
                    adopted: 0,
                    ..counts
                }
            } else {
                counts
            },
            // Only entries of runs under way have an id and a time of renewal.
            id: String::new(),
            renewed: None,
            ..begun
        })
    }
}

/// The changes of a run so far.
#[derive(Debug, Default)]
struct Changes {
    objects: ActionCounts,
    /// `true` if the run has written the parent.
    has_written_parent: bool,
    /// `true` if the run has deleted an object to create it again, and the object failed after that.
    has_unfinished_recreation: bool,
}

impl Changes {
    fn count_event(&mut self, event: &Event) {
        match event {
            Event::Object(outcome) => {
                self.objects.add(outcome.action);
                self.has_unfinished_recreation |= outcome.was_deleted;
            }
            Event::Parent(..) => self.has_written_parent = true,
            _ => {}
        }
    }

    fn counts(&self) -> Counts {
        Counts {
            created: self.objects.count(Action::Created),
            configured: self.objects.count(Action::Configured),
            recreated: self.objects.count(Action::Recreated),
            pruned: self.objects.count(Action::Pruned),
            adopted: self.objects.count(Action::Adopted),
            deleted: self.objects.count(Action::Deleted),
            released: self.objects.count(Action::Released),
            failed: self.objects.count(Action::Failed),
        }
    }

    fn is_empty(&self) -> bool {
        let counts = self.counts();
        !self.has_written_parent && !self.has_unfinished_recreation && counts == Counts::default()
    }
}

impl Execution<'_> {
    /// Returns the entry of this run while it is under way.
    pub(super) async fn build_running_entry_of_apply(&self) -> Run {
        let run = new_running_entry(self.server, RunOperation::Apply).await;
        Run {
            manifests: desired::digest_without_secret_values(self.desired),
            message: self.writing.message.clone(),
            ..run
        }
    }
}

/// Returns the entry of a run that begins now. Asks the server for the name of the user; if the server does not say it,
/// the entry has no name.
pub(super) async fn new_running_entry(server: &ApiServer, operation: RunOperation) -> Run {
    let user = read::user_name(server).await;
    Run {
        time: timestamp(server),
        result: RunResult::Running,
        counts: Counts::default(),
        takes_out: false,
        operation,
        manifests: String::new(),
        user: user.as_deref().map(history_annotation::shorten_user),
        message: None,
        version: concat!("v", env!("CARGO_PKG_VERSION")).to_owned(),
        id: random_id(),
        renewed: None,
        others: BTreeMap::new(),
    }
}

/// Returns the time by the server's clock, in the format of entries.
pub(super) fn timestamp(server: &ApiServer) -> String {
    server.now().strftime("%FT%TZ").to_string()
}

/// Returns the id of an entry, eight hexadecimal digits. Ids only have to differ between the runs under way on one set,
/// so the id of the process serves if the operating system returns no random number.
fn random_id() -> String {
    let number = getrandom::u32().unwrap_or_else(|_| std::process::id());
    format!("{number:08x}")
}
