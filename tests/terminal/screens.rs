//! The screens of 80 by 24 characters: what `diff`, `apply`, a wait and `list` show there.

use std::process::Command;

use serde_json::{Value, json};

use super::{Held, Terminal, eventually};
use crate::support::{
    Files, Program, Proxy, Set, cluster, config_map, fresh, named, namespace, objects_file, with,
};

/// The rows of the screen, once it shows this.
fn rows(terminal: &Terminal, text: &str) -> Vec<String> {
    eventually(text, || {
        Some(terminal.rows()).filter(|rows| rows.iter().any(|row| row.contains(text)))
    })
}

fn deployment(namespace: &str, replicas: u32) -> Value {
    with(
        named("apps/v1", "Deployment", Some(namespace), "web"),
        &json!({"spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": format!("registry.example.com/{}web:{replicas}", "long/".repeat(8))}]},
            },
        }}),
    )
}

fn run_at(terminal: &Terminal, program: Program) -> Option<i32> {
    program.start_at(terminal).wait().expect("it ends").code()
}

#[test]
fn diff_shows_a_summary_groups_and_what_is_pruned_last() {
    let [front, data] = [namespace("front"), namespace("shop-data")];
    let set = Set::secret(&front, "web");
    let secret = |value: &str| {
        with(
            named("v1", "Secret", Some(&data), "login"),
            &json!({"stringData": {"password": value}}),
        )
    };
    let file = |lines: &str| {
        with(
            named("v1", "ConfigMap", Some(&front), "conf"),
            &json!({"data": {"a.conf": lines}}),
        )
    };
    set.apply(&[
        deployment(&front, 2),
        secret("one"),
        file("a\nb\nc\nd\n"),
        config_map(&front, "same", "1"),
        config_map(&front, "old", "1"),
        config_map(&data, "app-5m2k8t4h9b", "1"),
    ]);
    let next = [
        deployment(&front, 3),
        secret("two"),
        file("a\nb\nC\nd\n"),
        config_map(&front, "same", "1"),
        config_map(&front, "new", "1"),
        config_map(&data, "app-bfh72cttk6", "2"),
    ];
    let files = Files::new().with("a.yaml", &objects_file(&next));
    let terminal = Terminal::with_rows(80, 40);
    let diff = |flags: &[&str]| {
        let manifests = files.path("a.yaml");
        let directory = manifests.parent().expect("a directory");
        let diff = set.invocation(Program::new(), "diff", &["-f", "a.yaml"]);
        diff.args(flags).in_directory(directory)
    };
    assert_eq!(run_at(&terminal, diff(&[])), Some(1));
    let shown = rows(&terminal, "full text: --full");
    assert!(
        shown[0].starts_with(&format!("secret/web in {front}   context ")),
        "{shown:#?}"
    );
    let shown: Vec<String> = shown[1..]
        .iter()
        .map(|row| row.replace(&front, "FRONT").replace(&data, "DATA"))
        .collect();
    assert_eq!(
        shown,
        [
            "Plan: +2 create  ~3 change  -2 PRUNE  (1 renamed, 1 unchanged)",
            "",
            "FRONT",
            "  ~ configmap/conf       a.yaml:45",
            "        data[a.conf]",
            "            b",
            "          - c",
            "          + C",
            "            d",
            "  ~ deployment.apps/web  a.yaml:1",
            "        replicas  2 -> 3",
            "        containers[web].image",
            "          - registry.example.com/long/long/long/long/long/long/long/long/web:2",
            "          + registry.example.com/long/long/long/long/long/long/long/long/web:3",
            "  + configmap/new        a.yaml:69",
            "",
            "DATA",
            "  ~ secret/login              a.yaml:33",
            "        data.password  *** -> ***",
            "  > configmap/app-5m2k8t4h9b  -> app-bfh72cttk6",
            "        data.key  \"1\" -> \"2\"",
            "",
            "PRUNE: removed from the manifests, would be deleted",
            "  - configmap/old   FRONT",
            "record: no change",
            "full text: --full",
        ]
    );
    let plain = Terminal::with_rows(80, 60);
    run_at(&plain, diff(&["--no-progress"]).env("NO_COLOR", "1"));
    rows(&plain, "full text: --full");
    assert!(!plain.written().contains('\u{1b}'), "{}", plain.written());
    let full = Terminal::with_rows(80, 60);
    run_at(&full, diff(&["--full"]));
    eventually("the full text", || {
        full.written().contains("diff -u -N").then_some(())
    });
    let piped = diff(&[]).run().expect(1);
    assert!(
        piped.stdout.starts_with("diff -u -N") && !piped.stdout.contains("Plan:"),
        "{}",
        piped.stdout
    );
}

