//! The archives of a release, and what krew makes of them. They are made with Python 3.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use controlplane::ControlPlane;
use tempfile::TempDir;

use crate::packaging::{CHECKOUT, PROGRAM, search_path_behind, text};
use crate::support::{go_tools, succeed};

/// The six platforms of a release, as Go names them.
const PLATFORMS: [(&str, &str); 6] = [
    ("darwin", "amd64"),
    ("darwin", "arm64"),
    ("linux", "amd64"),
    ("linux", "arm64"),
    ("windows", "amd64"),
    ("windows", "arm64"),
];
pub(crate) const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// Makes the archives and the manifest for krew below this directory, as a release does, from
/// this program and from stand-ins for those of other platforms.
pub(crate) fn make_archives(directory: &Path, program: impl Fn(&Path)) {
    let sboms = directory.join("sboms");
    fs::create_dir_all(&sboms).expect("a directory");
    for (os, arch) in PLATFORMS {
        let part = directory.join("parts").join(format!("{os}-{arch}"));
        fs::create_dir_all(&part).expect("a directory");
        fs::write(sboms.join(format!("{os}-{arch}.cdx.json")), "{}").expect("a stand-in");
        let file = part.join(program_on(os));
        if (os, arch) == here() {
            program(&file);
        } else {
            fs::write(&file, stand_in(os, arch)).expect("a stand-in");
        }
    }
    for step in ["archives", "index"] {
        let mut release = Command::new("packaging/release");
        release.arg(step).current_dir(CHECKOUT);
        release
            .env("DIST", directory)
            .env("SOURCE_DATE_EPOCH", "1700000000");
        succeed(&mut release);
    }
}

/// A program for another platform. It runs here, since each part prints its own manual.
fn stand_in(os: &str, arch: &str) -> String {
    format!("#!/bin/sh\n# of {os} on {arch}\nexec '{PROGRAM}' \"$@\"\n")
}

fn here() -> (&'static str, &'static str) {
    let arch = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    };
    ("linux", arch)
}

fn program_on(os: &str) -> &'static str {
    if os == "windows" {
        "kubectl-applyset.exe"
    } else {
        "kubectl-applyset"
    }
}

/// Builds krew and the validator of its index, and returns the directory that they are in.
fn krew() -> PathBuf {
    let directory = go_tools(
        "krew",
        &[
            "sigs.k8s.io/krew/cmd/krew",
            "sigs.k8s.io/krew/cmd/validate-krew-manifest",
        ],
    );
    // As kubectl finds it.
    fs::copy(directory.join("krew"), directory.join("kubectl-krew")).expect("krew was built");
    directory
}

/// What krew has installed for a person.
struct Installation {
    root: TempDir,
    krew: PathBuf,
}

impl Installation {
    /// Installs the plugin from the archive for a platform.
    fn new(krew: &Path, release: &Path, (os, arch): (&str, &str)) -> Self {
        let installation = Self {
            root: tempfile::tempdir().expect("a directory"),
            krew: krew.to_owned(),
        };
        let ending = if os == "windows" { "zip" } else { "tar.gz" };
        let archive = release.join(format!("kubectl-applyset-{VERSION}-{os}-{arch}.{ending}"));
        let manifest = release.join("applyset.yaml");
        let mut install = installation.command(ControlPlane::shared().kubectl());
        install
            .args(["krew", "install"])
            .arg(format!("--manifest={}", manifest.display()))
            .arg(format!("--archive={}", archive.display()));
        succeed(install.env("KREW_OS", os).env("KREW_ARCH", arch));
        installation
    }

    /// A file of the archive.
    fn file(&self, name: &str) -> PathBuf {
        self.root.path().join("store/applyset").join(VERSION).join(name)
    }

    fn command(&self, program: &Path) -> Command {
        let kubectl = ControlPlane::shared().kubectl().parent().expect("a directory");
        let bin = self.root.path().join("bin");
        let mut command = Command::new(program);
        command
            .env("HOME", self.root.path())
            .env("KREW_ROOT", self.root.path())
            .env("PATH", search_path_behind(&[&bin, &self.krew, kubectl]));
        command
    }

