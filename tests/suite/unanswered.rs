//! Objects without a result at the end of a run: either they were not sent, or their request has no answer
//! and may have taken effect.

use http::Method;
use serde_json::{Value, json};

use crate::support::{
    Fault, Files, HISTORY, Program, Proxy, Run, Set, cluster, config_map, eventually, identities, namespace,
    objects_file, service,
};

/// How a test ends the run whose request is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    SecondInterrupt,
    Timeout,
}

/// Runs `program` until a request to `name` hangs, which the server carries out, and ends the run.
fn run_until_unanswered(end: End, name: &'static str, command: impl FnOnce(Program) -> Program) -> Run {
    let proxy = Proxy::breaking(Fault::HangAfter, move |sent| {
        sent.method != Method::GET
            && sent
                .path
                .split('?')
                .next()
                .is_some_and(|path| path.ends_with(name))
    });
    let mut program = command(Program::with_kubeconfig(&proxy.kubeconfig()));
    program = program.args(["--concurrency=1", "-o", "json"]);
    match end {
        End::SecondInterrupt => {
            let mut running = program.start();
            eventually("the request hangs", || {
                let sent = proxy.sent();
                let hangs = sent
                    .iter()
                    .any(|sent| sent.method != Method::GET && sent.path.contains(name));
                hangs.then_some(())
            });
            running.interrupt();
            running.wait_for_message("stopping");
            running.interrupt();
            running.finish().expect(130)
        }
        End::Timeout => program.args(["--timeout=3s"]).run().expect(1),
    }
}

/// Asserts that one object is failed, since it may have changed, and that these were not sent.
fn assert_sent_without_an_answer(run: &Run, sent: &Value, not_sent: &[Value]) {
    let document = run.document();
    assert_eq!(run.results("failed"), identities([sent]), "{document:#}");
    assert_eq!(run.results("skipped"), identities(not_sent), "{document:#}");
    let results = document["results"].as_array().expect("results");
    for result in results {
        let error = result["error"]["message"].as_str().or(result["error"].as_str());
        let says_so = error.is_some_and(|error| error.contains("may have taken effect"));
        assert_eq!(says_so, result["action"] == "failed", "{result}");
        let is_reasoned = result["reason"]
            .as_str()
            .expect("a reason")
            .starts_with("not sent: ");
        assert_eq!(is_reasoned, result["action"] == "skipped", "{result}");
    }
    let says_what_is_left = |warning: &String| {
        warning.contains("1 request with unknown outcome")
            && warning.contains(&format!("{} requests not sent", not_sent.len()))
    };
    assert!(
        run.warnings().iter().any(says_what_is_left),
        "{:?}",
        run.warnings()
    );
}

#[test]
fn an_apply_without_an_answer_has_failed_and_the_rest_was_not_sent() {
    for end in [End::SecondInterrupt, End::Timeout] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let dropped = config_map(&home, "dropped", "1");
        set.apply(std::slice::from_ref(&dropped));
        let objects = ["one", "two", "x-three", "x-four"].map(|name| config_map(&home, name, "1"));
        let [one, two, three, four] = objects.clone();
        let files = Files::new().with("a.yaml", &objects_file(&objects));

        let run = run_until_unanswered(end, "/two", |program| set.command(program, &files));

        assert!(cluster().live(&two).is_some(), "{end:?}");
        assert_eq!(run.results("created"), identities([&one]), "{end:?}");
        assert_sent_without_an_answer(&run, &two, &[three, four, dropped]);
        assert_eq!(set.unrecorded(), Vec::<String>::new());
        set.apply(&objects);
        set.assert_holds(&objects);
    }
}

