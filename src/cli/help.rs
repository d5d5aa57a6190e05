//! The help pages: a front page, one for each command, and the flags about the connection.
//!
//! clap's own layout is not used: it has the flags before the examples, takes more than one line for each flag, and
//! shows all shared flags on the page of every command.

use clap::{Arg, Command, CommandFactory as _};

use super::Cli;

// Values of `help_heading` in clap attributes.
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

/// The headings of flags, in the order in which a page shows them.
const HEADINGS: [&str; 10] = [
    ARGUMENTS, OBJECTS, MANIFESTS, SUBJECTS, PRUNING, OWNERSHIP, WAITING, RUNNING, OUTPUT, CONNECTION,
];

/// The commands on the front page, each group with its heading.
const COMMAND_GROUPS: [(&str, &[&str]); 4] = [
    ("Start", &["diff", "apply", "delete"]),
    ("Inspect", &["list", "view", "history", "export", "verify"]),
    ("Change membership", &["adopt", "move", "disband"]),
    ("Other", &["rbac", "completion", "version"]),
];

/// What the page of one command has that its flags do not say.
struct CommandPage {
    command: &'static str,
    /// clap's own usage would name all flags of a required group, and would not say that one of them is enough.
    usage: &'static str,
    unused_flags: UnusedFlags,
    /// The help text of `--output`, if the command has other formats than most.
    output_help: Option<&'static str>,
}

/// The shared flags without an effect on a command. Its page omits them.
enum UnusedFlags {
    Only(&'static [&'static str]),
    /// The command does not connect to a cluster.
    All,
}

impl CommandPage {
    const fn new(command: &'static str, usage: &'static str) -> Self {
        Self {
            command,
            usage,
            unused_flags: UnusedFlags::Only(&[]),
            output_help: None,
        }
    }

    fn find(command: &str) -> Option<&'static Self> {
        PAGES.iter().find(|page| page.command == command)
    }

    fn is_offline(&self) -> bool {
        matches!(self.unused_flags, UnusedFlags::All)
    }
}

