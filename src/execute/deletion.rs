//! Deletes a whole set: its members in reverse order, then the parent, and last what the
//! parent lives in.
//!
//! The parent goes only when a fresh look finds no member any more, those included that
//! are on their way out. Until then it records exactly what is left, so that the same
//! command goes on from wherever a run ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::StatusCode;

use super::again::{is_gone, is_of};
use super::pace::Pace;
use super::parent::{Forgotten, Written};
use super::prune::{Deleting, LeftInPlace, deletion};
use super::record::{OVERTAKEN, is_up_to_date};
use super::wave::News;
use super::{DryRun, Interrupt, ParentWriteError, ParentWriting, Sink, Writing};
use crate::apiserver::{ApiError, ApiServer};
use crate::applyset::parent::{Reading, annotations};
use crate::applyset::{PART_OF_LABEL, Record};
use crate::discovery::Resource;
use crate::event::{Action, Ending, Event, ObjectOutcome, Phase, Subject};
use crate::observe::{self, ListError, Live, Place, Places, Presence, Selector, WholeParent};
use crate::ownership::{FOREIGN_PARENT_FIELD_MANAGER, PARENT_FIELD_MANAGER};
use crate::plan::{
    Confirmation, ParentFate, ParentPolicy, Plan, Policy, Set, SkipReason, is_home_of, parent_fate,
};
use crate::wording::counted;

/// How often a parent that others write at the same time is read and judged again.
const ATTEMPTS: usize = 20;

/// Everything that deleting a set needs.
pub struct SetDeletion<'a> {
    /// Where to write.
    pub server: &'a ApiServer,
    /// The set; its tooling is that of the parent.
    pub set: &'a Set,
    /// The resource of the parent.
    pub parent_resource: &'a Arc<Resource>,
    /// The parent as the plan knows it; `None` where there is none with bookkeeping.
    pub parent: Option<&'a WholeParent>,
    /// Where members were looked for.
    pub places: &'a Places,
    /// What to delete, and what stays.
    pub plan: &'a Plan,
    /// What the plan was made under; objects that changed meanwhile are judged again.
    pub policy: &'a Policy,
    /// How.
    pub writing: &'a Writing,
    /// The user's wish to stop.
    pub interrupt: &'a Interrupt,
}

/// What came of deleting the members.
#[derive(Debug)]
pub struct MembersDeleted {
    /// Whether the run may go on with the parent.
    pub ending: Ending,
    /// Members that are there to stay.
    pub left: LeftInPlace,
}

/// The field managers whose contents of a parent are the set's own: that of the record,
/// kubectl's for the same, and that of members, for a parent that came with them.
pub fn parent_managers(field_manager: &str) -> BTreeSet<String> {
    let managers = [
        PARENT_FIELD_MANAGER,
        FOREIGN_PARENT_FIELD_MANAGER,
        env!("CARGO_PKG_NAME"),
        field_manager,
    ];
    managers.map(str::to_owned).into()
}

/// What became of the parent.
enum Parent {
    Gone,
    Stays,
}

