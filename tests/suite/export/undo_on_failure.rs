//! `apply --undo-on-failure`: a run whose wait fails is undone, and never more than that run.

use super::*;

/// A Pod that never becomes ready, because there are no nodes.
fn stuck(namespace: &str, name: &str) -> Value {
    with(
        named("v1", "Pod", Some(namespace), name),
        &json!({"spec": {"containers": [{"name": "app", "image": "app"}]}}),
    )
}

const UNDONE: [&str; 2] = ["--undo-on-failure", "--wait=1s"];

fn apply_or_undo(set: &Set, objects: &[Value], flags: &[&str]) -> Run {
    set.apply_with(objects, &[&UNDONE[..], flags].concat())
}

fn undone(run: &Run) -> Value {
    let summary = &run.document()["undo"]["summary"];
    let counts = summary.as_object().into_iter().flatten();
    counts
        .filter(|(_, count)| **count != json!(0))
        .map(|(action, count)| (action.clone(), count.clone()))
        .collect()
}

#[test]
fn a_run_whose_wait_fails_is_undone() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    let before = [
        config_map(&home, "one", "1"),
        config_map(&home, "leaves", "1"),
        secret(&home, "kept"),
    ];
    set.apply(&before);
    let was = contents(&set, &before);
    let after = [
        config_map(&home, "one", "2"),
        secret(&home, "kept"),
        stuck(&home, "new"),
    ];

    let run = apply_or_undo(&set, &after, &[]).expect(1);

    set.assert_holds(&before);
    assert_eq!(contents(&set, &before), was);
    assert_eq!(cluster().live(&after[2]), None);
    let document = run.document();
    assert_eq!(document["waiting"][0]["name"], "new");
    assert_eq!(document["summary"]["created"], 1);
    assert_eq!(document["error"]["exitCode"], 1);
    assert_eq!(
        undone(&run),
        json!({"configured": 1, "unchanged": 2, "pruned": 1})
    );
    // The reasons come before the undo.
    let [reason, undo] = ["pod/new in namespace", "undoing the run"].map(|text| run.stderr.find(text));
    assert!(reason.is_some() && reason < undo, "{}", run.stderr);
    let history = set.invoke("history", &[]).expect(0).document();
    let runs = history["runs"].as_array().expect("runs");
    let results: Vec<&Value> = runs.iter().map(|run| &run["result"]).collect();
    assert_eq!(runs.len(), 3, "{results:?}");

    // The next run applies again.
    set.apply_with(&after, &["--undo-on-failure", "--wait=1s", "--timeout=1m"])
        .expect(1);
    set.assert_holds(&before);
    // A wait that succeeds prunes.
    let run = apply_or_undo(&set, &before[..1], &["--wait-failures=0"]).expect(0);
    assert_eq!(run.document().get("undo"), None);
    set.assert_holds(&before[..1]);
}

#[test]
fn the_time_limit_of_the_run_ends_the_wait_and_not_the_undo() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    let before = [config_map(&home, "one", "1")];
    set.apply(&before);
    let after = [config_map(&home, "one", "2"), stuck(&home, "new")];
    let flags = ["--undo-on-failure", "--wait", "--timeout=10s"];
    let run = set.apply_with(&after, &flags).expect(1);
    set.assert_holds(&before);
    assert_eq!(
        undone(&run),
        json!({"configured": 1, "pruned": 1}),
        "{}",
        run.stderr
    );
}

#[test]
fn a_run_that_fails_while_it_writes_is_undone() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    let before = [config_map(&home, "one", "1")];
    set.apply(&before);
    let invalid = with(
        service(&home, "web", 80),
        &json!({"spec": {"ports": [{"name": "a", "port": 99999}]}}),
    );
    let after = [
        config_map(&home, "one", "2"),
        config_map(&home, "two", "1"),
        invalid,
    ];
    apply_or_undo(&set, &after, &[]).expect(1);
    set.assert_holds(&before);
    assert_eq!(cluster().live(&after[1]), None);
}

#[test]
fn objects_of_a_first_run_stay() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), stuck(&home, "new")];
    let run = apply_or_undo(&set, &objects, &[]).expect(1);
    set.assert_holds(&objects);
    assert!(run.stderr.contains("kubectl applyset delete"), "{}", run.stderr);
    // The next run has changed nothing, so there is nothing to undo.
    let run = apply_or_undo(&set, &objects, &[]).expect(1);
    set.assert_holds(&objects);
    assert_eq!(run.document().get("undo"), None);
}

#[test]
fn what_another_run_has_written_is_not_undone() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    let before = [config_map(&home, "one", "1")];
    set.apply(&before);
    let after = [config_map(&home, "one", "2"), stuck(&home, "new")];
    let files = Files::new().with("objects.yaml", &objects_file(&after));
    let mut running = set
        .command(Program::new(), &files)
        .args(["--undo-on-failure", "--wait=0", "-v"])
        .start();
    running.wait_for_message("waiting for 2 objects");
    let others = [
        after[0].clone(),
        after[1].clone(),
        config_map(&home, "other", "1"),
    ];
    set.apply(&others);
    // The wait fails once the other run has ended.
    cluster().patch_status(&after[1], &json!({"phase": "Failed"}));
    let run = running.finish().expect(1);
    set.assert_holds(&others);
    assert!(run.stderr.contains("the run was not undone"), "{}", run.stderr);
}

#[test]
fn a_run_that_is_stopped_is_not_undone() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    let after = [config_map(&home, "one", "2"), stuck(&home, "new")];
    let files = Files::new().with("objects.yaml", &objects_file(&after));
    let undo_files = Files::new();
    let undo = undo_files.path("before.yaml").display().to_string();
    let mut running = set
        .command(Program::new(), &files)
        .args(["--undo-on-failure", "--wait=0", "-v", "--undo-out", &undo])
        .start();
    running.wait_for_message("waiting for 2 objects");
    running.interrupt();
    let run = running.finish().expect(130);
    set.assert_holds(&after);
    assert!(run.stderr.contains("before.yaml"), "{}", run.stderr);
}

#[test]
fn data_of_the_run_is_not_lost_without_consent() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    let before = [config_map(&home, "one", "1")];
    set.apply(&before);
    let volume = with(
        named("v1", "PersistentVolumeClaim", Some(&home), "data"),
        &json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}),
    );
    let after = [config_map(&home, "one", "2"), volume];
    let run = apply_or_undo(&set, &after, &[]).expect(1);
    set.assert_holds(&after);
    assert!(run.stderr.contains("--allow-data-loss"), "{}", run.stderr);
}

#[test]
fn an_undo_needs_a_wait_before_the_prunes() {
    let home = namespace("undo");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1")];
    for flags in [
        &["--undo-on-failure"][..],
        &["--undo-on-failure", "--wait=false"],
        &["--undo-on-failure", "--wait", "--prune-when=applied"],
    ] {
        let run = set.apply_with(&objects, flags).expect(2);
        assert!(run.stderr.contains("--undo-on-failure"), "{}", run.stderr);
    }
    assert_eq!(cluster().live(&objects[0]), None);
    for flags in [
        &["--prune-when=ready"][..],
        &["--dry-run=server"],
        &["--prune=false"],
    ] {
        apply_or_undo(&set, &objects, flags).expect(0);
    }
}
