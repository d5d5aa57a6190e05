//! `history`: which runs are kept on the parent, and what happens to them with the set.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::lost_answers::Losing;
use crate::support::{
    Fault, Files, GROUP_KINDS, HISTORY, Program, Proxy, Sent, Set, cluster, config_map, namespace,
    objects_file, secret, service, with,
};

fn runs(set: &Set) -> Vec<Value> {
    let document = set.invoke("history", &[]).expect(0).document();
    document["runs"].as_array().expect("runs").clone()
}

fn counts(run: &Value) -> [i64; 4] {
    ["created", "configured", "pruned", "failed"].map(|count| run[count].as_i64().expect("a count"))
}

#[test]
fn runs_that_changed_something_are_shown_the_latest_first() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let [one, two] = ["one", "two"].map(|name| config_map(&home, name, "1"));
    set.apply(&[one.clone(), two.clone()]);
    let after_the_first = set.parent_version();
    set.apply(&[one.clone(), two.clone()]);
    assert_eq!(
        set.parent_version(),
        after_the_first,
        "an unchanged run writes nothing"
    );
    set.apply_with(&[config_map(&home, "one", "2")], &["--dry-run=server"])
        .expect(0);
    set.apply(&[config_map(&home, "one", "2")]);

    let runs = runs(&set);
    assert_eq!(
        runs.iter().map(counts).collect::<Vec<_>>(),
        [[0, 1, 1, 0], [2, 0, 0, 0]]
    );
    for run in &runs {
        assert_eq!(run["result"], "done");
        assert_eq!(run["user"], "admin");
        assert_eq!(run["version"], concat!("v", env!("CARGO_PKG_VERSION")));
    }
    assert_ne!(runs[0]["manifests"], runs[1]["manifests"]);
    set.apply(&[two, one]);
    assert_eq!(
        self::runs(&set)[0]["manifests"],
        runs[1]["manifests"],
        "the same manifests in another order"
    );
}

#[test]
fn a_run_that_fails_or_is_interrupted_is_recorded_as_such() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let good = config_map(&home, "good", "1");
    let bad = with(
        config_map(&home, "bad", "1"),
        &json!({"metadata": {"finalizers": ["no/slash/allowed"]}}),
    );
    set.apply_with(&[good.clone(), bad], &[]).expect(1);
    let failed = runs(&set);
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["result"], "failed");
    assert_eq!(counts(&failed[0]), [1, 0, 0, 1]);

    let (proxy, held, go) = Proxy::held_at(1);
    let files = Files::new().with("objects.yaml", &objects_file(&[config_map(&home, "good", "2")]));
    let mut running = set
        .command(Program::with_kubeconfig(&proxy.kubeconfig()), &files)
        .args(["--concurrency", "1"])
        .start();
    held.recv().expect("the write of the member");
    running.interrupt();
    running.wait_for_message("stopping");
    go.send(()).expect("a proxy");
    running.finish().expect(130);
    let interrupted = &runs(&set)[0];
    assert_eq!(interrupted["result"], "interrupted");
    assert_eq!(counts(interrupted), [0, 1, 0, 0]);
}

#[test]
fn an_interrupted_run_keeps_what_another_run_has_added_in_the_meantime() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let kept = config_map(&home, "kept", "1");
    set.apply(&[kept.clone(), service(&home, "pruned", 80)]);
    // The DELETE comes first, then the write that narrows the record.
    let (proxy, held, go) = Proxy::held_at(1);
    let files = Files::new().with("objects.yaml", &objects_file(&[kept]));
    let mut running = set
        .command(Program::with_kubeconfig(&proxy.kubeconfig()), &files)
        .start();
    held.recv().expect("the narrowing write");
    let added = r#"[{"time":"2026-11-22T10:00:00Z","result":"done","manifests":"0","version":"v9"}]"#;
    cluster().patch(
        &set.parent,
        &json!({"metadata": {"annotations": {HISTORY: added}}}),
    );
    running.interrupt();
    running.wait_for_message("stopping");
    go.send(()).expect("a proxy");
    running.finish().expect(130);

    let runs = runs(&set);
    let versions: Vec<&Value> = runs.iter().map(|run| &run["version"]).collect();
    let own = concat!("v", env!("CARGO_PKG_VERSION"));
    assert_eq!(versions, [own, "v9"], "{runs:#?}");
    assert_eq!(runs[0]["result"], "interrupted");
}

