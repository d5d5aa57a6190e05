//! What would be lost together with a pruned object: the contents of a namespace, the
//! objects of a kind, the data of a volume, the objects of another set.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Refusal, SkipReason};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::live::Live;
use crate::read::{Contents, Held};

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

/// Returns whether a controller makes the object for every namespace. Such an object is no loss,
/// and says nothing for what it owns.
fn is_in_every_namespace(held: &Held) -> bool {
    let kind = &held.key.group_kind;
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("" | "events.k8s.io", "Event") => true,
        ("", "ConfigMap") => held.key.name == "kube-root-ca.crt",
        ("", "ServiceAccount") => held.key.name == "default",
        _ => false,
    }
}

/// Why deleting an object would lose what cannot be had back. `contents` is what it holds, and
/// `going` are the UIDs of what is deleted in any case.
pub(super) fn loss(live: &Live, contents: Option<&Contents>, going: &BTreeSet<String>) -> Vec<Refusal> {
    let object = || live.key.clone();
    let mut losses = Vec::new();
    if let Some(contents) = contents {
        let lost = lost_objects(contents, &[], going);
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

/// The objects that a mark keeps.
pub(super) fn marked(contents: &Contents) -> impl Iterator<Item = &Held> {
    contents.objects.iter().filter(|held| held.mark.is_some())
}

/// The objects that would be lost, of which none is `going` in any case or has been `seen` and
/// agreed to.
///
/// What a controller makes for another object is no loss of its own: an object is left out if a
/// chain of its owners ends in one that is counted, going or agreed to. Owners that own each other
/// end nowhere, and an owner that is in every namespace ends no chain.
fn lost_objects(contents: &Contents, seen: &[Held], going: &BTreeSet<String>) -> Vec<ObjectKey> {
    let objects = || contents.objects.iter();
    let everywhere: HashSet<&str> = objects()
        .chain(seen)
        .filter(|held| is_in_every_namespace(held))
        .map(|held| held.uid.as_str())
        .collect();
    let agreed: HashSet<&str> = seen.iter().map(|held| held.uid.as_str()).collect();
    let is_settled = |uid: &str| going.contains(uid) || (agreed.contains(uid) && !everywhere.contains(uid));
    let inside: HashSet<&str> = objects().map(|held| held.uid.as_str()).collect();
    let is_owner = |uid: &str| is_settled(uid) || (inside.contains(uid) && !everywhere.contains(uid));
    let services: HashMap<&str, &str> = objects()
        .filter(|held| held.key.group_kind == GroupKind::new("", "Service"))
        .map(|held| (held.key.name.as_str(), held.uid.as_str()))
        .collect();

    let mut counted = HashSet::new();
    let mut accounted_for = Vec::new();
    let mut owned: HashMap<&str, Vec<&str>> = HashMap::new();
    for held in objects().filter(|held| !everywhere.contains(held.uid.as_str())) {
        let uid = held.uid.as_str();
        let owners = owners(held, &services).filter(|owner| is_owner(owner));
        let owners: Vec<&str> = owners.collect();
        // Data outlive the object that asked for them.
        let is_claim = held.key.group_kind == GroupKind::new("", "PersistentVolumeClaim");
        if is_claim || owners.is_empty() {
            counted.insert(uid);
            accounted_for.push(uid);
        } else if is_settled(uid) || owners.iter().any(|owner| is_settled(owner)) {
            accounted_for.push(uid);
        }
        for owner in owners {
            owned.entry(owner).or_default().push(uid);
        }
    }
    let mut left_out = HashSet::new();
    while let Some(uid) = accounted_for.pop() {
        if left_out.insert(uid) {
            accounted_for.extend(owned.get(uid).into_iter().flatten());
        }
    }
    left_out.retain(|uid| !counted.contains(uid));
    let is_lost = |uid: &str| {
        let is_no_loss = everywhere.contains(uid) || is_settled(uid) || left_out.contains(uid);
        !is_no_loss
    };
    objects()
        .filter(|held| is_lost(&held.uid))
        .map(|held| held.key.clone())
        .collect()
}

/// The UIDs of what an object was made for. Endpoints are made for the Service of their name.
fn owners<'h>(held: &'h Held, services: &HashMap<&str, &'h str>) -> impl Iterator<Item = &'h str> {
    let is_endpoints = held.key.group_kind == GroupKind::new("", "Endpoints");
    let service = is_endpoints.then(|| services.get(held.key.name.as_str()).copied());
    let owners = held.owners.iter().map(String::as_str);
    owners.chain(service.flatten())
}

/// Why a container that holds `now` is not deleted although that was decided when it held what was
/// `seen`. `going` are the UIDs of what is deleted in any case.
pub(super) fn filled(
    seen: Option<&Contents>,
    now: &Contents,
    going: &BTreeSet<String>,
) -> Option<SkipReason> {
    // What it held then was either no loss, or the user has agreed to lose it.
    let seen_objects = seen.map_or(&[][..], |seen| &seen.objects);
    let was_unknown = |name: &&String| seen.is_some_and(|seen| seen.unknown.contains(name));
    let unknown: Vec<String> = now
        .unknown
        .iter()
        .filter(|name| !was_unknown(name))
        .cloned()
        .collect();
    let lost = lost_objects(now, seen_objects, going);
    (!lost.is_empty() || !unknown.is_empty()).then_some(SkipReason::FilledMeanwhile { lost, unknown })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::fixtures::{desired, live, policy, set};
    use super::super::{DataLoss, Observed, Policy, plan};
    use super::*;
    use crate::manifest::desired::Desired;

    const CRD: &str = "CustomResourceDefinition.apiextensions.k8s.io";

    fn refusals_of(
        members: Vec<Live>,
        wanted: Vec<crate::manifest::desired::DesiredObject>,
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
            mark: live.protection,
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
    fn a_container_with_a_marked_object_of_others_is_kept_whatever_is_allowed() {
        let namespace = live("Namespace", None, "old");
        let member = live("Deployment.apps", Some("old"), "web");
        let mark = || Some("helm.sh/resource-policy: keep".to_owned());
        let marked = |owners: &[&Live]| Live {
            protection: mark(),
            ..stranger("ConfigMap", "precious", owners)
        };
        let owner = stranger("Deployment.apps", "theirs", &[]);
        let other = || stranger("ConfigMap", "other", &[]);
        let wanted = |inside: bool| Desired {
            members: vec![if inside {
                desired("ConfigMap", Some("old"), "precious")
            } else {
                desired("ConfigMap", Some("shop"), "always")
            }],
            ..Desired::default()
        };
        // The objects in the namespace, whether the manifests ask for the marked one, and how many
        // objects are deleted, skipped and refused.
        let table = [
            (vec![marked(&[])], false, (1, 1, 0)),
            (vec![other(), marked(&[])], false, (1, 1, 0)),
            (vec![owner.clone(), marked(&[&owner])], false, (1, 1, 0)),
            (vec![marked(&[&namespace])], false, (1, 1, 0)),
            (vec![marked(&[&member])], false, (2, 0, 0)),
            (vec![other()], false, (2, 0, 0)),
            (vec![marked(&[])], true, (2, 0, 1)),
        ];
        for (objects, inside, expected) in table {
            let now = holding(objects);
            let observed = Observed {
                members: vec![namespace.clone(), member.clone()],
                contents: BTreeMap::from([(namespace.key.clone(), now.clone())]),
                ..Observed::default()
            };
            let (set, wanted) = (set(), wanted(inside));
            let plan = plan(&set, &wanted, &observed, &careless());
            let counts = (plan.deletions(), plan.skips.len(), plan.refusals.len());
            assert_eq!(counts, expected, "{now:?}");
            let is_marked = |skip: &super::super::Skip| {
                skip.live == namespace && matches!(skip.reason, SkipReason::HoldsMarked { .. })
            };
            assert!(plan.skips.iter().all(is_marked), "{:?}", plan.skips);
        }
    }

    #[test]
    fn owned_objects_are_no_loss_only_beside_their_owner() {
        let namespace = live("Namespace", None, "old");
        let mut owner = live("Deployment.apps", Some("old"), "web");
        owner.part_of = None;
        let owned_by = |kind: &str, uid: &str| {
            let mut dependent = live(kind, Some("old"), "owned");
            dependent.part_of = None;
            dependent.owners.push(crate::model::live::OwnerReference {
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

    /// An object of no set with these owners.
    fn stranger(kind: &str, name: &str, owners: &[&Live]) -> Live {
        let mut live = live(kind, Some("old"), name);
        live.part_of = None;
        let owner = |owner: &&Live| crate::model::live::OwnerReference {
            api_version: "v1".to_owned(),
            kind: owner.key.group_kind.kind.clone(),
            name: owner.key.name.clone(),
            uid: owner.uid.clone(),
        };
        live.owners = owners.iter().map(owner).collect();
        live
    }

    #[test]
    fn owners_hide_only_what_is_made_for_an_object_that_is_counted() {
        let account = stranger("ServiceAccount", "default", &[]);
        let root = stranger("ConfigMap", "kube-root-ca.crt", &[]);
        let web = stranger("Deployment.apps", "web", &[]);
        let copies = stranger("ReplicaSet.apps", "web-1", &[&web]);
        let pod = stranger("Pod", "web-1-a", &[&copies]);
        let of_account = stranger("Secret", "db", &[&account]);
        let below = stranger("ConfigMap", "below", &[&of_account]);
        let one = || stranger("ConfigMap", "one", &[&stranger("Secret", "two", &[])]);
        let two = || stranger("Secret", "two", &[&stranger("ConfigMap", "one", &[])]);
        let under_circle = stranger("ConfigMap", "three", &[&one()]);
        let selfish = stranger("ConfigMap", "me", &[&stranger("ConfigMap", "me", &[])]);
        let service = stranger("Service", "served", &[]);
        let endpoints = stranger("Endpoints", "served", &[]);
        let mirrored = stranger("EndpointSlice.discovery.k8s.io", "served-a", &[&endpoints]);
        let going = live("ConfigMap", Some("old"), "going");
        let of_going = stranger("Secret", "made", &[&going]);
        let both = stranger("Secret", "both", &[&account, &web]);
        let table: [(Vec<Live>, &[&str]); 11] = [
            (vec![account.clone(), root.clone()], &[]),
            (vec![account.clone(), of_account.clone()], &["db"]),
            (vec![root.clone(), stranger("Secret", "x", &[&root])], &["x"]),
            (vec![account.clone(), of_account, below], &["db"]),
            (vec![one(), two()], &["one", "two"]),
            (vec![one(), two(), under_circle], &["one", "three", "two"]),
            (vec![selfish], &["me"]),
            (vec![pod, copies, web.clone()], &["web"]),
            (vec![mirrored, endpoints, service], &["served"]),
            (vec![of_going], &[]),
            (vec![account.clone(), web, both], &["web"]),
        ];
        let going = BTreeSet::from([going.uid]);
        for (objects, expected) in table {
            let contents = holding(objects);
            let mut lost: Vec<String> = lost_objects(&contents, &[], &going)
                .into_iter()
                .map(|key| key.name)
                .collect();
            lost.sort();
            assert_eq!(lost, expected, "{contents:?}");
        }
        // Nor does the account hide what came in since it was seen, unless it goes itself.
        let seen = holding(vec![account.clone()]);
        let new = stranger("Secret", "new", &[&account]);
        let account = account.uid;
        let now = holding(vec![new]);
        let lost = |going| lost_objects(&now, &seen.objects, &going).len();
        assert_eq!((lost(BTreeSet::new()), lost(BTreeSet::from([account]))), (1, 0));
    }

    #[test]
    fn what_came_in_since_the_look_keeps_its_container() {
        let inside = |name: &str| {
            let mut object = live("ConfigMap", Some("old"), name);
            object.part_of = None;
            object
        };
        let mut owned = inside("owned");
        owned.owners.push(crate::model::live::OwnerReference {
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
            let key = live.key.clone();
            let contents = holding(vec![live, self::live("Service", Some("n"), "served")]);
            let is_made = !lost_objects(&contents, &[], &BTreeSet::new()).contains(&key);
            assert_eq!(is_made, expected, "{key}");
        }
    }
}
