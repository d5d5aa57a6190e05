//! The control plane does what the tests of the project rely on.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use controlplane::{ControlPlane, Error, Grant};
use serde_json::{Value, json};

/// Waits for the condition; fails with the words where it does not come true.
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(90);
    while !condition() {
        assert!(Instant::now() < deadline, "not within 90 s: {what}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// Runs kubectl as the admin; returns what it printed, and fails where it fails.
fn kubectl(arguments: &[&str]) -> String {
    let output = ControlPlane::shared()
        .run_kubectl(arguments)
        .expect("kubectl runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// Creates a namespace that no one else has.
fn namespace() -> String {
    let name = ControlPlane::shared().fresh_namespace_name("controlplane");
    kubectl(&["create", "namespace", &name]);
    name
}

fn names(resource: &str, namespace: &str) -> String {
    kubectl(&["get", resource, "-n", namespace, "-o", "name"])
}

/// The names of what the control plane shows, in order.
fn objects(control_plane: &ControlPlane, query: &str) -> Vec<String> {
    let url = control_plane.objects_url().expect("an address");
    let (host, path) = url
        .strip_prefix("http://")
        .and_then(|url| url.split_once('/'))
        .expect("a URL");
    let mut connection = TcpStream::connect(host).expect("a connection");
    write!(connection, "GET /{path}?{query} HTTP/1.0\r\n\r\n").expect("a request");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("an answer");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    let objects: Vec<Value> = serde_json::from_str(body).expect("a list");
    let name = |object: &Value| object["name"].as_str().map(str::to_owned);
    let mut names: Vec<String> = objects.iter().filter_map(name).collect();
    names.sort();
    names
}

#[test]
fn server_and_kubectl_are_of_the_same_version() {
    let version: Value = serde_json::from_str(&kubectl(&["version", "-o", "json"])).expect("JSON");
    let server = &version["serverVersion"]["gitVersion"];
    assert!(server.as_str().is_some_and(|version| version.starts_with("v1.")));
    assert_eq!(server, &version["clientVersion"]["gitVersion"]);
}

#[test]
fn a_namespace_ends_with_what_is_in_it() {
    let name = namespace();
    kubectl(&["create", "configmap", "inside", "-n", &name]);
    kubectl(&["delete", "namespace", &name, "--wait=false"]);
    eventually("the namespace is gone", || {
        kubectl(&["get", "namespace", &name, "--ignore-not-found"]).is_empty()
    });
}

#[test]
fn the_dependents_of_a_deleted_owner_are_collected() {
    let control_plane = ControlPlane::shared();
    let name = namespace();
    kubectl(&["create", "configmap", "owner", "-n", &name]);
    let uid = kubectl(&[
        "get",
        "configmap",
        "owner",
        "-n",
        &name,
        "-o",
        "jsonpath={.metadata.uid}",
    ]);
    let dependent = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "dependent", "namespace": name,
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid},
            ],
        },
    });
    let file = control_plane.data_dir().join(format!("{name}.json"));
    std::fs::write(&file, dependent.to_string()).expect("a file");
    kubectl(&["create", "-f", file.to_str().expect("text")]);
    kubectl(&["create", "configmap", "bystander", "-n", &name]);

    kubectl(&["delete", "configmap", "owner", "-n", &name]);
    eventually("the dependent is gone", || {
        !names("configmaps", &name).contains("dependent")
    });
    assert_eq!(names("configmaps", &name), "configmap/bystander\n");
}

/// Whether this kubeconfig may list this resource there, as the server answers.
fn may_list(kubeconfig: &Path, resource: &str, namespace: &str) -> bool {
    let output = ControlPlane::shared()
        .kubectl_command()
        .env("KUBECONFIG", kubeconfig)
        .args(["get", resource, "-n", namespace])
        .output()
        .expect("kubectl runs");
    let forbidden = String::from_utf8_lossy(&output.stderr).contains("(Forbidden)");
    assert_ne!(
        output.status.success(),
        forbidden,
        "neither done nor forbidden: {output:?}"
    );
    output.status.success()
}

