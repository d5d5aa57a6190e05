//! The order by dependency: an object is applied when what it depends on is Current, and deleted when
//! what depends on it is gone.
//!
//! What an object depends on comes in an earlier step of the plan (`plan::dependencies`). The caller
//! waits, because `execute` stands left of `wait`; `steps` applies what is free by then.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;

use super::deletion::delete_wave::ObjectsKeptInsteadOfDeleted;
use super::{Execution, Interrupt, Sink};
use crate::compare::status::Written;
use crate::event::{Action, Event, ObjectOutcome, Subject};
use crate::manifest::desired::{Desired, DesiredObject, defined_kind};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::Live;
use crate::model::resource::Resource;

/// Waits for objects that others depend on.
pub trait DependencyGate {
    /// Returns whether an object is Current by the write that has made or changed it.
    fn is_current_once_written(&self, resource: &Resource, written: Written) -> bool;

    /// Waits until these objects are Current or have failed, and returns those that are not Current.
    fn current<'g>(
        &'g self,
        objects: Vec<Dependency>,
        sink: &'g mut Sink<'_>,
    ) -> LocalBoxFuture<'g, BTreeSet<ObjectKey>>;

    /// Waits until these objects are gone, and returns those that are not.
    fn gone<'g>(
        &'g self,
        objects: Vec<&'g Live>,
        sink: &'g mut Sink<'_>,
    ) -> LocalBoxFuture<'g, BTreeSet<ObjectKey>>;
}

/// An object that others depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// The resource that it is read through.
    pub resource: Arc<Resource>,
    /// Its relation to the set.
    pub membership: Membership,
}

/// Relation of an object to the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// It carries the label of the set.
    Member,
    /// It does not, or nothing is known of that.
    Outside,
}

/// What a run knows of the objects that others depend on.
#[derive(Debug, Default)]
pub(crate) struct DependencyStates {
    /// Those that any object of the manifests names.
    named: BTreeSet<ObjectKey>,
    /// The namespaces and CRDs of the manifests.
    containers: Containers,
    /// Those that this run has changed, and not waited for since.
    changed: BTreeSet<ObjectKey>,
    /// Those that are being waited for.
    awaited: BTreeSet<ObjectKey>,
    /// Those that became Current in this run.
    ready: BTreeSet<ObjectKey>,
    /// Those that did not, or could not be applied, each with the reason.
    unready: BTreeMap<ObjectKey, &'static str>,
    /// Objects that the run does not send.
    skipped: BTreeSet<ObjectKey>,
}

/// What an object waits for before it is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hindrance {
    /// Something that is not written yet.
    Unwritten,
    /// These objects, which are not known to be Current.
    NotCurrent(Vec<ObjectKey>),
    /// This object, which will not become Current in this run, and why.
    Lost(ObjectKey, &'static str),
}

const NOT_APPLIED: &str = "was not applied";
const NOT_CURRENT: &str = "is not Current";

impl DependencyStates {
    pub(super) fn of(execution: &Execution<'_>) -> Self {
        let members = execution.desired.members.iter();
        Self {
            named: members
                .flat_map(|member| member.depends_on.iter().cloned())
                .collect(),
            containers: Containers::of(execution.desired),
            ..Self::default()
        }
    }

    /// Returns whether every object can be sent in its step.
    pub(super) fn is_trivial(&self) -> bool {
        self.named.is_empty() && self.skipped.is_empty()
    }

    /// Notes what became of an object.
    pub(super) fn note(&mut self, outcome: &ObjectOutcome, is_current: impl FnOnce(Written) -> bool) {
        if self.named.is_empty() {
            return;
        }
        let key = outcome.subject.key();
        if !self.named.contains(&key) {
            return;
        }
        let written = match outcome.action {
            Action::Created | Action::Recreated => Some(Written::Created),
            Action::Configured => Some(Written::Changed),
            _ => None,
        };
        match outcome.action {
            _ if written.is_some_and(is_current) => {
                self.ready.insert(key);
            }
            Action::Created | Action::Configured | Action::Recreated => {
                self.changed.insert(key);
            }
            Action::Failed | Action::Skipped => {
                self.unready.insert(key, NOT_APPLIED);
            }
            _ => {}
        }
    }