#[test]
fn a_delete_without_an_answer_has_failed_and_the_rest_was_not_sent() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = ["one", "two"].map(|name| config_map(&home, name, "1"));
    let [one, two] = objects.clone();
    set.apply(&objects);
    let parent =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": home, "name": "web"}});
    for end in [End::SecondInterrupt, End::Timeout] {
        set.apply(&objects);
        let run = run_until_unanswered(end, "/one", |program| set.deletion(program).args(["--yes"]));
        assert!(cluster().live(&one).is_none(), "{end:?}");
        assert_sent_without_an_answer(&run, &one, &[two.clone(), parent.clone()]);
        assert_eq!(set.unrecorded(), Vec::<String>::new());
    }
    set.deletion(Program::new()).args(["--yes"]).run().expect(0);
    assert!(set.live_parent().is_none());
}

#[test]
fn a_write_of_the_parent_without_an_answer_is_mentioned() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let objects = [kept.clone(), service(&home, "dropped", 80)];
    let assert_listed_as_the_run_says = |run: &Run| {
        let says_so = run
            .warnings()
            .iter()
            .any(|warning| warning.contains("lists this run as under way until"));
        let history = set.annotation(HISTORY).unwrap_or_default();
        assert_eq!(
            says_so,
            history.contains("running"),
            "{history}: {:?}",
            run.warnings()
        );
    };
    let is_mentioned = |run: &Run| {
        let mut warnings = run.warnings().into_iter();
        let unknown = "1 request with unknown outcome, which may have taken effect: secret/web";
        warnings.any(|warning| warning.contains(unknown))
    };
    for end in [End::SecondInterrupt, End::Timeout] {
        // The POST that makes the parent.
        let files = Files::new().with("a.yaml", &objects_file(&objects));
        let run = run_until_unanswered(end, "/secrets", |program| set.command(program, &files));
        assert_eq!(run.results("skipped"), identities(&objects), "{end:?}");
        assert!(is_mentioned(&run), "{:?}", run.warnings());
        assert_listed_as_the_run_says(&run);
        set.apply(&objects);
        // The PATCH with which the run begins.
        let files = Files::new().with("a.yaml", &objects_file(std::slice::from_ref(&kept)));
        let run = run_until_unanswered(end, "/secrets/web", |program| set.command(program, &files));
        assert_eq!(run.results("skipped"), identities(&objects[1..]), "{end:?}");
        assert!(is_mentioned(&run), "{:?}", run.warnings());
        assert_listed_as_the_run_says(&run);
        // The record was written before.
        set.apply(&objects);
        let files = Files::new().with(
            "a.yaml",
            &objects_file(&[config_map(&home, "new", "1"), kept.clone()]),
        );
        let run = run_until_unanswered(end, "/new", |program| set.command(program, &files));
        assert!(!is_mentioned(&run), "{:?}", run.warnings());
        set.abandon_runs();
        set.deletion(Program::new()).args(["--yes"]).run().expect(0);
    }
}

#[test]
fn a_run_that_ends_early_says_what_is_left() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let unchanged = config_map(&home, "unchanged", "1");
    set.apply(&[unchanged.clone(), config_map(&home, "dropped", "1")]);
    let objects = [
        config_map(&home, "one", "1"),
        config_map(&home, "two", "1"),
        unchanged,
    ];
    let files = Files::new().with("a.yaml", &objects_file(&objects));
    let (proxy, is_reached, release) = Proxy::held_at(1);
    let mut running = set
        .command(Program::with_kubeconfig(&proxy.kubeconfig()), &files)
        .args(["--concurrency=1", "-o", "json"])
        .start();
    is_reached.recv().expect("the first write");
    running.interrupt();
    running.wait_for_message("stopping");
    release.send(()).expect("the gate waits");
    let run = running.finish().expect(130);

    let left = [config_map(&home, "two", "1"), config_map(&home, "dropped", "1")];
    assert_eq!(run.results("skipped"), identities(&left));
    let says_what_is_left = |warning: &String| warning.starts_with("run ended early: 2 requests not sent: ");
    assert!(
        run.warnings().iter().any(says_what_is_left),
        "{:?}",
        run.warnings()
    );
}
