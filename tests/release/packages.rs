//! What krew, Homebrew, Scoop, Nix and winget read. But for krew, none of them runs here: the files are read, and
//! what they install is looked up in the archives.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use regex::Regex;
use serde_json::{Value, json};

use super::{NUMBER, PLATFORMS, PUBLISHED, Release, VERSION, archive_on, here, yaml};
use crate::packaging::{search_path_behind, text};
use crate::support::succeed;

/// The files for package managers, what stands in them before the address of an archive, and how they name
/// the systems and processors that it may be for.
const PACKAGES: [(&str, &str, &str); 5] = [
    (
        "plugins/applyset.yaml",
        r"os: OS\s+arch: ARCH\s",
        "darwin=darwin linux=linux windows=windows amd64=amd64 arm64=arm64",
    ),
    (
        "Formula/kubectl-applyset.rb",
        "(?s)on_OS do.*?on_ARCH do",
        "darwin=macos linux=linux amd64=intel arm64=arm",
    ),
    (
        "bucket/kubectl-applyset.json",
        "\"ARCH\": \\{",
        "windows= amd64=64bit arm64=arm64",
    ),
    (
        "winget/kubectl-applyset.kubectl-applyset.installer.yaml",
        r"- Architecture: ARCH\s+Installer",
        "windows= amd64=x64 arm64=arm64",
    ),
    (
        "flake.nix",
        r"\sARCH-OS = \{",
        "darwin=darwin linux=linux amd64=x86_64 arm64=aarch64",
    ),
];
/// The address of an archive and its checksum.
const DOWNLOAD: &str = r#"\s*"?(?i:ur[il])"?:?(?: =)? "?([^\s"]+)"?[,;]?\s+"?(?i:(?:installer)?sha256|hash)"?:?(?: =)? "?([0-9a-f]{64})"#;

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

/// One repository serves all package managers, each of which looks in a directory of its own.
#[test]
fn package_managers_download_the_archives_of_the_release() {
    let release = Release::of_stand_ins();
    let place = release.unpack("packages.tar.gz");
    let sums = release.read("SHA256SUMS");
    for (file, before, names) in PACKAGES {
        let text = fs::read_to_string(place.path().join(file)).expect(file);
        let names: HashMap<&str, &str> = names.split(' ').filter_map(|name| name.split_once('=')).collect();
        let is_named = |(os, arch): &(&str, &str)| names.contains_key(os) && names.contains_key(arch);
        let platforms: Vec<_> = PLATFORMS.into_iter().filter(is_named).collect();
        for (os, arch) in &platforms {
            let before = before.replace("OS", names[os]).replace("ARCH", names[arch]);
            let found = pattern(&(before + DOWNLOAD)).captures(&text);
            let found = found.unwrap_or_else(|| panic!("{file}: {os} {arch}"));
            let archive = archive_on(os, arch);
            assert_eq!(found[1], format!("{PUBLISHED}/{VERSION}/{archive}"), "{file}");
            assert!(sums.contains(&format!("{}  {archive}\n", &found[2])), "{archive}");
        }
        assert_eq!(
            pattern(DOWNLOAD).find_iter(&text).count(),
            platforms.len(),
            "{file}"
        );
        assert!(!text.contains("VERSION") && text.contains(NUMBER), "{text}");
    }
    let readme = fs::read_to_string(place.path().join("README.md")).expect("a page");
    assert!(!readme.contains("VERSION"), "{readme}");
}

/// A machine makes only the archives of its own platform.
#[test]
fn packages_name_only_archives_that_are_there() {
    let release = Release::of_stand_ins();
    for (os, arch) in PLATFORMS.into_iter().filter(|platform| *platform != here()) {
        fs::remove_file(release.file(&archive_on(os, arch))).expect("an archive");
    }
    let release = release.made(&["index"]);
    let manifest = release.read("applyset.yaml");
    assert_eq!(manifest.matches("uri: ").count(), 1, "{manifest}");
    assert!(manifest.contains(&archive_on(here().0, here().1)), "{manifest}");
    assert!(!release.file("packages").exists(), "others want all archives");
}

