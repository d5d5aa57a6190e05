//! Completion: the scripts that shells load, and the candidates that these scripts request.
//!
//! Commands, flags and fixed values are taken from the command line of `cli`. `value_sources` says which arguments have
//! values that have to be looked up, such as names of sets, and `values` looks them up. `plugin_completion` implements
//! kubectl's protocol for plugins, and clap's engine implements the protocols of the shells. Errors are not reported:
//! the user is typing a command.

mod plugin_completion;
mod shell_quoting;
mod value_sources;
mod values;

use std::ffi::OsString;
use std::sync::Arc;

use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::report;
use shell_quoting::Quoting;
use values::ValueLookup;

/// The first argument of a request by kubectl: the script `kubectl_complete-applyset` passes it, followed by the words
/// of the line.
const KUBECTL_REQUEST: &str = "__complete";
/// The environment variable of a request by a script of `completion`. Its value is the name of the shell. The arguments
/// are `--` and the words of the line, beginning with the name of the program.
const SHELL_VARIABLE: &str = "KUBECTL_APPLYSET_COMPLETE";
const PROGRAM: &str = env!("CARGO_PKG_NAME");

/// Prints the candidates and returns `true`, if a shell or kubectl requests them; otherwise, returns `false`.
/// `arguments` are those of the process, with the name of the program.
pub fn print_candidates_if_requested(arguments: &[OsString]) -> bool {
    let [_, first, words @ ..] = arguments else {
        return false;
    };
    if first == KUBECTL_REQUEST {
        report::text(&plugin_completion::list_candidates(words));
        return true;
    }
    let Some(shell) = std::env::var_os(SHELL_VARIABLE) else {
        return false;
    };
    // If the variable is set for another reason, the command must run: otherwise `apply`, for example, would do nothing
    // and succeed.
    if first != "--" {
        return false;
    }
    if let Some(text) = list_candidates_for_shell(&shell.to_string_lossy(), words) {
        report::text(&text);
    }
    true
}

/// Returns the candidates as this shell reads them; `None` if the shell is not known.
fn list_candidates_for_shell(shell: &str, words: &[OsString]) -> Option<String> {
    let values = ValueLookup::from_line(words.get(1..)?, Quoting::for_shell(shell));
    let mut command = value_sources::command_with_completers(&Arc::new(values), None);
    let directory = std::env::current_dir().ok();
    let mut text = Vec::new();
    Shells::builtins()
        .completer(shell)?
        .write_complete(&mut command, words.to_vec(), directory.as_deref(), &mut text)
        .ok()?;
    String::from_utf8(text).ok()
}

/// Returns the script that a shell loads; the directory `completions` has the same scripts.
pub(super) fn generate_script(shell: Shell) -> String {
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(&shell.to_string()) {
        // Writing into memory does not fail.
        let _ = completer.write_registration(SHELL_VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script);
    }
    String::from_utf8_lossy(&script).into_owned()
}
