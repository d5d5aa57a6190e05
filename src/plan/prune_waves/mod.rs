//! The order of prunes: the reverse of the order of applying, with three exceptions. Objects with `PruneLast=true` are
//! pruned last, an object is pruned after its dependents, and what an `APIService` serves is pruned first: then the
//! server behind it still answers. The `APIService` is one of their dependencies.
//!
//! The namespace or CRD of an object that is pruned last is pruned last as well: deleting it earlier would delete the
//! object with it. The dependencies of such an object are pruned last, too, because the object still needs them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::apply_order_of_kinds::Wave;
use super::containers::holds_parent_of;
use super::containers::{ContainerIndex, KeptObjects};
use super::dependencies::ignored_dependency_warnings;
use super::{Plan, Policy, PruneWhen, ReasonToKeep, Skip};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::set::Set;
use crate::model::text::first_names_and_more;
use crate::model::topological_ranks::{DependencyGraph, Rank};
use crate::model::user_annotations::PruneOrder;

/// The prunes in their order.
#[derive(Debug)]
pub(super) struct PruneSteps {
    /// The steps of the other prunes, which come first.
    pub(super) regular: Vec<Vec<Live>>,
    /// The steps of objects that are pruned last.
    pub(super) last: Vec<Vec<Live>>,
    /// Key: a pruned object. Value: its dependents, which have to be gone before it is deleted.
    pub(super) after: BTreeMap<ObjectKey, Vec<Live>>,
    /// Warnings about dependencies that are ignored.
    pub(super) ignored: Vec<String>,
}

impl PruneSteps {
    /// Sorts prunes into steps. If an object of `skips` is already being deleted and depends on a prune, the prune
    /// begins only once that object is gone.
    pub(super) fn new(set: &Set, prunes: Vec<Live>, skips: &[Skip]) -> Self {
        let all = prunes.iter().chain(skips.iter().map(|skip| &skip.live));
        let mut leaving = LeavingObjects::new(set, &prunes, skips);
        let mut ignored: Vec<String> = all.flat_map(ignored_dependency_warnings).collect();
        let ranks = leaving.rank_prunes_or_drop_dependencies(&mut ignored);
        let after = leaving.find_dependents_by_prune();
        let pruned_last = leaving.find_pruned_last();
        let mut regular: BTreeMap<Rank, Vec<Live>> = BTreeMap::new();
        let mut last: BTreeMap<Rank, Vec<Live>> = BTreeMap::new();
        for (live, rank) in prunes.into_iter().zip(ranks) {
            let part = if pruned_last.contains(&live.key) {
                &mut last
            } else {
                &mut regular
            };
            part.entry(rank).or_default().push(live);
        }
        for wave in regular.values_mut().chain(last.values_mut()) {
            wave.sort_by(|one, other| one.key.cmp(&other.key));
        }
        Self {
            regular: regular.into_values().collect(),
            last: last.into_values().collect(),
            after,
            ignored,
        }
    }
}

/// An edge between objects of [`LeavingObjects`]: the first is deleted before the second. Both are indexes.
type OrderEdge = (usize, usize);

/// The objects that leave a set, with the order among them.
struct LeavingObjects<'l> {
    /// The objects that the run deletes, followed by the objects that are already being deleted: these may be part of a
    /// dependency cycle that an earlier run has begun to delete.
    objects: Vec<&'l Live>,
    /// The number of `objects` that the run deletes.
    prune_count: usize,
    /// The dependencies: a dependent, and what it depends on. Those of `served` are among them.
    edges: BTreeSet<OrderEdge>,
    /// The objects that an `APIService` serves, each with that `APIService`.
    served: BTreeSet<OrderEdge>,
    /// The objects in a namespace or of a CRD, each with that container: deleting the container deletes its objects.
    contained: Vec<OrderEdge>,
}

impl<'l> LeavingObjects<'l> {
    fn new(set: &Set, prunes: &'l [Live], skips: &'l [Skip]) -> Self {
        let terminating = skips
            .iter()
            .filter(|skip| matches!(skip.reason, ReasonToKeep::Terminating { .. }));
        let objects: Vec<&Live> = prunes.iter().chain(terminating.map(|skip| &skip.live)).collect();
        let indexes: HashMap<&ObjectKey, usize> = index_by_key(&objects);
        let (served, contained): (Vec<OrderEdge>, Vec<OrderEdge>) =
            edges_from_contents_to_containers(&objects, &indexes)
                .into_iter()
                .partition(|(_, container)| objects[*container].key.group_kind.is_api_service());
        // What is deleted after the parent must not be waited for; see below.
        let served = served
            .into_iter()
            .filter(|(object, _)| !holds_parent_of(set, objects[*object]));
        let served: BTreeSet<OrderEdge> = served.collect();
        let mut edges = served.clone();
        for (dependent, live) in objects.iter().enumerate() {
            let dependencies = live.dependencies.objects.iter();
            for dependency in dependencies.filter_map(|key| indexes.get(key).copied()) {
                // The parent's own namespace or CRD is deleted after the parent, and so after all other members. Those
                // must not wait until it is gone, even if it depends on them.
                let is_possible = !holds_parent_of(set, live) || holds_parent_of(set, objects[dependency]);
                if dependency != dependent && is_possible {
                    edges.insert((dependent, dependency));
                }
            }
        }
        Self {
            prune_count: prunes.len(),
            objects,
            edges,
            served,
            contained,
        }
    }