#[test]
fn apply_folds_what_does_not_change_at_a_terminal_alone() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects: Vec<Value> = (0..3)
        .map(|number| config_map(&home, &format!("one-{number}"), "1"))
        .collect();
    let files = |objects: &[Value]| Files::new().with("a.yaml", &objects_file(objects));
    let first = files(&objects);
    let run = set.command(Program::new(), &first).run().expect(0);
    let created = format!("note: created parent secret/web in namespace {home}\n");
    assert!(run.stderr.contains(&created), "{}", run.stderr);
    let run = set.command(Program::new(), &first).run().expect(0);
    assert_eq!(run.stdout.matches("unchanged").count(), 3, "{}", run.stdout);
    assert!(!run.stderr.contains("created parent"), "{}", run.stderr);
    let changed = [
        config_map(&home, "one-0", "2"),
        objects[1].clone(),
        config_map(&home, "new", "1"),
    ];
    let next = files(&changed);
    let terminal = Terminal::new(80);
    assert_eq!(run_at(&terminal, set.command(Program::new(), &next)), Some(0));
    let mut shown = rows(&terminal, "1 pruned (");
    let summary = shown.pop().unwrap_or_default();
    shown.sort();
    assert_eq!(
        shown,
        [
            format!("configmap/new created in namespace {home}"),
            format!("configmap/one-0 configured in namespace {home}"),
            format!("configmap/one-2 pruned in namespace {home}"),
        ]
    );
    let start = "1 created, 1 configured, 1 unchanged, 1 pruned (";
    assert!(
        summary.starts_with(start) && summary.ends_with(" s)"),
        "{summary}"
    );
    assert!(
        terminal.written().contains("\u{1b}[32mcreated\u{1b}[0m"),
        "{}",
        terminal.written()
    );
    let all = Terminal::new(80);
    let program = set.command(Program::new(), &next).args(["--show-unchanged"]);
    assert_eq!(run_at(&all, program), Some(0));
    let shown = rows(&all, "3 unchanged (");
    assert_eq!(shown.len(), 4, "{shown:#?}");
}

#[test]
fn an_interrupt_folds_what_was_not_sent_at_a_terminal_alone() {
    let home = namespace("home");
    let Held {
        terminal,
        mut child,
        release,
    } = Held::start(80, &home, &[], &[]);
    let pid = child.id().to_string();
    let status = Command::new("kill").args(["-INT", &pid]).status();
    assert!(status.expect("kill runs").success());
    rows(&terminal, "stopping once what is under way is done");
    release.send(()).expect("the gate waits");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));

    let shown = rows(&terminal, "5 skipped (");
    assert!(terminal.written().contains("5 requests not sent"), "{shown:#?}");
    let of_objects = |action: &str| {
        let text = format!(" {action} in namespace {home}");
        shown.iter().filter(|row| row.ends_with(&text)).count()
    };
    assert_eq!(
        [of_objects("created"), of_objects("skipped")],
        [5, 0],
        "{shown:#?}"
    );
}

#[test]
fn no_escape_sequence_gets_into_a_pipe_and_no_bar_beside_one() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = |value: &str| -> Vec<Value> {
        (0..40)
            .map(|number| config_map(&home, &format!("one-{number}"), value))
            .collect()
    };
    let files = Files::new().with("a.yaml", &objects_file(&objects("1")));
    let terminal = Terminal::new(80);
    let run = set
        .command(Program::new(), &files)
        .run_into_pipe_at(&terminal)
        .expect(0);
    assert!(!run.stdout.contains('\u{1b}'), "{}", run.stdout);
    rows(&terminal, "40 created (");
    assert!(!terminal.written().contains("applying"), "{}", terminal.written());
    let files = Files::new().with("a.yaml", &objects_file(&objects("2")));
    let terminal = Terminal::new(80);
    let run = set
        .command(Program::new(), &files)
        .run_with_messages_piped(&terminal)
        .expect(0);
    assert!(!run.stderr.contains('\u{1b}'), "{}", run.stderr);
    assert!(run.stderr.contains("40 configured ("), "{}", run.stderr);
    assert!(!terminal.written().contains("applying"), "{}", terminal.written());
}

#[test]
fn the_bar_counts_only_what_is_applied() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects: Vec<Value> = (0..12)
        .map(|number| config_map(&home, &format!("one-{number}"), "1"))
        .collect();
    set.apply(&objects[..10]);
    let files = Files::new().with("a.yaml", &objects_file(&objects));
    let (proxy, is_reached, release) = Proxy::held_at(0);
    let terminal = Terminal::new(80);
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let program = set
        .command(program, &files)
        .args(["--concurrency=1", "--show-unchanged"]);
    let mut child = program.start_at(&terminal);
    is_reached.recv().expect("the first write");
    rows(&terminal, "] 0/2");
    release.send(()).expect("the gate waits");
    assert!(child.wait().expect("it ends").success());
    rows(&terminal, "2 created, 10 unchanged (");
    let written = terminal.written();
    assert!(!written.contains("10/2") && !written.contains("3/2"), "{written}");
}

