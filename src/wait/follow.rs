//! Follows the objects of one kind in one namespace or all until each is ready or gone.
//!
//! A list shows the current states, and a watch the changes after it. When a watch ends, the next list
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
use super::{ObservedStatus, Path, Target};
use crate::cluster::apiserver::{ApiError, ApiErrorKind, ApiServer, Change, Watch};
use crate::compare::status::{self, Others, StatusRules, Surroundings};
use crate::model::applyset::ApplySetId;
use crate::model::identity::GroupKind;
use crate::model::resource::{Resource, Scope};
use crate::read::{self, ListError, ListTarget, ListTargets, Selector, WHOLE_OBJECTS};

/// The time after which the server ends a watch, and the next list begins.
const LONGEST_WATCH: Duration = Duration::from_mins(4);
/// The longest wait for the lists of other collections of a kind.
const ALL_LISTED: Duration = Duration::from_secs(5);
/// The pause before a collection is listed again after its watch broke.
const PAUSE: Duration = Duration::from_secs(1);
/// The pause between two reads of an object that must not be watched.
const POLL: Duration = Duration::from_secs(2);

/// A report of a follower.
pub(super) enum Observation {
    /// The observed status of the target with this index.
    Status(usize, ObservedStatus),
    /// A warning for the user.
    Warning(String),
}

/// Targets of one kind, each with its index.
#[derive(Debug)]
pub(super) struct Group {
    resource: Arc<Resource>,
    pub(super) path: Path,
    targets: Vec<(usize, Target)>,
    /// True once another object of the kind was found that reports its status.
    reports: AtomicBool,
    /// The collections that were not listed yet: they may hold such an object.
    unlisted: watch::Sender<usize>,
}

