//! The manifest for krew: what krew and its validator say of it, and what krew installs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use controlplane::ControlPlane;
use tempfile::TempDir;

use super::{
    NUMBER, PLATFORMS, PUBLISHED, Release, VERSION, archive_on, here, program_on, stand_in, write_script,
    yaml,
};
use crate::packaging::{CHECKOUT, PROGRAM, search_path_behind, text};
use crate::support::{Answer, Web, go_tools, succeed};

/// A version that people have installed before.
const EARLIER: &str = "0.0.9";

/// Builds krew, the validator of its index and a renderer of templates, and returns the directory
/// that they are in.
fn krew() -> PathBuf {
    // A file that another test runs cannot be written again.
    static KREW: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let directory = go_tools(
            "krew",
            &[
                "sigs.k8s.io/krew/cmd/krew",
                "sigs.k8s.io/krew/cmd/validate-krew-manifest",
                "./krewtemplate",
            ],
        );
        // As kubectl finds it.
        fs::copy(directory.join("krew"), directory.join("kubectl-krew")).expect("krew was built");
        directory
    };
    KREW.get_or_init(build).clone()
}

/// Where krew installs for a person.
struct Krew {
    root: TempDir,
    programs: PathBuf,
}

impl Krew {
    fn new(programs: &Path) -> Self {
        Self {
            root: tempfile::tempdir().expect("a directory"),
            programs: programs.to_owned(),
        }
    }

    /// Installs the plugin from the archive for a platform.
    fn install(&self, release: &Release, (os, arch): (&str, &str)) {
        let mut install = self.command(ControlPlane::shared().kubectl());
        install
            .args(["krew", "install"])
            .arg(format!("--manifest={}", release.file("applyset.yaml").display()))
            .arg(format!(
                "--archive={}",
                release.file(&archive_on(os, arch)).display()
            ));
        succeed(install.env("KREW_OS", os).env("KREW_ARCH", arch));
    }

    /// A file of an installed version.
    fn file(&self, version: &str, name: &str) -> PathBuf {
        self.root.path().join("store/applyset").join(version).join(name)
    }

    fn command(&self, program: &Path) -> Command {
        let kubectl = ControlPlane::shared().kubectl().parent().expect("a directory");
        let bin = self.root.path().join("bin");
        let mut command = Command::new(program);
        command
            .env("HOME", self.root.path())
            .env("KREW_ROOT", self.root.path())
            .env("KREW_NO_UPGRADE_CHECK", "1")
            .env("PATH", search_path_behind(&[&bin, &self.programs, kubectl]));
        command
    }

    /// What kubectl prints.
    fn kubectl(&self, arguments: &[&str]) -> String {
        let mut kubectl = self.command(ControlPlane::shared().kubectl());
        text(&succeed(kubectl.args(arguments)))
    }
}

fn validate(programs: &Path, manifest: &Path) {
    // There is nothing to download before the release that this manifest is for.
    let mut validate = Command::new(programs.join("validate-krew-manifest"));
    succeed(validate.arg("-skip-install").arg("-manifest").arg(manifest));
}

/// krew-index wants the name of the plugin as the name of the file.
#[test]
fn plugin_yaml_is_a_valid_manifest() {
    let place = tempfile::tempdir().expect("a directory");
    let copy = place.path().join("applyset.yaml");
    fs::copy(Path::new(CHECKOUT).join("plugin.yaml"), &copy).expect("a copy");
    validate(&krew(), &copy);
}

/// The template for krew-release-bot makes what the release makes of plugin.yaml.
#[test]
fn krew_release_bot_makes_the_manifest_of_the_release() {
    let programs = krew();
    let release = Release::of_stand_ins();
    let mut template = Command::new(programs.join("krewtemplate"));
    template.arg(Path::new(CHECKOUT).join(".krew.yaml"));
    let rendered = text(&succeed(template.arg(VERSION).arg(release.file("SHA256SUMS"))));
    assert_eq!(yaml(&rendered), yaml(&release.read("applyset.yaml")));

    // And of no other: the tag is not written into it.
    let template = fs::read_to_string(Path::new(CHECKOUT).join(".krew.yaml")).expect("a template");
    assert!(!template.contains(NUMBER));
}

/// A machine makes only the archives of its own platform.
#[test]
fn the_manifest_names_only_archives_that_are_there() {
    let release = Release::of_stand_ins();
    for (os, arch) in PLATFORMS.into_iter().filter(|platform| *platform != here()) {
        fs::remove_file(release.file(&archive_on(os, arch))).expect("an archive");
    }
    let release = release.made(&["index"]);
    let manifest = yaml(&release.read("applyset.yaml"));
    let platforms = manifest["spec"]["platforms"].as_array().expect("platforms");
    assert_eq!(platforms.len(), 1, "{platforms:?}");
    let (os, arch) = here();
    assert_eq!(
        platforms[0]["uri"],
        format!("{PUBLISHED}/{VERSION}/{}", archive_on(os, arch))
    );
    assert!(!release.file("packages").exists(), "others want all archives");
}

