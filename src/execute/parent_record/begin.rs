//! Begins a run: the one write of the parent before the first member.

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::ATTEMPTS;
use super::requests::{ParentWriteError, ParentWriting, Target, Written};
use crate::cluster::apiserver::Moment;
use crate::event::{Action, Ending, Event};
use crate::execute::Sink;
use crate::execute::history::entry_under_way;
use crate::model::applyset::Record;
use crate::model::applyset::parent::{ApplySetRecord, Reading, RecordedKinds};
use crate::model::history_annotation::{HISTORY_ANNOTATION, History, Run, RunOperation};
use crate::model::identity::ObjectKey;
use crate::model::live::Presence;
use crate::model::set::ParentObject;
use crate::model::write_settings::{DryRun, Exclusive};
use crate::plan::{self, ParentStatus, Refusal};

/// The parent as this run has last read or written it.
#[derive(Debug, Clone)]
pub struct Known {
    pub parent: ParentObject,
    /// The entry of this run; `None` if it has not begun.
    pub run: Option<Run>,
    /// The runs that it showed when the plan was made.
    pub runs_before: History,
    /// `true` if another run that may add members was at work since this one read the parent: there may be members that
    /// this run has not seen.
    pub is_shared: bool,
    /// The time of the last write of the entry.
    pub renewed: Moment,
    /// `true` if the run only takes objects out of the set: it writes only the parent that it has read.
    pub takes_out: bool,
}

/// The run that writes the parent.
pub(super) struct Writer<'a> {
    /// The id of its entry; empty without one.
    pub(super) id: &'a str,
    /// The UID of the only parent that it may write; `None` if it may write another one, or create one.
    pub(super) only: Option<&'a str>,
}

/// The parent as it is when a write of it is decided.
pub(super) struct ParentRead {
    pub(super) record: Record,
    /// Its runs; those that were abandoned are past.
    pub(super) history: History,
    /// `true` if another run that may add members was at work.
    pub(super) is_shared: bool,
    /// `true` if another client has written it since this run read the set.
    pub(super) is_overtaken: bool,
}

impl Known {
    /// The parent of a run that has not begun.
    pub fn read(parent: ParentObject) -> Self {
        Self {
            is_shared: parent.is_being_added_to(),
            runs_before: runs_as_read(&parent, ""),
            parent,
            run: None,
            renewed: Moment::now(),
            takes_out: false,
        }
    }

    /// The same of a run that takes objects out of the set.
    pub fn read_to_take_out(parent: ParentObject) -> Self {
        Self {
            takes_out: true,
            ..Self::read(parent)
        }
    }

    /// Returns the run as the writer of its parent.
    pub(super) fn writer(&self) -> Writer<'_> {
        Writer {
            id: self.id(),
            only: self.takes_out.then_some(&self.parent.uid),
        }
    }

    /// Returns the id of the run's entry; empty if it has not begun.
    pub fn id(&self) -> &str {
        self.run.as_ref().map_or("", |run| &run.id)
    }

    /// Returns the record whose scope the plan has listed: `read` is what the parent said then.
    pub fn listed(&self, read: &Reading) -> Reading {
        // Another run may have recorded more.
        if self.is_shared {
            read
        } else {
            &self.parent.reading
        }
        .clone()
    }

    /// Forgets the entry of a run whose parent was deleted or is no longer a parent.
    pub fn forget_entry(&mut self) {
        self.run = None;
    }

    /// Replaces the known parent by the one that was found after a write without a precondition.
    pub fn replace(&mut self, found: ParentObject) {
        self.is_shared |= !is_as_left(&self.parent, &found, self.id());
        self.parent = found;
    }
}

