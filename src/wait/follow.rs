//! Follows the targets of one kind until each has reached its goal: looks at them again and again.
//!
//! One look is one list by the set's label for each namespace, or for all of them. Objects without that label are read
//! by their names.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, sleep};

use super::tracker::has_arrived;
use super::{Goal, Lookup, ObservedStatus, Target, Waiting};
use crate::compare::status::{self, OthersOfKind, Surroundings};
use crate::model::identity::GroupKind;
use crate::model::resource::Resource;
use crate::read::{self, ListError, ListTargets, Selector, WHOLE_OBJECTS};

/// The pause after the first look at a kind. It doubles with each look.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The pause after later looks that the server answers fast.
const LATER_PAUSE: Duration = Duration::from_secs(2);
/// The longest pause, however long the server takes for a look.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How many times as long as a look the pause after it is at least, so that a wait for many objects leaves the server
/// nearly all of its time.
const PAUSE_PER_LOOK: u32 = 10;

/// Targets of one kind that are looked up in the same way.
pub(super) struct Group {
    resource: Arc<Resource>,
    lookup: Lookup,
    /// Sorted by namespace and name, for [`Group::find_position`].
    followed: Vec<Followed>,
    /// `true` once an object of the kind was found that has a status: its controller reports statuses.
    has_status: Cell<bool>,
    /// `true` if one look was enough when the group was last followed.
    has_arrived_at_once: bool,
}

/// One target, and whether it has reached its goal.
struct Followed {
    /// The index of the target in the tracker.
    index: usize,
    target: Target,
    has_arrived: bool,
}

/// Groups the targets by kind and by the way in which they are looked up.
pub(super) fn group_targets(targets: &[Target]) -> Vec<Group> {
    let mut groups: BTreeMap<(GroupKind, Lookup), Group> = BTreeMap::new();
    for (index, target) in targets.iter().enumerate() {
        let group_key = (target.key.group_kind.clone(), target.lookup);
        let group = groups.entry(group_key).or_insert_with(|| Group {
            resource: Arc::clone(&target.resource),
            lookup: target.lookup,
            followed: Vec::new(),
            has_status: Cell::new(false),
            has_arrived_at_once: false,
        });
        group.followed.push(Followed {
            index,
            target: target.clone(),
            has_arrived: false,
        });
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    for Group { followed, .. } in &mut groups {
        followed.sort_by(|one, other| one.namespace_and_name().cmp(&other.namespace_and_name()));
    }
    groups
}

/// Everything that followers share.
pub(super) struct Follow<'a> {
    pub(super) waiting: &'a Waiting<'a>,
    /// Gets the observed statuses, each with the index of its target.
    pub(super) observations: UnboundedSender<(usize, ObservedStatus)>,
}

