//! Tables: which desired or kept objects are at risk, and because of which owners.

use super::*;
use crate::model::containers::{Containers, Contents, HeldObject};
use crate::model::identity::GroupKind;
use crate::plan::containers::containers_that_stay;
use crate::plan::fixtures::{desired, live, policy, set};
use crate::plan::{KnownDependencies, plan};

fn reference(uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Any".to_owned(),
        name: "any".to_owned(),
        uid: uid.to_owned(),
    }
}

fn owned(kind: &str, namespace: Option<&str>, name: &str, owners: &[&str]) -> Live {
    Live {
        uid: name.to_owned(),
        owners: owners.iter().map(|uid| reference(uid)).collect(),
        ..live(kind, namespace, name)
    }
}

fn config_map(name: &str, owners: &[&str]) -> Live {
    owned("ConfigMap", Some("shop"), name, owners)
}

fn left_to(owner: &OwnerReference) -> ReasonToKeep {
    ReasonToKeep::Owned {
        owner: owner.clone(),
        keep_annotation: None,
    }
}

fn kept(live: &Live, reason: ReasonToKeep) -> Skip {
    Skip {
        live: live.clone(),
        reason,
    }
}

/// The detached objects, from which owners, and because of which pruned objects.
fn found(members: &[Live], skips: &[Skip], observed: Observed) -> Vec<(String, Vec<String>, Vec<String>)> {
    let desired = Desired {
        members: vec![desired("ConfigMap", Some("shop"), "desired")],
        ..Desired::default()
    };
    let skipped: BTreeSet<&str> = skips.iter().map(|skip| &*skip.live.uid).collect();
    let is_pruned = |live: &&Live| live.key.name.starts_with("pruned") && !skipped.contains(&*live.uid);
    let prunes: Vec<Live> = members.iter().filter(is_pruned).cloned().collect();
    let observed = Observed {
        members: members.to_vec(),
        ..observed
    };
    let dependents = Dependents::find(
        &desired,
        &HashSet::new(),
        &observed,
        &prunes.iter().collect::<Vec<_>>(),
        skips,
        &policy(),
    );
    let detachments = dependents.detachments.into_iter();
    detachments
        .map(|detachment| {
            let pruned = detachment.pruned.into_iter().map(|key| key.name);
            let owners = detachment.owners.into_iter();
            (detachment.dependent.key.name, owners.collect(), pruned.collect())
        })
        .collect()
}

fn expected(name: &str, owners: &[&str], pruned: &[&str]) -> Vec<(String, Vec<String>, Vec<String>)> {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    vec![(name.to_owned(), texts(owners), texts(pruned))]
}

#[test]
fn desired_and_kept_objects_are_at_risk_unless_only_their_owner_keeps_them() {
    let pruned = config_map("pruned", &[]);
    let nothing = || Vec::new();
    let desired = config_map("desired", &["pruned"]);
    let at_risk = expected("desired", &["pruned"], &["pruned"]);
    assert_eq!(
        found(&[pruned.clone(), desired], &[], Observed::default()),
        at_risk
    );
    let elsewhere = config_map("desired", &["elsewhere"]);
    assert_eq!(
        found(&[pruned.clone(), elsewhere], &[], Observed::default()),
        nothing()
    );

    let other = config_map("other", &["pruned"]);
    let owner = other.owners[0].clone();
    let members = [pruned.clone(), other.clone()];
    let left = kept(&other, left_to(&owner));
    assert_eq!(found(&members, &[left], Observed::default()), nothing());
    let annotated = Live {
        keep_annotation: Some("a: b".to_owned()),
        ..other.clone()
    };
    let at_risk = expected("other", &["pruned"], &["pruned"]);
    for reason in [left_to(&owner), ReasonToKeep::HoldsParent] {
        let skips = [kept(&annotated, reason)];
        assert_eq!(found(&members, &skips, Observed::default()), at_risk);
    }
    // The garbage collector would delete more than the object.
    let claim = owned("PersistentVolumeClaim", Some("shop"), "other", &["pruned"]);
    let parent = Live {
        parent_of: Some("applyset-other-v1".to_owned()),
        ..other.clone()
    };
    for lossy in [claim, parent] {
        let members = [pruned.clone(), lossy.clone()];
        let left = kept(&lossy, left_to(&owner));
        assert_eq!(found(&members, &[left], Observed::default()), at_risk);
    }
    let going = kept(&annotated, ReasonToKeep::Terminating { waits_for: vec![] });
    assert_eq!(found(&members, &[going], Observed::default()), nothing());

    let parent = Observed {
        parent: Some(Dependent::from_live(&config_map("web", &["pruned"]))),
        ..Observed::default()
    };
    assert_eq!(
        found(&[pruned], &[], parent),
        expected("web", &["pruned"], &["pruned"])
    );
}