impl ParentWriting<'_> {
    /// Begins a run that takes objects out of the set, whose record is `recorded`.
    ///
    /// A dry run has no entry. A run whose entry cannot be written continues without it: it adds no member that has to
    /// be recorded, and one of its objects may be the webhook that prevents the write.
    ///
    /// # Errors
    ///
    /// The parent has become one that this run may not write.
    pub async fn begin_to_take_out(
        &self,
        parent: ParentObject,
        recorded: &Record,
        operation: RunOperation,
        sink: &mut Sink<'_>,
    ) -> Result<Known, ParentWriteError> {
        let is_dry = self.writing.dry_run != DryRun::None;
        // The deletion of a parent needs no more to be recorded.
        if is_dry || self.interrupt.is_requested() || parent.presence == Presence::Terminating {
            return Ok(Known::read_to_take_out(parent));
        }
        let run = Run {
            takes_out: true,
            ..entry_under_way(self.server, operation).await
        };
        // What would start the webhook may be waiting for this run.
        let writing = self.writing.without_webhook_patience();
        let begins = ParentWriting {
            writing: &writing,
            ..*self
        };
        let without_entry = Known::read_to_take_out(parent.clone());
        match begins.begin(Some(parent), recorded, run, sink).await {
            Err(error @ ParentWriteError::Refused(_)) => Err(error),
            Err(error) if writing.exclusive != Exclusive::No => Err(error),
            // What the run finds in its place is judged in the end.
            Err(ParentWriteError::Gone) => Ok(without_entry),
            Err(error) => {
                sink(Event::Warning(format!("{error}; other runs cannot see this one")));
                Ok(without_entry)
            }
            Ok(known) => Ok(known),
        }
    }

    /// Begins a run as `begin` does. Returns how the run ends if the user stops it while the parent waits for its
    /// webhook.
    pub async fn begin_unless_stopped(
        &self,
        parent: Option<ParentObject>,
        needed: &Record,
        run: Run,
        sink: &mut Sink<'_>,
    ) -> Result<Result<Known, Ending>, ParentWriteError> {
        match self.begin(parent, needed, run, sink).await {
            Err(error) if self.interrupt.is_requested() && error.is_of_webhook() => {
                sink(Event::failure(error.to_string()));
                Ok(Err(Ending::Interrupted))
            }
            begun => begun.map(Ok),
        }
    }

    /// Writes the record, which becomes what it says and `needed`, and the entry of the run; creates a parent that
    /// does not exist.
    pub async fn begin(
        &self,
        parent: Option<ParentObject>,
        needed: &Record,
        run: Run,
        sink: &mut Sink<'_>,
    ) -> Result<Known, ParentWriteError> {
        let id = run.id.clone();
        let begun = self.write_entry(parent, needed, run, sink).await;
        if !matches!(begun, Ok(_) | Err(ParentWriteError::Refused(_))) {
            // Its answer may have been lost, and no member was written.
            self.withdraw(&id, sink).await;
        }
        begun
    }

    /// Writes the entry of a run over the parent as it was read, and a record that covers what it needs.
    async fn write_entry(
        &self,
        parent: Option<ParentObject>,
        needed: &Record,
        run: Run,
        sink: &mut Sink<'_>,
    ) -> Result<Known, ParentWriteError> {
        // The time in the entry is not later. The machine may be suspended before the write is sent.
        let before = Moment::now();
        let is_shared = parent
            .as_ref()
            .is_some_and(|parent| parent.adding_beside(&run.id).next().is_some());
        let runs_before = parent.as_ref().map(|parent| runs_as_read(parent, &run.id));
        let uid = parent.as_ref().map(|parent| parent.uid.clone());
        let writer = Writer {
            id: &run.id,
            only: uid.as_deref().filter(|_| run.takes_out),
        };
        let written = self.write_as_decided(parent, is_shared, &writer, sink, |read| {
            let mut history = read.history;
            if self.writing.exclusive != Exclusive::No && !history.is_running(&run.id) {
                if let Some(other) = history.running_beside(&run.id).next() {
                    let refusal = run_under_way(&self.set.parent, other, self.server.now());
                    return Err(ParentWriteError::Refused(vec![refusal]));
                }
                if read.is_overtaken {
                    let parent = self.set.parent.clone();
                    return Err(ParentWriteError::Refused(vec![Refusal::SetChanged { parent }]));
                }
            }
            history.add(run.clone());
            Ok(Target {
                record: read.record.union(needed),
                history,
            })
        });
        let (parent, is_shared) = written.await?;
        if !run.takes_out {
            self.server.renew_lease(before);
        }
        Ok(Known {
            parent,
            runs_before: runs_before.unwrap_or_default(),
            takes_out: run.takes_out,
            run: Some(run),
            is_shared,
            renewed: before,
        })
    }

    /// Writes what `decide` makes of the record and the runs of the parent, and decides again if another client
    /// has written it first.
    ///
    /// Runs that were abandoned when the parent was read are dropped, and named. Returns the parent, and whether
    /// another run was at work since it was read.
    pub(super) async fn write_as_decided(
        &self,
        mut parent: Option<ParentObject>,
        mut is_shared: bool,
        writer: &Writer<'_>,
        sink: &mut Sink<'_>,
        decide: impl Fn(ParentRead) -> Result<Target, ParentWriteError>,
    ) -> Result<(ParentObject, bool), ParentWriteError> {
        for attempt in 0..ATTEMPTS {
            let judged = match (&parent, writer.only) {
                (Some(parent), Some(only)) if parent.uid == only => {
                    plan::judge_parent_for_deletion(self.set, parent)
                }
                (_, Some(_)) => return Err(ParentWriteError::Gone),
                (parent, None) => plan::judge_parent(self.set, parent.as_ref()),
            };
            let status = judged
                .and_then(|judged| judged.accept(self.accepted))
                .map_err(ParentWriteError::Refused)?;
            let target = decide(ParentRead {
                record: recorded(&status),
                history: parent
                    .as_ref()
                    .map(|parent| runs_as_read(parent, writer.id))
                    .unwrap_or_default(),
                is_shared,
                is_overtaken: attempt > 0,
            })?;
            let target = self.annotations(&target, parent.as_ref())?;
            let written = match &parent {
                Some(parent) if is_written(parent, &target) => return Ok((parent.clone(), is_shared)),
                Some(parent) => {
                    let seen = (parent.uid.as_str(), parent.resource_version.as_str());
                    self.write_record(seen, &target, sink).await?
                }
                None => {
                    let created = self.create(&target, sink).await?;
                    if matches!(created, Written::Done(_)) {
                        sink(Event::Parent(self.set.parent.clone(), Action::Created));
                    }
                    created
                }
            };
            match written {
                Written::Done(written) => {
                    self.note_abandoned(parent.as_ref(), writer.id, sink);
                    return Ok((*written, is_shared));
                }
                Written::Overtaken => {
                    let found = self.read().await?;
                    // It was done, and its answer was lost: it names the run, or has removed its entry.
                    if let Some(found) = found.as_ref().filter(|found| is_written(found, &target)) {
                        self.note_abandoned(parent.as_ref(), writer.id, sink);
                        return Ok((found.clone(), is_shared));
                    }
                    // A run that may have written a member leaves a trace; others change other fields.
                    is_shared |= match (&parent, &found) {
                        (Some(before), Some(found)) => !is_as_left(before, found, writer.id),
                        _ => true,
                    };
                    parent = found;
                }
            }
        }
        Err(ParentWriteError::Contended)
    }

    /// Names the runs that were abandoned when the parent was read.
    fn note_abandoned(&self, parent: Option<&ParentObject>, own: &str, sink: &mut Sink<'_>) {
        let abandoned = parent.into_iter().flat_map(|parent| &parent.abandoned);
        for run in abandoned.filter(|run| run.id != own) {
            let began = run.began(self.server.now());
            sink(Event::Note(format!(
                "{run}, which began {began}, never ended; it is now listed as abandoned"
            )));
        }
    }
}

