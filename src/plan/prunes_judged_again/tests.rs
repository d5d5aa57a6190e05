//! Tables of what members have become during a wait.

use super::*;
use crate::model::depends_on::Dependencies;
use crate::model::live::OwnerReference;
use crate::plan::fixtures::{desired, live, policy, set};
use crate::plan::{Dependents, Observed, plan};

fn map(name: &str) -> Live {
    live("ConfigMap", Some("shop"), name)
}

fn after(live: Live, dependencies: &[&Live]) -> Live {
    Live {
        dependencies: Dependencies {
            objects: dependencies.iter().map(|live| live.key.clone()).collect(),
            first_malformed: None,
        },
        resource_version: "2".to_owned(),
        ..live
    }
}

fn annotated(live: Live) -> Live {
    Live {
        keep_annotation: Some("helm.sh/resource-policy: keep".to_owned()),
        resource_version: "2".to_owned(),
        ..live
    }
}

fn owned_by(live: Live, owner: &Live) -> Live {
    Live {
        owners: vec![OwnerReference {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            name: owner.key.name.clone(),
            uid: owner.uid.clone(),
        }],
        resource_version: "2".to_owned(),
        ..live
    }
}

fn going(live: Live) -> Live {
    Live {
        presence: Presence::Terminating,
        ..live
    }
}

/// A plan that keeps `kept`, prunes `one`, `two` and `three`, and desires `web`.
fn planned() -> Plan {
    let observed = Observed {
        members: vec![
            map("web"),
            annotated(map("kept")),
            map("one"),
            map("two"),
            map("three"),
        ],
        ..Observed::default()
    };
    plan(&set(), &manifests(), &observed, &policy())
}

fn manifests() -> Desired {
    Desired {
        members: vec![desired("ConfigMap", Some("shop"), "web")],
        ..Desired::default()
    }
}

fn judged(plan: &Plan, members: &[Live]) -> Plan {
    judged_after_deletes(plan, members, &[], &[])
}

fn judged_after_deletes(plan: &Plan, members: &[Live], deleted: &[&Live], not_deleted: &[&Live]) -> Plan {
    let state = StateBeforeDeletes {
        set: &set(),
        policy: &policy(),
        desired: &manifests(),
        desired_uids: &HashSet::from([map("web").uid]),
        contents: &BTreeMap::new(),
        members,
        deleted: &deleted.iter().map(|live| live.uid.clone()).collect(),
        not_deleted: &not_deleted.iter().map(|live| &live.key).collect(),
    };
    state.plan_with_prunes_judged_again(plan)
}

fn names<'l>(lives: impl Iterator<Item = &'l Live>) -> Vec<&'l str> {
    lives.map(|live| live.key.name.as_str()).collect()
}

#[test]
fn what_members_have_come_to_need_is_kept() {
    let [one, two, three] = ["one", "two", "three"].map(map);
    // The changed members, the objects that are kept because of them, and the prunes in their order.
    let table: [(Vec<Live>, &[&str], &[&str]); 10] = [
        (vec![], &[], &["one", "three", "two"]),
        // `one` gets a dependent: an object of the manifests, a kept member, or a member that another run has added.
        (vec![after(map("web"), &[&one])], &["one"], &["three", "two"]),
        (
            vec![after(annotated(map("kept")), &[&one])],
            &["one"],
            &["three", "two"],
        ),
        (vec![after(map("new"), &[&one])], &["one"], &["three", "two"]),
        // A prune gets a keep annotation, so it is kept with its dependencies, and with theirs.
        (
            vec![
                after(annotated(one.clone()), &[&two]),
                after(two.clone(), &[&three]),
            ],
            &["one", "three", "two"],
            &[],
        ),
        // A dependent that is pruned or being deleted does not keep its dependency.
        (vec![after(one.clone(), &[&two])], &[], &["one", "three", "two"]),
        (vec![after(two.clone(), &[&one])], &[], &["one", "three", "two"]),
        (
            vec![going(after(map("new"), &[&one]))],
            &[],
            &["one", "three", "two"],
        ),
        // An object that is being deleted by now stays in the record until it is gone.
        (vec![going(one.clone())], &["one"], &["three", "two"]),
        // A dependent to which a controller has copied the label does not count.
        (
            vec![Live {
                part_of_writers: vec!["controller".to_owned()],
                ..owned_by(after(map("copy"), &[&one]), &map("web"))
            }],
            &[],
            &["one", "three", "two"],
        ),
    ];
    for (place, (changed, kept, pruned)) in table.into_iter().enumerate() {
        let plan = planned();
        let mut members = vec![
            map("web"),
            annotated(map("kept")),
            one.clone(),
            two.clone(),
            three.clone(),
        ];
        for now in changed {
            members.retain(|live| live.uid != now.uid);
            members.push(now);
        }
        let judged = judged(&plan, &members);
        let mut now = names(
            judged
                .skips
                .iter()
                .filter(|skip| skip.live.key.name != "kept")
                .map(|skip| &skip.live),
        );
        now.retain(|name| !["new", "copy"].contains(name));
        now.sort_unstable();
        assert_eq!(now, kept, "{place}");
        let mut rest = names(judged.all_prunes());
        rest.sort_unstable();
        assert_eq!(rest, pruned, "{place}");
    }
}

