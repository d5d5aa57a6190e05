//! The entry of a run in the history of its set: while it is under way, and once it has ended.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{Execution, Sink};
use crate::cluster::apiserver::ApiServer;
use crate::event::{Action, Ending, Event, Summary};
use crate::manifest::desired;
use crate::model::history_annotation::{self, Counts, Run, RunOperation, RunResult};
use crate::read;

/// The history entry of a run, as far as it is known.
#[derive(Debug, Default)]
pub struct HistoryEntry {
    changes: RefCell<Changes>,
}

impl HistoryEntry {
    /// Returns a sink that counts the changes among events, and passes all events on.
    pub fn counting_sink(&self, sink: &mut Sink<'_>) -> impl FnMut(Event) {
        |event| {
            self.changes.borrow_mut().note(&event);
            sink(event);
        }
    }

    /// Returns whether the run has changed anything.
    pub fn has_changes(&self) -> bool {
        !self.changes.borrow().is_empty()
    }

    /// Returns the entry of a run that ends now; `None` if it has changed nothing.
    pub fn entry_at_end(&self, server: &ApiServer, begun: Run, ending: Ending) -> Option<Run> {
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
            // What a move has put into the new set has left the old one.
            counts: if begun.takes_out {
                Counts {
                    released: counts.released + counts.adopted,
                    adopted: 0,
                    ..counts
                }
            } else {
                counts
            },
            id: String::new(),
            renewed: None,
            ..begun
        })
    }
}

/// The changes of a run so far.
#[derive(Debug, Default)]
struct Changes {
    objects: Summary,
    parent: bool,
    /// An object was deleted to be created again, and then failed.
    deleted: bool,
}

impl Changes {
    fn note(&mut self, event: &Event) {
        match event {
            Event::Object(outcome) => {
                self.objects.add(outcome.action);
                self.deleted |= outcome.was_deleted;
            }
            Event::Revised { before, now } => self.objects.recount(*before, now.action),
            Event::Parent(..) => self.parent = true,
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
        !self.parent && !self.deleted && counts == Counts::default()
    }
}

impl Execution<'_> {
    /// Returns the entry of this run while it is under way.
    pub(super) async fn entry_under_way(&self) -> Run {
        let run = entry_under_way(self.server, RunOperation::Apply).await;
        Run {
            manifests: desired::digest(self.desired),
            ..run
        }
    }
}

/// Returns the entry of a run that begins now. Asks for the name of the user, which the server may not say.
pub(super) async fn entry_under_way(server: &ApiServer, operation: RunOperation) -> Run {
    let user = read::user_name(server).await;
    Run {
        time: timestamp(server),
        result: RunResult::Running,
        counts: Counts::default(),
        takes_out: false,
        operation,
        manifests: String::new(),
        user: user.as_deref().map(history_annotation::shorten_user),
        version: concat!("v", env!("CARGO_PKG_VERSION")).to_owned(),
        id: random_id(),
        renewed: None,
        others: BTreeMap::new(),
    }
}

/// Returns the time of the server as entries have it.
pub(super) fn timestamp(server: &ApiServer) -> String {
    server.now().strftime("%FT%TZ").to_string()
}

/// Returns eight hexadecimal digits: they only have to differ between the runs under way on one set.
fn random_id() -> String {
    let number = getrandom::u32().unwrap_or_else(|_| std::process::id());
    format!("{number:08x}")
}
