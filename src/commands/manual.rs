//! `__manual`: the pages for `man`, as archives hold them.

use std::path::Path;

use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::error::{Error, Exit};
use crate::model::text::os_cause;

/// Writes a page for the program and one for each command into an existing directory.
pub(super) fn write(directory: &Path) -> Result<Exit, Error> {
    clap_mangen::generate_to(Cli::command(), directory)
        .map(|()| Exit::Done)
        .map_err(|error| {
            Error::usage(
                format!("{}: cannot be written: {}", directory.display(), os_cause(&error)),
                "pass a directory",
            )
        })
}
