//! Writes the history of the set after a run that changed something.
//!
//! It is one write of the parent, after its record. A failure is a warning: the history decides
//! nothing.

use std::cell::{OnceCell, RefCell};

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;

use super::parent_record::requests::Known;
use super::{Execution, Sink};
use crate::cluster::apiserver::{ApiError, ApiRequest, ApiServer, Patch};
use crate::event::{Action, Ending, Event, Summary};
use crate::manifest::desired;
use crate::model::applyset::parent::Reading;
use crate::model::history_annotation::{self, Counts, HISTORY_ANNOTATION, PastResult, PastRun};
use crate::plan::undo::UndoScope;
use crate::read::{self, METADATA};

/// Attempts to write the history of a parent that other clients write at the same time.
const ATTEMPTS: usize = 3;

/// The history entry of a run, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct HistoryEntry {
    changes: RefCell<Changes>,
    /// The answer to who the user is, once the server was asked.
    user: OnceCell<Option<String>>,
}

impl HistoryEntry {
    pub(super) fn note(&self, event: &Event) {
        self.changes.borrow_mut().note(event);
    }

    /// Asks the server who the user is, if the run has changed something: only then it writes an entry.
    pub(super) async fn ask_for_user(&self, server: &ApiServer) {
        if !self.changes.borrow().is_empty() {
            let _ = self.user.set(read::user_name(server).await);
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
    /// Adds the run to the history on the parent, which is `known`; a run that changed nothing is
    /// not added.
    pub(super) async fn write_history(
        &self,
        mut known: Known,
        entry: &HistoryEntry,
        ending: Ending,
        sink: &mut Sink<'_>,
    ) {
        if entry.changes.borrow().is_empty() {
            return;
        }
        let user = match entry.user.get() {
            Some(user) => user.clone(),
            None => read::user_name(self.server).await,
        };
        let run = PastRun {
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
            user,
            version: concat!("v", env!("CARGO_PKG_VERSION")).to_owned(),
        };
        if let Err(error) = self.write_run(&run, &mut known).await {
            sink(Event::Warning(format!(
                "this run is not in the history of the set: {}",
                error.kind
            )));
        }
    }

    async fn write_run(&self, run: &PastRun, known: &mut Known) -> Result<(), ApiError> {
        for attempt in 1..=ATTEMPTS {
            let Some(value) = history_annotation::with(run.clone(), &known.all) else {
                return Ok(());
            };
            match self.patch_history(&known.resource_version, &value).await {
                Err(error) if error.is(StatusCode::CONFLICT) && attempt < ATTEMPTS => {}
                // The parent was deleted, and its history with it.
                Err(error) if error.is(StatusCode::NOT_FOUND) => return Ok(()),
                written => return written,
            }
            let parent = self.parent_writing().read().await?;
            match parent.filter(|parent| matches!(parent.reading, Reading::Parent(_))) {
                Some(parent) => *known = Known::of(&parent),
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Bound to the version of the parent that the value was made from: a run of the meantime stays
    /// in the history.
    async fn patch_history(&self, resource_version: &str, value: &str) -> Result<(), ApiError> {
        let patch = json!({"metadata": {
            "resourceVersion": resource_version,
            "annotations": {HISTORY_ANNOTATION: value},
        }});
        let writing = self.parent_writing();
        let parameters = [("fieldManager", writing.field_manager())];
        let path = self.parent_resource.path_of(&self.set.parent);
        let body = Bytes::from(patch.to_string());
        let request = ApiRequest::patch(&path, &parameters, METADATA, Patch::Merge, body);
        self.server.send(request).await.map(drop)
    }
}
