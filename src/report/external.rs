//! Shows differences in the program that `KUBECTL_EXTERNAL_DIFF` names, as `kubectl diff`
//! does: two directories with a file for each object.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use tempfile::{Builder, TempDir};

use crate::diff::{Difference, text};
use crate::options::ExternalDiff;

/// What the program found, by its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExternalVerdict {
    /// 0.
    Alike,
    /// 1.
    Different,
}

/// Writes both states of all objects below two directories, `LIVE-…` and `MERGED-…`, and
/// runs the program on them. Values of Secrets are hidden in the files, too.
///
/// # Errors
///
/// A sentence: the program cannot be run, or ends with an exit code above 1.
pub fn show(program: &ExternalDiff, differences: &[&Difference]) -> Result<ExternalVerdict, String> {
    let name = &program.program;
    let shown = || -> io::Result<_> {
        let live = directory("LIVE-")?;
        let merged = directory("MERGED-")?;
        for difference in differences {
            write(live.path(), &difference.file, &text(difference.live.as_ref()))?;
            write(
                merged.path(),
                &difference.file,
                &text(difference.predicted.as_ref()),
            )?;
        }
        let mut command = Command::new(name);
        command
            .args([live.path(), merged.path()])
            .args(&program.arguments);
        command.status()
    };
    let status = shown().map_err(|error| format!("failed to run {name:?}: {error}"))?;
    match status.code() {
        Some(0) => Ok(ExternalVerdict::Alike),
        Some(1) => Ok(ExternalVerdict::Different),
        _ => Err(format!("failed to run {name:?}: {status}")),
    }
}

fn directory(prefix: &str) -> io::Result<TempDir> {
    Builder::new().prefix(prefix).tempdir()
}

fn write(directory: &Path, file: &str, content: &str) -> io::Result<()> {
    // Names of RBAC objects may have colons, which are no part of a file name on Windows.
    let file = if cfg!(windows) {
        file.replace(':', "-")
    } else {
        file.to_owned()
    };
    fs::write(directory.join(file), content)
}
