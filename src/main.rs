//! The program: one call, turned into an exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use kubectl_applyset::cli::Cli;
use kubectl_applyset::commands::{self, completion};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if completion::answer(&arguments) {
        return ExitCode::SUCCESS;
    }
    let typed = Cli::parse(arguments).unwrap_or_else(|error| error.exit());
    ExitCode::from(commands::run(&typed).code())
}
