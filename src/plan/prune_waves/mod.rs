//! The order of prunes: the reverse of that of applying, but for objects that are pruned last, and for
//! objects that others depend on.
//!
//! A namespace or CRD that holds an object which is pruned last is pruned last as well: deleting it
//! would delete the object before its turn. So is what such an object depends on.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::container::holds_parent_of;
use super::container_index::{ContainerIndex, Kept};
use super::waves::Wave;
use super::{Plan, Policy, PruneWhen, Skip, SkipReason};
use crate::model::depends_on::DEPENDS_ON;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::order::{Graph, Rank};
use crate::model::prune_order::PruneOrder;
use crate::model::set::Set;
use crate::model::text::listed;

/// The prunes in their order.
#[derive(Debug, Default)]
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
    /// to be gone before. What the parent lives in is deleted after the parent, so nothing waits for it.
    pub(super) fn of(set: &Set, prunes: Vec<Live>, skips: &[Skip]) -> Self {
        let faulty = prunes.iter().chain(skips.iter().map(|skip| &skip.live));
        let faults = faulty.filter_map(|live| Some((live, live.dependencies.fault.as_ref()?)));
        let ignored = faults
            .map(|(live, fault)| format!("{}: annotation {DEPENDS_ON} is ignored: {fault}", live.key))
            .collect();
        let mut steps = Self {
            ignored,
            ..Self::default()
        };
        let keys: HashSet<ObjectKey> = prunes.iter().map(|live| live.key.clone()).collect();
        let going = skips
            .iter()
            .filter(|skip| matches!(skip.reason, SkipReason::Terminating { .. }));
        let dependents = prunes.iter().chain(going.map(|skip| &skip.live));
        for live in dependents.filter(|live| !holds_parent_of(set, live)) {
            for dependency in &live.dependencies.objects {
                if keys.contains(dependency) && *dependency != live.key {
                    let after = steps.after.entry(dependency.clone()).or_default();
                    after.push(live.clone());
                }
            }
        }
        let ranks = steps.ranks(&prunes);
        let last = last_of(&prunes);
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
        steps.regular = regular.into_values().collect();
        steps.last = lasts.into_values().collect();
        steps
    }

    /// Ranks prunes. Dependencies that form a cycle are forgotten, so that a set can always be deleted.
    fn ranks(&mut self, prunes: &[Live]) -> Vec<Rank> {
        let wave = |live: &Live| Wave::ALL.len() - 1 - Wave::of(&live.key.group_kind) as usize;
        if self.after.is_empty() {
            return prunes.iter().map(|live| Rank::of_wave(wave(live))).collect();
        }
        let places = prunes.iter().enumerate();
        let places: HashMap<&ObjectKey, usize> = places.map(|(place, live)| (&live.key, place)).collect();
        let mut graph = Graph::new(prunes.iter().map(wave));
        for (dependency, dependents) in &self.after {
            for earlier in dependents.iter().filter_map(|live| places.get(&live.key)) {
                graph.order(*earlier, places[dependency]);
            }
        }
        let index = ContainerIndex::of(prunes.iter().map(|live| &live.key));
        for (later, container) in prunes.iter().enumerate() {
            for held in index.held_by(container) {
                graph.order(places[*held], later);
            }
        }
        loop {
            let cycle = match graph.ranks() {
                Ok(ranks) => return ranks,
                Err(cycle) => cycle,
            };
            let next = cycle.iter().cycle().skip(1);
            for (later, earlier) in cycle.iter().zip(next) {
                let (dependency, dependent) = (&prunes[*later].key, &prunes[*earlier].key);
                if let Some(after) = self.after.get_mut(dependency)
                    && after.iter().any(|live| live.key == *dependent)
                {
                    after.retain(|live| live.key != *dependent);
                    graph.forget(*earlier, *later);
                }
            }
            let path = cycle.iter().chain(cycle.first()).rev();
            let path: Vec<String> = path.map(|place| prunes[*place].key.to_string()).collect();
            self.ignored.push(format!(
                "dependencies form a cycle and are ignored: {}",
                path.join(" -> ")
            ));
        }
    }
}

/// The objects that are pruned last: by their annotation, because they hold one, or because one depends
/// on them.
fn last_of(prunes: &[Live]) -> BTreeSet<ObjectKey> {
    let last = prunes.iter().filter(|live| live.prune_order == PruneOrder::Last);
    let mut last: BTreeSet<ObjectKey> = last.map(|live| live.key.clone()).collect();
    loop {
        let held: Kept = last.iter().collect();
        let is_last = |live: &&Live| last.contains(&live.key);
        let dependencies = prunes.iter().filter(is_last);
        let needed: HashSet<&ObjectKey> = dependencies.flat_map(|live| &live.dependencies.objects).collect();
        let more = prunes.iter().filter(|live| {
            let follows = held.held_by(live).is_some() || needed.contains(&live.key);
            follows && !last.contains(&live.key)
        });
        let more: Vec<ObjectKey> = more.map(|live| live.key.clone()).collect();
        if more.is_empty() {
            return last;
        }
        last.extend(more);
    }
}

impl Plan {
    /// Returns the time of a prune as a clause; empty if it only follows the applies.
    pub fn prune_time(&self, live: &Live, policy: &Policy) -> String {
        let mut clauses = Vec::new();
        if policy.prune_when == PruneWhen::Ready {
            clauses.push("once all objects of the manifests are Current".to_owned());
        }
        let is_it = |last: &Live| last.uid == live.uid;
        if live.prune_order == PruneOrder::Last {
            clauses.push("last, because of PruneLast=true".to_owned());
        } else if self.last_prunes.iter().flatten().any(is_it) {
            clauses.push("last, because of another object with PruneLast=true".to_owned());
        }
        let dependents = self.edges.prune_after.get(&live.key);
        if let Some(dependents) = dependents.filter(|dependents| !dependents.is_empty()) {
            let keys = dependents.iter().map(|dependent| &dependent.key);
            clauses.push(format!("once these are gone that depend on it: {}", listed(keys)));
        }
        clauses.join(", ")
    }

    /// Returns a line for each time at which objects are pruned, with these objects. Prunes that only
    /// follow the applies have none.
    pub fn prune_times(&self, policy: &Policy) -> Vec<String> {
        let mut times: BTreeMap<String, Vec<&ObjectKey>> = BTreeMap::new();
        for live in self.all_prunes() {
            let objects = times.entry(self.prune_time(live, policy)).or_default();
            objects.push(&live.key);
        }
        times.remove("");
        let times = times.into_iter();
        times
            .map(|(time, objects)| format!("pruned {time}: {}", listed(objects)))
            .collect()
    }
}

#[cfg(test)]
mod tests;