impl Follow<'_> {
    /// Follows the targets of a group. Returns it when all of them have reached their goals.
    pub(super) async fn follow_group(&self, mut group: Group) -> Group {
        let mut pause = FIRST_PAUSE;
        group.has_arrived_at_once = true;
        group.forget_arrivals();
        loop {
            let begun = Instant::now();
            self.look(&mut group).await;
            if group.followed.iter().all(|followed| followed.has_arrived) {
                return group;
            }
            group.has_arrived_at_once = false;
            let for_server = (begun.elapsed() * PAUSE_PER_LOOK).min(LONGEST_PAUSE);
            sleep(pause.max(for_server)).await;
            pause = (pause * 2).min(LATER_PAUSE);
        }
    }

    /// Looks once at the targets of a group, and reports their statuses. A target without a status counts as one whose
    /// controller reports statuses, so it does not count as Current.
    pub(super) async fn look_for_the_last_time(&self, mut group: Group) {
        group.has_status.set(true);
        self.look(&mut group).await;
    }

    /// Looks once at the targets of a group, and reports their statuses.
    async fn look(&self, group: &mut Group) {
        let listed = match group.lookup {
            Lookup::Name => Ok(BTreeMap::new()),
            Lookup::Label | Lookup::LabelThenName => self.list(group).await,
        };
        let others = group.others_of_kind();
        let lookup = group.lookup;
        let followed = group.followed.iter_mut();
        let mut listed = match listed {
            Ok(listed) => listed,
            Err(error) => {
                for followed in followed.filter(|followed| !followed.has_arrived) {
                    self.note_arrival_and_send(followed, ObservedStatus::Unread(error.to_string()));
                }
                return;
            }
        };
        for (position, followed) in followed.enumerate() {
            let status = match (listed.remove(&position), lookup) {
                (Some(listed), _) => listed,
                (None, Lookup::Label) => ObservedStatus::Absent,
                (None, _) if followed.has_arrived => continue,
                (None, _) => self.read_object(&followed.target, others).await,
            };
            self.note_arrival_and_send(followed, status);
        }
    }

    /// Lists the members in the namespaces of all targets, also of those that have reached their goals: they may leave
    /// them again. Returns the statuses of targets by their positions.
    async fn list(&self, group: &Group) -> Result<BTreeMap<usize, ObservedStatus>, ListError> {
        let followed = group.followed.iter();
        let places = ListTargets {
            resources: vec![Arc::clone(&group.resource)],
            namespaces: followed
                .filter_map(|followed| followed.target.key.namespace.clone())
                .collect(),
        };
        let Waiting {
            server,
            id,
            concurrency,
            ..
        } = *self.waiting;
        let selector = Selector::for_members(id, WHOLE_OBJECTS);
        let listed = read::list_collections(server, &places, &selector, concurrency, |object, _| {
            let has_status = status::has_status(object);
            group.has_status.set(group.has_status.get() || has_status);
            let position = group.find_position(object)?;
            let target = &group.followed[position].target;
            // The status of an object that has none depends on whether others of its kind have one (`OthersOfKind`).
            // That is known only after the list, so the object is judged for both cases.
            let if_silent = self.judge_object(object, target, OthersOfKind::Silent);
            let if_reporting = (!has_status).then(|| self.judge_object(object, target, OthersOfKind::Report));
            Some((position, if_silent, if_reporting))
        });
        let listed = listed.await.map_err(|(_, error)| error)?.into_iter();
        let statuses = listed.map(|(position, if_silent, if_reporting)| {
            let if_reporting = if_reporting.filter(|_| group.has_status.get());
            (position, if_reporting.unwrap_or(if_silent))
        });
        Ok(statuses.collect())
    }

    pub(super) fn judge_object(
        &self,
        object: &Value,
        target: &Target,
        others: OthersOfKind,
    ) -> ObservedStatus {
        let around = Surroundings {
            others,
            subresource: target.resource.status,
            now: self.waiting.server.now(),
        };
        ObservedStatus::from_object(
            object,
            self.waiting.rules.judge(object, &target.key.group_kind, around),
        )
    }

    fn note_arrival_and_send(&self, followed: &mut Followed, status: ObservedStatus) {
        followed.has_arrived = has_arrived(&followed.target, &status);
        // Sending fails only once the wait is over, and nobody reads observations any more.
        let _ = self.observations.send((followed.index, status));
    }
}

/// Returns whether all objects were seen at their goals at the same time. What has arrived may leave again while others
/// are followed; only a list shows all objects of a group at once.
pub(super) fn have_arrived_together(groups: &[Group]) -> bool {
    let is_one_list = groups.len() == 1 && groups[0].lookup == Lookup::Label;
    is_one_list || groups.iter().all(|group| group.has_arrived_at_once)
}

impl Group {
    /// Forgets which objects have arrived, so that those are read again that are read by their names. What is gone stays
    /// gone.
    fn forget_arrivals(&mut self) {
        for followed in &mut self.followed {
            followed.has_arrived &= followed.target.goal == Goal::Gone;
        }
    }

    fn others_of_kind(&self) -> OthersOfKind {
        if self.has_status.get() {
            OthersOfKind::Report
        } else {
            OthersOfKind::Silent
        }
    }

    /// Returns the position of an object among the targets; `None` if it is none of them.
    fn find_position(&self, object: &Value) -> Option<usize> {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
        let name = (text("/metadata/namespace"), text("/metadata/name")?);
        let found = self
            .followed
            .binary_search_by(|followed| followed.namespace_and_name().cmp(&name));
        found.ok()
    }
}

impl Followed {
    /// Returns the namespace and name, which distinguish the objects of one kind.
    fn namespace_and_name(&self) -> (Option<&str>, &str) {
        (self.target.key.namespace.as_deref(), &self.target.key.name)
    }
}