#[test]
fn owners_are_followed_through_what_is_deleted_with_them() {
    // Two objects own each other, and `desired` has two deleted owners.
    let between = config_map("between", &["pruned-1", "last"]);
    let last = config_map("last", &["between"]);
    let desired = config_map("desired", &["elsewhere", "last", "pruned-2"]);
    let skips = [&between, &last].map(|live| kept(live, left_to(&live.owners[0])));
    let [one, two] = ["pruned-1", "pruned-2"].map(|name| config_map(name, &[]));
    let members = [one, two, between, last, desired];
    assert_eq!(
        found(&members, &skips, Observed::default()),
        expected("desired", &["last", "pruned-2"], &["pruned-1", "pruned-2"])
    );
}

#[test]
fn what_a_container_holds_is_deleted_with_it() {
    let mut definition = owned(
        "CustomResourceDefinition.apiextensions.k8s.io",
        None,
        "pruned",
        &[],
    );
    definition.defines = Some(GroupKind::new("example.com", "Widget"));
    let widget = |uid: &str, owners: &[&str]| HeldObject {
        key: live("Widget.example.com", Some("shop"), uid).key,
        uid: uid.to_owned(),
        owners: owners.iter().map(|&uid| uid.to_owned()).collect(),
        keep_annotation: None,
    };
    let contents = Contents {
        objects: vec![widget("widget", &[])],
        unknown: Vec::new(),
        unanswering: BTreeMap::new(),
    };
    let observed = Observed {
        contents: BTreeMap::from([(definition.key.clone(), contents)]),
        ..Observed::default()
    };
    let desired = config_map("desired", &["widget"]);
    assert_eq!(
        found(&[definition, desired], &[], observed),
        expected("desired", &["widget"], &["pruned"])
    );
}

fn bound(observed: &Observed, prunes: &[Live], skips: &[Skip]) -> Vec<String> {
    let dependents = Dependents::find(
        &Desired::default(),
        &HashSet::new(),
        observed,
        &prunes.iter().collect::<Vec<_>>(),
        skips,
        &policy(),
    );
    let bound = dependents
        .undetachable
        .values()
        .flatten()
        .map(ToString::to_string);
    bound.collect()
}

fn shop_owned_by(owners: Owners) -> BTreeMap<ObjectKey, Owners> {
    BTreeMap::from([(Containers::namespace_key("shop"), owners)])
}

#[test]
fn containers_of_kept_objects_are_bound_to_their_owner() {
    let pruned = owned("ClusterRole.rbac.authorization.k8s.io", None, "pruned", &[]);
    let observed = |members: &[Live], owners| Observed {
        members: members.to_vec(),
        container_owners: shop_owned_by(owners),
        ..Observed::default()
    };
    let known = |uid: &str| Owners::Known(vec![uid.to_owned()]);
    let prunes = std::slice::from_ref(&pruned);
    for (owners, expected) in [
        (known("pruned"), &["namespace/shop"][..]),
        (known("elsewhere"), &[]),
        (Owners::Forbidden, &["namespace/shop"]),
    ] {
        assert_eq!(bound(&observed(prunes, owners), prunes, &[]), expected);
    }
    // A namespaced object cannot own a namespace.
    let inside = config_map("pruned", &[]);
    let inside = std::slice::from_ref(&inside);
    assert!(bound(&observed(inside, Owners::Forbidden), inside, &[]).is_empty());
    // The owner references of a kept namespace can be removed.
    let namespace = Live {
        keep_annotation: Some("a: b".to_owned()),
        ..owned("Namespace", None, "shop", &["pruned"])
    };
    let skips = [kept(&namespace, left_to(&namespace.owners[0]))];
    let members = [pruned.clone(), namespace];
    assert!(bound(&observed(&members, known("pruned")), prunes, &skips).is_empty());
}

