//! Tables of what members have become during a wait.

use super::*;
use crate::model::depends_on::Dependencies;
use crate::model::user_annotations::PruneOrder;
use crate::plan::fixtures::{desired, live, policy, set};
use crate::plan::preconditions::Salt;
use crate::plan::{Observed, Preconditions, plan};

fn map(name: &str) -> Live {
    live("ConfigMap", Some("shop"), name)
}

fn after(live: Live, dependencies: &[&Live]) -> Live {
    Live {
        dependencies: Dependencies {
            objects: dependencies.iter().map(|live| live.key.clone()).collect(),
            fault: None,
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
    let judged_again = StateAfterWait {
        set: &set(),
        policy: &policy(),
        desired: &manifests(),
        desired_uids: &HashSet::from([map("web").uid]),
        contents: &BTreeMap::new(),
        members,
    };
    judged_again.plan_with_prunes_judged_again(plan)
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
        // A dependent that is pruned or being deleted does not keep its dependency, but has to be gone first.
        (vec![after(one.clone(), &[&two])], &[], &["one", "three", "two"]),
        (vec![after(two.clone(), &[&one])], &[], &["three", "two", "one"]),
        (
            vec![going(after(map("new"), &[&one]))],
            &[],
            &["three", "two", "one"],
        ),
        // An object that is being deleted by now stays in the record until it is gone.
        (vec![going(one.clone())], &["one"], &["three", "two"]),
        // A dependent to which a controller has copied the label does not count.
        (
            vec![Live {
                owners: vec![crate::model::live::OwnerReference {
                    api_version: "v1".to_owned(),
                    kind: "Service".to_owned(),
                    name: "web".to_owned(),
                    uid: "owner".to_owned(),
                }],
                part_of_writers: vec!["controller".to_owned()],
                ..after(map("copy"), &[&one])
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
        now.retain(|name| *name != "new");
        now.sort_unstable();
        assert_eq!(now, kept, "{place}");
        assert_eq!(names(judged.all_prunes()), pruned, "{place}");
    }
}

#[test]
fn what_is_being_deleted_by_now_has_to_be_gone_before_what_it_depends_on() {
    let members = [going(after(map("two"), &[&map("one")])), map("one")];
    let judged = judged(&planned(), &members);
    let after = &judged.edges.prune_after[&map("one").key];
    assert_eq!(names(after.iter()), ["two"]);
}

#[test]
fn an_object_that_is_not_found_again_is_left_as_planned() {
    let judged = judged(&planned(), &[]);
    assert_eq!(names(judged.all_prunes()), ["one", "three", "two"]);
}

#[test]
fn the_last_prunes_are_judged_without_those_before_them() {
    let late = Live {
        prune_order: PruneOrder::Last,
        ..map("late")
    };
    let mut plan = planned();
    plan.last_prunes = vec![vec![late.clone()]];
    let members = [going(after(map("one"), &[&late])), late.clone()];
    let judged = judged(&plan, &members);
    assert_eq!(names(judged.prunes.iter().flatten()), ["three", "two"]);
    assert_eq!(names(judged.last_prunes.iter().flatten()), ["late"]);
    assert_eq!(names(judged.edges.prune_after[&late.key].iter()), ["one"]);
}

#[test]
fn what_a_saved_plan_prunes_remains_as_it_was_planned() {
    let mut plan = planned();
    plan.preconditions = Preconditions::for_saved_plan(Salt::random().expect("bytes"), BTreeMap::new(), None);
    let members = [after(map("one"), &[]), after(map("web"), &[&map("two")])];
    let judged = judged(&plan, &members);
    let versions = judged
        .all_prunes()
        .map(|live| (live.key.name.as_str(), live.resource_version.as_str()));
    assert_eq!(versions.collect::<Vec<_>>(), [("one", "1"), ("three", "1")]);
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
        let judged_again = StateAfterWait {
            set: &set(),
            policy: &policy(),
            desired: &manifests(),
            desired_uids: &HashSet::from([map("web").uid]),
            contents: &BTreeMap::new(),
            members: &members,
        };
        assert_eq!(judged_again.desired_that_left().len(), left, "{members:?}");
    }
}
