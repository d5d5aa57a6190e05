//! The list of quick tests that `just check` runs is one of tests that exist, and no command is
//! without one.

use std::collections::BTreeSet;
use std::env::current_exe;
use std::process::Command;

use clap::CommandFactory as _;
use kubectl_applyset::cli::Cli;

use crate::support::succeed;

const LIST: &str = include_str!("quick.txt");

#[test]
fn every_command_has_quick_tests_that_exist() {
    let this = current_exe().expect("the tests");
    let all = succeed(Command::new(this).arg("--list")).stdout;
    let all = String::from_utf8(all).expect("names");
    let mut tested = BTreeSet::new();
    for line in LIST.lines().filter(|line| !line.starts_with('#')) {
        let (command, test) = line.split_once(' ').expect("a command and a test");
        assert!(
            all.lines().any(|known| known == format!("{test}: test")),
            "{test}"
        );
        tested.insert(command.to_owned());
    }
    let commands: BTreeSet<String> = Cli::command()
        .get_subcommands()
        .filter(|command| !command.is_hide_set() && command.get_name() != "version")
        .map(|command| command.get_name().to_owned())
        .collect();
    assert_eq!(tested, commands);
}
