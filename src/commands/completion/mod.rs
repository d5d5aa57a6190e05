//! Completion: the scripts that shells load, and the candidates that these scripts request.
//!
//! Commands, flags and fixed values are taken from the command line of `cli`. `source_of_argument` says which
//! arguments have values that have to be looked up, such as names of sets, and `look_up_values` looks them up. kubectl's
//! protocol for plugins is implemented here, and clap's engine implements the protocols of the shells. Errors are not
//! reported: the user is typing a command.

mod look_up_values;
mod safe_names;
mod source_of_argument;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use clap::Command;
use clap_complete::Shell;
use clap_complete::engine::{CompletionCandidate, complete};
use clap_complete::env::Shells;

use crate::model::text::escape_as_one_line;
use crate::report;
use look_up_values::ValueLookup;
use source_of_argument::Directive;

/// The first argument of a request by kubectl: the script `kubectl_complete-applyset` passes it, followed by the words
/// of the line.
const KUBECTL_REQUEST: &str = "__complete";
/// The environment variable of a request by a script of `completion`. Its value is the name of the shell. The arguments
/// are `--` and the words of the line, beginning with the name of the program.
const SHELL_VARIABLE: &str = "KUBECTL_APPLYSET_COMPLETE";
const PROGRAM: &str = env!("CARGO_PKG_NAME");
/// The extensions of manifests, a line each.
const EXTENSIONS: &str = "json\nyaml\nyml\n";

/// Prints the candidates and returns `true`, if a shell or kubectl requests them; otherwise, returns `false`.
/// `arguments` are those of the process, with the name of the program.
pub fn print_candidates_if_requested(arguments: &[OsString]) -> bool {
    let [_, first, words @ ..] = arguments else {
        return false;
    };
    if first == KUBECTL_REQUEST {
        report::text(&list_candidates_for_kubectl(words));
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
    let values = ValueLookup::from_line(words.get(1..)?);
    let mut command = source_of_argument::command_with_completers(&Arc::new(values), None);
    let directory = std::env::current_dir().ok();
    let mut text = Vec::new();
    Shells::builtins()
        .completer(shell)?
        .write_complete(&mut command, words.to_vec(), directory.as_deref(), &mut text)
        .ok()?;
    String::from_utf8(text).ok()
}

/// Returns the candidates by kubectl's protocol for plugins (kubectl, `pkg/cmd/plugin/plugin_completion.go`; cobra,
/// `completions.go`). `words` are those after `kubectl applyset`, the last of them incomplete. The lines are
/// `candidate` or `candidate TAB description`, and in the end `:directive`.
fn list_candidates_for_kubectl(words: &[OsString]) -> String {
    // clap's engine calls the completer of the argument that is being typed. If the argument is a path, its completer
    // puts the directive here.
    let wanted_paths = Arc::new(Mutex::new(None));
    let values = Arc::new(ValueLookup::from_line(words));
    let mut command = source_of_argument::command_with_completers(&values, Some(&wanted_paths));
    let mut line = words.to_vec();
    let typed = line.pop().unwrap_or_default();
    // clap's engine expects a value after each flag that may have one, even if the value has to follow `=`. It
    // would take the next word for that value, so these flags are left out.
    line.retain(|word| !takes_value_only_after_equals(&command, &word.to_string_lossy()));
    line.insert(0, PROGRAM.into());
    line.push(typed.clone());
    let last = line.len() - 1;
    let candidates = complete(&mut command, line, last, None).unwrap_or_default();
    let path_directive = wanted_paths.lock().ok().and_then(|wanted| *wanted);
    let directive = path_directive.unwrap_or(Directive::NoFiles);
    let mut lines = match directive {
        Directive::Extensions => EXTENSIONS.to_owned(),
        Directive::Directories | Directive::Default => String::new(),
        Directive::NoFiles => format_candidates(&candidates, &typed.to_string_lossy()),
    };
    // Writing into memory does not fail.
    let _ = writeln!(lines, ":{}", directive as u8);
    lines
}

/// Returns whether the word is a flag whose value has to follow `=`, so that the next word is not its value.
fn takes_value_only_after_equals(command: &Command, word: &str) -> bool {
    let Some(name) = word.strip_prefix("--") else {
        return false;
    };
    command
        .get_arguments()
        .any(|argument| argument.get_long() == Some(name) && argument.is_require_equals_set())
        || command
            .get_subcommands()
            .any(|command| takes_value_only_after_equals(command, word))
}

/// Writes the candidates, a line each. As in kubectl, flags are candidates only if there are no other ones: either the
/// word begins with a hyphen, or nothing else fits.
fn format_candidates(candidates: &[CompletionCandidate], typed: &str) -> String {
    let others: Vec<_> = candidates
        .iter()
        .filter(|candidate| !candidate.get_value().to_string_lossy().starts_with('-'))
        .collect();
    let shown = if others.is_empty() {
        candidates.iter().collect()
    } else {
        others
    };
    // After `--flag=`, the shell replaces only the text after `=`, but clap's candidates have the flag, too.
    let flag = match typed.split_once('=') {
        Some((flag, _)) if flag.starts_with('-') => typed.get(..=flag.len()).unwrap_or_default(),
        _ => "",
    };
    shown.into_iter().fold(String::new(), |mut lines, candidate| {
        let value = candidate.get_value().to_string_lossy();
        let _ = write!(lines, "{}", value.strip_prefix(flag).unwrap_or(&value));
        let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
        if let Some(help) = help.lines().next() {
            let _ = write!(lines, "\t{}", escape_as_one_line(help));
        }
        lines.push('\n');
        lines
    })
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
