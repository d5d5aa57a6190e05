//! Undoes of objects that are still being deleted.

use std::slice::from_ref;

use super::*;

/// A `ConfigMap` with a finalizer that nothing removes.
fn held(namespace: &str) -> Value {
    with(
        config_map(namespace, "held", "1"),
        &json!({"metadata": {"finalizers": ["example.com/hold"]}}),
    )
}

fn release(object: &Value) {
    cluster().patch(object, &json!({"metadata": {"finalizers": null}}));
}

#[test]
fn an_undo_waits_for_what_the_run_is_still_deleting() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let (stays, held) = (config_map(&home, "stays", "1"), held(&home));
    runs.set.apply(&[stays.clone(), held.clone()]);
    runs.apply("undo", from_ref(&stays), &[]).expect(0);
    let before = cluster().live(&held).expect("the object")["metadata"]["uid"].clone();

    let run = runs.undo("undo", &["--timeout=3s"]).expect(1);
    assert_eq!(actions(&run)["ConfigMap/held"], "failed");
    assert!(
        run.stderr.contains("finalizer example.com/hold"),
        "{}",
        run.stderr
    );
    runs.undo("undo", &["--dry-run=server"]).expect(0);
    let run = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let again = runs.file("again");
            let undo = runs.undo_by(Program::new(), "undo");
            undo.args(["--undo-out".into(), again]).run()
        });
        release(&held);
        run.join().expect("no panic").expect(0)
    });
    let action = actions(&run)["ConfigMap/held"].clone();
    assert!(["created", "recreated"].contains(&action.as_str()), "{action}");
    assert_ne!(
        cluster().live(&held).expect("the object")["metadata"]["uid"],
        before
    );
    runs.set.assert_holds(&[stays.clone(), held.clone()]);
    release(&held);
}

#[test]
fn an_undo_waits_for_a_namespace_that_the_run_is_still_deleting() {
    let home = namespace("undo");
    let inner = fresh("undo-inner");
    let runs = Runs::of(Set::secret(&home, "web"));
    let before = [
        config_map(&home, "stays", "1"),
        namespace_object(&inner),
        config_map(&inner, "inside", "1"),
        held(&inner),
    ];
    runs.set.apply(&before);
    runs.apply("undo", &before[..1], &[]).expect(0);
    let was = cluster().live(&before[1]).expect("the namespace");
    assert!(was["metadata"]["deletionTimestamp"].is_string());
    runs.undo("undo", &["--dry-run=server"]).expect(0);
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let again = runs.file("again");
            let undo = runs.undo_by(Program::new(), "undo");
            undo.args(["--undo-out".into(), again]).run()
        });
        release(&before[3]);
        run.join().expect("no panic").expect(0)
    });
    // All that was created can be undone.
    assert!(
        runs.text("again").contains("\"inside\""),
        "{}",
        runs.text("again")
    );
    let is = cluster().live(&before[1]).expect("the namespace");
    assert_ne!(is["metadata"]["uid"], was["metadata"]["uid"]);
    runs.set.assert_holds(&before);
    release(&before[3]);
}

#[test]
fn an_object_that_others_are_deleting_is_not_reported_as_restored() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let held = held(&home);
    let changed = with(held.clone(), &json!({"data": {"key": "2"}}));
    runs.set.apply(from_ref(&held));
    runs.apply("undo", from_ref(&changed), &[]).expect(0);
    runs.undo("undo", &[]).expect(0);
    cluster().delete(&held);
    let (action, reason) = results(&runs.undo("undo", &[]).expect(1))["ConfigMap/held"].clone();
    assert_eq!(action, "skipped");
    assert!(reason.contains("finalizer example.com/hold"), "{reason}");
    release(&held);
}

#[test]
fn what_another_run_creates_during_the_undo_stays_as_it_is() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let (stays, held) = (config_map(&home, "stays", "1"), held(&home));
    runs.set.apply(&[stays.clone(), held.clone()]);
    runs.apply("undo", from_ref(&stays), &[]).expect(0);
    let newer = config_map(&home, "held", "2");
    std::thread::scope(|scope| {
        let undo = scope.spawn(|| runs.undo_by(Program::new(), "undo").run());
        release(&held);
        runs.set.apply(&[stays.clone(), newer.clone()]);
        drop(undo.join().expect("no panic"));
    });
    runs.set.assert_holds(&[stays, newer]);
}
