//! Takes live objects into a set, moves them to another, or lets them go, in the order in
//! which an interruption anywhere leaves no member outside of a record: the record that has
//! to grow is written first, labels next, and the record that may shrink last.
//!
//! Who is taken was decided in `plan`; single labels are written by `relabel`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::parent::{Forgotten, Known, ParentWriteError, ParentWriting, Written};
use super::prune::{LeftInPlace, untouched};
use super::record::{OVERTAKEN, is_up_to_date};
use super::relabel::{Relabelled, Relabelling};
use super::release::{
    CREATED_AGAIN, Parent, ReleaseError, Releasing, foreseen, left_behind, names, unlistable,
};
use super::remaining::{Lingering, Remaining, waiting};
use super::{Sink, interrupt};
use crate::cluster::apiserver::ApiError;
use crate::event::{Action, Ending, Event, ObjectOutcome, Phase, Resume, Subject};
use crate::model::applyset::parent::{Reading, annotations};
use crate::model::applyset::{PART_OF_LABEL, Record};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::parent_object::ParentObject;
use crate::model::settings::DryRun;
use crate::model::text::counted;
use crate::plan::{
    Candidate, Left, MembershipChange, MembershipPlan, Stealing, Way, judge_adoption, judge_move,
    judge_release,
};
use crate::read::{self, ListError, Places, Selector};

/// Taking objects into a set.
pub struct Adopting<'a> {
    /// The set, and how its parent is written.
    pub parent: ParentWriting<'a>,
    /// The parent as it was read.
    pub current: Option<&'a ParentObject>,
    /// Who is taken.
    pub plan: &'a MembershipPlan,
    /// What the parent records from the first label on: old and new places.
    pub record: &'a Record,
    /// Whether members of other sets are taken.
    pub stealing: Stealing,
    /// The labels by which the objects were found, if they were.
    pub selector: Option<&'a str>,
    /// How an object of this key and these metadata came to be among them.
    pub way: &'a dyn Fn(&ObjectKey, &Value) -> Way,
}

/// Taking members from one set into another.
pub struct Moving<'a> {
    /// The set that they leave, and how its parent is written.
    pub from: ParentWriting<'a>,
    /// The parent that they leave, as it was read.
    pub former: &'a ParentObject,
    /// Where its members are.
    pub places: &'a Places,
    /// What it records, without the kinds that vanished.
    pub recorded: &'a Record,
    /// What stays recorded because its objects cannot be listed.
    pub unlisted: &'a Record,
    /// The set that they come into.
    pub into: Adopting<'a>,
    /// Managers whose part-of labels make members.
    pub appliers: &'a BTreeSet<String>,
    /// What becomes of the parent that they leave.
    pub farewell: Farewell,
}

/// What becomes of the old parent when members have moved to another set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Farewell {
    /// It records what is left in its set.
    Narrow,
    /// It does so, too, although its whole set was to move.
    Keep(Obstacles),
    /// Nothing is left in its set, and it gets the treatment that deleting a set gives it.
    Release,
}

/// What keeps a set whose members were all to move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacles {
    /// Members that cannot move.
    pub members: Vec<Live>,
    /// A member of the new set that names the old parent as its owner.
    pub owned: Option<ObjectKey>,
    /// Where there may be members that cannot be listed.
    pub unlisted: Record,
}

/// Forgetting a set.
pub struct Disbanding<'a> {
    /// The set, and how its parent is written.
    pub parent: ParentWriting<'a>,
    /// The parent as it was read.
    pub current: &'a ParentObject,
    /// Where its members are.
    pub places: &'a Places,
    /// What stays recorded because its objects cannot be listed.
    pub unlisted: &'a Record,
    /// Who is released.
    pub plan: &'a MembershipPlan,
}

