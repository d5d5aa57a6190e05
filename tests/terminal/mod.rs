//! What a person sees at a terminal: progress while something is running, nothing of it
//! left behind, questions, and color only where it is wanted.

mod captures;
mod consent;
mod picture;
mod questions;
mod screens;

use std::process::Child;
use std::sync::mpsc::Sender;

use crate::support::{
    Files, GROUP_KINDS, PART_OF, Program, Proxy, Set, Terminal, cluster, config_map, eventually, fresh,
    named, namespace, namespace_object, objects_file, with,
};
use serde_json::{Value, json};

/// A run at a terminal, held before its sixth write: the parent and four members are there.
struct Held {
    terminal: Terminal,
    child: Child,
    release: Sender<()>,
}

impl Held {
    fn start(columns: u16, home: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let objects: Vec<Value> = (0..10)
            .map(|number| config_map(home, &format!("one-{number}"), "1"))
            .collect();
        let files = Files::new().with("a.yaml", &objects_file(&objects));
        let (proxy, is_reached, release) = Proxy::held_at(5);
        let terminal = Terminal::new(columns);
        let program = Set::secret(home, "web")
            .command(Program::with_kubeconfig(&proxy.kubeconfig()), &files)
            .args(["--concurrency=1"])
            .args(arguments);
        let program = environment
            .iter()
            .fold(program, |program, (name, value)| program.env(name, value));
        let child = program.start_at(&terminal);
        is_reached.recv().expect("the sixth write");
        Self {
            terminal,
            child,
            release,
        }
    }

    fn finish(mut self) -> Terminal {
        self.release.send(()).expect("the gate waits");
        assert!(
            self.child.wait().expect("it ends").success(),
            "{}",
            self.terminal.screen()
        );
        self.terminal
    }
}

/// Waits until the program asks.
fn asks(terminal: &Terminal) {
    eventually("the question", || {
        let screen = terminal.screen();
        (screen.contains("Enter to stop:") || screen.contains("is accepted:")).then_some(())
    });
}

/// What is at the lowest line of the screen.
fn last_line(terminal: &Terminal) -> String {
    terminal
        .screen()
        .trim_end()
        .lines()
        .last()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn progress_is_one_line_at_any_width_and_leaves_nothing() {
    for columns in [40, 80, 200] {
        let home = namespace("home");
        let held = Held::start(columns, &home, &[], &[]);
        let line = eventually("the bar shows four of ten", || {
            let line = last_line(&held.terminal);
            line.contains("4/10").then_some(line)
        });
        assert!(line.trim_start().starts_with("applying"), "{columns}: {line}");
        // The bar has a line of its own: the one above it reports of an object.
        let screen = held.terminal.screen();
        let above = screen.trim_end().lines().rev().nth(1).unwrap_or_default();
        assert!(!above.contains("applying"), "{columns}: {screen}");
        let terminal = held.finish();
        let screen = eventually("the summary", || {
            Some(terminal.screen()).filter(|screen| screen.contains("10 created"))
        });
        assert!(
            !screen.contains("applying") && !screen.contains("/10"),
            "{columns}: {screen}"
        );
    }
}

#[test]
fn nothing_is_drawn_where_it_is_not_wanted() {
    for (arguments, environment) in [
        (&["--no-progress"][..], &[][..]),
        (&["-q"], &[]),
        (&[], &[("TERM", "dumb")]),
        (&[], &[("CI", "true")]),
    ] {
        let home = namespace("home");
        let terminal = Held::start(80, &home, arguments, environment).finish();
        let written = terminal.written();
        assert!(
            !written.contains("applying"),
            "{arguments:?} {environment:?}: {written}"
        );
    }
}

#[test]
fn color_is_for_terminals_that_want_it() {
    for (environment, is_colored) in [
        (&[][..], true),
        (&[("NO_COLOR", "1")], false),
        (&[("TERM", "dumb")], false),
    ] {
        let home = namespace("home");
        let terminal = Terminal::new(80);
        let program = Program::new().args(["view", "nothing", "-n", &home]);
        let program = environment
            .iter()
            .fold(program, |program, (name, value)| program.env(name, value));
        program.start_at(&terminal).wait().expect("it ends");
        eventually("the hint", || terminal.screen().contains("hint: ").then_some(()));
        assert_eq!(
            terminal.written().contains("\u{1b}["),
            is_colored,
            "{environment:?}: {}",
            terminal.written()
        );
    }
}

#[test]
fn only_the_name_of_the_set_lets_data_go() {
    for (answer, code, is_kept) in [
        ("no\n", 3, true),
        ("yes\n", 3, true),
        ("\n", 3, true),
        ("web\n", 0, false),
        ("secret/web\n", 0, false),
    ] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let claim = with(
            named("v1", "PersistentVolumeClaim", Some(&home), "data"),
            &json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        );
        let one = config_map(&home, "one", "1");
        set.apply(&[one.clone(), claim.clone()]);
        let files = Files::new().with("a.yaml", &objects_file(&[one]));
        let mut terminal = Terminal::new(80);
        let mut child = set.command(Program::new(), &files).start_at(&terminal);
        asks(&terminal);
        terminal.type_text(answer);
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(code), "{answer:?}: {}", terminal.screen());
        let is_there = cluster()
            .live(&claim)
            .is_some_and(|claim| claim["metadata"]["deletionTimestamp"].is_null());
        assert_eq!(is_there, is_kept, "{answer:?}");
    }
}

