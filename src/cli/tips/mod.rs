//! Tips for the flags and commands of kubectl, Helm and Terraform that users type most.
//!
//! clap suggests the flag with the most similar name. Here, a flag that overrides a safety check is never suggested:
//! the user may have meant another one.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Command};

/// Flags that override a safety check.
const FLAGS_THAT_OVERRIDE_CHECKS: [&str; 7] = [
    "--allow-data-loss",
    "--allow-prune-all",
    "--force-conflicts",
    "--recreate",
    "--take-ownership",
    "--take-over-set",
    "--yes",
];

/// Commands of other tools, each with the tip what to run instead.
const COMMANDS: [(&[&str], &str); 7] = [
    (
        &["destroy", "uninstall"],
        "delete a set and its objects with `kubectl applyset delete SET`",
    ),
    (&["plan"], "preview with `kubectl applyset diff SET -f FILE`"),
    (
        &["install", "upgrade", "create"],
        "create or update a set with `kubectl applyset apply SET -f FILE`",
    ),
    (
        &["get", "describe"],
        "show a set with `kubectl applyset view SET`",
    ),
    (
        &["template"],
        "render with `helm template`, and pipe it to `kubectl applyset apply SET -f -`",
    ),
    (
        &["rollback", "undo"],
        "if the run had --undo-out FILE, `kubectl applyset apply SET -f FILE`; otherwise, apply the old manifests",
    ),
    (
        &["wait", "rollout"],
        "wait with `kubectl applyset view SET --wait`, or add --wait to apply",
    ),
];

/// Commands that take manifests and prune.
const APPLY_COMMANDS: &[&str] = &["apply", "diff"];
/// Commands that kubectl has, too.
const KUBECTL_COMMANDS: &[&str] = &["apply", "diff", "delete"];

/// Flags of other tools, as tuples of the flags, the commands that the tip is for (empty for all commands), and the
/// tip. Flags that the command has itself are not looked up here.
const FLAGS: [(&[&str], &[&str], &str); 11] = [
    (
        &["--cascade"],
        KUBECTL_COMMANDS,
        "omit it: dependents are deleted in the background; `kubectl applyset disband SET` keeps the objects",
    ),
    (
        &["--all", "--prune-allowlist"],
        KUBECTL_COMMANDS,
        "omit it: the set determines what is pruned, not a list of kinds",
    ),
    (
        &["--selector", "-l"],
        KUBECTL_COMMANDS,
        "omit it: a set finds its members by its own label; take objects of `kubectl apply --prune -l` into a set \
         with `kubectl applyset adopt SET -l SELECTOR`",
    ),
    (
        &["--force"],
        APPLY_COMMANDS,
        "use --recreate=KIND, which deletes and creates again what the server refuses to update",
    ),
    (
        &["--force", "--grace-period", "--now"],
        &["delete"],
        "omit it: objects are deleted with their own grace period",
    ),
    (
        &["--filename", "-f", "--kustomize", "-k"],
        &["delete", "disband", "view", "history", "verify"],
        "omit it: the set is enough; its members are read from the cluster",
    ),
    (
        &["--atomic", "--rollback-on-failure"],
        &[],
        "use --wait, which prints why the run failed, and --undo-out FILE; to undo the run, `apply SET -f FILE`",
    ),
    (
        &["--create-namespace"],
        &[],
        "add the Namespace to the manifests, or run `kubectl create namespace`",
    ),
    (
        &["--set", "--values"],
        &[],
        "render first, as in `helm template web ./chart | kubectl applyset apply web -n shop -f -`",
    ),
    (
        &["--auto-approve"],
        &["adopt", "delete", "disband", "move", "verify"],
        "use --yes, which answers the question of this command",
    ),
    (
        &["--auto-approve"],
        APPLY_COMMANDS,
        "omit it: apply asks only with --confirm, or before it loses data, prunes every member or takes over a set",
    ),
];

