//! A Pod that applies a set: the program finds server, authority, token and namespace in the files
//! that a kubelet mounts, and may do what `rbac` prints.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use controlplane::ControlPlane;
use serde_json::Value;

use super::{checkout, documents, read};
use crate::packaging::PROGRAM;
use crate::support::{Files, Program, Run, Set, cluster, eventually, namespace, succeed};

const DIRECTORY: &str = "integrations/in-cluster";
const PERMISSIONS: &str = "integrations/in-cluster/permissions.yaml";

/// Runs a command where a directory lies at the place of the mounted files. Only this process and its
/// children see it: they have a mount namespace of their own.
const IN_POD: &str = r#"
if test "$(id -u)" = 0; then set -- unshare --mount "$@"
elif unshare --user --map-root-user --mount true; then set -- unshare --user --map-root-user --mount "$@"
else set -- sudo --non-interactive --preserve-env unshare --mount "$@"
fi
exec "$@"
"#;
const MOUNTED: &str = r#"
mount -t tmpfs tmpfs /var/run
mkdir -p /var/run/secrets/kubernetes.io
cp -a "$1" /var/run/secrets/kubernetes.io/serviceaccount
shift
exec "$@"
"#;

/// A file of the directory, for a namespace of the test.
fn file(name: &str, namespace: &str) -> String {
    let text = read(&checkout(DIRECTORY).join(name));
    text.replace("shop", namespace)
}

fn objects(name: &str, namespace: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(&file(name, namespace)).expect("YAML")
}

/// Runs the container of the Job in a Pod of the namespace, with these manifests and variables.
fn run_container(namespace: &str, manifests: &str, variables: &[(&str, &Path)]) -> Run {
    run_container_with(&[], namespace, manifests, variables)
}

/// Runs the container like [`run_container`], with further flags.
fn run_container_with(flags: &[&str], namespace: &str, manifests: &str, variables: &[(&str, &Path)]) -> Run {
    let job = objects("job.yaml", namespace).remove(0);
    let pod = &job["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let control_plane = ControlPlane::shared();
    let mut create = control_plane.kubectl_command();
    create.args(["create", "token", "-n", namespace]);
    let token = succeed(create.arg(text(&pod["serviceAccountName"]))).stdout;
    let mounted = Files::new()
        .with("ca.crt", &read(control_plane.certificate_authority()))
        .with("namespace", namespace)
        .with("token", String::from_utf8_lossy(&token).trim());
    let manifests = Files::new().with("web.yaml", manifests);
    let path = text(&container["volumeMounts"][0]["mountPath"]);
    let manifests = manifests.directory().display().to_string();
    assert_eq!(container["command"], serde_json::json!(["kubectl-applyset"]));
    let arguments = container["args"].as_array().expect("arguments").iter();
    let address = control_plane.server_url().trim_start_matches("https://");
    let (host, port) = address.rsplit_once(':').expect("a port");
    let output = Command::new("sh")
        .args(["-ec", IN_POD, "sh", "sh", "-ec", MOUNTED, "sh"])
        .arg(mounted.directory())
        .arg(PROGRAM)
        .args(arguments.map(|argument| text(argument).replace(&path, &manifests)))
        .args(flags)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("KUBERNETES_SERVICE_HOST", host)
        .env("KUBERNETES_SERVICE_PORT", port)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("sh runs");
    Run::of(&output)
}

#[test]
fn the_permissions_are_what_rbac_prints() {
    let run = Program::new()
        .args(["rbac", "web", "-n", "shop", "-f"])
        .args([checkout(DIRECTORY).join("manifests")])
        .run()
        .expect(0);
    if std::env::var("DOCUMENTATION").is_ok_and(|mode| mode == "write") {
        fs::write(checkout(PERMISSIONS), &run.stdout).expect("written");
    }
    let kept = read(&checkout(PERMISSIONS));
    assert_eq!(kept, run.stdout, "`just documentation` writes it");
}

#[test]
fn a_pod_applies_with_its_service_account() {
    let shop = namespace("in-cluster");
    let set = Set::secret(&shop, "web");
    let text = file("manifests/web.yaml", &shop);
    for object in objects("service-account.yaml", &shop) {
        cluster().create(&object);
    }

    run_container(&shop, &text, &[]).expect(4);
    assert_eq!(set.members(), Vec::<String>::new());

    for object in objects("permissions.yaml", &shop) {
        cluster().create(&object);
    }
    let missing = Files::new().path("missing");
    let run = eventually("the permissions are in effect", || {
        let run = run_container(&shop, &text, &[("HOME", &missing)]);
        (run.code != 4).then_some(run)
    });
    run.expect(0);
    let mut members = objects("manifests/web.yaml", &shop);
    for member in &mut members {
        member["metadata"]["namespace"] = Value::from(shop.as_str());
    }
    set.assert_holds(&members);

    // A kubeconfig that a secret or a template has left empty leads to no other cluster.
    let (first, _) = text.split_once("---\n").expect("two manifests");
    let empty = Files::new().with(".kube/config", "");
    let path = empty.path(".kube/config");
    let both = std::env::join_paths([&missing, &path]).expect("paths without separators");
    for (name, value) in [
        ("KUBECONFIG", path.as_path()),
        ("KUBECONFIG", both.as_ref()),
        ("HOME", empty.directory()),
    ] {
        let run = run_container(&shop, first, &[(name, value)]).expect(2);
        let named = format!("kubeconfig {}: it has no cluster", path.display());
        assert!(run.stderr.contains(&named), "{}", run.stderr);
    }
    // A name from a kubeconfig means another cluster, even if the kubeconfig is missing.
    for flag in ["--context=prod", "--cluster=prod", "--user=prod"] {
        let run = run_container_with(&[flag], &shop, first, &[("KUBECONFIG", &missing)]).expect(2);
        let cause = format!("\"prod\" does not exist: no kubeconfig at {}", missing.display());
        assert!(run.stderr.contains(&cause), "{}", run.stderr);
    }
    set.assert_holds(&members);
    run_container(&shop, first, &[]).expect(0);
    set.assert_holds(&members[..1]);
}

#[test]
fn the_objects_around_the_pod_are_accepted() {
    let shop = namespace("in-cluster");
    let files = Files::new();
    let mut copy = Command::new("cp");
    succeed(copy.arg("-R").arg(checkout(DIRECTORY)).arg(files.path("copy")));
    let kustomization = files.path("copy/kustomization.yaml");
    fs::write(&kustomization, file("kustomization.yaml", &shop)).expect("a kustomization");
    let mut kubectl = ControlPlane::shared().kubectl_command();
    kubectl.args(["apply", "--server-side", "--validate=strict", "-k"]);
    succeed(kubectl.arg(files.path("copy")));
    let cron_job = cluster().get(&format!("/apis/batch/v1/namespaces/{shop}/cronjobs/apply-web"));
    let pod = &cron_job.expect("a CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    let volume = pod["volumes"][0]["configMap"]["name"].as_str().expect("a name");
    let manifests = cluster().get(&format!("/api/v1/namespaces/{shop}/configmaps/{volume}"));
    let manifests = &manifests.expect("a ConfigMap")["data"]["web.yaml"];
    assert_eq!(*manifests, read(&checkout(DIRECTORY).join("manifests/web.yaml")));
}

/// Once and again, the same is run.
#[test]
fn job_and_cron_job_have_the_same_pod() {
    let one = |name: &str| documents(&format!("{DIRECTORY}/{name}")).remove(0);
    assert_eq!(
        one("job.yaml")["spec"],
        one("cronjob.yaml")["spec"]["jobTemplate"]["spec"]
    );
}
