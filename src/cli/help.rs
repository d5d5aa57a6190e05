//! The help pages: a front page, one for each command, and the flags about the connection.
//!
//! clap's own layout is not used: it has the flags before the examples, takes more than one line for each flag, and
//! shows all shared flags on the page of every command.

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory as _};

use super::Cli;

pub(super) const ARGUMENTS: &str = "Arguments";
pub(super) const OBJECTS: &str = "Objects";
pub(super) const MANIFESTS: &str = "Manifests";
pub(super) const SUBJECTS: &str = "Subjects";
pub(super) const PRUNING: &str = "Pruning";
pub(super) const OWNERSHIP: &str = "Ownership";
pub(super) const WAITING: &str = "Waiting";
pub(super) const RUNNING: &str = "Running";
pub(super) const OUTPUT: &str = "Output";
pub(super) const CONNECTION: &str = "Connection";

/// The groups of flags, in the order in which a page shows them.
const SECTIONS: [&str; 10] = [
    ARGUMENTS, OBJECTS, MANIFESTS, SUBJECTS, PRUNING, OWNERSHIP, WAITING, RUNNING, OUTPUT, CONNECTION,
];

/// The groups of commands on the front page.
const COMMANDS: [(&str, &[&str]); 4] = [
    ("Start", &["diff", "apply", "delete"]),
    ("Inspect", &["list", "view", "history", "export", "verify"]),
    ("Change membership", &["adopt", "move", "disband"]),
    ("Other", &["rbac", "completion", "version"]),
];

/// Commands with the shared flags that have no effect on them, so that their pages do not show these flags.
const UNUSED_SHARED_FLAGS: [(&str, &[&str]); 5] = [
    ("list", &["verbose", "no_progress"]),
    ("view", &["no_progress"]),
    ("history", &["verbose", "no_progress"]),
    ("export", &["verbose", "no_progress"]),
    ("rbac", &["verbose", "no_progress"]),
];

/// Commands that do not connect to a cluster. No shared flag has an effect on them.
const OFFLINE: [&str; 3] = ["completion", "version", "__manual"];

/// The usage of each command. clap's own usage would name all flags of a required group, and would not say that one of
/// them is enough.
const USAGES: [(&str, &str); 15] = [
    (
        "apply",
        "kubectl applyset apply SET -n NAMESPACE (-f FILE | -k DIR) [flags]\n       \
         kubectl applyset apply --plan FILE [flags]",
    ),
    (
        "diff",
        "kubectl applyset diff SET -n NAMESPACE (-f FILE | -k DIR) [flags]\n       \
         kubectl applyset diff --plan FILE [flags]",
    ),
    ("delete", "kubectl applyset delete SET -n NAMESPACE [flags]"),
    ("list", "kubectl applyset list [-n NAMESPACE | -A] [flags]"),
    ("view", "kubectl applyset view SET -n NAMESPACE [flags]"),
    ("history", "kubectl applyset history SET -n NAMESPACE [flags]"),
    ("export", "kubectl applyset export SET -n NAMESPACE [flags]"),
    (
        "verify",
        "kubectl applyset verify [SET] [-n NAMESPACE | -A] [flags]",
    ),
    (
        "adopt",
        "kubectl applyset adopt SET -n NAMESPACE (-f FILE | -k DIR) [flags]\n       \
         kubectl applyset adopt SET -n NAMESPACE -l SELECTOR [-A] [flags]\n       \
         kubectl applyset adopt SET -n NAMESPACE --from TOOL/NAME [flags]",
    ),
    (
        "move",
        "kubectl applyset move SET NEW -n NAMESPACE [-l LABELS | -f FILE] [flags]",
    ),
    ("disband", "kubectl applyset disband SET -n NAMESPACE [flags]"),
    (
        "rbac",
        "kubectl applyset rbac SET -n NAMESPACE (-f FILE | -k DIR) [flags]",
    ),
    ("completion", "kubectl applyset completion SHELL"),
    ("version", "kubectl applyset version"),
    ("__manual", "kubectl applyset __manual DIRECTORY"),
];

/// The usage of the program, and of commands that have none of their own.
const USAGE: &str = "kubectl applyset COMMAND [flags]";

const INTRODUCTION: &str = "\
An ApplySet is a group of objects that are applied together. Its parent object,
a Secret by default, records where its members are. Objects that you remove from
the manifests are pruned, whatever their kind and namespace.

Start here, with your manifests in manifests/:
  kubectl applyset diff  web -n shop -f manifests/    # preview
  kubectl applyset apply web -n shop -f manifests/    # apply and prune
  kubectl applyset view  web -n shop                  # inspect
";

const MORE_CONNECTION_FLAGS: &str =
    "  --context, --kubeconfig, --as and others: kubectl applyset help connection\n";

