//! The command line: flags, their names and their help.
//!
//! `settings` turns the flags into values; nothing is decided here. Doc comments of flags are the
//! help text, and `help` makes the pages of it.

mod adopt_move_disband;
mod apply;
mod arguments;
mod commands;
mod examples;
mod global;
mod help;
mod kubectl_flag_syntax;
mod tips;

pub use adopt_move_disband::{Adopt, Disband, Move};
pub use apply::{Apply, Diff, MarkdownFlags, PlanningFlags};
pub use arguments::{ManifestFlags, SetArgument, WAIT_WITHOUT_VALUE, WaitFlags, WriteFlags};
pub use commands::{Command, Delete, Export, List, Rbac, Verify, View};
pub use global::{ColorChoice, ConnectionFlags, GlobalFlags};
pub use help::connection_page;

use std::ffi::OsString;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

/// Apply manifests, and prune objects removed from them
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-applyset",
    bin_name = "kubectl applyset",
    version = concat!("v", env!("CARGO_PKG_VERSION")),
    args_override_self = true
)]
pub struct Cli {
    /// Flags that all commands share.
    #[command(flatten)]
    pub shared: GlobalFlags,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the arguments, beginning with the name of the program. The error is also the output of
    /// `--help` and `--version`.
    pub fn parse(arguments: Vec<OsString>) -> Result<Self, clap::Error> {
        let mut command = help::with_pages(kubectl_flag_syntax::with_boolean_values(Self::command()));
        let mut arguments = kubectl_flag_syntax::with_levels(arguments);
        if arguments.len() < 2 {
            arguments.push("--help".into());
        }
        let texts: Vec<String> = arguments
            .iter()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect();
        let matches = command.try_get_matches_from_mut(arguments);
        matches
            .and_then(|matches| Self::from_arg_matches(&matches))
            .map_err(|error| tips::with_tip(error, &command, &texts))
    }
}
