//! Deletes the parent of a set that a run has taken objects out of, or removes or narrows its record.
//!
//! The parent is deleted only when a fresh list finds no member any more, not even one that is being deleted. Until
//! then the parent records what is left, so that the same command can continue after any interruption. If another run
//! has written the record since the plan, there may be members outside of the plan's scope: the scope of that record is
//! listed, too, and the record is not narrowed. If another client has written the parent first, or if a webhook cannot
//! be called yet, the parent and the members are read again, and the write is decided again.

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
    Remaining, RemainingList, RemainingNotListed, TerminatingObjects, describe_obstacles,
};
use crate::execute::labeled_objects::list_labeled_objects;
use crate::execute::parent_record::ATTEMPTS;
use crate::execute::parent_record::begin::KnownParent;
use crate::execute::parent_record::remove::DeletedParent;
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
use crate::read::{self, KindWait, ListError, ListTargets, METADATA_LIST, UnsettledError, WholeParent};

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
    /// Context for writing the parent.
    pub writing: ParentWriting<'a>,
    /// The parent, and the entry of the run.
    pub known: &'a mut KnownParent,
    /// Members that were to be deleted and were not.
    pub not_deleted: &'a ObjectsKeptInsteadOfDeleted,
    /// The context for listing what is left of the set.
    pub remaining: Remaining<'a>,
    /// What the parent said when the scope in `remaining` was determined.
    pub listed_reading: Reading,
    /// The part of the record that has to stay: the kinds of it whose members a list may not show.
    pub unlisted: Record,
    /// The field managers whose content does not keep the parent.
    pub managers: BTreeSet<String>,
}

/// Outcome for the parent.
pub enum ParentOutcome {
    /// The parent does not exist any more, or the run does not wait for its end.
    Gone,
    /// The parent is deleted, and finalizers hold it.
    Terminating(Box<Live>),
    /// The object is kept, without a record: it is not a parent any more.
    Ordinary,
    /// Another object is in the parent's place: the parent of a set that another run has created.
    Replaced,
    /// The parent is kept as the parent.
    Kept(Box<KeptParent>),
    /// The user stopped the run before it deleted or kept the parent.
    Untouched,
}

