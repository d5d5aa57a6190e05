//! Tables of prunes, and all dependencies among four of them.

use super::*;
use crate::manifest::desired::Desired;
use crate::model::depends_on::{Dependencies, parse};
use crate::model::identity::GroupKind;
use crate::plan::fixtures::{live, policy, set};
use crate::plan::{Observed, plan};

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
            first_malformed: None,
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
    let steps = PruneSteps::new(&set(), prunes, &[]);
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
    let steps = PruneSteps::new(&set(), prunes, &[]);
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
    let steps = PruneSteps::new(&set(), prunes, &[]);
    assert_eq!(
        names(&steps.regular),
        [vec!["other", "settings"], vec!["web"], vec!["shop"]]
    );
    assert_eq!(steps.after[&web.key], [settings]);

    // What a late object depends on is late, too.
    let late = last(after(map("late"), &[&web]));
    let steps = PruneSteps::new(&set(), vec![web, late, live("Namespace", None, "shop")], &[]);
    assert_eq!(names(&steps.last), [vec!["late"], vec!["web"], vec!["shop"]]);
}

#[test]
fn what_is_being_deleted_has_to_be_gone_before() {
    let web = live("Deployment.apps", Some("shop"), "web");
    let going = Skip {
        live: after(map("going"), &[&web]),
        reason: ReasonToKeep::Terminating {
            waits_for: Vec::new(),
        },
    };
    let steps = PruneSteps::new(&set(), vec![web.clone()], std::slice::from_ref(&going));
    assert_eq!(steps.after[&web.key], [going.live]);
}

fn going(live: Live) -> Skip {
    Skip {
        live,
        reason: ReasonToKeep::Terminating {
            waits_for: Vec::new(),
        },
    }
}

#[test]
fn a_cycle_through_what_is_being_deleted_is_ignored() {
    let [web, one, two] = ["web", "one", "two"].map(map);
    let namespace = live("Namespace", None, "shop");
    let pruned = after(web.clone(), &[&one]);
    // The pruned object, the objects that are being deleted, and the number of cycles.
    let table = [
        (pruned.clone(), vec![after(one.clone(), &[])], 0),
        (pruned.clone(), vec![after(one.clone(), &[&web])], 1),
        (
            pruned,
            vec![after(one.clone(), &[&two]), after(two.clone(), &[&web])],
            1,
        ),
        // The objects of a namespace are gone before it.
        (web.clone(), vec![after(namespace, &[&web])], 1),
    ];
    for (place, (pruned, skips, cycles)) in table.into_iter().enumerate() {
        let skips: Vec<Skip> = skips.into_iter().map(going).collect();
        let steps = PruneSteps::new(&set_elsewhere(), vec![pruned], &skips);
        assert_eq!(steps.ignored.len(), cycles, "{place}: {:?}", steps.ignored);
        assert_eq!(steps.after.values().flatten().count(), 0, "{place}");
        assert_eq!(names(&steps.regular), [["web"]], "{place}");
    }
}

#[test]
fn what_an_object_that_is_pruned_last_depends_on_is_last_behind_what_is_being_deleted_too() {
    let web = map("web");
    let middle = after(map("middle"), &[&web]);
    let late = last(after(map("late"), &[&middle]));
    let steps = PruneSteps::new(&set(), vec![web, late], &[going(middle)]);
    assert_eq!(names(&steps.regular), Vec::<Vec<&str>>::new());
    assert_eq!(names(&steps.last), [["late"], ["web"]]);
}

/// A namespace that a cycle goes through still comes after what it holds.
#[test]
fn a_cycle_leaves_the_order_of_the_waves() {
    let inside = map("inside");
    let other = live("Namespace", None, "other");
    let shop = live("Namespace", None, "shop");
    let between = live("ClusterRole.rbac.authorization.k8s.io", None, "between");
    let prunes = vec![
        // Because of its dependent, a namespace, it is pruned as late as namespaces.
        after(inside.clone(), &[&shop]),
        after(other, &[&inside]),
        after(shop, &[&between]),
        after(between, &[&inside]),
    ];
    let steps = PruneSteps::new(&set_elsewhere(), prunes, &[]);
    assert_eq!(steps.ignored.len(), 1, "{:?}", steps.ignored);
    assert_eq!(names(&steps.regular), [["between", "inside"], ["other", "shop"]]);
}

