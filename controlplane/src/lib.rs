//! A throw-away Kubernetes control plane: etcd, kube-apiserver, the namespace
//! controller and the garbage collector, on free ports of 127.0.0.1, with a
//! `kubectl` of the same version.
//!
//! [`ControlPlane`] is the whole interface. It ends with the process that
//! started it, however that process ends, and leaves no files behind. There are
//! no nodes and no workload controllers: a Deployment stays at 0 ready replicas.

mod binaries;
mod compile;
mod error;
mod kubeconfig;
mod running;
mod separate;
mod together;
mod user;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use error::Error;
pub use together::Memory;
pub use user::{Grant, RARE_GARBAGE_COLLECTION, User};

use binaries::{Binaries, Servers};
use running::Running;

/// A running control plane. Dropping it ends the servers and removes their
/// files; where it is never dropped, they end with this process.
#[derive(Debug)]
pub struct ControlPlane {
    running: Running,
    kubectl: PathBuf,
    users_taken: AtomicUsize,
    names_given: AtomicUsize,
}

impl ControlPlane {
    /// Starts a control plane of its own for the caller and returns when the
    /// API server is ready and the garbage collector has collected something,
    /// which takes a few seconds.
    ///
    /// The binaries come from the directory that `KUBEBUILDER_ASSETS` names
    /// (the convention of envtest), or are built from the Go module beside this
    /// crate, once for each state of that module, into a cache outside the
    /// checkout.
    pub fn start() -> Result<Self, Error> {
        Self::start_with(Memory::Small)
    }

    /// Starts one whose servers may use so much memory.
    pub fn start_with(memory: Memory) -> Result<Self, Error> {
        let binaries = Binaries::find()?;
        let running = match &binaries.servers {
            Servers::Together { controlplane } => together::start(controlplane, memory)?,
            Servers::Separate(servers) => separate::start(servers, &binaries.kubectl)?,
        };
        Ok(Self {
            running,
            kubectl: binaries.kubectl,
            users_taken: AtomicUsize::new(0),
            names_given: AtomicUsize::new(0),
        })
    }

    /// Kills the servers and starts them again on their data, and returns when they are ready.
    /// `meanwhile` runs while they start: as soon as there is a kubeconfig, the API server may
    /// answer, before everything that it serves is known to it.
    ///
    /// They get another port, other tokens and other certificates; the paths stay the same. Users
    /// that were made before have lost their access.
    ///
    /// # Errors
    ///
    /// [`Error::NoRestart`] for the separate programs of a Kubernetes release.
    pub fn restart(&mut self, meanwhile: impl FnOnce(&Path)) -> Result<(), Error> {
        let binaries = Binaries::find()?;
        let Servers::Together { controlplane } = &binaries.servers else {
            return Err(Error::NoRestart);
        };
        let kubeconfig = self.running.admin_kubeconfig.clone();
        together::restart(&mut self.running, controlplane, || meanwhile(&kubeconfig))
    }

    /// The control plane that all tests of this process share, started by the
    /// first call. It ends with the process.
    ///
    /// # Panics
    ///
    /// When it does not start, with the reason: no test can go on without it.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<ControlPlane> = OnceLock::new();
        SHARED.get_or_init(|| match Self::start() {
            Ok(control_plane) => control_plane,
            Err(error) => panic!("{error}"),
        })
    }

    /// The address of the API server: `https://127.0.0.1:PORT`.
    pub fn server_url(&self) -> &str {
        &self.running.server
    }

    /// Where the objects of namespaces (`?namespace=A&namespace=B`) or with a label
    /// (`?label=KEY%3DVALUE`) are read at once, whatever their kind, by plain HTTP and without
    /// credentials; another address after a restart. `None` for the separate programs of a
    /// Kubernetes release.
    pub fn objects_url(&self) -> Option<&str> {
        self.running.objects.as_deref()
    }

    /// The kubeconfig of a user in the group `system:masters`, who may do
    /// everything.
    pub fn admin_kubeconfig(&self) -> &Path {
        &self.running.admin_kubeconfig
    }

    /// The PEM bundle that the API server's certificate verifies against.
    pub fn certificate_authority(&self) -> &Path {
        &self.running.certificate_authority
    }

    /// The directory of this control plane's files, logs included, gone when it
    /// ends. Servers that were built from the Go module also keep the client
    /// authority here (`ca.crt`, `ca.key`), an admin's certificate signed by it
    /// (`admin.crt`, `admin.key`), and a kubeconfig that uses that certificate
    /// (`admin-certificate.kubeconfig`); those of `KUBEBUILDER_ASSETS` know
    /// tokens only.
    pub fn data_dir(&self) -> &Path {
        &self.running.data_dir
    }

    /// The process that ends the control plane when it ends.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// The kubectl of the same version as the API server.
    pub fn kubectl(&self) -> &Path {
        &self.kubectl
    }

    /// A command that runs [`kubectl`](Self::kubectl) as the admin. Its
    /// discovery cache and preferences are this control plane's own, since
    /// those of the person would be of another server. Set `KUBECONFIG` on it,
    /// or pass `--kubeconfig`, to be someone else.
    pub fn kubectl_command(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .env("KUBECONFIG", self.admin_kubeconfig())
            .env("HOME", self.data_dir().join("home"))
            .env_remove("KUBECACHEDIR")
            .env_remove("KUBERC");
        command
    }

    /// Runs kubectl as the admin with these arguments and no input. A run that
    /// fails is an `Ok` too: its exit code is in the output.
    pub fn run_kubectl<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> io::Result<Output> {
        self.kubectl_command()
            .args(arguments)
            .stdin(std::process::Stdio::null())
            .output()
    }

    /// A namespace name that no other call has returned: the prefix, a dash, a
    /// number. The namespace is not created.
    pub fn fresh_namespace_name(&self, prefix: &str) -> String {
        let number = self.names_given.fetch_add(1, Ordering::Relaxed);
        format!("{prefix}-{number}")
    }

    /// Takes the next ordinary user, who has no rights but discovery, and
    /// grants these. Returns when the API server heeds every grant. The
    /// namespaces of the grants must exist. There are 200 users.
    pub fn user(&self, grants: &[Grant]) -> Result<User, Error> {
        let number = self.users_taken.fetch_add(1, Ordering::Relaxed);
        user::grant(self, number, grants)
    }
}

/// Runs `go vet` on the Go module beside this crate, with the flags of its build: others would compile
/// all of Kubernetes again.
pub fn vet_module() -> Result<(), Error> {
    compile::vet()
}
