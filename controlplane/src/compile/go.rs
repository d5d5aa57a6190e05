//! Runs the Go command in the module beside this crate, with the flags of its one build.

use std::collections::HashSet;
use std::io::{self, BufRead as _, BufReader};
use std::path::{MAIN_SEPARATOR, Path};
use std::process::{Command, ExitStatus, Output, Stdio};

use super::MODULE;
use super::module::Module;
use super::progress::Progress;
use crate::Error;

/// The flags of everything that compiles: another value would compile all of Kubernetes again.
///
/// Without debug information, and with one thread for each compiler, since there is a compiler for
/// each processor, the build takes a fifth less processor time.
const COMPILE_FLAGS: &[&str] = &["-trimpath", "-mod=readonly", "-gcflags=all=-dwarf=false -c=1"];

/// Runs the Go command, and fails if it fails.
pub(super) fn run(arguments: &[&str], module: &Module) -> Result<Output, Error> {
    let output = command(arguments)
        .output()
        .map_err(|source| not_run(arguments, module, source))?;
    if !output.status.success() {
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(failed(arguments, output.status, messages));
    }
    Ok(output)
}

/// Builds these packages of Go into a directory, and prints on standard error how far it is.
pub(super) fn build(packages: &[&str], into: &Path, module: &Module) -> Result<(), Error> {
    let all = packages_needed(packages, module)?;
    let linker_flags = module.linker_flags();
    let output = format!("{}{}", into.display(), MAIN_SEPARATOR);
    // -buildvcs=false: the version of this checkout is nothing to the binaries, and asking git for it
    // can fail.
    let mut arguments = vec!["build", "-v", "-buildvcs=false", "-ldflags", &linker_flags];
    arguments.extend(COMPILE_FLAGS);
    arguments.extend(["-o", &output]);
    arguments.extend(packages);

    let mut child = command(&arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| not_run(&arguments, module, source))?;
    let messages = child
        .stderr
        .take()
        .map(|stderr| report_progress(stderr, &all))
        .unwrap_or_default();
    let status = child
        .wait()
        .map_err(|source| not_run(&arguments, module, source))?;
    if status.success() {
        Ok(())
    } else {
        Err(failed(&arguments, status, messages))
    }
}

/// Looks for mistakes in the sources of the module, with what its build has compiled.
pub(super) fn vet(module: &Module) -> Result<(), Error> {
    let mut arguments = vec!["vet"];
    arguments.extend(COMPILE_FLAGS);
    arguments.push(".");
    run(&arguments, module).map(drop)
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new("go");
    command
        .args(arguments)
        .current_dir(MODULE)
        // A C compiler is not needed, and a workspace around us is not ours.
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off");
    command
}

fn packages_needed(packages: &[&str], module: &Module) -> Result<HashSet<String>, Error> {
    let listed = run(&[&["list", "-deps"], packages].concat(), module)?.stdout;
    let listed = String::from_utf8_lossy(&listed);
    Ok(listed.lines().map(str::to_owned).collect())
}

/// Counts the packages that Go names as it compiles them; returns what else it says.
fn report_progress(stderr: impl io::Read, all: &HashSet<String>) -> String {
    let mut progress = Progress::new(all.len());
    let mut messages = String::new();
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if all.contains(&line) {
            progress.count();
        } else {
            messages.push_str(&line);
            messages.push('\n');
        }
    }
    progress.end();
    messages
}

fn failed(arguments: &[&str], status: ExitStatus, output: String) -> Error {
    Error::CommandFailed {
        command: format!("go {}", arguments.join(" ")),
        status: status.to_string(),
        output,
    }
}

fn not_run(arguments: &[&str], module: &Module, source: io::Error) -> Error {
    if source.kind() == io::ErrorKind::NotFound {
        return Error::GoMissing {
            at_least: module.directive("go"),
        };
    }
    Error::CommandNotRun {
        command: format!("go {}", arguments.join(" ")),
        source,
    }
}
