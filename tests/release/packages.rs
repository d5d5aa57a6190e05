//! What Homebrew, Scoop and Nix read. None of them runs here: the files are read, and what they
//! install is looked up in the archives.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use regex::Regex;
use serde_json::{Value, json};

use super::{NUMBER, PLATFORMS, PUBLISHED, Release, VERSION, archive_on, here};
use crate::packaging::text;
use crate::support::succeed;

/// The checksum of each archive.
fn checksums(release: &Release) -> BTreeMap<String, String> {
    let sums = release.read("SHA256SUMS");
    let lines = sums
        .lines()
        .map(|line| line.split_once("  ").expect("a checksum"));
    lines
        .map(|(sum, name)| (name.to_owned(), sum.to_owned()))
        .collect()
}

fn first_group<'a>(pattern: &str, text: &'a str) -> Vec<&'a str> {
    let pattern = Regex::new(pattern).expect("a pattern");
    let found = pattern.captures_iter(text);
    found
        .map(|found| found.get(1).expect("a group").as_str())
        .collect()
}

/// Asserts that addresses and checksums of a text are those of archives for these systems.
fn assert_downloads(release: &Release, text: &str, systems: &[&str]) {
    let sums = checksums(release);
    let addresses = first_group(r#"(?m)^\s+"?url"?:?(?: =)? "([^"$]+)""#, text);
    let found = first_group(r#"(?m)^\s+"?(?:sha256|hash)"?:?(?: =)? "([^"]+)""#, text);
    let mut archives: Vec<String> = PLATFORMS
        .iter()
        .filter(|(os, _)| systems.contains(os))
        .map(|(os, arch)| archive_on(os, arch))
        .collect();
    assert_eq!(addresses.len(), found.len(), "{text}");
    for (address, sum) in addresses.iter().zip(found) {
        let archive = address.strip_prefix(&format!("{PUBLISHED}/{VERSION}/"));
        let archive = archive.unwrap_or_else(|| panic!("{address}"));
        assert_eq!(sums.get(archive).map(String::as_str), Some(sum), "{archive}");
        archives.retain(|expected| expected != archive);
    }
    assert!(archives.is_empty(), "not named: {archives:?}");
}

/// One repository serves all package managers, each of which looks in a directory of its own.
#[test]
fn packages_have_the_layout_that_package_managers_want() {
    let release = Release::of_stand_ins();
    let place = release.unpack("packages.tar.gz");
    let mut find = Command::new("find");
    find.args([".", "-type", "f"]).current_dir(place.path());
    let files = text(&succeed(&mut find));
    let mut files: Vec<&str> = files.lines().collect();
    files.sort_unstable();
    let expected = [
        "./Formula/kubectl-applyset.rb",
        "./README.md",
        "./bucket/kubectl-applyset.json",
        "./flake.nix",
        "./plugins/applyset.yaml",
    ];
    assert_eq!(files, expected);
    assert_eq!(
        release.read("packages/plugins/applyset.yaml"),
        release.read("applyset.yaml")
    );
    for file in files {
        let text = fs::read_to_string(place.path().join(file)).expect(file);
        assert!(
            !text.contains("VERSION") && !text.contains(&"0".repeat(64)),
            "{text}"
        );
        assert!(text.contains(NUMBER), "{text}");
    }
}

#[test]
fn the_formula_installs_files_of_the_archives() {
    let release = Release::of_stand_ins();
    let formula = release.read("packages/Formula/kubectl-applyset.rb");
    assert_downloads(&release, &formula, &["darwin", "linux"]);

    // Each address below the system and the processor that it is for.
    let (mut system, mut processor) = ("", "");
    for line in formula.lines().map(str::trim) {
        match line {
            "on_macos do" => system = "darwin",
            "on_linux do" => system = "linux",
            "on_arm do" => processor = "arm64",
            "on_intel do" => processor = "amd64",
            _ if line.starts_with("url ") => assert!(line.contains(&archive_on(system, processor)), "{line}"),
            _ => {}
        }
    }

    let archive = release.unpack(&archive_on(here().0, here().1));
    let (_, install) = formula.split_once("def install").expect("a method");
    let (install, _) = install.split_once("\n  end").expect("an end");
    let mut installed = 0;
    for name in first_group(r#"(?:install|,|\[) ?"([^"]+)""#, install) {
        let name = name.strip_suffix("/*").unwrap_or(name);
        assert!(archive.path().join(name).exists(), "{name}");
        installed += 1;
    }
    assert_eq!(installed, 7, "{install}");
}

#[test]
fn scoop_installs_the_program_of_the_archives() {
    let release = Release::of_stand_ins();
    let text = release.read("packages/bucket/kubectl-applyset.json");
    assert_downloads(&release, &text, &["windows"]);
    let manifest: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(manifest["version"], NUMBER);
    assert_eq!(manifest["bin"], "kubectl-applyset.exe");
    for (name, arch) in [("64bit", "amd64"), ("arm64", "arm64")] {
        let address = json!(format!("{PUBLISHED}/{VERSION}/{}", archive_on("windows", arch)));
        assert_eq!(manifest["architecture"][name]["url"], address);
        // What Scoop makes of the next version.
        let next = manifest["autoupdate"]["architecture"][name]["url"].as_str();
        let next = next.expect("an address").replace("$version", NUMBER);
        assert_eq!(json!(next), address);
    }
    let script = "import sys, zipfile; print(*zipfile.ZipFile(sys.argv[1]).namelist(), sep='\\n')";
    let mut list = Command::new("python3");
    list.args(["-c", script])
        .arg(release.file(&archive_on("windows", "amd64")));
    let names = text_of(&mut list);
    assert!(
        names.lines().any(|name| name == "kubectl-applyset.exe"),
        "{names}"
    );
}

fn text_of(command: &mut Command) -> String {
    text(&succeed(command))
}

/// Runs the script of the flake as Nix does: in the archive, with the place of the package in a
/// variable.
#[test]
fn the_flake_installs_the_program_its_completion_and_its_manual() {
    let release = Release::of_stand_ins();
    let flake = release.read("packages/flake.nix");
    assert_downloads(&release, &flake, &["darwin", "linux"]);
    let systems = [
        ("x86_64-linux", "linux-amd64"),
        ("aarch64-linux", "linux-arm64"),
        ("x86_64-darwin", "darwin-amd64"),
        ("aarch64-darwin", "darwin-arm64"),
    ];
    for (system, platform) in systems {
        let (_, archive) = flake.split_once(&format!("{system} = {{")).expect(system);
        let (archive, _) = archive.split_once('}').expect("an end");
        assert!(archive.contains(platform), "{system}: {archive}");
    }

    let archive = release.unpack(&archive_on(here().0, here().1));
    let script = first_group(r"(?s)installPhase = ''(.*?)'';", &flake)[0];
    let out = tempfile::tempdir().expect("a directory");
    let mut bash = Command::new("bash");
    bash.arg("-euc").arg(format!("runHook() {{ :; }}\n{script}"));
    succeed(bash.current_dir(archive.path()).env("out", out.path()));
    assert_installed(out.path(), "site-functions");
    assert!(out.path().join("share/man/man1/kubectl-applyset.1").is_file());
}

/// Asserts that the program runs from below a prefix, and that shells find its completion there.
pub(super) fn assert_installed(prefix: &Path, zsh: &str) {
    let mut program = Command::new(prefix.join("bin/kubectl-applyset"));
    assert_eq!(
        text_of(program.arg("version")),
        format!("kubectl-applyset {VERSION}\n")
    );
    // As kubectl calls it: from the PATH.
    let mut complete = Command::new(prefix.join("bin/kubectl_complete-applyset"));
    complete.env(
        "PATH",
        crate::packaging::search_path_behind(&[&prefix.join("bin")]),
    );
    let offered = text_of(complete.arg("vie"));
    assert!(offered.starts_with("view\t"), "{offered}");
    for file in [
        "share/bash-completion/completions/kubectl-applyset".to_owned(),
        format!("share/zsh/{zsh}/_kubectl-applyset"),
        "share/fish/vendor_completions.d/kubectl-applyset.fish".to_owned(),
    ] {
        assert!(prefix.join(&file).is_file(), "{file}");
    }
}
