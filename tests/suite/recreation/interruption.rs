//! A recreation that is interrupted, or that a finalizer holds: the record covers the object, and the next
//! run creates it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use super::{frozen, job, marked, uid};
use crate::support::{
    Fault, Files, Program, ProgramEnd, Proxy, Running, Sent, Set, Signal, Verdict, Watch, cluster,
    config_map, eventually, identities, namespace, objects_file, with,
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

/// Lets the webhook of a ConfigMap start after `refusals` attempts to create it again.
fn starting_webhook(refusals: usize) -> Proxy {
    let (is_deleted, refused) = (AtomicBool::new(false), AtomicUsize::new(0));
    Proxy::breaking(Fault::WebhookStarts, move |sent| {
        let is_of_object = sent.path.contains("/configmaps/one") && !sent.path.contains("dryRun");
        if is_of_object && sent.method == Method::DELETE {
            is_deleted.store(true, Ordering::SeqCst);
        }
        is_of_object
            && sent.method == Method::PATCH
            && is_deleted.load(Ordering::SeqCst)
            && refused.fetch_add(1, Ordering::SeqCst) < refusals
    })
}

#[test]
fn a_creation_whose_webhook_starts_continues_and_does_not_begin_again() {
    for is_saved in [false, true] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        set.apply(&[frozen(&home, "one", "1")]);
        let before = uid(&frozen(&home, "one", "1"));
        let objects = [marked(frozen(&home, "one", "2"))];
        let files = Files::new().with("web/objects.yaml", &objects_file(&objects));
        let [web, plan] = ["web", "plan.json"].map(|name| files.path(name));
        let proxy = starting_webhook(2);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let run = if is_saved {
            let arguments = ["diff", &set.reference, "-n", &home, "-f"];
            let diff =
                Program::new()
                    .args(arguments)
                    .args([web.as_os_str(), "--out".as_ref(), plan.as_os_str()]);
            diff.run().expect(1);
            program.args(["apply", "-o", "json", "--plan"]).args([plan]).run()
        } else {
            program
                .args(["apply", &set.reference, "-n", &home, "-o", "json", "-f"])
                .args([web])
                .run()
        };
        let run = run.expect(0);
        assert_eq!(run.results("recreated"), identities(&objects), "{is_saved}");
        set.assert_holds(&objects);
        assert_ne!(uid(&objects[0]), before, "{is_saved}");
    }
}

#[test]
fn an_object_whose_creation_meets_no_webhook_is_said_to_be_deleted() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[frozen(&home, "one", "1")]);
    let objects = [marked(frozen(&home, "one", "2"))];
    let run = set
        .apply_through(&starting_webhook(usize::MAX), &objects, &["--wait=2s"])
        .expect(1);
    assert_eq!(run.results("failed"), identities(&objects));
    assert!(
        run.stderr.contains("it was deleted to be recreated"),
        "{}",
        run.stderr
    );
    assert_eq!(cluster().live(&objects[0]), None);
    set.apply(&objects);
    set.assert_holds(&objects);
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
            "note: waiting for {} (finalizer example.com/hold) to be deleted\n",
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

/// A run that recreates an object which a finalizer holds, and would prune another one after it.
struct HeldRecreation {
    set: Set,
    held: Value,
    dropped: Value,
    objects: [Value; 1],
    started: Instant,
    running: Running,
}

impl HeldRecreation {
    /// Starts the run, and returns once the object is being deleted.
    fn start(program: Program, flags: &[&str]) -> Self {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let held = with(
            frozen(&home, "one", "1"),
            &json!({"metadata": {"finalizers": ["example.com/hold"]}}),
        );
        let dropped = config_map(&home, "dropped", "1");
        set.apply(&[held.clone(), dropped.clone()]);
        let objects = [marked(frozen(&home, "one", "2"))];
        let files = Files::new().with("objects.yaml", &objects_file(&objects));
        let program = set.command(program, &files).args(["-o", "json"]).args(flags);
        let running = program.start();
        let started = Instant::now();
        eventually("it is being deleted", || {
            let live = cluster().live(&held)?;
            live["metadata"]["deletionTimestamp"].is_string().then_some(())
        });
        Self {
            set,
            held,
            dropped,
            objects,
            started,
            running,
        }
    }

