//! Who is measured, and how each applies the same manifests.

use std::fmt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::Result;
use crate::manifests::{Manifests, State};
use crate::options::{Options, Tool};
use crate::results::Entrant;
use crate::server::Server;
use crate::tools;

/// Who can be measured here, and which tools are missing.
pub(crate) struct Contenders {
    /// First the two that goals compare.
    pub(crate) present: Vec<Contender>,
    /// Names of tools that are not here.
    pub(crate) missing: Vec<String>,
}

/// The program that all of this is about, as `cargo bench` built it: a release build.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-applyset");

/// A way to bring manifests into a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contender {
    /// Server-side apply over kept connections, without any tool.
    Raw,
    /// kubectl-applyset.
    Ours,
    /// `kubectl apply --prune --applyset --server-side`
    KubectlServerSide,
    /// `kubectl apply --prune --applyset`
    KubectlClientSide,
    /// A tool that is built from Go modules.
    Built(Tool),
}

impl fmt::Display for Contender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Raw => "raw, 16 connections",
            Self::Ours => "kubectl-applyset",
            Self::KubectlServerSide => "kubectl, server-side",
            Self::KubectlClientSide => "kubectl, client-side",
            Self::Built(Tool::Kapp) => "kapp",
            Self::Built(Tool::Helm) => "Helm",
            Self::Built(Tool::Kpt) => "kpt",
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
        for tool in Tool::ALL {
            if tools::is_ready(tool, options)? {
                present.push(Contender::Built(tool));
            } else {
                missing.push(tool.name().to_owned());
            }
        }
        Ok(Self { present, missing })
    }

    /// Versions and command lines of all that are measured.
    pub(crate) fn entrants(&self, server: &Server) -> Result<Vec<Entrant>> {
        let entrant = |contender: &Contender| {
            let arguments = contender.arguments("NAMESPACE", "DIRECTORY");
            Ok(Entrant {
                name: contender.to_string(),
                version: contender.version(server)?,
                command: contender
                    .program_name()
                    .map(|program| format!("{program} {}", arguments.join(" "))),
            })
        };
        self.present.iter().map(entrant).collect()
    }
}

impl Contender {
    /// All, in the order of tables.
    pub(crate) const ALL: [Self; 7] = [
        Self::Raw,
        Self::Ours,
        Self::KubectlServerSide,
        Self::KubectlClientSide,
        Self::Built(Tool::Kapp),
        Self::Built(Tool::Helm),
        Self::Built(Tool::Kpt),
    ];

    /// Whether it is one of those that goals compare, and so always measured.
    pub(crate) fn is_judged(self) -> bool {
        matches!(self, Self::Raw | Self::Ours)
    }

    /// The command that makes `namespace` hold the set in this state and nothing else of
    /// it. `None` for raw, which is not a program.
    pub(crate) fn command(
        self,
        server: &Server,
        namespace: &str,
        manifests: &Manifests,
        state: State,
    ) -> Result<Option<Command>> {
        let directory = match self {
            Self::Built(Tool::Helm) => manifests.chart(state),
            Self::Built(Tool::Kpt) => manifests.package(state, namespace)?,
            _ => manifests.directory(state),
        };
        let directory = directory.to_string_lossy();
        let mut command = match self {
            Self::Raw => return Ok(None),
            Self::Ours => with_home(Path::new(PROGRAM), server),
            Self::KubectlServerSide | Self::KubectlClientSide => {
                let mut command = server.control_plane.kubectl_command();
                command.env("KUBECTL_APPLYSET", "true");
                command
            }
            Self::Built(tool) => with_home(&tools::program(tool)?, server),
        };
        command.args(self.arguments(namespace, &directory));
        Ok(Some(command))
    }

