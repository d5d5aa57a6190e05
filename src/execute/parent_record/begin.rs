//! Begins a run: the one write of the parent before the first member.

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::MAX_ATTEMPTS;
use super::requests::{ParentWriteError, ParentWriting, RecordAndHistory, Written};
use crate::cluster::apiserver::{Moment, WriteResult};
use crate::event::{Action, Ending, Event, Sink};
use crate::execute::history::new_running_entry;
use crate::model::applyset::Record;
use crate::model::expiry::{EXPIRY_ANNOTATION, Expiry};
use crate::model::history_annotation::{HISTORY_ANNOTATION, History, Run, RunOperation};
use crate::model::identity::ObjectKey;
use crate::model::live::Presence;
use crate::model::set::ParentObject;
use crate::model::write_settings::{DryRun, Exclusive};
use crate::plan::{self, ParentStatus, Refusal};

/// The parent as this run has last read or written it.
#[derive(Debug, Clone)]
pub struct KnownParent {
    pub parent: ParentObject,
    /// The entry of this run; `None` if it has not begun, or if the parent is gone or no longer a parent.
    pub run: Option<Run>,
    /// `true` if another run that may add members was at work since this run read the parent. There may then be members
    /// that this run has not seen, so it must not narrow the record.
    pub is_shared: bool,
    /// The time of the last write of the entry.
    pub renewed: Moment,
    /// `true` if the run only takes objects out of the set. Such a run writes only the parent with the UID that it has
    /// read, and does not create one. Its entry says the same, but it may continue without an entry.
    pub takes_out: bool,
}

/// The run that writes the parent.
pub(super) struct WritingRun<'a> {
    /// The id of the run's entry; empty if the run has no entry.
    pub(super) id: &'a str,
    pub(super) writable: WritableParent<'a>,
}

/// The parent that a run may write.
#[derive(Debug, Clone, Copy)]
pub(super) enum WritableParent<'a> {
    /// Any parent of the set; if there is none, it is created. The run begins, and has found no parent.
    ExistingOrNew,
    /// Any parent of the set. The run has read one, so another client has deleted a parent that is missing now. This
    /// run does not know what other runs have recorded there since: a new one with a record of what this run knows would hide all else
    /// from later runs, which look for members in all kinds as long as there is none.
    Existing,
    /// The parent with this UID.
    Uid(&'a str),
}

/// The state of the parent on which a write of the parent is decided.
pub(super) struct ParentRead {
    pub(super) record: Record,
    /// The runs in the history. Abandoned runs have that result, not `running`.
    pub(super) history: History,
    /// `true` if another run that may add members was at work since this run read the parent.
    pub(super) is_shared: bool,
    /// `true` if an earlier attempt at this write failed because another client had written the parent.
    pub(super) had_conflict: bool,
}

impl KnownParent {
    /// Creates the state of a run that has read this parent and has not begun.
    pub fn from_read(parent: ParentObject) -> Self {
        Self {
            is_shared: parent.is_being_added_to(),
            parent,
            run: None,
            renewed: Moment::now(),
            takes_out: false,
        }
    }

    /// Creates the state of a run that only takes objects out of the set, has read this parent and has not begun.
    pub fn from_read_to_take_out(parent: ParentObject) -> Self {
        Self {
            takes_out: true,
            ..Self::from_read(parent)
        }
    }

    /// Returns the run as the writer of its parent.
    pub(super) fn as_writer(&self) -> WritingRun<'_> {
        WritingRun {
            id: self.entry_id(),
            writable: if self.takes_out {
                WritableParent::Uid(&self.parent.uid)
            } else {
                WritableParent::Existing
            },
        }
    }

    /// Returns the id of the run's entry; empty if it has not begun.
    pub fn entry_id(&self) -> &str {
        self.run.as_ref().map_or("", |run| &run.id)
    }

    /// Replaces the known parent by one that was read again, and notes whether another run was at work in between.
    pub fn replace_and_note_other_runs(&mut self, found: ParentObject) {
        self.is_shared |= is_written_by_other_run(&self.parent, &found, self.entry_id());
        self.parent = found;
    }
}

