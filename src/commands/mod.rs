//! The commands, a file for each: short scripts that call the stages (`read`, `plan`, `execute`, …) in turn. Code that
//! two commands need is in `session` or in a stage.

mod adopt;
mod apply;
pub mod completion;
mod delete;
mod diff;
mod disband;
mod export;
mod history;
mod list;
mod move_members;
mod rbac;
mod verify;
mod view;

use std::path::Path;

use clap::CommandFactory as _;

use crate::cli::{self, Cli, Command};
use crate::error::Error;
use crate::exit::Exit;
use crate::model::text::format_os_error;
use crate::report::{self, Format};
use crate::settings;

/// Runs the command, prints its output, and returns how it ended. A command that succeeded has failed if its output
/// could not be written.
pub fn run(cli: &Cli) -> Exit {
    let exit = run_command(cli);
    if exit == Exit::Done && report::has_lost_output() {
        return Exit::Failed;
    }
    exit
}

fn run_command(line: &Cli) -> Exit {
    if let Some(error) = find_unsuitable_output_flag(line) {
        report::print_error(&error, settings::read_style(&line.shared).colors);
        return error.exit();
    }
    let outcome = match &line.command {
        Command::Version => {
            report::text(concat!(
                env!("CARGO_PKG_NAME"),
                " v",
                env!("CARGO_PKG_VERSION"),
                "\n"
            ));
            return Exit::Done;
        }
        Command::Connection => {
            report::text(&cli::format_connection_page());
            return Exit::Done;
        }
        Command::Completion { shell } => {
            report::text(&completion::generate_script(*shell));
            return Exit::Done;
        }
        Command::Apply(arguments) => within_runtime(apply::run(arguments, &line.shared)),
        Command::Manual { directory } => write_manual(directory),
        Command::Delete(arguments) => within_runtime(delete::run(arguments, &line.shared)),
        Command::Disband(arguments) => within_runtime(disband::run(arguments, &line.shared)),
        Command::Adopt(arguments) => within_runtime(adopt::run(arguments, &line.shared)),
        Command::Move(arguments) => within_runtime(move_members::run(arguments, &line.shared)),
        Command::Diff(arguments) => within_runtime(diff::run(arguments, &line.shared)),
        Command::List(arguments) => within_runtime(list::run(arguments, &line.shared)),
        Command::Rbac(arguments) => within_runtime(rbac::run(arguments, &line.shared)),
        Command::Verify(arguments) => within_runtime(verify::run(arguments, &line.shared)),
        Command::History(arguments) => within_runtime(history::run(arguments, &line.shared)),
        Command::Export(arguments) => within_runtime(export::run(arguments, &line.shared)),
        Command::View(arguments) => within_runtime(view::run(arguments, &line.shared)),
    };
    outcome.unwrap_or_else(|error| {
        report::print_error(&error, settings::read_style(&line.shared).colors);
        error.exit()
    })
}

/// Returns the error about an output format that the command does not have.
fn find_unsuitable_output_flag(line: &Cli) -> Option<Error> {
    let has_tables = matches!(
        line.command,
        Command::List(_) | Command::View(_) | Command::History(_)
    );
    let has_pages = matches!(line.command, Command::Apply(_) | Command::Diff(_));
    let (message, hint) = match line.shared.output {
        Some(Format::Wide) if !has_tables => (
            "-o wide works with `list`, `view` and `history` only",
            "use -o json for all details",
        ),
        Some(Format::Markdown) if !has_pages => (
            "-o markdown works with `diff` and `apply` only",
            "use -o json, and convert it with a program such as jq",
        ),
        Some(Format::Json | Format::Yaml | Format::Kyaml) if matches!(line.command, Command::Version) => (
            "-o json, yaml and kyaml do not work with `version`",
            "omit -o: the output is one line, the name and the version",
        ),
        _ => return None,
    };
    Some(Error::usage(message, hint))
}

/// Writes a manual page for the program and one for each command into an existing directory.
fn write_manual(directory: &Path) -> Result<Exit, Error> {
    clap_mangen::generate_to(Cli::command(), directory)
        .map(|()| Exit::Done)
        .map_err(|error| {
            Error::usage(
                format!(
                    "{}: cannot be written: {}",
                    directory.display(),
                    format_os_error(&error)
                ),
                "pass a directory",
            )
        })
}

/// Runs a command in an asynchronous runtime of one thread.
fn within_runtime(command: impl Future<Output = Result<Exit, Error>>) -> Result<Exit, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(command);
            // If the run ended while it was reading standard input (after Ctrl-C, for example), that read cannot be
            // canceled. `shutdown_background` does not wait for it.
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(Error::usage(
            format!("cannot start: {}", format_os_error(&error)),
            "check the limit of open files with `ulimit -n`",
        )),
    }
}
