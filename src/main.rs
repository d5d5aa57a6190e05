//! The program: one call, turned into an exit code.

use std::process::ExitCode;

use clap::Parser as _;
use kubectl_applyset::cli::Cli;

fn main() -> ExitCode {
    ExitCode::from(kubectl_applyset::commands::run(&Cli::parse()).code())
}
