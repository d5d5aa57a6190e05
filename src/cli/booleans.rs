//! `--flag=true` and `--flag=false`, which kubectl accepts for every flag without a value.
//!
//! Arguments are rewritten before clap parses them. clap's own optional values (`num_args = 0..=1`,
//! `require_equals`) would show `[=<true|false>]` in help and messages, and would count
//! `--flag=false` as given for `requires` and `conflicts_with`.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ArgAction, Command};

/// Rewrites `--flag=true` to `--flag`. Removes `--flag=false`, and the same flag before it, since the
/// last one counts.
pub(super) fn without_values(
    arguments: Vec<OsString>,
    command: &mut Command,
) -> Result<Vec<OsString>, clap::Error> {
    let flags = flags(command);
    let mut rewritten: Vec<OsString> = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            rewritten.push(argument);
            rewritten.extend(arguments);
            break;
        }
        for word in split(argument, &flags) {
            let assigned = word.to_str().and_then(|word| word.split_once('='));
            let Some((flag, value)) = assigned.filter(|(flag, _)| flags.contains_key(*flag)) else {
                rewritten.push(word);
                continue;
            };
            match boolean(value) {
                Some(true) => rewritten.push(flag.into()),
                Some(false) => {
                    let name = |word: &OsString| flags.get(word.to_str()?);
                    rewritten.retain(|other| name(other) != flags.get(flag));
                }
                None => {
                    let message = format!("invalid value '{value}' for '{flag}': it is true or false");
                    return Err(command.error(ErrorKind::InvalidValue, message));
                }
            }
        }
    }
    Ok(rewritten)
}

/// Every spelling of a flag without a value, such as `-R`, and the name of the flag.
type Flags = BTreeMap<String, String>;

fn flags(command: &Command) -> Flags {
    let mut flags = Flags::new();
    for argument in command.get_arguments() {
        if matches!(argument.get_action(), ArgAction::SetTrue) {
            let name = argument.get_id().to_string();
            let long = argument.get_long().map(|long| format!("--{long}"));
            let short = argument.get_short().map(|short| format!("-{short}"));
            flags.extend(long.into_iter().chain(short).map(|flag| (flag, name.clone())));
        }
    }
    flags.extend(command.get_subcommands().flat_map(self::flags));
    flags
}

/// Splits short flags that share one dash: `-Rf` is `-R` and `-f`.
fn split(argument: OsString, flags: &Flags) -> Vec<OsString> {
    let Some(mut rest) = argument.to_str().and_then(|text| text.strip_prefix('-')) else {
        return vec![argument];
    };
    let mut words = Vec::new();
    while let Some(first) = rest.chars().next()
        && let flag = format!("-{first}")
        && flags.contains_key(&flag)
        && let others = &rest[first.len_utf8()..]
        && !others.is_empty()
        && !others.starts_with('=')
    {
        words.push(flag.into());
        rest = others;
    }
    words.push(format!("-{rest}").into());
    words
}

/// Parses a boolean as Go's `strconv.ParseBool` does.
fn boolean(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    fn read(line: &str) -> Result<String, clap::Error> {
        let arguments = line.split(' ').map(OsString::from).collect();
        let read = without_values(arguments, &mut Cli::command())?;
        let read: Vec<_> = read.iter().map(|word| word.to_string_lossy()).collect();
        Ok(read.join(" "))
    }

    #[test]
    fn flags_may_be_true_or_false() {
        for (typed, expected) in [
            ("apply a -R=true --yes=1", "apply a -R --yes"),
            ("apply a --force-conflicts=false -f x", "apply a -f x"),
            ("--quiet=true list -A=True", "--quiet list -A"),
            ("list --all-namespaces=f", "list"),
            ("apply a -Ry=true", "apply a -R -y"),
            ("apply a -Ry=false", "apply a -R"),
            ("apply a -R --recursive=false", "apply a"),
            ("apply a -R=false --recursive", "apply a --recursive"),
            ("apply a -Rfx -R=false", "apply a -fx"),
            // These are not flags without a value.
            (
                "apply -nR=true --namespace=false",
                "apply -nR=true --namespace=false",
            ),
            (
                "apply --prune=false --wait=true -v=2",
                "apply --prune=false --wait=true -v=2",
            ),
            ("apply -f - -- --yes=false", "apply -f - -- --yes=false"),
            ("apply --no-such-flag=true", "apply --no-such-flag=true"),
        ] {
            assert_eq!(read(typed).expect(typed), expected);
        }
        let error = read("delete a --yes=maybe")
            .expect_err("not a boolean")
            .to_string();
        assert!(
            error.starts_with("error: invalid value 'maybe' for '--yes': it is true or false\n"),
            "{error}"
        );
    }

    #[test]
    fn no_flag_takes_a_value_in_another_command() {
        let command = Cli::command();
        let flags = flags(&command);
        let commands = std::iter::once(&command).chain(command.get_subcommands());
        for argument in commands.flat_map(Command::get_arguments) {
            let takes_value = !matches!(argument.get_action(), ArgAction::SetTrue);
            let long = argument.get_long().map(|long| format!("--{long}"));
            let short = argument.get_short().map(|short| format!("-{short}"));
            for flag in long.into_iter().chain(short).filter(|_| takes_value) {
                assert!(!flags.contains_key(&flag), "{flag}");
            }
        }
    }
}
