//! Writes the history of the set after a run that changed something.
//!
//! It is one write of the parent, after its record. A failure is a warning: the history decides
//! nothing.

use std::cell::{Cell, OnceCell, RefCell};

use http::StatusCode;

use super::parent_record::requests::{Known, ParentWriteError};
use super::parent_record::widen::Annotated;
use super::{Execution, Sink};
use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::event::{Action, Ending, Event, Summary};
use crate::manifest::desired;
use crate::model::applyset::parent::Reading;
use crate::model::history_annotation::{self, Counts, HISTORY_ANNOTATION, PastResult, PastRun};
use crate::plan::undo::UndoScope;
use crate::read;

/// Attempts to write the history of a parent that other clients write at the same time.
const ATTEMPTS: usize = 3;

/// The history entry of a run, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct HistoryEntry {
    changes: RefCell<Changes>,
    /// The name of the user, once the server has given it.
    user: OnceCell<String>,
    /// The entry itself, made once at the end of the run.
    run: OnceCell<PastRun>,
    /// Whether the entry has been written, or the failure to write it has been reported.
    is_settled: Cell<bool>,
}

impl HistoryEntry {
    pub(super) fn note(&self, event: &Event) {
        self.changes.borrow_mut().note(event);
    }

    /// Asks the server who the user is, unless it has answered before.
    pub(super) async fn ask_for_user(&self, server: &ApiServer) {
        if self.user.get().is_none() {
            let name = read::user_name(server).await;
            if let Some(name) = name.as_deref() {
                let _ = self.user.set(history_annotation::kept_of_user(name));
            }
        }
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
            failed: self.objects.count(Action::Failed),
        }
    }

    fn is_empty(&self) -> bool {
        let counts = self.counts();
        !self.parent
            && !self.deleted
            && counts.created + counts.configured + counts.recreated + counts.pruned == 0
    }
}

impl Execution<'_> {
    /// Ensures that the record still covers what this run has written. Adds the run to the history, unless it
    /// was interrupted.
    pub(super) async fn ensure_covers_with_history(
        &self,
        known: &mut Known,
        entry: &HistoryEntry,
        ending: Ending,
        sink: &mut Sink<'_>,
    ) -> Result<(), ParentWriteError> {
        let (parent, needed) = (self.parent_writing(), &self.plan.record_during);
        if ending == Ending::Interrupted {
            // A second interrupt may end the run at once: nothing comes before the record.
            return parent.ensure_covers(known, needed, sink).await;
        }
        let value = match self.past_run(entry, ending).await {
            Some(run) => history_annotation::with(run.clone(), &known.all),
            None => None,
        };
        let Some(value) = value else {
            return parent.ensure_covers(known, needed, sink).await;
        };
        let annotation = (HISTORY_ANNOTATION, value.as_str());
        match parent
            .annotate_and_ensure_covers(known, annotation, needed, sink)
            .await?
        {
            Annotated::Done => entry.is_settled.set(true),
            Annotated::Overtaken => {}
            Annotated::Failed(error) => {
                entry.is_settled.set(true);
                sink(not_in_history(&error));
            }
        }
        Ok(())
    }

    /// Adds the run to the history on the parent, which is `known`, unless the run changed nothing or its
    /// entry is already settled.
    pub(super) async fn write_history(
        &self,
        mut known: Known,
        entry: &HistoryEntry,
        ending: Ending,
        sink: &mut Sink<'_>,
    ) {
        if entry.is_settled.get() {
            return;
        }
        let Some(run) = self.past_run(entry, ending).await else {
            return;
        };
        if let Err(error) = self.write_run(run, &mut known).await {
            sink(not_in_history(&error));
        }
    }

    /// Returns the entry of this run, which is made once; `None` if it changed nothing.
    async fn past_run<'e>(&self, entry: &'e HistoryEntry, ending: Ending) -> Option<&'e PastRun> {
        if entry.changes.borrow().is_empty() {
            return None;
        }
        if let Some(run) = entry.run.get() {
            return Some(run);
        }
        entry.ask_for_user(self.server).await;
        Some(entry.run.get_or_init(|| PastRun {
            time: self.server.now().strftime("%FT%TZ").to_string(),
            result: match ending {
                Ending::Done if self.undoes == Some(UndoScope::Partial) => PastResult::Incomplete,
                Ending::Done => PastResult::Done,
                Ending::Incomplete => PastResult::Failed,
                Ending::Interrupted => PastResult::Interrupted,
            },
            counts: entry.changes.borrow().counts(),
            undo: self.undoes.is_some(),
            manifests: desired::digest(self.desired),
            user: entry.user.get().cloned(),
            version: concat!("v", env!("CARGO_PKG_VERSION")).to_owned(),
        }))
    }

    /// Adds the run to the history. If another client changes the parent in the meantime, adds it to what
    /// that client has left.
    async fn write_run(&self, run: &PastRun, known: &mut Known) -> Result<(), ApiError> {
        let parent = self.parent_writing();
        for attempt in 1..=ATTEMPTS {
            // An earlier write succeeded, but its answer was lost.
            if history_annotation::read(&known.all).contains(run) {
                return Ok(());
            }
            let Some(value) = history_annotation::with(run.clone(), &known.all) else {
                return Ok(());
            };
            match parent.write_annotation(known, (HISTORY_ANNOTATION, &value)).await {
                Err(error) if error.is(StatusCode::CONFLICT) && attempt < ATTEMPTS => {}
                // The parent was deleted, and its history with it.
                Err(error) if error.is(StatusCode::NOT_FOUND) => return Ok(()),
                written => return written.map(drop),
            }
            let now = parent.read().await?;
            match now.filter(|now| matches!(now.reading, Reading::Parent(_))) {
                Some(now) => *known = Known::of(&now),
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

fn not_in_history(error: &ApiError) -> Event {
    Event::Warning(format!(
        "this run is not in the history of the set: {}",
        error.kind
    ))
}
