//! What would be lost together with a pruned object: the contents of a namespace, the
//! objects of a kind, the data of a volume, the objects of another set.

use std::collections::BTreeSet;

use super::{DataLoss, Observed, Plan, Policy, Refusal};
use crate::desired::Desired;
use crate::identity::ObjectKey;
use crate::observe::Live;

/// What holds other objects, and takes them along when it is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    /// A namespace.
    Namespace,
    /// The definition of a kind.
    CustomResourceDefinition,
}

/// Whether deleting the object deletes others.
pub(super) fn is_container(live: &Live) -> bool {
    container(&live.key).is_some()
}

fn container(key: &ObjectKey) -> Option<Container> {
    match (key.group_kind.group.as_str(), key.group_kind.kind.as_str()) {
        ("", "Namespace") => Some(Container::Namespace),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Some(Container::CustomResourceDefinition),
        _ => None,
    }
}

/// Whether an object is made again by itself, in every namespace or for another object.
fn is_made_by_itself(live: &Live) -> bool {
    let kind = &live.key.group_kind;
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("" | "events.k8s.io", "Event") | ("", "Endpoints") | ("discovery.k8s.io", "EndpointSlice") => true,
        ("", "ConfigMap") => live.key.name == "kube-root-ca.crt",
        ("", "ServiceAccount") => live.key.name == "default",
        _ => !live.owners.is_empty(),
    }
}

/// Refuses prunes that would take along what the set does not prune by itself.
pub(super) fn refusals(plan: &Plan, desired: &Desired, observed: &Observed, policy: &Policy) -> Vec<Refusal> {
    let pruned: BTreeSet<&str> = plan
        .prunes
        .iter()
        .flatten()
        .map(|live| live.uid.as_str())
        .collect();
    let mut refusals = Vec::new();
    for live in plan.prunes.iter().flatten() {
        let wanted = wanted_inside(live, desired);
        if !wanted.is_empty() {
            refusals.push(Refusal::HoldsWanted {
                container: live.key.clone(),
                wanted,
            });
            continue;
        }
        if policy.data_loss == DataLoss::Allowed {
            continue;
        }
        refusals.extend(loss(live, &pruned, observed));
    }
    refusals
}

fn loss(live: &Live, pruned: &BTreeSet<&str>, observed: &Observed) -> Option<Refusal> {
    let object = live.key.clone();
    if let Some(contents) = observed.contents.get(&live.key) {
        let lost: Vec<ObjectKey> = contents
            .objects
            .iter()
            .filter(|inside| !is_made_by_itself(inside) && !pruned.contains(inside.uid.as_str()))
            .map(|inside| inside.key.clone())
            .collect();
        if !lost.is_empty() || !contents.unknown.is_empty() {
            return Some(Refusal::HoldsOthers {
                container: object,
                lost,
                unknown: contents.unknown.clone(),
            });
        }
    }
    if live.parent_of.is_some() {
        return Some(Refusal::PrunesParent { object });
    }
    let kind = &live.key.group_kind;
    let is_storage = matches!(kind.kind.as_str(), "PersistentVolumeClaim" | "PersistentVolume");
    (is_storage && kind.group.is_empty()).then_some(Refusal::PrunesStorage { object })
}