#[test]
fn what_an_api_service_serves_is_gone_before_it_and_before_its_server() {
    let api = live("APIService.apiregistration.k8s.io", None, "v1.wardle.example");
    let served = live("Flunder.wardle.example", Some("shop"), "served");
    let server = live("Deployment.apps", Some("shop"), "server");
    let [one, two] = ["one", "two"].map(|name| live("Role.rbac.authorization.k8s.io", Some("shop"), name));
    let waves = [
        vec!["served"],
        vec!["v1.wardle.example"],
        vec!["server"],
        vec!["one", "two"],
        vec!["shop"],
    ];
    // A cycle of other objects changes nothing.
    for (one, cycles) in [(one.clone(), 0), (after(one, &[&two]), 1)] {
        let two = after(two.clone(), &[&one]);
        let prunes = vec![api.clone(), served.clone(), server.clone(), one, two];
        let prunes = prunes
            .into_iter()
            .chain([live("Namespace", None, "shop")])
            .collect();
        let steps = PruneSteps::new(&set_elsewhere(), prunes, &[]);
        assert_eq!(steps.ignored.len(), cycles, "{:?}", steps.ignored);
        assert_eq!(names(&steps.regular)[..2], waves[..2]);
        assert_eq!(steps.after[&api.key], std::slice::from_ref(&served));
        if cycles == 1 {
            assert_eq!(names(&steps.regular), waves);
        }
    }

    // Two versions hold each other only if they serve the group of `APIService`s.
    let api = |name| live("APIService.apiregistration.k8s.io", None, name);
    let prunes = ["v1.apiregistration.k8s.io", "v1beta1.apiregistration.k8s.io"]
        .map(api)
        .to_vec();
    let steps = PruneSteps::new(&set_elsewhere(), prunes, &[]);
    assert_eq!((steps.regular.len(), steps.ignored.len()), (1, 1));

    let late = last(served.clone());
    let steps = PruneSteps::new(
        &set_elsewhere(),
        vec![api("v1.wardle.example"), late, server],
        &[],
    );
    assert_eq!(names(&steps.last), [["served"], ["v1.wardle.example"]]);
}

