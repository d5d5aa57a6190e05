//! A recreation that is interrupted, or that a finalizer holds: the record covers the object, and the next
//! run creates it.

use std::slice::from_ref;
use std::sync::Arc;

use serde_json::json;

use super::{frozen, job, marked, uid};
use crate::support::{
    Files, Program, ProgramEnd, Proxy, Sent, Set, Verdict, Watch, cluster, config_map, eventually,
    identities, namespace, objects_file, with,
};

/// Holds the request with this number, and all later ones.
struct HoldAt(usize);

impl Watch for HoldAt {
    fn before(&self, sent: &Sent, _writes: usize) -> Verdict {
        if sent.number < self.0 {
            Verdict::Forward
        } else {
            Verdict::Hold
        }
    }
}

#[test]
fn a_kill_at_any_request_is_finished_by_the_next_run() {
    for request in 0.. {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        set.apply(&[frozen(&home, "one", "1"), config_map(&home, "dropped", "1")]);
        let before = uid(&frozen(&home, "one", "1"));
        let objects = [marked(frozen(&home, "one", "2"))];
        let proxy = Proxy::watched(Arc::new(HoldAt(request)));
        let files = Files::new().with("objects.yaml", &objects_file(&objects));
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let end = set.command(program, &files).run_until_held(&proxy);
        assert_eq!(set.unrecorded(), Vec::<String>::new(), "at request {request}");

        set.apply(&objects);
        set.assert_holds(&objects);
        assert_ne!(uid(&objects[0]), before, "at request {request}");
        let again = set.apply(&objects);
        assert_eq!(again.results("unchanged"), identities(&objects));
        if end == ProgramEnd::Finished {
            // Among them the update, the dry run, the delete, the apply and the prune.
            assert!(request >= 10, "only {request} requests");
            return;
        }
    }
}

#[test]
fn a_finalizer_is_named_and_the_next_run_continues() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let held = with(
        marked(job(&home, "migrate", "one")),
        &json!({"metadata": {"finalizers": ["example.com/hold"]}}),
    );
    set.apply(&[held.clone(), config_map(&home, "dropped", "1")]);
    let before = uid(&held);
    let new = marked(job(&home, "migrate", "two"));
    let objects = [new.clone()];
    for flag in ["--timeout=6s", "--wait=1s"] {
        let run = set.apply_with(&objects, &[flag]).expect(1);
        let note = format!(
            "note: waiting for {}: finalizer example.com/hold\n",
            format_args!("job.batch/migrate in namespace {home}")
        );
        let notes = run.stderr.matches(&note).count();
        assert_eq!(notes, usize::from(flag == "--timeout=6s"), "{}", run.stderr);
        assert_eq!(run.results("failed"), identities([&new]), "{}", run.stderr);
        assert!(
            run.stderr.contains("finalizer example.com/hold"),
            "{}",
            run.stderr
        );
        let live = cluster().live(&new).expect("it");
        assert_eq!(live["metadata"]["uid"], before);
        assert!(live["metadata"]["deletionTimestamp"].is_string());
        assert_eq!(set.unrecorded(), Vec::<String>::new());
        assert!(cluster().live(&config_map(&home, "dropped", "1")).is_some());
    }
    // Without consent it is not waited for.
    let run = set.apply_with(&objects, &["--recreate=never"]).expect(1);
    assert!(run.stderr.contains("is being deleted"), "{}", run.stderr);
    let hint = "hint: wait for it and create it again with --recreate=Job\n";
    assert!(run.stderr.contains(hint), "{}", run.stderr);

    let released = std::thread::scope(|scope| {
        let run = scope.spawn(|| set.apply_with(&objects, &[]));
        cluster().patch(&new, &json!({"metadata": {"finalizers": null}}));
        run.join().expect("no panic").expect(0)
    });
    let made = [released.results("recreated"), released.results("created")].concat();
    assert_eq!(made, identities([&new]));
    assert_ne!(uid(&new), before);
    set.assert_holds(&objects);
}

#[test]
fn an_interrupt_while_the_object_goes_creates_nothing() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let held = with(
        frozen(&home, "one", "1"),
        &json!({"metadata": {"finalizers": ["example.com/hold"]}}),
    );
    set.apply(from_ref(&held));
    let objects = [marked(frozen(&home, "one", "2"))];
    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    let running = set.command(Program::new(), &files).start();
    eventually("it is being deleted", || {
        let live = cluster().live(&held)?;
        live["metadata"]["deletionTimestamp"].is_string().then_some(())
    });
    running.interrupt();
    let run = running.finish().expect(130);
    assert!(run.stderr.contains("not created again"), "{}", run.stderr);
    cluster().patch(&held, &json!({"metadata": {"finalizers": null}}));
    eventually("it goes", || cluster().live(&held).is_none().then_some(()));
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    let run = set.apply(&objects);
    assert_eq!(run.results("created"), identities(&objects));
    set.assert_holds(&objects);
}