#[test]
fn an_object_that_is_not_found_again_is_left_as_planned() {
    let judged = judged(&planned(), &[]);
    let mut prunes = names(judged.all_prunes());
    prunes.sort_unstable();
    assert_eq!(prunes, ["one", "three", "two"]);
}

#[test]
fn each_object_is_deleted_still_to_be_deleted_or_stays() {
    let [web, one, two, three] = ["web", "one", "two", "three"].map(map);
    let [none, only_one]: [&[&Live]; 2] = [&[], &[&one]];
    // What the members have become, what was deleted and what was not, and then what stays beside `kept`.
    let table = [
        (vec![], none, only_one, &["one"][..]),
        // An object whose delete has failed keeps what it needs.
        (vec![after(one.clone(), &[&two])], none, only_one, &["one", "two"]),
        // A deleted object needs nothing any more.
        (vec![after(one.clone(), &[&two])], only_one, none, &[]),
        // What is deleted stays deleted, even if an object has come to need it.
        (vec![after(web.clone(), &[&one])], only_one, none, &[]),
        // A member that another run has added stays, and so does one that has an owner.
        (vec![map("new")], none, none, &["new"]),
        (vec![owned_by(map("new"), &one)], none, none, &["new"]),
        // A copy that a controller has made is not a member.
        (
            vec![Live {
                part_of_writers: vec!["controller".to_owned()],
                ..owned_by(map("copy"), &one)
            }],
            none,
            none,
            &[],
        ),
    ];
    for (changed, deleted, not_deleted, stays) in table {
        let mut members = vec![
            web.clone(),
            annotated(map("kept")),
            one.clone(),
            two.clone(),
            three.clone(),
        ];
        members.retain(|live| changed.iter().all(|now| now.uid != live.uid));
        members.extend(changed);
        let judged = judged_after_deletes(&planned(), &members, deleted, not_deleted);
        let mut now: Vec<&str> = judged
            .skips
            .iter()
            .filter(|skip| skip.stays_despite_pruning())
            .map(|skip| skip.live.key.name.as_str())
            .filter(|name| *name != "kept")
            .collect();
        now.sort_unstable();
        assert_eq!(now, stays, "{members:?}");
    }
}

#[test]
fn what_owns_an_object_that_stays_is_attached_to_it() {
    let [one, two] = ["one", "two"].map(map);
    let members = [
        map("web"),
        owned_by(one.clone(), &two),
        owned_by(map("new"), &two),
        two.clone(),
    ];
    let judged = judged_after_deletes(&planned(), &members, &[], &[&one]);
    let observed = Observed {
        members: members.to_vec(),
        ..Observed::default()
    };
    let found = Dependents::find_again(&judged, &manifests(), &HashSet::new(), &observed, &policy());
    let attached = found.detachments.iter();
    let attached: Vec<&str> = attached
        .map(|detachment| &*detachment.dependent.key.name)
        .collect();
    assert_eq!(attached, ["new", "one"]);
}

#[test]
fn a_desired_object_leaves_with_its_uid_and_its_key() {
    let replaced = Live {
        uid: "new".to_owned(),
        ..map("web")
    };
    let in_another_group = Live {
        uid: map("web").uid,
        ..live("OtherMap", Some("shop"), "web")
    };
    for (members, left) in [
        (vec![map("web")], 0),
        (vec![replaced], 0),
        (vec![in_another_group], 0),
        (vec![going(map("web"))], 1),
        (vec![map("one")], 1),
        (vec![], 1),
    ] {
        let state = StateBeforeDeletes {
            set: &set(),
            policy: &policy(),
            desired: &manifests(),
            desired_uids: &HashSet::from([map("web").uid]),
            contents: &BTreeMap::new(),
            members: &members,
            deleted: &BTreeSet::new(),
            not_deleted: &KeptObjects::default(),
        };
        assert_eq!(state.desired_that_left().len(), left, "{members:?}");
    }
}