/// From the archive and the manifest of a release to a command and its completion, by krew.
#[test]
fn krew_installs_what_a_release_holds() {
    let programs = krew();
    let release = Release::of_this_program();
    validate(&programs, &release.file("applyset.yaml"));

    for (os, arch) in PLATFORMS.into_iter().filter(|platform| *platform != here()) {
        let krew = Krew::new(&programs);
        krew.install(&release, (os, arch));
        let program = fs::read_to_string(krew.file(VERSION, program_on(os)));
        assert_eq!(program.expect("the stand-in"), stand_in(os, arch));
    }

    let krew = Krew::new(&programs);
    krew.install(&release, here());
    let version = krew.kubectl(&["applyset", "version"]);
    assert_eq!(version, format!("kubectl-applyset {VERSION}\n"));
    for file in ["LICENSE", "sbom.cdx.json", "completions/kubectl-applyset.bash"] {
        assert!(krew.file(VERSION, file).is_file(), "{file}");
    }
    // A page for the program and one for each command but `help`; a directive ends the list.
    let commands = krew.kubectl(&["applyset", "__complete", ""]);
    let pages = fs::read_dir(krew.file(VERSION, "man")).expect("pages").count();
    assert_eq!(pages, commands.lines().count() - 1);

    // What krew reports people to do after the installation.
    let manifest = release.read("applyset.yaml");
    let copy = manifest.lines().find(|line| line.trim_start().starts_with("cp "));
    let mut shell = krew.command(Path::new("sh"));
    succeed(shell.args(["-c", copy.expect("a caveat")]));
    let offered = krew.kubectl(&["__complete", "applyset", "vie"]);
    assert!(offered.starts_with("view\t"), "{offered}");
}

/// A checkout of an earlier version, with what a release is made of.
fn earlier_checkout() -> TempDir {
    let checkout = tempfile::tempdir().expect("a directory");
    let mut copy = Command::new("cp");
    copy.args([
        "-r",
        "packaging",
        "completions",
        "LICENSE",
        "plugin.yaml",
        "Cargo.toml",
    ]);
    succeed(copy.arg(checkout.path()).current_dir(CHECKOUT));
    for (file, version) in [
        ("plugin.yaml", VERSION),
        ("Cargo.toml", &format!("version = \"{NUMBER}\"")),
    ] {
        let file = checkout.path().join(file);
        let text = fs::read_to_string(&file).expect("a file");
        let text = text.replace(version, &version.replace(NUMBER, EARLIER));
        fs::write(&file, text).expect("a file");
    }
    checkout
}

/// A repository that krew reads as an index.
struct Index {
    repository: TempDir,
}

impl Index {
    fn new() -> Self {
        let index = Self {
            repository: tempfile::tempdir().expect("a directory"),
        };
        index.git(&["init", "--quiet"]);
        index
    }

    /// Commits what a release made for package managers.
    fn publish(&self, release: &Release) {
        let packages = format!("{}/.", release.file("packages").display());
        succeed(
            Command::new("cp")
                .arg("-r")
                .arg(packages)
                .arg(self.repository.path()),
        );
        self.git(&["add", "--all"]);
        let author = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        self.git(&[&author[..], &["commit", "--quiet", "--message", "a release"]].concat());
    }

    fn git(&self, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(self.repository.path());
        succeed(git.env("GIT_CONFIG_GLOBAL", "/dev/null"));
    }
}

/// The way of people who add our index: install, upgrade when a new version is published, remove.
#[test]
fn krew_installs_upgrades_and_removes_from_an_index() {
    let published = tempfile::tempdir().expect("a directory");
    let root = published.path().to_owned();
    let web = Web::plain(move |path, _| {
        fs::read(root.join(path.trim_start_matches('/'))).map_or_else(|_| Answer::status(404), Answer::bytes)
    });
    let (os, arch) = here();
    let publish = |release: &Release, version: &str| {
        let archive = archive_on(os, arch).replace(VERSION, version);
        let directory = published.path().join(version);
        fs::create_dir(&directory).expect("a directory");
        fs::copy(release.file(&archive), directory.join(&archive)).expect("an archive");
    };
    let index = Index::new();
    let krew = Krew::new(&krew());
    let earlier = format!("v{EARLIER}");

    let checkout = earlier_checkout();
    let release = Release::at(checkout.path(), &web.url(""));
    release.add_parts(|file| {
        let version = format!("version) echo kubectl-applyset {earlier} ;;");
        let script = format!("#!/bin/sh\ncase $1 in {version} *) exec '{PROGRAM}' \"$@\" ;; esac\n");
        write_script(file, &script);
    });
    let release = release.made(&["archives", "index"]);
    publish(&release, &earlier);
    index.publish(&release);
    let repository = index.repository.path().to_str().expect("a name");
    krew.kubectl(&["krew", "index", "add", "applyset", repository]);
    krew.kubectl(&["krew", "install", "applyset/applyset"]);
    let version = krew.kubectl(&["applyset", "version"]);
    assert_eq!(version, format!("kubectl-applyset {earlier}\n"));

    let release = Release::at(Path::new(CHECKOUT), &web.url(""));
    release.add_parts(|file| write_script(file, &stand_in(os, arch)));
    let release = release.made(&["archives", "index"]);
    publish(&release, VERSION);
    index.publish(&release);
    krew.kubectl(&["krew", "upgrade", "applyset"]);
    let version = krew.kubectl(&["applyset", "version"]);
    assert_eq!(version, format!("kubectl-applyset {VERSION}\n"));
    assert!(
        !krew.file(&earlier, "LICENSE").exists(),
        "the earlier version is left"
    );

    krew.kubectl(&["krew", "uninstall", "applyset"]);
    assert!(!krew.file(VERSION, "LICENSE").exists(), "the version is left");
    assert!(
        !krew.root.path().join("bin/kubectl-applyset").exists(),
        "the command is left"
    );
}
