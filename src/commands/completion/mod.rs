//! Completion: the scripts that shells load, and the answers to what they ask then.
//!
//! Commands, flags and fixed values come from the command line of `cli`, so nothing is said
//! twice; `tree` adds where other values come from, and `values` reads those. `kubectl`
//! speaks kubectl's protocol for plugins, clap's engine those of the shells themselves.
//! Nothing is written here, and errors are not reported.

mod candidate;
mod kubectl;
mod tree;
mod values;

use std::ffi::OsString;
use std::sync::Arc;

use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::report;
use candidate::Quoting;
use tree::PathsBy;
use values::Values;

/// The question of kubectl's completion: `kubectl_complete-applyset` passes its words behind this.
const KUBECTL_ASKS: &str = "__complete";
/// The question of the scripts of `completion`: the shell's name is in this variable, and the words
/// of the line, the name of the program first, stand behind `--`.
const SHELL_ASKS: &str = "KUBECTL_APPLYSET_COMPLETE";
const PROGRAM: &str = env!("CARGO_PKG_NAME");

/// Answers if it is a shell that asks how a line may continue; `arguments` are those of the
/// process, its name included. Returns whether this was the case.
pub fn answer(arguments: &[OsString]) -> bool {
    let [_, first, words @ ..] = arguments else {
        return false;
    };
    if first == KUBECTL_ASKS {
        report::text(&kubectl::answer(words));
        return true;
    }
    let Some(shell) = std::env::var_os(SHELL_ASKS) else {
        return false;
    };
    // The variable alone must not turn a run into one that does nothing and ends well.
    if first != "--" {
        return false;
    }
    if let Some(text) = shell_answer(&shell.to_string_lossy(), words) {
        report::text(&text);
    }
    true
}

fn shell_answer(shell: &str, words: &[OsString]) -> Option<String> {
    let values = Values::of_line(words.get(1..)?, Quoting::of_shell(shell));
    let mut command = tree::with_values(&Arc::new(values), &PathsBy::Engine);
    let directory = std::env::current_dir().ok();
    let mut text = Vec::new();
    Shells::builtins()
        .completer(shell)?
        .write_complete(&mut command, words.to_vec(), directory.as_deref(), &mut text)
        .ok()?;
    String::from_utf8(text).ok()
}

/// The script that a shell loads, as `completions/` holds it.
pub(super) fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(&shell.to_string()) {
        // Writing into memory does not fail.
        let _ = completer.write_registration(SHELL_ASKS, PROGRAM, PROGRAM, PROGRAM, &mut script);
    }
    String::from_utf8_lossy(&script).into_owned()
}
