//! No program is run out of the current directory because `PATH` leads there.

use std::path::Path;
use std::process::Stdio;

use controlplane::ControlPlane;
use serde_json::json;

use crate::support::{Files, Program, Set, config_map, namespace, objects_file};

const ENTRIES: [&str; 3] = ["", ".", "bin"];

/// A checkout with programs of these names that leave a mark, in it and in `bin`.
fn checkout(names: &[&str]) -> Files {
    let files = Files::new();
    let mark = files.path("mark").display().to_string();
    names.iter().fold(files, |files, name| {
        let lines = format!("echo run > {mark}\nexit 1");
        files
            .with_script(name, &lines)
            .with_script(&format!("bin/{name}"), &lines)
    })
}

/// The search path with an entry before that of the system.
fn path(entry: &str) -> String {
    format!("{entry}:/usr/bin:/bin")
}

#[track_caller]
fn assert_refused(checkout: &Files, program: Program, path: &str) {
    let run = program
        .in_directory(checkout.directory())
        .env("PATH", path)
        .run()
        .expect(2);
    assert!(!checkout.path("mark").exists(), "{path:?}: {}", run.stderr);
    let phrase = "cannot run executable found relative to current directory";
    assert!(run.stderr.contains(phrase), "{path:?}: {}", run.stderr);
}

#[test]
fn kustomizations_are_not_rendered_by_a_program_of_the_checkout() {
    for name in ["kubectl", "kustomize"] {
        let checkout = checkout(&[name]).with("kustomization.yaml", "resources: []\n");
        for entry in ENTRIES {
            let program = Program::new().args(["apply", "web", "-k", "."]);
            assert_refused(&checkout, program, &format!("{entry}:/nowhere"));
        }
    }
}

#[test]
fn differences_are_not_shown_by_a_program_of_the_checkout() {
    let home = namespace("home");
    let checkout = checkout(&["my-diff"]).with("a.yaml", &objects_file(&[config_map(&home, "a", "1")]));
    let diff = || Program::new().args(["diff", "web", "-n", &home, "-f", "a.yaml"]);
    for entry in ENTRIES {
        let program = diff().env("KUBECTL_EXTERNAL_DIFF", "my-diff");
        assert_refused(&checkout, program, &path(entry));
    }
    // A path is what the person wants.
    diff()
        .in_directory(checkout.directory())
        .env("KUBECTL_EXTERNAL_DIFF", "./my-diff")
        .run()
        .expect(1);
    assert!(checkout.path("mark").exists());
}

/// A kubeconfig whose user logs in by this program.
fn kubeconfig(command: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {
            "server": ControlPlane::shared().server_url(),
            "certificate-authority": ControlPlane::shared().certificate_authority(),
        }}],
        "users": [{"name": "u", "user": {"exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": command,
            "interactiveMode": "Never",
        }}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    })
    .to_string()
}

#[test]
fn no_program_of_the_checkout_logs_in() {
    let config = Files::new().with("config", &kubeconfig("plugin"));
    let checkout = checkout(&["plugin"]);
    for entry in ENTRIES {
        ControlPlane::shared()
            .kubectl_command()
            .current_dir(checkout.directory())
            .env("KUBECONFIG", config.path("config"))
            .env("PATH", path(entry))
            .args(["get", "--raw", "/api"])
            .stdin(Stdio::null())
            .output()
            .expect("kubectl runs");
        assert!(!checkout.path("mark").exists(), "kubectl does not run it either");
        let program = Program::with_kubeconfig(&config.path("config")).args(["list"]);
        assert_refused(&checkout, program, &path(entry));
    }
}

/// A path of the kubeconfig is relative to the kubeconfig, wherever the program runs.
#[test]
fn a_plugin_with_a_path_is_that_of_the_kubeconfig() {
    let answer = json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "of-the-kubeconfigs-plugin"},
    });
    for command in ["./plugin", "tools/plugin", "../plugin"] {
        let files = Files::new()
            .with("home/config", &kubeconfig(command))
            .with_script("planted/plugin", "echo run > ../mark\nexit 1")
            .with_script("planted/tools/plugin", "echo run > ../mark\nexit 1");
        let place = Path::new("home").join(command);
        let place = place.to_str().expect("UTF-8");
        let files = files.with_script(place, &format!("echo '{answer}' | tee {}", "$0.ran"));
        for config in [files.path("home/config"), "../home/config".into()] {
            Program::with_kubeconfig(&config)
                .in_directory(&files.path("planted"))
                .args(["list", "-n", "default"])
                .run()
                .expect(4);
            assert!(!files.path("mark").exists(), "{command}");
            let ran = files.path(&format!("{place}.ran"));
            std::fs::remove_file(ran).expect("the kubeconfig's plugin ran");
        }
    }
}

/// The programs of absolute entries are found behind entries that hold nothing.
#[test]
fn relative_entries_without_the_program_do_no_harm() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "a", "1")];
    let kubectl = ControlPlane::shared().kubectl().display().to_string();
    let programs = Files::new().with_script("kubectl", &format!("exec {kubectl} \"$@\""));
    let checkout = Files::new()
        .with("kustomization.yaml", "resources: [a.yaml]\n")
        .with("a.yaml", &objects_file(&objects));
    Program::new()
        .in_directory(checkout.directory())
        .env("PATH", format!(":.:bin:{}", programs.directory().display()))
        .args(["apply", "web", "-n", &home, "-k", "."])
        .run()
        .expect(0);
    set.assert_holds(&objects);
}