impl SetDeletion<'_> {
    /// Deletes the members, one wave after the other, but for what the parent lives in.
    ///
    /// # Panics
    ///
    /// Where the plan has refusals: carrying it out would be worse.
    pub async fn delete_members(&self, sink: &mut Sink<'_>) -> MembersDeleted {
        assert!(
            self.plan.refusals.is_empty(),
            "a plan with refusals must not be carried out"
        );
        sink(Event::Phase {
            phase: Phase::Deleting,
            total: self.plan.deletions(),
        });
        for skip in &self.plan.skips {
            sink(told(&skip.live, Action::Skipped, skip.reason.to_string()));
        }
        let mut done = 0;
        let mut failed = 0;
        let mut left = LeftInPlace::default();
        let mut pace = Pace::new(self.writing.concurrency);
        for wave in &self.plan.prunes {
            let members = wave.iter().filter(|live| !is_home_of(self.set, live));
            let mut told = |news: News<ObjectOutcome>| {
                sink(match news {
                    News::Slowest(slowest) => Event::Slowest(slowest),
                    News::Answer(outcome) => {
                        done += 1;
                        failed += usize::from(outcome.action == Action::Failed);
                        Event::Object(outcome)
                    }
                });
            };
            self.deleting()
                .delete_wave(members, &mut left, self.interrupt, &mut pace, &mut told)
                .await;
        }
        let ending = if self.interrupt.is_requested() {
            self.tell_left(self.plan.deletions() - done, sink);
            Ending::Interrupted
        } else if failed > 0 {
            let failures = counted(failed, "object");
            sink(Event::Warning(format!(
                "the set's parent stays, because {failures} could not be deleted; the same command goes on from here"
            )));
            Ending::Incomplete
        } else {
            Ending::Done
        };
        MembersDeleted { ending, left }
    }

    /// Deletes the parent, and then what it lives in, where no member is left; else makes
    /// it record what is. `left` are the members that were not deleted.
    pub async fn finish(&self, left: &LeftInPlace, sink: &mut Sink<'_>) -> Ending {
        if self.writing.dry_run != DryRun::None {
            return self.rehearse_parent(left, sink).await;
        }
        if self.interrupt.is_requested() {
            self.tell_left(self.homes().count(), sink);
            return Ending::Interrupted;
        }
        let parent = match self.parent {
            None => self.tell_unrecorded(sink),
            Some(known) => match self.release_parent(known, left, sink).await {
                Ok(parent) => parent,
                Err(error) => {
                    sink(Event::Failure(error.to_string()));
                    return Ending::Incomplete;
                }
            },
        };
        match parent {
            Parent::Gone => self.delete_homes(left, sink).await,
            Parent::Stays => {
                for live in self.homes() {
                    sink(told(live, Action::Skipped, SkipReason::HoldsParent.to_string()));
                }
                Ending::Done
            }
        }
    }

    /// Members that are deleted or on their way out, as far as they come before the parent.
    pub fn going(&self) -> impl Iterator<Item = &Live> {
        let terminating = self.plan.skips.iter().filter(|skip| !skip.is_kept());
        let deleted = self.plan.prunes.iter().flatten();
        deleted
            .filter(|live| !is_home_of(self.set, live))
            .chain(terminating.map(|skip| &skip.live))
    }

    /// What the parent lives in, as far as that is deleted.
    pub fn homes(&self) -> impl Iterator<Item = &Live> {
        let prunes = self.plan.prunes.iter().flatten();
        prunes.filter(|live| is_home_of(self.set, live))
    }

    fn deleting(&self) -> Deleting<'_> {
        Deleting {
            server: self.server,
            set: self.set,
            policy: self.policy,
            dry_run: self.writing.dry_run,
            done: Action::Deleted,
            approval: None,
        }
    }

    fn parent_writing(&self) -> ParentWriting<'_> {
        ParentWriting {
            server: self.server,
            set: self.set,
            resource: self.parent_resource,
            policy: ParentPolicy {
                take_over: Confirmation::Missing,
            },
            manifest: None,
            writing: self.writing,
            interrupt: self.interrupt,
        }
    }

    /// Sees to the parent, reading and judging it again as long as others write it.
    async fn release_parent(
        &self,
        known: &WholeParent,
        not_deleted: &LeftInPlace,
        sink: &mut Sink<'_>,
    ) -> Result<Parent, ReleaseError> {
        for _ in 0..ATTEMPTS {
            let read = observe::whole_parent(self.server, self.parent_resource, &self.set.parent).await?;
            let Some(parent) = read else {
                sink(told(&known.live, Action::Deleted, GONE_ALREADY.to_owned()));
                return Ok(Parent::Gone);
            };
            if parent.live.uid != known.live.uid
                || !matches!(parent.object.reading, Reading::Parent(_) | Reading::Unfinished(_))
            {
                let reason = "it was changed by somebody else meanwhile, and is no longer this set's parent";
                sink(told(&parent.live, Action::Skipped, reason.to_owned()));
                return Ok(Parent::Stays);
            }
            let left = self.left().await?;
            if !left.is_empty() {
                return self.keep(&parent, &left, sink).await;
            }
            let managers = parent_managers(&self.writing.field_manager);
            let released = match parent_fate(self.set, &parent.live, &parent.content_writers, &managers) {
                // What it lives in is a member, and stays with it.
                ParentFate::Stays(_) if self.homes().next().is_some() => {
                    let homes: Vec<Live> = self.homes().cloned().collect();
                    return self.keep(&parent, &homes, sink).await;
                }
                ParentFate::Goes if self.homes().any(|home| not_deleted.held_by(home).is_some()) => {
                    let homes: Vec<Live> = self.homes().cloned().collect();
                    return self.keep(&parent, &homes, sink).await;
                }
                ParentFate::Goes => self.delete_parent(&parent, sink).await?,
                ParentFate::Stays(why) => self.forget(&parent, &why.to_string(), sink).await?,
            };
            if let Some(released) = released {
                return Ok(released);
            }
        }
        Err(ReleaseError::Parent(ParentWriteError::Contended))
    }

    /// Deletes the parent as it was read; `None` where somebody else has changed it since.
    async fn delete_parent(
        &self,
        parent: &WholeParent,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Parent>, ReleaseError> {
        let reason = if parent.live.presence == Presence::Terminating {
            SkipReason::Terminating {
                waits_for: parent.live.waits_for.clone(),
            }
            .to_string()
        } else {
            match self.server.send(deletion(&parent.live, DryRun::None)).await {
                Ok(reply) if is_of(&reply, &parent.live) => String::new(),
                Ok(_) => return Ok(None),
                Err(error) if is_gone(&error) => GONE_ALREADY.to_owned(),
                Err(error) if error.is(StatusCode::CONFLICT) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        };
        sink(told(&parent.live, Action::Deleted, reason));
        // What another run has put into the set between the last look and this delete
        // would be lost without a second look.
        let newcomers = self.left().await?;
        if newcomers.is_empty() {
            return Ok(Some(Parent::Gone));
        }
        sink(Event::Warning(OVERTAKEN.to_owned()));
        let needed = Record::of(newcomers.iter().map(|live| &live.key), &self.set.parent);
        self.parent_writing().cover(None, &needed, sink).await?;
        Ok(Some(Parent::Stays))
    }

    /// Takes the record off a parent that is of use besides.
    async fn forget(
        &self,
        parent: &WholeParent,
        why: &str,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Parent>, ReleaseError> {
        if self.parent_writing().forget(&parent.object).await? == Forgotten::Overtaken {
            return Ok(None);
        }
        let reason = format!("{why}; only the record of the set was taken off it");
        sink(told(&parent.live, Action::Skipped, reason));
        Ok(Some(Parent::Stays))
    }

    /// Makes the parent record exactly what is left, and says what that is.
    async fn keep(
        &self,
        parent: &WholeParent,
        left: &[Live],
        sink: &mut Sink<'_>,
    ) -> Result<Parent, ReleaseError> {
        let (going, staying): (Vec<&Live>, Vec<&Live>) = left
            .iter()
            .partition(|live| live.presence == Presence::Terminating);
        let reason = match (staying.len(), going.len()) {
            (0, going) => format!("{} of its set still being deleted", counted(going, "object")),
            (staying, 0) => format!("{} of its set left", counted(staying, "object")),
            (staying, going) => format!(
                "{} of its set left, and {going} still being deleted",
                counted(staying, "object")
            ),
        };
        self.narrow(parent, left, sink).await?;
        sink(told(&parent.live, Action::Skipped, reason));
        if !staying.is_empty() {
            sink(Event::Warning(format!(
                "the set goes on with what stays: {}; `kubectl applyset disband` forgets a set and keeps its objects",
                names(&staying)
            )));
        }
        if !going.is_empty() {
            sink(Event::Warning(format!(
                "still being deleted: {}; when they are gone, the same command deletes the rest, and --wait waits for that",
                going
                    .iter()
                    .map(|live| waiting(live))
                    .collect::<Vec<_>>()
                    .join(", ")
            )));
        }
        Ok(Parent::Stays)
    }

    async fn narrow(
        &self,
        parent: &WholeParent,
        left: &[Live],
        sink: &mut Sink<'_>,
    ) -> Result<(), ReleaseError> {
        let keys = left.iter().chain(self.homes()).map(|live| &live.key);
        let record = Record::of(keys, &self.set.parent);
        let target = annotations(&self.set.tooling, &record);
        if is_up_to_date(&parent.object, &target) {
            return Ok(());
        }
        let writing = self.parent_writing();
        let written = writing
            .write_record(&parent.object.resource_version, &target)
            .await?;
        let now = match written {
            Written::Done(_) => self.left().await?,
            Written::Overtaken => Vec::new(),
        };
        let needed = Record::of(now.iter().map(|live| &live.key), &self.set.parent);
        if matches!(written, Written::Overtaken) || !record.covers(&needed) {
            sink(Event::Warning(OVERTAKEN.to_owned()));
            let wide = self.plan.record_during.union(&needed);
            writing.cover(writing.read().await?, &wide, sink).await?;
        }
        Ok(())
    }

    /// The members that a fresh look finds, but for what the parent lives in.
    async fn left(&self) -> Result<Vec<Live>, ReleaseError> {
        let selector = Selector {
            labels: format!("{PART_OF_LABEL}={}", self.set.id),
            accept: observe::WHOLE_OBJECTS,
        };
        let found = observe::remaining(self.server, self.places, &selector, self.writing.concurrency).await;
        let mut found = found.map_err(|(place, error)| ReleaseError::List { place, error })?;
        found.retain(|live| live.key != self.set.parent && !self.homes().any(|home| home.uid == live.uid));
        Ok(found)
    }

    async fn delete_homes(&self, left: &LeftInPlace, sink: &mut Sink<'_>) -> Ending {
        let mut ending = Ending::Done;
        for live in self.homes() {
            if self.interrupt.is_requested() {
                self.tell_left(1, sink);
                return Ending::Interrupted;
            }
            let outcome = match left.outcome(live) {
                Some(held) => held,
                None => self.deleting().delete(live).await,
            };
            if outcome.action == Action::Failed {
                ending = Ending::Incomplete;
            }
            sink(Event::Object(outcome));
        }
        ending
    }

    /// Without a parent nothing is recorded, and there is nothing to delete in its place.
    fn tell_unrecorded(&self, sink: &mut Sink<'_>) -> Parent {
        let kept: Vec<&Live> = self.plan.skips.iter().map(|skip| &skip.live).collect();
        if !kept.is_empty() {
            sink(Event::Warning(format!(
                "{} stay, and no parent records them: {}",
                counted(kept.len(), "object"),
                names(&kept)
            )));
        }
        Parent::Gone
    }

    async fn rehearse_parent(&self, left: &LeftInPlace, sink: &mut Sink<'_>) -> Ending {
        let Some(parent) = self.parent else {
            return self.delete_homes(left, sink).await;
        };
        if !self.plan.skips.is_empty() {
            let count = counted(self.plan.skips.len(), "object");
            sink(told(
                &parent.live,
                Action::Skipped,
                format!("{count} of its set left"),
            ));
            return Ending::Done;
        }
        let managers = parent_managers(&self.writing.field_manager);
        match parent_fate(self.set, &parent.live, &parent.content_writers, &managers) {
            ParentFate::Goes => {
                sink(told(&parent.live, Action::Deleted, String::new()));
                self.delete_homes(left, sink).await
            }
            ParentFate::Stays(why) => {
                sink(told(&parent.live, Action::Skipped, why.to_string()));
                Ending::Done
            }
        }
    }

    fn tell_left(&self, left: usize, sink: &mut Sink<'_>) {
        let parent = if self.parent.is_some() {
            " and the set's parent"
        } else {
            ""
        };
        sink(Event::Warning(format!(
            "interrupted; {}{parent} left as they are, and the same command goes on from here",
            counted(left, "object")
        )));
    }
}

const GONE_ALREADY: &str = "it was gone already";

/// Why it is not known what became of the parent.
#[derive(Debug, thiserror::Error)]
enum ReleaseError {
    #[error(transparent)]
    Parent(#[from] ParentWriteError),
    #[error("the set's parent could not be deleted: {}", .0.kind)]
    Request(#[from] ApiError),
    #[error("the set's parent stays, because whether members are left could not be seen: {}: {error}", .place.resource.plural)]
    List { place: Place, error: ListError },
}

fn told(live: &Live, action: Action, reason: String) -> Event {
    let subject = Subject::new(&live.key, &live.resource, Some(&live.uid));
    Event::Object(ObjectOutcome::because(subject, action, reason))
}

fn names(objects: &[&Live]) -> String {
    let names: Vec<String> = objects.iter().map(|live| live.key.to_string()).collect();
    names.join(", ")
}

fn waiting(live: &Live) -> String {
    if live.waits_for.is_empty() {
        live.key.to_string()
    } else {
        format!("{} ({})", live.key, live.waits_for.join("; "))
    }
}
