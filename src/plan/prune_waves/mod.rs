//! The order of prunes: the reverse of that of applying, but for objects that are pruned last, and for
//! objects that others depend on.
//!
//! A namespace or CRD that holds an object which is pruned last is pruned last as well: deleting it
//! would delete the object before its turn. So is what such an object depends on.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::apply_order_of_kinds::Wave;
use super::containers::holds_parent_of;
use super::containers::{ContainerIndex, KeptObjects};
use super::dependencies::faults;
use super::{Plan, Policy, PruneWhen, Skip, SkipReason};
use crate::model::dependency_ranks::{DependencyGraph, Rank};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::set::Set;
use crate::model::text::listed;
use crate::model::user_annotations::PruneOrder;

/// The prunes in their order.
#[derive(Debug)]
pub(super) struct PruneSteps {
    /// The steps that come first.
    pub(super) regular: Vec<Vec<Live>>,
    /// The steps of what is pruned last.
    pub(super) last: Vec<Vec<Live>>,
    /// By pruned objects: those that depend on them, and have to be gone before.
    pub(super) after: BTreeMap<ObjectKey, Vec<Live>>,
    /// Dependencies that are ignored.
    pub(super) ignored: Vec<String>,
}

impl PruneSteps {
    /// Sorts prunes into steps. `skips` may depend on them as well: what is being deleted already has
    /// to be gone before. The parent's own namespace or CRD is deleted after the parent, so only such
    /// objects may wait for one.
    pub(super) fn new(set: &Set, prunes: Vec<Live>, skips: &[Skip]) -> Self {
        let read = prunes.iter().chain(skips.iter().map(|skip| &skip.live));
        let mut leaving = Leaving::new(set, &prunes, skips);
        let mut ignored: Vec<String> = read.flat_map(faults).collect();
        let ranks = leaving.ranks(&mut ignored);
        let after = leaving.after();
        let last = leaving.last();
        let mut regular: BTreeMap<Rank, Vec<Live>> = BTreeMap::new();
        let mut lasts: BTreeMap<Rank, Vec<Live>> = BTreeMap::new();
        for (live, rank) in prunes.into_iter().zip(ranks) {
            let part = if last.contains(&live.key) {
                &mut lasts
            } else {
                &mut regular
            };
            part.entry(rank).or_default().push(live);
        }
        for wave in regular.values_mut().chain(lasts.values_mut()) {
            wave.sort_by(|one, other| one.key.cmp(&other.key));
        }
        Self {
            regular: regular.into_values().collect(),
            last: lasts.into_values().collect(),
            after,
            ignored,
        }
    }
}

/// The objects that leave a set, with the order among them.
struct Leaving<'l> {
    /// The objects that the run deletes, and then those that are being deleted already: these may be
    /// part of a cycle that an earlier run has begun to delete.
    objects: Vec<&'l Live>,
    /// The number of those that the run deletes.
    prunes: usize,
    /// The dependencies by their places: what depends on another object, and that object.
    edges: BTreeSet<(usize, usize)>,
}

impl<'l> Leaving<'l> {
    fn new(set: &Set, prunes: &'l [Live], skips: &'l [Skip]) -> Self {
        let going = skips
            .iter()
            .filter(|skip| matches!(skip.reason, SkipReason::Terminating { .. }));
        let objects: Vec<&Live> = prunes.iter().chain(going.map(|skip| &skip.live)).collect();
        let places: HashMap<&ObjectKey, usize> = places(&objects);
        let is_home = |place: usize| holds_parent_of(set, objects[place]);
        let mut edges = BTreeSet::new();
        for (dependent, live) in objects.iter().enumerate() {
            let dependencies = live.dependencies.objects.iter();
            for dependency in dependencies.filter_map(|key| places.get(key).copied()) {
                if dependency != dependent && (!is_home(dependent) || is_home(dependency)) {
                    edges.insert((dependent, dependency));
                }
            }
        }
        Self {
            prunes: prunes.len(),
            objects,
            edges,
        }
    }

    /// Ranks the prunes. Dependencies that are part of a cycle are forgotten, so that a set can always
    /// be deleted; `ignored` gets the reason.
    fn ranks(&mut self, ignored: &mut Vec<String>) -> Vec<Rank> {
        let mut ranks = self.all_ranks(ignored);
        ranks.truncate(self.prunes);
        ranks
    }

    fn all_ranks(&mut self, ignored: &mut Vec<String>) -> Vec<Rank> {
        if self.edges.is_empty() {
            return self.ranks_by_wave();
        }
        let mut fixed = self.held();
        loop {
            let mut graph = DependencyGraph::new(self.objects.iter().map(|live| wave(live)));
            for (earlier, later) in self.edges.iter().chain(&fixed) {
                graph.add_edge(*earlier, *later);
            }
            let cycle = match graph.ranks() {
                Ok(ranks) => return ranks,
                Err(cycle) => cycle,
            };
            let on_cycles = graph.on_cycles_with(cycle[0]);
            let is_on = |edge: &(usize, usize)| on_cycles.contains(&edge.0) && on_cycles.contains(&edge.1);
            let forgotten: Vec<(usize, usize)> = self.edges.iter().copied().filter(is_on).collect();
            if forgotten.is_empty() {
                // Containers that hold each other: any order is as good as another.
                return self.ranks_by_wave();
            }
            self.edges.retain(|edge| !is_on(edge));
            // What one of them depends on comes after all of them, as one may be waiting for another.
            let leading = self.edges.iter().filter(|edge| on_cycles.contains(&edge.0));
            for (_, dependency) in leading {
                fixed.extend(on_cycles.iter().map(|place| (*place, *dependency)));
            }
            ignored.push(self.cycle_text(&cycle, &forgotten));
        }
    }

