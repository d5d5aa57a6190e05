//! Deletes the parent, or narrows its record, after its members were deleted or moved to another set.
//!
//! It is deleted only when a fresh list finds no member any more, not even one that is being deleted.
//! Until then it records what is left, so that the same command can continue after any interruption. If
//! another run has written the record since the plan, members may be outside of the plan's scope: these
//! are listed, too, and the record is not narrowed.

use std::collections::BTreeSet;

use crate::cluster::apiserver::ApiError;
use crate::cluster::discovery::{self, Discovery, DiscoveryError};
use crate::event::{Action, Event, ObjectOutcome, Subject};
use crate::execute::deletion::delete::ObjectsKeptInsteadOfDeleted;
use crate::execute::deletion::report::{CREATED_AGAIN, left_behind, outcome_event, unlistable};
use crate::execute::deletion::wait_until_members_are_gone::{
    Lingering, Remaining, RemainingList, Unlisted, obstacles,
};
use crate::execute::parent_record::ATTEMPTS;
use crate::execute::parent_record::begin::Known;
use crate::execute::parent_record::remove::ParentLeft;
use crate::execute::reread::{GONE_ALREADY, reread};
use crate::execute::{ParentWriteError, ParentWriting, Sink};
use crate::manifest::desired::Desired;
use crate::model::applyset::Record;
use crate::model::applyset::parent::Reading;
use crate::model::live::Live;
use crate::model::parent_object::ParentObject;
use crate::model::text::counted;
use crate::plan::recorded_kinds;
use crate::plan::{
    MemberScopeUnknown, ParentDisposition, ParentStatus, Refusal, Remains, SkipReason, judge_for_deletion,
    member_scope, parent_disposition,
};
use crate::read::{self, KindWait, ListError, ListTargets, UnsettledError, WholeParent};

/// Ends a set whose members are gone: deletes its parent, or removes the record from it.
pub struct ParentRelease<'a> {
    /// Context for writing the parent.
    pub writing: ParentWriting<'a>,
    /// The parent, and the entry of the run.
    pub known: &'a mut Known,
    /// Members that were not deleted.
    pub left: &'a ObjectsKeptInsteadOfDeleted,
    /// The scope of members.
    pub remaining: Remaining<'a>,
    /// The parent's record when this scope was determined.
    pub scope_of: Reading,
    /// The part of the record that stays, because a list of members does not show all that it leads to.
    pub unlisted: Record,
    /// The field managers whose content does not keep the parent.
    pub managers: BTreeSet<String>,
}

/// Outcome for the parent.
pub enum ParentOutcome {
    Gone,
    /// It is deleted, and finalizers hold it.
    Terminating(Box<Live>),
    /// It is an ordinary object now.
    Ordinary,
    /// It is the parent of a set that another run has made in its place.
    Replaced,
    /// It is kept, because of members or of kinds that cannot be listed.
    Kept(Box<KeptParent>),
    /// The user stopped the run before that.
    Untouched,
}

/// The reason why a parent is kept, and what it has to record.
pub struct KeptParent {
    pub remains: Remains,
    pub unlisted: Record,
    /// The record of what is left; `None` if it is written.
    pub record: Option<Record>,
}

