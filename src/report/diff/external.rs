//! Runs the program in `KUBECTL_EXTERNAL_DIFF` on two directories with a file for each object, as
//! `kubectl diff` does.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitStatus;

use tempfile::{Builder, TempDir};

use crate::compare::diff::{Difference, format_as_yaml};
use crate::find_program;

/// A program that compares two directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalDiff {
    pub program: String,
    /// Arguments after the two directories.
    pub arguments: Vec<String>,
}

/// Writes both states of all objects into two temporary directories, `LIVE-…` and `MERGED-…`, and runs the program on
/// these. If an object is compared with that of a base, the first one is `BASE-…`. The values of Secrets are masked in
/// the files, as in the text of `diff` itself. Returns whether the program finds a difference: its exit code is then 1.
///
/// # Errors
///
/// A message, if the program cannot be run or exits with a code above 1.
pub fn show_externally(program: &ExternalDiff, differences: &[&Difference]) -> Result<bool, String> {
    let name = &program.program;
    let status = run(program, differences).map_err(|error| format!("failed to run {name:?}: {error}"))?;
    match status.code() {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        _ => Err(format!("failed to run {name:?}: {status}")),
    }
}

fn run(program: &ExternalDiff, differences: &[&Difference]) -> Result<ExitStatus, Box<dyn Error>> {
    let mut command = find_program::command_for(&program.program)?;
    let sides = differences.iter().map(|difference| difference.old_side);
    let old_side = sides.max().unwrap_or_default();
    let live = create_private_directory(&format!("{}-", old_side.heading()))?;
    let merged = create_private_directory("MERGED-")?;
    for difference in differences {
        for (directory, state) in [(&live, &difference.live), (&merged, &difference.predicted)] {
            create_private_file(
                directory.path(),
                &difference.file,
                &format_as_yaml(state.as_ref()),
            )?;
        }
    }
    command
        .args([live.path(), merged.path()])
        .args(&program.arguments);
    Ok(command.status()?)
}

/// Creates a temporary directory that only the user can read.
fn create_private_directory(prefix: &str) -> io::Result<TempDir> {
    let mut builder = Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir()
}

/// Creates a file that only the user can read.
fn create_private_file(directory: &Path, file: &str, content: &str) -> io::Result<()> {
    // Names of RBAC objects may have colons, which file names on Windows cannot have.
    let file = if cfg!(windows) {
        file.replace(':', "-")
    } else {
        file.to_owned()
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(directory.join(file))?.write_all(content.as_bytes())
}

impl ExternalDiff {
    /// Parses `KUBECTL_EXTERNAL_DIFF` as kubectl does (`pkg/cmd/diff`, `getCommand`): splits the value at blanks, and
    /// drops arguments with other characters than letters, digits, `-` and `=`. Returns `None` if the value names no
    /// program.
    pub fn parse(value: &str) -> Option<Self> {
        let mut words = value.split(' ');
        let program = words.next().filter(|program| !program.is_empty())?;
        let arguments = words.filter(|word| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-=".contains(&byte))
        });

        Some(Self {
            program: program.to_owned(),
            arguments: arguments.map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_external_program_is_read_as_kubectl_reads_it() {
        let table: [(&str, &[&str]); 5] = [
            ("", &[]),
            ("meld", &["meld"]),
            ("/usr/bin/diff -N -u", &["/usr/bin/diff", "-N", "-u"]),
            (
                "dyff between --omit-header",
                &["dyff", "between", "--omit-header"],
            ),
            ("diff  --color=always x;y /etc", &["diff", "--color=always"]),
        ];
        for (value, words) in table {
            let expected = words.split_first().map(|(program, arguments)| ExternalDiff {
                program: (*program).to_owned(),
                arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            });
            assert_eq!(ExternalDiff::parse(value), expected, "{value:?}");
        }
    }
}