    fn arguments<'a>(self, namespace: &'a str, directory: &'a str) -> Vec<&'a str> {
        match self {
            Self::Raw => Vec::new(),
            Self::Ours => vec!["apply", "bench", "-n", namespace, "-f", directory],
            Self::KubectlServerSide | Self::KubectlClientSide => {
                let mut arguments = vec!["apply", "--prune", "--applyset=bench"];
                if self == Self::KubectlServerSide {
                    arguments.push("--server-side");
                }
                arguments.extend(["-n", namespace, "-f", directory]);
                arguments
            }
            // Nothing runs here that could make a Deployment ready, so no tool waits for that.
            Self::Built(Tool::Kapp) => vec![
                "deploy",
                "--yes",
                "--wait=false",
                "--app=bench",
                "-n",
                namespace,
                "-f",
                directory,
            ],
            Self::Built(Tool::Helm) => vec!["upgrade", "--install", "bench", "-n", namespace, directory],
            // Without a limit, it waits until it is interrupted.
            Self::Built(Tool::Kpt) => vec![
                "live",
                "apply",
                "--server-side",
                "--reconcile-timeout=1ms",
                "--prune-timeout=1ms",
                "-n",
                namespace,
                directory,
            ],
        }
    }

    fn program_name(self) -> Option<&'static str> {
        match self {
            Self::Raw => None,
            Self::Ours => Some("kubectl-applyset"),
            Self::KubectlServerSide | Self::KubectlClientSide => Some("kubectl"),
            Self::Built(tool) => Some(tool.name()),
        }
    }

    fn version(self, server: &Server) -> Result<Option<String>> {
        match self {
            Self::Raw => Ok(None),
            Self::Ours => Ok(Some(match commit() {
                Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
                None => env!("CARGO_PKG_VERSION").to_owned(),
            })),
            Self::KubectlServerSide | Self::KubectlClientSide => kubectl_version(server).map(Some),
            Self::Built(tool) => Ok(Some(tool.version()?.to_owned())),
        }
    }

    /// Whether a run that ended with an exit code other than 0 has applied everything, by its output: kpt
    /// fails if objects are not ready in time.
    pub(crate) fn accepts(self) -> fn(&str) -> bool {
        match self {
            Self::Built(Tool::Kpt) => has_only_timed_out,
            _ => |_| false,
        }
    }
}

/// Whether nothing failed or was left out, according to the last lines of kpt.
pub(crate) fn has_only_timed_out(output: &str) -> bool {
    let mut results = output
        .lines()
        .filter(|line| line.contains(" result: "))
        .peekable();
    results.peek().is_some() && results.all(|line| line.contains(" 0 skipped,") && line.contains(" 0 failed"))
}

/// The commit of this checkout, if it is one.
fn commit() -> Option<String> {
    let output = Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn kubectl_version(server: &Server) -> Result<String> {
    let mut command = server.control_plane.kubectl_command();
    let output = command.args(["version", "--client", "-o", "json"]).output()?;
    let version: Value = serde_json::from_slice(&output.stdout)?;
    let version = version["clientVersion"]["gitVersion"].as_str();
    Ok(version.ok_or("kubectl does not print its version")?.to_owned())
}

/// The two that goals compare, so many times, in both orders in turn: a server is slower after the writes of a
/// contender.
pub(crate) fn in_both_orders(
    present: &[Contender],
    repetitions: usize,
) -> impl Iterator<Item = Contender> + use<> {
    let mut compared: Vec<Contender> = present.iter().take(2).copied().collect();
    (0..repetitions).flat_map(move |_| {
        compared.reverse();
        compared.clone()
    })
}

/// `kubectl-applyset apply` of a directory as the set `bench`.
pub(crate) fn ours(server: &Server, namespace: &str, directory: &Path) -> Command {
    let mut command = with_home(Path::new(PROGRAM), server);
    command.args(Contender::Ours.arguments(namespace, &directory.to_string_lossy()));
    command
}

/// Installs what a tool needs in the cluster before its first run.
pub(crate) fn install(present: &[Contender], server: &Server) -> Result<()> {
    if !present.contains(&Contender::Built(Tool::Kpt)) {
        return Ok(());
    }
    let mut command = with_home(&tools::program(Tool::Kpt)?, server);
    let output = command.args(["live", "install-resource-group"]).output()?;
    if !output.status.success() {
        let messages = String::from_utf8_lossy(&output.stderr);
        return Err(format!("kpt cannot install its inventory: {}", messages.trim_end()).into());
    }
    Ok(())
}

/// A program as the admin, with caches and settings of this control plane alone.
fn with_home(program: &Path, server: &Server) -> Command {
    let mut command = Command::new(program);
    command
        .env("KUBECONFIG", server.control_plane.admin_kubeconfig())
        .env("HOME", server.control_plane.data_dir().join("home"));
    command
}