const ENVIRONMENT: &str = "\
The kubeconfig is that of kubectl: the files in KUBECONFIG, else ~/.kube/config,
else the service account of the Pod. Proxies: HTTPS_PROXY, HTTP_PROXY, NO_PROXY.
";

/// Sets the help pages of the program and of its commands. `-h` and `--help` print the same page.
pub(super) fn with_pages(root: Command) -> Command {
    let shared: Vec<Arg> = root.get_arguments().cloned().collect();
    let front = format_front_page(&root);
    root.mut_subcommands(|command| {
        let page = match command.get_name() {
            "connection" => format_connection_page(),
            _ => format_command_page(&command, &shared),
        };
        let usage = find_usage(command.get_name());
        command.override_usage(usage).override_help(page)
    })
    .override_usage(USAGE)
    .override_help(front)
}

fn format_front_page(root: &Command) -> String {
    let mut page = format!("{}\n\n{INTRODUCTION}", about_text(root));
    for (heading, names) in COMMANDS {
        let _ = write!(page, "\n{heading}:\n");
        for command in names.iter().filter_map(|name| root.find_subcommand(name)) {
            let _ = write!(page, "  {:<12}{}", command.get_name(), about_text(command));
            for alias in command.get_all_aliases() {
                let _ = write!(page, " (alias: {alias})");
            }
            page.push('\n');
        }
    }
    let _ = write!(
        page,
        "\nFlags of a command:  kubectl applyset COMMAND --help\n\
         Connection flags:    kubectl applyset help connection\n\
         Documentation:       https://github.com/kubectl-applyset/kubectl-applyset\n"
    );
    page
}

fn format_command_page(command: &Command, shared_flags: &[Arg]) -> String {
    let mut page = format_about_and_usage(command);
    if let Some(examples) = command.get_after_help() {
        let _ = write!(page, "\n{examples}\n");
    }
    let own = command.get_arguments();
    let global = shared_flags
        .iter()
        .filter(|flag| is_shared_flag_shown(flag, command));
    let flags: Vec<&Arg> = own.chain(global).filter(|flag| !flag.is_hide_set()).collect();
    page.push_str(&format_sections(&flags, command.get_name()));
    if !OFFLINE.contains(&command.get_name()) {
        page.push_str(MORE_CONNECTION_FLAGS);
    }
    page
}

/// Returns the page about the flags of the connection.
pub fn format_connection_page() -> String {
    let root = Cli::command();
    let mut flags: Vec<&Arg> = root.get_arguments().collect();
    flags.retain(|flag| flag.get_help_heading() == Some(CONNECTION) && !flag.is_hide_set());
    let mut page = root
        .find_subcommand("connection")
        .map(format_about_and_usage)
        .unwrap_or_default();
    page.push_str(&format_sections(&flags, ""));
    let _ = write!(page, "\n{ENVIRONMENT}");
    page
}

fn format_about_and_usage(command: &Command) -> String {
    let usage = find_usage(command.get_name());
    format!("{}\n\nUsage: {usage}\n", about_text(command))
}

fn find_usage(command_name: &str) -> &'static str {
    let found = USAGES.iter().find(|(name, _)| *name == command_name);
    found.map_or(USAGE, |(_, usage)| usage)
}

