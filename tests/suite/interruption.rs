//! A run that is killed between any two writes leaks nothing.
//!
//! Each test kills a run after its first write, then one after its second, and so on
//! until a run gets through; the state after one write is also the state before the
//! next. The parent must record every member at each of these points. The run after
//! that, with the same or with the next manifests, must leave exactly what they hold.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{
    Fate, Files, Program, Proxy, Set, Verdict, cluster, cluster_role, config_map, custom_resource,
    definition, fresh, namespace, namespace_object, objects_file, secret, service,
};

/// A set and three states of its manifests.
struct Scenario {
    set: Set,
    first: Vec<Value>,
    changed: Vec<Value>,
    next: Vec<Value>,
    /// A member that the parent cannot record, because the parent lives in it.
    foundation: Option<String>,
}

fn over_two_namespaces() -> Scenario {
    let [a, b] = [namespace("a"), namespace("b")];
    Scenario {
        set: Set::secret(&a, "web"),
        first: vec![
            config_map(&a, "one", "1"),
            config_map(&b, "two", "1"),
            service(&b, "web", 80),
            cluster_role(&fresh("role")),
        ],
        changed: vec![config_map(&a, "one", "2"), secret(&b, "new")],
        next: vec![config_map(&a, "three", "1")],
        foundation: None,
    }
}

/// Kills a run that applies `objects` after this many writes.
fn kill_after(writes: usize, set: &Set, objects: &[Value]) -> Fate {
    let proxy = Proxy::holding_after(writes);
    let files = Files::new().with("objects.yaml", &objects_file(objects));
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    set.command(program, &files).run_until_held(&proxy)
}

/// Kills runs of `interrupted` after more and more writes, and runs `rerun` after each.
/// `at_least` is the number of writes that the scenario is known to take.
fn kill_everywhere(
    at_least: usize,
    scenario: fn() -> Scenario,
    before: fn(&Scenario) -> Option<&[Value]>,
    interrupted: fn(&Scenario) -> &[Value],
    rerun: fn(&Scenario) -> &[Value],
) {
    for writes in 0.. {
        let scenario = scenario();
        let set = &scenario.set;
        if let Some(objects) = before(&scenario) {
            set.apply(objects);
        }
        let fate = kill_after(writes, set, interrupted(&scenario));
        let mut unrecorded = set.unrecorded();
        if set.live_parent().is_none() {
            unrecorded.retain(|member| Some(member) != scenario.foundation.as_ref());
        }
        assert_eq!(unrecorded, Vec::<String>::new(), "after {writes} writes");
        if fate == Fate::Finished {
            assert!(writes >= at_least, "only {writes} writes");
            set.assert_holds(interrupted(&scenario));
            return;
        }
        set.apply(rerun(&scenario));
        set.assert_holds(rerun(&scenario));
    }
}

#[test]
fn a_first_run_that_was_killed_is_made_good_by_the_same_run() {
    kill_everywhere(5, over_two_namespaces, |_| None, |s| &s.first, |s| &s.first);
}

#[test]
fn a_first_run_that_was_killed_leaks_nothing_into_the_next_version() {
    kill_everywhere(5, over_two_namespaces, |_| None, |s| &s.first, |s| &s.next);
}

#[test]
fn a_changing_run_that_was_killed_is_made_good_by_the_same_run() {
    kill_everywhere(
        7,
        over_two_namespaces,
        |s| Some(&s.first),
        |s| &s.changed,
        |s| &s.changed,
    );
}

#[test]
fn a_changing_run_that_was_killed_leaks_nothing_into_the_next_version() {
    kill_everywhere(
        7,
        over_two_namespaces,
        |s| Some(&s.first),
        |s| &s.changed,
        |s| &s.next,
    );
}

#[test]
fn a_run_that_brings_the_namespace_of_its_parent_can_be_killed() {
    let scenario = || {
        let home = fresh("home");
        let other = fresh("other");
        Scenario {
            set: Set::secret(&home, "web"),
            first: vec![
                namespace_object(&home),
                namespace_object(&other),
                config_map(&home, "one", "1"),
                config_map(&other, "two", "1"),
            ],
            changed: Vec::new(),
            next: vec![namespace_object(&home), config_map(&home, "three", "1")],
            foundation: Some(format!("Namespace -/{home}")),
        }
    };
    kill_everywhere(5, scenario, |_| None, |s| &s.first, |s| &s.next);
}