/// A definition of its own kind, as only a hostile one is.
#[test]
fn containers_that_hold_each_other_end_the_search_for_cycles() {
    let definition = |name| Live {
        defines: Some(GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition")),
        ..live("CustomResourceDefinition.apiextensions.k8s.io", None, name)
    };
    let [one, two] = ["one", "two"].map(definition);
    let prunes = vec![after(one, &[&two]), two];
    let steps = PruneSteps::new(&set(), prunes, &[]);
    assert_eq!(steps.regular.iter().flatten().count(), 2);
}

/// A set whose parent is in none of the namespaces of the tables.
fn set_elsewhere() -> Set {
    let mut set = set();
    set.parent.namespace = Some("elsewhere".to_owned());
    set
}

#[test]
fn what_holds_the_parent_is_ordered_too() {
    let mut set = set();
    set.parent.group_kind = GroupKind::new("example.com", "Widget");
    let definition = Live {
        defines: Some(set.parent.group_kind.clone()),
        ..live("CustomResourceDefinition.apiextensions.k8s.io", None, "widgets")
    };
    let [namespace, web] = [live("Namespace", None, "shop"), map("web")];
    for (dependent, dependency) in [(&namespace, &definition), (&definition, &namespace)] {
        let dependent = after(dependent.clone(), &[dependency, &web]);
        let prunes = vec![web.clone(), dependency.clone(), dependent.clone()];
        let steps = PruneSteps::new(&set, prunes, &[]);
        let [dependent, dependency] = [&dependent, dependency].map(|live| live.key.name.as_str());
        assert_eq!(names(&steps.regular), [["web"], [dependent], [dependency]]);
        let waits: Vec<_> = steps.after.iter().collect();
        assert_eq!(waits.len(), 1);
        assert_eq!(waits[0].0.name, dependency);
    }
}

#[test]
fn faults_of_live_objects_are_reported_and_ignored() {
    let [mut one, other] = [map("one"), map("other")];
    let alone = after(map("alone"), &[&map("alone")]);
    one.dependencies.first_malformed = parse("what").err();
    let two = after(map("two"), &[&after(map("three"), &[])]);
    let three = after(map("three"), &[&two]);
    let four = after(map("four"), &[&two, &other]);
    let steps = PruneSteps::new(&set(), vec![one, other, two, three, four, alone], &[]);
    assert_eq!(steps.ignored.len(), 3, "{:?}", steps.ignored);
    assert!(steps.ignored[0].contains("what"), "{:?}", steps.ignored);
    assert!(
        steps.ignored[1].contains("configmap/alone") && steps.ignored[1].contains("itself"),
        "{:?}",
        steps.ignored
    );
    for name in [
        "configmap/two in namespace shop ->",
        "configmap/three in namespace shop",
    ] {
        assert!(steps.ignored[2].contains(name), "{:?}", steps.ignored);
    }
    assert_eq!(
        names(&steps.regular),
        [["alone", "four", "one", "other", "three", "two"]]
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
        let steps = PruneSteps::new(&set(), prunes.clone(), &[]);
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

/// All dependencies among four objects, of which two are being deleted: whatever these wait for, in the
/// end all are gone.
#[test]
fn everything_is_gone_in_the_end() {
    let objects = [
        live("Deployment.apps", Some("shop"), "a"),
        map("b"),
        map("c"),
        live("Namespace", None, "d"),
    ];
    let pairs: Vec<(usize, usize)> = (0..4)
        .flat_map(|one| (0..4).map(move |other| (one, other)))
        .filter(|(one, other)| one != other)
        // Leave out dependencies between the two objects that are being deleted: if they wait for each other, they are
        // never gone, and the run cannot change that.
        .filter(|(one, other)| *one < 2 || *other < 2)
        .collect();
    for chosen in 0_u32..1 << pairs.len() {
        let mut live = objects.to_vec();
        for (bit, (dependent, dependency)) in pairs.iter().enumerate() {
            if chosen & (1 << bit) != 0 {
                let key = objects[*dependency].key.clone();
                live[*dependent].dependencies.objects.push(key);
            }
        }
        let skips: Vec<Skip> = live[2..].iter().cloned().map(going).collect();
        let steps = PruneSteps::new(&set_elsewhere(), live[..2].to_vec(), &skips);
        let mut gone: BTreeSet<&ObjectKey> = BTreeSet::new();
        let settle = |gone: &mut BTreeSet<_>| {
            // Each of these objects waits until all its dependents are gone.
            for _ in 0..2 {
                let is_free = |going: &&Live| {
                    let mut others = live.iter();
                    others.all(|other| {
                        !other.dependencies.objects.contains(&going.key) || gone.contains(&other.key)
                    })
                };
                let free: Vec<&ObjectKey> =
                    live[2..].iter().filter(is_free).map(|going| &going.key).collect();
                gone.extend(free);
            }
        };
        for step in steps.regular.iter().chain(&steps.last) {
            settle(&mut gone);
            let waits = step.iter().filter_map(|pruned| steps.after.get(&pruned.key));
            assert!(
                waits.flatten().all(|before| gone.contains(&before.key)),
                "{chosen:b}"
            );
            let pruned = live
                .iter()
                .filter(|live| step.iter().any(|pruned| pruned.key == live.key));
            gone.extend(pruned.map(|live| &live.key));
        }
        settle(&mut gone);
        assert_eq!(gone.len(), 4, "{chosen:b}");
    }
}

#[test]
fn nothing_waits_for_the_namespace_of_the_parent() {
    let set = set();
    let parents = set.parent.namespace.as_deref().expect("a namespace");
    let web = live("Deployment.apps", Some("away"), "web");
    for (namespace, dependents) in [(parents, 0), ("other", 1)] {
        let namespace = after(live("Namespace", None, namespace), &[&web]);
        let steps = PruneSteps::new(&set, vec![web.clone(), namespace], &[]);
        assert_eq!(steps.after.values().flatten().count(), dependents);
    }
}

#[test]
fn a_prune_has_a_time_if_it_does_not_only_follow_the_applies() {
    let late = last(live("ConfigMap", Some("held"), "late"));
    let holder = live("Namespace", None, "held");
    let dependency = map("dependency");
    let dependent = after(map("dependent"), &[&dependency]);
    let observed = Observed {
        members: vec![late.clone(), holder.clone(), dependency.clone(), dependent],
        ..Observed::default()
    };
    let plan = plan(&set(), &Desired::default(), &observed, &policy());
    let expected = [
        (&late, "last, because of PruneLast=true"),
        (&holder, "last, because of another object with PruneLast=true"),
        (
            &dependency,
            "once these dependents are gone: configmap/dependent in namespace shop",
        ),
    ];
    let expected = expected.map(|(live, time)| (&*live.uid, time.to_owned()));
    assert_eq!(plan.describe_prune_times(&policy()), expected.into());
    let lines = plan.describe_prunes_by_time(&policy());
    assert_eq!(lines.len(), 3);
    let of_dependency = "configmap/dependency in namespace shop: pruned once these dependents are gone: \
                         configmap/dependent in namespace shop";
    assert!(lines.iter().any(|line| line == of_dependency), "{lines:?}");
}