#[test]
fn a_yes_to_a_loss_is_none_to_what_came_while_the_question_stood() {
    for command in ["apply", "delete"] {
        let home = namespace("home");
        let away = fresh("away");
        let set = Set::secret(&home, "web");
        let holder = namespace_object(&away);
        let kept = config_map(&home, "kept", "1");
        set.apply(&[holder.clone(), kept.clone()]);
        cluster().create(&config_map(&away, "shown", "1"));
        let files = Files::new().with("a.yaml", &objects_file(&[kept]));
        let mut terminal = Terminal::new(120);
        let program = match command {
            "apply" => set.command(Program::new(), &files),
            _ => set.deletion(Program::new()),
        };
        let mut child = program.start_at(&terminal);
        let asked = |terminal: &Terminal, times: usize| {
            eventually("the question", || {
                let questions = terminal.written().matches("Enter to stop:").count();
                (questions == times).then_some(())
            });
        };
        asked(&terminal, 1);
        cluster().create(&config_map(&away, "late", "1"));
        terminal.type_text("web\n");
        asked(&terminal, 2);
        assert!(
            terminal.screen().contains("configmap/late"),
            "{}",
            terminal.screen()
        );
        terminal.type_text("no\n");
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(3), "{command}: {}", terminal.screen());
        let live = cluster().live(&holder).expect("the namespace");
        assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null, "{command}");
    }
}

#[test]
fn only_yes_at_the_terminal_adopts_what_an_inventory_names_elsewhere() {
    for (answer, code) in [("no\n", 3), ("yes\n", 0)] {
        let [home, away] = [namespace("home"), namespace("away")];
        let set = Set::secret(&home, "web");
        let owned = |object: Value| {
            with(
                object,
                &json!({"metadata": {"annotations": {"config.k8s.io/owning-inventory": "x"}}}),
            )
        };
        let objects = [
            owned(config_map(&home, "one", "1")),
            owned(config_map(&away, "two", "1")),
        ];
        for object in &objects {
            cluster().create(object);
        }
        cluster().create(&with(
            named("v1", "ConfigMap", Some(&home), "inventory"),
            &json!({
                "metadata": {"labels": {"cli-utils.sigs.k8s.io/inventory-id": "x"}},
                "data": {format!("{home}_one__ConfigMap"): "", format!("{away}_two__ConfigMap"): ""},
            }),
        ));
        let mut terminal = Terminal::new(120);
        let adopt = set.invocation(Program::new(), "adopt", &["--from", "kpt/inventory"]);
        let mut child = adopt.start_at(&terminal);
        asks(&terminal);
        let shown = terminal.screen();
        assert!(
            shown.contains("configmap/two") && !shown.contains("configmap/one"),
            "{shown}"
        );
        terminal.type_text(answer);
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(code), "{answer:?}: {}", terminal.screen());
        for object in &objects {
            let live = cluster().live(object).expect("the object");
            let is_member = live["metadata"]["labels"][PART_OF] == set.id.as_str();
            assert_eq!(is_member, code == 0, "{live}");
        }
    }
}