/// Replaces clap's tip for an unknown flag or command by a better one, or removes clap's tip if it suggests to override
/// a safety check. `arguments` are the arguments of the process, with the name of the program.
pub(super) fn replace_clap_tip(
    mut error: clap::Error,
    command: &Command,
    arguments: &[String],
) -> clap::Error {
    let tip = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::InvalidSubcommand, _) => match error.get(ContextKind::InvalidSubcommand) {
            Some(ContextValue::String(name)) => find_foreign_command_tip(name),
            _ => None,
        },
        (ErrorKind::UnknownArgument, Some(ContextValue::String(unknown))) => {
            let name = arguments
                .iter()
                .skip(1)
                .find_map(|word| command.find_subcommand(word))
                .map_or("", Command::get_name);
            find_foreign_flag_tip(unknown, name)
                .or_else(|| find_missing_equals_tip(command, arguments))
                .or_else(|| find_file_tip(unknown, name, arguments))
        }
        _ => {
            // clap's list of valid commands has the hidden ones, too.
            error.remove(ContextKind::ValidSubcommand);
            return remove_bool_placeholder(error);
        }
    };
    if tip.is_some() || suggests_unsafe_flag(&error) {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::Suggested);
    }
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Removes `[=<BOOL>]` from the flags in an error: these flags have a value only for kubectl's `--flag=false`.
fn remove_bool_placeholder(mut error: clap::Error) -> clap::Error {
    let plain = |text: &str| text.replace("[=<BOOL>]", "");
    for kind in [ContextKind::InvalidArg, ContextKind::PriorArg] {
        let value = match error.get(kind) {
            Some(ContextValue::String(text)) => ContextValue::String(plain(text)),
            Some(ContextValue::Strings(texts)) => {
                ContextValue::Strings(texts.iter().map(|text| plain(text)).collect())
            }
            _ => continue,
        };
        error.insert(kind, value);
    }
    error
}

fn find_foreign_command_tip(name: &str) -> Option<String> {
    COMMANDS
        .iter()
        .find(|(names, _)| names.contains(&name))
        .map(|(_, tip)| (*tip).to_owned())
}

fn find_foreign_flag_tip(unknown: &str, command: &str) -> Option<String> {
    FLAGS
        .iter()
        .find(|(flags, commands, _)| {
            let is_for_command = commands.is_empty() || commands.contains(&command);
            is_for_command && flags.contains(&unknown)
        })
        .map(|(.., tip)| (*tip).to_owned())
}

/// Returns whether clap's tip has a flag that overrides a safety check.
fn suggests_unsafe_flag(error: &clap::Error) -> bool {
    [ContextKind::SuggestedArg, ContextKind::Suggested]
        .into_iter()
        .filter_map(|kind| error.get(kind))
        .any(|suggestion| {
            let text = match suggestion {
                ContextValue::StyledStrs(texts) => texts.iter().map(ToString::to_string).collect(),
                other => other.to_string(),
            };
            FLAGS_THAT_OVERRIDE_CHECKS.iter().any(|flag| text.contains(flag))
        })
}

/// Returns the tip for a value after a space, if its flag takes a value only after `=`.
fn find_missing_equals_tip(command: &Command, arguments: &[String]) -> Option<String> {
    arguments.windows(2).find_map(|pair| {
        let [flag, value] = pair else { return None };
        let long = flag.strip_prefix("--")?;
        let argument = std::iter::once(command)
            .chain(command.get_subcommands())
            .flat_map(Command::get_arguments)
            .find(|argument| argument.get_long() == Some(long) && argument.is_require_equals_set())?;
        let possible = argument.get_possible_values();
        let is_number_or_boolean = value.starts_with(|first: char| first.is_ascii_digit())
            || ["true", "false"].contains(&value.as_str());
        // A repeatable flag takes names. A word with a slash or a dot is more likely a file that lacks its `-f`.
        let takes_names = matches!(argument.get_action(), ArgAction::Append);
        let is_name = takes_names && !value.starts_with('-') && !value.contains(['/', '.']);
        let is_value = if possible.is_empty() {
            is_number_or_boolean || is_name
        } else {
            possible.iter().any(|possible| possible.matches(value, false))
        };
        is_value.then(|| format!("write the value of {flag} after '=': {flag}={value}"))
    })
}

/// Returns the tip for a second positional argument of `apply` or `diff`, which take only SET. Usually a shell has
/// replaced the `*` in `-f *.yaml` by several files, or has split a message into words.
fn find_file_tip(unknown: &str, command: &str, arguments: &[String]) -> Option<String> {
    let tip = if arguments.iter().any(|argument| argument.starts_with("--message")) {
        "write a text of several words in quotes: --message='TEXT'"
    } else {
        "write -f before each file, or name the directory: -f DIRECTORY"
    };
    let is_file = APPLY_COMMANDS.contains(&command) && !unknown.starts_with('-');
    is_file.then(|| tip.to_owned())
}

#[cfg(test)]
mod tests;