fn about_text(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// Returns whether the page of a command shows this shared flag. The flags about the connection have a page of their
/// own, except `--namespace`.
fn is_shared_flag_shown(flag: &Arg, command: &Command) -> bool {
    let id = flag.get_id().as_str();
    let is_connection_flag = flag.get_help_heading() == Some(CONNECTION) && id != "namespace";
    let is_unused = UNUSED_SHARED_FLAGS
        .iter()
        .any(|(name, flags)| *name == command.get_name() && flags.contains(&id));
    !is_connection_flag && !is_unused && !OFFLINE.contains(&command.get_name())
}

/// Writes the flags by section, one line for each, with the help texts in one column.
fn format_sections(flags: &[&Arg], command: &str) -> String {
    let width = flags
        .iter()
        .map(|flag| format_flag_syntax(flag).len())
        .max()
        .unwrap_or_default();
    let mut text = String::new();
    for section in SECTIONS {
        let mut of_section = flags.to_vec();
        of_section.retain(|flag| flag.get_help_heading() == Some(section));
        if !of_section.is_empty() {
            let _ = write!(text, "\n{section}:\n");
        }
        // Positional arguments come first, and `--filename` is the first flag: clap moves an argument to the end that a
        // command changes with `mut_arg`.
        of_section.sort_by_key(|flag| (flag.get_long().is_some(), flag.get_id() != "filename"));
        for flag in of_section {
            let _ = writeln!(
                text,
                "  {:<width$}  {}",
                format_flag_syntax(flag),
                help_text_for_command(flag, command)
            );
        }
    }
    text
}

/// Writes a flag or a positional argument as it is typed: `-f, --filename FILE`, `--wait[=DURATION]` or `SET`.
fn format_flag_syntax(flag: &Arg) -> String {
    let names = flag.get_value_names().unwrap_or_default();
    let value = names.first().map_or("", clap::builder::Str::as_str);
    let Some(long) = flag.get_long() else {
        return value.to_owned();
    };
    let short = flag
        .get_short()
        .map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
    // Boolean flags have a value only for kubectl's `--flag=false`, which is not shown. `--prune` is true by default.
    let takes_value = flag.get_action().takes_values() && value != "BOOL";
    let value = match (flag.is_require_equals_set(), takes_value, value) {
        (true, true, value) => format!("[={value}]"),
        (true, false, _) if flag.get_id() == "prune" => "[=false]".to_owned(),
        (false, true, value) => format!(" {value}"),
        (_, false, _) => String::new(),
    };
    format!("{short}--{long}{value}")
}

/// Returns the help text of a flag; that of `--output` depends on the formats that the command has.
fn help_text_for_command(flag: &Arg, command: &str) -> String {
    match command {
        "list" | "view" | "history" if flag.get_id() == "output" => {
            "json, yaml, kyaml, name or wide".to_owned()
        }
        "export" if flag.get_id() == "output" => "json, yaml, kyaml or name".to_owned(),
        "apply" | "diff" if flag.get_id() == "output" => "json, yaml, kyaml, name or markdown".to_owned(),
        _ => help_text(flag),
    }
}

fn help_text(flag: &Arg) -> String {
    flag.get_help().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Set to `write`, it makes the checked-in pages what the program prints.
    const MODE: &str = "DOCUMENTATION";

    /// The pages by name: the front page, those of the commands, and the connection.
    fn pages() -> Vec<(String, String)> {
        let mut root = with_pages(Cli::command());
        let front = ("applyset".to_owned(), root.render_help().to_string());
        let commands = root.get_subcommands_mut().map(|command| {
            let name = command.get_name().to_owned();
            (name, command.render_help().to_string())
        });
        let visible = commands.filter(|(name, _)| !name.starts_with("__") && name != "help");
        [front].into_iter().chain(visible).collect()
    }

    #[test]
    fn the_pages_are_those_that_are_checked_in() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/help");
        let is_written = std::env::var(MODE).is_ok_and(|mode| mode == "write");
        for (name, page) in pages() {
            let file = directory.join(format!("{name}.txt"));
            if is_written {
                std::fs::write(&file, page).expect("written");
                continue;
            }
            let expected = std::fs::read_to_string(&file).unwrap_or_default();
            assert_eq!(page, expected, "{name}: `just documentation` writes this page");
        }
    }

    #[test]
    fn each_flag_has_one_line_of_80_columns() {
        for (name, page) in pages() {
            for line in page.lines() {
                assert!(line.chars().count() <= 80, "{name}: {line}");
            }
        }
    }

    #[test]
    fn every_flag_and_command_is_on_a_page() {
        let root = Cli::command();
        let pages: Vec<String> = pages().into_iter().map(|(_, page)| page).collect();
        let commands = || root.get_subcommands().filter(|command| !command.is_hide_set());
        for command in commands() {
            let begins = format!("  {} ", command.get_name());
            assert!(pages[0].lines().any(|line| line.starts_with(&begins)), "{begins}");
        }
        let all = std::iter::once(&root).chain(commands());
        for flag in all
            .flat_map(Command::get_arguments)
            .filter(|flag| !flag.is_hide_set())
        {
            let line = format!("  {}  ", format_flag_syntax(flag));
            let is_there = pages
                .iter()
                .flat_map(|page| page.lines())
                .any(|shown| shown.starts_with(line.trim_end()));
            assert!(is_there, "{line}");
            let heading = flag.get_help_heading().unwrap_or_default();
            assert!(SECTIONS.contains(&heading), "{line}: {heading:?}");
            assert!(!help_text_for_command(flag, "").is_empty(), "{line}");
        }
    }

    #[test]
    fn short_and_long_help_are_the_same() {
        for line in ["apply", "", "rbac"] {
            let help = |flag: &str| {
                let words = ["kubectl-applyset", line, flag];
                let words = words.iter().filter(|word| !word.is_empty());
                let printed = Cli::parse(words.map(Into::into).collect()).map(|_| ());
                printed.expect_err("the help").to_string()
            };
            assert_eq!(help("-h"), help("--help"), "{line}");
        }
        let bare = Cli::parse(vec!["kubectl-applyset".into()]).map(|_| ());
        let bare = bare.expect_err("the front page");
        assert_eq!(bare.exit_code(), 0);
        assert!(bare.to_string().contains("Start here"), "{bare}");
    }
}
