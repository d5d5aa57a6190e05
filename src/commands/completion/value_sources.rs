//! The command line with the sources of its values: which argument is a set, which a namespace, which a
//! file. `values` finds the values.
//!
//! Arguments are distinguished by their definition in `cli`, in every command alike.

use std::sync::{Arc, Mutex};

use clap::{Arg, Command, CommandFactory as _, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use super::values::{Source, Values};
use crate::cli::Cli;

/// The program that completes paths.
#[derive(Debug, Clone)]
pub(super) enum PathsBy {
    /// clap's engine.
    Engine,
    /// The shell; the requested kind of path is stored here.
    Shell(Arc<Mutex<Option<WantedPath>>>),
}

/// The paths that an argument takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WantedPath {
    /// Manifests, and directories of them.
    Manifests,
    /// Directories.
    Directory,
    /// Any file.
    File,
}

/// The command line of the program, with the values of arguments as they are looked up.
pub(super) fn with_values(values: &Arc<Values>, paths: &PathsBy) -> Command {
    in_command(Cli::command(), values, paths)
}

fn in_command(command: Command, values: &Arc<Values>, paths: &PathsBy) -> Command {
    command
        .mut_args(|argument| in_argument(argument, values, paths))
        .mut_subcommands(|command| in_command(command, values, paths))
}

fn in_argument(argument: Arg, values: &Arc<Values>, paths: &PathsBy) -> Arg {
    if let Some(source) = source(&argument) {
        let values = Arc::clone(values);
        return argument.add(ArgValueCompleter::new(move |typed: &std::ffi::OsStr| {
            let typed = typed.to_string_lossy();
            let mut found = values.look_up(source, &typed);
            found.retain(|candidate| candidate.get_value().to_string_lossy().starts_with(&*typed));
            found
        }));
    }
    let PathsBy::Shell(asked) = paths else {
        return argument;
    };
    let Some(wanted) = wanted_path(&argument) else {
        return argument;
    };
    let asked = Arc::clone(asked);
    argument.add(ArgValueCompleter::new(move |_: &std::ffi::OsStr| {
        if let Ok(mut asked) = asked.lock() {
            *asked = Some(wanted);
        }
        Vec::<CompletionCandidate>::new()
    }))
}

fn source(argument: &Arg) -> Option<Source> {
    let value_names = argument.get_value_names().unwrap_or_default();
    match (argument.get_id().as_str(), value_names) {
        ("context", _) => Some(Source::Contexts),
        ("cluster", _) => Some(Source::Clusters),
        ("user", [name]) if name == "NAME" => Some(Source::Users),
        (_, [name]) if name == "SET" || name == "NEW" => Some(Source::Sets),
        (_, [name]) if name == "NAMESPACE" => Some(Source::Namespaces),
        _ => None,
    }
}

fn wanted_path(argument: &Arg) -> Option<WantedPath> {
    match argument.get_value_hint() {
        ValueHint::AnyPath if argument.get_id() == "filename" => Some(WantedPath::Manifests),
        ValueHint::AnyPath | ValueHint::FilePath => Some(WantedPath::File),
        ValueHint::DirPath => Some(WantedPath::Directory),
        _ => None,
    }
}