impl Adopting<'_> {
    /// Adopts.
    ///
    /// # Errors
    ///
    /// A parent that cannot be written; no label was written then.
    pub async fn run(&self, sink: &mut Sink<'_>) -> Result<Ending, ParentWriteError> {
        let judge = |object: &Value, live: &Live| {
            let candidate = Candidate {
                live: live.clone(),
                way: (self.way)(&live.key, &object["metadata"]),
            };
            judge_adoption(&candidate, self.parent.set, self.stealing)
        };
        counting(self.plan, sink, async |sink| self.write(&judge, sink).await).await
    }

    async fn write(
        &self,
        judge: &dyn Fn(&Value, &Live) -> MembershipChange,
        sink: &mut Sink<'_>,
    ) -> Result<Ending, ParentWriteError> {
        let is_dry = self.parent.writing.dry_run != DryRun::None;
        if self.parent.interrupt.is_requested() {
            return Ok(Ending::Interrupted);
        }
        let known = if is_dry || !self.plan.takes_any() {
            None
        } else {
            let current = self.current.cloned();
            Some(self.parent.cover(current, self.record, sink).await?)
        };
        tell_others(self.plan, sink);
        sink(Event::Phase {
            phase: Phase::Adopting,
            total: self.plan.changes.len(),
        });
        let relabelling = Relabelling {
            server: self.parent.server,
            interrupt: self.parent.interrupt,
            writing: self.parent.writing,
            part_of: Some(&self.parent.set.id),
            done: Action::Adopted,
            selector: self.selector,
            judge,
        };
        let relabelled = relabelling.write_all(&self.plan.changes, sink).await;
        let ending = ending(relabelled, &self.parent);
        match known {
            Some(known) => Ok(self.stay_wide(known, ending, sink).await),
            None => Ok(ending),
        }
    }

    /// However a run ends, its members must be recorded.
    async fn stay_wide(&self, mut known: Known, ending: Ending, sink: &mut Sink<'_>) -> Ending {
        if self.plan.changes.is_empty() {
            return ending;
        }
        match self.parent.stay_wide(&mut known, self.record, sink).await {
            Ok(()) => ending,
            Err(error) => {
                sink(Event::failure(error.to_string()));
                Ending::Incomplete
            }
        }
    }
}

