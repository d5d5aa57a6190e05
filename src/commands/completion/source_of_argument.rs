//! Finds out which arguments of the command line are a set, a namespace, a name of the kubeconfig or a file.
//! `look_up_values` looks the values up.
//!
//! An argument is recognized by its id, value name and value hint in `cli`, in the same way in every command.

use std::sync::{Arc, Mutex};

use clap::{Arg, Command, CommandFactory as _, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use super::look_up_values::{ValueLookup, ValueSource};
use crate::cli::Cli;

/// The cell for the directive to complete paths, if the argument that is being typed is a path. It is for kubectl,
/// which has the shell complete paths; otherwise clap's engine completes them.
pub(super) type PathDirectiveCell = Arc<Mutex<Option<Directive>>>;

/// Directives to the shell, as cobra numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directive {
    /// The shell completes files if there is no candidate.
    Default = 0,
    /// The shell does not complete files.
    NoFiles = 4,
    /// The shell completes files with certain extensions, which are printed in place of candidates.
    Extensions = 8,
    /// The shell completes directories.
    Directories = 16,
}

/// Returns the command line of the program with completers for the arguments whose values are looked up, and, if
/// `paths` is given, for paths.
pub(super) fn command_with_completers(
    values: &Arc<ValueLookup>,
    paths: Option<&PathDirectiveCell>,
) -> Command {
    add_completers_to_command(Cli::command(), values, paths)
}

fn add_completers_to_command(
    command: Command,
    values: &Arc<ValueLookup>,
    paths: Option<&PathDirectiveCell>,
) -> Command {
    command
        .mut_args(|argument| add_completer_to_argument(argument, values, paths))
        .mut_subcommands(|command| add_completers_to_command(command, values, paths))
}

fn add_completer_to_argument(
    argument: Arg,
    values: &Arc<ValueLookup>,
    paths: Option<&PathDirectiveCell>,
) -> Arg {
    if let Some(source) = find_source(&argument) {
        let values = Arc::clone(values);
        return argument.add(ArgValueCompleter::new(move |typed: &std::ffi::OsStr| {
            let typed = typed.to_string_lossy();
            let mut found = values.look_up(source, &typed);
            // clap's engine does not filter the candidates of a completer.
            found.retain(|candidate| candidate.get_value().to_string_lossy().starts_with(&*typed));
            found
        }));
    }
    let Some((paths, directive)) = paths.cloned().zip(find_path_directive(&argument)) else {
        return argument;
    };
    argument.add(ArgValueCompleter::new(move |_: &std::ffi::OsStr| {
        if let Ok(mut wanted) = paths.lock() {
            *wanted = Some(directive);
        }
        Vec::<CompletionCandidate>::new()
    }))
}

fn find_source(argument: &Arg) -> Option<ValueSource> {
    let value_names = argument.get_value_names().unwrap_or_default();
    match (argument.get_id().as_str(), value_names) {
        ("context", _) => Some(ValueSource::Contexts),
        ("cluster", _) => Some(ValueSource::Clusters),
        // `rbac` has another `--user`, with the value name USER.
        ("user", [name]) if name == "NAME" => Some(ValueSource::Users),
        (_, [name]) if name == "SET" || name == "NEW" => Some(ValueSource::Sets),
        (_, [name]) if name == "NAMESPACE" => Some(ValueSource::Namespaces),
        _ => None,
    }
}

fn find_path_directive(argument: &Arg) -> Option<Directive> {
    match argument.get_value_hint() {
        ValueHint::AnyPath if argument.get_id() == "filename" => Some(Directive::Extensions),
        ValueHint::AnyPath | ValueHint::FilePath => Some(Directive::Default),
        ValueHint::DirPath => Some(Directive::Directories),
        _ => None,
    }
}