#[test]
fn users_may_do_what_was_granted_and_nothing_else() {
    let control_plane = ControlPlane::shared();
    let (here, there) = (namespace(), namespace());
    let list = |resource: &str| json!({"apiGroups": [""], "resources": [resource], "verbs": ["list"]});
    let in_namespace = control_plane
        .user(&[Grant::in_namespace(&here, [list("secrets")])])
        .expect("a user");
    let everywhere = control_plane
        .user(&[
            Grant::everywhere([list("configmaps")]),
            Grant::in_namespace(&there, [list("services"), list("secrets")]),
        ])
        .expect("another user");
    let nobody = control_plane.user(&[]).expect("a user without rights");

    for (user, resource, namespace, expected) in [
        (&in_namespace, "secrets", &here, true),
        (&in_namespace, "secrets", &there, false),
        (&in_namespace, "configmaps", &here, false),
        (&everywhere, "configmaps", &here, true),
        (&everywhere, "configmaps", &there, true),
        (&everywhere, "secrets", &there, true),
        (&everywhere, "secrets", &here, false),
        (&nobody, "secrets", &here, false),
        (&nobody, "configmaps", &here, false),
    ] {
        let allowed = may_list(&user.kubeconfig, resource, namespace);
        assert_eq!(allowed, expected, "{user:?} {resource} in {namespace}");
    }
    assert!(may_list(control_plane.admin_kubeconfig(), "secrets", &here));
}

#[test]
fn a_grant_in_a_namespace_that_is_missing_is_an_error() {
    let rule = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]});
    let grant = Grant::in_namespace("never-made", [rule]);
    let refused = ControlPlane::shared().user(&[grant]);
    assert!(matches!(refused, Err(Error::CommandFailed { .. })), "{refused:?}");
}

#[test]
fn a_restart_keeps_the_data() {
    let mut control_plane = ControlPlane::start().expect("a control plane");
    let kubectl = |control_plane: &ControlPlane, arguments: &[&str]| {
        let output = control_plane.run_kubectl(arguments).expect("kubectl runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    kubectl(&control_plane, &["create", "configmap", "kept", "-n", "default"]);
    let mut has_begun = false;
    control_plane
        .restart(|kubeconfig| {
            eventually("there is a kubeconfig", || kubeconfig.exists());
            has_begun = true;
        })
        .expect("it starts again");
    assert!(has_begun);
    let names = kubectl(
        &control_plane,
        &["get", "configmaps", "-n", "default", "-o", "name"],
    );
    assert!(names.contains("configmap/kept"), "{names}");
    assert!(objects(&control_plane, "namespace=default").contains(&"kept".to_owned()));
}

#[test]
fn objects_of_any_kind_are_found_by_namespace_and_by_label() {
    let shared = ControlPlane::shared();
    if shared.objects_url().is_none() {
        return;
    }
    let name = namespace();
    kubectl(&["create", "configmap", "unlabeled", "-n", &name]);
    for arguments in [
        ["configmap", "one", "-n", &name],
        ["clusterrole", &name, "--verb=get", "--resource=pods"],
    ] {
        kubectl(&[&["create"], &arguments[..]].concat());
    }
    kubectl(&["label", "configmap", "one", "-n", &name, &format!("of={name}")]);
    kubectl(&["label", "clusterrole", &name, &format!("of={name}")]);
    let inside = [name.as_str(), "one", "unlabeled"];
    assert_eq!(objects(shared, &format!("namespace={name}")), inside);
    let labeled = [name.as_str(), "one"];
    assert_eq!(objects(shared, &format!("label=of%3D{name}")), labeled);

    kubectl(&["delete", "configmap", "one", "-n", &name]);
    assert_eq!(objects(shared, &format!("label=of%3D{name}")), [name.as_str()]);
}

#[test]
fn the_servers_end_with_the_process_that_started_them() {
    // The pipe stays open in this process: only the death of the starter can
    // end the servers.
    let mut starter = Command::new(env!("CARGO_BIN_EXE_controlplane"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the starter runs");
    let mut line = String::new();
    BufReader::new(starter.stdout.take().expect("its output"))
        .read_line(&mut line)
        .expect("a line");
    let ready: Value = serde_json::from_str(&line).expect("the ready line");
    let address = ready["server"]
        .as_str()
        .expect("a server")
        .trim_start_matches("https://");
    let pid = ready["pid"].to_string();
    let data_dir = Path::new(ready["dataDir"].as_str().expect("a directory"));
    assert!(TcpStream::connect(address).is_ok());
    assert!(runs(&pid));
    assert!(data_dir.is_dir());

    // SIGKILL: the starter cannot do anything about its end.
    starter.kill().expect("the starter is killed");
    starter.wait().expect("the starter ends");
    eventually("the server's process ends", || !runs(&pid));
    eventually("the server does not answer", || {
        TcpStream::connect(address).is_err()
    });
    eventually("the server's files are gone", || !data_dir.exists());
}

/// Whether the process runs. One that ended and was not reaped does not.
fn runs(pid: &str) -> bool {
    let output = Command::new("ps")
        .args(["-o", "stat=", "-p", pid])
        .output()
        .expect("ps runs");
    let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}