#[test]
fn a_history_that_cannot_be_written_is_a_warning() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let object = config_map(&home, "one", "1");
    set.apply(std::slice::from_ref(&object));
    // Another client changes the parent just before each write of the history.
    let parent = set.parent.clone();
    let proxy = Proxy::before_write(1, move || {
        cluster().patch(&parent, &json!({"metadata": {"annotations": {"note": "1"}}}));
    });
    set.apply_through(&proxy, &[config_map(&home, "one", "2")], &[])
        .expect(0);
    let runs = runs(&set);
    assert_eq!(
        runs.len(),
        2,
        "the write is bound to what it was made from, and repeated: {runs:#?}"
    );

    cluster().patch(
        &set.parent,
        &json!({"metadata": {"annotations": {HISTORY: "[damaged"}}}),
    );
    assert!(self::runs(&set).is_empty());
    set.apply(&[object]);
    assert_eq!(self::runs(&set).len(), 1);
    set.invoke("verify", &[]).expect(0);
}

/// The write of the history takes the place of the last read of the record.
#[test]
fn a_record_that_was_narrowed_before_the_history_is_written_is_widened_again() {
    let set = Set::config_map(&namespace("home"), "web");
    let object = config_map(&set.namespace, "one", "1");
    set.apply(std::slice::from_ref(&object));
    let parent = set.parent.clone();
    let proxy = Proxy::before_write(1, move || {
        let narrowed = json!({"metadata": {"annotations": {GROUP_KINDS: "Service"}}});
        cluster().patch(&parent, &narrowed);
    });

    set.apply_through(&proxy, &[config_map(&set.namespace, "one", "2")], &[])
        .expect(0);

    set.assert_holds_at_least(&[object]);
    assert_eq!(runs(&set).len(), 2);
}

#[test]
fn a_run_is_in_the_history_once_even_if_the_answer_to_that_write_was_lost() {
    // The history does not keep all of this name.
    let long_name = "a".repeat(100);
    let impersonation = ["--as", &long_name, "--as-group", "system:masters"];
    let faults = [Fault::ClosedAfter, Fault::CutInHalf, Fault::GatewayTimeout];
    for (fault, flags) in faults.into_iter().zip([&[][..], &impersonation, &[]]) {
        let set = Set::config_map(&namespace("home"), "web");
        set.apply(&[config_map(&set.namespace, "one", "1")]);
        let proxy = Proxy::watched(Arc::new(Losing(fault, Mutex::default())));

        set.apply_through(&proxy, &[config_map(&set.namespace, "one", "2")], flags)
            .expect(0);

        let writes = proxy.sent().into_iter().filter(Sent::is_write);
        let of_history = writes.filter(|sent| sent.path.contains("/configmaps/web?"));
        assert_eq!(of_history.count(), 3, "{fault:?}: the first write is sent again");
        assert_eq!(runs(&set).len(), 2, "{fault:?}");
    }
}

#[test]
fn values_of_secrets_do_not_show_in_the_digest() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let digest = |data: &str| {
        let secret = with(secret(&home, "password"), &json!({"data": {"key": data}}));
        set.apply(&[secret]);
        runs(&set)[0]["manifests"].clone()
    };
    let first = digest("YQ==");
    assert_eq!(digest("Yg=="), first);
    let other = with(secret(&home, "password"), &json!({"data": {"other": "YQ=="}}));
    set.apply(&[other]);
    assert_ne!(runs(&set)[0]["manifests"], first);
}

#[test]
fn an_adoption_is_in_the_history_and_no_set_has_none() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let object = config_map(&home, "one", "1");
    set.invoke("history", &[]).expect(2);
    cluster().create(&object);
    let files = Files::new().with("objects.yaml", &objects_file(&[object]));
    let directory = files.directory().to_string_lossy().into_owned();
    set.invoke("adopt", &["-f", &directory]).expect(0);
    let runs = runs(&set);
    assert_eq!(runs.len(), 1, "{runs:#?}");
    assert_eq!([&runs[0]["operation"], &runs[0]["result"]], ["adopt", "done"]);
    assert_eq!(runs[0]["adopted"], 1);
}

