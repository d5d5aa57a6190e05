//! Two runs of one set at once, and a run that a person stops.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::{
    Files, Program, Proxy, Set, Verdict, cluster, config_map, eventually, namespace, objects_file, secret,
    service,
};

/// Whether the parent's own manifest is among those of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParentManifest {
    Absent,
    Present,
}

/// Runs one apply, and before its write of this number a whole second one. Asserts that
/// no member got out of the record's sight, and that a last run puts all in order.
/// Says whether the first run got as far as that write. `parent` is whether the manifests
/// of the first run hold the parent's own.
fn run_within_a_run(write: usize, parent: ParentManifest) -> bool {
    let [a, b, c] = [namespace("a"), namespace("b"), namespace("c")];
    let set = Arc::new(Set::secret(&a, "web"));
    set.apply(&[config_map(&a, "one", "1"), config_map(&b, "dropped", "1")]);
    let mut outer = vec![config_map(&a, "one", "2"), secret(&a, "outer")];
    if parent == ParentManifest::Present {
        outer.push(secret(&a, "web"));
    }
    let inner = [config_map(&a, "one", "1"), service(&c, "inner", 80)];

    let ran = Arc::new(Mutex::new(None));
    let within = (Arc::clone(&set), Arc::clone(&ran));
    let proxy = Proxy::before_write(write, move || {
        let (set, ran) = &within;
        let run = set.apply_with(&inner, &[]);
        *ran.lock().expect("no panic") = Some(run.code);
    });
    set.apply_through(&proxy, &outer, &[]);
    let Some(code) = *ran.lock().expect("no panic") else {
        return false;
    };
    assert_eq!(code, 0, "the inner run before write {write}");
    assert_eq!(set.unrecorded(), Vec::<String>::new(), "before write {write}");

    let last = [config_map(&a, "last", "1")];
    set.apply_with(&last, &["--allow-prune-all"]).expect(0);
    set.assert_holds(&last);
    true
}

#[test]
fn a_run_does_not_erase_what_another_one_recorded_during_it() {
    let mut writes = 0;
    while run_within_a_run(writes, ParentManifest::Absent) {
        writes += 1;
    }
    assert!(writes >= 5, "only {writes} writes");
}

#[test]
fn a_run_that_brings_its_parent_does_not_erase_what_another_one_recorded_during_it() {
    let mut writes = 0;
    while run_within_a_run(writes, ParentManifest::Present) {
        writes += 1;
    }
    assert!(writes >= 6, "only {writes} writes");
}

/// A gate that reports when it is asked for the second write, and then waits for a word.
fn pausing_gate() -> (Proxy, Receiver<()>, Sender<()>) {
    let (reached, is_reached) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let ends = Mutex::new((reached, released));
    let proxy = Proxy::gated(move |writes| {
        if writes == 1 {
            let (reached, released) = &*ends.lock().expect("no panic");
            let _ = reached.send(());
            let _ = released.recv();
        }
        Verdict::Forward
    });
    (proxy, is_reached, release)
}

#[test]
fn a_run_that_is_interrupted_stops_reports_and_converges_later() {
    let [a, b] = [namespace("a"), namespace("b")];
    let set = Set::secret(&a, "web");
    set.apply(&[service(&b, "dropped", 80)]);
    let objects: Vec<Value> = (0..5)
        .map(|number| config_map(&a, &format!("one-{number}"), "1"))
        .collect();
    let files = Files::new().with("a.yaml", &objects_file(&objects));
    let (proxy, is_reached, release) = pausing_gate();

    let mut running = set
        .command(Program::with_kubeconfig(&proxy.kubeconfig()), &files)
        .args(["--concurrency=1", "-o", "json"])
        .start();
    is_reached.recv().expect("the second write");
    running.interrupt();
    running.wait_for_message("stopping");
    release.send(()).expect("the gate waits");
    let run = running.finish().expect(130);

    // The write that was under way is carried out, and none after it.
    assert_eq!(run.results("created"), [format!("ConfigMap {a}/one-0")]);
    assert_eq!(run.results("pruned"), Vec::<String>::new());
    assert!(cluster().live(&service(&b, "dropped", 80)).is_some());
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    set.apply(&objects);
    set.assert_holds(&objects);
}

#[test]
fn a_run_that_is_interrupted_twice_ends_at_once_and_still_reports() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    let files = Files::new().with("a.yaml", &objects_file(&objects));
    let proxy = Proxy::holding_after(2);
    let mut running = set
        .command(Program::with_kubeconfig(&proxy.kubeconfig()), &files)
        .args(["--concurrency=1", "-o", "json"])
        .start();
    eventually("a write is held", || proxy.holds().then_some(()));
    running.interrupt();
    running.wait_for_message("stopping");
    running.interrupt();
    let run = running.finish().expect(130);

    assert_eq!(run.results("created"), [format!("ConfigMap {home}/one")]);
    assert_eq!(run.document()["error"]["exitCode"], 130);
    let warns = |warning: &String| warning.contains("may have taken effect");
    assert!(run.warnings().iter().any(warns), "{:?}", run.warnings());
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    set.apply(&objects);
    set.assert_holds(&objects);
}
