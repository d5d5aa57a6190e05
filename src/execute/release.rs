//! What becomes of the parent of a set whose members were deleted.
//!
//! It goes only when a fresh look finds no member any more, those included that are on
//! their way out. Until then it records what is left, so that the same command goes on from
//! wherever a run ended. Where another run has written the record since it was planned on,
//! members may be where the plan knows nothing of: the look goes there, too, and the record
//! is not narrowed.

use std::collections::BTreeSet;

use http::StatusCode;

use super::again::{GONE_ALREADY, is_of};
use super::deletion::{Parent, SetDeletion, parent_managers};
use super::parent::{Forgotten, Written};
use super::prune::{LeftInPlace, deletion};
use super::record::{OVERTAKEN, is_up_to_date};
use super::{DryRun, ParentWriteError, ParentWriting, Sink};
use crate::apiserver::ApiError;
use crate::applyset::parent::{Reading, annotations};
use crate::applyset::{PART_OF_LABEL, Record};
use crate::desired::Desired;
use crate::discovery::{self, DiscoveryError};
use crate::event::{Action, Event, ObjectOutcome, Subject};
use crate::observe::{self, ListError, Live, ParentObject, Place, Places, Presence, Selector, WholeParent};
use crate::plan::{
    Confirmation, ParentFate, ParentPolicy, SkipReason, SurveyError, judge_for_deletion, parent_fate, survey,
};
use crate::wording::{counted, listed};

/// How often a parent that others write at the same time is read and judged again.
const ATTEMPTS: usize = 20;

/// Seeing to the parent of a set whose members were deleted.
pub(super) struct Releasing<'a> {
    deletion: &'a SetDeletion<'a>,
    /// The parent as the plan knows it.
    known: &'a WholeParent,
    /// Members that were not deleted.
    left: &'a LeftInPlace,
    /// Where members may be.
    places: Places,
    /// What the parent said when these places were found.
    surveyed: Reading,
}

