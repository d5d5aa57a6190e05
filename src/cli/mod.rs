//! The command line: flags, their names and their help.
//!
//! clap takes the doc comments of flags as their help texts, and lays the pages out with the templates in `help`.
//! `settings` turns the flags into values for the later stages.

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
pub use apply::{Apply, Diff, DiffDryRun, MarkdownFlags, PlanningFlags};
pub use arguments::{
    ManifestFlags, SetArgument, WAIT_WITHOUT_VALUE, WaitFailuresFlag, WaitFlags, WriteFlags,
};
pub use commands::{Command, Delete, Export, List, Rbac, Verify, View};
pub use global::{ColorChoice, ConnectionFlags, GlobalFlags};
pub use help::format_connection_page;

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
    /// The subcommand, such as `apply`, with its arguments.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the arguments of the process, of which the first is the name of the program.
    ///
    /// # Errors
    ///
    /// Returns clap's error for wrong arguments. As in clap, `--help` and `--version` are errors, too, with the output
    /// as their text.
    pub fn parse(arguments: Vec<OsString>) -> Result<Self, clap::Error> {
        let mut command = help::with_pages(kubectl_flag_syntax::accept_boolean_values(Self::command()));
        let mut arguments = kubectl_flag_syntax::rewrite_verbosity(arguments);
        if arguments.len() < 2 {
            arguments.push("--help".into());
        }
        // Kept for tips: clap consumes the arguments.
        let argument_texts: Vec<String> = arguments
            .iter()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect();
        command
            .try_get_matches_from_mut(arguments)
            .and_then(|matches| Self::from_arg_matches(&matches))
            .map_err(|error| tips::replace_clap_tip(error, &command, &argument_texts))
    }
}
