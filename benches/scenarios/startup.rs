//! How long the program takes to start, and how large it is.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::contenders::PROGRAM;
use crate::results::{Startup, median};
use crate::{Result, process};

/// Runs of `version`.
const RUNS: usize = 20;

/// Measures `kubectl-applyset version`, and the file that it is in.
pub(crate) fn startup(scratch: &Path) -> Result<Startup> {
    let mut seconds = Vec::new();
    for _ in 0..RUNS {
        seconds.push(process::run(Command::new(PROGRAM).arg("version"), scratch, None)?.seconds);
    }
    Ok(Startup {
        seconds: median(seconds).unwrap_or_default(),
        bytes: fs::metadata(PROGRAM)?.len(),
    })
}