#[test]
fn an_inventory_is_read_again_after_the_question() {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let owned = |name: &str| {
        let owner = json!({"metadata": {"annotations": {"config.k8s.io/owning-inventory": "x"}}});
        with(config_map(&away, name, "1"), &owner)
    };
    let objects = ["two", "three"].map(owned);
    let inventory = |names: &[&str]| {
        let entries = names
            .iter()
            .map(|name| (format!("{away}_{name}__ConfigMap"), json!("")));
        let data: serde_json::Map<String, Value> = entries.collect();
        with(
            named("v1", "ConfigMap", Some(&home), "inventory"),
            &json!({"metadata": {"labels": {"cli-utils.sigs.k8s.io/inventory-id": "x"}}, "data": data}),
        )
    };
    for object in &objects {
        cluster().create(object);
    }
    cluster().create(&inventory(&["two"]));
    let mut terminal = Terminal::new(120);
    let adopt = set.invocation(Program::new(), "adopt", &["--from", "kpt/inventory"]);
    let mut child = adopt.start_at(&terminal);
    asks(&terminal);
    cluster().patch(&inventory(&["two"]), &inventory(&["two", "three"]));
    terminal.type_text("yes\n");
    // The user has not seen the other object.
    eventually("the second question", || {
        let rows = terminal.rows();
        let place = rows.iter().rposition(|row| row.contains("configmap/three"))?;
        rows[place..]
            .iter()
            .any(|row| row.contains("is accepted:"))
            .then_some(())
    });
    terminal.type_text("no\n");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(3), "{}", terminal.screen());
    for object in &objects {
        let live = cluster().live(object).expect("the object");
        assert!(live["metadata"]["labels"][PART_OF].is_null(), "{live}");
    }
}

#[test]
fn only_yes_at_the_terminal_repairs_a_record() {
    for (answer, code, kinds) in [("no\n", 3, "ConfigMap,Secret"), ("yes\n", 0, "ConfigMap")] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        set.apply(&[config_map(&home, "one", "1")]);
        // What other tests do to the cluster hides nothing of a record with an invalid entry.
        let spoilt = json!({"metadata": {"annotations": {GROUP_KINDS: format!("{kinds},")}}});
        cluster().patch(&set.parent, &spoilt);
        let before = set.annotation(GROUP_KINDS);
        let mut terminal = Terminal::new(100);
        let program = Program::new().args(["verify", "web", "-n", &home, "--fix"]);
        let mut child = program.start_at(&terminal);
        asks(&terminal);
        let screen = terminal.screen();
        let [finding, question] = ["secret/web in namespace", "is changed:"].map(|text| screen.find(text));
        assert!(finding.is_some() && finding < question, "{screen}");
        terminal.type_text(answer);
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(code), "{answer:?}: {}", terminal.screen());
        let after = set.annotation(GROUP_KINDS);
        if code == 0 {
            assert_eq!(after.as_deref(), Some(kinds));
        } else {
            assert_eq!(after, before);
        }
    }
}

