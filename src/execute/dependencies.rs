//! The order by dependency: an object is applied when what it depends on is Current, and deleted when
//! what depends on it is gone.
//!
//! What an object depends on comes in an earlier step of the plan (`plan::dependencies`). The caller
//! waits, because `execute` stands left of `wait`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;

use super::deletion::object::LeftInPlace;
use super::{Applied, Execution, Interrupt, Sink};
use crate::event::{Action, Event, NotDone, ObjectOutcome, Phase, Subject};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::model::settings::DryRun;
use crate::model::text::listed;
use crate::plan::{Apply, Edges};

/// Waits for objects that others depend on.
pub trait DependencyGate {
    /// Waits until these objects are Current, and returns those that are not.
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
    /// Those that this run has changed, and not waited for since.
    changed: BTreeSet<ObjectKey>,
    /// Those that became Current in this run.
    ready: BTreeSet<ObjectKey>,
    /// Those that did not, or could not be applied, each with the reason.
    unready: BTreeMap<ObjectKey, &'static str>,
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
            ..Self::default()
        }
    }

    /// Notes what became of an object.
    pub(super) fn note(&mut self, outcome: &ObjectOutcome) {
        if self.named.is_empty() {
            return;
        }
        let key = outcome.subject.key();
        if !self.named.contains(&key) {
            return;
        }
        match outcome.action {
            Action::Created | Action::Configured => {
                self.changed.insert(key);
            }
            Action::Failed | Action::Skipped => self.fail(key),
            _ => {}
        }
    }

    /// Notes that an object was not applied.
    pub(super) fn fail(&mut self, key: ObjectKey) {
        self.unready.insert(key, NOT_APPLIED);
    }
}

impl Execution<'_> {
    /// Waits for what the objects of a step depend on, and returns those objects that can be applied.
    /// The others are skipped, and make the run fail.
    pub(super) async fn await_dependencies<'w>(
        &self,
        step: Vec<&'w Apply>,
        applied: &mut Applied,
        sink: &mut Sink<'_>,
    ) -> Vec<&'w Apply> {
        if applied.dependencies.named.is_empty() {
            return step;
        }
        let awaited = self.awaited(&step, &applied.dependencies);
        if !awaited.is_empty() {
            let keys: Vec<ObjectKey> = awaited.iter().map(|dependency| dependency.key.clone()).collect();
            let missed = match self.dependencies {
                Some(gate) => gate.current(awaited, sink).await,
                None => keys.iter().cloned().collect(),
            };
            if self.interrupt.is_requested() {
                // Nothing of the step is begun.
                return step;
            }
            sink(Event::Phase {
                phase: Phase::Applying,
                total: step.len(),
            });
            let states = &mut applied.dependencies;
            for key in keys {
                states.changed.remove(&key);
                if missed.contains(&key) {
                    states.unready.insert(key, NOT_CURRENT);
                } else {
                    states.ready.insert(key);
                }
            }
        }
        let mut hopeless: BTreeMap<ObjectKey, Vec<ObjectKey>> = BTreeMap::new();
        let mut hopeful = Vec::new();
        for apply in step {
            let member = &self.desired.members[apply.index];
            let mut depends_on = member.depends_on.iter();
            match depends_on.find(|key| applied.dependencies.unready.contains_key(key)) {
                None => hopeful.push(apply),
                Some(key) => {
                    let dependents = hopeless.entry(key.clone()).or_default();
                    dependents.push(member.key.clone());
                }
            }
        }
        for (dependency, dependents) in hopeless {
            let state = applied.dependencies.unready[&dependency];
            applied.failed += dependents.len();
            sink(Event::failure(format!(
                "{dependency} {state}, so these objects that depend on it are not applied: {}",
                listed(&dependents)
            )));
            for dependent in &dependents {
                applied.dependencies.fail(dependent.clone());
            }
            let reason = format!("it depends on {dependency}, which {state}");
            sink(NotDone::some(dependents, reason));
        }
        hopeful
    }

    /// The objects that have to become Current before a step. What was Current when it was read, and
    /// has not changed since, is not waited for.
    fn awaited(&self, step: &[&Apply], states: &DependencyStates) -> Vec<Dependency> {
        let known = &self.plan.edges.known;
        let named = step
            .iter()
            .flat_map(|apply| &self.desired.members[apply.index].depends_on);
        let is_awaited = |key: &&ObjectKey| {
            let was_current = known.current.contains(*key) && !states.changed.contains(*key);
            !was_current && !states.ready.contains(*key) && !states.unready.contains_key(*key)
        };
        let named: BTreeSet<&ObjectKey> = named.filter(is_awaited).collect();
        let members = self.desired.members.iter();
        let members = members.filter(|member| named.contains(&member.key));
        let members = members.map(|member| Dependency {
            key: member.key.clone(),
            resource: Arc::clone(&member.resource),
            membership: Membership::Member,
        });
        let outside = known.outside.iter().filter(|(key, _)| named.contains(key));
        let outside = outside.map(|(key, resource)| Dependency {
            key: key.clone(),
            resource: Arc::clone(resource),
            membership: Membership::Outside,
        });
        members.chain(outside).collect()
    }
}

/// Everything that deleting in the order of dependencies needs.
#[derive(Clone, Copy)]
pub(crate) struct DependentsFirst<'a> {
    pub(crate) edges: &'a Edges,
    pub(crate) gate: Option<&'a dyn DependencyGate>,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) dry_run: DryRun,
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
}

impl Held<'_> {
    /// Reports what stays, and notes it in `left`.
    pub(crate) fn report(&self, left: &mut LeftInPlace, sink: &mut Sink<'_>) {
        for outcome in self.kept.iter().chain(&self.waiting) {
            left.note(outcome);
            sink(Event::Object(outcome.clone()));
        }
    }
}

impl DependentsFirst<'_> {
    /// Waits until what depends on these objects is gone, and divides them by that. `left` are the
    /// objects that were to be deleted, and stay.
    pub(crate) async fn hold<'l>(
        &self,
        wave: Vec<&'l Live>,
        left: &LeftInPlace,
        sink: &mut Sink<'_>,
    ) -> Held<'l> {
        let mut held = Held::default();
        let dependents = |live: &Live| self.edges.prune_after.get(&live.key).into_iter().flatten();
        if self.dry_run != DryRun::None || wave.iter().all(|live| dependents(live).next().is_none()) {
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
        let missed = match self.gate {
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
    ObjectOutcome::because(subject, Action::Skipped, reason)
}
