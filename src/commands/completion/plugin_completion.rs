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
use super::values::Values;
use crate::model::text::one_line;

/// The extensions of manifests.
const EXTENSIONS: &str = "json\nyaml\nyml\n";

/// Returns the lines that kubectl reads: `candidate` or `candidate TAB description`, and in the end
/// `:directive`.
pub(super) fn answer(words: &[OsString]) -> String {
    let asked = Arc::new(Mutex::new(None));
    let values = Arc::new(Values::from_line(words, Quoting::Unknown));
    let mut command = value_sources::with_values(&values, Some(&asked));
    let mut line = words.to_vec();
    let typed = line.pop().unwrap_or_default();
    line.retain(|word| !takes_value_behind_equals_only(&command, &word.to_string_lossy()));
    line.insert(0, PROGRAM.into());
    line.push(typed.clone());
    let last = line.len() - 1;
    let candidates = complete(&mut command, line, last, None).unwrap_or_default();
    let wanted = asked.lock().ok().and_then(|asked| *asked);
    let directive = wanted.unwrap_or(Directive::NoFiles);
    let mut lines = match directive {
        Directive::Extensions => EXTENSIONS.to_owned(),
        Directive::Directories | Directive::Default => String::new(),
        Directive::NoFiles => candidate_lines(&candidates, &typed.to_string_lossy()),
    };
    // Writing into memory does not fail.
    let _ = writeln!(lines, ":{}", directive as u8);
    lines
}

/// Returns whether the word is a flag that no value follows; clap's engine expects one after each flag
/// that may have a value, even if the value has to follow `=`.
fn takes_value_behind_equals_only(command: &Command, word: &str) -> bool {
    let Some(name) = word.strip_prefix("--") else {
        return false;
    };
    command
        .get_arguments()
        .any(|argument| argument.get_long() == Some(name) && argument.is_require_equals_set())
        || command
            .get_subcommands()
            .any(|command| takes_value_behind_equals_only(command, word))
}

/// As in kubectl, flags are candidates if the word begins like one, or if there are no others.
fn candidate_lines(candidates: &[CompletionCandidate], typed: &str) -> String {
    let others: Vec<_> = candidates
        .iter()
        .filter(|candidate| !candidate.get_value().to_string_lossy().starts_with('-'))
        .collect();
    let shown = if others.is_empty() {
        candidates.iter().collect()
    } else {
        others
    };
    // The shell completes only what follows the `=` of a flag.
    let flag = match typed.split_once('=') {
        Some((flag, _)) if flag.starts_with('-') => typed.get(..=flag.len()).unwrap_or_default(),
        _ => "",
    };
    shown.into_iter().fold(String::new(), |mut lines, candidate| {
        let value = candidate.get_value().to_string_lossy();
        let _ = write!(lines, "{}", value.strip_prefix(flag).unwrap_or(&value));
        let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
        if let Some(help) = help.lines().next() {
            let _ = write!(lines, "\t{}", one_line(help));
        }
        lines.push('\n');
        lines
    })
}