#[test]
fn an_object_that_stays_after_disband_loses_the_history() {
    let home = namespace("home");
    let parent = config_map(&home, "web", "1");
    cluster().create(&parent);
    let set = Set::config_map(&home, "web");
    let object = config_map(&home, "one", "1");
    set.apply_with(&[object], &["--take-over-set", "--yes"]).expect(0);
    assert!(set.annotation(HISTORY).is_some());
    set.invoke("disband", &["--yes"]).expect(0);
    let left = cluster().live(&parent).expect("the object");
    assert_eq!(left["data"], parent["data"]);
    assert_eq!(left["metadata"].get("annotations"), None);
}

#[test]
fn a_message_is_in_the_entry_of_its_run() {
    let set = Set::config_map(&namespace("home"), "web");
    let objects = [config_map(&set.namespace, "one", "1")];
    let message = "--message=4f2c1e9 fix the \u{1b}[31mlogin\n\nIt was broken.";
    let run = set.apply_with(&objects, &[message]).expect(0);
    assert!(run.stderr.contains("--message is shortened"), "{}", run.stderr);
    let unchanged = set.parent_version();
    set.apply_with(&objects, &["--message=nothing"]).expect(0);
    assert_eq!(set.parent_version(), unchanged);
    let run = set.apply_with(&[config_map(&set.namespace, "one", "2")], &["--message="]);
    let run = run.expect(0);
    assert!(run.stderr.contains("--message is empty"), "{}", run.stderr);

    let messages: Vec<Value> = runs(&set).iter().map(|run| run["message"].clone()).collect();
    assert_eq!(messages, [Value::Null, json!("4f2c1e9 fix the [31mlogin")]);
    let table = set.invocation(Program::new(), "history", &[]).run().expect(0);
    let lines: Vec<&str> = table.stdout.lines().collect();
    assert!(lines[0].ends_with("   MESSAGE"), "{}", table.stdout);
    assert!(
        lines[2].ends_with("   4f2c1e9 fix the [31mlogin"),
        "{}",
        table.stdout
    );
    assert_eq!(lines[1].trim_end(), lines[1], "{}", table.stdout);
}

#[test]
fn the_message_of_a_saved_plan_is_that_of_its_apply() {
    let set = Set::config_map(&namespace("home"), "web");
    let files = Files::new().with("a.yaml", &objects_file(&[config_map(&set.namespace, "one", "1")]));
    let saved = set.invocation(Program::new(), "diff", &["-f", "a.yaml", "--out", "plan.json"]);
    saved.in_directory(files.directory()).run().expect(1);
    let apply = Program::new().args(["apply", "--plan", "plan.json", "--message=approved by jane"]);
    apply.in_directory(files.directory()).run().expect(0);
    assert_eq!(runs(&set)[0]["message"], "approved by jane");
    let view = set.invocation(Program::new(), "view", &[]).run().expect(0);
    assert!(
        view.stdout.contains("Message:    approved by jane\n"),
        "{}",
        view.stdout
    );
}

/// What others have written into the annotation does not control a terminal.
#[test]
fn a_message_of_others_is_escaped() {
    let set = Set::config_map(&namespace("home"), "web");
    set.apply(&[config_map(&set.namespace, "one", "1")]);
    let entry = json!([{
        "time": "2026-11-22T10:00:00Z", "result": "done", "version": "v9",
        "message": "\u{1b}[2J\n::stop-commands::x\u{202e}",
    }]);
    let annotations = json!({HISTORY: entry.to_string()});
    cluster().patch(&set.parent, &json!({"metadata": {"annotations": annotations}}));
    for command in ["history", "view"] {
        for format in [&[][..], &["-o", "json"], &["-o", "yaml"]] {
            let shown = set.invocation(Program::new(), command, format).run().expect(0);
            let is_hostile = |character: char| character == '\u{1b}' || character == '\u{202e}';
            assert!(!shown.stdout.contains(is_hostile), "{:?}", shown.stdout);
            let mut lines = shown.stdout.lines();
            assert!(!lines.any(|line| line.starts_with("::")), "{}", shown.stdout);
        }
    }
}
