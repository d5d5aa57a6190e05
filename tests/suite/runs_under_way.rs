//! Runs of one set that know of each other: a run begins and ends on the parent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::support::{
    Files, GROUP_KINDS, Program, ProgramEnd, Proxy, Set, Verdict, cluster, config_map, identities, namespace,
    objects_file, secret, service,
};

/// A set with a `ConfigMap` and a Secret in its namespace.
fn applied() -> (Set, [Value; 2]) {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let objects = [config_map(&home, "one", "1"), secret(&home, "two")];
    set.apply(&objects);
    (set, objects)
}

fn runs(set: &Set) -> Value {
    let list = Program::new().args(["list", "-n", &set.namespace, "-o", "json"]);
    let run = list.run().expect(0);
    let document: Value = serde_json::from_str(&run.stdout).expect("a document");
    let mut sets = document["sets"].as_array().expect("sets").iter();
    let listed = sets.find(|listed| listed["id"] == set.id).expect("the set");
    listed["runs"].clone()
}

/// The scene of the window that was known before: a run is paused between its beginning and its member, and
/// another apply and a repair work on the set in that time. The run is killed after its member.
#[test]
fn what_a_killed_run_has_written_is_recorded_whatever_others_did() {
    let (set, [one, two]) = applied();
    let (other, narrower) = (set.clone(), one.clone());
    let is_first = AtomicBool::new(true);
    // The first write begins the run, and the second one is the member.
    let proxy = Proxy::gated(move |writes| {
        if writes == 1 && is_first.swap(false, Ordering::SeqCst) {
            other.apply_with(std::slice::from_ref(&narrower), &["--allow-prune-all"]);
            other.invoke("verify", &["--fix", "--yes"]);
        }
        if writes < 2 {
            Verdict::Forward
        } else {
            Verdict::Hold
        }
    });
    let added = service(&set.namespace, "three", 80);
    let files = Files::new().with("a.yaml", &objects_file(&[one.clone(), two, added.clone()]));
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let end = set.command(program, &files).run_until_held(&proxy);
    assert_eq!(end, ProgramEnd::Killed);
    assert_eq!(set.members(), identities([&one, &added]));
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    set.invoke("verify", &["--fix", "--yes"]);
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    set.assert_put_in_order(std::slice::from_ref(&one), std::slice::from_ref(&one));
}

#[test]
fn a_run_under_way_is_shown_and_keeps_the_record_and_the_parent() {
    let (set, [one, two]) = applied();
    let (proxy, held, go) = Proxy::held_at(1);
    let wanted = [one.clone(), two.clone(), service(&set.namespace, "three", 80)];
    let files = Files::new().with("a.yaml", &objects_file(&wanted));
    let running = set
        .command(Program::with_kubeconfig(&proxy.kubeconfig()), &files)
        .start();
    held.recv().expect("the first member");

    let listed = runs(&set);
    assert_eq!(listed[0]["state"], "running", "{listed}");
    assert_eq!(listed[0]["operation"], "apply");
    assert_eq!(listed[0]["user"], "admin");
    let view = set.invocation(Program::new(), "view", &[]).run().expect(0);
    assert!(view.stdout.contains("apply by admin"), "{}", view.stdout);
    let second = set.apply(std::slice::from_ref(&one));
    assert!(
        second.stderr.contains("narrowed only after both runs"),
        "{}",
        second.stderr
    );
    let kinds = set.annotation(GROUP_KINDS).expect("a record");
    assert_eq!(kinds, "ConfigMap,Secret,Service");
    let deleted = set.delete(&[]).expect(1);
    assert!(deleted.stderr.contains("has not ended"), "{}", deleted.stderr);

    go.send(()).expect("a proxy");
    running.finish().expect(0);
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    assert_eq!(runs(&set), json!([]));
    set.apply(&wanted);
    set.assert_holds(&wanted);
}

#[test]
fn a_killed_run_is_in_the_history_until_it_is_abandoned() {
    let (set, objects) = applied();
    let proxy = Proxy::holding_after(1);
    let added = [&objects[..], &[service(&set.namespace, "three", 80)]].concat();
    let files = Files::new().with("a.yaml", &objects_file(&added));
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    set.command(program, &files).run_until_held(&proxy);
    let unchanged = set.parent_version();
    set.apply(&objects);
    // Nothing is left to do but to narrow the record, and the other run may still write.
    assert_eq!(set.parent_version(), unchanged);
    set.abandon_runs();
    assert_eq!(runs(&set)[0]["state"], "abandoned");
    let next = set.apply(&objects);
    assert!(next.stderr.contains("never ended"), "{}", next.stderr);
    set.assert_holds(&objects);
    assert_eq!(runs(&set), json!([]));
}

/// An entry that is dropped while its run is paused is written again with the record.
#[test]
fn a_run_that_was_taken_for_abandoned_records_its_members_again() {
    let (set, [one, two]) = applied();
    let paused = Arc::new(set.clone());
    let other = Arc::clone(&paused);
    let narrower = one.clone();
    let proxy = Proxy::before_write(2, move || {
        other.abandon_runs();
        other.apply_with(std::slice::from_ref(&narrower), &["--allow-prune-all"]);
    });
    let added = service(&set.namespace, "three", 80);
    let run = set
        .apply_through(&proxy, &[one.clone(), two, added], &[])
        .expect(0);
    assert!(!run.stderr.contains("error"), "{}", run.stderr);
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    assert!(cluster().live(&one).is_some());
}
