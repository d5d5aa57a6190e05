//! Tips for flags and commands that users of kubectl, Helm, kapp and Terraform type.
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
const COMMANDS: [(&[&str], &str); 13] = [
    (
        &["destroy", "uninstall", "remove", "rm", "del"],
        "delete a set and its objects with `kubectl applyset delete SET`",
    ),
    (
        &["plan", "preview"],
        "preview with `kubectl applyset diff SET -f FILE`",
    ),
    (
        &["install", "upgrade", "deploy", "create", "up"],
        "create or update a set with `kubectl applyset apply SET -f FILE`",
    ),
    (
        &["inspect", "get", "describe", "show"],
        "show a set with `kubectl applyset view SET`",
    ),
    (
        &["prune"],
        "prune with `kubectl applyset apply SET -f FILE`, which deletes what is not in the manifests",
    ),
    (
        &["template", "render", "build"],
        "render with `helm template` or `kubectl kustomize`, and pipe it to `kubectl applyset apply SET -f -`",
    ),
    (
        &["rollback", "undo"],
        "if the run had --undo-out FILE, `kubectl applyset apply SET -f FILE`; otherwise, apply the old manifests",
    ),
    (
        &["import"],
        "take live objects into a set with `kubectl applyset adopt SET`",
    ),
    (
        &["rename", "split"],
        "rename or split a set with `kubectl applyset move SET NEW`",
    ),
    (
        &["forget", "detach"],
        "keep the objects with `kubectl applyset disband SET`",
    ),
    (
        &["check", "fsck", "doctor", "validate"],
        "check sets with `kubectl applyset verify`",
    ),
    (
        &["init"],
        "run `kubectl applyset apply SET -f FILE`, which creates the parent of the set",
    ),
    (
        &["wait", "rollout"],
        "wait with `kubectl applyset view SET --wait`, or add --wait to apply",
    ),
];

/// Commands that take manifests and prune.
const APPLYING: &[&str] = &["apply", "diff"];
/// Commands that kubectl has, too.
const OF_KUBECTL: &[&str] = &["apply", "diff", "delete"];
/// Commands that ask for confirmation.
const ASKING: &[&str] = &["adopt", "delete", "disband", "move", "verify"];

const BY_SET: &str = "omit it: the set determines what is pruned, not a list of kinds";
const BY_LABEL: &str = "omit it: a set finds its members by its own label; take objects of \
     `kubectl apply --prune -l` into a set with `kubectl applyset adopt SET -l SELECTOR`";
const GRACEFUL: &str = "omit it: objects are deleted with their own grace period";
const SERVER_SIDE: &str = "omit it: it is for client-side apply";
const JSON: &str = "use -o json and a program such as jq";
const NAMED: &str = "omit it: the set is enough; its members are read from the cluster";
const RENDERED: &str =
    "render first, as in `helm template web ./chart | kubectl applyset apply web -n shop -f -`";
const PREVIEW: &str = "preview with `kubectl applyset diff`, or add --confirm to be asked";
const WHOLE: &str = "omit it: a set is applied as a whole; split it with `kubectl applyset move`";
const ASKS_AT_TERMINAL: &str = "use --confirm with apply; delete and disband ask at a terminal";