#[test]
fn containers_are_found_if_a_cluster_scoped_object_is_deleted() {
    let resource = live("Secret", Some("home"), "web").resource;
    let manifests = Desired {
        members: vec![desired("ConfigMap", Some("desired"), "a")],
        ..Desired::default()
    };
    let reason = || ReasonToKeep::HoldsParent;
    let skips = [
        kept(&owned("Widget.example.com", Some("kept"), "b", &[]), reason()),
        kept(
            &config_map("going", &[]),
            ReasonToKeep::Terminating { waits_for: vec![] },
        ),
        kept(&owned("ConfigMap", Some("pruned"), "c", &[]), reason()),
    ];
    let found = |prunes: &[Live]| {
        let skips = &skips;
        containers_that_stay(&set(), Some(&resource), &manifests, prunes.iter(), skips)
    };
    let [namespace, inside] = [
        owned("Namespace", None, "pruned", &[]),
        owned("ConfigMap", Some("pruned"), "a", &[]),
    ];
    assert_eq!(found(std::slice::from_ref(&inside)), Containers::default());
    let found = found(&[namespace, inside]);
    let home = set().parent.namespace.expect("a namespace");
    let expected = BTreeSet::from(["desired".to_owned(), "kept".to_owned(), home]);
    assert_eq!(found.namespaces, expected);
    let definitions: Vec<&str> = found.definitions.keys().map(|key| &*key.name).collect();
    assert_eq!(definitions, ["widgets.example.com"]);
}

#[test]
fn owner_references_that_appear_after_the_plan_count() {
    let [pruned, desired, kept_one] = ["pruned", "desired", "kept"].map(|name| config_map(name, &[]));
    let manifests = Desired {
        members: vec![self::desired("ConfigMap", Some("shop"), "desired")],
        ..Desired::default()
    };
    let annotated = Live {
        keep_annotation: Some("a: b".to_owned()),
        ..kept_one
    };
    let observed = |members: &[Live]| Observed {
        members: members.to_vec(),
        ..Observed::default()
    };
    let planned = observed(&[pruned.clone(), desired.clone(), annotated.clone()]);
    let plan = plan(&set(), &manifests, &planned, &policy());
    assert_eq!((plan.count_prunes(), plan.dependents.detachments.len()), (1, 0));
    let found_again = |members: &[Live]| -> Vec<String> {
        let found = Dependents::find_again(&plan, &manifests, &HashSet::new(), &observed(members), &policy());
        let names = found.detachments.into_iter();
        names.map(|detachment| detachment.dependent.key.name).collect()
    };
    let owned = |live: &Live| Live {
        owners: vec![reference(&pruned.uid)],
        ..live.clone()
    };
    assert_eq!(
        found_again(&[desired.clone(), annotated.clone()]),
        Vec::<String>::new()
    );
    assert_eq!(found_again(&[owned(&desired), annotated.clone()]), ["desired"]);
    assert_eq!(
        found_again(&[owned(&desired), owned(&annotated)]),
        ["desired", "kept"]
    );
    // A dependent that is neither desired nor a member that the plan keeps.
    let stranger = config_map("stranger", &["pruned"]);
    assert_eq!(found_again(&[stranger]), Vec::<String>::new());
}

