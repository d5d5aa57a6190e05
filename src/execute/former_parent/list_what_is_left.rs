//! Lists what is left of a set, which may wait until the objects that are being deleted are gone.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::event::{Ending, Event, Sink};
use crate::execute::ParentWriting;
use crate::execute::polling::{Polling, StopsWith};
use crate::model::deletion_obstacles::{describe_why_it_still_exists, waiting_note};
use crate::model::live::{Live, Presence};
use crate::model::set::Set;
use crate::model::text::first_names_and_more;
use crate::plan::{self, ParentDisposition, Remains};
use crate::read::{ListError, ListTarget, ListTargets, list_labeled_objects};

/// The time limit for objects of which only the server's own finalizers have to be removed.
const SHORT_LIMIT: Duration = Duration::from_secs(1);

/// The time limit for namespaces, CRDs and objects that the garbage collector deletes, which usually take seconds.
const LONG_LIMIT: Duration = Duration::from_secs(30);

/// The treatment of objects that are being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminatingObjects {
    /// The list waits for them, up to a time limit.
    Awaited,
    /// The list reports them at once: the run waits for them in another way (`--wait`), or not at all.
    Reported,
}

/// Context for listing what is left of a set.
pub struct RemainingLister<'a> {
    /// Context for writing the parent of the set.
    pub parent: ParentWriting<'a>,
    /// Field managers whose part-of labels make an object a member.
    pub appliers: &'a BTreeSet<String>,
    /// The scope of members.
    pub places: ListTargets,
    /// The form in which members are read (`Accept`): whole objects if the run deletes the parent.
    pub accept: &'static str,
    /// The parent's containers, which are deleted after the parent: the list leaves them out.
    pub parent_containers: Vec<&'a Live>,
    /// UIDs of the objects that the run has deleted.
    pub deleted: BTreeSet<String>,
    /// UIDs of containers that are kept because an object in them has a keep annotation.
    pub containers_of_kept: BTreeSet<String>,
    pub terminating_objects: TerminatingObjects,
}

/// Error if what is left of a set could not be listed, with the collection at which the list failed.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", .place.resource.plural)]
pub struct RemainingNotListed {
    pub place: ListTarget,
    pub error: ListError,
}

/// The objects that are left of a set.
#[derive(Debug, Default)]
pub struct RemainingList {
    pub remains: Remains,
    /// Objects whose part-of label was copied from the object that owns them. They do not keep the set.
    pub copies: Vec<Live>,
}

impl RemainingList {
    /// Returns all objects with the label of the set, except for the parent's containers.
    pub fn remains_and_copies(&self) -> impl Iterator<Item = &Live> {
        self.remains.all().chain(&self.copies)
    }
}

impl RemainingLister<'_> {
    /// Lists what is left of the set, again and again until no object is being deleted, the time limit is over or the
    /// user stops the run. `parent` is what the run does with the parent if no member is left.
    pub async fn list_and_await_deletions(
        &self,
        parent: &ParentDisposition,
        sink: &mut Sink<'_>,
    ) -> Result<RemainingList, RemainingNotListed> {
        let mut wait = Polling::begin(self.parent.interrupt, StopsWith::Interrupt);
        loop {
            let found = self.list(parent).await?;
            let awaited = self.select_awaited(&found.remains);
            let limit = if awaited.iter().any(|live| self.takes_long(live)) {
                LONG_LIMIT
            } else {
                SHORT_LIMIT
            };
            let report = || sink(Event::Note(waiting_note(awaited.iter().copied())));
            if awaited.is_empty() || wait.pause(Some(limit), report).await.is_err() {
                return Ok(found);
            }
        }
    }

    /// Returns the objects that the list waits for.
    fn select_awaited<'r>(&self, remains: &'r Remains) -> Vec<&'r Live> {
        if self.terminating_objects == TerminatingObjects::Reported {
            return Vec::new();
        }
        // A controller that copies the label of a member to an object without an owner reference also deletes that copy
        // soon after the member, as it does with the Endpoints of a Service.
        let copies = remains.unwanted.iter().filter(|live| self.is_not_a_member(live));
        remains.going.iter().chain(copies).collect()
    }

    fn is_not_a_member(&self, live: &Live) -> bool {
        plan::reason_not_a_member(live, self.parent.set.parent_uid.as_deref(), self.appliers).is_some()
    }

    /// Returns whether the wait for this object has the long limit: it is a terminating namespace or CRD, or the
    /// garbage collector is to delete it after an owner that the run has deleted.
    fn takes_long(&self, live: &Live) -> bool {
        if live.presence == Presence::Terminating {
            return plan::is_namespace_or_crd(live);
        }
        let mut owners = live.owners.iter();
        owners.any(|owner| self.deleted.contains(&owner.uid))
    }

    async fn list(&self, parent: &ParentDisposition) -> Result<RemainingList, RemainingNotListed> {
        let ParentWriting {
            server, set, writing, ..
        } = self.parent;
        let mut found = list_labeled_objects(server, set, &self.places, writing.concurrency, self.accept)
            .await
            .map_err(|(place, error)| RemainingNotListed { place, error })?;
        found.retain(|live| {
            !self
                .parent_containers
                .iter()
                .any(|container| container.uid == live.uid)
        });
        let (copies, members) = found
            .into_iter()
            .partition(|live| plan::is_owned_copy(live, set, self.appliers));
        Ok(RemainingList {
            remains: Remains::classify(
                members,
                set,
                self.appliers,
                &self.deleted,
                &self.containers_of_kept,
                parent,
            ),
            copies,
        })
    }
}

/// Describes the objects that prevent the set from being deleted; `None` if there are none.
pub fn describe_members_not_gone(
    remains: &Remains,
    set: &Set,
    appliers: &BTreeSet<String>,
) -> Option<String> {
    let mut obstacles = Vec::new();
    if !remains.unwanted.is_empty() {
        let named = remains.unwanted.iter().map(|live| {
            match plan::reason_not_a_member(live, set.parent_uid.as_deref(), appliers) {
                Some(reason) => format!("{} ({reason})", live.key),
                None => live.key.to_string(),
            }
        });
        obstacles.push(format!("still members: {}", first_names_and_more(named)));
    }
    if !remains.going.is_empty() {
        obstacles.push(format!(
            "still being deleted: {}",
            first_names_and_more(remains.going.iter().map(describe_why_it_still_exists))
        ));
    }
    (!obstacles.is_empty()).then(|| obstacles.join("; "))
}

/// Reports the members that should be gone and are not as a failure of the run.
pub fn report_members_not_gone(
    remains: &Remains,
    set: &Set,
    appliers: &BTreeSet<String>,
    sink: &mut Sink<'_>,
) -> Ending {
    let Some(obstacles) = describe_members_not_gone(remains, set, appliers) else {
        return Ending::Done;
    };
    sink(Event::general_failure(format!(
        "{}: set not deleted: {obstacles}",
        set.parent
    )));
    if !remains.going.is_empty() {
        let hint = "run the same command again when they are gone";
        sink(Event::Hint(hint.to_owned()));
    }
    Ending::Incomplete
}