    /// Notes that an object is not sent.
    pub(super) fn skip(&mut self, key: ObjectKey) {
        self.unready.insert(key.clone(), NOT_APPLIED);
        self.skipped.insert(key);
    }

    /// Notes that these objects are being waited for.
    pub(super) fn wait_for(&mut self, keys: impl IntoIterator<Item = ObjectKey>) {
        self.awaited.extend(keys);
    }

    /// Notes that an object that is being waited for is Current.
    pub(super) fn arrived(&mut self, key: ObjectKey) {
        self.changed.remove(&key);
        self.ready.insert(key);
    }

    /// Notes that a wait has ended without the object Current; ignored if it was Current before.
    pub(super) fn missed(&mut self, key: ObjectKey) {
        if !self.ready.contains(&key) {
            self.changed.remove(&key);
            self.unready.insert(key, NOT_CURRENT);
        }
    }

    pub(super) fn is_awaited(&self, key: &ObjectKey) -> bool {
        self.awaited.contains(key)
    }
}

/// The namespaces and CRDs among the manifests.
#[derive(Debug, Default)]
struct Containers {
    namespaces: BTreeSet<String>,
    definitions: HashMap<GroupKind, ObjectKey>,
}

impl Containers {
    fn of(desired: &Desired) -> Self {
        let members = desired.members.iter();
        Self {
            namespaces: desired.namespaces().map(str::to_owned).collect(),
            definitions: members
                .filter_map(|member| Some((defined_kind(member)?, member.key.clone())))
                .collect(),
        }
    }

    /// Returns the namespace and the CRD that have to exist before the object.
    fn around(&self, object: &ObjectKey) -> impl Iterator<Item = ObjectKey> {
        let namespace = object.namespace.as_ref();
        let namespace = namespace.filter(|name| self.namespaces.contains(*name));
        let namespace = namespace.map(|name| ObjectKey {
            group_kind: GroupKind::namespace(),
            namespace: None,
            name: name.clone(),
        });
        let definition = self.definitions.get(&object.group_kind).cloned();
        namespace.into_iter().chain(definition)
    }
}

impl Execution<'_> {
    /// Returns what an object waits for; `None` if it can be sent. `unwritten` are the objects of
    /// started steps that are not written yet.
    pub(super) fn hindrance(
        &self,
        object: &DesiredObject,
        states: &DependencyStates,
        unwritten: &HashSet<&ObjectKey>,
    ) -> Option<Hindrance> {
        let depends_on = &object.depends_on;
        let lost = depends_on
            .iter()
            .find_map(|key| Some((key, *states.unready.get(key)?)));
        if let Some((key, state)) = lost {
            return Some(Hindrance::Lost(key.clone(), state));
        }
        let containers: Vec<ObjectKey> = states.containers.around(&object.key).collect();
        if let Some(container) = containers.iter().find(|key| states.skipped.contains(*key)) {
            return Some(Hindrance::Lost(container.clone(), NOT_APPLIED));
        }
        if depends_on
            .iter()
            .chain(&containers)
            .any(|key| unwritten.contains(key))
        {
            return Some(Hindrance::Unwritten);
        }
        let known = &self.plan.edges.known;
        let is_current = |key: &ObjectKey| {
            let was_current = known.current.contains(key) && !states.changed.contains(key);
            was_current || states.ready.contains(key)
        };
        let not_current = depends_on.iter().filter(|key| !is_current(key));
        let not_current: Vec<ObjectKey> = not_current.cloned().collect();
        (!not_current.is_empty()).then_some(Hindrance::NotCurrent(not_current))
    }

    /// Returns where to read these dependencies: the resource, and the relation to the set.
    pub(super) fn dependencies(&self, keys: &BTreeSet<ObjectKey>) -> Vec<Dependency> {
        let members = self.desired.members.iter();
        let members = members.filter(|member| keys.contains(&member.key));
        let members = members.map(|member| Dependency {
            key: member.key.clone(),
            resource: Arc::clone(&member.resource),
            membership: Membership::Member,
        });
        let outside = self.plan.edges.known.outside.iter();
        let outside = outside.filter(|(key, _)| keys.contains(key));
        let outside = outside.map(|(key, resource)| Dependency {
            key: key.clone(),
            resource: Arc::clone(resource),
            membership: Membership::Outside,
        });
        members.chain(outside).collect()
    }

    /// Returns whether the object of the manifests at this index is Current by its write.
    pub(super) fn is_current_once_written(&self, index: usize, written: Written) -> bool {
        let resource = &self.desired.members[index].resource;
        self.dependencies
            .is_some_and(|gate| gate.is_current_once_written(resource, written))
    }
}

