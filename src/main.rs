//! The program: one call, turned into an exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;
use kubectl_applyset::cli::Cli;
use kubectl_applyset::commands::{self, completion};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if completion::answer(&arguments) {
        return ExitCode::SUCCESS;
    }
    ExitCode::from(commands::run(&Cli::parse_from(arguments)).code())
}