/// Error if the parent could not be judged, deleted or written.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    #[error(transparent)]
    Parent(#[from] ParentWriteError),
    #[error("the set's parent could not be deleted: {}", .0.kind)]
    Request(#[from] ApiError),
    #[error("the set's parent was deleted or replaced; nothing records the remaining {left}: {error}")]
    Unrecorded { left: String, error: ParentWriteError },
    #[error("the old parent is kept: it may own objects of the new set, which cannot be listed: {0}")]
    UnseenOwned(ListError),
    #[error("the set's parent is kept: members may remain, and cannot be listed: {0}")]
    Unlisted(Unlisted),
    #[error(
        "the set's parent is gone, but another run may have added members: {0}; run the same command again"
    )]
    Unwatched(Unlisted),
    #[error("the set's parent is kept: {0}")]
    UnderWay(String),
    #[error("the set's parent is kept: another run changed its record, and discovery failed: {0}")]
    Undiscovered(#[from] DiscoveryError),
    #[error("the set's parent is kept: another run changed its record: {0}")]
    Unsettled(#[from] UnsettledError),
    #[error("the set's parent is kept: another run changed its record: {0}")]
    MemberScope(#[from] MemberScopeUnknown),
}

impl ParentRelease<'_> {
    /// Deletes the parent or narrows its record; reads and judges it again as long as other clients write it.
    pub async fn release(mut self, sink: &mut Sink<'_>) -> Result<ParentOutcome, ReleaseError> {
        let ParentWriting {
            server,
            set,
            resource,
            interrupt,
            ..
        } = self.writing;
        let uid = self.known.parent.uid.clone();
        for _ in 0..ATTEMPTS {
            let read = read::whole_parent(server, resource, &set.parent).await?;
            let Some(parent) = read else {
                return self.without_parent(sink).await;
            };
            self.known.replace(parent.object.clone());
            if parent.live.uid != uid
                || !matches!(parent.object.reading, Reading::Parent(_) | Reading::Unfinished(_))
            {
                let reason = "it changed during the run and is no longer this set's parent";
                sink(outcome_event(&parent.live, Action::Skipped, reason.to_owned()));
                return self.with_another_object(parent.object, sink).await;
            }
            self.follow(&parent.object).await?;
            let disposition = parent_disposition(set, &parent.live, &parent.content_writers, &self.managers);
            let found = self
                .writing
                .while_renewing(self.known, self.remaining.settled(&disposition, sink))
                .await
                .map_err(ReleaseError::Unlisted)?;
            if interrupt.is_requested() {
                if let Some(obstacles) = obstacles(&found.remains, set, self.remaining.appliers) {
                    sink(Event::Warning(format!("{}: {obstacles}", set.parent)));
                }
                return Ok(ParentOutcome::Untouched);
            }
            if found.remains != Remains::default() || !self.unlisted.is_empty() {
                return self.keep(&parent, found, sink).await;
            }
            if let Some(running) = parent.object.adding_beside(self.known.id()).next() {
                let reason = format!("{running} has not ended");
                sink(outcome_event(&parent.live, Action::Skipped, reason));
                return Err(ReleaseError::UnderWay(
                    running.wait_advice(&set.parent, server.now()),
                ));
            }
            let homes = self.remaining.homes.clone();
            let released = match disposition {
                // Its container is a member, and is kept with it.
                ParentDisposition::Stays(_) if !homes.is_empty() => {
                    let kept = homes.into_iter().cloned().collect();
                    let remains = Remains {
                        kept,
                        ..Remains::default()
                    };
                    return self.keep(&parent, RemainingList::of(remains), sink).await;
                }
                // Objects that it gained, or that were left in it, keep it.
                ParentDisposition::Goes if homes.iter().any(|home| self.left.keeps(home)) => {
                    let undeleted = homes.into_iter().cloned().collect();
                    let remains = Remains {
                        undeleted,
                        ..Remains::default()
                    };
                    return self.keep(&parent, RemainingList::of(remains), sink).await;
                }
                ParentDisposition::Goes => self.delete_parent(&parent, sink).await?,
                ParentDisposition::Stays(why) => {
                    self.take_record_off(&parent, &why.to_string(), sink).await?
                }
            };
            if let Some(released) = released {
                self.known.forget_entry();
                return Ok(released);
            }
        }
        Err(ReleaseError::Parent(ParentWriteError::Contended))
    }

    /// Creates the parent again if anything is left of its set: without a record, no later run
    /// finds it.
    async fn without_parent(self, sink: &mut Sink<'_>) -> Result<ParentOutcome, ReleaseError> {
        let ParentWriting { set, resource, .. } = self.writing;
        self.known.forget_entry();
        let uid = self.known.parent.uid.clone();
        let outcome_event = |action, reason: &str, sink: &mut Sink<'_>| {
            let subject = Subject::new(&set.parent, resource, Some(&uid));
            sink(Event::Object(ObjectOutcome::with_reason(subject, action, reason)));
        };
        let found = self.left_without_record(sink).await?;
        if found.remains == Remains::default() && self.unlisted.is_empty() {
            outcome_event(Action::Deleted, GONE_ALREADY, sink);
            return Ok(ParentOutcome::Gone);
        }
        self.record_left(None, &found, sink).await?;
        outcome_event(Action::Skipped, CREATED_AGAIN, sink);
        if self.writing.interrupt.is_requested() {
            return Ok(ParentOutcome::Untouched);
        }
        Ok(ParentOutcome::Kept(Box::new(KeptParent {
            remains: found.remains,
            unlisted: self.unlisted,
            record: None,
        })))
    }

    /// Makes another object in the parent's place record what is left of the set, if that
    /// object is a parent. An ordinary object is not taken over.
    async fn with_another_object(
        self,
        object: ParentObject,
        sink: &mut Sink<'_>,
    ) -> Result<ParentOutcome, ReleaseError> {
        let is_ordinary = object.reading == Reading::NoRecord;
        self.known.forget_entry();
        let found = self.left_without_record(sink).await?;
        if found.remains != Remains::default() || !self.unlisted.is_empty() {
            self.record_left(Some(object), &found, sink).await?;
        }
        Ok(if is_ordinary {
            ParentOutcome::Ordinary
        } else {
            ParentOutcome::Replaced
        })
    }

    /// Lists what is left of a set whose parent has disappeared. The parent's containers go last.
    async fn left_without_record(&self, sink: &mut Sink<'_>) -> Result<RemainingList, ReleaseError> {
        let found = self.remaining.settled(&ParentDisposition::Goes, sink).await;
        found.map_err(ReleaseError::Unwatched)
    }

    async fn record_left(
        &self,
        current: Option<ParentObject>,
        found: &RemainingList,
        sink: &mut Sink<'_>,
    ) -> Result<(), ReleaseError> {
        let writing = self.parent_writing(&[]);
        match writing.widen(current, &self.record(found), sink).await {
            Ok(()) => Ok(()),
            Err(error) => Err(ReleaseError::Unrecorded {
                left: left_behind(found.remains.all(), &self.unlisted),
                error,
            }),
        }
    }

    /// Lists members in the scope of the record that another run has written, too. The kinds of that
    /// run may be newer than discovery.
    async fn follow(&mut self, parent: &ParentObject) -> Result<(), ReleaseError> {
        if parent.reading == self.scope_of {
            return Ok(());
        }
        let ParentWriting { server, set, .. } = self.writing;
        let mut discovery = discovery::fetch(server).await?;
        let parent_status = judge_for_deletion(set, parent)
            .and_then(|judged| judged.accept(&[]))
            .map_err(ParentWriteError::Refused)?;
        if let ParentStatus::Recorded(applyset_record) = &parent_status {
            let unlisted =
                |discovery: &Discovery| recorded_kinds::undiscovered(&applyset_record.kinds, discovery);
            let wait = KindWait::unreported();
            read::settle(server, &mut discovery, unlisted, &wait).await?;
        }
        let member_scope = member_scope(set, &parent_status, &Desired::default(), &discovery)?;
        self.unlisted = self.unlisted.union(&member_scope.unlisted);
        let ListTargets {
            resources,
            namespaces,
        } = member_scope.places;
        self.remaining.places.add_resources(resources);
        self.remaining.places.namespaces.extend(namespaces);
        self.scope_of = parent.reading.clone();
        Ok(())
    }

    fn parent_writing<'b>(&'b self, accepted: &'b [Refusal]) -> ParentWriting<'b> {
        ParentWriting {
            accepted,
            manifest: None,
            ..self.writing
        }
    }

    /// Deletes the parent as it was read; `None` if it has changed since.
    async fn delete_parent(
        &self,
        parent: &WholeParent,
        sink: &mut Sink<'_>,
    ) -> Result<Option<ParentOutcome>, ReleaseError> {
        let live = &parent.live;
        let removed = self.parent_writing(&[]).delete(live, sink).await?;
        let Some(left) = removed else { return Ok(None) };
        let reason = match left {
            ParentLeft::NothingBefore => GONE_ALREADY.to_owned(),
            ParentLeft::TerminatingBefore => SkipReason::Terminating {
                waits_for: live.waits_for.clone(),
            }
            .to_string(),
            ParentLeft::Nothing | ParentLeft::Terminating => String::new(),
        };
        sink(outcome_event(live, Action::Deleted, reason));
        let going = match left {
            ParentLeft::Terminating | ParentLeft::TerminatingBefore => self.going(live).await?,
            ParentLeft::Nothing | ParentLeft::NothingBefore => None,
        };
        Ok(Some(going.map_or(ParentOutcome::Gone, |live| {
            ParentOutcome::Terminating(Box::new(live))
        })))
    }

    /// Returns the deleted parent as long as finalizers hold it; `None` if it is gone, or if the run
    /// reports what remains.
    async fn going(&self, live: &Live) -> Result<Option<Live>, ReleaseError> {
        if self.remaining.lingering == Lingering::Reported {
            return Ok(None);
        }
        let now = reread(self.writing.server, &live.key, &live.resource).await?;
        Ok(now.filter(|now| now.uid == live.uid))
    }

    /// Removes the record from a parent that is used for something else as well; `None` if it has
    /// changed since.
    async fn take_record_off(
        &self,
        parent: &WholeParent,
        why: &str,
        sink: &mut Sink<'_>,
    ) -> Result<Option<ParentOutcome>, ReleaseError> {
        // It was this set's parent before, even without a record.
        let accepted = [Refusal::NotAParent {
            parent: self.writing.set.parent.clone(),
        }];
        let writing = self.parent_writing(&accepted);
        if !writing.take_off(&parent.object, sink).await? {
            return Ok(None);
        }
        let reason = format!("{why}; only the set's record was removed");
        sink(outcome_event(&parent.live, Action::Skipped, reason));
        Ok(Some(ParentOutcome::Ordinary))
    }

    /// Reports that the parent is kept, and determines what it has to record.
    async fn keep(
        self,
        parent: &WholeParent,
        found: RemainingList,
        sink: &mut Sink<'_>,
    ) -> Result<ParentOutcome, ReleaseError> {
        let going = found.remains.going.len();
        let staying = found.remains.all().count() - going;
        let reason = match (staying, going) {
            (0, 0) => unlistable(&self.unlisted),
            (0, going) => format!("{} of its set still being deleted", counted(going, "object")),
            (staying, 0) => format!("{} of its set kept", counted(staying, "object")),
            (staying, going) => format!(
                "{} of its set kept, {going} still being deleted",
                counted(staying, "object")
            ),
        };
        let mut record = self.record(&found);
        if !self.known.is_shared && !parent.object.has_record(&self.writing.set.tooling, &record) {
            let places = &self.remaining.places;
            let unlabeled = self.writing.record_of_unlabeled(places, &record, sink).await?;
            record = record.union(&unlabeled);
        }
        sink(outcome_event(&parent.live, Action::Skipped, reason));
        Ok(ParentOutcome::Kept(Box::new(KeptParent {
            remains: found.remains,
            unlisted: self.unlisted,
            record: Some(record),
        })))
    }

    /// Returns the record of these members, of copies and of the parent's containers, and of kinds that
    /// cannot be listed.
    fn record(&self, found: &RemainingList) -> Record {
        let homes = self.remaining.homes.iter().copied();
        let keys = found.all().chain(homes).map(|live| &live.key);
        Record::from_members(keys, &self.writing.set.parent).union(&self.unlisted)
    }
}