    /// What kubectl prints.
    fn kubectl(&self, arguments: &[&str]) -> String {
        let mut kubectl = self.command(ControlPlane::shared().kubectl());
        text(&succeed(kubectl.args(arguments)))
    }
}

/// From the archive and the manifest of a release to a command and its completion, by krew.
#[test]
fn krew_installs_what_a_release_holds() {
    let krew = krew();
    let release = tempfile::tempdir().expect("a directory");
    make_archives(release.path(), |file| {
        fs::copy(PROGRAM, file).expect("the program");
    });
    let manifest = release.path().join("applyset.yaml");
    // There is nothing to download before the release that this manifest is for.
    let mut validate = Command::new(krew.join("validate-krew-manifest"));
    succeed(validate.arg("-skip-install").arg("-manifest").arg(&manifest));

    for (os, arch) in PLATFORMS.into_iter().filter(|platform| *platform != here()) {
        let installation = Installation::new(&krew, release.path(), (os, arch));
        let program = fs::read_to_string(installation.file(program_on(os)));
        assert_eq!(program.expect("the stand-in"), stand_in(os, arch));
    }

    let installation = Installation::new(&krew, release.path(), here());
    let version = installation.kubectl(&["applyset", "version"]);
    assert_eq!(version, format!("kubectl-applyset {VERSION}\n"));
    for file in ["LICENSE", "sbom.cdx.json", "completions/kubectl-applyset.bash"] {
        assert!(installation.file(file).is_file(), "{file}");
    }
    // A page for the program and one for each command but `help`; a directive ends the list.
    let commands = installation.kubectl(&["applyset", "__complete", ""]);
    let pages = fs::read_dir(installation.file("man")).expect("pages").count();
    assert_eq!(pages, commands.lines().count() - 1);

    // What krew reports people to do after the installation.
    let manifest = fs::read_to_string(manifest).expect("the manifest");
    let copy = manifest.lines().find(|line| line.trim_start().starts_with("cp "));
    let mut shell = installation.command(Path::new("sh"));
    succeed(shell.args(["-c", copy.expect("a caveat")]));
    let offered = installation.kubectl(&["__complete", "applyset", "vie"]);
    assert!(offered.starts_with("view\t"), "{offered}");
}

/// Beside a program of an earlier build, which must not be taken for the one that is wanted.
#[test]
fn no_archive_is_made_when_the_program_cannot_be_built() {
    let place = tempfile::tempdir().expect("a directory");
    let version = text(&succeed(Command::new("rustc").arg("-vV")));
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let earlier = place
        .path()
        .join("built")
        .join(host.expect("a host"))
        .join("release");
    fs::create_dir_all(&earlier).expect("a directory");
    fs::copy(PROGRAM, earlier.join("kubectl-applyset")).expect("the program");
    let cargo = place.path().join("cargo");
    fs::write(&cargo, "#!/bin/sh\nexit 1\n").expect("a compiler that fails");
    succeed(Command::new("chmod").arg("755").arg(&cargo));

    let made = Command::new("packaging/release")
        .arg("dist")
        .current_dir(CHECKOUT)
        .env("PATH", search_path_behind(&[place.path()]))
        .env("CARGO_TARGET_DIR", place.path().join("built"))
        .env("DIST", place.path().join("dist"))
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output();

    assert_eq!(made.expect("it runs").status.code(), Some(1));
    assert!(!place.path().join("dist").exists());
}

/// Packing the same files at another time makes the same archives.
#[test]
fn archives_of_the_same_files_are_the_same() {
    let make = |umask: &str| {
        let directory = tempfile::tempdir().expect("a directory");
        make_archives(directory.path(), |file| {
            let script = format!("#!/bin/sh\nexec '{PROGRAM}' \"$@\"\n");
            fs::write(file, script).expect("a program");
            succeed(Command::new("chmod").arg(umask).arg(file));
        });
        fs::read_to_string(directory.path().join("SHA256SUMS")).expect("checksums")
    };
    let (one, other) = (make("700"), make("777"));
    assert_eq!(one.lines().count(), PLATFORMS.len());
    assert_eq!(one, other);
}
