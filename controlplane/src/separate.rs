//! Starts the programs of a Kubernetes release, as `KUBEBUILDER_ASSETS` has
//! them, under a shell that ends them with this process. Needs a Unix shell.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::Error;
use crate::binaries::SeparateServers;
use crate::error::About as _;
use crate::kubeconfig::{self, Login};
use crate::running::{PATIENCE, Process, Running, TOKENS, not_started};
use crate::together::new_data_dir;

/// How many ordinary users there are, as in the program of the Go module.
const USERS: usize = 200;

const SUPERVISE: &str = include_str!("supervise.sh");

pub(crate) fn start(servers: &SeparateServers, kubectl: &Path) -> Result<Running, Error> {
    let data_dir = new_data_dir()?;
    let [etcd_port, etcd_peer_port, server_port] = free_ports().about("a port of 127.0.0.1")?;
    let server = format!("https://127.0.0.1:{server_port}");
    let certificate_authority = data_dir.join("certificates/apiserver.crt");
    let admin_kubeconfig = data_dir.join("admin.kubeconfig");
    let admin_token = write_tokens(&data_dir.join(TOKENS))?;
    kubeconfig::write(
        &admin_kubeconfig,
        Login {
            server: &server,
            certificate_authority: &certificate_authority,
            user: "admin",
            token: &admin_token,
        },
    )?;

    let child = Command::new("sh")
        .args(["-c", SUPERVISE])
        .env("etcd", &servers.etcd)
        .env("kube_apiserver", &servers.kube_apiserver)
        .env("kube_controller_manager", &servers.kube_controller_manager)
        .env("kubectl", kubectl)
        .env("data_dir", &data_dir)
        .env("etcd_port", etcd_port.to_string())
        .env("etcd_peer_port", etcd_peer_port.to_string())
        .env("server_port", server_port.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|source| Error::CommandNotRun {
            command: "sh".to_owned(),
            source,
        })?;
    let running = Running {
        server,
        objects: None,
        admin_kubeconfig,
        certificate_authority,
        data_dir: data_dir.clone(),
        process: Process {
            child,
            output: None,
            data_dir,
        },
    };
    wait_until_serving(&running, kubectl)?;
    wait_until_collecting(&running, kubectl)?;
    Ok(running)
}

/// Three ports that are free now. Someone else can take one before the servers
/// do; then they do not start, and say so.
fn free_ports() -> io::Result<[u16; 3]> {
    let listen = || TcpListener::bind(("127.0.0.1", 0));
    // All are held until the last is known, or the same could come twice.
    let listeners = [listen()?, listen()?, listen()?];
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

/// Writes a token for the admin and for each ordinary user; returns the admin's.
fn write_tokens(path: &Path) -> Result<String, Error> {
    let random = Path::new("/dev/urandom");
    let mut source = File::open(random).about(random)?;
    let mut token = || {
        let mut bytes = [0; 16];
        source.read_exact(&mut bytes).about(random)?;
        Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
    };

    let admin = token()?;
    let mut lines = vec![format!("{admin},admin,admin,\"system:masters\"")];
    for number in 0..USERS {
        lines.push(format!("{},user-{number},user-{number}", token()?));
    }
    fs::write(path, lines.join("\n")).about(path)?;
    Ok(admin)
}

fn kubectl_of(running: &Running, kubectl: &Path) -> Command {
    let mut command = Command::new(kubectl);
    command
        .arg("--kubeconfig")
        .arg(&running.admin_kubeconfig)
        .arg("--cache-dir")
        .arg(running.data_dir.join("cache"));
    command
}

fn wait_until_serving(running: &Running, kubectl: &Path) -> Result<(), Error> {
    wait_until(running, "the API server does not get ready", || {
        let mut ready = kubectl_of(running, kubectl);
        ready.args(["get", "--raw", "/readyz"]);
        // Made a moment after the server calls itself ready.
        let mut namespace = kubectl_of(running, kubectl);
        namespace.args(["get", "namespace", "default"]);
        Ok(succeeds(ready)? && succeeds(namespace)?)
    })
}

/// Proves that the controllers work: makes an object of an owner that never
/// was, and waits until the garbage collector removed it.
fn wait_until_collecting(running: &Running, kubectl: &Path) -> Result<(), Error> {
    let orphan = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "controlplane-ready", "namespace": "default",
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "ConfigMap", "name": "never-was",
                "uid": "00000000-0000-4000-8000-000000000000",
            }],
        },
    });
    let file = running.data_dir.join("orphan.json");
    fs::write(&file, orphan.to_string()).about(&file)?;
    let mut create = kubectl_of(running, kubectl);
    create.arg("create").arg("-f").arg(&file);
    crate::user::run(create)?;
    wait_until(running, "the garbage collector does not work", || {
        let mut get = kubectl_of(running, kubectl);
        get.args(["get", "configmap", "controlplane-ready", "-n", "default"]);
        get.arg("--ignore-not-found").args(["-o", "name"]);
        Ok(crate::user::run(get)?.stdout.is_empty())
    })
}

fn succeeds(mut command: Command) -> Result<bool, Error> {
    match command.output() {
        Ok(output) => Ok(output.status.success()),
        Err(source) => Err(Error::CommandNotRun {
            command: format!("{command:?}"),
            source,
        }),
    }
}

fn wait_until(
    running: &Running,
    otherwise: &str,
    condition: impl Fn() -> Result<bool, Error>,
) -> Result<(), Error> {
    let deadline = Instant::now() + PATIENCE;
    while !condition()? {
        if Instant::now() > deadline {
            return Err(not_started(otherwise, &running.data_dir));
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
