//! The order by dependency: steps of applies, in which each object comes after what it depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::apply_order_of_kinds::Wave;
use super::{Apply, Plan};
use crate::manifest::desired::{self, Desired, DesiredObject};
use crate::model::dependency_ranks::Rank;
use crate::model::depends_on::{DEPENDS_ON, Dependencies};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::model::text::listed;

/// What is known of the objects that the manifests depend on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownDependencies {
    /// Those that were Current when they were read.
    pub current: BTreeSet<ObjectKey>,
    /// Those that are not among the manifests.
    pub outside: BTreeMap<ObjectKey, Arc<Resource>>,
}

/// The edges that a run observes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edges {
    /// What is known of the objects that the manifests depend on.
    pub known: KnownDependencies,
    /// By objects to prune: those that depend on them, and have to be gone before.
    pub prune_after: BTreeMap<ObjectKey, Vec<Live>>,
    /// The objects that members depend on as they are in the cluster, each with one of these.
    pub needed: BTreeMap<ObjectKey, ObjectKey>,
    /// Dependencies of live objects that are ignored, each with the reason.
    pub ignored: Vec<String>,
}

/// Returns the objects that these live ones depend on, each with one of these.
pub(super) fn list_dependencies<'l>(
    members: impl Iterator<Item = &'l Live>,
) -> impl Iterator<Item = (&'l ObjectKey, &'l ObjectKey)> {
    members.flat_map(|live| {
        let objects = live.dependencies.objects.iter();
        objects.map(|key| (key, &live.key))
    })
}

/// Returns the faults of what a live object depends on, each as a warning.
pub(super) fn faults(live: &Live) -> Vec<String> {
    let Dependencies { objects, fault } = &live.dependencies;
    let mut faults = Vec::new();
    if let Some(fault) = fault {
        faults.push(format!(
            "{}: annotation {DEPENDS_ON} is ignored: {fault}",
            live.key
        ));
    }
    for key in objects.iter().filter(|key| **key == live.key) {
        faults.push(format!(
            "{key}: annotation {DEPENDS_ON}: the dependency on itself is ignored"
        ));
    }
    faults
}

/// Sorts applies into steps. Each is one wave, or the part of a wave that depends on no more than the
/// steps before it.
pub(super) fn steps(desired: &Desired, applies: Vec<Apply>) -> Vec<Vec<Apply>> {
    let wave = |object: &DesiredObject| Wave::for_kind(&object.key.group_kind) as usize;
    let graph = desired::graph(&desired.members, wave);
    // Manifests with a cycle are refused when they are read.
    let ranks = graph.and_then(|graph| graph.ranks().ok());
    let mut steps: BTreeMap<Rank, Vec<Apply>> = BTreeMap::new();
    for apply in applies {
        let rank = match &ranks {
            Some(ranks) => ranks[apply.index],
            None => Rank::for_wave(wave(&desired.members[apply.index])),
        };
        steps.entry(rank).or_default().push(apply);
    }
    steps.into_values().collect()
}

impl Plan {
    /// Returns a line for each object that others have to wait for before they are applied, with these
    /// objects.
    pub fn apply_times(&self, desired: &Desired) -> Vec<String> {
        let applied: BTreeSet<usize> = self.all_applies().map(|apply| apply.index).collect();
        let keys: BTreeSet<&ObjectKey> = applied.iter().map(|index| &desired.members[*index].key).collect();
        let current = &self.edges.known.current;
        let mut times: BTreeMap<&ObjectKey, Vec<&ObjectKey>> = BTreeMap::new();
        for index in &applied {
            let member = &desired.members[*index];
            for dependency in &member.depends_on {
                if !current.contains(dependency) || keys.contains(dependency) {
                    times.entry(dependency).or_default().push(&member.key);
                }
            }
        }
        times
            .into_iter()
            .map(|(dependency, objects)| format!("applied once {dependency} is Current: {}", listed(objects)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::LiveMembership;
    use crate::plan::fixtures::desired as object;

    fn steps_of(members: Vec<DesiredObject>) -> Vec<Vec<String>> {
        let applies = (0..members.len()).map(|index| Apply {
            index,
            live_membership: LiveMembership::NotAMember,
        });
        let desired = Desired {
            members,
            ..Desired::default()
        };
        let name = |apply: &Apply| desired.members[apply.index].key.name.clone();
        let steps = steps(&desired, applies.collect());
        steps.iter().map(|step| step.iter().map(name).collect()).collect()
    }

    fn after(object: DesiredObject, before: &[&DesiredObject]) -> DesiredObject {
        DesiredObject {
            depends_on: before.iter().map(|before| before.key.clone()).collect(),
            ..object
        }
    }

    #[test]
    fn an_object_is_applied_after_what_it_depends_on() {
        let shop = Some("shop");
        let database = object("StatefulSet.apps", shop, "db");
        let schema = after(object("Job.batch", shop, "schema"), &[&database]);
        let web = after(object("Deployment.apps", shop, "web"), &[&schema, &database]);
        let late = after(object("ConfigMap", shop, "late"), &[&web]);
        let early = object("ConfigMap", shop, "early");
        let namespace = object("Namespace", None, "shop");
        assert_eq!(
            steps_of(vec![late, web, early.clone(), schema, database, namespace]),
            [
                vec!["shop"],
                vec!["early"],
                vec!["db"],
                vec!["schema"],
                vec!["web"],
                vec!["late"]
            ]
        );
        let outside = object("Deployment.apps", Some("other"), "outside");
        let alone = after(object("ConfigMap", shop, "alone"), &[&outside]);
        assert_eq!(steps_of(vec![alone, early]), [["alone", "early"]]);
    }

    #[test]
    fn what_a_namespace_holds_follows_it() {
        let gate = object("Deployment.apps", Some("other"), "gate");
        let namespace = after(object("Namespace", None, "shop"), &[&gate]);
        let inside = object("ConfigMap", Some("shop"), "inside");
        assert_eq!(
            steps_of(vec![inside, namespace, gate]),
            [["gate"], ["shop"], ["inside"]]
        );
    }
}