impl Moving<'_> {
    /// Moves.
    ///
    /// # Errors
    ///
    /// The new parent cannot be written; no label was written then.
    pub async fn run(&self, sink: &mut Sink<'_>) -> Result<Ending, ParentWriteError> {
        let judge =
            |_: &Value, live: &Live| judge_move(live, self.from.set, self.into.parent.set, self.appliers);
        counting(self.into.plan, sink, async |sink| {
            let ending = self.into.write(&judge, sink).await?;
            // Where nothing moves, the right to write the old parent was not looked at either.
            if ending != Ending::Done {
                return Ok(ending);
            }
            let is_dry = self.from.writing.dry_run != DryRun::None;
            let seen_to = match &self.farewell {
                _ if !self.into.plan.takes_any() => Ok(ending),
                Farewell::Narrow | Farewell::Keep(_) if is_dry => Ok(ending),
                Farewell::Narrow | Farewell::Keep(_) => self.narrow(sink).await,
                Farewell::Release if is_dry => self.foresee_release(sink).await,
                Farewell::Release => self.release(sink).await,
            };
            let ending = seen_to.unwrap_or_else(|error| {
                sink(Event::failure(error.to_string()));
                Ending::Incomplete
            });
            Ok(match &self.farewell {
                Farewell::Keep(obstacles) if ending == Ending::Done => self.report(obstacles, sink),
                Farewell::Keep(_) | Farewell::Narrow | Farewell::Release => ending,
            })
        })
        .await
    }

    /// Reports why the old set is kept. It fails if members may have been left that the user
    /// does not see.
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

    /// Deletes the old parent, whose members have all moved, or takes the record off it: an
    /// empty set would be of no use. What another run has put into the old set keeps it, and
    /// is that run's business.
    async fn release(&self, sink: &mut Sink<'_>) -> Result<Ending, ReleaseError> {
        let nothing_left = LeftInPlace::default();
        let releasing = Releasing {
            writing: self.from,
            known: self.former,
            recorded: self.recorded,
            left: &nothing_left,
            remaining: Remaining {
                server: self.from.server,
                set: self.from.set,
                interrupt: self.from.interrupt,
                concurrency: self.from.writing.concurrency,
                appliers: self.appliers,
                places: self.places.clone(),
                // What it lives in has moved like any other member.
                homes: Vec::new(),
                deleted: BTreeSet::new(),
                holders: BTreeSet::new(),
                lingering: Lingering::Awaited,
            },
            unlisted: self.unlisted.clone(),
            surveyed: self.former.reading.clone(),
        };
        Ok(match Box::pin(releasing.release(sink)).await? {
            Parent::Gone | Parent::Ordinary | Parent::Replaced => Ending::Done,
            Parent::Going(live) => {
                let parent = &self.from.set.parent;
                let text = format!(
                    "{parent}: the old parent is still being deleted: {}",
                    waiting(&live)
                );
                sink(Event::failure(text));
                Ending::Incomplete
            }
            Parent::Stays(remains, unlisted) => {
                let obstacles = Obstacles {
                    members: remains.all().cloned().collect(),
                    owned: None,
                    unlisted,
                };
                self.report(&obstacles, sink)
            }
            Parent::Untouched => Ending::Interrupted,
        })
    }

    /// Reports what becomes of the old parent, and writes nothing.
    async fn foresee_release(&self, sink: &mut Sink<'_>) -> Result<Ending, ReleaseError> {
        let ParentWriting {
            server,
            set,
            resource,
            writing,
            ..
        } = self.from;
        if let Some(parent) = read::whole_parent(server, resource, &set.parent).await? {
            let (_, event) = foreseen(set, &parent, &writing.field_manager);
            sink(event);
        }
        Ok(Ending::Done)
    }

    /// Makes the old parent record what is left in its set, unless somebody else has
    /// written its record since it was read.
    async fn narrow(&self, sink: &mut Sink<'_>) -> Result<Ending, ReleaseError> {
        for _ in 0..ATTEMPTS {
            let current = self.from.read().await.map_err(ParentWriteError::from)?;
            let left = self.left().await?;
            let record = self.record(&left);
            let Some(current) = current else {
                return self.without_parent(&left, sink).await;
            };
            let target = annotations(&self.from.set.tooling, &record);
            // Also where the write before got through, and its answer was lost.
            if is_up_to_date(&current, &target) {
                return Ok(Ending::Done);
            }
            if current.reading != self.former.reading {
                return self.with_another_record(current, &left, sink).await;
            }
            if self.from.interrupt.is_requested() {
                return Ok(Ending::Interrupted);
            }
            match self.from.write_record(&current.resource_version, &target).await? {
                Written::Done(known) => {
                    self.watch(known, &record, sink).await?;
                    return Ok(Ending::Done);
                }
                // Something about the parent has changed that need not be its record.
                Written::Overtaken => {}
            }
        }
        sink(Event::Warning(OVERTAKEN.to_owned()));
        Ok(Ending::Done)
    }

    /// Creates the old parent again if anything is left of its set: without a record, no later
    /// run finds it.
    async fn without_parent(&self, left: &[Live], sink: &mut Sink<'_>) -> Result<Ending, ReleaseError> {
        if left.is_empty() && self.unlisted.is_empty() {
            return Ok(Ending::Done);
        }
        self.cover(None, left, sink).await?;
        let parent = &self.from.set.parent;
        sink(Event::Warning(format!("{parent}: {CREATED_AGAIN}")));
        Ok(Ending::Done)
    }

    /// Leaves the record that another run has written, as far as it holds what is left.
    async fn with_another_record(
        &self,
        current: ParentObject,
        left: &[Live],
        sink: &mut Sink<'_>,
    ) -> Result<Ending, ReleaseError> {
        let is_ordinary = current.reading == Reading::NoBookkeeping;
        if !left.is_empty() || !self.unlisted.is_empty() {
            self.cover(Some(current), left, sink).await?;
        }
        if !is_ordinary {
            sink(Event::Warning(OVERTAKEN.to_owned()));
        }
        Ok(Ending::Done)
    }

    /// Makes the old parent, which was `current` when it was last read, record what is left.
    async fn cover(
        &self,
        current: Option<ParentObject>,
        left: &[Live],
        sink: &mut Sink<'_>,
    ) -> Result<(), ReleaseError> {
        match self.from.cover(current, &self.record(left), sink).await {
            Ok(_) => Ok(()),
            Err(error) => Err(ReleaseError::Unrecorded {
                left: left_behind(left.iter(), self.unlisted),
                error,
            }),
        }
    }

    /// A member that another run has put there between the look that found only what is
    /// `recorded` and the write of that would be lost without a second look.
    async fn watch(
        &self,
        mut known: Known,
        recorded: &Record,
        sink: &mut Sink<'_>,
    ) -> Result<(), ParentWriteError> {
        match self.left().await {
            Ok(now) if recorded.covers(&self.record(&now)) => Ok(()),
            Ok(_) => {
                sink(Event::Warning(OVERTAKEN.to_owned()));
                self.from.stay_wide(&mut known, self.recorded, sink).await
            }
            // Whoever does not know whether there are any must not forget them.
            Err(error) => {
                self.from.stay_wide(&mut known, self.recorded, sink).await?;
                Err(error)
            }
        }
    }

    /// What the old set still holds.
    async fn left(&self) -> Result<Vec<Live>, ParentWriteError> {
        let left = members(&self.from, self.places).await;
        left.map_err(ParentWriteError::Unwatched)
    }

    /// The places of these members, and the kinds that cannot be listed.
    fn record(&self, left: &[Live]) -> Record {
        let keys = left.iter().map(|live| &live.key);
        Record::of(keys, &self.from.set.parent).union(self.unlisted)
    }
}