/// Flags of other tools, as tuples of the flags, the commands that the tip is for (empty for all commands), and the
/// tip. The first tuple that matches counts. Flags that the command has itself are not looked up here.
const FLAGS: [(&[&str], &[&str], &str); 31] = [
    (
        &["--cascade=orphan", "--cascade=false"],
        &["delete"],
        "keep the objects with `kubectl applyset disband SET`",
    ),
    (
        &["--cascade"],
        OF_KUBECTL,
        "omit it: dependents are deleted in the background",
    ),
    (
        &["--all", "--prune-allowlist", "--prune-whitelist"],
        OF_KUBECTL,
        BY_SET,
    ),
    (&["--selector", "-l", "--field-selector"], OF_KUBECTL, BY_LABEL),
    (
        &["--force", "--force-replace", "--replace"],
        APPLYING,
        "use --recreate=KIND, which deletes and creates again what the server refuses to update",
    ),
    (&["--force"], &["delete"], GRACEFUL),
    (&["--grace-period", "--now"], OF_KUBECTL, GRACEFUL),
    (
        &["--overwrite"],
        OF_KUBECTL,
        "omit it: fields that other managers own are reported as conflicts",
    ),
    (
        &["--openapi-patch", "--save-config", "--record"],
        OF_KUBECTL,
        SERVER_SIDE,
    ),
    (
        &[
            "--template",
            "--allow-missing-template-keys",
            "--show-managed-fields",
            "--no-headers",
        ],
        OF_KUBECTL,
        JSON,
    ),
    (
        &["--subresource"],
        OF_KUBECTL,
        "write a subresource with `kubectl apply --server-side --subresource`",
    ),
    (
        &["--warnings-as-errors"],
        OF_KUBECTL,
        "omit it: warnings of the server do not change the exit code",
    ),
    (&["--interactive", "-i"], OF_KUBECTL, ASKS_AT_TERMINAL),
    (
        &["--raw"],
        OF_KUBECTL,
        "delete other objects with `kubectl delete`",
    ),
    (
        &["--filename", "-f", "--kustomize", "-k", "--recursive", "-R"],
        &["delete", "disband", "view", "history", "verify"],
        NAMED,
    ),
    (
        &["--edit"],
        OF_KUBECTL,
        "change the manifests, and preview with `kubectl applyset diff`",
    ),
    (
        &["--atomic", "--rollback-on-failure", "--cleanup-on-fail"],
        &[],
        "omit it: nothing is rolled back; correct the manifests, and apply again",
    ),
    (
        &["--create-namespace", "--into-ns"],
        &[],
        "add the Namespace to the manifests, or run `kubectl create namespace`",
    ),
    (
        &["--install"],
        &[],
        "omit it: apply creates a set that does not exist",
    ),
    (&["--set", "--values", "--set-string"], &[], RENDERED),
    (
        &["--keep-history"],
        &[],
        "omit it: no releases are stored in the cluster",
    ),
    (&["--diff-changes", "-c"], &[], PREVIEW),
    (
        &["--diff-run"],
        &[],
        "preview with `kubectl applyset diff`, or with --dry-run=server",
    ),
    (
        &["--app", "-a"],
        &[],
        "name the set, as in `kubectl applyset apply web -n shop`",
    ),
    (&["--wait-timeout"], &[], "limit the wait with --wait=DURATION"),
    (&["--timeout"], &["view"], "limit the wait with --wait=DURATION"),
    (
        &["--description", "-m"],
        &["apply"],
        "note it in the history with --message=TEXT",
    ),
    (
        &["--auto-approve"],
        ASKING,
        "use --yes, which answers the question of this command",
    ),
    (
        &["--auto-approve"],
        APPLYING,
        "omit it: apply asks only with --confirm, or before it loses data or takes over a set",
    ),
    (&["--target", "--only"], &[], WHOLE),
    (
        &["--detailed-exitcode"],
        &["diff"],
        "omit it: diff exits with 1 if there are differences; --exit-code-on chooses which ones",
    ),
];

