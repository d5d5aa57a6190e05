//! Two new sets that both take an object which was in no set when they looked: the object
//! is in one of them, and at least one run says so and fails.

use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::{
    Files, Program, Proxy, Set, cluster, config_map, identities, namespace, objects_file, service,
};

/// Applies `object` to the set `late`, and right before its apply to the set `early`. Asserts that
/// the late run fails and names the other set.
fn race(home: &str, object: &Value) {
    let early = Arc::new(Set::secret(home, "early"));
    let late = Set::secret(home, "late");
    let ran = Arc::new(Mutex::new(None));
    let within = (Arc::clone(&early), Arc::clone(&ran), object.clone());
    // The first write is the parent.
    let proxy = Proxy::before_write(1, move || {
        let (early, ran, object) = &within;
        let run = early.apply_with(std::slice::from_ref(object), &[]);
        *ran.lock().expect("no panic") = Some(run.code);
    });

    let run = late
        .apply_through(&proxy, std::slice::from_ref(object), &[])
        .expect(1);

    assert_eq!(*ran.lock().expect("no panic"), Some(0));
    assert_eq!(run.results("failed"), identities([object]));
    assert_eq!(run.errors().len(), 1, "{}", run.stderr);
    assert!(run.errors()[0].contains(&early.id), "{}", run.stderr);
    assert_eq!(late.unrecorded(), Vec::<String>::new());
    assert_eq!(late.members(), identities([object]));
    // The set that has lost it is told so by its next run, and the other one has it.
    early.apply_with(std::slice::from_ref(object), &[]).expect(3);
    let run = late.apply(std::slice::from_ref(object));
    assert_eq!(run.results("unchanged"), identities([object]));
}

#[test]
fn a_new_object_that_another_set_made_first_is_reported() {
    let home = namespace("home");
    race(&home, &config_map(&home, "shared", "1"));
}

#[test]
fn an_object_without_a_set_that_another_set_took_first_is_reported() {
    let home = namespace("home");
    let shared = config_map(&home, "shared", "1");
    cluster().apply_as("kubectl", &shared);
    race(&home, &shared);
}

#[test]
fn the_set_that_loses_an_object_while_it_runs_reports_it_as_well() {
    let home = namespace("home");
    let shared = config_map(&home, "shared", "1");
    cluster().apply_as("kubectl", &shared);
    let [early, late] = ["early", "late"].map(|name| Set::secret(&home, name));
    let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(&shared)));
    let (held, is_reached, go_on) = Proxy::held_at(1);
    let running = late
        .command(Program::with_kubeconfig(&held.kubeconfig()), &files)
        .args(["-o", "json"])
        .start();
    is_reached.recv().expect("the apply of the late run");
    let ends = Mutex::new((go_on, Some(running)));
    let late_run = Arc::new(Mutex::new(None));
    let told = Arc::clone(&late_run);
    // The second write of the early run is the shared object, and the third the Service.
    let proxy = Proxy::before_write(2, move || {
        let (go_on, running) = &mut *ends.lock().expect("no panic");
        go_on.send(()).expect("the proxy waits");
        *told.lock().expect("no panic") = running.take().map(crate::support::Running::finish);
    });

    let run = early
        .apply_through(&proxy, &[shared.clone(), service(&home, "own", 80)], &[])
        .expect(1);

    assert!(run.errors()[0].contains(&late.id), "{}", run.stderr);
    let late_run = late_run.lock().expect("no panic").take().expect("it ran");
    assert!(late_run.expect(1).errors()[0].contains(&early.id));
    assert_eq!(late.members(), identities([&shared]));
}

#[test]
fn objects_without_a_set_are_taken_and_new_ones_cost_nothing_more() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let map = |number: usize| config_map(&home, &format!("one-{number}"), "1");
    let objects: Vec<Value> = (0..100).map(map).collect();
    for object in &objects[..3] {
        cluster().apply_as("kubectl", object);
    }
    let proxy = Proxy::transparent();

    let run = set.apply_through(&proxy, &objects, &[]).expect(0);

    assert_eq!(run.results("configured"), identities(&objects[..3]));
    assert_eq!(run.warnings(), Vec::<String>::new());
    let sent = proxy.sent();
    let reads = sent
        .iter()
        .filter(|sent| sent.path.contains("resourceVersionMatch=Exact"));
    assert_eq!(reads.count(), 3);
    set.assert_holds(&objects);

    let new = Set::secret(&home, "new");
    let map = |number: usize| config_map(&home, &format!("two-{number}"), "1");
    let objects: Vec<Value> = (0..100).map(map).collect();
    let proxy = Proxy::transparent();
    new.apply_through(&proxy, &objects, &[]).expect(0);
    assert!(proxy.sent().len() <= 120, "{}", proxy.sent().len());
}
