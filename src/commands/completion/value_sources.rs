//! The command line with the sources of its values: which argument is a set, which a namespace, which a
//! file. `values` finds the values.
//!
//! Arguments are distinguished by their definition in `cli`, in every command alike.

use std::sync::{Arc, Mutex};

use clap::{Arg, Command, CommandFactory as _, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use super::values::{ValueSource, Values};
use crate::cli::Cli;

/// Where the shell finds out which paths it has to complete; without it, clap's engine completes them.
pub(super) type WantedPaths = Arc<Mutex<Option<Directive>>>;

/// Directives to the shell, as cobra numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directive {
    /// The shell completes files if there is no candidate.
    Default = 0,
    /// It does not.
    NoFiles = 4,
    /// The candidates are extensions of files.
    Extensions = 8,
    /// The shell completes directories.
    Directories = 16,
}

/// The command line of the program, with the values of arguments as they are looked up.
pub(super) fn with_values(values: &Arc<Values>, paths: Option<&WantedPaths>) -> Command {
    in_command(Cli::command(), values, paths)
}

fn in_command(command: Command, values: &Arc<Values>, paths: Option<&WantedPaths>) -> Command {
    command
        .mut_args(|argument| in_argument(argument, values, paths))
        .mut_subcommands(|command| in_command(command, values, paths))
}

fn in_argument(argument: Arg, values: &Arc<Values>, paths: Option<&WantedPaths>) -> Arg {
    if let Some(source) = source(&argument) {
        let values = Arc::clone(values);
        return argument.add(ArgValueCompleter::new(move |typed: &std::ffi::OsStr| {
            let typed = typed.to_string_lossy();
            let mut found = values.look_up(source, &typed);
            found.retain(|candidate| candidate.get_value().to_string_lossy().starts_with(&*typed));
            found
        }));
    }
    let Some((asked, wanted)) = paths.cloned().zip(wanted_path(&argument)) else {
        return argument;
    };
    argument.add(ArgValueCompleter::new(move |_: &std::ffi::OsStr| {
        if let Ok(mut asked) = asked.lock() {
            *asked = Some(wanted);
        }
        Vec::<CompletionCandidate>::new()
    }))
}

fn source(argument: &Arg) -> Option<ValueSource> {
    let value_names = argument.get_value_names().unwrap_or_default();
    match (argument.get_id().as_str(), value_names) {
        ("context", _) => Some(ValueSource::Contexts),
        ("cluster", _) => Some(ValueSource::Clusters),
        ("user", [name]) if name == "NAME" => Some(ValueSource::Users),
        (_, [name]) if name == "SET" || name == "NEW" => Some(ValueSource::Sets),
        (_, [name]) if name == "NAMESPACE" => Some(ValueSource::Namespaces),
        _ => None,
    }
}

fn wanted_path(argument: &Arg) -> Option<Directive> {
    match argument.get_value_hint() {
        ValueHint::AnyPath if argument.get_id() == "filename" => Some(Directive::Extensions),
        ValueHint::AnyPath | ValueHint::FilePath => Some(Directive::Default),
        ValueHint::DirPath => Some(Directive::Directories),
        _ => None,
    }
}
