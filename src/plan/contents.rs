//! What would be lost together with a pruned object: the contents of a namespace, the
//! objects of a kind, the data of a volume, the objects of another set.

use std::collections::{BTreeSet, HashSet};

use super::{Refusal, SkipReason};
use crate::identity::{GroupKind, ObjectKey};
use crate::observe::{Contents, Held, Live};

/// What holds other objects, and takes them along when it is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    /// A namespace.
    Namespace,
    /// The definition of a kind.
    CustomResourceDefinition,
}

/// Whether deleting the object deletes others.
pub fn is_container(live: &Live) -> bool {
    container(&live.key).is_some()
}

pub(super) fn container(key: &ObjectKey) -> Option<Container> {
    match (key.group_kind.group.as_str(), key.group_kind.kind.as_str()) {
        ("", "Namespace") => Some(Container::Namespace),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Some(Container::CustomResourceDefinition),
        _ => None,
    }
}

/// Whether an object is of no account in the contents of a namespace: some controller
/// makes it for every namespace, or for another object that is counted itself.
fn is_made_by_itself(live: &Held, is_counted: &dyn Fn(&str) -> bool, services: &BTreeSet<&str>) -> bool {
    let kind = &live.key.group_kind;
    let is_owned = live.owners.iter().any(|owner| is_counted(owner));
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("" | "events.k8s.io", "Event") => true,
        ("", "Endpoints") => is_owned || services.contains(live.key.name.as_str()),
        ("", "ConfigMap") => is_owned || live.key.name == "kube-root-ca.crt",
        ("", "ServiceAccount") => is_owned || live.key.name == "default",
        // Data outlive whoever asked for them.
        ("", "PersistentVolumeClaim") => false,
        _ => is_owned,
    }
}

/// Why deleting an object would lose what cannot be had back. `contents` is what it holds, and
/// `going` are the UIDs of what is deleted in any case.
pub(super) fn loss(live: &Live, contents: Option<&Contents>, going: &BTreeSet<String>) -> Vec<Refusal> {
    let object = || live.key.clone();
    let mut losses = Vec::new();
    if let Some(contents) = contents {
        let lost = lost_objects(contents, &|uid| going.contains(uid));
        if !lost.is_empty() || !contents.unknown.is_empty() {
            losses.push(Refusal::HoldsOthers {
                container: object(),
                lost,
                unknown: contents.unknown.clone(),
            });
        }
    }
    if live.parent_of.is_some() {
        losses.push(Refusal::PrunesParent { object: object() });
    }
    let kind = &live.key.group_kind;
    let is_storage = matches!(kind.kind.as_str(), "PersistentVolumeClaim" | "PersistentVolume");
    if is_storage && kind.group.is_empty() {
        losses.push(Refusal::PrunesStorage { object: object() });
    }
    losses
}

fn lost_objects(contents: &Contents, is_going: &dyn Fn(&str) -> bool) -> Vec<ObjectKey> {
    let objects = || contents.objects.iter();
    let inside: HashSet<&str> = objects().map(|inside| inside.uid.as_str()).collect();
    let is_counted = |uid: &str| inside.contains(uid) || is_going(uid);
    let is_service = |inside: &&Held| inside.key.group_kind == GroupKind::new("", "Service");
    let services = objects()
        .filter(is_service)
        .map(|inside| inside.key.name.as_str())
        .collect();
    objects()
        .filter(|inside| !is_going(&inside.uid) && !is_made_by_itself(inside, &is_counted, &services))
        .map(|inside| inside.key.clone())
        .collect()
}

