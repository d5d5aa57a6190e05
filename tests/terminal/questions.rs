//! What answers a question, and what does not.

use std::ffi::OsStr;

use serde_json::json;

use super::{answered, asks};
use crate::support::{
    Files, Program, Set, Terminal, cluster, config_map, eventually, namespace, objects_file, with,
};

#[test]
fn what_was_typed_before_the_question_does_not_answer_it() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    set.apply(&objects);
    let mut terminal = Terminal::new(80);
    terminal.type_text("web\nweb\n");
    let mut child = set.deletion(Program::new()).start_at(&terminal);
    asks(&terminal);
    set.assert_holds(&objects);
    terminal.type_text("web\n");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0), "{}", terminal.screen());
    assert_eq!(set.live_parent(), None);
    let screen = terminal.screen();
    let question = screen.lines().find(|line| line.contains("Enter to stop:"));
    assert!(
        question.is_some_and(|line| line.ends_with("Enter to stop: web")),
        "{screen}"
    );
}

#[test]
fn a_question_can_be_left_by_a_signal() {
    for signal in ["-INT", "-TERM"] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let objects = [config_map(&home, "one", "1")];
        set.apply(&objects);
        let terminal = Terminal::new(80);
        let mut child = set.deletion(Program::new()).start_at(&terminal);
        asks(&terminal);
        let pid = child.id().to_string();
        let sent = std::process::Command::new("kill").args([signal, &pid]).status();
        assert!(sent.expect("kill runs").success());
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(130), "{signal}: {}", terminal.screen());
        set.assert_holds(&objects);
        let shown = eventually("the end of the question", || {
            let rows = terminal.rows();
            rows.iter()
                .any(|row| row == "stopped: nothing was written")
                .then_some(rows)
        });
        for other in ["under way", "nothing was done"] {
            assert!(!shown.iter().any(|row| row.contains(other)), "{shown:#?}");
        }
    }
}

#[test]
fn a_recreation_is_confirmed_as_one() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let frozen = |value| {
        let mark = json!({"kustomize.toolkit.fluxcd.io/force": "enabled"});
        let more = json!({"immutable": true, "metadata": {"annotations": mark}});
        with(config_map(&home, "frozen", value), &more)
    };
    let [old, new] = ["1", "2"].map(frozen);
    set.apply(std::slice::from_ref(&old));
    let before = cluster().live(&old).expect("it");
    let flags = &["--confirm"][..];

    let (code, terminal) = answered(&set, std::slice::from_ref(&new), flags, "no\n");
    assert_eq!(code, Some(3), "{}", terminal.screen());
    let line = "1 of these objects may be deleted and created again: configmap/frozen";
    assert!(terminal.screen().contains(line), "{}", terminal.screen());
    assert_eq!(cluster().live(&old).as_ref(), Some(&before));

    let (code, terminal) = answered(&set, std::slice::from_ref(&new), flags, "yes\n");
    assert_eq!(code, Some(0), "{}", terminal.screen());
    eventually("the summary", || {
        terminal.screen().contains("1 recreated (").then_some(())
    });
    let live = cluster().live(&new).expect("it");
    assert_ne!(live["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(live["data"]["key"], "2");
    set.assert_holds(&[new]);
}

#[test]
fn the_set_that_an_object_leaves_is_named_before_the_object_is_taken() {
    let home = namespace("home");
    let [first, second] = ["first", "second"].map(|name| Set::secret(&home, name));
    let one = config_map(&home, "one", "1");
    first.apply(std::slice::from_ref(&one));
    let flags = &["--take-ownership", "--confirm"][..];
    let (code, terminal) = answered(&second, &[config_map(&home, "one", "2")], flags, "no\n");
    assert_eq!(code, Some(3), "{}", terminal.screen());
    let shown = terminal.screen().replace("\n    ", " ");
    let text = format!(
        "  ! configmap/one in namespace {home} leaves secret/first in namespace {home} and becomes a member: \
         removing its manifest will delete it"
    );
    assert!(shown.contains(&text), "{text}: {shown}");
    first.assert_holds(&[one]);
}

#[test]
fn a_saved_plan_is_compared_again_after_the_question() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [one, two] = ["one", "two"].map(|name| config_map(&home, name, "1"));
    set.apply(&[one.clone(), two.clone()]);
    let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(&one)));
    let plan = files.path("plan");
    Program::new()
        .args(["diff", &set.reference, "-n", &home, "-f"])
        .args([files.directory()])
        .args([OsStr::new("--out"), plan.as_os_str()])
        .run()
        .expect(1);
    let mut terminal = Terminal::new(80);
    let mut child = Program::new()
        .args(["apply", "--confirm", "--plan"])
        .args([&plan])
        .start_at(&terminal);
    asks(&terminal);
    // The plan prunes `two`, and from now on `three` depends on it.
    let depends = json!({"metadata": {"annotations": {
        "config.kubernetes.io/depends-on": format!("/namespaces/{home}/ConfigMap/two"),
    }}});
    let three = with(config_map(&home, "three", "1"), &depends);
    set.apply(&[one, two.clone(), three]);
    terminal.type_text("yes\n");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(3), "{}", terminal.screen());
    assert!(cluster().live(&two).is_some(), "{}", terminal.screen());
}
