//! docs/reference/commands.md, written from what clap knows of the program.

use std::fmt::Write as _;
use std::fs;

use clap::{Arg, Command, CommandFactory as _};
use kubectl_applyset::Cli;

use super::{checkout, is_writing, read};

const PAGE: &str = "docs/reference/commands.md";

const INTRODUCTION: &str = "# Commands and flags

This page lists every command and flag. It is generated from the program, and `kubectl applyset COMMAND
--help` prints a shorter form. `SET` is `[RESOURCE[.VERSION][.GROUP]/]NAME`; a bare `NAME` is a Secret.
";

const NEXT: &str = "
## Next

- [Exit codes](exit-codes.md), [output documents](output.md) and [environment variables](environment.md)
- [All pages](../README.md)
";

#[test]
fn reference_lists_the_commands_of_the_program() {
    let mut program = Cli::command();
    program.build();
    let page = reference(&program);
    if is_writing() {
        fs::write(checkout(PAGE), &page).expect("written");
    }
    assert_eq!(read(PAGE), page, "{PAGE} is out of date: `just documentation`");
}

fn reference(program: &Command) -> String {
    let commands: Vec<&Command> = program
        .get_subcommands()
        .filter(|command| !command.is_hide_set() && command.get_name() != "help")
        .collect();
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n| command | |\n|---|---|\n");
    for command in &commands {
        let name = command.get_name();
        let _ = writeln!(page, "| [`{name}`](#{name}) | {} |", about(command));
    }
    page.push_str("\n[Flags of all commands](#flags-of-all-commands) follow the commands.\n");
    for command in commands {
        page.push_str(&section(command));
    }
    page.push_str("\n## Flags of all commands\n");
    let shared = program
        .get_arguments()
        .filter(|argument| argument.is_global_set());
    page.push_str(&tables(shared));
    page + NEXT
}

fn section(command: &Command) -> String {
    let mut section = format!("\n## {}\n\n{}.\n", command.get_name(), about(command));
    let _ = write!(section, "\n```text\n{}\n```\n", usage(command.get_name()));
    let own = command
        .get_arguments()
        .filter(|argument| !argument.is_global_set());
    section.push_str(&tables(own));
    if let Some(examples) = examples(command) {
        let _ = write!(section, "\nExamples:\n\n```sh not-run\n{examples}\n```\n");
    }
    section
}

/// The headings in the order of the help.
const HEADINGS: [&str; 10] = [
    "Arguments",
    "Objects",
    "Manifests",
    "Subjects",
    "Pruning",
    "Ownership",
    "Waiting",
    "Running",
    "Output",
    "Connection",
];

/// The usage on the page of the help, without its heading.
fn usage(command: &str) -> String {
    let page = read(&format!("testdata/help/{command}.txt"));
    let lines = page.lines().skip_while(|line| !line.starts_with("Usage: "));
    let lines = lines.take_while(|line| !line.is_empty());
    let lines: Vec<&str> = lines
        .map(|line| line.trim_start_matches("Usage: ").trim())
        .collect();
    lines.join("\n")
}

/// Tables of the arguments, one for each heading of the help: positional ones, and flags by name.
fn tables<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let mut arguments: Vec<&Arg> = arguments.collect();
    arguments.sort_by_key(|argument| argument.get_long());
    let mut groups: Vec<(&str, String)> = Vec::new();
    for argument in arguments {
        if argument.is_hide_set() || ["help", "version"].contains(&argument.get_id().as_str()) {
            continue;
        }
        let heading = argument.get_help_heading().unwrap_or_default();
        let row = format!("| {} | {} |\n", name(argument), meaning(argument));
        match groups.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, rows)) => rows.push_str(&row),
            None => groups.push((heading, row)),
        }
    }
    groups.sort_by_key(|(heading, _)| HEADINGS.iter().position(|known| known == heading));
    let table = |(heading, rows): &(&str, String)| {
        let title = if heading.is_empty() {
            String::new()
        } else {
            format!("\n**{heading}**\n")
        };
        format!("{title}\n| argument | meaning |\n|---|---|\n{rows}")
    };
    groups.iter().map(table).collect()
}

/// `-f`, `--filename <FILE>`
fn name(argument: &Arg) -> String {
    let values: Vec<String> = argument
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(|value| format!("<{value}>"))
        .collect();
    let values = if argument.get_action().takes_values() {
        values.join(" ")
    } else {
        String::new()
    };
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let name = match (short, long) {
        (None, None) => values,
        (short, long) => {
            let names: Vec<String> = short.into_iter().chain(long).collect();
            let is_optional = argument
                .get_num_args()
                .is_some_and(|range| range.min_values() == 0);
            let value = match (values.is_empty(), is_optional) {
                (true, _) => String::new(),
                (false, true) => format!("[={}]", values.trim_matches(['<', '>'])),
                (false, false) => format!(" {values}"),
            };
            names.join(", ") + &value
        }
    };
    format!("`{}`", name.replace('|', "\\|"))
}

/// The help, the possible values and the default.
fn meaning(argument: &Arg) -> String {
    let mut meaning = argument.get_help().map(ToString::to_string).unwrap_or_default();
    if !argument.get_action().takes_values() {
        return cell(&meaning);
    }
    let values: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| match value.get_help() {
            Some(help) => format!(
                "`{}` ({})",
                value.get_name(),
                help.to_string().trim_end_matches('.')
            ),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    if !values.is_empty() {
        let _ = write!(meaning, ". Values: {}", values.join(", "));
    }
    let defaults: Vec<String> = argument
        .get_default_values()
        .iter()
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    if !defaults.is_empty() {
        let _ = write!(meaning, ". Default: {}", defaults.join(", "));
    }
    cell(&meaning)
}

/// Text of a table.
fn cell(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace('|', "\\|").replace('<', "\\<")
}

fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    cell(about.trim_end_matches('.'))
}

/// The examples of the help, without their indentation.
fn examples(command: &Command) -> Option<String> {
    let help = [
        command.get_before_help(),
        command.get_after_help(),
        command.get_after_long_help(),
    ];
    let mut texts = help.into_iter().flatten().map(ToString::to_string);
    let examples = texts.find_map(|text| text.split_once("Examples:\n").map(|(_, rest)| rest.to_owned()))?;
    let lines = examples
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with("  "))
        .map(|line| line.strip_prefix("  ").unwrap_or(line));
    Some(lines.collect::<Vec<_>>().join("\n").trim().to_owned())
}
