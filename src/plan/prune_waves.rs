//! The order of prunes: the reverse of that of applying, but for objects that are pruned last.
//!
//! A namespace or CRD that holds an object which is pruned last is pruned last as well: deleting it
//! would delete the object before its turn.

use std::collections::BTreeMap;

use super::container_index::Kept;
use super::waves::Wave;
use super::{Plan, Policy, PruneWhen};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::prune_order::PruneOrder;
use crate::model::text::listed;

/// Sorts prunes into waves, and into waves that come after these.
pub(super) fn in_order(prunes: Vec<Live>) -> (Vec<Vec<Live>>, Vec<Vec<Live>>) {
    let last = prunes.iter().filter(|live| live.prune_order == PruneOrder::Last);
    let held: Kept = last.map(|live| &live.key).collect();
    let is_last = |live: &Live| live.prune_order == PruneOrder::Last || held.held_by(live).is_some();
    let (last, regular) = prunes.into_iter().partition(is_last);
    (in_reverse_waves(regular), in_reverse_waves(last))
}

/// Sorts prunes into waves, in reverse of the order of applying.
fn in_reverse_waves(prunes: Vec<Live>) -> Vec<Vec<Live>> {
    let mut waves = vec![Vec::new(); Wave::ALL.len()];
    for live in prunes {
        waves[Wave::of(&live.key.group_kind) as usize].push(live);
    }
    for wave in &mut waves {
        wave.sort_by(|one, other| one.key.cmp(&other.key));
    }
    waves.into_iter().rev().filter(|wave| !wave.is_empty()).collect()
}

impl Plan {
    /// Returns the time of a prune as a clause; empty if it only follows the applies.
    pub fn prune_time(&self, live: &Live, policy: &Policy) -> String {
        let gate = match policy.prune_when {
            PruneWhen::Applied => None,
            PruneWhen::Ready => Some("once all objects of the manifests are Current"),
        };
        let is_it = |last: &Live| last.uid == live.uid;
        let last = match live.prune_order {
            PruneOrder::Last => Some("last, because of PruneLast=true"),
            PruneOrder::Regular if self.last_prunes.iter().flatten().any(is_it) => {
                Some("last, because it holds an object with PruneLast=true")
            }
            PruneOrder::Regular => None,
        };
        let clauses: Vec<&str> = gate.into_iter().chain(last).collect();
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
mod tests {
    use super::*;
    use crate::model::identity::GroupKind;
    use crate::plan::fixtures::live;

    fn names(waves: &[Vec<Live>]) -> Vec<Vec<&str>> {
        waves
            .iter()
            .map(|wave| wave.iter().map(|live| live.key.name.as_str()).collect())
            .collect()
    }

    fn last(live: Live) -> Live {
        Live {
            prune_order: PruneOrder::Last,
            ..live
        }
    }

    #[test]
    fn prunes_go_in_reverse_waves() {
        let prunes = vec![
            live("Namespace", None, "shop"),
            live("ConfigMap", Some("shop"), "b"),
            live("ConfigMap", Some("shop"), "a"),
            live("Deployment.apps", Some("shop"), "web"),
        ];
        let (regular, last) = in_order(prunes);
        assert_eq!(names(&regular), [vec!["web"], vec!["a", "b"], vec!["shop"]]);
        assert_eq!(names(&last), Vec::<Vec<&str>>::new());
    }

    #[test]
    fn what_holds_an_object_that_is_pruned_last_is_pruned_after_it() {
        let definition = Live {
            defines: Some(GroupKind::new("example.com", "Widget")),
            ..live("CustomResourceDefinition.apiextensions.k8s.io", None, "widgets")
        };
        let prunes = vec![
            definition,
            live("Namespace", None, "shop"),
            live("Namespace", None, "other"),
            last(live("Widget.example.com", Some("shop"), "late")),
            live("Widget.example.com", Some("shop"), "early"),
            live("ConfigMap", Some("shop"), "early"),
        ];
        let (regular, last) = in_order(prunes);
        assert_eq!(names(&regular), [vec!["early"], vec!["early"], vec!["other"]]);
        assert_eq!(names(&last), [vec!["late"], vec!["widgets", "shop"]]);
    }
}
