//! Follows the targets of one kind until each has reached its goal, in one namespace or in the whole cluster.
//!
//! A list shows the current statuses, and a watch shows the changes after the list. When the watch ends, the next list
//! begins.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::tracker::has_arrived;
use super::{Lookup, ObservedStatus, Target};
use crate::cluster::apiserver::{ApiError, ApiErrorKind, ApiServer, Change, Watch};
use crate::compare::status::{self, OthersOfKind, StatusRules, Surroundings};
use crate::model::applyset::ApplySetId;
use crate::model::identity::GroupKind;
use crate::model::resource::{Resource, Scope};
use crate::read::{self, ListError, ListTarget, ListTargets, Selector, WHOLE_OBJECTS};

/// The time after which the server ends a watch, and the next list begins.
const LONGEST_WATCH: Duration = Duration::from_mins(4);
/// The time limit for waiting until the other collections of a kind are listed.
const OTHER_LISTS: Duration = Duration::from_secs(5);
/// The pause before a collection is listed again after its watch broke.
const RELIST_PAUSE: Duration = Duration::from_secs(1);
/// The pause between two reads of an object that is polled.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// A report of a follower.
pub(super) enum Observation {
    /// The observed status of the target with this index.
    Status(usize, ObservedStatus),
    /// A warning for the user.
    Warning(String),
}

/// Targets of one kind that are looked up in the same way.
#[derive(Debug)]
pub(super) struct Group {
    resource: Arc<Resource>,
    pub(super) lookup: Lookup,
    /// The targets, each with its index in the tracker.
    targets: Vec<(usize, Target)>,
    /// `true` once an object of the kind was found that has a status: its controller reports statuses.
    has_status: AtomicBool,
    /// The number of collections that were not listed yet. They may hold an object that has a status.
    not_listed: watch::Sender<usize>,
}

/// Groups the targets by kind and by the way in which they are looked up.
pub(super) fn group_targets(targets: &[Target]) -> Vec<Group> {
    let mut groups: BTreeMap<(GroupKind, Lookup), Group> = BTreeMap::new();
    for (index, target) in targets.iter().enumerate() {
        let group_key = (target.key.group_kind.clone(), target.lookup);
        let group = groups.entry(group_key).or_insert_with(|| Group {
            resource: Arc::clone(&target.resource),
            lookup: target.lookup,
            targets: Vec::new(),
            has_status: AtomicBool::new(false),
            not_listed: watch::Sender::new(0),
        });
        group.targets.push((index, target.clone()));
    }
    groups.into_values().collect()
}

/// Everything that followers share.
pub(super) struct Follow<'a> {
    pub(super) server: &'a ApiServer,
    pub(super) id: &'a ApplySetId,
    pub(super) rules: &'a StatusRules,
    /// The time after which a collection is listed again.
    pub(super) relist: Duration,
    pub(super) observations: UnboundedSender<Observation>,
}

/// A first list of a collection that is still due: its place on the counter of collections that were not listed yet
/// ([`Group::not_listed`]). `None` once the list is done, and if the collection is the only one of its group.
struct PendingFirstList<'g>(Cell<Option<&'g watch::Sender<usize>>>);

impl PendingFirstList<'_> {
    /// Notes that the collection was listed, or cannot be.
    fn note_done(&self) {
        if let Some(not_listed) = self.0.take() {
            not_listed.send_modify(|count| *count = count.saturating_sub(1));
        }
    }
}

/// One target, and whether it has reached its goal.
struct Followed<'t> {
    index: usize,
    target: &'t Target,
    has_arrived: bool,
}

