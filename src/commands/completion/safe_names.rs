//! Candidates made of names that others have chosen, from a kubeconfig or a cluster.
//!
//! Shells read candidates line by line and insert one into the command line, some shells without quoting it. A name
//! with a line break must not add a candidate, and a name such as `$(command)` must not run a command. So only names
//! that need no quotes are offered; the user quotes any other name.

use clap_complete::engine::CompletionCandidate;

use crate::model::text::{PLAIN_IN_SHELLS, escape_as_one_line};

/// Returns the candidate for a name; `None` if a shell may misread it.
pub(super) fn to_candidate(name: &str) -> Option<CompletionCandidate> {
    is_plain(name).then(|| CompletionCandidate::new(name))
}

/// Returns whether the name has no meaning in any shell, and needs no quotes.
fn is_plain(name: &str) -> bool {
    // In every shell, a control character would end a candidate or control the terminal. In PowerShell, a comma makes a
    // list, and `@` at the beginning of a word passes a variable.
    !name.is_empty()
        && escape_as_one_line(name) == name
        && !name.contains(',')
        && !name.starts_with('@')
        && name
            .chars()
            .all(|character| character.is_alphanumeric() || PLAIN_IN_SHELLS.contains(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_candidate_and_no_command() {
        for name in [
            "a\nb",
            "a\n:0",
            "a\u{b}b",
            "a\tb",
            "\u{1b}[31m",
            "a\u{202e}",
            "$(id)",
            "a b",
            "a;b",
            "a,b",
            "@a",
            "",
        ] {
            assert!(!is_plain(name), "{name:?}");
        }
        for name in ["arn:aws:eks:eu-west-1:1234:cluster/a@b", "web", "größe"] {
            assert!(is_plain(name), "{name}");
        }
    }
}