impl Disbanding<'_> {
    /// Disbands.
    ///
    /// # Errors
    ///
    /// None before the first write; what fails later is told as an event.
    pub async fn run(&self, sink: &mut Sink<'_>) -> Result<Ending, ParentWriteError> {
        counting(self.plan, sink, async |sink| Ok(self.write(sink).await)).await
    }

    async fn write(&self, sink: &mut Sink<'_>) -> Ending {
        sink(Event::Phase {
            phase: Phase::Releasing,
            total: self.plan.changes.len(),
        });
        let ending = self.release(&self.plan.changes, sink).await;
        if ending == Ending::Done && !self.unlisted.is_empty() {
            let reason = unlistable(self.unlisted);
            let is_not_removed = match self.parent.writing.dry_run {
                DryRun::None => "was not removed",
                DryRun::Client | DryRun::Server => "would not be removed",
            };
            let parent = &self.parent.set.parent;
            let failure = format!("{parent}: the record {is_not_removed}: {reason}");
            sink(Event::failure(failure));
            return Ending::Incomplete;
        }
        if ending != Ending::Done || self.parent.writing.dry_run != DryRun::None {
            return ending;
        }
        match self.forget().await {
            Ok(Forgotten::NotBegun) => Ending::Interrupted,
            Ok(Forgotten::Done) => self.release_latecomers(sink).await,
            Ok(Forgotten::ParentGone) => {
                self.release_latecomers(sink).await;
                let parent = &self.parent.set.parent;
                sink(Event::failure(format!(
                    "{parent}: the record could not be removed: the parent was deleted during the run"
                )));
                Ending::Incomplete
            }
            Ok(Forgotten::Overtaken) => {
                sink(Event::failure(
                    "another run works on this set, so its record stays; run the same command again"
                        .to_owned(),
                ));
                Ending::Incomplete
            }
            Err(error) => {
                sink(Event::failure(format!(
                    "the set's parent could not be written: {}",
                    error.kind
                )));
                Ending::Incomplete
            }
        }
    }

    async fn release(&self, objects: &[Live], sink: &mut Sink<'_>) -> Ending {
        let judge = |_: &Value, live: &Live| judge_release(live, self.parent.set);
        let relabelling = Relabelling {
            server: self.parent.server,
            interrupt: self.parent.interrupt,
            writing: self.parent.writing,
            part_of: None,
            done: Action::Released,
            selector: None,
            judge: &judge,
        };
        let relabelled = relabelling.write_all(objects, sink).await;
        ending(relabelled, &self.parent)
    }

    /// What another run has labelled between the last look and the end of the record is in
    /// no set any more that anybody could find.
    async fn release_latecomers(&self, sink: &mut Sink<'_>) -> Ending {
        match members(&self.parent, self.places).await {
            Ok(latecomers) if latecomers.is_empty() => Ending::Done,
            Ok(latecomers) => self.release(&latecomers, sink).await,
            Err(error) => {
                sink(Event::failure(format!(
                    "the set is forgotten, and whether another run has added to it meanwhile is not known: {error}"
                )));
                Ending::Incomplete
            }
        }
    }

    /// Takes the record off the parent, if nobody has written it and no other run has put a
    /// member there since. What somebody else changed about the parent besides does not matter.
    async fn forget(&self) -> Result<Forgotten, ApiError> {
        for _ in 0..ATTEMPTS {
            let Some(current) = self.parent.read().await? else {
                return Ok(Forgotten::ParentGone);
            };
            if current.reading == Reading::NoBookkeeping {
                // The write got through, and its answer was lost.
                return Ok(Forgotten::Done);
            }
            let has_newcomers = match members(&self.parent, self.places).await {
                Ok(members) => !members.is_empty(),
                Err(ListError::Request(error)) => return Err(error),
                Err(_) => true,
            };
            if current.reading != self.current.reading || has_newcomers {
                return Ok(Forgotten::Overtaken);
            }
            if self.parent.interrupt.is_requested() {
                return Ok(Forgotten::NotBegun);
            }
            if self.parent.forget(&current).await? == Forgotten::Done {
                return Ok(Forgotten::Done);
            }
        }
        Ok(Forgotten::Overtaken)
    }
}