    /// Ranks the prunes. If dependencies form a cycle, all are dropped, so that a set can always be deleted; `warnings`
    /// gets a warning. The order is then that of the waves. The dependencies on an `APIService` are dropped only if they
    /// form a cycle themselves.
    fn rank_prunes_or_drop_dependencies(&mut self, warnings: &mut Vec<String>) -> Vec<Rank> {
        while !self.edges.is_empty() {
            let mut graph = DependencyGraph::new(self.waves());
            for (earlier, later) in self.edges.iter().chain(&self.contained) {
                graph.add_edge(*earlier, *later);
            }
            match graph.ranks() {
                Ok(mut ranks) => {
                    ranks.truncate(self.prune_count);
                    return ranks;
                }
                Err(cycle) => {
                    let names: Vec<String> = cycle
                        .iter()
                        .chain(cycle.first())
                        .rev()
                        .map(|index| self.objects[*index].key.to_string())
                        .collect();
                    warnings.push(format!(
                        "dependencies form a cycle, so objects are deleted in the order of their kinds: {}",
                        names.join(" -> ")
                    ));
                    if self.edges == self.served {
                        self.served.clear();
                    }
                    self.edges.clone_from(&self.served);
                }
            }
        }
        self.objects[..self.prune_count]
            .iter()
            .map(|live| Rank::for_wave(prune_wave_of(live)))
            .collect()
    }

    /// Returns the wave of each object: that of its kind, or the first one if an `APIService` serves the object.
    fn waves(&self) -> impl Iterator<Item = usize> {
        let served: HashSet<usize> = self.served.iter().map(|(object, _)| *object).collect();
        let objects = self.objects.iter().enumerate();
        objects.map(move |(index, live)| {
            if served.contains(&index) {
                0
            } else {
                prune_wave_of(live)
            }
        })
    }

    /// Returns the dependents of each prune. They have to be gone before the prune is deleted.
    fn find_dependents_by_prune(&self) -> BTreeMap<ObjectKey, Vec<Live>> {
        let mut dependents_of: BTreeMap<ObjectKey, Vec<Live>> = BTreeMap::new();
        let edges = self.edges.iter();
        for (dependent, dependency) in edges.filter(|(_, dependency)| *dependency < self.prune_count) {
            let key = self.objects[*dependency].key.clone();
            let dependents = dependents_of.entry(key).or_default();
            dependents.push(self.objects[*dependent].clone());
        }
        dependents_of
    }

    /// Returns the objects that are pruned last: objects with `PruneLast=true`, and their containers and dependencies.
    fn find_pruned_last(&self) -> BTreeSet<ObjectKey> {
        let (mut last, mut others): (Vec<&Live>, Vec<&Live>) = self
            .objects
            .iter()
            .partition(|live| live.prune_order == PruneOrder::Last);
        loop {
            let last_keys: KeptObjects = last.iter().map(|live| &live.key).collect();
            let needed: HashSet<&ObjectKey> =
                last.iter().flat_map(|live| &live.dependencies.objects).collect();
            let (more, rest): (Vec<&Live>, Vec<&Live>) = others
                .into_iter()
                .partition(|live| last_keys.kept_object_in(live).is_some() || needed.contains(&live.key));
            if more.is_empty() {
                return last.into_iter().map(|live| live.key.clone()).collect();
            }
            last.extend(more);
            others = rest;
        }
    }
}

/// Returns an edge from each object in a container to the container.
fn edges_from_contents_to_containers(
    objects: &[&Live],
    indexes: &HashMap<&ObjectKey, usize>,
) -> Vec<OrderEdge> {
    let containers = ContainerIndex::new(objects.iter().map(|live| &live.key));
    let mut edges = Vec::new();
    for (container, live) in objects.iter().enumerate() {
        let contents = containers.objects_in(live).iter();
        let before_container = contents.map(|key| (indexes[*key], container));
        edges.extend(before_container.filter(|(object, _)| *object != container));
    }
    edges
}

fn index_by_key<'l>(objects: &[&'l Live]) -> HashMap<&'l ObjectKey, usize> {
    objects
        .iter()
        .enumerate()
        .map(|(index, live)| (&live.key, index))
        .collect()
}

/// Returns the index of the object's wave in the order of pruning, which is the reverse of [`Wave::ALL`].
fn prune_wave_of(live: &Live) -> usize {
    Wave::ALL.len() - 1 - Wave::for_kind(&live.key.group_kind) as usize
}

impl Plan {
    /// Returns the times of prunes as clauses, such as `last, because of PruneLast=true`, by UID. A prune that only has
    /// to follow the applies has none.
    pub fn describe_prune_times(&self, policy: &Policy) -> HashMap<&str, String> {
        let last: HashSet<&str> = self.last_prunes.iter().flatten().map(|live| &*live.uid).collect();
        self.all_prunes()
            .map(|live| (&*live.uid, self.describe_prune_time(live, &last, policy)))
            .filter(|(_, time)| !time.is_empty())
            .collect()
    }

    /// Returns the time of one prune; empty if it only has to follow the applies. `last` are the UIDs of the last
    /// prunes.
    fn describe_prune_time(&self, live: &Live, last: &HashSet<&str>, policy: &Policy) -> String {
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
            clauses.push(format!(
                "once these dependents are gone: {}",
                first_names_and_more(keys)
            ));
        }
        clauses.join(", ")
    }

    /// Returns a line for each time of [`Self::describe_prune_times`], with the objects that are pruned then.
    pub fn describe_prunes_by_time(&self, policy: &Policy) -> Vec<String> {
        let times = self.describe_prune_times(policy);
        let mut objects: BTreeMap<&str, Vec<&ObjectKey>> = BTreeMap::new();
        for live in self.all_prunes() {
            if let Some(time) = times.get(&*live.uid) {
                objects.entry(time).or_default().push(&live.key);
            }
        }
        let lines = objects.into_iter();
        lines
            .map(|(time, objects)| format!("{}: pruned {time}", first_names_and_more(objects)))
            .collect()
    }
}

#[cfg(test)]
mod tests;
