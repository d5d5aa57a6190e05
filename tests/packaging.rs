//! The completion scripts that are packaged beside the program fit it. No cluster is asked.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::succeed;

pub(crate) const CHECKOUT: &str = env!("CARGO_MANIFEST_DIR");
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-applyset");

#[test]
fn completion_scripts_are_what_the_program_prints() {
    let scripts = [
        ("bash", "kubectl-applyset.bash"),
        ("zsh", "_kubectl-applyset"),
        ("fish", "kubectl-applyset.fish"),
    ];
    for (shell, file) in scripts {
        let mut program = Command::new(PROGRAM);
        let printed = succeed(program.args(["completion", shell])).stdout;
        let kept = fs::read(Path::new(CHECKOUT).join("completions").join(file)).expect(file);
        let is_same = kept == printed;
        assert!(is_same, "completions/{file} is out of date: `just completions`");
    }
}

/// Loads the script that people load and presses Tab behind `apply --pru`.
#[test]
#[cfg(unix)]
fn bash_completes_the_flags_of_a_command() {
    let press_tab = r#"
        source completions/kubectl-applyset.bash
        COMP_WORDS=(kubectl-applyset apply --max-pru) COMP_CWORD=2
        "$(complete -p kubectl-applyset | sed 's/.*-F \([^ ]*\).*/\1/')" kubectl-applyset --max-pru apply
        echo "${COMPREPLY[*]}"
    "#;
    let place = Path::new(PROGRAM).parent().expect("a directory");
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-ec", press_tab]).current_dir(CHECKOUT);
    let answer = succeed(bash.env("PATH", search_path_behind(&[place])));
    assert_eq!(text(&answer).trim(), "--max-prune");
}

/// The search path behind these directories.
pub(crate) fn search_path_behind(directories: &[&Path]) -> OsString {
    let others = std::env::var_os("PATH").unwrap_or_default();
    let places = directories.iter().map(|place| place.to_path_buf());
    std::env::join_paths(places.chain(std::env::split_paths(&others))).expect("a search path")
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