/// Why a container that holds `now` is not deleted although that was decided when it held what was
/// `seen`. `going` are the UIDs of what is deleted in any case.
pub(super) fn filled(
    seen: Option<&Contents>,
    now: &Contents,
    going: &BTreeSet<String>,
) -> Option<SkipReason> {
    // What it held then was either no loss, or the user has agreed to lose it.
    let seen_objects = seen.into_iter().flat_map(|seen| &seen.objects);
    let settled: HashSet<&str> = seen_objects.map(|held| held.uid.as_str()).collect();
    let was_unknown = |name: &&String| seen.is_some_and(|seen| seen.unknown.contains(name));
    let unknown: Vec<String> = now
        .unknown
        .iter()
        .filter(|name| !was_unknown(name))
        .cloned()
        .collect();
    let lost = lost_objects(now, &|uid| settled.contains(uid) || going.contains(uid));
    (!lost.is_empty() || !unknown.is_empty()).then_some(SkipReason::FilledMeanwhile { lost, unknown })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::fixtures::{desired, live, policy, set};
    use super::super::{DataLoss, Observed, Policy, plan};
    use super::*;
    use crate::desired::Desired;

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
        let held = |live: Live| Held {
            key: live.key,
            uid: live.uid,
            owners: live.owners.into_iter().map(|owner| owner.uid).collect(),
        };
        Contents {
            objects: objects.into_iter().map(held).collect(),
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
    fn a_namespace_in_which_something_is_kept_is_kept_whatever_is_allowed() {
        let namespace = live("Namespace", None, "old");
        let mut kept = live("ConfigMap", Some("old"), "kept");
        kept.protection = Some("helm.sh/resource-policy: keep".to_owned());
        let observed = Observed {
            members: vec![namespace.clone(), kept.clone()],
            ..Observed::default()
        };
        let wanted = Desired {
            members: vec![desired("ConfigMap", Some("shop"), "always")],
            ..Desired::default()
        };
        let plan = plan(&set(), &wanted, &observed, &careless());
        assert_eq!(plan.deletions(), 0);
        let reason = SkipReason::HoldsKept { kept: kept.key };
        assert!(
            plan.skips
                .iter()
                .any(|skip| skip.live == namespace && skip.reason == reason)
        );
        assert!(
            plan.record_after
                .group_kinds
                .contains(&GroupKind::new("", "Namespace"))
        );
    }

    #[test]
    fn owned_objects_are_no_loss_only_beside_their_owner() {
        let namespace = live("Namespace", None, "old");
        let mut owner = live("Deployment.apps", Some("old"), "web");
        owner.part_of = None;
        let owned_by = |kind: &str, uid: &str| {
            let mut dependent = live(kind, Some("old"), "owned");
            dependent.part_of = None;
            dependent.owners.push(crate::observe::OwnerReference {
                api_version: "apps/v1".to_owned(),
                kind: "Deployment".to_owned(),
                name: "web".to_owned(),
                uid: uid.to_owned(),
            });
            dependent
        };
        let count = |objects: Vec<Live>| {
            let contents = vec![(&namespace, holding(objects))];
            match &refusals_of(vec![namespace.clone()], vec![], contents, &policy())[..] {
                [Refusal::HoldsOthers { lost, .. }] => lost.len(),
                [] => 0,
                other => panic!("{other:?}"),
            }
        };
        let uid = owner.uid.clone();
        assert_eq!(count(vec![owner.clone(), owned_by("ReplicaSet.apps", &uid)]), 1);
        assert_eq!(count(vec![owned_by("ReplicaSet.apps", "elsewhere")]), 1);
        assert_eq!(count(vec![owner, owned_by("PersistentVolumeClaim", &uid)]), 2);
    }

    #[test]
    fn what_came_in_since_the_look_keeps_its_container() {
        let inside = |name: &str| {
            let mut object = live("ConfigMap", Some("old"), name);
            object.part_of = None;
            object
        };
        let mut owned = inside("owned");
        owned.owners.push(crate::observe::OwnerReference {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            name: "gone-by-now".to_owned(),
            uid: inside("pruned").uid,
        });
        let observed = Observed {
            members: vec![live("ConfigMap", Some("old"), "pruned")],
            ..Observed::default()
        };
        let plan = plan(&set(), &Desired::default(), &observed, &policy());
        assert_eq!(plan.deletions(), 1);
        let unlisted = Contents {
            unknown: vec!["secrets".to_owned()],
            ..Contents::default()
        };
        let table = [
            (None, holding(vec![]), None),
            (None, holding(vec![inside("pruned"), owned]), None),
            (
                Some(holding(vec![inside("accepted")])),
                holding(vec![inside("accepted")]),
                None,
            ),
            (Some(unlisted.clone()), unlisted.clone(), None),
            (Some(holding(vec![])), holding(vec![inside("new")]), Some((1, 0))),
            (None, holding(vec![inside("new")]), Some((1, 0))),
            (Some(holding(vec![])), unlisted, Some((0, 1))),
        ];
        for (seen, now, expected) in table {
            let going: BTreeSet<String> = plan
                .prunes
                .iter()
                .flatten()
                .map(|live| live.uid.clone())
                .collect();
            let reason = filled(seen.as_ref(), &now, &going);
            let counts = reason.map(|reason| match reason {
                SkipReason::FilledMeanwhile { lost, unknown } => (lost.len(), unknown.len()),
                other => panic!("{other:?}"),
            });
            assert_eq!(counts, expected, "{seen:?} {now:?}");
        }
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
            (live("Endpoints", Some("n"), "served"), true),
            (live("Endpoints", Some("n"), "by-hand"), false),
            (
                live("EndpointSlice.discovery.k8s.io", Some("n"), "by-hand"),
                false,
            ),
            (live("ConfigMap", Some("n"), "mine"), false),
            (live("ServiceAccount", Some("n"), "mine"), false),
        ];
        for (live, expected) in table {
            let services = BTreeSet::from(["served"]);
            let [held] = &holding(vec![live]).objects[..] else {
                panic!("one object");
            };
            let is_counted = |_: &str| false;
            let is_made = is_made_by_itself(held, &is_counted, &services);
            assert_eq!(is_made, expected, "{}", held.key);
        }
    }
}
