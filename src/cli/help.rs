//! The help pages: a front page, one for each command, and the flags about the connection.
//!
//! clap lays the pages out. They differ from its defaults in that the examples come before the flags, a flag takes one
//! line, and the shared flags about the connection have a page of their own.

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

/// The usage of the program.
const USAGE: &str = "kubectl applyset COMMAND [flags]";

const FRONT_PAGE: &str = "\
{about}

An ApplySet is a group of objects that are applied together. Its parent object,
a Secret by default, records where its members are. Objects that you remove from
the manifests are pruned, whatever their kind and namespace.

Start here, with your manifests in manifests/:
  kubectl applyset diff  web -n shop -f manifests/    # preview
  kubectl applyset apply web -n shop -f manifests/    # apply and prune
  kubectl applyset view  web -n shop                  # inspect

Commands:
{subcommands}

Flags of a command:  kubectl applyset COMMAND --help
Connection flags:    kubectl applyset help connection
Documentation:       https://github.com/kubectl-applyset/kubectl-applyset
";

const COMMAND_PAGE: &str = "\
{about}

{usage-heading} {usage}{after-help}

{all-args}

Connection flags:  kubectl applyset help connection
";

/// The page of a command that does not connect to a cluster.
const OFFLINE_PAGE: &str = "\
{about}

{usage-heading} {usage}{after-help}

{all-args}
";

const CONNECTION_PAGE: &str = "\
{about}

{usage-heading} {usage}

{all-args}

The kubeconfig is that of kubectl: the files in KUBECONFIG, else ~/.kube/config,
else the service account of the Pod. Proxies: HTTPS_PROXY, HTTP_PROXY, NO_PROXY.
";

/// Sets the help pages of the program and of its commands. `-h` and `--help` print the same page.
///
/// The pages are those of the command line as it is declared: they do not show that boolean flags accept a value.
pub(super) fn with_pages(root: Command) -> Command {
    let mut declared = command_with_templates();
    declared.build();
    let front_page = declared.render_help();
    root.mut_subcommands(|command| {
        let page = match (
            command.get_name(),
            declared.find_subcommand_mut(command.get_name()),
        ) {
            ("connection", _) | (_, None) => format_connection_page(),
            (name, Some(declared)) => {
                let mut page = declared.clone().mut_args(|flag| {
                    let is_hidden = flag.is_hide_set() || is_unused(name, &flag);
                    flag.hide(is_hidden)
                });
                if is_offline(name) {
                    page = page.help_template(OFFLINE_PAGE);
                }
                format!("{}\n", page.render_help().to_string().trim_end())
            }
        };
        command.override_help(page)
    })
    .override_usage(USAGE)
    .override_help(front_page)
}

fn command_with_templates() -> Command {
    Cli::command()
        .override_usage(USAGE)
        .help_template(FRONT_PAGE)
        .mut_args(|flag| {
            let is_on_other_page = is_only_on_connection_page(&flag) || flag.is_hide_set();
            in_one_line(flag).hide(is_on_other_page)
        })
        .mut_subcommands(|command| {
            command
                .mut_args(in_one_line)
                .help_template(COMMAND_PAGE)
                .disable_help_flag(true)
        })
}

/// Returns the page about the flags of the connection.
pub fn format_connection_page() -> String {
    let root = Cli::command();
    let flags = root
        .get_arguments()
        .filter(|flag| is_only_on_connection_page(flag));
    let about = root.find_subcommand("connection").and_then(Command::get_about);
    Command::new("connection")
        .about(about.cloned().unwrap_or_default())
        .override_usage(USAGE)
        .args(flags.cloned().map(in_one_line))
        .help_template(CONNECTION_PAGE)
        .disable_help_flag(true)
        .render_help()
        .to_string()
}

/// Returns whether this shared flag has no effect on the command, so that its page omits the flag.
fn is_unused(command: &str, flag: &Arg) -> bool {
    let unused: &[&str] = match command {
        "list" | "history" | "export" | "rbac" => &["verbose", "no_progress"],
        "view" => &["no_progress"],
        _ => &[],
    };
    flag.is_global_set() && (is_offline(command) || unused.contains(&flag.get_id().as_str()))
}

/// Returns whether the command does not connect to a cluster.
fn is_offline(command: &str) -> bool {
    ["completion", "version", "__manual"].contains(&command)
}

/// Returns whether a page of a command omits this shared flag: the flags about the connection have a page of their own,
/// except `--namespace`.
fn is_only_on_connection_page(flag: &Arg) -> bool {
    flag.get_help_heading() == Some(CONNECTION) && flag.get_id() != "namespace" && flag.is_global_set()
}

/// Leaves out the values that clap would append to the help text, which names those that matter.
fn in_one_line(flag: Arg) -> Arg {
    if flag.get_action().takes_values() {
        flag.hide_default_value(true).hide_possible_values(true)
    } else {
        flag
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
            let name = match (flag.get_long(), flag.get_value_names()) {
                (Some(long), _) => format!("--{long}"),
                (None, names) => names.unwrap_or_default()[0].to_string(),
            };
            let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
            let mut lines = pages.iter().flat_map(|page| page.lines());
            assert!(
                !help.is_empty() && lines.any(|line| line.contains(&name) && line.ends_with(&help)),
                "{name}"
            );
            assert!(flag.get_help_heading().is_some(), "{name} has no heading");
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
