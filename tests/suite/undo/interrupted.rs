//! Runs with an undo file, and undos, that are killed after any write: the undo that follows restores
//! the state before.

use std::sync::{Arc, Mutex};

use super::*;
use crate::suite::lost_answers::Losing;
use crate::support::{Fault, ProgramEnd, Proxy};

/// The sets before and after a run, in namespaces of their own.
fn stage() -> (Runs, Vec<Value>, Vec<Value>) {
    let [a, b] = [namespace("undo-a"), namespace("undo-b")];
    let runs = Runs::of(Set::secret(&a, "web"));
    let before = vec![
        config_map(&a, "changed", "1"),
        config_map(&a, "also-changed", "1"),
        secret(&b, "pruned"),
        service(&b, "pruned", 80),
    ];
    runs.set.apply(&before);
    let after = vec![
        config_map(&a, "changed", "2"),
        config_map(&a, "also-changed", "2"),
        with(
            secret(&a, "created"),
            &json!({"metadata": {"labels": {"x": "y"}}}),
        ),
        config_map(&b, "created", "1"),
    ];
    (runs, before, after)
}

fn assert_undone(runs: &Runs, before: &[Value], after: &[Value], moment: &str) {
    runs.set.assert_holds(before);
    for object in before {
        assert!(
            covers(&cluster().live(object).expect("an object"), object),
            "{moment}"
        );
    }
    for object in &after[2..] {
        assert!(cluster().live(object).is_none(), "{moment}");
    }
}

#[test]
fn a_run_that_is_killed_can_be_undone() {
    for writes in 0.. {
        let (runs, before, after) = stage();
        let proxy = Proxy::holding_after(writes);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let end = runs.start(program, "undo", &after, &[]).run_until_held(&proxy);
        let moment = format!("killed after {writes} writes");
        assert_eq!(runs.set.unrecorded(), Vec::<String>::new(), "{moment}");
        runs.undo("undo", &[]).expect(0);
        assert_undone(&runs, &before, &after, &moment);
        if end == ProgramEnd::Finished {
            assert!(writes >= 7, "only {writes} writes");
            return;
        }
    }
}

#[test]
fn an_undo_that_is_killed_can_be_repeated() {
    for writes in 0.. {
        let (runs, before, after) = stage();
        runs.apply("undo", &after, &[]).expect(0);
        let proxy = Proxy::holding_after(writes);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let end = runs.undo_by(program, "undo").run_until_held(&proxy);
        let moment = format!("undo killed after {writes} writes");
        assert_eq!(runs.set.unrecorded(), Vec::<String>::new(), "{moment}");
        runs.undo("undo", &[]).expect(0);
        assert_undone(&runs, &before, &after, &moment);
        if end == ProgramEnd::Finished {
            assert!(writes >= 7, "only {writes} writes");
            return;
        }
    }
}

#[test]
fn lost_answers_neither_fail_nor_hide_what_was_written() {
    for fault in [Fault::ClosedAfter, Fault::CutInHalf, Fault::GatewayTimeout] {
        let (runs, before, after) = stage();
        let losing = || Proxy::watched(Arc::new(Losing(fault, Mutex::default())));
        let proxy = losing();
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let run = runs.start(program, "undo", &after, &[]).run().expect(0);
        let is_done = |action: &String| ["configured", "created", "pruned"].contains(&action.as_str());
        assert!(actions(&run).values().all(is_done), "{fault:?}: {}", run.stdout);
        runs.set.assert_holds(&after);
        let proxy = losing();
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let run = runs.undo_by(program, "undo").run().expect(0);
        assert!(actions(&run).values().all(is_done), "{fault:?}: {}", run.stdout);
        assert_undone(&runs, &before, &after, &format!("{fault:?}"));
    }
}
