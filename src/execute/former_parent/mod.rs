//! Sees to the parent of a set that a run has taken objects out of: it is deleted, or its record is removed or narrowed.
//!
//! It is deleted only when a fresh list finds no member any more, not even one that is being deleted.
//! Until then it records what is left, so that the same command can continue after any interruption. If
//! another run has written the record since the plan, members may be outside of the plan's scope: these
//! are listed, too, and the record is not narrowed. A write that was not carried out is decided again, from
//! what is read again: because another client has written the parent first, or because a webhook is still starting.

mod record_what_is_left;
pub mod wait_until_members_are_gone;

use std::collections::BTreeSet;

use crate::cluster::apiserver::ApiError;
use crate::cluster::discovery::{self, Discovery, DiscoveryError};
use crate::event::{Action, Event};
use crate::execute::adopt_move_disband::JoinedSet;
use crate::execute::deletion::delete::ObjectsKeptInsteadOfDeleted;
use crate::execute::deletion::report::outcome_event;
use crate::execute::former_parent::wait_until_members_are_gone::{
    Lingering, Remaining, RemainingList, Unlisted, obstacles,
};
use crate::execute::parent_record::ATTEMPTS;
use crate::execute::parent_record::begin::Known;
use crate::execute::parent_record::remove::ParentLeft;
use crate::execute::reread::{GONE_ALREADY, reread};
use crate::execute::starting_webhooks::StartingWebhooks;
use crate::execute::{ParentWriteError, ParentWriting, Sink, WaitNotes};
use crate::manifest::desired::Desired;
use crate::model::applyset::Record;
use crate::model::applyset::parent::Reading;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::parent_object::ParentObject;
use crate::plan::recorded_kinds;
use crate::plan::{
    MemberScopeUnknown, ParentDisposition, ParentStatus, Remains, SkipReason, judge_for_deletion,
    member_scope, parent_disposition,
};
use crate::read::{
    self, KindWait, ListError, ListTargets, METADATA_LIST, UnsettledError, WholeParent, list_labeled_objects,
};

/// The aim of a run for the parent of a set that it takes objects out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentAim {
    /// It is kept, and records the members that are left.
    Narrow,
    /// If no member is left, it is kept as an ordinary object.
    RemoveRecord,
    /// If no member is left, it is deleted; one with another use is kept as an ordinary object.
    Delete,
}

/// Context for ending a set, or narrowing its record.
pub struct ParentRelease<'a> {
    pub aim: ParentAim,
    /// The set that the members have joined, if they have: what its objects name as their owner is not deleted.
    pub joined: Option<&'a JoinedSet<'a>>,
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
    /// It is kept as the parent.
    Kept(Box<KeptParent>),
    /// The user stopped the run before that.
    Untouched,
}

