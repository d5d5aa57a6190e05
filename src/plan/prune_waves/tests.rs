//! Tables of prunes, and all dependencies among four of them.

use super::*;
use crate::model::depends_on::{Dependencies, parse};
use crate::model::identity::GroupKind;
use crate::plan::fixtures::{live, set};

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

fn after(live: Live, dependencies: &[&Live]) -> Live {
    Live {
        dependencies: Dependencies {
            objects: dependencies.iter().map(|live| live.key.clone()).collect(),
            fault: None,
        },
        ..live
    }
}

fn map(name: &str) -> Live {
    live("ConfigMap", Some("shop"), name)
}

#[test]
fn prunes_go_in_reverse_waves() {
    let prunes = vec![
        live("Namespace", None, "shop"),
        map("b"),
        map("a"),
        live("Deployment.apps", Some("shop"), "web"),
    ];
    let steps = PruneSteps::of(&set(), prunes, &[]);
    assert_eq!(names(&steps.regular), [vec!["web"], vec!["a", "b"], vec!["shop"]]);
    assert_eq!(names(&steps.last), Vec::<Vec<&str>>::new());
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
        map("early"),
    ];
    let steps = PruneSteps::of(&set(), prunes, &[]);
    assert_eq!(
        names(&steps.regular),
        [vec!["early"], vec!["early"], vec!["other"]]
    );
    assert_eq!(names(&steps.last), [vec!["late"], vec!["widgets", "shop"]]);
}

#[test]
fn dependents_are_pruned_first() {
    let web = live("Deployment.apps", Some("shop"), "web");
    // By its kind, the ConfigMap would go after the Deployment.
    let settings = after(map("settings"), &[&web]);
    let prunes = vec![
        web.clone(),
        settings.clone(),
        map("other"),
        live("Namespace", None, "shop"),
    ];
    let steps = PruneSteps::of(&set(), prunes, &[]);
    assert_eq!(
        names(&steps.regular),
        [vec!["other", "settings"], vec!["web"], vec!["shop"]]
    );
    assert_eq!(steps.after[&web.key], [settings]);

    // What a late object depends on is late, too.
    let late = last(after(map("late"), &[&web]));
    let steps = PruneSteps::of(&set(), vec![web, late, live("Namespace", None, "shop")], &[]);
    assert_eq!(names(&steps.last), [vec!["late"], vec!["web"], vec!["shop"]]);
}

#[test]
fn what_is_being_deleted_has_to_be_gone_before() {
    let web = live("Deployment.apps", Some("shop"), "web");
    let going = Skip {
        live: after(map("going"), &[&web]),
        reason: SkipReason::Terminating {
            waits_for: Vec::new(),
        },
    };
    let steps = PruneSteps::of(&set(), vec![web.clone()], std::slice::from_ref(&going));
    assert_eq!(steps.after[&web.key], [going.live]);
}

#[test]
fn faults_of_live_objects_are_reported_and_ignored() {
    let [mut one, other] = [map("one"), map("other")];
    let alone = after(map("alone"), &[&map("alone")]);
    one.dependencies.fault = parse("what").err();
    let two = after(map("two"), &[&after(map("three"), &[])]);
    let three = after(map("three"), &[&two]);
    let four = after(map("four"), &[&two, &other]);
    let steps = PruneSteps::of(&set(), vec![one, other, two, three, four, alone], &[]);
    assert_eq!(steps.ignored.len(), 2, "{:?}", steps.ignored);
    assert!(steps.ignored[0].contains("what"), "{:?}", steps.ignored);
    for name in [
        "configmap/two in namespace shop ->",
        "configmap/three in namespace shop",
    ] {
        assert!(steps.ignored[1].contains(name), "{:?}", steps.ignored);
    }
    assert_eq!(
        names(&steps.regular),
        [vec!["alone", "four", "one", "three"], vec!["other", "two"]]
    );
}

/// All dependencies among four objects of different waves, one of them last: every object is pruned
/// once, and every dependency is kept or its cycle reported.
#[test]
fn every_dependency_is_kept_or_reported() {
    let objects = [
        live("Deployment.apps", Some("shop"), "a"),
        map("b"),
        last(map("c")),
        live("Namespace", None, "d"),
    ];
    let pairs: Vec<(usize, usize)> = (0..4)
        .flat_map(|one| (0..4).map(move |other| (one, other)))
        .filter(|(one, other)| one != other)
        .collect();
    for chosen in 0_u32..1 << pairs.len() {
        let is_chosen = |bit: usize| chosen & (1 << bit) != 0;
        let mut prunes = objects.to_vec();
        for (bit, (dependent, dependency)) in pairs.iter().enumerate() {
            if is_chosen(bit) {
                let key = objects[*dependency].key.clone();
                prunes[*dependent].dependencies.objects.push(key);
            }
        }
        let steps = PruneSteps::of(&set(), prunes.clone(), &[]);
        let order: Vec<&ObjectKey> = steps
            .regular
            .iter()
            .chain(&steps.last)
            .flatten()
            .map(|live| &live.key)
            .collect();
        assert_eq!(order.len(), 4);
        let place = |key: &ObjectKey| order.iter().position(|pruned| *pruned == key);
        for dependent in &prunes {
            for dependency in &dependent.dependencies.objects {
                let after = steps.after.get(dependency).into_iter().flatten();
                let is_kept = after.into_iter().any(|live| live.key == dependent.key);
                assert!(is_kept || !steps.ignored.is_empty(), "{chosen:b}");
                if is_kept {
                    assert!(place(&dependent.key) < place(dependency), "{chosen:b}");
                }
            }
        }
    }
}

#[test]
fn nothing_waits_for_the_namespace_of_the_parent() {
    let set = set();
    let parents = set.parent.namespace.as_deref().expect("a namespace");
    let web = live("Deployment.apps", Some("away"), "web");
    for (namespace, dependents) in [(parents, 0), ("other", 1)] {
        let namespace = after(live("Namespace", None, namespace), &[&web]);
        let steps = PruneSteps::of(&set, vec![web.clone(), namespace], &[]);
        assert_eq!(steps.after.values().flatten().count(), dependents);
    }
}
