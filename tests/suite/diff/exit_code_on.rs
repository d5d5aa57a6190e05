//! `--exit-code-on` says which kinds of difference make the exit code 1.

use controlplane::ControlPlane;
use serde_json::Value;

use super::{command, diff, executable, files};
use crate::support::{Files, Program, Set, cluster, config_map, deployment, namespace, succeed};

const WORDS: [&str; 4] = ["drift", "change", "prune", "drift,prune"];

/// Asserts the exit codes by word, and that each run prints the same differences.
#[track_caller]
fn assert_codes(set: &Set, objects: &[Value], flags: &[&str], expected: [i32; 4]) {
    let any = diff(set, objects, flags).expect(1);
    for (word, code) in WORDS.into_iter().zip(expected) {
        let flag = format!("--exit-code-on={word}");
        let run = diff(set, objects, &[flags, &[flag.as_str()]].concat());
        assert_eq!(run.code, code, "{word}: {}", run.stderr);
        assert_eq!(run.stdout, any.stdout, "{word}");
    }
}

fn kubectl(namespace: &str, arguments: &[&str]) {
    let mut command = ControlPlane::shared().kubectl_command();
    command
        .env("KUBE_EDITOR", "sed -i s/before/edited/")
        .args(["-n", namespace])
        .args(arguments);
    succeed(&mut command);
}

#[test]
fn what_others_changed_is_drift_and_a_change() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "before"), deployment(&home, "web", 1)];
    set.apply(&objects);
    for flag in WORDS {
        diff(&set, &objects, &["--exit-code-on", flag]).expect(0);
    }
    kubectl(&home, &["edit", "configmap", "one"]);
    // Without the flag, an apply fails by the conflict.
    for flags in [&[][..], &["--force-conflicts"]] {
        assert_codes(&set, &objects, flags, [1, 1, 0, 1]);
        let run = diff(&set, &objects, &[flags, &["--exit-code-on=drift"]].concat());
        let line = format!(
            "note: configmap/one in namespace {home} was changed since the last apply: data.key by kubectl-edit\n"
        );
        assert!(run.stderr.contains(&line), "{}", run.stderr);
    }
    set.apply_with(&objects, &["--force-conflicts"]).expect(0);
    diff(&set, &objects, &["--exit-code-on=drift"]).expect(0);
    kubectl(&home, &["scale", "deployment", "web", "--replicas=3"]);
    assert_codes(&set, &objects, &[], [1, 1, 0, 1]);
}

#[test]
fn what_the_manifests_changed_is_not_drift() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    set.apply(&objects);
    let changed = [config_map(&home, "one", "2"), config_map(&home, "two", "1")];
    assert_codes(&set, &changed, &[], [0, 1, 0, 0]);
    let new = [objects.as_slice(), &[config_map(&home, "new", "1")]].concat();
    assert_codes(&set, &new, &[], [0, 1, 0, 0]);
    assert_codes(&set, &objects[..1], &[], [0, 0, 1, 1]);
}

#[test]
fn a_deleted_member_leaves_no_trace_and_is_a_change() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1")];
    set.apply(&objects);
    cluster().delete(&objects[0]);
    assert_codes(&set, &objects, &[], [0, 1, 0, 0]);
}

#[test]
fn refusals_count_and_errors_keep_their_codes() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&["a", "b", "c"].map(|name| config_map(&home, name, "1")));
    let flags = ["--exit-code-on=drift"];
    diff(&set, &[], &flags).expect(1);
    diff(&set, &[], &["--exit-code-on=prune", "--allow-prune-all"]).expect(1);
    diff(&set, &[], &["--exit-code-on=drift", "--allow-prune-all"]).expect(0);
    diff(&set, &[], &["--exit-code-on=other"]).expect(2);
    let missing = Files::new().with("a.yaml", "a: [");
    command(Program::new(), &set, &missing)
        .args(flags)
        .run()
        .expect(2);
}

#[test]
fn an_external_diff_has_no_say_in_what_does_not_count() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    let external = Files::new().with("show", "#!/bin/sh\nexit 1\n");
    executable(&external, "show");
    for (word, code) in [("drift", 0), ("change", 1)] {
        let program = Program::new().env("KUBECTL_EXTERNAL_DIFF", external.path("show"));
        let files = files(&[config_map(&home, "one", "2")]);
        let run = command(program, &set, &files)
            .args(["--exit-code-on", word])
            .run();
        run.expect(code);
    }
}
