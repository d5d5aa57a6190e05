//! The manifests of a kustomization (`-k`), rendered by `kubectl kustomize`.
//!
//! If `KUBECTL_PATH` names no kubectl and there is none in `PATH`, `kustomize` is used. The argument of `-k` may be any
//! directory that these programs accept, a remote one included.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use super::error::Problem;
use super::read_limited::MAX_SOURCE_BYTES;
use super::source::hide_secrets_in_message;
use crate::find_program::{self, ProgramError};
use crate::model::text::format_os_error;

/// The file names of a kustomization (kustomize, `konfig.RecognizedKustomizationFileNames`).
pub(super) const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Returns whether a file is a kustomization: it has the name of one, and no `apiVersion` of another API group (Flux
/// has a kind Kustomization of its own). A file that cannot be read is not a kustomization; reading it as a manifest
/// reports the error.
pub(super) fn is_kustomization_file(path: &Path) -> bool {
    let has_name = path
        .file_name()
        .is_some_and(|name| FILE_NAMES.iter().any(|file_name| name == *file_name));
    if !has_name || !path.is_file() {
        return false;
    }
    let mut text = Vec::new();
    if File::open(path)
        .and_then(|file| file.take(TEXT_LIMIT).read_to_end(&mut text))
        .is_err()
    {
        return false;
    }
    String::from_utf8_lossy(&text)
        .lines()
        .filter_map(|line| line.strip_prefix("apiVersion:"))
        .all(|version| version.trim().trim_matches(['"', '\'']).starts_with(GROUP))
}

/// The API group of kustomizations, which no server has.
const GROUP: &str = "kustomize.config.k8s.io/";

/// Renders a kustomization: a text of documents divided by `---`.
///
/// The error has the message of the program, as `kubectl apply -k` would print it, but without the credentials of URLs.
/// It may quote lines of the files that the program reads.
pub(super) fn render(directory: &str) -> Result<Vec<u8>, Problem> {
    let kubectl = find_program::kubectl();
    // Each program with its subcommand.
    for (program, subcommand) in [(&*kubectl, "kustomize"), ("kustomize", "build")] {
        let mut command = match find_program::command_for(program) {
            Ok(command) => command,
            Err(ProgramError::NotFound) => continue,
            Err(error) => {
                return Err(Problem::Kustomize {
                    text: format!("{program}: cannot be started: {error}"),
                    hint: "remove empty and relative entries from PATH".to_owned(),
                });
            }
        };
        command.args([subcommand, "--", directory]);
        let failure = match run(&mut command) {
            Ok((status, rendered, _)) if status.success() => return Ok(rendered),
            Ok((_, output, _)) if output.len() as u64 > MAX_SOURCE_BYTES => return Err(Problem::TooLarge),
            Ok((_, _, message)) => format!("failed: {}", hide_secrets_in_message(message.trim(), directory)),
            Err(error) => format!("cannot be started: {}", format_os_error(&error)),
        };
        let command = format!("{program} {subcommand}");
        return Err(Problem::Kustomize {
            text: format!("{command}: {failure}"),
            hint: format!("reproduce it with `{command} DIR`"),
        });
    }
    Err(Problem::Kustomize {
        text: "neither kubectl nor kustomize found in PATH".to_owned(),
        hint: "install one of them, or pipe rendered manifests to -f -".to_owned(),
    })
}

/// Runs a command to its end, or until its output is larger than the limit. Returns its status, its output and the
/// message that it wrote to standard error.
fn run(command: &mut Command) -> io::Result<(ExitStatus, Vec<u8>, String)> {
    // Standard error goes to a file: nothing reads it while standard output is read, so a pipe would fill up, and the
    // program would wait for us without end.
    let mut errors = tempfile::tempfile()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors.try_clone()?)
        .spawn()?;
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MAX_SOURCE_BYTES + 1).read_to_end(&mut output)?;
    }
    // Our end of standard output is closed by now, so a program that still writes to it ends with an error.
    let status = child.wait()?;
    let mut message = Vec::new();
    errors.rewind()?;
    errors.take(TEXT_LIMIT).read_to_end(&mut message)?;
    Ok((status, output, String::from_utf8_lossy(&message).into_owned()))
}

/// The number of bytes that are read of a program's standard error, and of a file that may be a kustomization.
const TEXT_LIMIT: u64 = 64 << 10;

/// Divides a rendered text into its documents. kustomize writes `---` on a line of its own between
/// them, and no value of its output has such a line.
pub(super) fn documents(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n---\n")
}
