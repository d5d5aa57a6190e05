//! Candidates made of names that others have chosen, from a kubeconfig or a cluster.
//!
//! Shells read candidates line by line and insert one into the command line, some shells without quoting it. A name
//! with a line break must not add a candidate, and a name such as `$(command)` must not run a command.

use clap_complete::engine::CompletionCandidate;

use crate::model::text::{PLAIN_IN_SHELLS, escape_as_one_line};

/// Who quotes a candidate for the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    /// The shell inserts a candidate as it is, so the candidate has to be quoted here (bash).
    ByCandidate,
    /// The shell quotes the candidate (zsh, fish).
    ByShell,
    /// It is not known who quotes the candidate: kubectl passes the candidates on to some shell, or the shell inserts
    /// them as they are and does not quote as bash does (PowerShell, Elvish). Names that need quotes are left out.
    Unknown,
}

impl Quoting {
    /// Returns the quoting for the shell with this name.
    pub(super) fn for_shell(name: &str) -> Self {
        match name {
            "zsh" | "fish" => Self::ByShell,
            "bash" => Self::ByCandidate,
            _ => Self::Unknown,
        }
    }

    /// Returns the candidate for a name; `None` if it cannot be written safely.
    pub(super) fn to_candidate(self, name: &str) -> Option<CompletionCandidate> {
        self.quote(name).map(CompletionCandidate::new)
    }

    fn quote(self, name: &str) -> Option<String> {
        // In every shell, a control character would end a candidate or control the terminal.
        if name.is_empty() || escape_as_one_line(name) != name {
            return None;
        }
        match self {
            // In PowerShell, a comma makes a list, and `@` at the beginning of a word passes a variable.
            Self::Unknown if name.contains(',') || name.starts_with('@') => None,
            _ if name.chars().all(is_plain) => Some(name.to_owned()),
            Self::ByShell => Some(name.to_owned()),
            Self::ByCandidate => Some(name.chars().fold(String::new(), |mut word, character| {
                if !is_plain(character) {
                    word.push('\\');
                }
                word.push(character);
                word
            })),
            Self::Unknown => None,
        }
    }
}

/// Returns whether the character has no meaning in any shell within a word, and needs no quotes.
fn is_plain(character: char) -> bool {
    character.is_alphanumeric() || PLAIN_IN_SHELLS.contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_candidate_and_no_command() {
        let quote = |quoting: Quoting, name: &str| quoting.quote(name);
        for quoting in [Quoting::ByCandidate, Quoting::ByShell, Quoting::Unknown] {
            for name in ["", "a\nb", "a\n:0", "a\u{b}b", "a\tb", "\u{1b}[31m", "a\u{202e}"] {
                assert_eq!(quote(quoting, name), None, "{name:?}");
            }
            let arn = "arn:aws:eks:eu-west-1:1234:cluster/a@b";
            assert_eq!(quote(quoting, arn).as_deref(), Some(arn));
        }
        let name = "$(id) `id`;x";
        assert_eq!(
            quote(Quoting::ByCandidate, name).as_deref(),
            Some("\\$\\(id\\)\\ \\`id\\`\\;x")
        );
        assert_eq!(quote(Quoting::ByShell, name).as_deref(), Some(name));
        assert_eq!(quote(Quoting::Unknown, name), None);
        assert_eq!(
            ["bash", "zsh", "powershell", "elvish"].map(Quoting::for_shell),
            [
                Quoting::ByCandidate,
                Quoting::ByShell,
                Quoting::Unknown,
                Quoting::Unknown
            ]
        );
    }
}