impl ParentWriting<'_> {
    /// Begins a run that takes objects out of the set, whose record is `recorded`.
    ///
    /// A dry run writes no entry. A run whose entry cannot be written continues without an entry, unless it is
    /// exclusive: it adds no member that has to be recorded, and it may be about to delete the webhook that denies the
    /// write.
    ///
    /// # Errors
    ///
    /// The parent has changed into one that this run may not write, or the entry of an exclusive run cannot be written.
    pub async fn try_to_begin_taking_out(
        &self,
        parent: ParentObject,
        recorded: &Record,
        operation: RunOperation,
        sink: &mut Sink<'_>,
    ) -> Result<KnownParent, ParentWriteError> {
        let is_dry = self.writing.dry_run != DryRun::None;
        // A terminating parent needs no entry, because no run may add members to its set any more. A dry run writes
        // none, and a run that is to stop does not begin.
        if is_dry || self.interrupt.is_requested() || parent.presence == Presence::Terminating {
            return Ok(KnownParent::from_read_to_take_out(parent));
        }
        let run = Run {
            takes_out: true,
            ..new_running_entry(self.server, operation).await
        };
        // This write is not repeated until a webhook can be called: the webhook may start only after this run has
        // deleted an object.
        let writing = self.writing.without_webhook_patience();
        let without_patience = ParentWriting {
            writing: &writing,
            ..*self
        };
        let without_entry = KnownParent::from_read_to_take_out(parent.clone());
        match without_patience.begin(Some(parent), recorded, run, sink).await {
            Err(error @ ParentWriteError::Refused(_)) => Err(error),
            Err(error) if writing.exclusive != Exclusive::No => Err(error),
            // The end of the run judges what is in the parent's place by then (`former_parent`).
            Err(ParentWriteError::Gone) => Ok(without_entry),
            Err(error) => {
                sink(Event::Warning(format!("{error}; other runs cannot see this one")));
                Ok(without_entry)
            }
            Ok(known) => Ok(known),
        }
    }

    /// Begins a run as `begin` does. If the user stops the run while the write of the parent waits for a webhook,
    /// returns how the run ends.
    pub async fn begin_unless_stopped(
        &self,
        parent: Option<ParentObject>,
        needed: &Record,
        run: Run,
        sink: &mut Sink<'_>,
    ) -> Result<Result<KnownParent, Ending>, ParentWriteError> {
        match self.begin(parent, needed, run, sink).await {
            Err(error) if self.interrupt.is_requested() && error.is_of_unreachable_webhook() => {
                sink(Event::general_failure(error.to_string()));
                Ok(Err(Ending::Interrupted))
            }
            begun => begun.map(Ok),
        }
    }

    /// Widens the record to cover `needed`, and adds the entry of the run, in one write. Creates a parent that does not
    /// exist.
    pub async fn begin(
        &self,
        parent: Option<ParentObject>,
        needed: &Record,
        run: Run,
        sink: &mut Sink<'_>,
    ) -> Result<KnownParent, ParentWriteError> {
        let id = run.id.clone();
        let begun = self.write_entry_and_widen_record(parent, needed, run, sink).await;
        if !matches!(begun, Ok(_) | Err(ParentWriteError::Refused(_))) {
            // The entry may have been written although the answer was lost. The run ends here and has written no
            // member, so its entry is removed.
            self.withdraw_entry(&id, sink).await;
        }
        let path = self.resource.path_of(&self.set.parent);
        let may_be_written = self.server.result_of_last_write(&path) == Some(WriteResult::Unanswered);
        if begun.is_err() && !may_be_written {
            self.server.end_lease();
        }
        begun
    }

    /// Writes the entry of a run and a record that covers `needed`. `parent` is the parent as it was read.
    async fn write_entry_and_widen_record(
        &self,
        parent: Option<ParentObject>,
        needed: &Record,
        run: Run,
        sink: &mut Sink<'_>,
    ) -> Result<KnownParent, ParentWriteError> {
        // The lease counts from here, not from the answer: the machine may be suspended in between, and other runs
        // count from the time in the entry. It is taken before the write, which may take effect without an answer. A
        // run that only takes objects out needs none: what it writes late adds no member that the record lacks.
        let before = Moment::now();
        if !run.takes_out {
            self.server.renew_lease(before);
        }
        let is_shared = parent
            .as_ref()
            .is_some_and(|parent| parent.adding_runs_beside(&run.id).next().is_some());
        let uid = parent.as_ref().map(|parent| parent.uid.clone());
        let writer = WritingRun {
            id: &run.id,
            writable: match &uid {
                Some(uid) if run.takes_out => WritableParent::Uid(uid),
                Some(_) => WritableParent::Existing,
                None => WritableParent::ExistingOrNew,
            },
        };
        let written = self.decide_and_write_with_retries(parent, is_shared, &writer, sink, |read| {
            let mut history = read.history;
            if self.writing.exclusive != Exclusive::No && !history.is_running(&run.id) {
                if let Some(other) = history.other_running(&run.id).next() {
                    let refusal = refusal_of_run_under_way(&self.set.parent, other, self.server.now());
                    return Err(ParentWriteError::Refused(vec![refusal]));
                }
                if read.had_conflict {
                    let parent = self.set.parent.clone();
                    return Err(ParentWriteError::Refused(vec![Refusal::SetChanged { parent }]));
                }
            }
            history.record(run.clone());
            Ok(RecordAndHistory {
                record: read.record.union(needed),
                history,
            })
        });
        let (parent, is_shared) = written.await?;
        Ok(KnownParent {
            parent,
            takes_out: run.takes_out,
            run: Some(run),
            is_shared,
            renewed: before,
        })
    }

    /// Calls `decide` with the record and the history of the parent, and writes the record and the history that it
    /// returns. If another client has written the parent first, reads the parent and calls `decide` again.
    ///
    /// Runs that count as abandoned get that result, and are reported. Returns the parent as written, and whether
    /// another run that may add members was at work since `parent` was read (`is_shared` if that is known already).
    pub(super) async fn decide_and_write_with_retries(
        &self,
        mut parent: Option<ParentObject>,
        mut is_shared: bool,
        writer: &WritingRun<'_>,
        sink: &mut Sink<'_>,
        decide: impl Fn(ParentRead) -> Result<RecordAndHistory, ParentWriteError>,
    ) -> Result<(ParentObject, bool), ParentWriteError> {
        let mut writable = writer.writable;
        for attempt in 0..MAX_ATTEMPTS {
            if parent.is_some() && matches!(writable, WritableParent::ExistingOrNew) {
                writable = WritableParent::Existing;
            }
            let judged = match (&parent, writable) {
                (Some(parent), WritableParent::Uid(uid)) if parent.uid == uid => {
                    plan::judge_parent_for_deletion(self.set, parent)
                }
                (_, WritableParent::Uid(_)) | (None, WritableParent::Existing) => {
                    return Err(ParentWriteError::Gone);
                }
                (parent, WritableParent::Existing | WritableParent::ExistingOrNew) => {
                    plan::judge_parent(self.set, parent.as_ref())
                }
            };
            let status = judged
                .and_then(|judged| judged.into_status_if_accepted(self.accepted_take_over))
                .map_err(ParentWriteError::Refused)?;
            let decided = decide(ParentRead {
                record: record_of_status(&status),
                history: parent
                    .as_ref()
                    .map(|parent| history_with_abandoned_marked(parent, writer.id))
                    .unwrap_or_default(),
                is_shared,
                had_conflict: attempt > 0,
            })?;
            let annotations = self.build_annotations(&decided, parent.as_ref())?;
            let written = match &parent {
                Some(parent) if is_written_already(parent, &annotations) => {
                    return Ok((parent.clone(), is_shared));
                }
                Some(parent) => {
                    let seen = (parent.uid.as_str(), parent.resource_version.as_str());
                    self.write_annotations(seen, &annotations, sink).await?
                }
                None => {
                    let created = self.create(&annotations, sink).await?;
                    if matches!(created, Written::Done(_)) {
                        sink(Event::Parent(self.set.parent.clone(), Action::Created));
                    }
                    created
                }
            };
            match written {
                Written::Done(written) => {
                    self.report_abandoned_runs(parent.as_ref(), writer.id, sink);
                    self.report_change_of_expiry(
                        parent.as_ref(),
                        annotations[EXPIRY_ANNOTATION].as_str(),
                        sink,
                    );
                    return Ok((*written, is_shared));
                }
                Written::Conflict => {
                    let found = self.read().await?;
                    // If the parent has the annotations that this run was to write, an earlier attempt of the same
                    // write was carried out, and its answer was lost: the annotations have the entry of this run, or
                    // have it no longer.
                    if let Some(found) = found
                        .as_ref()
                        .filter(|found| is_written_already(found, &annotations))
                    {
                        self.report_abandoned_runs(parent.as_ref(), writer.id, sink);
                        return Ok((found.clone(), is_shared));
                    }
                    // A parent that was created or deleted counts as written by another run, to be on the safe side.
                    is_shared |= match (&parent, &found) {
                        (Some(before), Some(found)) => is_written_by_other_run(before, found, writer.id),
                        _ => true,
                    };
                    parent = found;
                }
            }
        }
        Err(ParentWriteError::Contended)
    }

    /// Reports that a write changes the time at which the set expires. `parent` is the parent before the write, and
    /// `value` what the write gives the annotation.
    pub fn report_change_of_expiry(
        &self,
        parent: Option<&ParentObject>,
        value: Option<&str>,
        sink: &mut Sink<'_>,
    ) {
        let before = parent.and_then(|parent| parent.annotations.get(EXPIRY_ANNOTATION));
        let Some(value) = value.filter(|value| before.map(String::as_str) != Some(*value)) else {
            return;
        };
        sink(Event::Note(match self.writing.expiry {
            Expiry::Kept => return,
            Expiry::Removed => "the set no longer expires, because --expires was not given".to_owned(),
            Expiry::After(_) => format!("the set expires at {value}"),
        }));
    }

    /// Reports the runs that counted as abandoned when the parent was read, except the one with the id `own_id`.
    fn report_abandoned_runs(&self, parent: Option<&ParentObject>, own_id: &str, sink: &mut Sink<'_>) {
        let abandoned = parent.into_iter().flat_map(|parent| &parent.abandoned);
        for run in abandoned.filter(|run| !run.has_id(own_id)) {
            let began = run.describe_beginning(self.server.now());
            sink(Event::Note(format!(
                "{run}, which began {began}, never ended; it is now listed as abandoned"
            )));
        }
    }
}

