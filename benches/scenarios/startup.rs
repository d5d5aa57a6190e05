//! How long the program takes to start, and how large it is.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Result;
use crate::contenders::PROGRAM;
use crate::process::{self, Terms};
use crate::results::{Startup, median};

/// Commands and flags are completed, and no value of the cluster.
const COMPLETION: [&str; 3] = ["__complete", "apply", "--"];
/// Runs of each command.
const RUNS: usize = 20;

/// Measures `kubectl-applyset version`, the completion of a command, and the file of the program.
pub(crate) fn startup(scratch: &Path) -> Result<Startup> {
    let version = seconds(Command::new(PROGRAM).arg("version"), scratch)?;
    let mut command = Command::new(PROGRAM);
    command
        .env("KUBECONFIG", scratch.join("no-kubeconfig"))
        .args(COMPLETION);
    Ok(Startup {
        version,
        completion: seconds(&mut command, scratch)?,
        bytes: fs::metadata(PROGRAM)?.len(),
    })
}

/// The median of the seconds that some runs take.
fn seconds(command: &mut Command, scratch: &Path) -> Result<f64> {
    let runs = (0..RUNS).map(|_| Ok(process::run(command, scratch, Terms::STRICT)?.seconds));
    let seconds = runs.collect::<Result<Vec<f64>>>()?;
    Ok(median(seconds).unwrap_or_default())
}
