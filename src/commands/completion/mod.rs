//! Completion: the scripts that shells load, and the candidates that they request.
//!
//! Commands, flags and fixed values come from the command line of `cli`, so nothing is repeated; `value_sources`
//! adds the sources of other values, and `values` reads these. `kubectl` implements kubectl's protocol
//! for plugins, clap's engine those of the shells. Nothing is written here, and errors are not
//! reported.

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
use values::Values;

/// The argument of kubectl's completion: `kubectl_complete-applyset` passes its words after it.
const KUBECTL_ASKS: &str = "__complete";
/// The variable of the scripts of `completion`: it holds the shell's name, and the words of the line,
/// beginning with the name of the program, follow `--`.
const SHELL_ASKS: &str = "KUBECTL_APPLYSET_COMPLETE";
const PROGRAM: &str = env!("CARGO_PKG_NAME");

/// Prints candidates if a shell requests them; `arguments` are those of the process, its name included.
/// Returns whether this was the case.
pub fn answer(arguments: &[OsString]) -> bool {
    let [_, first, words @ ..] = arguments else {
        return false;
    };
    if first == KUBECTL_ASKS {
        report::text(&plugin_completion::answer(words));
        return true;
    }
    let Some(shell) = std::env::var_os(SHELL_ASKS) else {
        return false;
    };
    // The variable alone must not turn a run into one that does nothing and succeeds.
    if first != "--" {
        return false;
    }
    if let Some(text) = shell_answer(&shell.to_string_lossy(), words) {
        report::text(&text);
    }
    true
}

fn shell_answer(shell: &str, words: &[OsString]) -> Option<String> {
    let values = Values::from_line(words.get(1..)?, Quoting::for_shell(shell));
    let mut command = value_sources::with_values(&Arc::new(values), None);
    let directory = std::env::current_dir().ok();
    let mut text = Vec::new();
    Shells::builtins()
        .completer(shell)?
        .write_complete(&mut command, words.to_vec(), directory.as_deref(), &mut text)
        .ok()?;
    String::from_utf8(text).ok()
}

/// Returns the script that a shell loads, as in `completions/`.
pub(super) fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(&shell.to_string()) {
        // Writing into memory does not fail.
        let _ = completer.write_registration(SHELL_ASKS, PROGRAM, PROGRAM, PROGRAM, &mut script);
    }
    String::from_utf8_lossy(&script).into_owned()
}
