//! Begins a run: the one write of the parent before the first member.

use serde_json::Value;

use super::ATTEMPTS;
use super::requests::{ParentWriteError, ParentWriting, Target, Written};
use crate::cluster::apiserver::{ApiServer, Moment};
use crate::event::{Action, Event};
use crate::execute::Sink;
use crate::model::applyset::Record;
use crate::model::applyset::parent::{ApplySetRecord, RecordedKinds};
use crate::model::history_annotation::{HISTORY_ANNOTATION, History, Run};
use crate::model::parent_object::ParentObject;
use crate::plan::{self, ParentStatus};

/// The parent as this run has last read or written it.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) parent: ParentObject,
    /// The entry of this run; `None` if it has not begun.
    pub(crate) run: Option<Run>,
    /// Whether another run was at work on the set since this one has read the parent: members may exist that this
    /// run has not seen.
    pub(crate) is_shared: bool,
}

impl Known {
    /// The parent of a run that has not begun.
    pub(crate) fn read(parent: ParentObject) -> Self {
        Self {
            is_shared: !parent.running.is_empty(),
            parent,
            run: None,
        }
    }

    /// Returns the id of the run's entry; empty if it has not begun.
    pub(super) fn id(&self) -> &str {
        self.run.as_ref().map_or("", |run| &run.id)
    }

    /// Takes the parent as it was found after a write that was not bound to the version that is known.
    pub(super) fn find(&mut self, found: ParentObject) {
        self.is_shared |= !is_as_left(&self.parent, &found, self.id());
        self.parent = found;
    }
}

impl ParentWriting<'_> {
    /// Writes the record, which becomes what it says and `needed`, and the entry of the run; creates a parent that
    /// does not exist. Says which other runs are under way.
    pub(crate) async fn begin(
        &self,
        parent: Option<ParentObject>,
        needed: &Record,
        run: Run,
        sink: &mut Sink<'_>,
    ) -> Result<Known, ParentWriteError> {
        let known = self.write_entry(parent, needed, run, sink).await?;
        note_runs_beside(self.server, &known, sink);
        Ok(known)
    }

    /// Writes the entry of a run over the parent as it was read, and a record that covers what it needs.
    pub(super) async fn write_entry(
        &self,
        parent: Option<ParentObject>,
        needed: &Record,
        run: Run,
        sink: &mut Sink<'_>,
    ) -> Result<Known, ParentWriteError> {
        // The time in the entry is not later. The machine may be suspended before the write is sent.
        let before = Moment::now();
        let mut others = parent.iter().flat_map(|parent| &parent.running);
        let is_shared = others.any(|other| other.id != run.id);
        let decide = |recorded: &Record, mut history: History, _is_shared: bool| {
            history.add(run.clone());
            Target {
                record: recorded.union(needed),
                history,
            }
        };
        let (parent, is_shared) = self
            .write_as_decided(parent, is_shared, &run.id, decide, sink)
            .await?;
        self.server.renew_lease(before);
        Ok(Known {
            parent,
            run: Some(run),
            is_shared,
        })
    }

    /// Writes what `decide` makes of the record and the runs of the parent, and decides again if another client
    /// has written it first. `own` is the id of this run's entry.
    ///
    /// Runs that were abandoned when the parent was read are dropped, and named. Returns the parent, and whether
    /// another run was at work since it was read.
    pub(super) async fn write_as_decided(
        &self,
        mut parent: Option<ParentObject>,
        mut is_shared: bool,
        own: &str,
        decide: impl Fn(&Record, History, bool) -> Target,
        sink: &mut Sink<'_>,
    ) -> Result<(ParentObject, bool), ParentWriteError> {
        for _ in 0..ATTEMPTS {
            let status = plan::judge(self.set, parent.as_ref())
                .and_then(|judged| judged.accepted(self.accepted))
                .map_err(ParentWriteError::Refused)?;
            let history = parent.as_ref().map(runs_as_read).unwrap_or_default();
            let target = decide(&recorded(&status), history, is_shared);
            let target = self.annotations(&target, parent.as_ref())?;
            let written = match &parent {
                Some(parent) if is_written(parent, &target) => return Ok((parent.clone(), is_shared)),
                Some(parent) => self.write_record(&parent.resource_version, &target, sink).await?,
                None => {
                    let created = Box::pin(self.create(&target, sink)).await?;
                    if matches!(created, Written::Done(_)) {
                        sink(Event::Parent(self.set.parent.clone(), Action::Created));
                    }
                    created
                }
            };
            match written {
                Written::Done(written) => {
                    for run in parent.iter().flat_map(|parent| &parent.abandoned) {
                        let began = run.began(self.server.now());
                        let note = format!("{run} that began {began} never ended, and counts as abandoned");
                        sink(Event::Note(note));
                    }
                    return Ok((*written, is_shared));
                }
                Written::Overtaken => {
                    let found = self.read().await?;
                    // The write may have been done, and its answer lost.
                    let is_written = found.as_ref().is_some_and(|found| is_written(found, &target));
                    // A run that may have written a member leaves a trace; others change other fields.
                    is_shared |= !is_written
                        && match (&parent, &found) {
                            (Some(before), Some(found)) => !is_as_left(before, found, own),
                            _ => true,
                        };
                    parent = found;
                }
            }
        }
        Err(ParentWriteError::Contended)
    }
}

/// Names the other runs that are under way.
pub(crate) fn note_runs_beside(server: &ApiServer, known: &Known, sink: &mut Sink<'_>) {
    for running in &known.parent.running {
        if running.id != known.id() {
            let began = running.began(server.now());
            sink(Event::Note(format!(
                "{running} began {began} and has not ended; the set's record is narrowed only after both runs"
            )));
        }
    }
}

/// Returns whether the parent has the record and the runs that are to be written.
fn is_written(parent: &ParentObject, target: &Value) -> bool {
    let has_runs = parent.annotations.contains_key(HISTORY_ANNOTATION);
    parent.has_annotations(target) && has_runs == target[HISTORY_ANNOTATION].is_string()
}

/// Returns whether no other run has begun, ended or written the record between these two states of the parent.
fn is_as_left(before: &ParentObject, found: &ParentObject, own: &str) -> bool {
    let others = |parent: &ParentObject| History::of(&parent.annotations).without(own);
    before.uid == found.uid && before.reading == found.reading && others(before) == others(found)
}

/// Returns the runs of the parent; those that were abandoned when it was read are past.
pub(super) fn runs_as_read(parent: &ParentObject) -> History {
    let mut history = History::of(&parent.annotations);
    for run in &parent.abandoned {
        history.abandon(&run.id);
    }
    history
}

/// Returns the record of a parent; an empty one without a parent.
fn recorded(status: &ParentStatus) -> Record {
    match status {
        ParentStatus::Recorded(ApplySetRecord {
            kinds: RecordedKinds::GroupKinds(group_kinds),
            additional_namespaces,
            ..
        }) => Record {
            group_kinds: group_kinds.clone(),
            additional_namespaces: additional_namespaces.clone(),
        },
        // The deprecated list was translated when the plan was made; no tool writes it today.
        ParentStatus::Recorded(_) | ParentStatus::New => Record::default(),
    }
}
