//! No value of a Secret is saved; it is read from the manifests again.

use std::fs;

use controlplane::ControlPlane;
use serde_json::{Value, json};

use super::{Plan, message};
use crate::support::{Files, Program, Set, cluster, config_map, named, namespace, objects_file, with};

fn login(namespace: &str, password: &str) -> Value {
    with(
        named("v1", "Secret", Some(namespace), "login"),
        &json!({"stringData": {"password": password}, "data": {"key": "aW4tdGhlLWRhdGE="}}),
    )
}

#[test]
fn values_of_secrets_are_read_from_the_manifests_again() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[login(&home, "in-the-past")]);
    let next = [login(&home, "in-the-text"), config_map(&home, "one", "1")];
    let plan = Plan::saved(&set, &next, &[]);
    let text = plan.text();
    for value in ["in-the", "aW4tdGhl"] {
        assert!(!text.contains(value), "{value} in {text}");
    }
    let path = plan.files.path("manifests/objects.yaml");
    let state = cluster().state(&[&home]);
    fs::write(&path, objects_file(&[login(&home, "in-the-future")])).expect("a file");
    let reported = message(&plan.apply().expect(3));
    assert!(
        reported.contains("secret/login changed since the plan"),
        "{reported}"
    );
    fs::remove_file(&path).expect("removed");
    plan.apply().expect(2);
    assert_eq!(cluster().state(&[&home]), state);
    // Nothing but the Secret is taken from there.
    fs::write(
        &path,
        objects_file(&[config_map(&home, "one", "other"), next[0].clone()]),
    )
    .expect("a file");
    plan.apply().expect(0);
    let live = cluster().live(&next[0]).expect("a secret");
    assert_eq!(live["data"]["password"], "aW4tdGhlLXRleHQ=");
    let one = cluster().live(&next[1]).expect("a member");
    assert_eq!(one["data"]["key"], "1");
    set.assert_holds(&next);
}

#[test]
fn a_note_of_the_former_value_is_not_in_the_plan() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[login(&home, "in-the-past")]);
    let annotations = json!({"metadata": {"annotations": {"note": "it was in-the-past"}}});
    let noted = with(login(&home, "in-the-text"), &annotations);
    let plan = Plan::saved(&set, std::slice::from_ref(&noted), &[]);
    let text = plan.text();
    assert!(!text.contains("in-the"), "{text}");
    plan.apply().expect(0);
    let live = cluster().live(&noted).expect("a secret");
    assert_eq!(live["metadata"]["annotations"]["note"], "it was in-the-past");
}

#[test]
fn secrets_of_a_kustomization_are_made_again() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kustomization = |password: &str| {
        format!(
            "namespace: {home}\nsecretGenerator:\n- name: login\n  literals: [password={password}]\n  options: {{disableNameSuffixHash: true}}\n"
        )
    };
    let files = Files::new()
        .with("web/kustomization.yaml", &kustomization("in-the-text"))
        .with_script(
            "kubectl",
            &format!("exec {} \"$@\"", ControlPlane::shared().kubectl().display()),
        );
    let path = format!("{}:/usr/bin:/bin", files.directory().display());
    let program = || Program::new().env("PATH", &path);
    let file = files.path("plan.json");
    let save = || {
        program()
            .args(["diff", &set.reference, "-n", &home, "-k"])
            .args([files.path("web").as_os_str(), "--out".as_ref(), file.as_os_str()])
            .run()
    };
    let apply = || {
        program()
            .args(["apply", "-o", "json", "--plan"])
            .args([&file])
            .run()
    };
    save().expect(1);
    let text = fs::read_to_string(&file).expect("a plan");
    assert!(
        !text.contains("in-the-text") && !text.contains("aW4tdGhlLXRleHQ"),
        "{text}"
    );
    fs::write(files.path("web/kustomization.yaml"), kustomization("other")).expect("a file");
    apply().expect(3);
    fs::write(files.path("web/kustomization.yaml"), kustomization("in-the-text")).expect("a file");
    apply().expect(0);
    let live = cluster().live(&login(&home, "")).expect("a secret");
    assert_eq!(live["data"]["password"], "aW4tdGhlLXRleHQ=");
}

#[test]
fn secrets_on_standard_input_cannot_be_saved() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let files = Files::new();
    let file = files.path("plan.json");
    let save = |objects: &[Value]| {
        Program::new()
            .args(["diff", &set.reference, "-n", &home, "-f", "-", "--out"])
            .args([&file])
            .input(&objects_file(objects))
            .run()
    };
    let refused = save(&[login(&home, "in-the-text")]).expect(2);
    assert!(refused.errors()[0].contains("secret/login"), "{}", refused.stderr);
    assert!(!file.exists());
    save(&[
        config_map(&home, "one", "1"),
        named("v1", "Secret", Some(&home), "empty"),
    ])
    .expect(1);
    Program::new()
        .args(["apply", "--plan"])
        .args([&file])
        .run()
        .expect(0);
    assert!(cluster().live(&config_map(&home, "one", "1")).is_some());
}

#[test]
fn secrets_in_a_pipe_cannot_be_saved() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let files = Files::new()
        .with("login.yaml", &objects_file(&[login(&home, "in-the-text")]))
        .with("map.yaml", &objects_file(&[config_map(&home, "one", "1")]));
    let file = files.path("plan.json");
    let save = |name: &str| {
        let script = r#"exec "$0" diff web -n "$1" --out "$2" -f <(cat "$3")"#;
        let mut command = std::process::Command::new("bash");
        command
            .env("KUBECONFIG", ControlPlane::shared().admin_kubeconfig())
            .args(["-c", script, env!("CARGO_BIN_EXE_kubectl-applyset"), &home])
            .args([&file, &files.path(name)]);
        command.output().expect("bash runs").status.code()
    };
    assert_eq!(save("login.yaml"), Some(2));
    assert!(!file.exists());
    assert_eq!(save("map.yaml"), Some(1));
    Program::new()
        .args(["apply", "--plan"])
        .args([&file])
        .run()
        .expect(0);
    set.assert_holds(&[config_map(&home, "one", "1")]);
}