/// The objects of a step of prunes.
#[derive(Default)]
pub(crate) struct Held<'l> {
    /// They can be deleted.
    pub(crate) free: Vec<&'l Live>,
    /// They stay, because what depends on them stays.
    pub(crate) kept: Vec<ObjectOutcome>,
    /// They stay, because what depends on them is not gone yet.
    pub(crate) waiting: Vec<ObjectOutcome>,
    /// Whether anything was waited for: what was read before may have changed.
    has_waited: bool,
}

impl Held<'_> {
    /// Returns whether the objects that these may own have to be read again before the first delete.
    pub(crate) fn outdates_dependents(&self, interrupt: &Interrupt) -> bool {
        self.has_waited && !self.free.is_empty() && !interrupt.is_requested()
    }

    /// Reports what stays, and notes it in `left`.
    pub(crate) fn report(&self, left: &mut ObjectsKeptInsteadOfDeleted, sink: &mut Sink<'_>) {
        for outcome in self.kept.iter().chain(&self.waiting) {
            left.note(outcome);
            sink(Event::Object(outcome.clone()));
        }
    }
}

impl Execution<'_> {
    /// Waits until what depends on these objects is gone, and returns which of them can be deleted, and
    /// which are kept because something that depends on them stays. `left` are the objects whose planned
    /// delete did not happen.
    pub(crate) async fn hold_for_dependents<'l>(
        &self,
        wave: Vec<&'l Live>,
        left: &ObjectsKeptInsteadOfDeleted,
        sink: &mut Sink<'_>,
    ) -> Held<'l> {
        let mut held = Held::default();
        let dependents = |live: &Live| self.plan.edges.prune_after.get(&live.key).into_iter().flatten();
        if wave.iter().all(|live| dependents(live).next().is_none()) {
            held.free = wave;
            return held;
        }
        let mut rest = Vec::new();
        for live in wave {
            match dependents(live).find(|dependent| left.contains(dependent)) {
                Some(dependent) => held.kept.push(skipped(live, &dependent.key, "stays")),
                None => rest.push(live),
            }
        }
        let awaited: BTreeMap<&str, &Live> = rest
            .iter()
            .flat_map(|live| dependents(live))
            .map(|dependent| (dependent.uid.as_str(), dependent))
            .collect();
        let awaited: Vec<&Live> = awaited.into_values().collect();
        held.has_waited = !awaited.is_empty();
        let missed = match self.dependencies {
            _ if awaited.is_empty() || self.interrupt.is_requested() => BTreeSet::new(),
            Some(gate) => gate.gone(awaited, sink).await,
            None => awaited.iter().map(|live| live.key.clone()).collect(),
        };
        for live in rest {
            match dependents(live).find(|dependent| missed.contains(&dependent.key)) {
                Some(dependent) => held
                    .waiting
                    .push(skipped(live, &dependent.key, "is not gone yet")),
                None => held.free.push(live),
            }
        }
        held
    }
}

fn skipped(live: &Live, dependent: &ObjectKey, state: &str) -> ObjectOutcome {
    let subject = Subject::new(&live.key, &live.resource, Some(&live.uid));
    let reason = format!("{dependent} depends on it, and {state}");
    ObjectOutcome::with_reason(subject, Action::Skipped, reason)
}