#[test]
fn homebrew_and_scoop_install_files_of_the_archives() {
    let release = Release::of_stand_ins();
    let formula = release.read("packages/Formula/kubectl-applyset.rb");
    let archive = release.unpack(&archive_on(here().0, here().1));
    let (_, install) = formula.split_once("def install").expect("a method");
    let (install, _) = install.split_once("\n  end").expect("an end");
    let named = pattern(r#"(?:install|,|\[) ?"([^"]+)""#);
    let named: Vec<_> = named.captures_iter(install).collect();
    assert_eq!(named.len(), 7, "{install}");
    for name in named {
        let name = name[1].strip_suffix("/*").unwrap_or(&name[1]);
        assert!(archive.path().join(name).exists(), "{name}");
    }

    // krew finds the program in the archives for Windows.
    let manifest: Value =
        serde_json::from_str(&release.read("packages/bucket/kubectl-applyset.json")).expect("JSON");
    assert_eq!(
        [&manifest["version"], &manifest["bin"]],
        [NUMBER, "kubectl-applyset.exe"]
    );
    for name in ["64bit", "arm64"] {
        // What Scoop makes of the next version.
        let next = manifest["autoupdate"]["architecture"][name]["url"].as_str();
        let next = next.expect("an address").replace("$version", NUMBER);
        assert_eq!(json!(next), manifest["architecture"][name]["url"]);
    }
}

/// winget takes three files for one package, and finds the program in the archives for Windows.
#[test]
fn the_manifests_for_winget_are_of_one_package() {
    let release = Release::of_stand_ins();
    let manifests = ["", ".installer", ".locale.en-US"].map(|kind| {
        let file = format!("packages/winget/kubectl-applyset.kubectl-applyset{kind}.yaml");
        yaml(&release.read(&file))
    });
    for manifest in &manifests {
        assert_eq!(manifest["PackageIdentifier"], "kubectl-applyset.kubectl-applyset");
        assert_eq!(manifest["PackageVersion"], NUMBER);
    }
    let program = &manifests[1]["NestedInstallerFiles"][0]["RelativeFilePath"];
    assert_eq!(*program, "kubectl-applyset.exe");
    assert_eq!(manifests[0]["DefaultLocale"], manifests[2]["PackageLocale"]);
}

/// Runs the script of the flake as Nix does: in the archive, with the place of the package in a
/// variable.
#[test]
fn the_flake_installs_the_program_its_completion_and_its_manual() {
    let release = Release::of_stand_ins();
    let flake = release.read("packages/flake.nix");
    let archive = release.unpack(&archive_on(here().0, here().1));
    let (_, script) = flake.split_once("installPhase = ''").expect("a script");
    let (script, _) = script.split_once("'';").expect("an end");
    let out = tempfile::tempdir().expect("a directory");
    let mut bash = Command::new("bash");
    bash.arg("-euc").arg(format!("runHook() {{ :; }}\n{script}"));
    succeed(bash.current_dir(archive.path()).env("out", out.path()));
    let run = |name: &str, argument: &str| {
        let bin = out.path().join("bin");
        let mut program = Command::new(bin.join(name));
        // kubectl calls it from the PATH.
        program
            .arg(argument)
            .env("PATH", search_path_behind(&[Path::new(&bin)]));
        text(&succeed(&mut program))
    };
    assert_eq!(
        run("kubectl-applyset", "version"),
        format!("kubectl-applyset {VERSION}\n")
    );
    assert!(run("kubectl_complete-applyset", "vie").starts_with("view\t"));
    for file in [
        "bash-completion/completions/kubectl-applyset",
        "zsh/site-functions/_kubectl-applyset",
        "fish/vendor_completions.d/kubectl-applyset.fish",
        "man/man1/kubectl-applyset.1",
    ] {
        assert!(out.path().join("share").join(file).is_file(), "{file}");
    }
}