/// The reason why a parent is kept, and what it has to record.
pub struct KeptParent {
    pub remains: Remains,
    /// An object of the set that the members have joined that names the parent as its owner, if that is the reason.
    pub owned: Option<ObjectKey>,
    /// The kinds of the record whose members a list may not show.
    pub unlisted: Record,
    /// The record of what is left, which the run has to write; `None` if the parent has it already.
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
    NewSetNotListed(ListError),
    #[error("the set's parent is kept: members may remain, and cannot be listed: {0}")]
    RemainingNotListed(RemainingNotListed),
    #[error(
        "the set's parent is gone, but another run may have added members: {0}; run the same command again"
    )]
    NotListedWithoutParent(RemainingNotListed),
    #[error("the set's parent is kept: {0}")]
    AnotherRunUnderWay(String),
    #[error("the set's parent is kept: another run changed its record, and discovery failed: {0}")]
    Discovery(#[from] DiscoveryError),
    #[error("the set's parent is kept: another run changed its record: {0}")]
    Unsettled(#[from] UnsettledError),
    #[error("the set's parent is kept: another run changed its record: {0}")]
    MemberScope(#[from] MemberScopeUnknown),
}

impl ParentRelease<'_> {
    /// Deletes the parent, removes its record, or determines a narrower record. As long as other clients write the
    /// parent first, and after each wait for a webhook, reads and judges it again.
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
        // Waits for webhooks have their own time limit, so they do not count as attempts.
        let (mut conflicts, mut webhook_failures) = (0, 0);
        while conflicts < ATTEMPTS {
            let read = read::whole_parent(server, resource, &set.parent).await?;
            let Some(parent) = read else {
                return self.end_without_parent(sink).await;
            };
            self.known.replace(parent.object.clone());
            if parent.live.uid != uid
                || !matches!(parent.object.reading, Reading::Parent(_) | Reading::Unfinished(_))
            {
                let reason = "it changed during the run and is no longer this set's parent";
                sink(outcome_event(&parent.live, Action::Skipped, reason.to_owned()));
                return self.end_with_another_object(parent.object, sink).await;
            }
            self.add_scope_of_other_runs(&parent.object).await?;
            let disposition = parent_disposition(set, &parent.live, &parent.content_writers, &self.managers);
            let found = self
                .writing
                .while_renewing(self.known, self.remaining.list_until_settled(&disposition, sink))
                .await
                .map_err(ReleaseError::RemainingNotListed)?;
            if interrupt.is_requested() {
                let obstacles = describe_obstacles(&found.remains, set, self.remaining.appliers);
                if let Some(obstacles) = obstacles.filter(|_| self.aim == ParentAim::Delete) {
                    sink(Event::Warning(format!("{}: {obstacles}", set.parent)));
                }
                return Ok(ParentOutcome::Untouched);
            }
            let reason = self.find_reason_to_keep(found, &parent, &disposition, sink);
            if let Some(reason) = reason.await? {
                return self.keep(&parent, reason, sink).await;
            }
            let written = match (self.aim, disposition) {
                (ParentAim::Delete, ParentDisposition::Goes) => self.delete_parent(&parent, sink).await,
                (ParentAim::Delete, ParentDisposition::Stays(why)) => {
                    let reason = format!("{why}; only the set's record was removed");
                    self.remove_record(&parent, Some(reason), sink).await
                }
                (ParentAim::RemoveRecord | ParentAim::Narrow, _) => {
                    self.remove_record(&parent, None, sink).await
                }
            };
            match written {
                Ok(Some(released)) => {
                    self.known.forget_entry();
                    return Ok(released);
                }
                Ok(None) => conflicts += 1,
                Err(ReleaseError::Request(error)) => {
                    // Waits if a webhook that may still be starting caused the error; returns any other error.
                    let pause = notes.reporting(webhooks.pause_after(error, webhook_failures), sink);
                    let paused = self.writing.while_renewing(self.known, pause).await;
                    paused.map_err(|error| match self.aim {
                        ParentAim::Delete => ReleaseError::Request(error),
                        ParentAim::Narrow | ParentAim::RemoveRecord => {
                            ParentWriteError::Request(error).into()
                        }
                    })?;
                    webhook_failures += 1;
                }
                Err(error) => return Err(error),
            }
        }
        Err(ReleaseError::Parent(ParentWriteError::Contended))
    }

    /// Returns the reason to keep the parent as the parent; `None` if it is to be deleted or to lose its record.
    ///
    /// # Errors
    ///
    /// Another run that may add members is under way, or the set that the members have joined cannot be read.
    async fn find_reason_to_keep(
        &self,
        found: RemainingList,
        parent: &WholeParent,
        disposition: &ParentDisposition,
        sink: &mut Sink<'_>,
    ) -> Result<Option<ReasonToKeep>, ReleaseError> {
        let may_have_members = found.remains != Remains::default() || !self.unlisted.is_empty();
        if self.aim == ParentAim::Narrow || may_have_members {
            return Ok(Some(ReasonToKeep::Members(found)));
        }
        if let Some(running) = parent.object.adding_beside(self.known.id()).next() {
            let reason = format!("{running} has not ended");
            sink(outcome_event(&parent.live, Action::Skipped, reason));
            let advice = running.wait_advice(&self.writing.set.parent, self.writing.server.now());
            return Err(ReleaseError::AnotherRunUnderWay(advice));
        }
        let parent_containers = &self.remaining.parent_containers;
        let cloned_containers = || -> Vec<Live> { parent_containers.iter().copied().cloned().collect() };
        let is_container_kept = parent_containers
            .iter()
            .any(|container| self.not_deleted.keeps(container));
        Ok(match disposition {
            // An object that stays keeps its namespace and the CRD of its kind. These are members, so the object has to
            // stay their parent.
            ParentDisposition::Stays(_) if !parent_containers.is_empty() => {
                Some(ReasonToKeep::Members(RemainingList::without_copies(Remains {
                    kept: cloned_containers(),
                    ..Remains::default()
                })))
            }
            // A container that has gained objects, or in which an object was kept, is not deleted, so it keeps the
            // parent.
            ParentDisposition::Goes if is_container_kept => {
                Some(ReasonToKeep::Members(RemainingList::without_copies(Remains {
                    undeleted: cloned_containers(),
                    ..Remains::default()
                })))
            }
            ParentDisposition::Goes => self
                .find_owned_in_new_set()
                .await?
                .map(ReasonToKeep::OwnsObjectOfNewSet),
            ParentDisposition::Stays(_) => None,
        })
    }

    /// Finds an object of the set that the members have joined, or the parent of that set, that names this parent as
    /// its owner: the garbage collector would delete the object after this parent. It is looked for again, because
    /// another client may have added the owner reference since the plan.
    async fn find_owned_in_new_set(&self) -> Result<Option<ObjectKey>, ReleaseError> {
        let Some(joined) = self.joined else {
            return Ok(None);
        };
        let (parent, set) = (joined.parent, self.writing.set);
        let concurrency = parent.writing.concurrency;
        for targets in joined.recorded_places(&self.remaining.places) {
            let listed =
                list_labeled_objects(parent.server, parent.set, &targets, concurrency, METADATA_LIST).await;
            let members = listed.map_err(|(_, error)| ReleaseError::NewSetNotListed(error))?;
            if let Some(live) = members.iter().find(|live| set.is_owner(&live.owners)) {
                return Ok(Some(live.key.clone()));
            }
        }
        let read = parent.read().await?;
        let is_owned = read.is_some_and(|parent| set.is_owner(&parent.owners));
        Ok(is_owned.then(|| parent.set.parent.clone()))
    }

    /// If another run has written the record since the plan, adds the scope of that record to the scope that is listed.
    /// Discovery is fetched again, because the other run may have created kinds since the plan.
    async fn add_scope_of_other_runs(&mut self, parent: &ParentObject) -> Result<(), ReleaseError> {
        if parent.reading == self.listed_reading {
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
        self.listed_reading = parent.reading.clone();
        Ok(())
    }

    /// Deletes the parent as it was read; `None` if it has changed since.
    async fn delete_parent(
        &self,
        parent: &WholeParent,
        sink: &mut Sink<'_>,
    ) -> Result<Option<ParentOutcome>, ReleaseError> {
        let live = &parent.live;
        let deleted = self.writing.delete(live).await?;
        let Some(deleted) = deleted else { return Ok(None) };
        let reason = match deleted {
            DeletedParent::GoneBefore => GONE_ALREADY.to_owned(),
            DeletedParent::TerminatingBefore => SkipReason::Terminating {
                waits_for: live.waits_for.clone(),
            }
            .to_string(),
            DeletedParent::Gone | DeletedParent::Terminating => String::new(),
        };
        sink(outcome_event(live, Action::Deleted, reason));
        let terminating = match deleted {
            DeletedParent::Terminating | DeletedParent::TerminatingBefore => {
                self.reread_terminating(live).await?
            }
            DeletedParent::Gone | DeletedParent::GoneBefore => None,
        };
        Ok(Some(terminating.map_or(ParentOutcome::Gone, |live| {
            ParentOutcome::Terminating(Box::new(live))
        })))
    }

    /// Reads the deleted parent again, which may still be held by finalizers; `None` if it is gone, or if the run does
    /// not wait for terminating objects here (`TerminatingObjects::Reported`).
    async fn reread_terminating(&self, live: &Live) -> Result<Option<Live>, ReleaseError> {
        if self.remaining.terminating_objects == TerminatingObjects::Reported {
            return Ok(None);
        }
        let current = reread(self.writing.server, &live.key, &live.resource).await?;
        Ok(current.filter(|current| current.uid == live.uid))
    }

    /// Removes the record from a parent that is kept, and reports the reason to keep it if there is one. Returns `None`
    /// if the parent has changed since it was read.
    async fn remove_record(
        &self,
        parent: &WholeParent,
        reason: Option<String>,
        sink: &mut Sink<'_>,
    ) -> Result<Option<ParentOutcome>, ReleaseError> {
        if !self.writing.remove_record(&parent.object).await? {
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
    /// Members are left, the record has kinds whose members a list may not show, or the run aims to keep the parent.
    Members(RemainingList),
    /// This object of the set that the members have joined names the parent as its owner.
    OwnsObjectOfNewSet(ObjectKey),
}
