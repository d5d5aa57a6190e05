//! Tables: objects that would be lost with a pruned one, and objects that would not.

use std::collections::BTreeMap;

use super::*;
use crate::manifest::desired::Desired;
use crate::plan::fixtures::{desired, live, policy, set};
use crate::plan::{Observed, Plan, Policy, Risk, plan};

const CRD: &str = "CustomResourceDefinition.apiextensions.k8s.io";

fn refusals_of(
    members: Vec<Live>,
    manifests: Vec<crate::manifest::desired::DesiredObject>,
    contents: Vec<(&Live, Contents)>,
    policy: &Policy,
) -> Vec<Refusal> {
    plan_of(members, manifests, contents, policy).refusals
}

fn plan_of(
    members: Vec<Live>,
    manifests: Vec<crate::manifest::desired::DesiredObject>,
    contents: Vec<(&Live, Contents)>,
    policy: &Policy,
) -> Plan {
    let contents: BTreeMap<_, _> = contents
        .into_iter()
        .map(|(live, contents)| (live.key.clone(), contents))
        .collect();
    let mut manifests = manifests;
    manifests.push(desired("ConfigMap", Some("shop"), "always"));
    let manifests = Desired {
        members: manifests,
        ..Desired::default()
    };
    let observed = Observed {
        members,
        contents,
        ..Observed::default()
    };
    plan(&set(), &manifests, &observed, policy)
}

fn careless() -> Policy {
    Policy {
        data_loss: Risk::Allowed,
        prune_all: Risk::Allowed,
        ..policy()
    }
}

fn holding(objects: Vec<Live>) -> Contents {
    let held = |live: Live| HeldObject {
        key: live.key,
        uid: live.uid,
        keep_annotation: live.keep_annotation,
        owners: live.owners.into_iter().map(|owner| owner.uid).collect(),
    };
    Contents {
        objects: objects.into_iter().map(held).collect(),
        unknown: Vec::new(),
        unanswering: BTreeMap::new(),
    }
}

#[test]
fn a_namespace_with_only_pruned_objects_is_pruned() {
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
            uids: [stranger.uid].into(),
            unknown: vec![],
        }]
    );
    assert_eq!(
        refusals_of(vec![namespace.clone()], vec![], contents, &careless()),
        []
    );
}

