//! What a run planned and did not do: every object is listed, and the error is printed once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Method, Response};
use serde_json::Value;

use crate::support::{
    Fault, Files, Program, Proxy, Run, Sent, Set, Verdict, Watch, cluster, config_map, deployment,
    eventually, identities, namespace, objects_file, service,
};

/// Breaks some exchanges with 500; is asked with the number of writes carried out so far.
struct Breaking<F> {
    is_broken: F,
    writes: AtomicUsize,
}

impl<F: Fn(&Sent, usize) -> bool + Send + Sync + 'static> Watch for Breaking<F> {
    fn before(&self, sent: &Sent, _: usize) -> Verdict {
        if (self.is_broken)(sent, self.writes.load(Ordering::SeqCst)) {
            Verdict::Break(Fault::InternalError)
        } else {
            Verdict::Forward
        }
    }

    fn after(&self, sent: &Sent, answer: Response<Bytes>) -> Response<Bytes> {
        self.writes
            .fetch_add(usize::from(sent.is_write()), Ordering::SeqCst);
        answer
    }
}

fn breaking(is_broken: impl Fn(&Sent, usize) -> bool + Send + Sync + 'static) -> Proxy {
    Proxy::watched(Arc::new(Breaking {
        is_broken,
        writes: AtomicUsize::new(0),
    }))
}

/// Asserts that the results are these objects, each once, and that the summary counts them.
#[track_caller]
fn assert_lists(run: &Run, objects: &[Value]) {
    let document = run.document();
    let results = document["results"].as_array().expect("results");
    let summary = document["summary"].as_object().expect("a summary");
    let mut listed = Vec::new();
    for (action, count) in summary {
        let of_action = run.results(action);
        assert_eq!(Some(of_action.len() as u64), count.as_u64(), "{action}");
        listed.extend(of_action);
    }
    listed.sort();
    assert_eq!(listed, identities(objects), "{document:#}");
    for result in results.iter().filter(|result| result["action"] == "skipped") {
        assert_ne!(result["reason"], "", "{result}");
    }
}

/// Asserts that the parent is the subject of one error, and no warning repeats it.
#[track_caller]
fn assert_one_error(run: &Run) {
    let of_parent = run
        .stderr
        .lines()
        .filter(|line| line.contains("a fault of the tests"))
        .count();
    assert_eq!(of_parent, 1, "{}", run.stderr);
}

fn is_parent(sent: &Sent, set: &str) -> bool {
    let path = sent.path.split('?').next().unwrap_or_default();
    path.ends_with(&format!("/secrets/{set}"))
}

#[test]
fn a_run_that_cannot_write_its_end_has_failed_and_the_record_stays_wide() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let dropped = config_map(&home, "dropped", "1");
    set.apply(std::slice::from_ref(&dropped));
    let objects = [service(&home, "one", 80), deployment(&home, "two", 1)];
    // The first write is the beginning of the run, and the second one the first member.
    let proxy = breaking(|sent, writes| sent.is_write() && writes >= 2 && is_parent(sent, "web"));

    let run = set.apply_through(&proxy, &objects, &[]).expect(1);

    assert_eq!(run.results("created"), identities(&objects));
    assert_eq!(run.results("pruned"), identities([&dropped]));
    assert_one_error(&run);
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    set.assert_put_in_order(&objects, &objects);
}

#[test]
fn after_a_parent_that_cannot_be_written_everything_is_skipped() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let dropped = config_map(&home, "dropped", "1");
    let kept = config_map(&home, "kept", "1");
    set.apply(&[dropped.clone(), kept.clone()]);
    let objects = [kept, service(&home, "two", 80)];
    let proxy = breaking(|sent, _| sent.method == Method::PATCH && is_parent(sent, "web"));

    let run = set.apply_through(&proxy, &objects, &[]).expect(1);

    assert_eq!(run.results("unchanged"), identities(&objects[..1]));
    assert_lists(&run, &[&objects[..], std::slice::from_ref(&dropped)].concat());
    assert_one_error(&run);
}

