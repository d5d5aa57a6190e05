//! What is packaged beside the program fits the program: completion scripts and the
//! manifest of the plugin. No cluster is needed.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const CHECKOUT: &str = env!("CARGO_MANIFEST_DIR");

/// Runs a command to its end; fails where the command cannot be started or fails.
fn succeed(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{errors}",
        output.status
    );
    output
}

/// A directory of this test's own under `target`.
fn scratch(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&directory).expect("a directory under target");
    directory
}

#[test]
fn completion_scripts_are_what_the_program_prints() {
    let scripts = [
        ("bash", "kubectl-applyset.bash"),
        ("zsh", "_kubectl-applyset"),
        ("fish", "kubectl-applyset.fish"),
    ];
    for (shell, file) in scripts {
        let mut program = Command::new(env!("CARGO_BIN_EXE_kubectl-applyset"));
        let printed = succeed(program.args(["completion", shell])).stdout;
        let kept = fs::read(Path::new(CHECKOUT).join("completions").join(file)).expect(file);
        let is_same = kept == printed;
        assert!(is_same, "completions/{file} is out of date: `just completions`");
    }
}

/// The validator of the krew index, built from the versions in `controlplane/krew`.
#[test]
fn krew_accepts_the_plugin_manifest() {
    let directory = scratch("krew");
    let mut output = directory.clone().into_os_string();
    output.push(std::path::MAIN_SEPARATOR_STR);
    let mut build = Command::new("go");
    succeed(
        build
            .args(["build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-o"])
            .arg(output)
            .arg("sigs.k8s.io/krew/cmd/validate-krew-manifest")
            .current_dir(Path::new(CHECKOUT).join("controlplane/krew"))
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off"),
    );
    // Krew wants the file to have the name of the plugin.
    let manifest = directory.join("applyset.yaml");
    fs::copy(Path::new(CHECKOUT).join("plugin.yaml"), &manifest).expect("plugin.yaml");
    let program = format!("validate-krew-manifest{}", std::env::consts::EXE_SUFFIX);
    // There are no archives to install before the release that this manifest is for.
    succeed(
        Command::new(directory.join(program))
            .arg("-skip-install")
            .arg("-manifest")
            .arg(&manifest),
    );
}

#[test]
fn the_plugin_manifest_is_of_this_version() {
    let manifest = fs::read_to_string(Path::new(CHECKOUT).join("plugin.yaml")).expect("plugin.yaml");
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    assert!(manifest.contains(&format!("\n  version: {version}\n")));
    let archives: Vec<&str> = manifest.lines().filter(|line| line.contains("uri: ")).collect();
    assert_eq!(archives.len(), 6, "an archive for each platform");
    for archive in archives {
        let path = format!("/releases/download/{version}/kubectl-applyset-{version}-");
        assert!(archive.contains(&path), "{archive}");
    }
}

/// Loads the script that people load and presses Tab behind `apply --pru`.
#[test]
#[cfg(unix)]
fn bash_completes_the_flags_of_a_command() {
    let press_tab = r#"
        source completions/kubectl-applyset.bash
        COMP_WORDS=(kubectl-applyset apply --pru) COMP_CWORD=2
        "$(complete -p kubectl-applyset | sed 's/.*-F \([^ ]*\).*/\1/')" kubectl-applyset --pru apply
        echo "${COMPREPLY[*]}"
    "#;
    let program = Path::new(env!("CARGO_BIN_EXE_kubectl-applyset"));
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-ec", press_tab]).current_dir(CHECKOUT);
    let answer = succeed(bash.env("PATH", before_search_path(program.parent().expect("a directory"))));
    assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), "--prune");
}

/// The search path with a directory in front of it.
fn before_search_path(directory: &Path) -> OsString {
    let others = std::env::var_os("PATH").unwrap_or_default();
    let places = [directory.to_owned()]
        .into_iter()
        .chain(std::env::split_paths(&others));
    std::env::join_paths(places).expect("a search path")
}