/// A desired object that has lost its label is read by its name.
#[test]
fn a_planned_detachment_is_found_once_where_its_object_is_not_listed() {
    let pruned = config_map("pruned", &[]);
    let manifests = Desired {
        members: vec![self::desired("ConfigMap", Some("shop"), "desired")],
        ..Desired::default()
    };
    let dependent = Live {
        owners: vec![reference(&pruned.uid)],
        ..config_map("desired", &[])
    };
    let planned = Observed {
        members: vec![pruned.clone(), dependent.clone()],
        ..Observed::default()
    };
    let plan = plan(&set(), &manifests, &planned, &policy());
    for others in [vec![], vec![dependent]] {
        let observed = Observed {
            members: vec![pruned.clone()],
            others,
            ..Observed::default()
        };
        let found = Dependents::find_again(&plan, &manifests, &HashSet::new(), &observed, &policy());
        assert_eq!(found.detachments.len(), 1, "{:?}", observed.others);
    }
}

/// The objects that the run has to detach from `pruned` before it deletes that.
fn detached(desired: &Desired, observed: &Observed, policy: &Policy) -> Vec<String> {
    let dependents = plan(&set(), desired, observed, policy).dependents;
    let detachments = dependents.detachments.into_iter();
    detachments
        .map(|detachment| detachment.dependent.key.name)
        .collect()
}

#[test]
fn an_object_that_another_rule_keeps_is_not_deleted_with_its_owner() {
    let [pruned, owned_one] = [config_map("pruned", &[]), config_map("owned", &["pruned"])];
    let depending = |name: &str| {
        let mut live = config_map(name, &[]);
        live.dependencies.objects.push(owned_one.key.clone());
        live
    };
    let of_members = |members: &[Live]| Observed {
        members: [&[pruned.clone(), owned_one.clone()], members].concat(),
        ..Observed::default()
    };
    let mut web = desired("ConfigMap", Some("shop"), "web");
    let nothing_needed = Desired {
        members: vec![web.clone()],
        ..Desired::default()
    };
    web.depends_on.push(owned_one.key.clone());
    let needed = Desired {
        members: vec![web],
        ..Desired::default()
    };
    let annotated = Live {
        keep_annotation: Some("a: b".to_owned()),
        ..depending("kept")
    };
    let outside = Observed {
        members: vec![pruned.clone()],
        dependencies: KnownDependencies {
            outside: BTreeMap::from([(owned_one.key.clone(), owned_one.clone())]),
            ..KnownDependencies::default()
        },
        ..Observed::default()
    };
    let table = [
        (&nothing_needed, of_members(&[]), &[][..]),
        (&nothing_needed, of_members(&[depending("pruned-2")]), &[]),
        (&nothing_needed, of_members(&[annotated]), &["owned"]),
        (&needed, of_members(&[]), &["owned"]),
        // The dependency is in no set.
        (&needed, outside, &["owned"]),
    ];
    for (desired, observed, expected) in table {
        assert_eq!(detached(desired, &observed, &policy()), expected);
    }
}

#[test]
fn a_namespace_is_not_deleted_with_its_owner_even_if_losses_are_allowed() {
    let members = vec![
        owned("ClusterRole.rbac.authorization.k8s.io", None, "pruned", &[]),
        owned("Namespace", None, "town", &["pruned"]),
    ];
    let policy = Policy {
        pruning: Pruning::WholeSet,
        data_loss: Risk::Allowed,
        ..policy()
    };
    let observed = Observed {
        members,
        ..Observed::default()
    };
    assert_eq!(detached(&Desired::default(), &observed, &policy), ["town"]);
}

#[test]
fn with_pruning_disabled_a_member_is_kept_but_not_a_copy() {
    let [pruned, member] = [config_map("pruned", &[]), config_map("member", &["pruned"])];
    let mut copy = config_map("copy", &["pruned"]);
    copy.part_of_writers = vec!["a-controller".to_owned()];
    let skips = [&member, &copy].map(|live| kept(live, ReasonToKeep::PruningDisabled));
    assert_eq!(
        found(&[pruned, member, copy], &skips, Observed::default()),
        expected("member", &["pruned"], &["pruned"])
    );
}