/// The reason why a collection could not be listed or watched.
enum FollowError {
    /// The collection cannot be watched, for this reason: it has to be polled.
    Unwatchable(&'static str),
    /// The server does not know the path: the kind may be gone, or served in another version.
    NotServed,
    /// Another error, which may be temporary.
    Temporary(String),
}

impl Follow<'_> {
    /// Follows the targets of a group. Returns when all of them have reached their goals.
    pub(super) async fn follow_group(&self, group: Group) {
        if group.lookup == Lookup::Name {
            let targets = group.targets.iter().map(|(index, target)| (*index, target));
            self.poll(&group, targets).await;
            return;
        }
        let namespaces: BTreeSet<String> = group
            .targets
            .iter()
            .filter_map(|(_, target)| target.key.namespace.clone())
            .collect();
        let places = ListTargets {
            resources: vec![Arc::clone(&group.resource)],
            namespaces,
        };
        let lists = places.each_collection(places.cheapest_reach());
        if group.resource.scope == Scope::Namespaced && lists.iter().any(|place| place.namespace.is_none()) {
            let followed = group.followed_targets_in(None);
            let first_list = PendingFirstList(Cell::new(None));
            let following = self.follow_collection(&group, &lists[0], &first_list, followed);
            if following.await.is_ok() {
                return;
            }
            // A user who may not watch the kind in the whole cluster may have the permission to watch it in namespaces.
        }
        let lists = places.each_collection(read::Reach::Namespace);
        group.not_listed.send_replace(lists.len());
        let following = lists.iter().map(async |place| {
            let followed = group.followed_targets_in(place.namespace.as_deref());
            let first_list = PendingFirstList(Cell::new(Some(&group.not_listed)));
            let following = self.follow_collection(&group, place, &first_list, followed);
            if let Err((pending, reason)) = following.await {
                self.warn_of_polling(place, reason);
                let targets = pending.iter().map(|followed| (followed.index, followed.target));
                self.poll(&group, targets).await;
            }
        });
        futures_util::future::join_all(following).await;
    }