/// Objects of the manifests that live inside, which no flag can want to lose.
fn wanted_inside(live: &Live, desired: &Desired) -> Vec<ObjectKey> {
    let is_inside = |key: &ObjectKey| match container(&live.key) {
        Some(Container::Namespace) => key.namespace.as_ref() == Some(&live.key.name),
        Some(Container::CustomResourceDefinition) => live.defines.as_ref() == Some(&key.group_kind),
        None => false,
    };
    let keys = desired
        .members
        .iter()
        .chain(&desired.parent)
        .map(|member| &member.key);
    keys.filter(|key| is_inside(key)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::fixtures::{desired, live, policy, set};
    use super::super::plan;
    use super::*;
    use crate::identity::GroupKind;
    use crate::observe::Contents;

    const CRD: &str = "CustomResourceDefinition.apiextensions.k8s.io";

    fn refusals_of(
        members: Vec<Live>,
        wanted: Vec<crate::desired::DesiredObject>,
        contents: Vec<(&Live, Contents)>,
        policy: &Policy,
    ) -> Vec<Refusal> {
        let contents: BTreeMap<_, _> = contents
            .into_iter()
            .map(|(live, contents)| (live.key.clone(), contents))
            .collect();
        let mut wanted = wanted;
        wanted.push(desired("ConfigMap", Some("shop"), "always"));
        let wanted = Desired {
            members: wanted,
            ..Desired::default()
        };
        let observed = Observed {
            members,
            contents,
            ..Observed::default()
        };
        plan(&set(), &wanted, &observed, policy).refusals
    }

    fn careless() -> Policy {
        Policy {
            data_loss: DataLoss::Allowed,
            ..policy()
        }
    }

    fn holding(objects: Vec<Live>) -> Contents {
        Contents {
            objects,
            unknown: Vec::new(),
        }
    }

    #[test]
    fn a_namespace_with_nothing_but_what_is_pruned_goes() {
        let namespace = live("Namespace", None, "old");
        let inside = live("ConfigMap", Some("old"), "a");
        let members = vec![namespace.clone(), inside.clone()];
        assert_eq!(
            refusals_of(
                members,
                vec![],
                vec![(&namespace, holding(vec![inside]))],
                &policy()
            ),
            []
        );
    }

    #[test]
    fn a_namespace_with_objects_of_others_is_refused_until_allowed() {
        let namespace = live("Namespace", None, "old");
        let mut stranger = live("ConfigMap", Some("old"), "stranger");
        stranger.part_of = None;
        let contents = vec![(&namespace, holding(vec![stranger.clone()]))];
        assert_eq!(
            refusals_of(vec![namespace.clone()], vec![], contents.clone(), &policy()),
            [Refusal::HoldsOthers {
                container: namespace.key.clone(),
                lost: vec![stranger.key],
                unknown: vec![]
            }]
        );
        assert_eq!(
            refusals_of(vec![namespace.clone()], vec![], contents, &careless()),
            []
        );
    }

    #[test]
    fn what_could_not_be_looked_at_counts_as_loss() {
        let namespace = live("Namespace", None, "old");
        let contents = Contents {
            objects: vec![],
            unknown: vec!["secrets: forbidden".to_owned()],
        };
        assert_eq!(
            refusals_of(
                vec![namespace.clone()],
                vec![],
                vec![(&namespace, contents)],
                &policy()
            )
            .len(),
            1
        );
    }

    #[test]
    fn what_is_kept_inside_a_namespace_counts_as_loss() {
        let namespace = live("Namespace", None, "old");
        let mut kept = live("ConfigMap", Some("old"), "kept");
        kept.annotations
            .insert("helm.sh/resource-policy".to_owned(), "keep".to_owned());
        let contents = vec![(&namespace, holding(vec![kept.clone()]))];
        assert_eq!(
            refusals_of(vec![namespace.clone(), kept], vec![], contents, &policy()).len(),
            1
        );
    }

    #[test]
    fn wanted_objects_inside_are_refused_whatever_is_allowed() {
        let namespace = live("Namespace", None, "old");
        let mut definition = live(CRD, None, "widgets.example.com");
        definition.defines = Some(GroupKind::new("example.com", "Widget"));
        let wanted = vec![
            desired("ConfigMap", Some("old"), "a"),
            desired("Widget.example.com", Some("shop"), "w"),
        ];
        let refusals = refusals_of(vec![namespace, definition], wanted, vec![], &careless());
        assert_eq!(refusals.len(), 2);
        assert!(
            refusals
                .iter()
                .all(|refusal| matches!(refusal, Refusal::HoldsWanted { .. }))
        );
    }

    #[test]
    fn storage_and_parents_of_sets_need_a_flag() {
        let claim = live("PersistentVolumeClaim", Some("shop"), "data");
        let volume = live("PersistentVolume", None, "disk");
        let mut parent = live("Secret", Some("shop"), "inner");
        parent.parent_of = Some("applyset-x-v1".to_owned());
        let members = vec![claim, volume, parent];
        assert_eq!(refusals_of(members.clone(), vec![], vec![], &policy()).len(), 3);
        assert_eq!(refusals_of(members, vec![], vec![], &careless()), []);
    }

    #[test]
    fn what_makes_itself_again_is_no_loss() {
        let table = [
            (live("ConfigMap", Some("n"), "kube-root-ca.crt"), true),
            (live("ServiceAccount", Some("n"), "default"), true),
            (live("Event.events.k8s.io", Some("n"), "x"), true),
            (live("EndpointSlice.discovery.k8s.io", Some("n"), "x"), true),
            (live("ConfigMap", Some("n"), "mine"), false),
            (live("ServiceAccount", Some("n"), "mine"), false),
        ];
        for (live, expected) in table {
            assert_eq!(is_made_by_itself(&live), expected, "{}", live.key);
        }
    }
}
