//! Spellings that kubectl accepts and clap does not: `--flag=false` for every flag without a value,
//! and `-v 6`.

use std::ffi::OsString;

use clap::{ArgAction, Command};

use crate::model::text::parse_boolean;

/// Lets every boolean flag accept a value after `=`, as kubectl does. If a flag is repeated, the last one counts.
pub(super) fn accept_boolean_values(command: Command) -> Command {
    command
        .mut_args(|argument| match argument.get_action() {
            ArgAction::SetTrue => argument
                .action(ArgAction::Set)
                .num_args(0..=1)
                .require_equals(true)
                .default_value("false")
                .default_missing_value("true")
                .value_parser(parse_boolean)
                .value_name("BOOL"),
            _ => argument,
        })
        .mut_subcommands(accept_boolean_values)
}

/// Rewrites `-v 6` and `-v6` to `-v=6`. In `-v web`, the word is not a number, so it is left as the next argument.
pub(super) fn rewrite_verbosity(arguments: Vec<OsString>) -> Vec<OsString> {
    let mut rewritten: Vec<OsString> = Vec::new();
    // True if the last argument was `-v` without a level.
    let mut follows_flag = false;
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let text = argument.to_str().unwrap_or_default();
        if text == "--" {
            rewritten.push(argument);
            rewritten.extend(arguments);
            break;
        }
        match rewritten.last_mut() {
            Some(flag) if follows_flag && is_number(text) => {
                flag.push("=");
                flag.push(text);
                follows_flag = false;
                continue;
            }
            _ => follows_flag = ["-v", "--v", "--verbose"].contains(&text),
        }
        match text.strip_prefix("-v").filter(|level| is_number(level)) {
            Some(level) => rewritten.push(format!("-v={level}").into()),
            None => rewritten.push(argument),
        }
    }
    rewritten
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, FromArgMatches as _};

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::model::write_settings::Conflicts;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::parse(line.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn flags_may_be_true_or_false() {
        for (flags, recursive, yes, force) in [
            ("-R=true --yes=1", true, true, false),
            ("--force-conflicts=false", false, false, false),
            ("-Ry=true", true, true, false),
            ("-Ry=false", true, false, false),
            ("-R --recursive=false", false, false, false),
            ("-R=false --recursive", true, false, false),
            ("-Rfx -R=F", false, false, false),
            ("--yes --yes=false --force-conflicts=T", false, false, true),
        ] {
            let typed = parse(&format!("applyset apply a -f y {flags}")).expect(flags);
            let Command::Apply(apply) = typed.command else {
                panic!("{flags}");
            };
            let values = (
                apply.manifests.recursive,
                apply.yes,
                Conflicts::combine_repeated_flag(&apply.planning.force_conflicts) == Conflicts::Forced,
            );
            assert_eq!(values, (recursive, yes, force), "{flags}");
        }
        let typed = parse("applyset --quiet=true list -A=True").expect("a list");
        assert!(typed.shared.quiet && matches!(typed.command, Command::List(list) if list.all_namespaces));
        let error = parse("applyset delete a --yes=maybe")
            .map(|_| ())
            .expect_err("not a boolean");
        assert!(error.to_string().contains("must be true or false"), "{error}");
        assert!(parse("applyset verify a --yes").is_err(), "--yes needs --fix");
        assert!(parse("applyset verify a --yes --fix").is_ok());
        assert!(parse("applyset apply a -f x --confirm --yes").is_err());
    }

    #[test]
    fn levels_are_written_as_for_kubectl() {
        for (line, set, verbosity) in [
            ("view -v web", "web", 1),
            ("view -v 6 web", "web", 6),
            ("view web -v 6", "web", 6),
            ("view -v6 web", "web", 6),
            ("view -v=6 web", "web", 6),
            ("view --verbose web", "web", 1),
            ("view --verbose 3 web", "web", 3),
            ("view --v=2 web", "web", 2),
            ("view --v 2 web", "web", 2),
            ("view -vv web", "web", 2),
            ("view -v -v 2 web", "web", 3),
            ("-v 6 view web", "web", 6),
            ("view -v -- 6", "6", 1),
            ("view -v web7", "web7", 1),
        ] {
            let typed = parse(&format!("applyset {line}")).expect(line);
            let Command::View(view) = &typed.command else {
                panic!("{line}");
            };
            let values = (view.set.set.as_deref(), typed.shared.verbosity());
            assert_eq!(values, (Some(set), verbosity), "{line}");
        }
    }

    #[test]
    fn the_command_line_is_valid_without_these_spellings() {
        let typed = Cli::command()
            .try_get_matches_from(["applyset", "list", "-A"])
            .and_then(|matches| Cli::from_arg_matches(&matches));
        assert!(typed.is_ok_and(|typed| !typed.shared.quiet));
        Cli::command().debug_assert();
        accept_boolean_values(Cli::command()).debug_assert();
    }
}