    /// Lists and watches one collection until its targets have reached their goals. If the collection cannot be
    /// watched, the error holds the reason, and the targets that have not reached their goals.
    async fn follow_collection<'t>(
        &self,
        group: &Group,
        place: &ListTarget,
        first_list: &PendingFirstList<'_>,
        mut followed: Vec<Followed<'t>>,
    ) -> Result<(), (Vec<Followed<'t>>, &'static str)> {
        let selector = Selector::for_members(self.id, WHOLE_OBJECTS);
        loop {
            let watching = self.list_and_watch(group, place, &selector, first_list, &mut followed);
            let result = watching.await;
            first_list.note_done();
            match result {
                Ok(()) => {}
                Err(FollowError::Unwatchable(reason)) => {
                    followed.retain(|followed| !followed.has_arrived);
                    return Err((followed, reason));
                }
                Err(FollowError::NotServed) => {
                    self.list_group(group, place, &selector, &mut followed).await;
                }
                Err(FollowError::Temporary(reason)) => self.report_unread(&mut followed, &reason),
            }
            if followed.iter().all(|followed| followed.has_arrived) {
                return Ok(());
            }
            sleep(RELIST_PAUSE).await;
        }
    }

    /// Lists the collection once, and watches it until the watch ends, the next list is due or all targets have reached
    /// their goals.
    async fn list_and_watch(
        &self,
        group: &Group,
        place: &ListTarget,
        selector: &Selector,
        first_list: &PendingFirstList<'_>,
        followed: &mut [Followed<'_>],
    ) -> Result<(), FollowError> {
        let mut relist = self.relist;
        let namespace = place.namespace.as_deref();
        let listed = read::list_with_version(self.server, &place.resource, namespace, selector, |object| {
            group.note_if_object_has_status(object);
            let position = find_position(followed, object)?;
            let target = followed[position].target;
            // An object without a status counts as Current after a while, and no watch event announces that.
            if let Some(seconds) = status::seconds_left_for_status(object, self.server.now()) {
                relist = relist.min(Duration::from_secs(seconds + 1));
            }
            // The status of an object that has none depends on whether others of its kind have one (`OthersOfKind`).
            // That is known only after the list, so the object is judged for both cases.
            let if_silent = self.judge_object(object, target, OthersOfKind::Silent);
            let if_reporting = (!status::has_status(object))
                .then(|| self.judge_object(object, target, OthersOfKind::Report));
            Some((position, if_silent, if_reporting))
        });
        let (listed, version) = listed.await.map_err(|error| FollowError::from_list(&error))?;
        first_list.note_done();
        if listed.iter().any(|(_, _, if_reporting)| if_reporting.is_some()) {
            group.wait_until_all_listed().await;
        }
        let statuses = listed.into_iter().map(|(position, if_silent, if_reporting)| {
            let if_reporting = if_reporting.filter(|_| group.others_of_kind() == OthersOfKind::Report);
            (position, if_reporting.unwrap_or(if_silent))
        });
        let mut seen: BTreeMap<usize, ObservedStatus> = statuses.collect();
        let mut has_unlabeled = false;
        for (position, followed) in followed.iter_mut().enumerate() {
            let status = if let Some(listed) = seen.remove(&position) {
                listed
            } else {
                let read = self.read_unlisted_object(group, followed.target).await;
                has_unlabeled |= read != ObservedStatus::Absent;
                read
            };
            self.report(followed, status);
        }
        // A watch by the label does not show an object that has lost it, so the next list comes soon instead.
        if has_unlabeled || followed.iter().all(|followed| followed.has_arrived) {
            return Ok(());
        }
        let watch = read::watch(self.server, place, selector, &version, LONGEST_WATCH)
            .await
            .map_err(|error| FollowError::from_api(&error))?;
        let following = self.follow_watch(group, watch, followed);
        timeout(relist, following).await.unwrap_or(Ok(()))
    }

    /// Lists once a collection whose path the server does not know. If the kind is proved to be gone, all targets are.
    /// If it is served in another version, targets that a list in that version does not show count as gone.
    async fn list_group(
        &self,
        group: &Group,
        place: &ListTarget,
        selector: &Selector,
        followed: &mut [Followed<'_>],
    ) {
        let may_lack_label = group.lookup == Lookup::LabelThenName;
        let unlabeled = may_lack_label.then(|| Selector::new("", WHOLE_OBJECTS));
        let selector = unlabeled.as_ref().unwrap_or(selector);
        let listed = read::list_in_served_version(self.server, place, selector, |object, _| {
            let position = find_position(followed, object)?;
            let (target, others) = (followed[position].target, group.others_of_kind());
            Some((position, self.judge_object(object, target, others)))
        })
        .await;
        let mut seen: BTreeMap<usize, ObservedStatus> = match listed {
            Ok(listed) => listed.into_iter().collect(),
            Err(error) => return self.report_unread(followed, &error.to_string()),
        };
        for (position, followed) in followed.iter_mut().enumerate() {
            if !followed.has_arrived {
                let status = seen.remove(&position).unwrap_or(ObservedStatus::Absent);
                self.report(followed, status);
            }
        }
    }

    /// Reports the changes that a watch shows, until the watch ends or a list is needed.
    async fn follow_watch(
        &self,
        group: &Group,
        mut watch: Watch,
        followed: &mut [Followed<'_>],
    ) -> Result<(), FollowError> {
        while let Some(event) = watch.next().await {
            let event = match event {
                Ok(event) => event,
                // The resourceVersion has expired, or the connection broke: the caller lists again.
                Err(
                    ApiErrorKind::Status(_) | ApiErrorKind::Timeout { .. } | ApiErrorKind::Connection { .. },
                ) => {
                    return Ok(());
                }
                Err(error) => return Err(FollowError::Temporary(error.to_string())),
            };
            let Some(position) = find_position(followed, &event.object) else {
                continue;
            };
            let followed_object = &mut followed[position];
            let status = match event.change {
                Change::Added | Change::Modified => {
                    group.note_if_object_has_status(&event.object);
                    self.judge_object(&event.object, followed_object.target, group.others_of_kind())
                }
                // The object is deleted, or has lost the label.
                Change::Gone => self.read_unlisted_object(group, followed_object.target).await,
                Change::Bookmark => continue,
            };
            let is_unlabeled = event.change == Change::Gone && status != ObservedStatus::Absent;
            self.report(followed_object, status);
            if is_unlabeled || followed.iter().all(|followed| followed.has_arrived) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Polls each object until it has reached its goal.
    async fn poll<'t>(&self, group: &Group, targets: impl Iterator<Item = (usize, &'t Target)>) {
        let mut pending: Vec<Followed> = targets.map(new).collect();
        loop {
            for followed in &mut pending {
                let status = self.read_object(followed.target, group.others_of_kind()).await;
                self.report(followed, status);
            }
            pending.retain(|followed| !followed.has_arrived);
            if pending.is_empty() {
                return;
            }
            sleep(POLL_INTERVAL).await;
        }
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
            now: self.server.now(),
        };
        ObservedStatus::from_object(object, self.rules.judge(object, &target.key.group_kind, around))
    }

    fn report(&self, followed: &mut Followed, status: ObservedStatus) {
        followed.has_arrived = has_arrived(followed.target, &status);
        // Sending fails only once the wait is over, and nobody reads observations any more.
        let _ = self
            .observations
            .send(Observation::Status(followed.index, status));
    }

    /// Reports each target that has not reached its goal as unread, because the collection could not be listed.
    fn report_unread(&self, followed: &mut [Followed<'_>], reason: &str) {
        for followed in followed.iter_mut().filter(|followed| !followed.has_arrived) {
            self.report(followed, ObservedStatus::Unread(reason.to_owned()));
        }
    }

    fn warn_of_polling(&self, place: &ListTarget, reason: &str) {
        let resource = &place.resource.plural;
        let collection = match &place.namespace {
            Some(namespace) => format!("{resource} in namespace {namespace}"),
            None => resource.clone(),
        };
        let text = format!("cannot watch {collection}: {reason}; polling every 2 s");
        let _ = self.observations.send(Observation::Warning(text));
    }
}

impl Group {
    /// Notes whether an object has a status.
    fn note_if_object_has_status(&self, object: &Value) {
        if status::has_status(object) {
            self.has_status.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until each collection of the kind was listed once, up to a time limit: a collection that cannot be listed
    /// must not delay the others for long.
    async fn wait_until_all_listed(&self) {
        let mut not_listed = self.not_listed.subscribe();
        // The sender lives as long as this borrow, so the channel cannot be closed.
        let _ = timeout(OTHER_LISTS, not_listed.wait_for(|count| *count == 0)).await;
    }

    pub(super) fn others_of_kind(&self) -> OthersOfKind {
        if self.has_status.load(Ordering::Relaxed) {
            OthersOfKind::Report
        } else {
            OthersOfKind::Silent
        }
    }

    /// Returns the targets of the group in this namespace; all if that is `None`. They are sorted by name, for
    /// [`find_position`].
    fn followed_targets_in(&self, namespace: Option<&str>) -> Vec<Followed<'_>> {
        let mut followed: Vec<Followed> = self
            .targets
            .iter()
            .filter(|(_, target)| namespace.is_none() || target.key.namespace.as_deref() == namespace)
            .map(|(index, target)| new((*index, target)))
            .collect();
        followed.sort_by_key(|followed| namespace_and_name_of(followed.target));
        followed
    }
}

fn new((index, target): (usize, &Target)) -> Followed<'_> {
    Followed {
        index,
        target,
        has_arrived: false,
    }
}

/// Returns the namespace and name, which distinguish the objects of one kind.
fn namespace_and_name_of(target: &Target) -> (Option<&str>, &str) {
    (target.key.namespace.as_deref(), &target.key.name)
}

/// Returns the position of an object in `followed`, which is sorted by name.
fn find_position(followed: &[Followed<'_>], object: &Value) -> Option<usize> {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let name = (text("/metadata/namespace"), text("/metadata/name")?);
    let found = followed.binary_search_by(|followed| namespace_and_name_of(followed.target).cmp(&name));
    found.ok()
}

impl FollowError {
    fn from_list(error: &ListError) -> Self {
        match error {
            ListError::Request(error) => Self::from_api(error),
            other => Self::Temporary(other.to_string()),
        }
    }

    fn from_api(error: &ApiError) -> Self {
        match error {
            error if error.has_status_code(StatusCode::FORBIDDEN) => Self::Unwatchable("forbidden"),
            error if error.has_status_code(StatusCode::NOT_FOUND) => Self::NotServed,
            error if error.has_status_code(StatusCode::METHOD_NOT_ALLOWED) => {
                Self::Unwatchable("the server does not support it")
            }
            error => Self::Temporary(error.kind.to_string()),
        }
    }
}
