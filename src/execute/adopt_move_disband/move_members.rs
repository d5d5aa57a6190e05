//! Takes members from one set into another.

use std::collections::BTreeSet;

use super::adopt::Adopting;
use super::{announce, members, unless_none_is_taken};
use crate::event::{Ending, Event};
use crate::execute::Sink;
use crate::execute::deletion::delete::ObjectsKeptInsteadOfDeleted;
use crate::execute::deletion::parent::{Parent, ReleaseError, Releasing};
use crate::execute::deletion::report::{
    CREATED_AGAIN, left_behind, names, predicted_disposition, unlistable,
};
use crate::execute::deletion::set::record_managers;
use crate::execute::deletion::wait_until_members_are_gone::{Lingering, Remaining};
use crate::execute::parent_record::begin::Known;
use crate::execute::parent_record::requests::{ParentWriteError, ParentWriting};
use crate::execute::parent_record::run::RunOnParent;
use crate::execute::wait_until_gone::with_reasons;
use crate::model::applyset::Record;
use crate::model::applyset::parent::Reading;
use crate::model::history_annotation::RunOperation;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::parent_object::ParentObject;
use crate::model::text::counted;
use crate::model::write_settings::DryRun;
use crate::read::{self, ListTargets};

/// Everything that moving members needs.
pub struct Moving<'a> {
    /// The set that they leave, and how its parent is written.
    pub from: ParentWriting<'a>,
    /// The parent that they leave, as it was read.
    pub former: &'a ParentObject,
    /// The scope of its members.
    pub targets: &'a ListTargets,
    /// Its record, without the kinds that are not served any more.
    pub recorded: &'a Record,
    /// The part of the record that stays, because a list of members does not show all that it leads to.
    pub unlisted: &'a Record,
    /// The recorded scope of the new set.
    pub new_targets: &'a ListTargets,
    /// The set that they join.
    pub into: Adopting<'a>,
    /// Field managers whose part-of labels make an object a member.
    pub appliers: &'a BTreeSet<String>,
    /// The disposition of the parent that they leave.
    pub farewell: &'a OldParent,
}

/// The disposition of the old parent once members have moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OldParent {
    /// It is kept, and records the members that are left.
    Narrow,
    /// The same, although the whole set was to move.
    Keep(Obstacles),
    /// No member is left: it is treated as by `delete`.
    Release,
}

/// The reason to keep a set whose members were all to move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacles {
    /// Members that cannot move.
    pub members: Vec<Live>,
    /// A member of the new set that names the old parent as its owner.
    pub owned: Option<ObjectKey>,
    /// A scope with members that a list may not show.
    pub unlisted: Record,
}