#[test]
fn a_set_is_deleted_when_its_name_is_typed() {
    for (answer, code) in [("yes\n", 3), ("web\n", 0)] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let objects = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
        set.apply(&objects);
        let mut terminal = Terminal::new(120);
        let mut child = set.deletion(Program::new()).start_at(&terminal);
        asks(&terminal);
        let members = format!("  - configmap/one, two   {home}");
        assert!(terminal.screen().contains(&members), "{}", terminal.screen());
        terminal.type_text(answer);
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(code), "{answer:?}: {}", terminal.screen());
        if code == 0 {
            assert_eq!(set.members(), Vec::<String>::new());
            assert_eq!(set.live_parent(), None);
        } else {
            set.assert_holds(&objects);
            // The terminal may show it a moment after the end of the program.
            eventually("the reason", || {
                terminal.screen().contains("not confirmed").then_some(())
            });
            assert!(!terminal.screen().contains("hint:"), "{}", terminal.screen());
        }
    }
}

/// Starts an apply at a terminal, answers one question, and returns the exit code.
fn answered(set: &Set, objects: &[Value], flags: &[&str], answer: &str) -> (Option<i32>, Terminal) {
    let files = Files::new().with("a.yaml", &objects_file(objects));
    let mut terminal = Terminal::new(80);
    let program = set.command(Program::new(), &files).args(flags);
    let mut child = program.start_at(&terminal);
    asks(&terminal);
    terminal.type_text(answer);
    (child.wait().expect("it ends").code(), terminal)
}

#[test]
fn every_change_is_confirmed_that_the_user_wants_to_confirm() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let flags = &["--confirm"][..];
    let one = [config_map(&home, "one", "1")];
    let (code, _) = answered(&set, &one, flags, "no\n");
    assert_eq!(code, Some(3));
    assert_eq!(set.live_parent(), None);
    assert_eq!(answered(&set, &one, flags, "yes\n").0, Some(0));
    set.assert_holds(&one);

    let two = [config_map(&home, "two", "1")];
    let (code, terminal) = answered(&set, &two, flags, "no\n");
    assert_eq!(code, Some(3));
    for line in [
        "  + configmap/two",
        "  - configmap/one",
        "Plan: +1 create  -1 PRUNE of 1 member",
    ] {
        assert!(terminal.screen().contains(line), "{line}: {}", terminal.screen());
    }
    set.assert_holds(&one);

    // Nothing would change, or nothing would be written.
    for (objects, flags) in [
        (&one, &["--confirm"][..]),
        (&two, &["--confirm", "--dry-run=server"]),
    ] {
        let files = Files::new().with("a.yaml", &objects_file(objects));
        let terminal = Terminal::new(80);
        let mut child = set
            .command(Program::new(), &files)
            .args(flags)
            .start_at(&terminal);
        assert!(child.wait().expect("it ends").success(), "{}", terminal.screen());
        assert!(
            !terminal.written().contains("is accepted:"),
            "{}",
            terminal.screen()
        );
    }
    set.assert_holds(&one);
}

#[test]
fn only_the_name_of_the_set_prunes_all_members() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let members = ["a", "b", "c"].map(|name| config_map(&home, name, "1"));
    set.apply(&members);
    let other = [config_map(&home, "other", "1")];
    assert_eq!(answered(&set, &other, &[], "no\n").0, Some(3));
    set.assert_holds(&members);
    assert_eq!(answered(&set, &other, &[], "web\n").0, Some(0));
    set.assert_holds(&other);
    assert_eq!(answered(&set, &[], &[], "web\n").0, Some(0));
    set.assert_holds(&[]);
}

#[test]
fn only_yes_at_the_terminal_forgets_a_set() {
    for (answer, code) in [("no\n", 3), ("yes\n", 0)] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let objects = [config_map(&home, "one", "1")];
        set.apply(&objects);
        let mut terminal = Terminal::new(80);
        let mut child = set.invocation(Program::new(), "disband", &[]).start_at(&terminal);
        asks(&terminal);
        terminal.type_text(answer);
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(code), "{answer:?}: {}", terminal.screen());
        if code == 0 {
            assert_eq!(set.members(), Vec::<String>::new());
        } else {
            set.assert_holds(&objects);
        }
    }
}
