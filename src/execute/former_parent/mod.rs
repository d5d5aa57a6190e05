//! Deletes the parent of a set that a run has taken objects out of, or removes or narrows its record.
//!
//! The parent is deleted only when a fresh list finds no member any more, not even one that is being deleted. Until
//! then the parent records what is left, so that the same command can continue after any interruption. If another run
//! has widened the record since the plan, there may be members outside of the plan's scope: the run fails, and the next
//! one lists them. If another client has written the parent first, or if a webhook cannot be called yet, the parent and
//! the members are read again, and the write is decided again.

pub mod list_what_is_left;
mod record_what_is_left;

use std::collections::BTreeSet;

use crate::cluster::apiserver::ApiError;
use crate::event::{Action, Event, ObjectOutcome, Sink, Subject};
use crate::execute::adopt_move_disband::JoinedSet;
use crate::execute::deletion::report_parent_and_remains::outcome_event;
use crate::execute::former_parent::list_what_is_left::{
    RemainingList, RemainingLister, RemainingNotListed, TerminatingObjects, describe_members_not_gone,
};
use crate::execute::parent_record::MAX_ATTEMPTS;
use crate::execute::parent_record::begin::KnownParent;
use crate::execute::parent_record::remove::DeletedParent;
use crate::execute::reread::{GONE_ALREADY, reread};
use crate::execute::starting_webhooks::StartingWebhooks;
use crate::execute::{ParentWriteError, ParentWriting, WaitNotes};
use crate::model::applyset::Record;
use crate::model::applyset::parent::Reading;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::set::ParentObject;
use crate::plan::{KeptObjects, ParentDisposition, ReasonToKeep, Remains, decide_parent_disposition};
use crate::read::{self, ListError, LiveParent};

/// The aim of a run for the parent of a set that it takes objects out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentAim {
    /// The parent is kept as the parent, and records the members that are left.
    Narrow,
    /// If no member is left, the parent is kept as an ordinary object.
    RemoveRecord,
    /// If no member is left, the parent is deleted; a parent with another use is kept as an ordinary object.
    Delete,
}

/// Context for ending a set, or narrowing its record.
pub struct ParentRelease<'a> {
    pub aim: ParentAim,
    /// The set that the members have joined, if they have joined one. The parent is not deleted if an object of that
    /// set names it as its owner.
    pub joined: Option<&'a JoinedSet<'a>>,
    /// The parent, and the entry of the run.
    pub known: &'a mut KnownParent,
    /// Members that were to be deleted and were not.
    pub kept_objects: &'a KeptObjects,
    /// The context for listing what is left of the set.
    pub remaining: RemainingLister<'a>,
    /// The upper bound of the record: `remaining` lists all of it.
    pub listed: Record,
    /// The part of the record that has to stay: the kinds of it whose members a list may not show.
    pub unlisted: Record,
    /// The field managers whose content does not keep the parent.
    pub managers_not_keeping_parent: BTreeSet<String>,
}

/// Outcome for the parent.
pub enum ParentOutcome {
    /// The parent does not exist any more, or the run does not wait for its end.
    Gone,
    /// The parent is deleted, and finalizers hold it.
    Terminating(Box<Live>),
    /// The object is kept, without a record: it is not a parent any more.
    Ordinary,
    /// The parent is kept as the parent.
    Kept(Box<KeptParent>),
    /// The user stopped the run before it deleted or kept the parent.
    Untouched,
}

/// The reason why a parent is kept, and what it has to record.
pub struct KeptParent {
    /// What is left of the set.
    pub found: RemainingList,
    /// If the parent is kept because it owns an object of the set that the members have joined: that object.
    pub owned: Option<ObjectKey>,
    /// The record of what is left, which the run has to write.
    pub record: Record,
}