#[test]
fn what_could_not_be_listed_counts_as_loss() {
    let namespace = live("Namespace", None, "old");
    let contents = Contents {
        objects: vec![],
        unknown: vec!["secrets: forbidden".to_owned()],
        unanswering: BTreeMap::new(),
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
    kept.keep_annotation = Some("helm.sh/resource-policy: keep".to_owned());
    let observed = Observed {
        members: vec![namespace.clone(), kept.clone()],
        ..Observed::default()
    };
    let manifests = Desired {
        members: vec![desired("ConfigMap", Some("shop"), "always")],
        ..Desired::default()
    };
    let plan = plan(&set(), &manifests, &observed, &careless());
    assert_eq!(plan.count_prunes(), 0);
    let reason = ReasonToKeep::HoldsKept { kept: kept.key };
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
fn a_container_with_an_annotated_object_of_others_is_kept_whatever_is_allowed() {
    let namespace = live("Namespace", None, "old");
    let member = live("Deployment.apps", Some("old"), "web");
    let keep_annotation = || Some("helm.sh/resource-policy: keep".to_owned());
    let annotated = |owners: &[&Live]| Live {
        keep_annotation: keep_annotation(),
        ..stranger("ConfigMap", "precious", owners)
    };
    let owner = stranger("Deployment.apps", "theirs", &[]);
    let other = || stranger("ConfigMap", "other", &[]);
    let outside = stranger("ClusterRole.rbac.authorization.k8s.io", "outside", &[]);
    let manifests = |inside: bool| Desired {
        members: vec![if inside {
            desired("ConfigMap", Some("old"), "precious")
        } else {
            desired("ConfigMap", Some("shop"), "always")
        }],
        ..Desired::default()
    };
    // The objects in the namespace, whether the manifests ask for the annotated one, and how many
    // objects are deleted, skipped and refused.
    let table = [
        (vec![annotated(&[])], false, (1, 1, 0)),
        (vec![other(), annotated(&[])], false, (1, 1, 0)),
        (vec![owner.clone(), annotated(&[&owner])], false, (1, 1, 0)),
        (vec![annotated(&[&namespace])], false, (1, 1, 0)),
        (vec![annotated(&[&member])], false, (2, 0, 0)),
        (vec![annotated(&[&member, &outside])], false, (1, 1, 0)),
        (vec![other()], false, (2, 0, 0)),
        (vec![annotated(&[])], true, (2, 0, 1)),
    ];
    for (objects, inside, expected) in table {
        let now = holding(objects);
        let observed = Observed {
            members: vec![namespace.clone(), member.clone()],
            contents: BTreeMap::from([(namespace.key.clone(), now.clone())]),
            ..Observed::default()
        };
        let (set, manifests) = (set(), manifests(inside));
        let plan = plan(&set, &manifests, &observed, &careless());
        let counts = (plan.count_prunes(), plan.skips.len(), plan.refusals.len());
        assert_eq!(counts, expected, "{now:?}");
        let is_annotated = |skip: &super::super::Skip| {
            skip.live == namespace && matches!(skip.reason, ReasonToKeep::HoldsAnnotated { .. })
        };
        assert!(plan.skips.iter().all(is_annotated), "{:?}", plan.skips);
    }
}

#[test]
fn owned_objects_are_not_a_loss_only_beside_their_owner() {
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
    let outside = stranger("ClusterRole.rbac.authorization.k8s.io", "outside", &[]);
    let shared = stranger("Secret", "shared", &[&going, &outside]);
    let of_shared = stranger("Secret", "of-shared", &[&shared]);
    let table: [(Vec<Live>, &[&str]); 12] = [
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
        (vec![shared, of_shared], &["shared"]),
        (vec![account.clone(), web, both], &["web"]),
    ];
    let going = BTreeSet::from([going.uid]);
    for (objects, expected) in table {
        let contents = holding(objects);
        let lost = find_lost_objects(&contents, &[], &going).into_iter();
        let mut lost: Vec<&str> = lost.map(|held| held.key.name.as_str()).collect();
        lost.sort_unstable();
        assert_eq!(lost, expected, "{contents:?}");
    }
    // A new object that the account owns is a loss, unless the run deletes the account.
    let seen = holding(vec![account.clone()]);
    let new = stranger("Secret", "new", &[&account]);
    let account = account.uid;
    let now = holding(vec![new]);
    let lost = |going| find_lost_objects(&now, &seen.objects, &going).len();
    assert_eq!((lost(BTreeSet::new()), lost(BTreeSet::from([account]))), (1, 0));
}

#[test]
fn a_stateful_set_that_deletes_its_claims_is_a_loss() {
    let keeping = live("StatefulSet.apps", Some("shop"), "db");
    let deleting = Live {
        deletes_claims: true,
        ..keeping.clone()
    };
    let loss = Refusal::PrunesStorage {
        object: deleting.key.clone(),
    };
    let table = [
        (keeping.clone(), policy(), [vec![], vec![]]),
        (keeping, careless(), [vec![], vec![]]),
        (deleting.clone(), policy(), [vec![loss.clone()], vec![]]),
        // The flag allows the loss, but does not hide it.
        (deleting, careless(), [vec![], vec![loss]]),
    ];
    for (member, policy, [refused, allowed]) in table {
        let plan = plan_of(vec![member], vec![], vec![], &policy);
        assert_eq!((plan.refusals, plan.accepted), (refused, allowed));
    }
}

#[test]
fn what_came_in_since_the_plan_keeps_its_container() {
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
    assert_eq!(plan.count_prunes(), 1);
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
        let going = DeletedObjects::new(plan.prunes.iter().flatten());
        let reason = reason_to_keep_filled_since_plan(seen.as_ref(), &now, &going);
        let counts = reason.map(|reason| match reason {
            ReasonToKeep::FilledSincePlan { lost, unknown } => (lost.len(), unknown.len()),
            other => panic!("{other:?}"),
        });
        assert_eq!(counts, expected, "{seen:?} {now:?}");
    }
}

#[test]
fn an_api_that_is_deleted_as_well_hides_no_loss() {
    let namespace = live("Namespace", None, "old");
    let api = live(
        "APIService.apiregistration.k8s.io",
        None,
        "v1.metrics.example.com",
    );
    let reason = "metrics.example.com/v1: the API server behind it does not answer".to_owned();
    let contents = Contents {
        unanswering: BTreeMap::from([(api.key.name.clone(), reason.clone())]),
        ..Contents::default()
    };
    for (members, unknown) in [
        (vec![namespace.clone()], Some(vec![reason])),
        (vec![namespace.clone(), api], None),
    ] {
        let refusals = refusals_of(members, vec![], vec![(&namespace, contents.clone())], &policy());
        let found = refusals.into_iter().map(|refusal| match refusal {
            Refusal::HoldsOthers { unknown, .. } => unknown,
            other => panic!("{other:?}"),
        });
        assert_eq!(found.collect::<Vec<_>>(), Vec::from_iter(unknown));
    }
}

#[test]
fn desired_objects_inside_are_refused_whatever_is_allowed() {
    let namespace = live("Namespace", None, "old");
    let mut definition = live(CRD, None, "widgets.example.com");
    definition.defines = Some(GroupKind::new("example.com", "Widget"));
    let manifests = vec![
        desired("ConfigMap", Some("old"), "a"),
        desired("Widget.example.com", Some("shop"), "w"),
    ];
    let refusals = refusals_of(vec![namespace, definition], manifests, vec![], &careless());
    assert_eq!(refusals.len(), 2);
    assert!(
        refusals
            .iter()
            .all(|refusal| matches!(refusal, Refusal::HoldsDesired { .. }))
    );
}

#[test]
fn storage_and_parents_of_sets_need_a_flag() {
    let claim = live("PersistentVolumeClaim", Some("shop"), "data");
    let volume = live("PersistentVolume", None, "disk");
    let mut parent = live("Secret", Some("shop"), "inner");
    parent.parent_of = Some("applyset-x-v1".to_owned());
    let members = vec![claim, volume, parent];
    let strict = Policy {
        prune_all: Risk::Allowed,
        ..policy()
    };
    let refused = refusals_of(members.clone(), vec![], vec![], &strict);
    assert_eq!(refused.len(), 3);
    let plan = plan_of(members, vec![], vec![], &careless());
    assert_eq!((plan.refusals, plan.accepted), (vec![], refused));
}

#[test]
fn what_a_controller_creates_again_is_not_a_loss() {
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
        let is_made = !to_keys(&find_lost_objects(&contents, &[], &BTreeSet::new())).contains(&key);
        assert_eq!(is_made, expected, "{key}");
    }
}
