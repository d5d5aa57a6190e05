//! Who is measured, and how each applies the same manifests.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::manifests::{Manifests, State};
use crate::options::{Options, Tool};
use crate::server::Server;
use crate::tools;

/// Who can be measured here, and which tools are missing.
pub(crate) struct Contenders {
    /// First the two that goals compare.
    pub(crate) present: Vec<Contender>,
    /// Names of tools that are not here.
    pub(crate) missing: Vec<&'static str>,
}

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

impl Contenders {
    /// All that the options ask for and this machine has.
    pub(crate) fn find(options: &Options) -> Result<Self> {
        let mut present = vec![Contender::Raw, Contender::Ours];
        let mut missing = Vec::new();
        if options.alone {
            return Ok(Self { present, missing });
        }
        present.extend([Contender::KubectlServerSide, Contender::KubectlClientSide]);
        for tool in [Tool::Kapp, Tool::Helm] {
            match tools::find(tool, options)? {
                Some(program) => present.push(match tool {
                    Tool::Kapp => Contender::Kapp(program),
                    Tool::Helm => Contender::Helm(program),
                }),
                None => missing.push(tool.name()),
            }
        }
        Ok(Self { present, missing })
    }
}

impl Contender {
    /// Whether it is one of those that goals compare, and so always measured.
    pub(crate) fn is_judged(&self) -> bool {
        matches!(self, Self::Raw | Self::Ours)
    }

    /// The command that makes `namespace` hold the set in this state and nothing else of
    /// it. `None` for raw, which is not a program.
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