const PAGES: [CommandPage; 15] = [
    CommandPage {
        output_help: Some("json, yaml, kyaml, name or markdown"),
        ..CommandPage::new(
            "apply",
            "kubectl applyset apply SET -n NAMESPACE (-f FILE | -k DIR) [flags]\n       \
             kubectl applyset apply --plan FILE [flags]",
        )
    },
    CommandPage {
        output_help: Some("json, yaml, kyaml, name or markdown"),
        ..CommandPage::new(
            "diff",
            "kubectl applyset diff SET -n NAMESPACE (-f FILE | -k DIR) [flags]\n       \
             kubectl applyset diff --plan FILE [flags]",
        )
    },
    CommandPage::new("delete", "kubectl applyset delete SET -n NAMESPACE [flags]"),
    CommandPage {
        unused_flags: UnusedFlags::Only(&["verbose", "no_progress"]),
        output_help: Some("json, yaml, kyaml, name or wide"),
        ..CommandPage::new("list", "kubectl applyset list [-n NAMESPACE | -A] [flags]")
    },
    CommandPage {
        unused_flags: UnusedFlags::Only(&["no_progress"]),
        output_help: Some("json, yaml, kyaml, name or wide"),
        ..CommandPage::new("view", "kubectl applyset view SET -n NAMESPACE [flags]")
    },
    CommandPage {
        unused_flags: UnusedFlags::Only(&["verbose", "no_progress"]),
        output_help: Some("json, yaml, kyaml, name or wide"),
        ..CommandPage::new("history", "kubectl applyset history SET -n NAMESPACE [flags]")
    },
    CommandPage {
        unused_flags: UnusedFlags::Only(&["verbose", "no_progress"]),
        output_help: Some("json, yaml, kyaml or name"),
        ..CommandPage::new("export", "kubectl applyset export SET -n NAMESPACE [flags]")
    },
    CommandPage::new(
        "verify",
        "kubectl applyset verify [SET] [-n NAMESPACE | -A] [flags]",
    ),
    CommandPage::new(
        "adopt",
        "kubectl applyset adopt SET -n NAMESPACE (-f FILE | -k DIR) [flags]\n       \
         kubectl applyset adopt SET -n NAMESPACE -l SELECTOR [-A] [flags]\n       \
         kubectl applyset adopt SET -n NAMESPACE --from TOOL/NAME [flags]",
    ),
    CommandPage::new(
        "move",
        "kubectl applyset move SET NEW -n NAMESPACE [-l LABELS | -f FILE] [flags]",
    ),
    CommandPage::new("disband", "kubectl applyset disband SET -n NAMESPACE [flags]"),
    CommandPage {
        unused_flags: UnusedFlags::Only(&["verbose", "no_progress"]),
        ..CommandPage::new(
            "rbac",
            "kubectl applyset rbac SET -n NAMESPACE (-f FILE | -k DIR) [flags]",
        )
    },
    CommandPage {
        unused_flags: UnusedFlags::All,
        ..CommandPage::new("completion", "kubectl applyset completion SHELL")
    },
    CommandPage {
        unused_flags: UnusedFlags::All,
        ..CommandPage::new("version", "kubectl applyset version")
    },
    // Hidden; writes the man pages.
    CommandPage {
        unused_flags: UnusedFlags::All,
        ..CommandPage::new("__manual", "kubectl applyset __manual DIRECTORY")
    },
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

const CONNECTION_HELP_LINE: &str =
    "  --context, --kubeconfig, --as and others: kubectl applyset help connection\n";

const ENVIRONMENT: &str = "\
The kubeconfig is that of kubectl: the files in KUBECONFIG, else ~/.kube/config,
else the service account of the Pod. Proxies: HTTPS_PROXY, HTTP_PROXY, NO_PROXY.
";

/// Sets the help pages of the program and of its commands. `-h` and `--help` print the same page.
pub(super) fn with_pages(root: Command) -> Command {
    let shared_flags: Vec<Arg> = root.get_arguments().cloned().collect();
    let front_page = format_front_page(&root);
    root.mut_subcommands(|command| {
        let page = match command.get_name() {
            "connection" => format_connection_page(),
            _ => format_command_page(&command, &shared_flags),
        };
        let usage = find_usage(command.get_name());
        command.override_usage(usage).override_help(page)
    })
    .override_usage(USAGE)
    .override_help(front_page)
}

fn format_front_page(root: &Command) -> String {
    let mut lines = vec![format!("{}\n\n{INTRODUCTION}", about_text(root))];
    for (heading, names) in COMMAND_GROUPS {
        lines.push(format!("\n{heading}:\n"));
        for command in names.iter().filter_map(|name| root.find_subcommand(name)) {
            let aliases: Vec<String> = command
                .get_all_aliases()
                .map(|alias| format!(" (alias: {alias})"))
                .collect();
            lines.push(format!(
                "  {:<12}{}{}\n",
                command.get_name(),
                about_text(command),
                aliases.concat()
            ));
        }
    }
    lines.push(
        "\nFlags of a command:  kubectl applyset COMMAND --help\n\
         Connection flags:    kubectl applyset help connection\n\
         Documentation:       https://github.com/kubectl-applyset/kubectl-applyset\n"
            .to_owned(),
    );
    lines.concat()
}

fn format_command_page(command: &Command, shared_flags: &[Arg]) -> String {
    let examples = match command.get_after_help() {
        Some(examples) => format!("\n{examples}\n"),
        None => String::new(),
    };
    let flags: Vec<&Arg> = command
        .get_arguments()
        .chain(
            shared_flags
                .iter()
                .filter(|flag| is_shared_flag_shown(flag, command)),
        )
        .filter(|flag| !flag.is_hide_set())
        .collect();
    let connection_line = match CommandPage::find(command.get_name()) {
        Some(page) if page.is_offline() => "",
        _ => CONNECTION_HELP_LINE,
    };
    format!(
        "{}{examples}{}{connection_line}",
        format_about_and_usage(command),
        format_flags(&flags, command.get_name())
    )
}

/// Returns the page about the flags of the connection.
pub fn format_connection_page() -> String {
    let root = Cli::command();
    let flags: Vec<&Arg> = root
        .get_arguments()
        .filter(|flag| flag.get_help_heading() == Some(CONNECTION) && !flag.is_hide_set())
        .collect();
    let about_and_usage = root
        .find_subcommand("connection")
        .map(format_about_and_usage)
        .unwrap_or_default();
    format!("{about_and_usage}{}\n{ENVIRONMENT}", format_flags(&flags, ""))
}

fn format_about_and_usage(command: &Command) -> String {
    let usage = find_usage(command.get_name());
    format!("{}\n\nUsage: {usage}\n", about_text(command))
}

fn find_usage(command_name: &str) -> &'static str {
    CommandPage::find(command_name).map_or(USAGE, |page| page.usage)
}

