//! Who is measured, and how each is told to apply the same manifests.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::manifests::{Manifests, State};
use crate::options::{Options, Tool};
use crate::server::Server;
use crate::tools;

/// The program that all of this is about, as `cargo bench` built it: a release build.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-applyset");

/// A way to bring manifests into a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Contender {
    /// Server-side apply over kept connections, without any tool.
    Raw,
    /// kubectl-applyset.
    Ours,
    /// `kubectl apply --prune --applyset --server-side`
    KubectlServerSide,
    /// `kubectl apply --prune --applyset`
    KubectlClientSide,
    /// `kapp deploy`
    Kapp(PathBuf),
    /// `helm upgrade --install`
    Helm(PathBuf),
}

impl fmt::Display for Contender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Raw => "raw, 16 connections",
            Self::Ours => "kubectl-applyset",
            Self::KubectlServerSide => "kubectl, server-side",
            Self::KubectlClientSide => "kubectl, client-side",
            Self::Kapp(_) => "kapp",
            Self::Helm(_) => "Helm",
        })
    }
}

impl Contender {
    /// All that can be measured here: first the two that goals compare.
    pub(crate) fn all(options: &Options) -> Result<Vec<Self>> {
        let mut all = vec![
            Self::Raw,
            Self::Ours,
            Self::KubectlServerSide,
            Self::KubectlClientSide,
        ];
        all.extend(tools::find(Tool::Kapp, options)?.map(Self::Kapp));
        all.extend(tools::find(Tool::Helm, options)?.map(Self::Helm));
        Ok(all)
    }

    /// The command that makes `namespace` hold the set in this state and nothing else of
    /// it. `None` for raw, which is no program.
    pub(crate) fn command(
        &self,
        server: &Server,
        namespace: &str,
        manifests: &Manifests,
        state: State,
    ) -> Option<Command> {
        let directory = manifests.directory(state);
        match self {
            Self::Raw => None,
            Self::Ours => Some(ours(server, namespace, &directory)),
            Self::KubectlServerSide => {
                let mut command = kubectl(server, namespace, &directory);
                command.arg("--server-side");
                Some(command)
            }
            Self::KubectlClientSide => Some(kubectl(server, namespace, &directory)),
            Self::Kapp(program) => {
                let mut command = with_home(program, server);
                command
                    // Nothing runs here that could make a Deployment ready.
                    .args(["deploy", "--yes", "--wait=false", "--app", "bench", "--namespace"])
                    .arg(namespace)
                    .arg("--file")
                    .arg(directory);
                Some(command)
            }
            Self::Helm(program) => {
                let mut command = with_home(program, server);
                command
                    .args(["upgrade", "--install", "bench"])
                    .arg(manifests.chart(state))
                    .args(["--namespace", namespace]);
                Some(command)
            }
        }
    }
}

/// `kubectl-applyset apply` of a directory as the set `bench`.
pub(crate) fn ours(server: &Server, namespace: &str, directory: &Path) -> Command {
    let mut command = with_home(Path::new(PROGRAM), server);
    command
        .args(["apply", "bench", "-o", "json", "-n", namespace, "-f"])
        .arg(directory);
    command
}

fn kubectl(server: &Server, namespace: &str, directory: &Path) -> Command {
    let mut command = server.control_plane.kubectl_command();
    command
        .env("KUBECTL_APPLYSET", "true")
        .args(["apply", "--prune", "--applyset=bench", "-n", namespace, "-f"])
        .arg(directory);
    command
}

/// A program as the admin, with caches and settings of this control plane alone.
fn with_home(program: &Path, server: &Server) -> Command {
    let mut command = Command::new(program);
    command
        .env("KUBECONFIG", server.control_plane.admin_kubeconfig())
        .env("HOME", server.control_plane.data_dir().join("home"));
    command
}
