//! Candidates made of foreign names, from a kubeconfig or a cluster.
//!
//! Shells read candidates line by line and put them on the command line, some of them as they
//! are. A name must neither add a candidate nor become a command there.

use clap_complete::engine::CompletionCandidate;

use crate::model::text::{PLAIN_IN_SHELLS, one_line};

/// The quoting of the asking shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    /// It inserts it without quoting (bash).
    ByCandidate,
    /// It quotes it (zsh, fish).
    ByShell,
    /// The shell is unknown: kubectl passes the candidates on.
    Unknown,
}

impl Quoting {
    /// The quoting of the shell with this name.
    pub(super) fn for_shell(name: &str) -> Self {
        match name {
            "zsh" | "fish" => Self::ByShell,
            _ => Self::ByCandidate,
        }
    }

    /// Returns the candidate for a name; `None` if it cannot be written safely.
    pub(super) fn candidate(self, name: &str) -> Option<CompletionCandidate> {
        self.word(name).map(CompletionCandidate::new)
    }

    fn word(self, name: &str) -> Option<String> {
        // In every shell a control character ends a candidate, or controls the terminal.
        if name.is_empty() || one_line(name) != name {
            return None;
        }
        match self {
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

/// Returns whether no shell gives the character a meaning within a word.
fn is_plain(character: char) -> bool {
    character.is_alphanumeric() || PLAIN_IN_SHELLS.contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_candidate_and_no_command() {
        let word = |quoting: Quoting, name: &str| quoting.word(name);
        for quoting in [Quoting::ByCandidate, Quoting::ByShell, Quoting::Unknown] {
            for name in ["", "a\nb", "a\n:0", "a\u{b}b", "a\tb", "\u{1b}[31m", "a\u{202e}"] {
                assert_eq!(word(quoting, name), None, "{name:?}");
            }
            let arn = "arn:aws:eks:eu-west-1:1234:cluster/a@b";
            assert_eq!(word(quoting, arn).as_deref(), Some(arn));
        }
        let name = "$(id) `id`;x";
        assert_eq!(
            word(Quoting::ByCandidate, name).as_deref(),
            Some("\\$\\(id\\)\\ \\`id\\`\\;x")
        );
        assert_eq!(word(Quoting::ByShell, name).as_deref(), Some(name));
        assert_eq!(word(Quoting::Unknown, name), None);
    }
}
