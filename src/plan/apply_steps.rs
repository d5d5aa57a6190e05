//! The steps in which objects are applied: by the waves of their kinds, and each object after its dependencies.

use std::collections::{BTreeMap, BTreeSet};

use super::apply_order_of_kinds::Wave;
use super::{Apply, Plan};
use crate::manifest::desired::{self, Desired, DesiredObject};
use crate::model::identity::ObjectKey;
use crate::model::text::first_names_and_more;
use crate::model::topological_ranks::Rank;

/// Sorts applies into steps. Each step is a whole wave, or the part of a wave whose dependencies are all in earlier
/// steps.
pub(super) fn sort_into_steps(desired: &Desired, applies: Vec<Apply>) -> Vec<Vec<Apply>> {
    let graph = desired::build_dependency_graph_if_annotated(&desired.members, wave_number);
    // `None` without dependencies. An error is not possible: manifests with a cycle are refused when they are read.
    let ranks = graph.and_then(|graph| graph.ranks().ok());
    let mut steps: BTreeMap<Rank, Vec<Apply>> = BTreeMap::new();
    for apply in applies {
        let rank = match &ranks {
            Some(ranks) => ranks[apply.index],
            None => Rank::for_wave(wave_number(&desired.members[apply.index])),
        };
        steps.entry(rank).or_default().push(apply);
    }
    steps.into_values().collect()
}

fn wave_number(object: &DesiredObject) -> usize {
    Wave::for_kind(&object.key.group_kind) as usize
}

impl Plan {
    /// Returns a line for each object that must be Current before other objects are applied, with these other objects.
    pub fn describe_applies_after_dependencies(&self, desired: &Desired) -> Vec<String> {
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
            .map(|(dependency, objects)| {
                format!(
                    "applied once {dependency} is Current: {}",
                    first_names_and_more(objects)
                )
            })
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
        let steps = sort_into_steps(&desired, applies.collect());
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