#[test]
fn a_record_that_is_not_narrowed_says_what_could_not_be_listed() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    set.apply(&[kept.clone(), service(&home, "dropped", 80)]);
    // What may lack the set's label is listed before the record is narrowed.
    let is_of_unlabeled = |sent: &Sent| sent.path.contains("/services?labelSelector=%21");
    let proxy = breaking(move |sent, writes| writes >= 1 && is_of_unlabeled(sent));

    let run = set.apply_through(&proxy, &[kept], &[]).expect(1);

    let says_so = run.stderr.contains("cannot be listed") && !run.stderr.contains("other runs");
    assert!(says_so, "{}", run.stderr);
    assert_eq!(set.unrecorded(), Vec::<String>::new());
}

#[test]
fn what_is_not_pruned_after_an_apply_that_failed_is_skipped() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let dropped: Vec<Value> = ["a", "b"].map(|name| config_map(&home, name, "1")).into();
    set.apply(&dropped);
    let objects = [config_map(&home, "one", "1"), service(&home, "invalid", 0)];

    for flags in [&[][..], &["--dry-run=server"]] {
        let run = set.apply_with(&objects, flags).expect(1);

        assert_eq!(run.results("skipped"), identities(&dropped), "{flags:?}");
        assert_lists(&run, &[&objects[..], &dropped].concat());
    }
}

#[test]
fn a_member_that_cannot_be_deleted_leaves_the_parent_which_is_listed() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    set.apply(&objects);
    let proxy = breaking(|sent, _| sent.method == Method::DELETE && sent.path.ends_with("/one"));

    let run = set
        .delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(1);

    assert_eq!(run.results("deleted"), identities(&objects[1..]));
    assert_eq!(run.results("failed"), identities(&objects[..1]));
    assert_eq!(run.results("skipped"), identities([&set.parent]));
    assert_lists(&run, &[&objects[..], std::slice::from_ref(&set.parent)].concat());
    assert_one_error(&run);
}

#[test]
fn a_parent_that_cannot_be_deleted_is_listed() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1")];
    set.apply(&objects);
    let proxy = breaking(|sent, _| sent.method == Method::DELETE && is_parent(sent, "web"));

    let run = set
        .delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(1);

    assert_eq!(
        run.results("failed"),
        identities([&set.parent]),
        "{:#}{}",
        run.document(),
        run.stderr
    );
    assert_lists(&run, &[&objects[..], std::slice::from_ref(&set.parent)].concat());
    assert_one_error(&run);
}

#[test]
fn what_is_neither_adopted_moved_nor_released_is_listed() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    for object in &objects {
        cluster().apply_as("kubectl", object);
    }
    let is_posted = |sent: &Sent| sent.method == Method::POST && sent.path.contains("/secrets?");
    let proxy = breaking(move |sent, _| is_posted(sent));
    let program = || Program::with_kubeconfig(&proxy.kubeconfig());

    let run = set
        .invoke_by(
            program(),
            "adopt",
            &["-f", files.directory().to_str().expect("UTF-8")],
        )
        .expect(1);
    assert_eq!(run.results("skipped"), identities(&objects));
    assert_lists(&run, &objects);
    assert_one_error(&run);

    set.apply(&objects);
    let run = set.invoke_by(program(), "move", &["other"]).expect(1);
    assert_eq!(run.results("skipped"), identities(&objects));
    assert_lists(&run, &objects);
    assert_one_error(&run);

    // The last label is taken off, and the parent cannot be read then.
    let proxy = breaking(|sent, writes| writes == 3 && sent.method == Method::GET && is_parent(sent, "web"));
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let run = set.invoke_by(program, "disband", &["--yes"]).expect(1);
    assert_eq!(run.results("released"), identities(&objects));
    assert_lists(&run, &objects);
    assert_one_error(&run);
}