#[test]
fn a_run_that_brings_its_parent_can_be_killed() {
    let scenario = || {
        let home = namespace("home");
        Scenario {
            set: Set::secret(&home, "web"),
            first: vec![config_map(&home, "one", "1"), config_map(&home, "two", "1")],
            changed: Vec::new(),
            next: vec![config_map(&home, "three", "1")],
            foundation: None,
        }
    };
    for writes in 0.. {
        let scenario = scenario();
        let set = &scenario.set;
        let parent = secret(&set.namespace, "web");
        let with_parent = |members: &[Value]| [std::slice::from_ref(&parent), members].concat();
        let fate = kill_after(writes, set, &with_parent(&scenario.first));
        assert_eq!(set.unrecorded(), Vec::<String>::new(), "after {writes} writes");
        if fate == Fate::Finished {
            assert!(writes >= 4, "only {writes} writes");
            return;
        }
        set.apply(&with_parent(&scenario.next));
        set.assert_holds(&scenario.next);
        let live = set.live_parent().expect("a parent");
        assert_eq!(live["data"], json!({"key": "dmFsdWU="}));
    }
}

#[test]
fn a_run_that_brings_its_custom_parent_and_the_definition_can_be_killed() {
    for writes in 0.. {
        let group = format!("{}.example.com", fresh("g"));
        let [a, b] = [namespace("a"), namespace("b")];
        let set = Set::custom(&group, None, &a);
        let definition = definition(&group, "Cluster");
        let parent = custom_resource(&group, None, "web");
        let members = [
            definition.clone(),
            config_map(&a, "one", "1"),
            config_map(&b, "two", "1"),
        ];
        let fate = kill_after(
            writes,
            &set,
            &[members.as_slice(), std::slice::from_ref(&parent)].concat(),
        );
        let mut unrecorded = set.unrecorded();
        // The parent cannot exist before its definition does.
        unrecorded.retain(|member| !member.starts_with("CustomResourceDefinition"));
        assert_eq!(unrecorded, Vec::<String>::new(), "after {writes} writes");
        if fate == Fate::Finished {
            assert!(writes >= 5, "only {writes} writes");
            set.assert_holds(&members);
            return;
        }
        let next = [definition, config_map(&a, "three", "1")];
        set.apply(&[next.as_slice(), &[parent]].concat());
        set.assert_holds(&next);
    }
}

#[test]
fn the_record_covers_all_members_at_every_write() {
    let scenario = over_two_namespaces();
    let set = Arc::new(scenario.set);
    for objects in [&scenario.first, &scenario.changed, &scenario.next] {
        let unrecorded = Arc::new(Mutex::new(Vec::new()));
        let witness = (Arc::clone(&set), Arc::clone(&unrecorded));
        let proxy = Proxy::gated(move |writes| {
            let (set, unrecorded) = &witness;
            let found = set.unrecorded().into_iter();
            let found = found.map(|member| format!("{member} after {writes} writes"));
            unrecorded.lock().expect("no panic").extend(found);
            Verdict::Forward
        });
        set.apply_through(&proxy, objects, &[]).expect(0);
        assert!(proxy.sent().iter().filter(|sent| sent.is_write()).count() > 1);
        assert_eq!(*unrecorded.lock().expect("no panic"), Vec::<String>::new());
        set.assert_holds(objects);
    }
}

#[test]
fn what_a_run_whose_parent_was_deleted_left_behind_is_taken_up() {
    let shop = namespace("shop");
    let set = Set::secret(&shop, "web");
    set.apply(&[config_map(&shop, "one", "1"), config_map(&shop, "two", "1")]);
    cluster().delete(&set.parent);

    let run = set.apply(&[config_map(&shop, "one", "1")]);

    assert_ne!(run.document()["warnings"], json!([]));
    set.assert_holds(&[config_map(&shop, "one", "1")]);
}