/// How often a parent that others write at the same time is read and tried again.
const ATTEMPTS: usize = 20;

/// What carries the label of the set, in these places.
async fn members(parent: &ParentWriting<'_>, places: &Places) -> Result<Vec<Live>, ListError> {
    let selector = Selector {
        labels: format!("{PART_OF_LABEL}={}", parent.set.id),
        accept: read::METADATA_LIST,
    };
    let concurrency = parent.writing.concurrency;
    let found = read::members(parent.server, places, &selector, concurrency, Live::of).await;
    let mut found = found.map_err(|(_, error)| error)?;
    found.retain(|live| !parent.set.is_parent(live));
    Ok(found)
}

fn ending(relabelled: Relabelled, parent: &ParentWriting<'_>) -> Ending {
    match relabelled.failed {
        _ if parent.interrupt.is_requested() => Ending::Interrupted,
        0 => Ending::Done,
        _ => Ending::Incomplete,
    }
}

/// Runs `write`, and tells how much of the plan an interrupted run has left undone.
async fn counting(
    plan: &MembershipPlan,
    sink: &mut Sink<'_>,
    write: impl AsyncFnOnce(&mut Sink<'_>) -> Result<Ending, ParentWriteError>,
) -> Result<Ending, ParentWriteError> {
    let left = plan.left.iter().map(left_alone);
    let changes = plan.changes.iter().map(untouched);
    let planned = plan.settled.iter().map(settled).chain(left).chain(changes);
    sink(Event::Planned(planned.collect()));
    let mut done = 0;
    let mut counting = |event: Event| {
        done += usize::from(matches!(event, Event::Object(_)));
        sink(event);
    };
    let ending = write(&mut counting).await?;
    if ending == Ending::Interrupted {
        let left = plan.objects().saturating_sub(done);
        sink(interrupt::left(left, Resume::SameCommand));
    }
    Ok(ending)
}

/// Tells of the objects that stay as they are.
pub fn tell_others(plan: &MembershipPlan, sink: &mut Sink<'_>) {
    let outcomes = plan.settled.iter().map(settled);
    for outcome in outcomes.chain(plan.left.iter().map(left_alone)) {
        sink(Event::Object(outcome));
    }
}

fn settled(live: &Live) -> ObjectOutcome {
    ObjectOutcome {
        action: Action::Unchanged,
        ..untouched(live)
    }
}

fn left_alone(left: &Left) -> ObjectOutcome {
    let subject = Subject::new(&left.key, &left.resource, left.uid.as_deref());
    ObjectOutcome::because(subject, Action::Skipped, left.reason.to_string())
}
