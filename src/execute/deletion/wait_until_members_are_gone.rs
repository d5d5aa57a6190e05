//! Lists what is left of a set, and waits for objects that are being deleted.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::cluster::apiserver::ApiServer;
use crate::event::{Ending, Event};
use crate::execute::labeled_objects::list_labeled_objects;
use crate::execute::{Interrupt, Sink};
use crate::model::identity::GroupKind;
use crate::model::live::{Live, Presence};
use crate::model::set::Set;
use crate::model::text::listed;
use crate::plan::{self, ParentDisposition, Remains};
use crate::read::{ListError, ListTarget, ListTargets, WHOLE_OBJECTS};

/// Pauses between the first lists: the server's own controllers finish within them.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_millis(600),
];

/// The pause between later lists.
const PAUSE: Duration = Duration::from_secs(1);

/// The time to wait for namespaces, CRDs and the garbage collector. Their controllers usually take
/// seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// The treatment of objects that are being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lingering {
    /// The run waits for them, for a while.
    Awaited,
    /// The run waits in another way, or not at all.
    Reported,
}

/// Context for listing the rest of a set.
#[derive(Clone)]
pub(crate) struct Remaining<'a> {
    pub(crate) server: &'a ApiServer,
    pub(crate) set: &'a Set,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) concurrency: usize,
    /// Field managers whose part-of labels make an object a member.
    pub(crate) appliers: &'a BTreeSet<String>,
    /// The scope of members.
    pub(crate) places: ListTargets,
    /// The parent's containers and what is deleted after it; they are not listed.
    pub(crate) homes: Vec<&'a Live>,
    /// UIDs of what the run has deleted.
    pub(crate) deleted: BTreeSet<String>,
    /// UIDs of containers that are kept because an object in them has a keep annotation.
    pub(crate) containers_of_kept: BTreeSet<String>,
    pub(crate) lingering: Lingering,
}

/// A collection that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", .place.resource.plural)]
pub(crate) struct Unlisted {
    place: ListTarget,
    error: ListError,
}

/// The result of a list.
#[derive(Debug, Default)]
pub(crate) struct RemainingList {
    pub(crate) remains: Remains,
    /// Objects with copied labels that other objects own. They do not keep the set.
    pub(crate) copies: Vec<Live>,
}

impl RemainingList {
    /// The remaining members, without copies.
    pub(crate) fn of(remains: Remains) -> Self {
        Self {
            remains,
            copies: Vec::new(),
        }
    }

    /// Returns all objects with the label of the set.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Live> {
        self.remains.all().chain(&self.copies)
    }
}

impl Remaining<'_> {
    /// Lists once.
    pub(crate) async fn look(&self, parent: &ParentDisposition) -> Result<RemainingList, Unlisted> {
        self.look_into(&self.places, parent).await
    }

    /// Lists until no object is being deleted any more, or until the wait is over. Reports once what it
    /// waits for, if that takes longer than the first lists.
    pub(crate) async fn settled(
        &self,
        parent: &ParentDisposition,
        sink: &mut Sink<'_>,
    ) -> Result<RemainingList, Unlisted> {
        let mut is_reported = false;
        let begin = Instant::now();
        let mut found = self.look(parent).await?;
        let mut looks = 0;
        while let Some(places) = self.worth_waiting(&found.remains, looks, begin.elapsed()) {
            let pause = PAUSES.get(looks).copied().unwrap_or(PAUSE);
            tokio::select! {
                () = sleep(pause) => {}
                () = self.interrupt.requested() => return Ok(found),
            }
            looks += 1;
            let partial = self.look_into(&places, parent).await?;
            // Only the kinds that are waited for were listed.
            if self
                .worth_waiting(&partial.remains, looks, begin.elapsed())
                .is_none()
            {
                found = self.look(parent).await?;
            } else if looks >= PAUSES.len() && !is_reported {
                is_reported = true;
                let awaited = listed(self.awaited(&partial.remains, looks).map(waiting));
                sink(Event::Note(format!("waiting for {awaited} to be deleted")));
            }
        }
        Ok(found)
    }

    /// Returns the scope of the objects that are still waited for after this many lists and this time.
    fn worth_waiting(&self, remains: &Remains, looks: usize, waited: Duration) -> Option<ListTargets> {
        if self.lingering == Lingering::Reported || waited >= PATIENCE {
            return None;
        }
        let awaited = self.awaited(remains, looks);
        let kinds: BTreeSet<GroupKind> = awaited.map(|live| live.key.group_kind.clone()).collect();
        let resources = self.places.resources.iter();
        let resources = resources.filter(|resource| kinds.contains(&resource.group_kind()));
        (!kinds.is_empty()).then(|| ListTargets {
            resources: resources.cloned().collect(),
            namespaces: self.places.namespaces.clone(),
        })
    }

    /// Returns the objects that are waited for after this many lists.
    fn awaited<'r>(&'r self, remains: &'r Remains, looks: usize) -> impl Iterator<Item = &'r Live> {
        let is_short = looks < PAUSES.len();
        // A copy without an owner is also deleted soon after its original.
        let going = remains.going.iter();
        let awaited = going.chain(remains.undeleted.iter().filter(|live| self.is_copy(live)));
        awaited.filter(move |live| is_short || self.takes_time(live))
    }

    fn is_copy(&self, live: &Live) -> bool {
        plan::reason_not_a_member(live, self.set.parent_uid.as_deref(), self.appliers).is_some()
    }

    /// Returns whether it is deleted by itself, but not immediately.
    fn takes_time(&self, live: &Live) -> bool {
        let is_collected = || {
            let mut owners = live.owners.iter();
            owners.any(|owner| self.deleted.contains(&owner.uid))
        };
        let is_going = live.presence == Presence::Terminating;
        if is_going {
            plan::is_container(live)
        } else {
            is_collected()
        }
    }

    async fn look_into(
        &self,
        places: &ListTargets,
        parent: &ParentDisposition,
    ) -> Result<RemainingList, Unlisted> {
        let found =
            list_labeled_objects(self.server, self.set, places, self.concurrency, WHOLE_OBJECTS).await;
        let mut found = found.map_err(|(place, error)| Unlisted { place, error })?;
        found.retain(|live| !self.homes.iter().any(|home| home.uid == live.uid));
        let is_copy = |live: &Live| plan::is_owned_copy(live, self.set, self.appliers);
        let (copies, left) = found.into_iter().partition(is_copy);
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

/// Returns a text about what prevents the end of the set; `None` if nothing does.
pub(crate) fn obstacles(remains: &Remains, set: &Set, appliers: &BTreeSet<String>) -> Option<String> {
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
            listed(remains.going.iter().map(waiting))
        ));
    }
    (!obstacles.is_empty()).then(|| obstacles.join("; "))
}

/// Reports the failure of a run that leaves members behind that should be gone.
pub(crate) fn fail(
    remains: &Remains,
    set: &Set,
    appliers: &BTreeSet<String>,
    lingering: Lingering,
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
        let hint = match lingering {
            Lingering::Awaited => "run the same command again when they are gone, or add --wait",
            Lingering::Reported => "run the same command again when they are gone",
        };
        sink(Event::Hint(hint.to_owned()));
    }
    Ending::Incomplete
}

/// Returns an object with what its deletion waits for.
pub(crate) fn waiting(live: &Live) -> String {
    if live.waits_for.is_empty() {
        live.key.to_string()
    } else {
        format!("{} ({})", live.key, live.waits_for.join("; "))
    }
}
