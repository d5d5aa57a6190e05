//! Sees to the parent of a set that objects have left: it is deleted, or its record removed or narrowed.

use std::collections::BTreeSet;

use super::{JoinedSet, MembershipExecution, members};
use crate::event::{Ending, Event};
use crate::execute::Sink;
use crate::execute::deletion::delete::ObjectsKeptInsteadOfDeleted;
use crate::execute::deletion::parent::{ParentOutcome, ParentRelease, ReleaseError};
use crate::execute::deletion::report::{
    CREATED_AGAIN, left_behind, names, predicted_disposition, report_unlisted,
};
use crate::execute::deletion::set::record_managers;
use crate::execute::deletion::wait_until_members_are_gone::{Lingering, Remaining};
use crate::execute::parent_record::begin::Known;
use crate::execute::parent_record::requests::{ParentWriteError, ParentWriting};
use crate::execute::wait_until_gone::with_reasons;
use crate::model::applyset::Record;
use crate::model::applyset::parent::Reading;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::parent_object::ParentObject;
use crate::model::text::counted;
use crate::model::write_settings::DryRun;
use crate::read::{self, ClusterState, ListTargets};

/// The set that objects leave.
pub struct LeftSet<'a> {
    /// The context for writing its parent.
    pub parent: ParentWriting<'a>,
    /// The parent as it was read.
    pub former: &'a ParentObject,
    /// Its state when it was planned.
    pub state: &'a ClusterState,
    /// Field managers whose part-of labels make an object a member.
    pub appliers: &'a BTreeSet<String>,
    /// The action for the parent.
    pub disposition: FormerParent,
}

/// The action for the parent once objects have left its set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormerParent {
    /// It is kept, and records the members that are left.
    Narrow,
    /// The same, although the whole set was to move.
    Keep(Obstacles),
    /// No member is left: it is treated as by `delete`.
    Release,
    /// No member is left: it is kept as an ordinary object.
    RemoveRecord,
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

