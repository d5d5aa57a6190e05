//! A Pod that applies a set: the program finds server, authority, token and namespace in the files
//! that a kubelet mounts, and may do what `rbac` prints.

use std::env::join_paths;
use std::fs;
use std::os::unix::fs::symlink;
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

/// The files of a volume as a kubelet writes them: a link that is replaced at once.
fn volume(files: Files, entries: &[(&str, &str)]) -> Files {
    let mut files = files;
    for (name, text) in entries {
        files = files.with(&format!("..1/{name}"), text);
        symlink(format!("..data/{name}"), files.path(name)).expect("a link");
    }
    symlink("..1", files.path("..data")).expect("a link");
    files
}

/// Runs the container of the Job in a Pod of the namespace.
fn run_container(namespace: &str, manifests: &Files) -> Run {
    run_container_with(namespace, manifests, &[])
}

/// The same with more variables.
fn run_container_with(namespace: &str, manifests: &Files, variables: &[(&str, &Path)]) -> Run {
    let job = objects("job.yaml", namespace).remove(0);
    let pod = &job["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let account = pod["serviceAccountName"].as_str().expect("a ServiceAccount");
    let control_plane = ControlPlane::shared();
    let mut create = control_plane.kubectl_command();
    let token = succeed(create.args(["create", "token", account, "-n", namespace])).stdout;
    let authority = read(control_plane.certificate_authority());
    let mounted = volume(
        Files::new(),
        &[
            ("ca.crt", &authority),
            ("namespace", namespace),
            ("token", String::from_utf8_lossy(&token).trim()),
        ],
    );
    assert_eq!(container["command"], serde_json::json!(["kubectl-applyset"]));
    let path = container["volumeMounts"][0]["mountPath"]
        .as_str()
        .expect("a path");
    let manifests = manifests.directory().display().to_string();
    let arguments = container["args"].as_array().expect("arguments").iter();
    let arguments = arguments.map(|argument| argument.as_str().expect("a text").replace(path, &manifests));
    let address = control_plane.server_url().trim_start_matches("https://");
    let (host, port) = address.rsplit_once(':').expect("a port");
    let output = Command::new("sh")
        .args(["-ec", IN_POD, "sh", "sh", "-ec", MOUNTED, "sh"])
        .arg(mounted.directory())
        .arg(PROGRAM)
        .args(arguments)
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
    assert_eq!(
        read(&checkout(PERMISSIONS)),
        run.stdout,
        "`just documentation` writes it"
    );
}

#[test]
fn a_pod_applies_with_its_service_account() {
    let shop = namespace("in-cluster");
    let set = Set::secret(&shop, "web");
    let manifests = |text: &str| volume(Files::new(), &[("web.yaml", text)]);
    let text = file("manifests/web.yaml", &shop);
    for object in objects("service-account.yaml", &shop) {
        cluster().create(&object);
    }

    run_container(&shop, &manifests(&text)).expect(4);
    assert_eq!(set.members(), Vec::<String>::new());

    for object in objects("permissions.yaml", &shop) {
        cluster().create(&object);
    }
    let run = eventually("the permissions are in effect", || {
        let run = run_container(&shop, &manifests(&text));
        (run.code != 4).then_some(run)
    });
    run.expect(0);
    let mut members = objects("manifests/web.yaml", &shop);
    for member in &mut members {
        member["metadata"]["namespace"] = Value::from(shop.as_str());
    }
    set.assert_holds(&members);

    let (first, _) = text.split_once("---\n").expect("two manifests");
    run_container(&shop, &manifests(first)).expect(0);
    set.assert_holds(&members[..1]);
}

/// A kubeconfig that a secret or a template has left empty leads to no other cluster.
#[test]
fn a_kubeconfig_without_a_cluster_is_not_replaced_by_the_service_account() {
    let shop = namespace("in-cluster");
    for name in ["service-account.yaml", "permissions.yaml"] {
        for object in objects(name, &shop) {
            cluster().create(&object);
        }
    }
    let manifests = volume(Files::new(), &[("web.yaml", &file("manifests/web.yaml", &shop))]);
    let set = Set::secret(&shop, "web");
    for text in ["", "\n", "# none\n", "apiVersion: v1\nkind: Config\n"] {
        let files = Files::new().with(".kube/config", text);
        let path = files.path(".kube/config");
        let missing = files.path("missing");
        let both = join_paths([&missing, &path]).expect("paths without separators");
        for (name, value) in [
            ("KUBECONFIG", path.as_path()),
            ("KUBECONFIG", both.as_ref()),
            ("HOME", files.directory()),
        ] {
            let run = run_container_with(&shop, &manifests, &[(name, value)]).expect(2);
            let named = format!("kubeconfig {}: it has no cluster", path.display());
            assert!(run.stderr.contains(&named), "{}", run.stderr);
        }
    }
    assert_eq!(set.members(), Vec::<String>::new());
    let missing = Files::new().path("missing");
    let run = eventually("the permissions are in effect", || {
        let run = run_container_with(&shop, &manifests, &[("HOME", &missing)]);
        (run.code != 4).then_some(run)
    });
    run.expect(0);
}

#[test]
fn the_objects_around_the_pod_are_accepted() {
    let shop = namespace("in-cluster");
    let directory = checkout(DIRECTORY);
    let files = Files::new();
    copy(&directory, files.directory());
    let kustomization = files.path("kustomization.yaml");
    fs::write(&kustomization, file("kustomization.yaml", &shop)).expect("a kustomization");
    let kubectl = |arguments: &[&str]| {
        let mut kubectl = ControlPlane::shared().kubectl_command();
        succeed(kubectl.args(arguments).current_dir(files.directory()))
    };
    kubectl(&["apply", "--server-side", "--validate=strict", "-k", "."]);
    let cron_job = cluster().get(&format!("/apis/batch/v1/namespaces/{shop}/cronjobs/apply-web"));
    let cron_job = cron_job.expect("a CronJob");
    let pod = &cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    let volume = pod["volumes"][0]["configMap"]["name"].as_str().expect("a name");
    let manifests = cluster().get(&format!("/api/v1/namespaces/{shop}/configmaps/{volume}"));
    assert_eq!(
        manifests.expect("a ConfigMap")["data"]["web.yaml"],
        read(&directory.join("manifests/web.yaml"))
    );
    let job = &objects("job.yaml", &shop)[0]["spec"]["template"]["spec"];
    assert_eq!(job["volumes"][0]["configMap"]["name"], volume);
    fs::write(files.path("job.yaml"), file("job.yaml", &shop)).expect("a Job");
    kubectl(&[
        "create",
        "--dry-run=server",
        "--validate=strict",
        "-f",
        "job.yaml",
    ]);
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

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir_all(&target).expect("a directory");
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}