impl Moving<'_> {
    /// Moves the members, then deletes the old parent or narrows its record.
    ///
    /// # Errors
    ///
    /// The new parent cannot be written; no label was written then.
    pub async fn run(&self, sink: &mut Sink<'_>) -> Result<Ending, ParentWriteError> {
        announce(&[&self.into.parent, &self.from], self.into.plan, sink);
        let known = self.begin_on_old_parent(sink).await?;
        let mut run = RunOnParent::new(self.from, self.recorded, Some(known));
        let taken = run.work(async |sink| self.into.write(sink).await, sink).await;
        let mut record = None;
        let ending = match (&mut run.known, &taken) {
            (Some(known), Ok(Ending::Done)) => self.see_to_old_parent(known, &mut record, sink).await,
            (_, Ok(ending)) => *ending,
            (_, Err(_)) => Ending::Incomplete,
        };
        let ending = run.end(record.as_ref(), ending, sink).await;
        taken?;
        let (from, into) = (&self.from.set.parent, &self.into.parent.set.parent);
        let none_moves = || format!("{from}: nothing to move to {into}");
        Ok(unless_none_is_taken(ending, self.into.plan, none_moves, sink))
    }

    async fn begin_on_old_parent(&self, sink: &mut Sink<'_>) -> Result<Known, ParentWriteError> {
        let former = self.former.clone();
        if self.into.plan.changes.is_empty() {
            return Ok(Known::read_to_take_out(former));
        }
        let begun = self
            .from
            .begin_to_take_out(former, self.recorded, RunOperation::Move, sink);
        begun.await
    }

    /// Deletes the old parent or determines its new record, which is put into `record`.
    async fn see_to_old_parent(
        &self,
        known: &mut Known,
        record: &mut Option<Record>,
        sink: &mut Sink<'_>,
    ) -> Ending {
        let is_dry = self.from.writing.dry_run != DryRun::None;
        let seen_to = match self.farewell {
            // If nothing moves, the permission to write the old parent was not checked either.
            _ if !self.into.plan.takes_any() => Ok(Ending::Done),
            OldParent::Narrow | OldParent::Keep(_) if is_dry => Ok(Ending::Done),
            OldParent::Narrow | OldParent::Keep(_) => self.narrow(known, record, sink).await,
            OldParent::Release if is_dry => self.predict_release(sink).await,
            OldParent::Release => self.release(known, record, sink).await,
        };
        let ending = seen_to.unwrap_or_else(|error| {
            sink(Event::failure(error.to_string()));
            Ending::Incomplete
        });
        match self.farewell {
            OldParent::Keep(obstacles) if ending == Ending::Done => self.report(obstacles, sink),
            OldParent::Keep(_) | OldParent::Narrow | OldParent::Release => ending,
        }
    }

    /// Reports why the old set is kept. It fails if members may remain that no list shows.
    fn report(&self, obstacles: &Obstacles, sink: &mut Sink<'_>) -> Ending {
        let parent = &self.from.set.parent;
        if !obstacles.members.is_empty() {
            let count = counted(obstacles.members.len(), "object");
            let names = names(&obstacles.members);
            sink(Event::Warning(format!(
                "{parent}: the old set is kept with {count}: {names}"
            )));
        }
        if let Some(owned) = &obstacles.owned {
            sink(Event::Warning(format!(
                "{parent}: kept, because {owned} names it as its owner"
            )));
        }
        self.report_unlisted(&obstacles.unlisted, sink)
    }

    fn report_unlisted(&self, unlisted: &Record, sink: &mut Sink<'_>) -> Ending {
        if unlisted.is_empty() {
            return Ending::Done;
        }
        let is_kept = match self.from.writing.dry_run {
            DryRun::None => "is kept",
            DryRun::Client | DryRun::Server => "would be kept",
        };
        let parent = &self.from.set.parent;
        let reason = unlistable(unlisted);
        sink(Event::failure(format!(
            "{parent}: the old set {is_kept}: {reason}"
        )));
        Ending::Incomplete
    }

    /// Deletes the old parent, or removes its record, once all members have moved. A member that
    /// another run has added keeps the old set, and is left to that run.
    async fn release(
        &self,
        known: &mut Known,
        record: &mut Option<Record>,
        sink: &mut Sink<'_>,
    ) -> Result<Ending, ReleaseError> {
        if let Some(owned) = self.owned_by_old_parent().await? {
            let ending = self.narrow(known, record, sink).await?;
            let obstacles = Obstacles {
                members: Vec::new(),
                owned: Some(owned),
                unlisted: Record::default(),
            };
            return Ok(match ending {
                Ending::Done => self.report(&obstacles, sink),
                Ending::Incomplete | Ending::Interrupted => ending,
            });
        }
        let nothing_left = ObjectsKeptInsteadOfDeleted::default();
        let releasing = Releasing {
            writing: self.from,
            scope_of: known.listed(&self.former.reading),
            known,
            left: &nothing_left,
            remaining: Remaining {
                server: self.from.server,
                set: self.from.set,
                interrupt: self.from.interrupt,
                concurrency: self.from.writing.concurrency,
                appliers: self.appliers,
                places: self.targets.clone(),
                // Its namespace or definition has moved like any other member.
                homes: Vec::new(),
                deleted: BTreeSet::new(),
                containers_of_kept: BTreeSet::new(),
                lingering: Lingering::Awaited,
            },
            unlisted: self.unlisted.clone(),
            // A move deletes no data, not even those of the set's own manifests.
            managers: record_managers(),
        };
        Ok(match releasing.release(sink).await? {
            Parent::Gone | Parent::Ordinary | Parent::Replaced => Ending::Done,
            Parent::Going(live) => {
                let parent = &self.from.set.parent;
                let text = format!(
                    "{parent}: the old parent is still being deleted: {}",
                    with_reasons(&live)
                );
                sink(Event::failure(text));
                Ending::Incomplete
            }
            Parent::Stays(stay) => {
                *record = stay.record;
                let obstacles = Obstacles {
                    members: stay.remains.all().cloned().collect(),
                    owned: None,
                    unlisted: stay.unlisted,
                };
                self.report(&obstacles, sink)
            }
            Parent::Untouched => Ending::Interrupted,
        })
    }

    /// Finds an object of the new set, or its parent, that names the old parent as its owner: the
    /// garbage collector would delete it with the old parent. A reference may have been added since the
    /// plan. One that is added while the run waits for the old set to become empty is not detected.
    async fn owned_by_old_parent(&self) -> Result<Option<ObjectKey>, ReleaseError> {
        let ParentWriting { set, .. } = self.into.parent;
        for targets in self.targets_of_new_set() {
            let members = members(&self.into.parent, &targets).await;
            let members = members.map_err(ReleaseError::UnseenOwned)?;
            if let Some(live) = members.iter().find(|live| self.from.set.is_owner(&live.owners)) {
                return Ok(Some(live.key.clone()));
            }
        }
        let parent = self.into.parent.read().await.map_err(ParentWriteError::from)?;
        let is_owned = parent.is_some_and(|parent| self.from.set.is_owner(&parent.owners));
        Ok(is_owned.then(|| set.parent.clone()))
    }

    /// Returns the recorded scope of the new set: its own, and that of the members that have moved. All
    /// kinds of both in all namespaces of both would be more than the user may have to list.
    fn targets_of_new_set(&self) -> Vec<ListTargets> {
        let record = self.into.record;
        let parent_namespace = &self.into.parent.set.parent.namespace;
        let recorded = |targets: &ListTargets| ListTargets {
            resources: targets
                .resources
                .iter()
                .filter(|resource| record.group_kinds.contains(&resource.group_kind()))
                .cloned()
                .collect(),
            namespaces: targets
                .namespaces
                .iter()
                .filter(|name| {
                    record.additional_namespaces.contains(*name) || parent_namespace.as_ref() == Some(*name)
                })
                .cloned()
                .collect(),
        };
        let (old, new) = (recorded(self.targets), recorded(self.new_targets));
        if old.covers(&new) {
            vec![old]
        } else {
            vec![old, new]
        }
    }

    /// Reports the disposition of the old parent, and writes nothing.
    async fn predict_release(&self, sink: &mut Sink<'_>) -> Result<Ending, ReleaseError> {
        let ParentWriting {
            server,
            set,
            resource,
            ..
        } = self.from;
        if let Some(parent) = read::whole_parent(server, resource, &set.parent).await? {
            let (_, event) = predicted_disposition(set, &parent, &record_managers());
            sink(event);
        }
        Ok(Ending::Done)
    }

    /// Determines the record of what is left in the old set, and puts it into `record`.
    async fn narrow(
        &self,
        known: &mut Known,
        record: &mut Option<Record>,
        sink: &mut Sink<'_>,
    ) -> Result<Ending, ReleaseError> {
        let current = self.from.read().await.map_err(ParentWriteError::from)?;
        let left = self.left().await?;
        let current = match current {
            Some(current) if current.uid == self.former.uid && current.reading != Reading::NoRecord => {
                current
            }
            other => {
                known.forget_entry();
                return self.without_parent(other, &left, sink).await;
            }
        };
        known.find(current);
        if self.from.interrupt.is_requested() {
            return Ok(Ending::Interrupted);
        }
        let mut exact = self.record(&left);
        if !known.is_shared && !known.parent.has_record(&self.from.set.tooling, &exact) {
            let unlabeled = self.from.record_of_unlabeled(self.targets, &exact, sink).await?;
            exact = exact.union(&unlabeled);
        }
        *record = Some(exact);
        Ok(Ending::Done)
    }

    /// Records what is left of a set whose parent was deleted, or is another object now: without a record, no later run
    /// finds it.
    async fn without_parent(
        &self,
        other: Option<ParentObject>,
        left: &[Live],
        sink: &mut Sink<'_>,
    ) -> Result<Ending, ReleaseError> {
        if left.is_empty() && self.unlisted.is_empty() {
            return Ok(Ending::Done);
        }
        let is_created = other.is_none();
        let covered = self.from.cover(other, &self.record(left), sink).await;
        covered.map_err(|error| ReleaseError::Unrecorded {
            left: left_behind(left.iter(), self.unlisted),
            error,
        })?;
        let parent = &self.from.set.parent;
        if is_created {
            sink(Event::Warning(format!("{parent}: {CREATED_AGAIN}")));
        }
        Ok(Ending::Done)
    }

    /// The members that the old set still has.
    async fn left(&self) -> Result<Vec<Live>, ParentWriteError> {
        let left = members(&self.from, self.targets).await;
        left.map_err(ParentWriteError::Unwatched)
    }

    /// Returns the record of these members and of the kinds that cannot be listed.
    fn record(&self, left: &[Live]) -> Record {
        let keys = left.iter().map(|live| &live.key);
        Record::of(keys, &self.from.set.parent).union(self.unlisted)
    }
}