/// Returns the refusal of an exclusive run because the run `other` is under way.
pub fn refusal_of_run_under_way(parent: &ObjectKey, other: &Run, now: Timestamp) -> Refusal {
    Refusal::RunUnderWay {
        parent: parent.clone(),
        run: other.to_string(),
        began: other.describe_beginning(now),
        until: other.abandonment_time(),
    }
}

/// Returns whether the parent has exactly the record and the history that are to be written (`new_annotations`).
fn is_written_already(parent: &ParentObject, new_annotations: &Value) -> bool {
    let has_history = parent.annotations.contains_key(HISTORY_ANNOTATION);
    parent.has_expected_annotations(new_annotations)
        && has_history == new_annotations[HISTORY_ANNOTATION].is_string()
}

/// Returns whether, between these two states of the parent, another run that may add members has begun or ended, or
/// another client has written the record or replaced the parent. `own_id` is the id of this run's entry. Other fields
/// of the parent do not count: a run that may have written a member leaves its entry or a wider record.
fn is_written_by_other_run(before: &ParentObject, found: &ParentObject, own_id: &str) -> bool {
    let others = |parent: &ParentObject| {
        History::from_annotations(&parent.annotations).without_run_and_removals(own_id)
    };
    before.uid != found.uid || before.reading != found.reading || others(before) != others(found)
}

/// Returns the history of the parent. Runs that counted as abandoned when the parent was read get that result in it,
/// except this run, which has the id `own_id`.
pub(super) fn history_with_abandoned_marked(parent: &ParentObject, own_id: &str) -> History {
    let mut history = History::from_annotations(&parent.annotations);
    for run in parent.abandoned.iter().filter(|run| !run.has_id(own_id)) {
        history.mark_as_abandoned(&run.id);
    }
    history
}

/// Returns the record of a parent; an empty one if there is no parent. The plan has translated a record in the deprecated
/// form into `record_during`, which every write of a run covers.
fn record_of_status(status: &ParentStatus) -> Record {
    match status {
        ParentStatus::Recorded(found) => found.record().unwrap_or_default(),
        ParentStatus::New => Record::default(),
    }
}