/// Why it is not known what became of the parent, or of what another run does to its set.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReleaseError {
    #[error(transparent)]
    Parent(#[from] ParentWriteError),
    #[error("the set's parent could not be deleted: {}", .0.kind)]
    Request(#[from] ApiError),
    #[error("the set's parent stays, because whether members are left could not be seen: {0}")]
    Unseen(Unseen),
    #[error(
        "the set's parent is {done}, and whether another run has put members into the set meanwhile could not be seen: {unseen}; the same command looks again"
    )]
    Unwatched { done: &'static str, unseen: Unseen },
    #[error(
        "the set's parent stays, because another run has written its record, and where members may be now could not be found out: {0}"
    )]
    Undiscovered(#[from] DiscoveryError),
    #[error("the set's parent stays, because another run has written its record: {0}")]
    Survey(#[from] SurveyError),
}

/// A collection that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", .place.resource.plural)]
pub(super) struct Unseen {
    place: Place,
    error: ListError,
}

impl<'a> Releasing<'a> {
    pub(super) fn new(deletion: &'a SetDeletion<'a>, known: &'a WholeParent, left: &'a LeftInPlace) -> Self {
        Self {
            deletion,
            known,
            left,
            places: deletion.places.clone(),
            surveyed: known.object.reading.clone(),
        }
    }

    /// Sees to the parent, reading and judging it again as long as others write it.
    pub(super) async fn release(mut self, sink: &mut Sink<'_>) -> Result<Parent, ReleaseError> {
        let SetDeletion {
            server,
            set,
            parent_resource,
            writing,
            ..
        } = *self.deletion;
        for _ in 0..ATTEMPTS {
            let read = observe::whole_parent(server, parent_resource, &set.parent).await?;
            let Some(parent) = read else {
                sink(told(&self.known.live, Action::Deleted, GONE_ALREADY.to_owned()));
                return Ok(Parent::Gone);
            };
            if parent.live.uid != self.known.live.uid
                || !matches!(parent.object.reading, Reading::Parent(_) | Reading::Unfinished(_))
            {
                let reason = "it was changed by somebody else meanwhile, and is no longer this set's parent";
                sink(told(&parent.live, Action::Skipped, reason.to_owned()));
                return Ok(Parent::Stays);
            }
            self.follow(&parent.object).await?;
            let left = self.remaining().await.map_err(ReleaseError::Unseen)?;
            if !left.is_empty() {
                return self.keep(&parent, &left, sink).await;
            }
            if self.deletion.interrupt.is_requested() {
                return Ok(Parent::Untouched);
            }
            let managers = parent_managers(&writing.field_manager);
            let homes = || self.deletion.homes();
            let released = match parent_fate(set, &parent.live, &parent.content_writers, &managers) {
                // What it lives in is a member, and stays with it.
                ParentFate::Stays(_) if homes().next().is_some() => {
                    return self.keep_with_homes(&parent, sink).await;
                }
                ParentFate::Goes if homes().any(|home| self.left.keeps(home)) => {
                    return self.keep_with_homes(&parent, sink).await;
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

    /// Looks for members in the places of the record, too, as another run has written it.
    /// The kinds of that run may be newer than what is known of the server.
    async fn follow(&mut self, parent: &ParentObject) -> Result<(), ReleaseError> {
        if parent.reading == self.surveyed {
            return Ok(());
        }
        let SetDeletion { server, set, .. } = *self.deletion;
        let discovery = discovery::fetch(server).await?;
        let standing = judge_for_deletion(set, parent, OF_THIS_TOOLING).map_err(ParentWriteError::Refused)?;
        let Places {
            resources,
            namespaces,
        } = survey(set, &standing, &Desired::default(), &discovery)?.places;
        self.places.add_resources(resources);
        self.places.namespaces.extend(namespaces);
        self.surveyed = parent.reading.clone();
        Ok(())
    }

    fn parent_writing(&self, policy: ParentPolicy) -> ParentWriting<'_> {
        let SetDeletion {
            server,
            set,
            parent_resource,
            writing,
            interrupt,
            ..
        } = *self.deletion;
        ParentWriting {
            server,
            set,
            resource: parent_resource,
            policy,
            manifest: None,
            writing,
            interrupt,
        }
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
            let call = deletion(&parent.live, DryRun::None);
            match self.deletion.server.send(call).await {
                Ok(reply) if is_of(&reply, &parent.live) => String::new(),
                Ok(_) => return Ok(None),
                Err(error) if error.is_missing_object() => GONE_ALREADY.to_owned(),
                Err(error) if error.is(StatusCode::CONFLICT) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        };
        sink(told(&parent.live, Action::Deleted, reason));
        // What another run has put into the set between the last look and this delete
        // would be lost without a second look.
        let newcomers = self.newcomers("deleted").await?;
        if newcomers.is_empty() {
            return Ok(Some(Parent::Gone));
        }
        sink(Event::Warning(OVERTAKEN.to_owned()));
        let writing = self.parent_writing(OF_THIS_TOOLING);
        writing.cover(None, &self.record(&newcomers), sink).await?;
        Ok(Some(Parent::Stays))
    }

    /// Takes the record off a parent that is of use besides; `None` where somebody else has
    /// changed it since.
    async fn forget(
        &self,
        parent: &WholeParent,
        why: &str,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Parent>, ReleaseError> {
        // It was this set's a moment ago, whatever it is without a record.
        let writing = self.parent_writing(ParentPolicy {
            take_over: Confirmation::Given,
        });
        if writing.forget(&parent.object).await? == Forgotten::Overtaken {
            return Ok(None);
        }
        let reason = format!("{why}; only the record of the set was taken off it");
        sink(told(&parent.live, Action::Skipped, reason));
        // The same second look as after a delete.
        let newcomers = self.newcomers("without the record now").await?;
        if !newcomers.is_empty() {
            sink(Event::Warning(OVERTAKEN.to_owned()));
            let current = writing.read().await?;
            writing.cover(current, &self.record(&newcomers), sink).await?;
        }
        Ok(Some(Parent::Stays))
    }

    async fn keep_with_homes(
        &self,
        parent: &WholeParent,
        sink: &mut Sink<'_>,
    ) -> Result<Parent, ReleaseError> {
        let homes: Vec<Live> = self.deletion.homes().cloned().collect();
        self.keep(parent, &homes, sink).await
    }

    /// Makes the parent record what is left, and says what that is.
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
        if parent.object.reading == self.known.object.reading {
            self.narrow(parent, left, sink).await?;
        } else {
            // The other run counts on what it has recorded.
            sink(Event::Warning(OVERTAKEN.to_owned()));
            let current = Some(parent.object.clone());
            let writing = self.parent_writing(OF_THIS_TOOLING);
            writing.cover(current, &self.record(left), sink).await?;
        }
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
                listed(going.iter().map(|live| waiting(live)))
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
        let record = self.record(left);
        let target = annotations(&self.deletion.set.tooling, &record);
        if is_up_to_date(&parent.object, &target) {
            return Ok(());
        }
        let writing = self.parent_writing(OF_THIS_TOOLING);
        let written = writing
            .write_record(&parent.object.resource_version, &target)
            .await?;
        let now = match written {
            Written::Done(_) => self.remaining().await.map_err(ReleaseError::Unseen)?,
            Written::Overtaken => Vec::new(),
        };
        let needed = Record::of(now.iter().map(|live| &live.key), &self.deletion.set.parent);
        if matches!(written, Written::Overtaken) || !record.covers(&needed) {
            sink(Event::Warning(OVERTAKEN.to_owned()));
            let wide = self.deletion.plan.record_during.union(&needed);
            writing.cover(writing.read().await?, &wide, sink).await?;
        }
        Ok(())
    }

    /// The places of these members and of what the parent lives in.
    fn record(&self, members: &[Live]) -> Record {
        let keys = members.iter().chain(self.deletion.homes()).map(|live| &live.key);
        Record::of(keys, &self.deletion.set.parent)
    }

    /// The members that a fresh look finds after the parent is `done` with.
    async fn newcomers(&self, done: &'static str) -> Result<Vec<Live>, ReleaseError> {
        let found = self.remaining().await;
        found.map_err(|unseen| ReleaseError::Unwatched { done, unseen })
    }

    /// The members that a fresh look finds, but for what the parent lives in.
    async fn remaining(&self) -> Result<Vec<Live>, Unseen> {
        let SetDeletion {
            server, set, writing, ..
        } = *self.deletion;
        let selector = Selector {
            labels: format!("{PART_OF_LABEL}={}", set.id),
            accept: observe::WHOLE_OBJECTS,
        };
        let found = observe::members(server, &self.places, &selector, writing.concurrency, Live::of).await;
        let mut found = found.map_err(|(place, error)| Unseen { place, error })?;
        let homes: BTreeSet<&String> = self.deletion.homes().map(|home| &home.uid).collect();
        found.retain(|live| !set.is_parent(live) && !homes.contains(&live.uid));
        Ok(found)
    }
}

/// Whose a parent may be that this run writes.
const OF_THIS_TOOLING: ParentPolicy = ParentPolicy {
    take_over: Confirmation::Missing,
};

pub(super) fn told(live: &Live, action: Action, reason: String) -> Event {
    let subject = Subject::new(&live.key, &live.resource, Some(&live.uid));
    Event::Object(ObjectOutcome::because(subject, action, reason))
}

pub(super) fn names(objects: &[&Live]) -> String {
    listed(objects.iter().map(|live| &live.key))
}

fn waiting(live: &Live) -> String {
    if live.waits_for.is_empty() {
        live.key.to_string()
    } else {
        format!("{} ({})", live.key, live.waits_for.join("; "))
    }
}
