//! Many runs on one set at once, with the same and with different manifests.
//!
//! `concurrency` puts one run inside another at each of its writes; this lets processes
//! race, and tries the orders that a race seldom takes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use crate::support::{
    Proxy, Run, Set, cluster, cluster_role, config_map, fresh, namespace, namespace_object, secret, service,
};

/// Starts a run for each of these manifests at once, and waits for all.
fn race(set: &Set, manifests: &[&[Value]]) -> Vec<Run> {
    thread::scope(|scope| {
        let runs: Vec<_> = manifests
            .iter()
            .map(|objects| scope.spawn(|| set.apply_with(objects, &["--allow-prune-all"])))
            .collect();
        runs.into_iter()
            .map(|run| run.join().expect("no panic"))
            .collect()
    })
}

#[track_caller]
fn expect_all(runs: Vec<Run>, code: i32) {
    for run in runs {
        run.expect(code);
    }
}

/// Asserts that one more run puts everything in order, and that nothing is left to do.
#[track_caller]
fn assert_settles(set: &Set, objects: &[Value], namespaces: &[&str]) {
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    set.apply_with(objects, &["--allow-prune-all"]).expect(0);
    set.assert_holds(objects);
    let settled = cluster().state(namespaces);
    let run = set.apply(objects);
    assert_eq!(run.warnings(), Vec::<String>::new());
    assert_eq!(cluster().state(namespaces), settled);
}

#[test]
fn runs_with_the_same_manifests_all_succeed() {
    let [a, b, c] = [namespace("a"), namespace("b"), namespace("c")];
    let set = Set::secret(&a, "web");
    let map = |number: usize, value: &str| config_map(&b, &format!("one-{number}"), value);
    let role = cluster_role(&fresh("role"));
    let first: Vec<Value> = (0..10).map(|number| map(number, "1")).collect();
    let first = [
        first.as_slice(),
        &[secret(&a, "two"), service(&c, "web", 80), role],
    ]
    .concat();
    let second: Vec<Value> = (5..15).map(|number| map(number, "2")).collect();
    let second = [second.as_slice(), &[secret(&c, "two")]].concat();
    for objects in [&first, &second, &first] {
        expect_all(race(&set, &[objects.as_slice(); 6]), 0);
        assert_settles(&set, objects, &[&a, &b, &c]);
    }
}

#[test]
fn first_runs_that_bring_the_namespace_of_their_parent_all_succeed() {
    let home = fresh("home");
    let away = fresh("away");
    let set = Set::secret(&home, "web");
    let objects = [
        namespace_object(&home),
        namespace_object(&away),
        config_map(&home, "one", "1"),
        secret(&away, "two"),
    ];
    expect_all(race(&set, &[objects.as_slice(); 5]), 0);
    assert_settles(&set, &objects, &[&home, &away]);
}

#[test]
fn runs_that_bring_the_parent_itself_all_succeed() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    let members = [config_map(&a, "one", "1"), service(&b, "web", 80)];
    let objects = [&members[..], &[secret(&a, "web")]].concat();
    expect_all(race(&set, &[objects.as_slice(); 5]), 0);
    set.apply(&objects);
    set.assert_holds(&members);
}

#[test]
fn runs_with_different_manifests_lose_no_place_from_the_record() {
    let names: Vec<String> = (0..4).map(|_| namespace("place")).collect();
    let set = Set::secret(&names[0], "web");
    let role = cluster_role(&fresh("role"));
    // Each pair of manifests shares something, and each has a kind or a place of its own.
    let manifests = [
        vec![
            config_map(&names[0], "shared", "1"),
            service(&names[1], "one", 80),
        ],
        vec![
            config_map(&names[0], "shared", "1"),
            secret(&names[2], "two"),
            role,
        ],
        vec![secret(&names[2], "two"), config_map(&names[3], "three", "1")],
        vec![service(&names[1], "one", 80), secret(&names[1], "four")],
    ];
    let all: Vec<&[Value]> = manifests.iter().map(Vec::as_slice).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for round in 0..4 {
        expect_all(race(&set, &all), 0);
        assert_eq!(set.unrecorded(), Vec::<String>::new(), "round {round}");
        assert_settles(&set, all[round], &names);
    }
}

/// What one run inside another is tried with.
struct Nested {
    first: Vec<Value>,
    outer: Vec<Value>,
    inner: Vec<Value>,
    /// Exit code of the outer run.
    code: i32,
}

/// Runs `inner` before each write of `outer` in turn, and asserts that no member gets out
/// of the record's sight.
fn nest_everywhere(scenario: impl Fn(&str, &str) -> Nested) {
    let mut reached = BTreeSet::new();
    for write in 0.. {
        let [a, b] = [namespace("a"), namespace("b")];
        let set = Arc::new(Set::secret(&a, "web"));
        let Nested {
            first,
            outer,
            inner,
            code,
        } = scenario(&a, &b);
        set.apply(&first);
        let ran = Arc::new(Mutex::new(None));
        let within = (Arc::clone(&set), Arc::clone(&ran), inner.clone());
        let proxy = Proxy::before_write(write, move || {
            let (set, ran, inner) = &within;
            *ran.lock().expect("no panic") = Some(set.apply_with(inner, &[]).code);
        });
        set.apply_through(&proxy, &outer, &["--concurrency=1"])
            .expect(code);
        assert_eq!(set.unrecorded(), Vec::<String>::new(), "before write {write}");
        match *ran.lock().expect("no panic") {
            Some(code) => assert_eq!(code, 0, "the inner run before write {write}"),
            None => break,
        }
        reached.insert(write);
        assert_settles(&set, &inner, &[&a, &b]);
    }
    assert!(reached.len() > 1, "only {} writes", reached.len());
}

#[test]
fn a_place_that_one_run_leaves_while_another_comes_back_to_it_stays_recorded() {
    // The record holds the place already, so the run that comes back does not write it.
    nest_everywhere(|a, b| {
        let both = vec![config_map(a, "one", "1"), service(b, "web", 80)];
        Nested {
            first: both.clone(),
            outer: both[..1].to_vec(),
            inner: both,
            code: 0,
        }
    });
}

#[test]
fn what_a_run_applied_that_then_failed_stays_recorded_though_another_one_left_the_place() {
    nest_everywhere(|a, b| Nested {
        first: vec![config_map(a, "one", "1"), secret(b, "dropped")],
        outer: vec![
            config_map(a, "one", "1"),
            secret(b, "new"),
            service(a, "invalid", 0),
        ],
        inner: vec![config_map(a, "one", "1")],
        code: 1,
    });
}
