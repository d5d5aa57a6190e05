//! The program: one call, turned into an exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use kubectl_applyset::Cli;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if kubectl_applyset::print_candidates_if_requested(&arguments) {
        return ExitCode::SUCCESS;
    }
    let typed = Cli::parse(arguments).unwrap_or_else(|error| error.exit());
    ExitCode::from(kubectl_applyset::run(&typed).code())
}
