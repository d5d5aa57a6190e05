//! Others write while an undo is being prepared.

use std::slice::from_ref;

use super::*;
use crate::support::{Fault, Proxy};

/// Has something done right before the members are listed.
fn before_list(act: impl Fn() + Send + Sync + 'static) -> Proxy {
    Proxy::before_request(|sent| sent.path.contains("/configmaps?"), act)
}

#[test]
fn what_changes_after_it_was_judged_is_not_deleted() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let [one, created] = ["one", "created"].map(|name| config_map(&home, name, "1"));
    runs.set.apply(from_ref(&one));
    runs.apply("undo", &[one, created.clone()], &[]).expect(0);
    let target = created.clone();
    let proxy = before_list(move || {
        cluster().patch(&target, &json!({"data": {"precious": "1"}}));
    });
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let run = runs.undo_by(program, "undo").run();
    let live = cluster().live(&created);
    assert_eq!(
        live.map(|live| live["data"]["precious"].clone()),
        Some(json!("1")),
        "{}",
        run.stderr
    );
    run.expect(1);
    assert_eq!(runs.set.unrecorded(), Vec::<String>::new());
    let again = runs.undo("undo", &[]).expect(1);
    assert_eq!(actions(&again)["ConfigMap/created"], "skipped");
}

#[test]
fn a_change_of_the_status_alone_does_not_stop_a_delete() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let one = config_map(&home, "one", "1");
    let created = deployment(&home, "created", 0);
    runs.set.apply(from_ref(&one));
    runs.apply("undo", &[one, created.clone()], &[]).expect(0);
    let target = created.clone();
    let proxy = before_list(move || {
        cluster().patch_status(&target, &json!({"observedGeneration": 1}));
    });
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let run = runs.undo_by(program, "undo").run().expect(0);
    assert_eq!(actions(&run)["Deployment/created"], "pruned");
}

#[test]
fn an_annotation_with_the_values_of_a_secret_is_left_out() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let keys = |value: &str| with(secret(&home, "keys"), &json!({"data": {"key": value}}));
    runs.set.apply(&[keys("b2xk")]);
    cluster().patch(
        &keys("b2xk"),
        &json!({"metadata": {"annotations": {"kapp.k14s.io/original": "{\"data\":{\"key\":\"b2xk\"}}"}}}),
    );
    runs.apply("undo", &[keys("bmV3")], &["--undo-secrets=omit"])
        .expect(0);
    assert!(!runs.text("undo").contains("b2xk"), "{}", runs.text("undo"));
}

#[test]
fn an_undo_of_a_killed_run_leaves_what_a_later_run_created() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let one = config_map(&home, "one", "1");
    let created = ["a", "b", "c"].map(|name| config_map(&home, name, "1"));
    runs.set.apply(from_ref(&one));
    let proxy = Proxy::holding_after(1);
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let objects = [from_ref(&one), &created[..]].concat();
    runs.start(program, "undo", &objects, &["--concurrency=1"])
        .run_until_held(&proxy);
    assert!(created.iter().all(|object| cluster().live(object).is_none()));
    runs.set.apply(&objects);
    let run = runs.undo("undo", &[]).expect(1);
    // The file does not show whether the write that was under way took effect.
    let left = created.iter().filter(|object| cluster().live(object).is_some());
    assert_eq!(left.count(), 2, "{}", run.stderr);
    let skipped = actions(&run).into_values().filter(|action| action == "skipped");
    assert_eq!(skipped.count(), 2, "{}", run.stdout);
}

#[test]
fn an_object_is_not_called_changed_if_the_server_refuses_to_say() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let [old, new] = ["1", "2"].map(|value| config_map(&home, "one", value));
    runs.set.apply(from_ref(&old));
    runs.apply("undo", from_ref(&new), &[]).expect(0);
    // As if the run had been killed before it could note what it had written.
    let text = runs.text("undo");
    let lines = text.split_inclusive('\n');
    let shorter: String = lines.filter(|line| !line.contains("\"written\"")).collect();
    assert_ne!(shorter, text);
    fs::write(runs.file("undo"), shorter).expect("an undo file");
    let proxy = Proxy::breaking(Fault::Expired, |sent| sent.path.contains("dryRun=All"));
    let program = Program::with_kubeconfig(&proxy.kubeconfig());

    let run = runs.undo_by(program, "undo").run().expect(1);

    let reason = run.reason("one");
    assert!(reason.starts_with("cannot determine"), "{reason}");
    let live = cluster().live(&new).expect("it");
    assert_eq!(live["data"], new["data"]);
    let run = runs.undo("undo", &[]).expect(0);
    assert_eq!(actions(&run)["ConfigMap/one"], "configured");
}
