//! The manifest for krew: what krew and its validator say of it, and what krew installs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use controlplane::ControlPlane;
use tempfile::TempDir;

use super::{NUMBER, PLATFORMS, Release, VERSION, archive_on, here, program_on, stand_in, yaml};
use crate::packaging::{CHECKOUT, search_path_behind, text};
use crate::support::{Answer, Web, go_tools, succeed};

/// A version that people have installed before.
const EARLIER: &str = "v0.0.9";

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

/// From the archive and the manifest of a release to a command, by krew: also to those of other systems.
#[test]
fn krew_installs_the_archives_of_all_platforms() {
    let programs = krew();
    let release = Release::of_stand_ins();
    let manifest = release.file("applyset.yaml");
    // There is nothing to download before the release that this manifest is for.
    let mut validate = Command::new(programs.join("validate-krew-manifest"));
    succeed(validate.arg("-skip-install").arg("-manifest").arg(&manifest));
    let content = yaml(&release.read("applyset.yaml"));
    let description = content["spec"]["shortDescription"]
        .as_str()
        .expect("a description");
    assert!(description.len() <= 50, "krew cuts it: {description}");

    // The template for krew-release-bot makes the same, and of any other tag, too.
    let template = Path::new(CHECKOUT).join(".krew.yaml");
    assert!(
        !fs::read_to_string(&template)
            .expect("a template")
            .contains(NUMBER)
    );
    let mut render = Command::new(programs.join("krewtemplate"));
    render.arg(template).arg(VERSION).arg(release.file("SHA256SUMS"));
    assert_eq!(yaml(&text(&succeed(&mut render))), content);

    for (os, arch) in PLATFORMS {
        let krew = Krew::new(&programs);
        let mut install = krew.command(ControlPlane::shared().kubectl());
        install
            .args(["krew", "install"])
            .arg(format!("--manifest={}", manifest.display()))
            .arg(format!(
                "--archive={}",
                release.file(&archive_on(os, arch)).display()
            ));
        succeed(install.env("KREW_OS", os).env("KREW_ARCH", arch));
        let program = fs::read_to_string(krew.file(VERSION, program_on(os)));
        assert_eq!(program.expect("the stand-in"), stand_in(os, arch));
    }
}

/// Commits the files for package managers of a release, with this version in the place of its own.
fn publish(release: &Release, version: &str, repository: &Path) {
    let manifest = release.read("packages/plugins/applyset.yaml");
    fs::create_dir_all(repository.join("plugins")).expect("a directory");
    let file = repository.join("plugins/applyset.yaml");
    fs::write(file, manifest.replace(VERSION, version)).expect("a manifest");
    for arguments in [
        &["init", "--quiet"][..],
        &["add", "--all"],
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.com",
            "commit",
            "--quiet",
            "--message=a release",
        ],
    ] {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(repository);
        succeed(git.env("GIT_CONFIG_GLOBAL", "/dev/null"));
    }
}

/// The way of people who add our index: install, upgrade when a new version is published, remove.
#[test]
fn krew_installs_upgrades_and_removes_from_an_index() {
    let archive = Release::of_stand_ins();
    let file = archive.file(&archive_on(here().0, here().1));
    let web = Web::plain(move |_, _| Answer::bytes(fs::read(&file).expect("an archive")));
    let release = Release::of_stand_ins().published_at(&web.url(""));
    let index = tempfile::tempdir().expect("a directory");
    let krew = Krew::new(&krew());
    publish(&release, EARLIER, index.path());
    let repository = index.path().to_str().expect("a name");
    krew.kubectl(&["krew", "index", "add", "applyset", repository]);
    krew.kubectl(&["krew", "install", "applyset/applyset"]);
    assert!(krew.file(EARLIER, "LICENSE").is_file());

    publish(&release, VERSION, index.path());
    krew.kubectl(&["krew", "upgrade", "applyset"]);
    assert!(
        !krew.file(EARLIER, "LICENSE").exists(),
        "the earlier version is left"
    );
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

    krew.kubectl(&["krew", "uninstall", "applyset"]);
    assert!(!krew.file(VERSION, "LICENSE").exists(), "the version is left");
    let command = krew.root.path().join("bin/kubectl-applyset");
    assert!(!command.exists(), "the command is left");
}