/// Error if the parent could not be judged, deleted or written.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    #[error(transparent)]
    Parent(#[from] ParentWriteError),
    #[error("the set's parent could not be deleted: {}", .0.kind)]
    Request(#[from] ApiError),
    #[error("the set's parent cannot be written: {}", .0.kind)]
    Unwritten(ApiError),
    #[error(
        "the set is kept: another client has replaced its parent or removed its record; run the same command again"
    )]
    ReplacedOrUnrecorded,
    #[error("the old parent is kept: it may own objects of the new set, which cannot be listed: {0}")]
    NewSetNotListed(ListError),
    #[error("the set's parent is kept: members may remain, and cannot be listed: {0}")]
    RemainingNotListed(RemainingNotListed),
    #[error("the set's {kept} is kept: {advice}")]
    AnotherRunUnderWay { kept: &'static str, advice: String },
    #[error(
        "the set's parent is kept: another run has added kinds or namespaces to it; run the same command again"
    )]
    RecordWidened,
}

impl ParentRelease<'_> {
    /// Deletes the parent, removes its record, or determines a narrower record, as `aim` says.
    pub async fn carry_out(self, sink: &mut Sink<'_>) -> Result<ParentOutcome, ReleaseError> {
        let aim = self.aim;
        let outcome = self.carry_out_with_retries(sink).await;
        outcome.map_err(|error| match error {
            ReleaseError::Request(error) if aim != ParentAim::Delete => ReleaseError::Unwritten(error),
            error => error,
        })
    }

    /// Carries out the aim, unless something keeps the parent. Attempts it again as long as other clients write the parent, and
    /// after each wait for a webhook: one that judges the write, or one that converts what is read.
    async fn carry_out_with_retries(mut self, sink: &mut Sink<'_>) -> Result<ParentOutcome, ReleaseError> {
        let (notes, uid) = (WaitNotes::default(), self.known.parent.uid.clone());
        let patience = self.remaining.parent.writing.webhook_patience.at_end;
        let webhooks = StartingWebhooks::new(patience, self.remaining.parent.interrupt, &notes);
        let (mut conflicts, mut webhook_failures) = (0, 0);
        while conflicts < MAX_ATTEMPTS {
            match self.attempt(&uid, sink).await {
                Ok(outcome) => return Ok(outcome),
                Err(ReleaseError::Parent(ParentWriteError::Contended)) => conflicts += 1,
                Err(error) => {
                    let is_to_be_sent_again = match error.failed_request() {
                        None => false,
                        Some(request) => {
                            let pause = notes.work_while_reporting(
                                webhooks.pause_before_retry(request, webhook_failures),
                                sink,
                            );
                            self.remaining.parent.work_while_renewing(self.known, pause).await
                        }
                    };
                    if !is_to_be_sent_again {
                        return Err(error);
                    }
                    webhook_failures += 1;
                }
            }
        }
        Err(ReleaseError::Parent(ParentWriteError::Contended))
    }

    /// Reads the parent with this UID and what is left of its set, and writes the parent at most once. If another client
    /// has written the parent first, nothing is written, and the error is `Contended`.
    async fn attempt(&mut self, uid: &str, sink: &mut Sink<'_>) -> Result<ParentOutcome, ReleaseError> {
        let ParentWriting {
            server,
            set,
            resource,
            ..
        } = self.remaining.parent;
        let Some(parent) = read::read_live_parent(server, resource, &set.parent).await? else {
            // What the parent recorded last is not known, so neither is what is left of the set. The run creates no
            // parent: as long as there is none, the next run searches all kinds.
            self.known.run = None;
            return Err(ReleaseError::Parent(ParentWriteError::Gone));
        };
        self.known.replace_and_note_other_runs(parent.object.clone());
        if parent.live.uid != uid
            || !matches!(parent.object.reading, Reading::Parent(_) | Reading::Unfinished(_))
        {
            return self.end_without_record(&parent.object, uid, sink).await;
        }
        if self.aim != ParentAim::Narrow && parent.object.reading.records_more_than(&self.listed) {
            return Err(ReleaseError::RecordWidened);
        }
        let disposition = decide_parent_disposition(
            set,
            &parent.live,
            &parent.content_writers,
            &self.managers_not_keeping_parent,
        );
        let listing = self.remaining.list_and_await_deletions(&disposition, sink);
        let found = self
            .remaining
            .parent
            .work_while_renewing(self.known, listing)
            .await
            .map_err(ReleaseError::RemainingNotListed)?;
        if self.remaining.parent.interrupt.is_requested() {
            let left = describe_members_not_gone(&found.remains, set, self.remaining.appliers);
            if let Some(obstacles) = left.filter(|_| self.aim == ParentAim::Delete) {
                sink(Event::Warning(format!("{}: {obstacles}", set.parent)));
            }
            return Ok(ParentOutcome::Untouched);
        }
        self.keep_or_write_parent(&parent, &disposition, found, sink)
            .await
    }

    /// Keeps the parent for what was `found` of its set, or writes it as it was read. A narrower record is only
    /// determined here: the end of the run writes it, unless another run has written the record.
    async fn keep_or_write_parent(
        &mut self,
        parent: &LiveParent,
        disposition: &ParentDisposition,
        mut found: RemainingList,
        sink: &mut Sink<'_>,
    ) -> Result<ParentOutcome, ReleaseError> {
        let has_anything_left = self.has_anything_left(&found);
        if self.aim == ParentAim::Narrow || (has_anything_left && self.aim == ParentAim::Delete) {
            return self.keep_parent_for_remaining(found, None, sink).await;
        }
        self.refuse_while_another_run_may_add(&parent.object, sink)?;
        self.add_containers_that_stay(&mut found, disposition);
        // Another client may be about to label objects, and copies keep the label of the set.
        let is_uncertain = self.aim == ParentAim::RemoveRecord
            && (has_anything_left || self.known.is_shared || !found.copies.is_empty());
        if is_uncertain || found.remains != Remains::default() {
            return self.keep_parent_for_remaining(found, None, sink).await;
        }
        let outcome = if self.aim == ParentAim::Delete && *disposition == ParentDisposition::Goes {
            let owned = match self.joined {
                None => None,
                Some(joined) => joined
                    .find_object_owned_by_parent(self.remaining.parent.set, &self.remaining.places)
                    .await
                    .map_err(ReleaseError::NewSetNotListed)?,
            };
            if owned.is_some() {
                return self.keep_parent_for_remaining(found, owned, sink).await;
            }
            // The user may have stopped the run while the new set was listed.
            if self.remaining.parent.interrupt.is_requested() {
                return Ok(ParentOutcome::Untouched);
            }
            self.delete_parent_unless_changed(parent, sink).await?
        } else {
            self.remove_record_unless_changed(parent, disposition, sink)
                .await?
        };
        self.known.run = None;
        Ok(outcome)
    }

    /// Refuses to end a set to which another run may still add members.
    fn refuse_while_another_run_may_add(
        &self,
        parent: &ParentObject,
        sink: &mut Sink<'_>,
    ) -> Result<(), ReleaseError> {
        let Some(running) = parent.adding_runs_beside(self.known.entry_id()).next() else {
            return Ok(());
        };
        let kept = match self.aim {
            ParentAim::Delete => {
                self.report_kept_parent(&format!("{running} has not ended"), sink);
                "parent"
            }
            ParentAim::RemoveRecord | ParentAim::Narrow => "record",
        };
        let advice = running.wait_advice(
            &self.remaining.parent.set.parent,
            self.remaining.parent.server.now(),
        );
        Err(ReleaseError::AnotherRunUnderWay { kept, advice })
    }

    /// Adds the parent's containers to what is left, if they stay: because the parent is kept, or because one of the
    /// containers has gained objects, or holds objects that were left.
    fn add_containers_that_stay(&self, found: &mut RemainingList, disposition: &ParentDisposition) {
        let containers = &self.remaining.parent_containers;
        match disposition {
            ParentDisposition::Stays(_) => {
                found.remains.kept.extend(containers.iter().copied().cloned());
            }
            ParentDisposition::Goes
                if containers
                    .iter()
                    .any(|container| self.kept_objects.contains_object_or_content(container)) =>
            {
                found.remains.unwanted.extend(containers.iter().copied().cloned());
            }
            ParentDisposition::Goes => {}
        }
    }

    /// Deletes the parent as it was read.
    async fn delete_parent_unless_changed(
        &self,
        parent: &LiveParent,
        sink: &mut Sink<'_>,
    ) -> Result<ParentOutcome, ReleaseError> {
        let live = &parent.live;
        let removed = self.remaining.parent.delete_if_unchanged(live).await?;
        let left = removed.ok_or(ParentWriteError::Contended)?;
        let reason = match left {
            DeletedParent::GoneBefore => GONE_ALREADY.to_owned(),
            DeletedParent::TerminatingBefore => ReasonToKeep::Terminating {
                waits_for: live.waits_for.clone(),
            }
            .to_string(),
            DeletedParent::Gone | DeletedParent::Terminating => String::new(),
        };
        sink(outcome_event(live, Action::Deleted, reason));
        let going = match left {
            DeletedParent::Terminating | DeletedParent::TerminatingBefore => {
                self.reread_deleted_parent_if_awaited(live).await
            }
            DeletedParent::Gone | DeletedParent::GoneBefore => None,
        };
        Ok(going.map_or(ParentOutcome::Gone, |live| {
            ParentOutcome::Terminating(Box::new(live))
        }))
    }

    /// Reads the parent again that this run has deleted and that finalizers hold; `None` if it is gone, or if the run
    /// reports in another way what remains. If it cannot be read, returns it as it was read last.
    async fn reread_deleted_parent_if_awaited(&self, live: &Live) -> Option<Live> {
        if self.remaining.terminating_objects == TerminatingObjects::Reported {
            return None;
        }
        match reread(self.remaining.parent.server, &live.key, &live.resource).await {
            Ok(now) => now.filter(|now| now.uid == live.uid),
            Err(_) => Some(live.clone()),
        }
    }

    /// Removes the record from a parent that is kept as an ordinary object, unless it has changed since it was read. The
    /// reason is reported if the parent was to be deleted.
    async fn remove_record_unless_changed(
        &self,
        parent: &LiveParent,
        disposition: &ParentDisposition,
        sink: &mut Sink<'_>,
    ) -> Result<ParentOutcome, ReleaseError> {
        if !self
            .remaining
            .parent
            .remove_record_if_unchanged(&parent.object)
            .await?
        {
            return Err(ParentWriteError::Contended.into());
        }
        if let (ParentAim::Delete, ParentDisposition::Stays(why)) = (self.aim, disposition) {
            let reason = format!("{why}; only the set's record was removed");
            sink(outcome_event(&parent.live, Action::Skipped, reason));
        }
        Ok(ParentOutcome::Ordinary)
    }

    /// Reports why the parent is kept: as its outcome if it was to be deleted, else as a warning.
    fn report_kept_parent(&self, reason: &str, sink: &mut Sink<'_>) {
        let ParentWriting { set, resource, .. } = self.remaining.parent;
        if self.aim == ParentAim::Delete {
            let subject = Subject::new(&set.parent, resource, Some(&self.known.parent.uid));
            sink(Event::Object(ObjectOutcome::new_with_reason(
                subject,
                Action::Skipped,
                reason,
            )));
        } else {
            sink(Event::Warning(format!("{}: {reason}", set.parent)));
        }
    }
}

impl ReleaseError {
    /// Returns the request that failed.
    fn failed_request(&self) -> Option<&ApiError> {
        match self {
            Self::Request(error)
            | Self::RemainingNotListed(RemainingNotListed {
                error: ListError::Request(error),
                ..
            })
            | Self::NewSetNotListed(ListError::Request(error)) => Some(error),
            _ => None,
        }
    }
}
