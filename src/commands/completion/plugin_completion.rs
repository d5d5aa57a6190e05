//! kubectl's protocol for plugins: `kubectl_complete-applyset` is called with the words after `kubectl
//! applyset`, the last of them incomplete, and prints candidates and a directive (kubectl,
//! `pkg/cmd/plugin/plugin_completion.go`; cobra, `completions.go`).

use std::ffi::OsString;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use clap::Command;
use clap_complete::engine::{CompletionCandidate, complete};

use super::PROGRAM;
use super::shell_quoting::Quoting;
use super::value_sources::{self, Directive};
use super::values::ValueLookup;
use crate::model::text::escape_as_one_line;

/// The extensions of manifests, a line each.
const EXTENSIONS: &str = "json\nyaml\nyml\n";

/// Returns the lines that kubectl reads: `candidate` or `candidate TAB description`, and in the end
/// `:directive`.
pub(super) fn list_candidates(words: &[OsString]) -> String {
    // clap's engine calls the completer of the argument that is being typed. If the argument is a path, its completer
    // puts the directive here.
    let wanted_paths = Arc::new(Mutex::new(None));
    let values = Arc::new(ValueLookup::from_line(words, Quoting::Unknown));
    let mut command = value_sources::command_with_completers(&values, Some(&wanted_paths));
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
