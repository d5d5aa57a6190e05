//! Lists what is left of a set, and waits for objects that are being deleted.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::cluster::apiserver::ApiServer;
use crate::event::{Ending, Event};
use crate::execute::wait_until_gone::{StopsWith, WaitUntilGone, report_of, with_reasons};
use crate::execute::{Interrupt, Sink};
use crate::model::live::{Live, Presence};
use crate::model::set::Set;
use crate::model::text::listed;
use crate::plan::{self, ParentDisposition, Remains};
use crate::read::{ListError, ListTarget, ListTargets, list_labeled_objects};

/// The time in which the server's own controllers release an object.
const MOMENT: Duration = Duration::from_secs(1);

/// The time to wait for namespaces, CRDs and the garbage collector. Their controllers usually take
/// seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// The treatment of objects that are being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminatingObjects {
    /// The run waits for them, for a while.
    Awaited,
    /// The run waits in another way, or not at all.
    Reported,
}

/// Context for listing the rest of a set.
#[derive(Clone)]
pub struct Remaining<'a> {
    pub server: &'a ApiServer,
    pub set: &'a Set,
    pub interrupt: &'a Interrupt,
    pub concurrency: usize,
    /// Field managers whose part-of labels make an object a member.
    pub appliers: &'a BTreeSet<String>,
    /// The scope of members.
    pub places: ListTargets,
    /// The form in which members are read (`Accept`): as a whole if what they own matters.
    pub accept: &'static str,
    /// The parent's containers and what is deleted after it; they are not listed.
    pub parent_containers: Vec<&'a Live>,
    /// UIDs of what the run has deleted.
    pub deleted: BTreeSet<String>,
    /// UIDs of containers that are kept because an object in them has a keep annotation.
    pub containers_of_kept: BTreeSet<String>,
    pub terminating_objects: TerminatingObjects,
}

/// A collection that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", .place.resource.plural)]
pub struct Unlisted {
    pub place: ListTarget,
    pub error: ListError,
}

/// The result of a list.
#[derive(Debug, Default)]
pub struct RemainingList {
    pub remains: Remains,
    /// Objects with copied labels that other objects own. They do not keep the set.
    pub copies: Vec<Live>,
}

impl RemainingList {
    /// Returns all objects with the label of the set.
    pub fn all(&self) -> impl Iterator<Item = &Live> {
        self.remains.all().chain(&self.copies)
    }
}

impl Remaining<'_> {
    /// Lists the rest of the set until no object is being deleted, or until the time limit is over. The limit is longer
    /// for objects that take time than for those that the server's own controllers release in a moment.
    pub async fn settled(
        &self,
        parent: &ParentDisposition,
        sink: &mut Sink<'_>,
    ) -> Result<RemainingList, Unlisted> {
        let mut wait = WaitUntilGone::begin(self.interrupt, StopsWith::Interrupt);
        loop {
            let found = self.look(parent).await?;
            let awaited = self.awaited(&found.remains);
            let limit = if awaited.iter().any(|live| self.takes_time(live)) {
                PATIENCE
            } else {
                MOMENT
            };
            let report = || sink(Event::Note(report_of(awaited.iter().copied())));
            if awaited.is_empty() || wait.pause(Some(limit), report).await.is_err() {
                return Ok(found);
            }
        }
    }

    /// Returns the objects that are waited for.
    fn awaited<'r>(&self, remains: &'r Remains) -> Vec<&'r Live> {
        if self.terminating_objects == TerminatingObjects::Reported {
            return Vec::new();
        }
        // A copy without an owner is also deleted soon after its original.
        let copies = remains.undeleted.iter().filter(|live| self.is_copy(live));
        remains.going.iter().chain(copies).collect()
    }

    fn is_copy(&self, live: &Live) -> bool {
        plan::reason_not_a_member(live, self.set.parent_uid.as_deref(), self.appliers).is_some()
    }

    /// Returns whether it is deleted by itself, but not immediately.
    fn takes_time(&self, live: &Live) -> bool {
        if live.presence == Presence::Terminating {
            return plan::is_container(live);
        }
        let mut owners = live.owners.iter();
        owners.any(|owner| self.deleted.contains(&owner.uid))
    }

    async fn look(&self, parent: &ParentDisposition) -> Result<RemainingList, Unlisted> {
        let (places, concurrency) = (&self.places, self.concurrency);
        let listed = list_labeled_objects(self.server, self.set, places, concurrency, self.accept).await;
        let mut found = listed.map_err(|(place, error)| Unlisted { place, error })?;
        found.retain(|live| {
            !self
                .parent_containers
                .iter()
                .any(|container| container.uid == live.uid)
        });
        let (copies, left) = found
            .into_iter()
            .partition(|live| plan::is_owned_copy(live, self.set, self.appliers));
        Ok(RemainingList {
            remains: Remains::classify(
                left,
                self.set,
                self.appliers,
                &self.deleted,
                &self.containers_of_kept,
                parent,
            ),
            copies,
        })
    }
}

/// Describes what prevents the set from being deleted; `None` if nothing does.
pub fn obstacles(remains: &Remains, set: &Set, appliers: &BTreeSet<String>) -> Option<String> {
    let mut obstacles = Vec::new();
    if !remains.undeleted.is_empty() {
        let named = remains.undeleted.iter().map(|live| {
            match plan::reason_not_a_member(live, set.parent_uid.as_deref(), appliers) {
                Some(reason) => format!("{} ({reason})", live.key),
                None => live.key.to_string(),
            }
        });
        obstacles.push(format!("still members: {}", listed(named)));
    }
    if !remains.going.is_empty() {
        obstacles.push(format!(
            "still being deleted: {}",
            listed(remains.going.iter().map(with_reasons))
        ));
    }
    (!obstacles.is_empty()).then(|| obstacles.join("; "))
}

/// Reports that the run failed because members that should be gone remain.
pub fn fail(
    remains: &Remains,
    set: &Set,
    appliers: &BTreeSet<String>,
    terminating_objects: TerminatingObjects,
    sink: &mut Sink<'_>,
) -> Ending {
    let Some(obstacles) = obstacles(remains, set, appliers) else {
        return Ending::Done;
    };
    sink(Event::failure(format!(
        "{}: set not deleted: {obstacles}",
        set.parent
    )));
    if !remains.going.is_empty() {
        let hint = match terminating_objects {
            TerminatingObjects::Awaited => "run the same command again when they are gone, or add --wait",
            TerminatingObjects::Reported => "run the same command again when they are gone",
        };
        sink(Event::Hint(hint.to_owned()));
    }
    Ending::Incomplete
}
