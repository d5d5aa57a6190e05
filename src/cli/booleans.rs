//! `--flag=true` and `--flag=false`, which kubectl takes for each flag without a value, and scripts
//! write. clap has no such spelling, so it is taken off what was typed before clap reads it.
//!
//! Which flags these are is what the command line says of itself.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use clap::{ArgAction, Command};

/// A value that is neither of the two.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoBoolean {
    /// As it was typed, with its dashes.
    pub(super) flag: String,
    pub(super) value: String,
}

/// The same arguments without such values: a flag that is true stands alone, one that is false is
/// left out, and so is what stood before it of the same flag, since the last one counts.
pub(super) fn without_values(
    arguments: Vec<OsString>,
    command: &Command,
) -> Result<Vec<OsString>, NoBoolean> {
    let names = names(command);
    let mut kept: Vec<OsString> = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            kept.push(argument);
            kept.extend(arguments);
            break;
        }
        let (before, last) = apart(argument, &names);
        kept.extend(before);
        match value(&last, &names)? {
            None => kept.push(last),
            Some((flag, true)) => kept.push(flag.into()),
            Some((flag, false)) => {
                let name = names.get(flag.as_str());
                kept.retain(|other| other.to_str().and_then(|other| names.get(other)) != name);
            }
        }
    }
    Ok(kept)
}

/// Every spelling of a flag without a value, such as `-R`, and the flag that it is of.
type Spellings = BTreeMap<String, String>;

fn names(command: &Command) -> Spellings {
    let mut names = Spellings::new();
    for argument in command.get_arguments() {
        if matches!(argument.get_action(), ArgAction::SetTrue) {
            let name = argument.get_id().to_string();
            let long = argument.get_long().map(|long| format!("--{long}"));
            let short = argument.get_short().map(|short| format!("-{short}"));
            names.extend(long.into_iter().chain(short).map(|flag| (flag, name.clone())));
        }
    }
    for command in command.get_subcommands() {
        names.extend(self::names(command));
    }
    names
}

/// Takes the flags without a value apart that one dash leads: `-Rf` is `-R` and `-f`.
fn apart(argument: OsString, names: &Spellings) -> (Vec<OsString>, OsString) {
    let Some(mut rest) = argument.to_str().and_then(|text| text.strip_prefix('-')) else {
        return (Vec::new(), argument);
    };
    let mut before = Vec::new();
    while let Some(first) = rest.chars().next()
        && let flag = format!("-{first}")
        && names.contains_key(&flag)
        && let behind = &rest[first.len_utf8()..]
        && !behind.is_empty()
        && !behind.starts_with('=')
    {
        before.push(flag.into());
        rest = behind;
    }
    let last = format!("-{rest}").into();
    (before, last)
}

/// The flag and the value that are written in one; Go's `strconv.ParseBool` tells which values
/// there are.
fn value(argument: &OsStr, names: &Spellings) -> Result<Option<(String, bool)>, NoBoolean> {
    let Some((flag, value)) = argument.to_str().and_then(|text| text.split_once('=')) else {
        return Ok(None);
    };
    if !names.contains_key(flag) {
        return Ok(None);
    }
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Some((flag.to_owned(), true))),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Some((flag.to_owned(), false))),
        _ => Err(NoBoolean {
            flag: flag.to_owned(),
            value: value.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    fn read(line: &str) -> Result<String, NoBoolean> {
        let arguments = line.split(' ').map(OsString::from).collect();
        let read = without_values(arguments, &command())?;
        let read: Vec<_> = read.iter().map(|word| word.to_string_lossy()).collect();
        Ok(read.join(" "))
    }

    #[test]
    fn a_flag_may_be_said_to_be_true_or_false() {
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
            // What stands behind these is their own.
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
            assert_eq!(read(typed).as_deref(), Ok(expected), "{typed}");
        }
        let error = read("delete a --yes=maybe").expect_err("no boolean");
        assert_eq!((error.flag.as_str(), error.value.as_str()), ("--yes", "maybe"));
    }

    #[test]
    fn no_spelling_means_a_flag_in_one_command_and_a_value_in_another() {
        let command = command();
        let names = names(&command);
        let commands = std::iter::once(&command).chain(command.get_subcommands());
        for argument in commands.flat_map(Command::get_arguments) {
            let takes_value = !matches!(argument.get_action(), ArgAction::SetTrue);
            let long = argument.get_long().map(|long| format!("--{long}"));
            let short = argument.get_short().map(|short| format!("-{short}"));
            for flag in long.into_iter().chain(short).filter(|_| takes_value) {
                assert!(!names.contains_key(&flag), "{flag}");
            }
        }
    }
}
