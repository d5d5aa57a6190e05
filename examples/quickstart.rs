//! The main job, shown against a real API server: apply manifests that span two
//! namespaces, then manifests from which objects, kinds and a namespace are gone.
//!
//! `cargo run --example quickstart` starts a throw-away control plane, runs kubectl
//! with this plugin as a person would at a terminal, and shows what they print. After
//! each step the cluster is asked whether what was promised is so; if not, the exit
//! code is 1. How the plugin works is not known here.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use controlplane::ControlPlane;
use serde_json::Value;

/// The program's name, as Cargo.toml has it.
const PROGRAM: &str = "kubectl-applyset";

/// The kinds in `testdata/shop`, but for Namespace.
const KINDS: &str = "configmaps,cronjobs,deployments,services,serviceaccounts";

/// The members in namespaces after the first apply: namespace, then kubectl's name.
const FIRST: &[&str] = &[
    "shop configmap/web",
    "shop deployment.apps/web",
    "shop service/web",
    "shop serviceaccount/web",
    "shop-reports configmap/report-queries",
    "shop-reports cronjob.batch/daily-report",
];

/// The members after the second.
const SECOND: &[&str] = &[
    "shop configmap/web",
    "shop deployment.apps/web",
    "shop service/web",
];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    say("# A throw-away control plane: etcd, API server and controllers on 127.0.0.1.")?;
    let control_plane = ControlPlane::start()?;
    say("# The plugin, built from this checkout.")?;
    let terminal = Terminal {
        path: path_with(&build_plugin()?)?,
        control_plane: &control_plane,
    };

    terminal.shows("create namespace shop")?;

    say("\n# A web shop, and its reports in a namespace of their own, are one set.")?;
    terminal.shows("applyset apply web -n shop -f testdata/shop/first")?;
    terminal.expects(FIRST, Reports::Exist)?;
    terminal.shows("applyset view web -n shop")?;

    say("\n# The reports and the ServiceAccount left the manifests. What would that do?")?;
    let before = terminal.members()?;
    terminal.shows("applyset apply web -n shop -f testdata/shop/second --dry-run=server")?;
    if terminal.members()? != before {
        return Err("the dry run changed the cluster".into());
    }

    say("\n# So do it.")?;
    terminal.shows("applyset apply web -n shop -f testdata/shop/second")?;
    terminal.shows("wait --for=delete namespace/shop-reports --timeout=60s")?;

    say("\n# The reports, the kind CronJob, a namespace and the ServiceAccount are gone.")?;
    terminal.shows("get namespaces")?;
    terminal.shows(&format!("get {KINDS} -A -l applyset.kubernetes.io/part-of"))?;
    terminal.expects(SECOND, Reports::Gone)?;
    say("\n# The cluster was asked after each step, and is as promised.")?;
    Ok(())
}

/// Whether the namespace of the shop's reports is to exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reports {
    Exist,
    Gone,
}

/// One person at a terminal, with the plugin on the search path.
struct Terminal<'a> {
    control_plane: &'a ControlPlane,
    path: OsString,
}

impl Terminal<'_> {
    fn kubectl(&self, arguments: &str) -> Command {
        let mut kubectl = self.control_plane.kubectl_command();
        kubectl
            .args(arguments.split(' '))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("PATH", &self.path)
            .stdin(Stdio::null());
        kubectl
    }

    /// Prints the command line and lets kubectl print what it prints.
    fn shows(&self, arguments: &str) -> Result<(), Box<dyn Error>> {
        say(&format!("\n$ kubectl {arguments}"))?;
        let status = self.kubectl(arguments).status()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("kubectl {arguments}: {status}").into())
        }
    }

    fn answers(&self, arguments: &str) -> Result<Value, Box<dyn Error>> {
        let output = self.kubectl(arguments).output()?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("kubectl {arguments}: {errors}").into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Every object that is a member of any set, as the server has it.
    fn members(&self) -> Result<Value, Box<dyn Error>> {
        let arguments = format!("get namespaces,{KINDS} -A -l applyset.kubernetes.io/part-of -o json");
        Ok(self.answers(&arguments)?["items"].take())
    }

    fn expects(&self, members: &[&str], reports: Reports) -> Result<(), Box<dyn Error>> {
        let found = self.members()?;
        let mut found: Vec<String> = found.as_array().into_iter().flatten().map(name).collect();
        found.sort();
        let mut expected: Vec<String> = members.iter().map(|&member| member.to_owned()).collect();
        if reports == Reports::Exist {
            expected.push(" namespace/shop-reports".to_owned());
        }
        expected.sort();
        if found != expected {
            return Err(format!("the members are {found:?}, and should be {expected:?}").into());
        }
        let namespaces = self.answers("get namespaces -o json")?;
        let mut namespaces = namespaces["items"].as_array().into_iter().flatten();
        let exists = namespaces.any(|namespace| namespace["metadata"]["name"] == "shop-reports");
        if exists != (reports == Reports::Exist) {
            return Err(format!("namespace shop-reports exists: {exists}").into());
        }
        Ok(())
    }
}

/// `shop deployment.apps/web`; begins with a blank where there is no namespace.
fn name(object: &Value) -> String {
    let text = |pointer| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let kind = text("/kind").to_lowercase();
    let group = text("/apiVersion")
        .rsplit_once('/')
        .map_or("", |(group, _)| group);
    let resource = if group.is_empty() {
        kind
    } else {
        format!("{kind}.{group}")
    };
    format!(
        "{} {resource}/{}",
        text("/metadata/namespace"),
        text("/metadata/name")
    )
}

/// Builds the program and returns the file. This example is named beside it, so that the
/// dependencies have the features that they were built with for the example: alone, the program
/// takes fewer, and cargo would compile tokio and all that stands on it again.
fn build_plugin() -> Result<PathBuf, Box<dyn Error>> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    for (variable, _) in env::vars_os() {
        // `cargo run` sets these for us. Build scripts that read them would run again,
        // now and at the next build in a shell, which does not have them.
        let name = variable.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            build.env_remove(&variable);
        }
    }
    let output = build
        .args(["build", "--bin", PROGRAM, "--example", "quickstart"])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err("the plugin could not be built".into());
    }
    let messages = output
        .stdout
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let program = messages
        .filter(|message| message["target"]["name"] == PROGRAM)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    program.ok_or_else(|| "cargo names no program that it built".into())
}

/// The search path with the plugin's folder in front, where kubectl finds it.
fn path_with(plugin: &Path) -> Result<OsString, env::JoinPathsError> {
    let present = env::var_os("PATH").unwrap_or_default();
    let folder = plugin.parent().map(Path::to_owned);
    env::join_paths(folder.into_iter().chain(env::split_paths(&present)))
}

/// Prints a line before anything that follows can print its own.
fn say(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}