fn about_text(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// Returns whether the page of a command shows this shared flag. The flags about the connection have a page of their
/// own, except `--namespace`.
fn is_shared_flag_shown(flag: &Arg, command: &Command) -> bool {
    let id = flag.get_id().as_str();
    let is_connection_flag = flag.get_help_heading() == Some(CONNECTION) && id != "namespace";
    let is_unused = match CommandPage::find(command.get_name()).map(|page| &page.unused_flags) {
        Some(UnusedFlags::All) => true,
        Some(UnusedFlags::Only(flags)) => flags.contains(&id),
        None => false,
    };
    !is_connection_flag && !is_unused
}

/// Writes the flags by heading, one line for each, with the help texts in one column.
fn format_flags(flags: &[&Arg], command_name: &str) -> String {
    let width = flags
        .iter()
        .map(|flag| format_flag_syntax(flag).len())
        .max()
        .unwrap_or_default();
    let mut lines = Vec::new();
    for heading in HEADINGS {
        let mut heading_flags: Vec<&Arg> = flags
            .iter()
            .copied()
            .filter(|flag| flag.get_help_heading() == Some(heading))
            .collect();
        if heading_flags.is_empty() {
            continue;
        }
        // Positional arguments come first, and `--filename` is the first flag: clap moves arguments changed by
        // `mut_arg` to the end.
        heading_flags.sort_by_key(|flag| (flag.get_long().is_some(), flag.get_id() != "filename"));
        lines.push(format!("\n{heading}:\n"));
        for flag in heading_flags {
            let syntax = format_flag_syntax(flag);
            let help = help_text_for_command(flag, command_name);
            lines.push(format!("  {syntax:<width$}  {help}\n"));
        }
    }
    lines.concat()
}

/// Writes a flag or a positional argument as it is typed: `-f, --filename FILE`, `--wait[=DURATION]` or `SET`.
fn format_flag_syntax(flag: &Arg) -> String {
    let placeholder = flag
        .get_value_names()
        .unwrap_or_default()
        .first()
        .map_or("", clap::builder::Str::as_str);
    let Some(long) = flag.get_long() else {
        return placeholder.to_owned();
    };
    let short = match flag.get_short() {
        Some(short) => format!("-{short}, "),
        None => "    ".to_owned(),
    };
    // Boolean flags have a value only for kubectl's `--flag=false`, which is not shown. `--prune` is true by default.
    let takes_value = flag.get_action().takes_values() && placeholder != "BOOL";
    let suffix = if takes_value && flag.is_require_equals_set() {
        format!("[={placeholder}]")
    } else if takes_value {
        format!(" {placeholder}")
    } else if flag.get_id() == "prune" {
        "[=false]".to_owned()
    } else {
        String::new()
    };
    format!("{short}--{long}{suffix}")
}

/// Returns the help text of a flag; the text of `--output` depends on the formats that the command has.
fn help_text_for_command(flag: &Arg, command_name: &str) -> String {
    match CommandPage::find(command_name).and_then(|page| page.output_help) {
        Some(output_help) if flag.get_id() == "output" => output_help.to_owned(),
        _ => flag.get_help().map(ToString::to_string).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Set to `write`, it makes the checked-in pages what the program prints.
    const MODE: &str = "DOCUMENTATION";

    /// The pages by name: the front page, the pages of the commands, and the connection.
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
            assert!(HEADINGS.contains(&heading), "{line}: {heading:?}");
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
        let front_page = Cli::parse(vec!["kubectl-applyset".into()])
            .map(|_| ())
            .expect_err("the front page");
        assert_eq!(front_page.exit_code(), 0);
        assert!(front_page.to_string().contains("Start here"), "{front_page}");
    }
}