    /// Returns a warning about one cycle, which also names dependencies dropped from other cycles that share
    /// objects with it.
    fn cycle_text(&self, cycle: &[usize], forgotten: &[(usize, usize)]) -> String {
        let name = |place: usize| self.objects[place].key.to_string();
        let path: Vec<String> = cycle
            .iter()
            .chain(cycle.first())
            .rev()
            .copied()
            .map(name)
            .collect();
        let next = cycle.iter().cycle().skip(1);
        let shown: BTreeSet<_> = next.copied().zip(cycle.iter().copied()).collect();
        let others: Vec<String> = forgotten
            .iter()
            .filter(|edge| !shown.contains(edge))
            .map(|(dependent, dependency)| format!("{} -> {}", name(*dependent), name(*dependency)))
            .collect();
        let text = format!("dependencies form a cycle and are ignored: {}", path.join(" -> "));
        if others.is_empty() {
            text
        } else {
            format!(
                "{text}; other cycles through it are ignored, too: {}",
                listed(others)
            )
        }
    }

    fn ranks_by_wave(&self) -> Vec<Rank> {
        self.objects
            .iter()
            .map(|live| Rank::for_wave(wave(live)))
            .collect()
    }

    /// Returns what containers hold, by places: the object, and the container. It is never forgotten:
    /// deleting a container deletes what it holds.
    fn held(&self) -> Vec<(usize, usize)> {
        let places = places(&self.objects);
        let index = ContainerIndex::new(self.objects.iter().map(|live| &live.key));
        let mut edges = Vec::new();
        for (container, live) in self.objects.iter().enumerate() {
            let held = index.objects_in(live).iter().map(|key| (places[*key], container));
            edges.extend(held.filter(|(held, _)| *held != container));
        }
        edges
    }

    /// Returns the dependents of each prune that have to be gone before it.
    fn after(&self) -> BTreeMap<ObjectKey, Vec<Live>> {
        let mut after: BTreeMap<ObjectKey, Vec<Live>> = BTreeMap::new();
        let edges = self.edges.iter();
        for (dependent, dependency) in edges.filter(|(_, dependency)| *dependency < self.prunes) {
            let dependents = after.entry(self.objects[*dependency].key.clone()).or_default();
            dependents.push(self.objects[*dependent].clone());
        }
        after
    }

    /// Returns the objects that are pruned last: by their annotation, because they hold one, or because
    /// one depends on them.
    fn last(&self) -> BTreeSet<ObjectKey> {
        let (mut last, mut others): (Vec<&Live>, Vec<&Live>) = self
            .objects
            .iter()
            .partition(|live| live.prune_order == PruneOrder::Last);
        loop {
            let held: KeptObjects = last.iter().map(|live| &live.key).collect();
            let needed: HashSet<&ObjectKey> =
                last.iter().flat_map(|live| &live.dependencies.objects).collect();
            let (more, rest): (Vec<&Live>, Vec<&Live>) = others
                .into_iter()
                .partition(|live| held.kept_object_in(live).is_some() || needed.contains(&live.key));
            if more.is_empty() {
                return last.into_iter().map(|live| live.key.clone()).collect();
            }
            last.extend(more);
            others = rest;
        }
    }
}

fn places<'l>(objects: &[&'l Live]) -> HashMap<&'l ObjectKey, usize> {
    let places = objects.iter().enumerate();
    places.map(|(place, live)| (&live.key, place)).collect()
}

fn wave(live: &Live) -> usize {
    Wave::ALL.len() - 1 - Wave::for_kind(&live.key.group_kind) as usize
}

impl Plan {
    /// Returns the times of prunes as clauses, by UID. What only follows the applies has none.
    pub fn prune_times(&self, policy: &Policy) -> HashMap<&str, String> {
        let last: HashSet<&str> = self.last_prunes.iter().flatten().map(|live| &*live.uid).collect();
        let prunes = self.all_prunes();
        let times = prunes.map(|live| (&*live.uid, self.prune_time(live, &last, policy)));
        times.filter(|(_, time)| !time.is_empty()).collect()
    }

    fn prune_time(&self, live: &Live, last: &HashSet<&str>, policy: &Policy) -> String {
        let mut clauses = Vec::new();
        if policy.prune_when == PruneWhen::Ready {
            clauses.push("once all objects of the manifests are Current".to_owned());
        }
        if live.prune_order == PruneOrder::Last {
            clauses.push("last, because of PruneLast=true".to_owned());
        } else if last.contains(&*live.uid) {
            clauses.push("last, because of another object with PruneLast=true".to_owned());
        }
        let dependents = self.edges.prune_after.get(&live.key);
        if let Some(dependents) = dependents.filter(|dependents| !dependents.is_empty()) {
            let keys = dependents.iter().map(|dependent| &dependent.key);
            clauses.push(format!("once these dependents are gone: {}", listed(keys)));
        }
        clauses.join(", ")
    }

    /// Returns a line for each time at which objects are pruned, with these objects.
    pub fn prune_time_lines(&self, policy: &Policy) -> Vec<String> {
        let times = self.prune_times(policy);
        let mut objects: BTreeMap<&str, Vec<&ObjectKey>> = BTreeMap::new();
        for live in self.all_prunes() {
            if let Some(time) = times.get(&*live.uid) {
                objects.entry(time).or_default().push(&live.key);
            }
        }
        let lines = objects.into_iter();
        lines
            .map(|(time, objects)| format!("{}: pruned {time}", listed(objects)))
            .collect()
    }
}

#[cfg(test)]
mod tests;
