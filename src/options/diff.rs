//! What the flags and the environment of `diff` mean.

use std::io;
use std::path::PathBuf;

use super::style::colors;
use super::{ApplyOptions, TakeOver};
use crate::cli::{Diff, Shared};
use crate::error::Error;
use crate::execute::{DryRun, Writing};
use crate::report::Colors;

/// Options of `diff`, apart from the shared ones.
#[derive(Debug)]
pub struct DiffOptions {
    /// What `apply` would be run with. Its dry run is the server's.
    pub apply: ApplyOptions,
    /// Whether lines of differences are coloured.
    pub colors: Colors,
    /// Where the plan is saved.
    pub out: Option<PathBuf>,
    /// The program that shows differences instead of this one.
    pub external: Option<ExternalDiff>,
}

/// A program that compares two directories, with arguments that follow them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalDiff {
    /// The program.
    pub program: String,
    /// Arguments behind the two directories.
    pub arguments: Vec<String>,
}

impl DiffOptions {
    /// Reads the flags of `diff`.
    pub fn new(diff: &Diff, shared: &Shared) -> Result<Self, Error> {
        let apply = ApplyOptions::planned(&diff.set, &diff.manifests, &diff.planning, shared)?;
        Ok(Self {
            apply: ApplyOptions {
                // Nothing is written, so there is nothing to confirm.
                take_over: match apply.take_over {
                    TakeOver::Asked => TakeOver::Confirmed,
                    take_over => take_over,
                },
                writing: Writing {
                    dry_run: DryRun::Server,
                    ..apply.writing
                },
                ..apply
            },
            colors: colors(shared, &io::stdout()),
            out: diff.out.clone(),
            external: std::env::var("KUBECTL_EXTERNAL_DIFF")
                .ok()
                .and_then(|value| ExternalDiff::parse(&value)),
        })
    }
}

impl ExternalDiff {
    /// Reads `KUBECTL_EXTERNAL_DIFF` as kubectl does (`pkg/cmd/diff`, `getCommand`): cut at
    /// blanks; an argument with other characters than letters, digits, `-` and `=` is dropped.
    fn parse(value: &str) -> Option<Self> {
        let mut words = value.split(' ');
        let program = words.next().filter(|program| !program.is_empty())?;
        let is_kept = |word: &&str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'=';
            !word.is_empty() && word.bytes().all(is_plain)
        };
        Some(Self {
            program: program.to_owned(),
            arguments: words.filter(is_kept).map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_external_program_is_read_as_kubectl_reads_it() {
        let table: [(&str, &[&str]); 5] = [
            ("", &[]),
            ("meld", &["meld"]),
            ("/usr/bin/diff -N -u", &["/usr/bin/diff", "-N", "-u"]),
            (
                "dyff between --omit-header",
                &["dyff", "between", "--omit-header"],
            ),
            ("diff  --color=always x;y /etc", &["diff", "--color=always"]),
        ];
        for (value, words) in table {
            let expected = words.split_first().map(|(program, arguments)| ExternalDiff {
                program: (*program).to_owned(),
                arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            });
            assert_eq!(ExternalDiff::parse(value), expected, "{value:?}");
        }
    }
}