/// The reason why a parent is kept, and what it has to record.
pub struct KeptParent {
    pub remains: Remains,
    /// An object that the members' new set holds, and that names the parent as its owner.
    pub owned: Option<ObjectKey>,
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
    /// Deletes the parent, removes its record, or determines a narrower one; reads and judges it again as long as other
    /// clients write it, and after each wait for a webhook.
    pub async fn release(mut self, sink: &mut Sink<'_>) -> Result<ParentOutcome, ReleaseError> {
        let ParentWriting {
            server,
            set,
            resource,
            interrupt,
            writing,
            ..
        } = self.writing;
        let (notes, uid) = (WaitNotes::default(), self.known.parent.uid.clone());
        let webhooks = StartingWebhooks::new(writing, interrupt, &notes);
        let (mut overtaken, mut vain) = (0, 0);
        while overtaken < ATTEMPTS {
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
                let left = obstacles(&found.remains, set, self.remaining.appliers);
                if let Some(obstacles) = left.filter(|_| self.aim == ParentAim::Delete) {
                    sink(Event::Warning(format!("{}: {obstacles}", set.parent)));
                }
                return Ok(ParentOutcome::Untouched);
            }
            if let Some(kept) = self.reason_to_keep(found, &parent, &disposition, sink).await? {
                return self.keep(&parent, kept, sink).await;
            }
            let written = match (self.aim, disposition) {
                (ParentAim::Delete, ParentDisposition::Goes) => self.delete_parent(&parent, sink).await,
                (ParentAim::Delete, ParentDisposition::Stays(why)) => {
                    let reason = format!("{why}; only the set's record was removed");
                    self.take_record_off(&parent, Some(reason), sink).await
                }
                (ParentAim::RemoveRecord | ParentAim::Narrow, _) => {
                    self.take_record_off(&parent, None, sink).await
                }
            };
            match written {
                Ok(Some(released)) => {
                    self.known.forget_entry();
                    return Ok(released);
                }
                Ok(None) => overtaken += 1,
                Err(ReleaseError::Request(error)) => {
                    let pause = notes.reporting(webhooks.pause_after(error, vain), sink);
                    let paused = self.writing.while_renewing(self.known, pause).await;
                    paused.map_err(|error| match self.aim {
                        ParentAim::Delete => ReleaseError::Request(error),
                        ParentAim::Narrow | ParentAim::RemoveRecord => {
                            ParentWriteError::Request(error).into()
                        }
                    })?;
                    vain += 1;
                }
                Err(error) => return Err(error),
            }
        }
        Err(ReleaseError::Parent(ParentWriteError::Contended))
    }

    /// Returns why the parent is kept as the parent; `None` if the set ends now.
    async fn reason_to_keep(
        &self,
        found: RemainingList,
        parent: &WholeParent,
        disposition: &ParentDisposition,
        sink: &mut Sink<'_>,
    ) -> Result<Option<ReasonToKeep>, ReleaseError> {
        let is_left = found.remains != Remains::default() || !self.unlisted.is_empty();
        if self.aim == ParentAim::Narrow || is_left {
            return Ok(Some(ReasonToKeep::Left(found)));
        }
        if let Some(running) = parent.object.adding_beside(self.known.id()).next() {
            let reason = format!("{running} has not ended");
            sink(outcome_event(&parent.live, Action::Skipped, reason));
            let advice = running.wait_advice(&self.writing.set.parent, self.writing.server.now());
            return Err(ReleaseError::UnderWay(advice));
        }
        let homes = || {
            self.remaining
                .homes
                .iter()
                .copied()
                .cloned()
                .collect::<Vec<Live>>()
        };
        Ok(match disposition {
            // Its container is a member, and is kept with it.
            ParentDisposition::Stays(_) if !self.remaining.homes.is_empty() => {
                Some(ReasonToKeep::Left(RemainingList::of(Remains {
                    kept: homes(),
                    ..Remains::default()
                })))
            }
            // Objects that it gained, or that were left in it, keep it.
            ParentDisposition::Goes if self.remaining.homes.iter().any(|home| self.left.keeps(home)) => {
                Some(ReasonToKeep::Left(RemainingList::of(Remains {
                    undeleted: homes(),
                    ..Remains::default()
                })))
            }
            ParentDisposition::Goes => self.owned_in_new_set().await?.map(ReasonToKeep::Owner),
            ParentDisposition::Stays(_) => None,
        })
    }

    /// Finds an object of the set that the members have joined, or its parent, that names this parent as its owner: the
    /// garbage collector would delete it with this parent. A reference may have been added since the plan.
    async fn owned_in_new_set(&self) -> Result<Option<ObjectKey>, ReleaseError> {
        let Some(joined) = self.joined else {
            return Ok(None);
        };
        let (parent, set) = (joined.parent, self.writing.set);
        let concurrency = parent.writing.concurrency;
        for targets in joined.recorded_places(&self.remaining.places) {
            let listed =
                list_labeled_objects(parent.server, parent.set, &targets, concurrency, METADATA_LIST).await;
            let members = listed.map_err(|(_, error)| ReleaseError::UnseenOwned(error))?;
            if let Some(live) = members.iter().find(|live| set.is_owner(&live.owners)) {
                return Ok(Some(live.key.clone()));
            }
        }
        let read = parent.read().await?;
        let is_owned = read.is_some_and(|parent| set.is_owner(&parent.owners));
        Ok(is_owned.then(|| parent.set.parent.clone()))
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

    /// Deletes the parent as it was read; `None` if it has changed since.
    async fn delete_parent(
        &self,
        parent: &WholeParent,
        sink: &mut Sink<'_>,
    ) -> Result<Option<ParentOutcome>, ReleaseError> {
        let live = &parent.live;
        let removed = self.writing.delete(live).await?;
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

    /// Removes the record from a parent that is kept, and reports the reason if there is one; `None` if it has changed
    /// since.
    async fn take_record_off(
        &self,
        parent: &WholeParent,
        reason: Option<String>,
        sink: &mut Sink<'_>,
    ) -> Result<Option<ParentOutcome>, ReleaseError> {
        if !self.writing.take_off(&parent.object).await? {
            return Ok(None);
        }
        if let Some(reason) = reason {
            sink(outcome_event(&parent.live, Action::Skipped, reason));
        }
        Ok(Some(ParentOutcome::Ordinary))
    }
}

/// The reason to keep a parent as the parent.
pub(super) enum ReasonToKeep {
    /// Members are left, or kinds whose members a list may not show, or it is to be kept.
    Left(RemainingList),
    /// This object would be deleted with it.
    Owner(ObjectKey),
}
