//! Runs and undos that recreate objects, and that are killed after any write.

use std::slice::from_ref;

use super::*;
use crate::support::{ProgramEnd, Proxy};

/// A `ConfigMap` that is immutable.
fn frozen(namespace: &str, value: &str) -> Value {
    with(
        config_map(namespace, "frozen", value),
        &json!({"immutable": true}),
    )
}

fn is_there(object: &Value, moment: &str) {
    let live = cluster().live(object);
    assert_eq!(
        live.map(|live| live["data"].clone()),
        Some(object["data"].clone()),
        "{moment}"
    );
}

#[test]
fn a_recreating_run_that_is_killed_can_be_undone() {
    for writes in 0.. {
        let home = namespace("undo");
        let runs = Runs::of(Set::secret(&home, "web"));
        let [before, after] = ["1", "2"].map(|value| frozen(&home, value));
        runs.set.apply(from_ref(&before));
        let proxy = Proxy::holding_after(writes);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let flags = ["--recreate=ConfigMap"];
        let end = runs
            .start(program, "undo", from_ref(&after), &flags)
            .run_until_held(&proxy);
        let moment = format!("killed after {writes} writes");
        let run = runs.undo("undo", &[]);
        is_there(&before, &format!("{moment}: {}", run.stdout));
        run.expect(0);
        runs.set.assert_holds(from_ref(&before));
        if end == ProgramEnd::Finished {
            assert!(writes >= 2, "only {writes} writes");
            return;
        }
    }
}

#[test]
fn an_undo_that_recreates_and_is_killed_can_be_repeated() {
    for writes in 0.. {
        let home = namespace("undo");
        let runs = Runs::of(Set::secret(&home, "web"));
        let [before, after] = ["1", "2"].map(|value| frozen(&home, value));
        runs.set.apply(from_ref(&before));
        runs.apply("undo", from_ref(&after), &["--recreate=ConfigMap"])
            .expect(0);
        let proxy = Proxy::holding_after(writes);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let end = runs.undo_by(program, "undo").run_until_held(&proxy);
        let moment = format!("undo killed after {writes} writes");
        let run = runs.undo("undo", &[]);
        is_there(&before, &format!("{moment}: {}", run.stdout));
        run.expect(0);
        runs.set.assert_holds(from_ref(&before));
        if end == ProgramEnd::Finished {
            assert!(writes >= 2, "only {writes} writes");
            return;
        }
    }
}