    fn release(held: &Value) {
        cluster().patch(held, &json!({"metadata": {"finalizers": null}}));
    }
}

#[test]
fn a_signal_while_the_object_goes_finishes_the_recreation_and_begins_nothing() {
    for signal in [Signal::Interrupt, Signal::Terminate, Signal::Quit, Signal::HangUp] {
        let mut recreation = HeldRecreation::start(Program::with_hangup(), &[]);
        recreation.running.signal(signal);
        recreation.running.wait_for_message("stopping");
        HeldRecreation::release(&recreation.held);
        let run = recreation.running.finish().expect(130);
        assert_eq!(
            run.results("recreated"),
            identities(&recreation.objects),
            "{signal:?}"
        );
        assert_eq!(
            run.results("skipped"),
            identities([&recreation.dropped]),
            "{signal:?}"
        );
        let both = [&recreation.objects[..], &[recreation.dropped]].concat();
        recreation.set.assert_holds(&both);
    }
}

#[test]
fn the_end_of_its_time_while_the_object_goes_finishes_the_recreation() {
    let recreation = HeldRecreation::start(Program::new(), &["--timeout=5s"]);
    // Requests in flight have five more seconds then.
    std::thread::sleep(Duration::from_secs(7).saturating_sub(recreation.started.elapsed()));
    HeldRecreation::release(&recreation.held);
    let run = recreation.running.finish().expect(1);
    assert_eq!(run.results("recreated"), identities(&recreation.objects));
    assert_eq!(run.results("skipped"), identities([&recreation.dropped]));
}

#[test]
fn the_end_of_its_time_ends_a_run_that_was_interrupted_before() {
    let mut recreation = HeldRecreation::start(Program::new(), &["--timeout=4s"]);
    recreation.running.interrupt();
    recreation.running.wait_for_message("stopping");
    let run = recreation
        .running
        .finish_within(Duration::from_mins(1))
        .expect("its end")
        .expect(130);
    assert_eq!(run.results("failed"), identities(&recreation.objects));
    HeldRecreation::release(&recreation.held);
}

#[test]
fn a_second_interrupt_while_the_object_goes_creates_nothing() {
    let mut recreation = HeldRecreation::start(Program::new(), &[]);
    recreation.running.interrupt();
    recreation.running.wait_for_message("stopping");
    recreation.running.interrupt();
    let run = recreation.running.finish().expect(130);
    assert_eq!(run.results("failed"), identities(&recreation.objects));
    let document = run.document();
    let error = &document["results"][0]["error"];
    assert!(
        error.to_string().contains("deleted, not created again"),
        "{document:#}"
    );
    let says_what_is_left = |warning: &String| warning.contains("1 object deleted and not created again: ");
    assert!(run.warnings().iter().any(says_what_is_left), "{document:#}");
    HeldRecreation::release(&recreation.held);
    eventually("it goes", || {
        cluster().live(&recreation.held).is_none().then_some(())
    });
    assert_eq!(recreation.set.unrecorded(), Vec::<String>::new());
    let run = recreation.set.apply(&recreation.objects);
    assert_eq!(run.results("created"), identities(&recreation.objects));
    recreation.set.assert_holds(&recreation.objects);
}

#[test]
fn a_hangup_that_is_ignored_from_the_start_stops_nothing() {
    let recreation = HeldRecreation::start(Program::without_hangup(), &[]);
    recreation.running.signal(Signal::HangUp);
    std::thread::sleep(Duration::from_millis(300));
    HeldRecreation::release(&recreation.held);
    recreation.running.finish().expect(0);
    recreation.set.assert_holds(&recreation.objects);
}
