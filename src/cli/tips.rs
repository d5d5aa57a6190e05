//! Tips for unknown flags: the substitute for a flag of kubectl, or the spelling of a value.
//!
//! clap suggests the most similar name, which may be a flag that overrides a safety check. Such a
//! flag is never suggested. clap's own tips for known wrong flags (`UnknownArgumentValueParser`)
//! would need a hidden argument for each, and show the placeholder of its value in the message.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Flags that override a safety check, and are never suggested for a typo.
const FLAGS_THAT_ALLOW_MORE: [&str; 6] = [
    "--allow-data-loss",
    "--allow-prune-all",
    "--force-conflicts",
    "--take-ownership",
    "--take-over-set",
    "--yes",
];

const BY_SET: &str = "leave it out: what is pruned is told by the set, not by a list of kinds";
const BY_LABEL: &str = "leave it out: a set finds its members by its own label; objects that `kubectl apply --prune -l` \
     looked after come into a set with `kubectl applyset adopt SET -l SELECTOR`";
const GRACEFUL: &str = "leave it out: objects are deleted as gracefully as they ask for; \
     `kubectl delete` has this flag for a single one";
const SERVER_SIDE: &str = "leave it out: it is for client-side apply, and apply is server-side here";
const JSON: &str = "take -o json, which prints all there is to tell";
const WHOLE_SETS: &str =
    "name the set alone: its members are found by the cluster's record, without manifests";

/// The commands that kubectl has, too.
const COUNTERPARTS: [&str; 3] = ["apply", "diff", "delete"];

/// Flags of kubectl's commands of the same names, and their tips. A command's own flags are known,
/// so they are never looked up here.
const FLAGS_OF_KUBECTL: [(&str, &str); 30] = [
    ("--all", BY_SET),
    ("--prune-allowlist", BY_SET),
    ("--prune-whitelist", BY_SET),
    ("--selector", BY_LABEL),
    ("-l", BY_LABEL),
    ("--field-selector", BY_LABEL),
    (
        "--force",
        "leave it out: nothing is deleted and made anew by itself; `kubectl delete` an object that cannot be changed, and apply again",
    ),
    ("--grace-period", GRACEFUL),
    ("--now", GRACEFUL),
    (
        "--cascade",
        "leave it out: dependents of what is deleted are deleted in the background",
    ),
    (
        "--overwrite",
        "leave it out: fields that others own are told as conflicts, and not overwritten",
    ),
    ("--openapi-patch", SERVER_SIDE),
    ("--save-config", SERVER_SIDE),
    ("--record", SERVER_SIDE),
    ("--template", JSON),
    ("--allow-missing-template-keys", JSON),
    ("--show-managed-fields", JSON),
    ("--no-headers", JSON),
    (
        "--subresource",
        "leave it out: a set consists of whole objects; `kubectl apply --server-side` writes subresources",
    ),
    (
        "--warnings-as-errors",
        "leave it out: warnings of the server are told, and do not change the exit code",
    ),
    ("--interactive", "leave it out: it asks at a terminal in any case"),
    ("-i", "leave it out: it asks at a terminal in any case"),
    ("--raw", "leave it out: only sets are deleted here"),
    ("--filename", WHOLE_SETS),
    ("-f", WHOLE_SETS),
    ("--kustomize", WHOLE_SETS),
    ("-k", WHOLE_SETS),
    ("--recursive", WHOLE_SETS),
    ("-R", WHOLE_SETS),
    (
        "--edit",
        "leave it out: change the manifests, and look at it with `kubectl applyset diff`",
    ),
];

/// Replaces clap's tip for an unknown flag by a better one, or removes a dangerous one. `arguments`
/// are those of the command line.
pub(super) fn with_tip(mut error: clap::Error, command: &Command, arguments: &[String]) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let mut words = arguments.iter().skip(1);
    let command_name = words.find(|word| command.find_subcommand(word).is_some());
    let has_counterpart = command_name.is_some_and(|name| COUNTERPARTS.contains(&name.as_str()));
    let of_kubectl = FLAGS_OF_KUBECTL
        .iter()
        .find(|(flag, _)| has_counterpart && flag == unknown);
    let tip = match of_kubectl {
        Some((_, tip)) => Some((*tip).to_owned()),
        None => separate_value(command, arguments),
    };
    if tip.is_some() || suggests_override(&error) {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Suggested);
        // clap's usage contains its suggestion.
        if let Some(mut command) = command_name
            .and_then(|name| command.find_subcommand(name))
            .cloned()
        {
            let usage = ContextValue::StyledStr(command.render_usage());
            error.insert(ContextKind::Usage, usage);
        }
    }
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn suggests_override(error: &clap::Error) -> bool {
    [ContextKind::SuggestedArg, ContextKind::Suggested]
        .into_iter()
        .filter_map(|kind| error.get(kind))
        .any(|suggestion| {
            let text = match suggestion {
                ContextValue::StyledStrs(texts) => texts.iter().map(ToString::to_string).collect(),
                other => other.to_string(),
            };
            FLAGS_THAT_ALLOW_MORE.iter().any(|flag| text.contains(flag))
        })
}