/// Replaces clap's tip for an unknown flag or command by a better one, or removes clap's tip if it suggests to override
/// a safety check. `arguments` are those of the process, with the name of the program.
pub(super) fn replace_clap_tip(
    mut error: clap::Error,
    command: &Command,
    arguments: &[String],
) -> clap::Error {
    let tip = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::InvalidSubcommand, _) => match error.get(ContextKind::InvalidSubcommand) {
            Some(ContextValue::String(name)) => find_tip_for_command_of_other_tool(name),
            _ => None,
        },
        (ErrorKind::UnknownArgument, Some(ContextValue::String(unknown))) => {
            let mut words = arguments.iter().skip(1);
            let subcommand = words.find_map(|word| command.find_subcommand(word));
            let name = subcommand.map_or("", Command::get_name);
            find_tip_for_flag_of_other_tool(unknown, name, arguments)
                .or_else(|| find_missing_equals_tip(command, arguments))
                .or_else(|| find_negative_value_tip(unknown, command, arguments))
                .or_else(|| find_tip_for_misplaced_flag(unknown, command))
                .or_else(|| find_file_without_flag_tip(unknown, name, arguments))
        }
        _ => {
            // clap's list of valid commands has the hidden ones, too.
            error.remove(ContextKind::ValidSubcommand);
            return without_bool_placeholder(error);
        }
    };
    if tip.is_some() || has_suggestion_to_override_safety_check(&error) {
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
fn without_bool_placeholder(mut error: clap::Error) -> clap::Error {
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

fn find_tip_for_command_of_other_tool(name: &str) -> Option<String> {
    let found = COMMANDS.iter().find(|(names, _)| names.contains(&name));
    found.map(|(_, tip)| (*tip).to_owned())
}

/// Finds the tip for a flag of another tool. In [`FLAGS`], a flag may have a value: `--cascade=orphan`.
fn find_tip_for_flag_of_other_tool(unknown: &str, command: &str, arguments: &[String]) -> Option<String> {
    let found = FLAGS.iter().find(|(flags, commands, _)| {
        let is_for_command = commands.is_empty() || commands.contains(&command);
        let mut flags = flags.iter();
        is_for_command
            && flags.any(|flag| *flag == unknown || is_flag_with_value_given(flag, unknown, arguments))
    });
    found.map(|(.., tip)| (*tip).to_owned())
}

/// Returns whether `flag_with_value`, such as `--cascade=orphan`, is among the arguments, with `=` or with a space.
/// `unknown_flag` is the flag that clap complains about, without its value.
fn is_flag_with_value_given(flag_with_value: &str, unknown_flag: &str, arguments: &[String]) -> bool {
    let mut pairs = arguments.windows(2);
    flag_with_value.split_once('=').is_some_and(|(name, value)| {
        name == unknown_flag
            && (arguments.iter().any(|argument| argument == flag_with_value)
                || pairs.any(|pair| pair[0] == name && pair[1] == value))
    })
}

/// Returns whether clap's tip has a flag that overrides a safety check.
fn has_suggestion_to_override_safety_check(error: &clap::Error) -> bool {
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

/// Returns the tip for a negative value, which clap takes for a flag.
fn find_negative_value_tip(unknown: &str, command: &Command, arguments: &[String]) -> Option<String> {
    arguments.windows(2).find_map(|pair| {
        let [flag, value] = pair else { return None };
        let positive = value.strip_prefix('-')?;
        let is_negative = positive.starts_with(|first: char| first.is_ascii_digit());
        let long = flag.strip_prefix("--")?;
        let commands = std::iter::once(command).chain(command.get_subcommands());
        let mut arguments = commands.flat_map(Command::get_arguments);
        let needs_equals =
            arguments.any(|argument| argument.get_long() == Some(long) && argument.is_require_equals_set());
        let sign = if needs_equals { '=' } else { ' ' };
        (is_negative && value.starts_with(unknown))
            .then(|| format!("write {flag}{sign}{positive}: the value cannot be negative"))
    })
}

/// Returns the tip for a flag that only other commands have. A flag that overrides a safety check is not mentioned.
fn find_tip_for_misplaced_flag(unknown: &str, command: &Command) -> Option<String> {
    let long = unknown
        .strip_prefix("--")
        .filter(|_| !FLAGS_THAT_OVERRIDE_CHECKS.contains(&unknown))?;
    let commands = command.get_subcommands().filter(|command| {
        let mut flags = command.get_arguments().filter(|flag| !flag.is_hide_set());
        flags.any(|flag| flag.get_long() == Some(long))
    });
    let names: Vec<&str> = commands.map(Command::get_name).collect();
    let have = if names.len() == 1 { "has" } else { "have" };
    (!names.is_empty()).then(|| format!("omit it: only {} {have} {unknown}", names.join(", ")))
}

/// Returns the tip for a second positional argument of `apply` or `diff`, which take only SET. Usually a shell has
/// replaced the `*` in `-f *.yaml` by several files, or has split a message into words.
fn find_file_without_flag_tip(unknown: &str, command: &str, arguments: &[String]) -> Option<String> {
    let tip = if arguments.iter().any(|argument| argument.starts_with("--message")) {
        "write a text of several words in quotes: --message='TEXT'"
    } else {
        "write -f before each file, or name the directory: -f DIRECTORY"
    };
    let is_file = APPLYING.contains(&command) && !unknown.starts_with('-');
    is_file.then(|| tip.to_owned())
}

#[cfg(test)]
mod tests;