#[test]
fn what_an_interrupted_run_leaves_is_listed() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects: Vec<Value> = (0..4)
        .map(|number| config_map(&home, &format!("one-{number}"), "1"))
        .collect();
    let files = Files::new().with("a.yaml", &objects_file(&objects));
    let (proxy, is_reached, release) = Proxy::held_at(1);
    let mut running = set
        .command(Program::with_kubeconfig(&proxy.kubeconfig()), &files)
        .args(["--concurrency=1", "-o", "json"])
        .start();
    is_reached.recv().expect("the second write");
    running.interrupt();
    running.wait_for_message("stopping");
    release.send(()).expect("the proxy waits");
    let run = running.finish().expect(130);
    assert_eq!(run.results("created"), identities(&objects[..1]));
    assert_lists(&run, &objects);

    let proxy = Proxy::holding_after(0);
    let mut running = set
        .deletion(Program::with_kubeconfig(&proxy.kubeconfig()))
        .args(["--yes", "-o", "json"])
        .start();
    eventually("a delete is held", || proxy.holds().then_some(()));
    running.interrupt();
    running.wait_for_message("stopping");
    running.interrupt();
    let run = running.finish().expect(130);
    assert_lists(&run, &[&objects[..1], std::slice::from_ref(&set.parent)].concat());
}

#[test]
fn a_run_whose_time_is_over_lists_the_rest() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), config_map(&home, "two", "2")];
    let proxy = Proxy::holding_after(2);
    let run = set
        .apply_through(&proxy, &objects, &["--concurrency=1", "--timeout=2s"])
        .expect(1);
    assert_lists(&run, &objects);
    assert_eq!(run.results("created"), identities(&objects[..1]));
}

/// Lets so many writes through, and answers nothing from the next one on.
struct SilentAfter {
    writes: usize,
    is_silent: AtomicBool,
}

impl SilentAfter {
    fn proxy(writes: usize) -> Proxy {
        Proxy::watched(Arc::new(Self {
            writes,
            is_silent: AtomicBool::new(writes == 0),
        }))
    }
}

impl Watch for SilentAfter {
    fn before(&self, sent: &Sent, writes: usize) -> Verdict {
        let is_late = sent.is_write() && writes >= self.writes;
        if is_late || self.is_silent.load(Ordering::SeqCst) {
            self.is_silent.store(true, Ordering::SeqCst);
            Verdict::Break(Fault::Hang)
        } else {
            Verdict::Forward
        }
    }
}

#[test]
fn a_server_that_falls_silent_is_not_asked_for_each_object() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects: Vec<Value> = (0..60)
        .map(|number| config_map(&home, &format!("number-{number}"), "1"))
        .collect();
    // The first write makes the parent.
    let proxy = SilentAfter::proxy(3);

    let run = set
        .apply_through(&proxy, &objects, &["--request-timeout=2s", "--concurrency=4"])
        .expect(1);

    assert_lists(&run, &objects);
    let is_member = |sent: &&Sent| sent.method == Method::PATCH && sent.path.contains("/configmaps/");
    let sent = proxy.sent().iter().filter(is_member).count();
    // Those that were answered, and those that were under way.
    assert!(sent <= 2 + 4, "{sent}");
    assert!(
        run.stderr
            .contains("request not sent: the server does not answer"),
        "{}",
        run.stderr
    );
    set.apply(&objects).expect(0);
    set.assert_holds(&objects);
}

#[test]
fn a_command_says_that_it_waits_for_the_first_answer() {
    let proxy = SilentAfter::proxy(0);
    let run = Program::with_kubeconfig(&proxy.kubeconfig())
        .args(["list", "--request-timeout=7s"])
        .run()
        .expect(4);
    assert!(
        run.stderr.contains("note: still waiting for an answer from "),
        "{}",
        run.stderr
    );
}