/// Returns the refusal of an exclusive run while `other` is under way.
pub fn run_under_way(parent: &ObjectKey, other: &Run, now: Timestamp) -> Refusal {
    Refusal::RunUnderWay {
        parent: parent.clone(),
        run: other.to_string(),
        began: other.began(now),
        until: other.counts_until(),
    }
}

/// Returns whether the parent has the record and the runs that are to be written.
fn is_written(parent: &ParentObject, target: &Value) -> bool {
    let has_runs = parent.annotations.contains_key(HISTORY_ANNOTATION);
    parent.has_annotations(target) && has_runs == target[HISTORY_ANNOTATION].is_string()
}

/// Returns whether no other run that may add members has begun or ended, and no client has written the record, between
/// these two states of the parent.
fn is_as_left(before: &ParentObject, found: &ParentObject, own: &str) -> bool {
    let others = |parent: &ParentObject| History::from_annotations(&parent.annotations).adding_beside(own);
    before.uid == found.uid && before.reading == found.reading && others(before) == others(found)
}

/// Returns the runs of the parent; those that were abandoned when it was read are past, except the one with the id
/// `own`.
pub(super) fn runs_as_read(parent: &ParentObject, own: &str) -> History {
    let mut history = History::from_annotations(&parent.annotations);
    for run in parent.abandoned.iter().filter(|run| run.id != own) {
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