#[test]
fn a_wait_shows_each_object_and_leaves_nothing_behind() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), deployment(&home, 2)];
    let files = Files::new().with("a.yaml", &objects_file(&objects));
    let mut terminal = Terminal::new(80);
    let program = set.command(Program::new(), &files).args(["--wait=5m"]);
    let mut child = program.start_at(&terminal);
    let shown = eventually("the object that is not ready", || {
        let rows = terminal.rows();
        let has = |text: &str| rows.iter().any(|row| row.contains(text));
        (has("1/2 ready") && has("replicas")).then_some(rows)
    });
    let place = shown
        .iter()
        .position(|row| row.starts_with("waiting  1/2 ready  ["));
    let place = place.unwrap_or_else(|| panic!("{shown:#?}"));
    assert_eq!(shown[place - 1], "2 created");
    assert!(shown[place].ends_with(" of 5m"), "{shown:#?}");
    assert!(
        shown[place + 1].starts_with("  . deployment.apps/web  "),
        "{shown:#?}"
    );
    assert_eq!(shown[place + 2], "    Ctrl-C stops waiting; a rerun continues");
    assert!(shown.iter().all(|row| row.chars().count() <= 80), "{shown:#?}");
    // The terminal itself prints `^C`, wherever the cursor is. It signals nobody: it controls no process.
    terminal.type_text("\u{3}");
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.expect("kill runs").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    eventually("only the end is left", || {
        let shown = rows(&terminal, "stopped waiting for 1 of 2 objects");
        let is_left = |row: &String| row.starts_with("waiting ") || row.contains("Ctrl-C stops waiting");
        let summaries = shown.iter().filter(|row| row.starts_with("2 created ("));
        (summaries.count() == 1 && !shown.iter().any(is_left)).then_some(())
    });
}

#[test]
fn a_wait_without_an_apply_shows_each_member_and_then_the_set() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let web = deployment(&home, 2);
    set.apply(&[config_map(&home, "one", "1"), web.clone()]);
    let terminal = Terminal::new(80);
    let view = set.invocation(Program::new(), "view", &["--wait=0"]);
    let mut child = view.start_at(&terminal);
    let shown = rows(&terminal, "waiting  1/2 ready  [");
    assert!(shown[0].starts_with("waiting  "), "{shown:#?}");
    cluster().delete(&web);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let shown = rows(&terminal, "   configmap/one   Current");
    assert!(!shown.iter().any(|row| row.starts_with("waiting ")), "{shown:#?}");
}

#[test]
fn a_list_of_sets_fits_the_terminal() {
    let home = namespace(&fresh("a-namespace-with-a-rather-long-name"));
    let set = Set::config_map(&home, "a-set-with-a-name");
    set.apply(&[config_map(&home, "one", "1")]);
    let terminal = Terminal::new(80);
    run_at(&terminal, Program::new().args(["list", "-n", &home]));
    let shown = rows(&terminal, "   done ");
    // What other tests do to the cluster is warned of above.
    let [.., header, row] = shown.as_slice() else {
        panic!("{shown:#?}");
    };
    assert!(
        header.ends_with("STATUS       LAST RUN") && row.contains("consistent   done "),
        "{shown:#?}"
    );
    let wide = Program::new().args(["list", "-n", &home]).run().expect(0);
    assert!(wide.stdout.contains("TOOLING"), "{}", wide.stdout);
}

#[test]
fn a_long_name_leaves_room_in_the_view_of_its_set() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let long = format!("{}-end", "long".repeat(20));
    set.apply(&[config_map(&home, &long, "1")]);
    let terminal = Terminal::new(80);
    run_at(&terminal, set.invocation(Program::new(), "view", &[]));
    let shown = rows(&terminal, "-end   Current");
    let row = shown.last().expect("a row");
    assert!(row.contains("configmap/lo") && row.chars().count() <= 80, "{row}");
}

/// What is typed next is on the screen, and so is what became of the plan.
#[test]
fn a_saved_plan_says_how_to_apply_it_and_that_it_was_applied() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let files = Files::new().with("a.yaml", &objects_file(&[config_map(&home, "one", "1")]));
    let terminal = Terminal::with_rows(80, 40);
    let diff = set.invocation(Program::new(), "diff", &["-f", "a.yaml", "--out", "plan.json"]);
    assert_eq!(run_at(&terminal, diff.in_directory(files.directory())), Some(1));
    rows(
        &terminal,
        "note: plan saved; apply it with `kubectl applyset apply --plan plan.json`",
    );
    let apply = || {
        let apply = Program::new().args(["apply", "--plan", "plan.json"]);
        run_at(&terminal, apply.in_directory(files.directory()))
    };
    assert_eq!(apply(), Some(0));
    assert_eq!(apply(), Some(3));
    rows(
        &terminal,
        &format!("hint: or see `kubectl applyset history secret/web -n {home}`:"),
    );
}