/// Groups the targets by kind and by the way they are found.
pub(super) fn groups(targets: &[Target]) -> Vec<Group> {
    let mut groups: BTreeMap<(GroupKind, Path), Group> = BTreeMap::new();
    for (index, target) in targets.iter().enumerate() {
        let name = (target.key.group_kind.clone(), target.path);
        let group = groups.entry(name).or_insert_with(|| Group {
            resource: Arc::clone(&target.resource),
            path: target.path,
            targets: Vec::new(),
            reports: AtomicBool::new(false),
            unlisted: watch::Sender::new(0),
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

/// The first list of one collection, among those of its kind; `None` once it is over.
struct Listing<'g>(Cell<Option<&'g watch::Sender<usize>>>);

impl Listing<'_> {
    /// Notes that the collection was listed, or cannot be.
    fn end(&self) {
        if let Some(unlisted) = self.0.take() {
            unlisted.send_modify(|unlisted| *unlisted = unlisted.saturating_sub(1));
        }
    }
}

/// One target, and whether it has arrived.
struct Followed<'t> {
    index: usize,
    target: &'t Target,
    has_arrived: bool,
}

/// The reason why a collection cannot be followed.
enum Trouble {
    /// It cannot be listed or watched, for this reason.
    Unwatchable(&'static str),
    /// The server does not know the path: the kind may be gone, or served in another version.
    NotServed,
    /// Another error, which may be temporary.
    Passing(String),
}

impl Follow<'_> {
    /// Returns when all targets of the group have arrived.
    pub(super) async fn group(&self, group: Group) {
        if group.path == Path::Name {
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
        let lists = places.lists(places.cheapest_reach());
        if group.resource.scope == Scope::Namespaced && lists.iter().any(|place| place.namespace.is_none()) {
            let followed = group.follow_targets(None);
            let listing = Listing(Cell::new(None));
            if self.place(&group, &lists[0], &listing, followed).await.is_ok() {
                return;
            }
            // A user who may not watch the whole cluster may be allowed to watch namespaces.
        }
        let narrow = places.lists(read::Reach::Namespace);
        group.unlisted.send_replace(narrow.len());
        let follow = narrow.iter().map(async |place| {
            let followed = group.follow_targets(place.namespace.as_deref());
            let listing = Listing(Cell::new(Some(&group.unlisted)));
            if let Err((left, reason)) = self.place(&group, place, &listing, followed).await {
                self.warn(place, reason);
                let targets = left.iter().map(|followed| (followed.index, followed.target));
                self.poll(&group, targets).await;
            }
        });
        futures_util::future::join_all(follow).await;
    }

    /// Lists and watches one collection. The error holds the targets of a collection that cannot be watched, and
    /// the reason.
    async fn place<'t>(
        &self,
        group: &Group,
        place: &ListTarget,
        listing: &Listing<'_>,
        mut followed: Vec<Followed<'t>>,
    ) -> Result<(), (Vec<Followed<'t>>, &'static str)> {
        let selector = Selector::for_members(self.id, WHOLE_OBJECTS);
        loop {
            let round = self.round(group, place, &selector, listing, &mut followed).await;
            listing.end();
            match round {
                Ok(()) => {}
                Err(Trouble::Unwatchable(reason)) => {
                    followed.retain(|followed| !followed.has_arrived);
                    return Err((followed, reason));
                }
                Err(Trouble::NotServed) => self.read_as_served(group, place, &selector, &mut followed).await,
                Err(Trouble::Passing(reason)) => self.report_unread(&mut followed, &reason),
            }
            if followed.iter().all(|followed| followed.has_arrived) {
                return Ok(());
            }
            sleep(PAUSE).await;
        }
    }

    /// Lists once, and watches until the watch ends, the next list is due or everything has arrived.
    async fn round(
        &self,
        group: &Group,
        place: &ListTarget,
        selector: &Selector,
        listing: &Listing<'_>,
        followed: &mut [Followed<'_>],
    ) -> Result<(), Trouble> {
        let mut relist = self.relist;
        let namespace = place.namespace.as_deref();
        let listed = read::list_at_version(self.server, &place.resource, namespace, selector, |object| {
            group.note(object);
            let position = find(followed, object)?;
            let target = followed[position].target;
            if let Some(left) = status::time_left_for_status(object, self.server.now()) {
                relist = relist.min(Duration::from_secs(left + 1));
            }
            // Only a complete list shows whether another object reports.
            let alone = self.observe(object, target, Others::Silent);
            let among = (!status::reports(object)).then(|| self.observe(object, target, Others::Report));
            Some((position, alone, among))
        });
        let (listed, version) = listed.await.map_err(|error| list_trouble(&error))?;
        listing.end();
        if listed.iter().any(|(_, _, among)| among.is_some()) {
            group.wait_until_all_are_listed().await;
        }
        let mut seen: BTreeMap<usize, ObservedStatus> = BTreeMap::new();
        for (position, alone, among) in listed {
            let among = among.filter(|_| group.others() == Others::Report);
            seen.insert(position, among.unwrap_or(alone));
        }
        let mut has_unlabeled = false;
        for (position, followed) in followed.iter_mut().enumerate() {
            let status = if let Some(status) = seen.remove(&position) {
                status
            } else {
                let status = self.status_without_label(group, followed.target).await;
                has_unlabeled |= status != ObservedStatus::Absent;
                status
            };
            self.report(followed, status);
        }
        // A watch by the label does not show what has lost it.
        if has_unlabeled || followed.iter().all(|followed| followed.has_arrived) {
            return Ok(());
        }
        let watch = read::watch(self.server, place, selector, &version, LONGEST_WATCH)
            .await
            .map_err(|error| trouble(&error))?;
        let followed = self.follow_watch(group, watch, followed);
        timeout(relist, followed).await.unwrap_or(Ok(()))
    }

    /// Lists a collection once whose path the server does not know. Its objects are gone only if their kind is
    /// proved to be gone; otherwise another version is read, if there is one.
    async fn read_as_served(
        &self,
        group: &Group,
        place: &ListTarget,
        selector: &Selector,
        followed: &mut [Followed<'_>],
    ) {
        let listed = read::list_as_served(self.server, place, selector, |object, _| {
            let position = find(followed, object)?;
            let target = followed[position].target;
            Some((position, self.observe(object, target, group.others())))
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

    async fn follow_watch(
        &self,
        group: &Group,
        mut watch: Watch,
        followed: &mut [Followed<'_>],
    ) -> Result<(), Trouble> {
        while let Some(event) = watch.next().await {
            let event = match event {
                Ok(event) => event,
                // The version has expired, or the connection broke: list again.
                Err(
                    ApiErrorKind::Status(_) | ApiErrorKind::Timeout { .. } | ApiErrorKind::Connection { .. },
                ) => {
                    return Ok(());
                }
                Err(error) => return Err(Trouble::Passing(error.to_string())),
            };
            let Some(position) = find(followed, &event.object) else {
                continue;
            };
            let followed_object = &mut followed[position];
            let status = match event.change {
                Change::Added | Change::Modified => {
                    group.note(&event.object);
                    self.observe(&event.object, followed_object.target, group.others())
                }
                Change::Gone => self.status_without_label(group, followed_object.target).await,
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

    /// Polls each object until it has arrived.
    async fn poll<'t>(&self, group: &Group, targets: impl Iterator<Item = (usize, &'t Target)>) {
        let mut left: Vec<Followed> = targets.map(follow_target).collect();
        loop {
            for followed in &mut left {
                let status = self.read_object(followed.target, group.others()).await;
                self.report(followed, status);
            }
            left.retain(|followed| !followed.has_arrived);
            if left.is_empty() {
                return;
            }
            sleep(POLL).await;
        }
    }

    pub(super) fn observe(&self, object: &Value, target: &Target, others: Others) -> ObservedStatus {
        let around = Surroundings {
            others,
            subresource: target.resource.status,
            now: self.server.now(),
        };
        ObservedStatus::new(object, self.rules.judge(object, &target.key.group_kind, around))
    }

    fn report(&self, followed: &mut Followed, status: ObservedStatus) {
        followed.has_arrived = has_arrived(followed.target, &status);
        // The channel is closed once the wait is over.
        let _ = self
            .observations
            .send(Observation::Status(followed.index, status));
    }

    /// Reports that a list could not be read, for all that have not arrived.
    fn report_unread(&self, followed: &mut [Followed<'_>], reason: &str) {
        for followed in followed.iter_mut().filter(|followed| !followed.has_arrived) {
            self.report(followed, ObservedStatus::Unread(reason.to_owned()));
        }
    }

    fn warn(&self, place: &ListTarget, reason: &str) {
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
    /// Records whether an object reports its status.
    fn note(&self, object: &Value) {
        if status::reports(object) {
            self.reports.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until each collection of the kind was listed once, but not long: one that cannot be read must
    /// not hold the others.
    async fn wait_until_all_are_listed(&self) {
        let mut unlisted = self.unlisted.subscribe();
        // The sender lives as long as this borrow, so it cannot be closed.
        let _ = timeout(ALL_LISTED, unlisted.wait_for(|unlisted| *unlisted == 0)).await;
    }

    pub(super) fn others(&self) -> Others {
        if self.reports.load(Ordering::Relaxed) {
            Others::Report
        } else {
            Others::Silent
        }
    }

    /// Returns its targets, or those of one namespace.
    fn follow_targets(&self, namespace: Option<&str>) -> Vec<Followed<'_>> {
        let mut followed: Vec<Followed> = self
            .targets
            .iter()
            .filter(|(_, target)| namespace.is_none() || target.key.namespace.as_deref() == namespace)
            .map(|(index, target)| follow_target((*index, target)))
            .collect();
        followed.sort_by_key(|followed| name_of(followed.target));
        followed
    }
}

fn follow_target((index, target): (usize, &Target)) -> Followed<'_> {
    Followed {
        index,
        target,
        has_arrived: false,
    }
}

/// Returns the namespace and name, which distinguish the objects of one kind.
fn name_of(target: &Target) -> (Option<&str>, &str) {
    (target.key.namespace.as_deref(), &target.key.name)
}

/// Returns the index of an object among those followed, which are sorted by name.
fn find(followed: &[Followed<'_>], object: &Value) -> Option<usize> {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let name = (text("/metadata/namespace"), text("/metadata/name")?);
    let found = followed.binary_search_by(|followed| name_of(followed.target).cmp(&name));
    found.ok()
}

fn list_trouble(error: &ListError) -> Trouble {
    match error {
        ListError::Request(error) => trouble(error),
        other => Trouble::Passing(other.to_string()),
    }
}

fn trouble(error: &ApiError) -> Trouble {
    match error {
        error if error.is(StatusCode::FORBIDDEN) => Trouble::Unwatchable("forbidden"),
        error if error.is(StatusCode::NOT_FOUND) => Trouble::NotServed,
        error if error.is(StatusCode::METHOD_NOT_ALLOWED) => {
            Trouble::Unwatchable("the server does not support it")
        }
        error => Trouble::Passing(error.kind.to_string()),
    }
}
