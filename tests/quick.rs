//! The list of quick tests that `just check` runs is one of tests that exist, and no command is
//! without one.

use std::collections::BTreeSet;

use clap::CommandFactory as _;
use kubectl_applyset::Cli;

use crate::support::names_of_tests;

const LIST: &str = include_str!("quick.txt");

#[test]
fn every_command_has_quick_tests_that_exist() {
    let all = names_of_tests();
    let mut tested = BTreeSet::new();
    for line in LIST.lines().filter(|line| !line.starts_with('#')) {
        let (command, test) = line.split_once(' ').expect("a command and a test");
        assert!(all.contains(test), "{test}");
        tested.insert(command.to_owned());
    }
    let commands: BTreeSet<String> = Cli::command()
        .get_subcommands()
        .filter(|command| !command.is_hide_set() && command.get_name() != "version")
        .map(|command| command.get_name().to_owned())
        .collect();
    assert_eq!(tested, commands);
}
