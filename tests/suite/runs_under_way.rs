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
    assert!(
        view.stdout.contains("Last run:   apply by admin, began "),
        "{}",
        view.stdout
    );
    let viewed = set.invoke("view", &["--wait"]).expect(0);
    assert_eq!(viewed.document()["lastRun"]["result"], "running");
    let second = set.apply(std::slice::from_ref(&one));
    assert!(
        second
            .stderr
            .contains("the next run after both narrows the record"),
        "{}",
        second.stderr
    );
    assert!(
        second.stderr.contains("record was not narrowed"),
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
    let viewed = set.invoke("view", &[]).expect(0).document();
    // By its time, which is old now, the killed run is before the one that has ended.
    assert_eq!(viewed["lastRun"]["result"], "done");
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

/// Starts an apply of a third object that is held before its first member, and calls `beside` while it is.
fn beside_an_apply(set: &Set, objects: &[Value], beside: impl FnOnce()) {
    let (proxy, held, go) = Proxy::held_at(1);
    let wanted = [objects, &[service(&set.namespace, "three", 80)]].concat();
    let files = Files::new().with("a.yaml", &objects_file(&wanted));
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let running = set.command(program, &files).start();
    held.recv().expect("the first member");
    beside();
    go.send(()).expect("a proxy");
    running.finish().expect(0);
    assert_eq!(set.unrecorded(), Vec::<String>::new());
}

#[test]
fn an_exclusive_run_is_refused_beside_another_one_and_writes_nothing() {
    let (set, objects) = applied();
    let other = Set::config_map(&set.namespace, "other");
    other.apply(&[config_map(&set.namespace, "of-other", "1")]);
    beside_an_apply(&set, &objects, || {
        let before = set.parent_version();
        let changed = config_map(&set.namespace, "one", "2");
        let files = Files::new().with("a.yaml", &objects_file(&[changed, objects[1].clone()]));
        let commands = [
            set.command(Program::new(), &files).args(["--exclusive"]),
            set.invocation(Program::new(), "delete", &["--yes", "--exclusive"]),
            set.invocation(Program::new(), "disband", &["--yes", "--exclusive"]),
            set.invocation(Program::new(), "move", &["configmap/new", "--exclusive"]),
            other.invocation(Program::new(), "move", &["configmap/web", "--exclusive"]),
        ];
        for command in commands {
            let run = command.run().expect(3);
            let error = run.errors().join("\n");
            assert!(error.contains("an apply by admin began"), "{error}");
            assert!(error.contains("has not ended"), "{error}");
            assert!(run.stderr.contains("verify configmap/web"), "{}", run.stderr);
        }
        assert_eq!(set.parent_version(), before);
        assert_eq!(cluster().live(&objects[0]).expect("one")["data"]["key"], "1");
    });
}

#[test]
fn an_exclusive_run_waits_for_the_other_one_and_plans_with_what_that_has_left() {
    let (set, objects) = applied();
    let files = Files::new().with("a.yaml", &objects_file(&objects));
    let mut waiting = None;
    beside_an_apply(&set, &objects, || {
        let mut second = set
            .command(Program::new(), &files)
            .args(["--exclusive=2m", "-o", "json"])
            .start();
        second.wait_for_message("for an apply by admin, which began");
        waiting = Some(second);
    });
    let run = waiting.expect("a run").finish().expect(0);
    // It prunes what the first run has added after it had read the set.
    let added = service(&set.namespace, "three", 80);
    assert_eq!(run.results("pruned"), identities([&added]), "{}", run.stderr);
    set.assert_put_in_order(&objects, &objects);
}

/// Both runs have read the set when the other one begins, and it has ended before this one begins.
#[test]
fn an_exclusive_run_does_not_carry_out_a_plan_that_another_run_has_outdated() {
    let (set, objects) = applied();
    let added = service(&set.namespace, "three", 80);
    let other = set.clone();
    let others = [config_map(&set.namespace, "one", "2"), objects[1].clone(), added];
    let proxy = Proxy::before_write(0, move || {
        other.apply_with(&others, &["--exclusive"]);
    });
    let wanted = [&objects[..], &[config_map(&set.namespace, "four", "1")]].concat();
    let run = set.apply_through(&proxy, &wanted, &["--exclusive"]).expect(0);
    assert_eq!(
        run.results("configured"),
        identities([&objects[0]]),
        "{}",
        run.stderr
    );
    set.assert_put_in_order(&wanted, &wanted);
}

#[test]
fn an_exclusive_run_that_takes_objects_out_needs_its_entry() {
    let (set, objects) = applied();
    let path = format!("/api/v1/namespaces/{}/configmaps/web", set.namespace);
    let proxy = Proxy::breaking(crate::support::Fault::InternalError, move |sent| {
        sent.method == http::Method::PATCH && sent.path.starts_with(&path)
    });
    for command in ["delete", "disband"] {
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let run = set.invocation(program, command, &["--yes", "--exclusive"]).run();
        assert_eq!(run.code, 1, "{}", run.stderr);
        set.assert_holds(&objects);
    }
}

#[test]
fn a_set_is_deleted_although_its_parent_is_being_deleted() {
    let (set, objects) = applied();
    cluster().patch(
        &set.parent,
        &json!({"metadata": {"finalizers": ["example.com/held"]}}),
    );
    cluster().delete(&set.parent);
    set.delete(&["--timeout=20s"]);
    assert_eq!(
        objects.each_ref().map(|object| cluster().live(object)),
        [None, None]
    );
    cluster().patch(&set.parent, &json!({"metadata": {"finalizers": null}}));
}

/// Entries under way leave room for the trace of a run that begins and ends beside another one.
#[test]
fn a_run_beside_many_killed_ones_leaves_its_trace() {
    let (set, [one, two]) = applied();
    for _ in 0..6 {
        let proxy = Proxy::holding_after(1);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        set.invocation(program, "delete", &["--yes", "--concurrency=1"])
            .run_until_held(&proxy);
    }
    let other = set.clone();
    let (wide, narrow) = (
        [one.clone(), two.clone(), service(&set.namespace, "three", 80)],
        one,
    );
    let is_first = AtomicBool::new(true);
    // Before its end, another run adds a kind.
    let proxy = Proxy::gated(move |writes| {
        if writes == 2 && is_first.swap(false, Ordering::SeqCst) {
            other.apply(&wide);
        }
        Verdict::Forward
    });
    set.apply_through(&proxy, std::slice::from_ref(&narrow), &["--allow-prune-all"])
        .expect(0);
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    set.assert_put_in_order(std::slice::from_ref(&narrow), std::slice::from_ref(&narrow));
}

/// Both runs have read the set when the other one begins.
#[test]
fn an_exclusive_run_that_is_overtaken_plans_again() {
    let (set, objects) = applied();
    let added = service(&set.namespace, "three", 80);
    let (other, wanted) = (set.clone(), [&objects[..], std::slice::from_ref(&added)].concat());
    let proxy = Proxy::before_write(0, move || {
        other.apply(&wanted);
    });
    let mut changed = objects.clone();
    changed[0] = config_map(&set.namespace, "one", "2");
    let run = set.apply_through(&proxy, &changed, &["--exclusive=1m"]).expect(0);
    assert!(!run.stderr.contains("error"), "{}", run.stderr);
    set.assert_put_in_order(&changed, &changed);

    // Held before its first write, this run is overtaken by one that has begun and not ended.
    let (first, held, go) = Proxy::held_at(0);
    let files = Files::new().with("a.yaml", &objects_file(&objects));
    let mut running = set
        .command(Program::with_kubeconfig(&first.kubeconfig()), &files)
        .args(["--exclusive=2m", "-o", "json"])
        .start();
    held.recv().expect("the beginning");
    beside_an_apply(&set, &changed, || {
        go.send(()).expect("a proxy");
        running.wait_for_message("for an apply by admin, which began");
    });
    let run = running.finish().expect(0);
    assert_eq!(run.results("pruned"), identities([&added]), "{}", run.stderr);
    set.assert_put_in_order(&objects, &objects);
}

#[test]
fn runs_that_take_objects_out_are_shown_and_keep_nothing_recorded() {
    let (set, objects) = applied();
    let new = Set::config_map(&set.namespace, "new");
    for (command, arguments) in [
        ("delete", &["--yes"][..]),
        ("disband", &["--yes"]),
        ("move", &[new.reference.as_str()]),
    ] {
        let proxy = Proxy::holding_after(1);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let end = set.invocation(program, command, arguments).run_until_held(&proxy);
        assert_eq!(end, ProgramEnd::Killed);
        let listed = runs(&set);
        assert_eq!(listed[0]["operation"], command, "{listed}");
        assert_eq!(listed[0]["state"], "running", "{listed}");
        // The next run is not held up by what was killed.
        set.apply(&objects[..1]);
        assert_eq!(set.annotation(GROUP_KINDS).expect("a record"), "ConfigMap");
        set.apply(&objects);
        set.assert_holds(&objects);
    }
    set.delete(&[]).expect(0);
    assert_eq!(set.live_parent(), None);
}

#[test]
fn a_deletion_that_fails_is_in_the_history() {
    let (set, objects) = applied();
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    cluster().patch(&objects[0], &held);
    set.delete(&["--timeout=5s"]);
    assert_eq!(runs(&set), json!([]));
    let history = set
        .invocation(Program::new(), "history", &["-o", "json"])
        .run()
        .expect(0);
    let history: Value = serde_json::from_str(&history.stdout).expect("a document");
    let last = &history["runs"][0];
    assert_eq!(last["operation"], "delete", "{history}");
    assert_eq!(last["deleted"], 2, "{history}");
    cluster().patch(&objects[0], &json!({"metadata": {"finalizers": null}}));
    set.delete(&[]).expect(0);
    assert_eq!(set.live_parent(), None);
}

/// A webhook that is a member and does not answer refuses writes of the parent, too.
#[test]
fn a_set_is_deleted_although_the_run_cannot_be_noted_on_its_parent() {
    let (set, objects) = applied();
    let path = format!("/api/v1/namespaces/{}/configmaps/web", set.namespace);
    let proxy = Proxy::breaking(crate::support::Fault::InternalError, move |sent| {
        sent.method == http::Method::PATCH && sent.path.starts_with(&path)
    });
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let run = set.delete_with(program, &[]).expect(0);
    assert!(
        run.warnings()
            .join("\n")
            .contains("other runs cannot see this one"),
        "{}",
        run.stderr
    );
    assert_eq!(cluster().live(&objects[0]), None);
    assert_eq!(set.live_parent(), None);
}
