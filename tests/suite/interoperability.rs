//! kubectl as a neighbor: neither touches the sets of the other.

use std::process::Output;

use controlplane::ControlPlane;

use crate::support::{Files, PART_OF, Set, TOOLING, cluster, config_map, namespace, objects_file, service};

/// `kubectl apply --prune --applyset=web` with the feature switched on.
fn kubectl_apply(namespace: &str, objects: &[serde_json::Value], flags: &[&str]) -> Output {
    // A file that begins with a brace is JSON to kubectl 1.29, which refuses `---` in it.
    let files = Files::new().with("objects.yaml", &format!("---\n{}", objects_file(objects)));
    ControlPlane::shared()
        .kubectl_command()
        .env("KUBECTL_APPLYSET", "true")
        .args(["apply", "-n", namespace, "--prune", "--applyset=web", "-f"])
        .arg(files.directory())
        .args(flags)
        .output()
        .expect("kubectl runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn kubectl_refuses_our_set() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1"), service(&home, "two", 80)]);
    let before = cluster().state(&[&home]);
    for flags in [&[][..], &["--server-side"]] {
        let output = kubectl_apply(&home, &[config_map(&home, "one", "2")], flags);
        let stderr = stderr(&output);
        assert!(!output.status.success(), "{stderr}");
        let both = "managed by tooling \"kubectl-applyset\" instead of \"kubectl\"";
        assert!(stderr.contains(both), "{stderr}");
        assert_eq!(cluster().state(&[&home]), before);
    }
}

#[test]
fn the_set_of_kubectl_is_refused() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let theirs = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    let output = kubectl_apply(&home, &theirs, &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    set.assert_holds(&theirs);
    let before = cluster().state(&[&home]);

    let run = set.apply_with(&[config_map(&home, "one", "2")], &[]).expect(3);

    assert_eq!(cluster().state(&[&home]), before);
    let tooling = set.annotation(TOOLING).expect("kubectl's tooling");
    assert!(tooling.starts_with("kubectl/v1."), "{tooling}");
    let errors = run.errors();
    assert_eq!(errors.len(), 1, "{}", run.stderr);
    let ours = concat!("kubectl-applyset/v", env!("CARGO_PKG_VERSION"));
    assert!(
        errors[0].contains(&tooling) && errors[0].contains(ours),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("hint: ") && run.stderr.contains("--take-over-set"));

    let output = kubectl_apply(&home, &theirs[..1], &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    set.assert_holds(&theirs[..1]);
}

#[test]
fn the_set_of_any_other_tool_is_refused_in_a_dry_run_too() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    let theirs = serde_json::json!({"metadata": {"annotations": {TOOLING: "example.com/tool/v2"}}});
    cluster().patch(&set.parent, &theirs);
    let before = cluster().state(&[&home]);
    for flag in ["--dry-run=none", "--dry-run=client", "--dry-run=server"] {
        let run = set
            .apply_with(&[config_map(&home, "two", "1")], &[flag])
            .expect(3);
        assert!(run.errors()[0].contains("example.com/tool/v2"), "{}", run.stderr);
        assert_eq!(cluster().state(&[&home]), before);
    }
}

#[test]
fn an_older_version_of_this_program_is_not_another_tool() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    let older = serde_json::json!({"metadata": {"annotations": {TOOLING: "kubectl-applyset/v0.0.1"}}});
    cluster().patch(&set.parent, &older);
    set.apply(&[config_map(&home, "two", "1")]);
    set.assert_holds(&[config_map(&home, "two", "1")]);
}

#[test]
fn an_object_that_plain_kubectl_apply_took_out_of_the_set_is_put_back_or_left_alone() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = ["one", "two"].map(|name| config_map(&home, name, "1"));
    set.apply(&objects);
    for object in &objects {
        cluster().patch(
            object,
            &serde_json::json!({"metadata": {"labels": {PART_OF: null}}}),
        );
    }

    set.apply(&objects[..1]);

    set.assert_holds(&objects[..1]);
    assert!(cluster().live(&objects[1]).is_some());
}