impl LeftSet<'_> {
    /// Deletes the parent once objects have left its set, or determines its new record, which is put into `exact`.
    pub(super) async fn see_to_parent(
        &self,
        execution: &MembershipExecution<'_>,
        known: &mut Known,
        exact: &mut Option<Record>,
        sink: &mut Sink<'_>,
    ) -> Ending {
        let is_dry = self.parent.writing.dry_run != DryRun::None;
        let seen_to = match &self.disposition {
            FormerParent::RemoveRecord => return self.remove_record(known, sink).await,
            // If nothing moves, the permission to write this parent was not checked either.
            _ if !execution.plan.takes_any() => Ok(Ending::Done),
            FormerParent::Narrow | FormerParent::Keep(_) if is_dry => Ok(Ending::Done),
            FormerParent::Narrow | FormerParent::Keep(_) => self.narrow(known, exact, sink).await,
            FormerParent::Release if is_dry => self.predict_release(sink).await,
            FormerParent::Release => self.release(execution.joined.as_ref(), known, exact, sink).await,
        };
        let ending = seen_to.unwrap_or_else(|error| {
            sink(Event::failure(error.to_string()));
            self.parent.interrupt.ending_after_failure()
        });
        match &self.disposition {
            FormerParent::Keep(obstacles) if ending == Ending::Done => self.report(obstacles, sink),
            _ => ending,
        }
    }

    /// Deletes the old parent, or removes its record, once all members have moved. A member that
    /// another run has added keeps the old set, and is left to that run.
    async fn release(
        &self,
        joined: Option<&JoinedSet<'_>>,
        known: &mut Known,
        exact: &mut Option<Record>,
        sink: &mut Sink<'_>,
    ) -> Result<Ending, ReleaseError> {
        let owned = match joined {
            Some(joined) => self.owned_in(joined).await?,
            None => None,
        };
        if owned.is_some() {
            let ending = self.narrow(known, exact, sink).await?;
            let obstacles = Obstacles {
                members: Vec::new(),
                owned,
                unlisted: Record::default(),
            };
            return Ok(match ending {
                Ending::Done => self.report(&obstacles, sink),
                Ending::Incomplete | Ending::Interrupted => ending,
            });
        }
        let nothing_left = ObjectsKeptInsteadOfDeleted::default();
        let release = ParentRelease {
            writing: self.parent,
            scope_of: known.listed(&self.former.reading),
            known,
            left: &nothing_left,
            remaining: Remaining {
                server: self.parent.server,
                set: self.parent.set,
                interrupt: self.parent.interrupt,
                concurrency: self.parent.writing.concurrency,
                appliers: self.appliers,
                places: self.state.places.clone(),
                // Its namespace or CRD has moved like any other member.
                homes: Vec::new(),
                deleted: BTreeSet::new(),
                containers_of_kept: BTreeSet::new(),
                lingering: Lingering::Awaited,
            },
            unlisted: self.state.observed.unlisted.clone(),
            // A move deletes no data, not even data from the set's own manifests.
            managers: record_managers(),
        };
        Ok(match release.release(sink).await? {
            ParentOutcome::Gone | ParentOutcome::Ordinary | ParentOutcome::Replaced => Ending::Done,
            ParentOutcome::Terminating(live) => {
                let parent = &self.parent.set.parent;
                let text = format!(
                    "{parent}: the old parent is still being deleted: {}",
                    with_reasons(&live)
                );
                sink(Event::failure(text));
                Ending::Incomplete
            }
            ParentOutcome::Kept(kept) => {
                *exact = kept.record;
                let obstacles = Obstacles {
                    members: kept.remains.all().cloned().collect(),
                    owned: None,
                    unlisted: kept.unlisted,
                };
                self.report(&obstacles, sink)
            }
            ParentOutcome::Untouched => Ending::Interrupted,
        })
    }

    /// Finds an object of the new set, or its parent, that names the old parent as its owner: the
    /// garbage collector would delete it with the old parent. A reference may have been added since the
    /// plan. One that is added while the run waits for the old set to become empty is not detected.
    async fn owned_in(&self, joined: &JoinedSet<'_>) -> Result<Option<ObjectKey>, ReleaseError> {
        for targets in self.targets_in(joined) {
            let listed = members(&joined.parent, &targets).await;
            let members = listed.map_err(ReleaseError::UnseenOwned)?;
            if let Some(live) = members.iter().find(|live| self.parent.set.is_owner(&live.owners)) {
                return Ok(Some(live.key.clone()));
            }
        }
        let parent = joined.parent.read().await.map_err(ParentWriteError::from)?;
        let is_owned = parent.is_some_and(|parent| self.parent.set.is_owner(&parent.owners));
        Ok(is_owned.then(|| joined.parent.set.parent.clone()))
    }

    /// Returns the recorded scope of the new set: its own, and that of the members that have moved. All
    /// kinds of both in all namespaces of both would be more than the user may have to list.
    fn targets_in(&self, joined: &JoinedSet<'_>) -> Vec<ListTargets> {
        let record = joined.record;
        let parent_namespace = &joined.parent.set.parent.namespace;
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
        let (old, new) = (recorded(&self.state.places), recorded(&joined.state.places));
        if old.covers(&new) {
            vec![old]
        } else {
            vec![old, new]
        }
    }

    /// Reports why the old set is kept. It fails if members may remain that no list shows.
    fn report(&self, obstacles: &Obstacles, sink: &mut Sink<'_>) -> Ending {
        let parent = &self.parent.set.parent;
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
        let consequence = match self.parent.writing.dry_run {
            DryRun::None => "the old set is kept",
            DryRun::Client | DryRun::Server => "the old set would be kept",
        };
        report_unlisted(parent, &obstacles.unlisted, consequence, sink)
    }

    /// Reports the disposition of the old parent, and writes nothing.
    async fn predict_release(&self, sink: &mut Sink<'_>) -> Result<Ending, ReleaseError> {
        let ParentWriting {
            server,
            set,
            resource,
            ..
        } = self.parent;
        if let Some(parent) = read::whole_parent(server, resource, &set.parent).await? {
            let (_, event) = predicted_disposition(set, &parent, &record_managers());
            sink(event);
        }
        Ok(Ending::Done)
    }

    /// Determines the record of what is left in the old set, and puts it into `exact`.
    async fn narrow(
        &self,
        known: &mut Known,
        exact: &mut Option<Record>,
        sink: &mut Sink<'_>,
    ) -> Result<Ending, ReleaseError> {
        let current = self.parent.read().await.map_err(ParentWriteError::from)?;
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
        known.replace(current);
        if self.parent.interrupt.is_requested() {
            return Ok(Ending::Interrupted);
        }
        let mut record = self.record(&left);
        if !known.is_shared && !known.parent.has_record(&self.parent.set.tooling, &record) {
            let unlabeled = self
                .parent
                .record_of_unlabeled(&self.state.places, &record, sink)
                .await?;
            record = record.union(&unlabeled);
        }
        *exact = Some(record);
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
        if left.is_empty() && self.state.observed.unlisted.is_empty() {
            return Ok(Ending::Done);
        }
        let is_created = other.is_none();
        let covered = self.parent.widen(other, &self.record(left), sink).await;
        covered.map_err(|error| ReleaseError::Unrecorded {
            left: left_behind(left.iter(), &self.state.observed.unlisted),
            error,
        })?;
        let parent = &self.parent.set.parent;
        if is_created {
            sink(Event::Warning(format!("{parent}: {CREATED_AGAIN}")));
        }
        Ok(Ending::Done)
    }

    /// The members that the old set still has.
    async fn left(&self) -> Result<Vec<Live>, ParentWriteError> {
        let left = members(&self.parent, &self.state.places).await;
        left.map_err(ParentWriteError::Unwatched)
    }

    /// Returns the record of these members and of the kinds that cannot be listed.
    fn record(&self, left: &[Live]) -> Record {
        let keys = left.iter().map(|live| &live.key);
        Record::from_members(keys, &self.parent.set.parent).union(&self.state.observed.unlisted)
    }
}