/// The tip for a value after a space if its flag takes one only after `=`.
fn separate_value(command: &Command, arguments: &[String]) -> Option<String> {
    let commands = || std::iter::once(command).chain(command.get_subcommands());
    arguments.windows(2).find_map(|pair| {
        let [flag, value] = pair else { return None };
        let long = flag.strip_prefix("--")?;
        let argument = commands()
            .flat_map(Command::get_arguments)
            .find(|argument| argument.get_long() == Some(long) && argument.is_require_equals_set())?;
        let possible = argument.get_possible_values();
        let is_value = possible.iter().any(|possible| possible.matches(value, false))
            || possible.is_empty()
                && (value.starts_with(|first: char| first.is_ascii_digit())
                    || matches!(value.as_str(), "true" | "false"));
        is_value.then(|| format!("the value of '{flag}' stands behind '=': {flag}={value}"))
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use crate::cli::Cli;

    fn error(line: &str) -> String {
        let typed = Cli::parse(line.split(' ').map(Into::into).collect());
        let error = typed.map(|_| ()).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
        error.to_string()
    }

    #[test]
    fn flags_of_kubectl_are_explained_and_no_override_is_suggested() {
        for (line, tip) in [
            ("kubectl-applyset apply a -f x --prune --all", "told by the set"),
            ("kubectl-applyset apply a -f x --force", "made anew by itself"),
            (
                "kubectl-applyset apply a -f x --cascade=foreground",
                "in the background",
            ),
            ("kubectl-applyset apply a -f x --selector=a=b", "adopt SET -l"),
            ("kubectl-applyset apply a -f x -l a=b", "adopt SET -l"),
            ("kubectl-applyset diff a -f x -l a=b", "adopt SET -l"),
            ("kubectl-applyset apply a -f x --overwrite", "conflicts"),
            ("kubectl-applyset apply a -f x --template={{}}", "-o json"),
            ("kubectl-applyset apply a -f x --warnings-as-errors", "exit code"),
            ("kubectl-applyset delete a --grace-period=0", "gracefully"),
            ("kubectl-applyset delete a --now", "gracefully"),
            ("kubectl-applyset delete a -f x", "name the set alone"),
            (
                "kubectl-applyset apply a -f x --dry-run server",
                "--dry-run=server",
            ),
            ("kubectl-applyset apply --prune false a -f x", "--prune=false"),
            ("kubectl-applyset apply a -f x --wait 1s", "--wait=1s"),
            ("kubectl-applyset list --all", "--all-namespaces"),
            ("kubectl-applyset list -A --concurency=4", "--concurrency"),
        ] {
            let error = error(line);
            let (_, tips) = error.split_once("tip: ").expect(&error);
            assert!(tips.contains(tip), "{line}: {error}");
            assert!(
                !error.contains("--force-conflicts") && !error.contains("--allow-prune-all"),
                "{error}"
            );
        }
        for line in [
            "kubectl-applyset apply a -f x --force-conflict",
            "kubectl-applyset apply a -f x --allow-prune-al",
            "kubectl-applyset delete a --take-ownership",
            "kubectl-applyset list --yess",
            "kubectl-applyset apply a -f x --take-ownershp",
            "kubectl-applyset apply a -f x b",
        ] {
            let error = error(line);
            assert!(!error.contains("tip: "), "{line}: {error}");
            assert!(error.contains("Usage: kubectl applyset "), "{error}");
            let usage = error.split_once("Usage: ").expect("a usage").1;
            assert!(
                super::FLAGS_THAT_ALLOW_MORE
                    .iter()
                    .all(|flag| !usage.contains(flag)),
                "{error}"
            );
        }
    }

    #[test]
    fn no_tip_is_for_a_flag_that_every_command_has() {
        let command = Cli::command();
        for argument in command.get_arguments() {
            let long = argument.get_long().map(|long| format!("--{long}"));
            let short = argument.get_short().map(|short| format!("-{short}"));
            for flag in long.into_iter().chain(short) {
                assert!(
                    super::FLAGS_OF_KUBECTL.iter().all(|(other, _)| *other != flag),
                    "{flag}"
                );
            }
        }
    }

    #[test]
    fn the_last_of_a_repeated_flag_counts_and_files_add_up() {
        let line = "kubectl-applyset apply a -n one -n two -f x -f y --yes --yes=false --dry-run --dry-run=none \
                    --match-server-version --vmodule=a=1 --profile=none --profile-output x --log-flush-frequency=1s \
                    --context=c --context d";
        let typed = Cli::parse(line.split_whitespace().map(Into::into).collect()).expect(line);
        assert_eq!(typed.shared.namespace.as_deref(), Some("two"));
        assert_eq!(typed.shared.connection.context.as_deref(), Some("d"));
        let crate::cli::Command::Apply(apply) = typed.command else {
            panic!("no apply");
        };
        assert_eq!(apply.manifests.filename, ["x", "y"]);
        assert!(!apply.yes && apply.dry_run.mode == crate::cli::DryRunMode::None);
    }
}
