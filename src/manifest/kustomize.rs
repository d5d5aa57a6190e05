//! The manifests that a kustomization comes to (`-k`), by kubectl's own kustomize.
//!
//! kubectl is there wherever its plugins run; where the program runs by itself, `kustomize`
//! serves as well. The directory may be whatever these take, a remote one included.

use std::io::ErrorKind;
use std::process::{Command, Stdio};

use super::error::Problem;

/// The programs that can do it, with what they want before the directory.
const PROGRAMS: [(&str, &str); 2] = [("kubectl", "kustomize"), ("kustomize", "build")];

/// A kustomization that comes to no manifests.
#[derive(Debug, thiserror::Error)]
pub enum KustomizeError {
    /// Neither program is there.
    #[error("neither kubectl nor kustomize is on the search path")]
    NoProgram,
    /// The program cannot be started.
    #[error("`{command}` cannot be started: {error}")]
    NotStarted {
        /// The program and its command.
        command: String,
        /// Why.
        error: std::io::Error,
    },
    /// The program says that it cannot.
    #[error("`{command}` failed: {said}")]
    Failed {
        /// The program and its command.
        command: String,
        /// Its standard error.
        said: String,
    },
}

impl KustomizeError {
    /// What to type next.
    pub(super) fn hint(&self) -> String {
        match self {
            Self::NoProgram => {
                "install one of them, or render the manifests elsewhere and give them with -f -".to_owned()
            }
            Self::NotStarted { command, .. } | Self::Failed { command, .. } => {
                format!("`{command} DIR` by itself shows the same")
            }
        }
    }
}

/// Renders a kustomization: a text of documents divided by `---`.
pub(super) fn build(directory: &str) -> Result<Vec<u8>, Problem> {
    for (program, subcommand) in PROGRAMS {
        let command = || format!("{program} {subcommand}");
        let output = Command::new(program)
            .args([subcommand, "--", directory])
            .stdin(Stdio::null())
            .output();
        return match output {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => Err(KustomizeError::NotStarted {
                command: command(),
                error,
            }
            .into()),
            Ok(output) if output.status.success() => Ok(output.stdout),
            Ok(output) => Err(KustomizeError::Failed {
                command: command(),
                said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            }
            .into()),
        };
    }
    Err(KustomizeError::NoProgram.into())
}

/// The documents of a rendered text. kustomize writes `---` on a line of its own between
/// them, and no value of its output has such a line.
pub(super) fn documents(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n---\n")
}
