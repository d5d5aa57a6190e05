//! What a release consists of, and what package managers make of it. It is made with Python 3.

mod debian;
mod krew;
mod packages;
mod rpm;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::packaging::{CHECKOUT, PROGRAM, search_path_behind, text};
use crate::support::{Files, succeed};

/// The six platforms of a release, as Go names them.
const PLATFORMS: [(&str, &str); 6] = [
    ("darwin", "amd64"),
    ("darwin", "arm64"),
    ("linux", "amd64"),
    ("linux", "arm64"),
    ("windows", "amd64"),
    ("windows", "arm64"),
];
/// The version of the program, without a `v`.
const NUMBER: &str = env!("CARGO_PKG_VERSION");
pub(crate) const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// Where releases are published.
const PUBLISHED: &str = "https://github.com/kubectl-applyset/kubectl-applyset/releases/download";

/// A release that is made step by step.
pub(crate) struct Release {
    directory: TempDir,
    published: String,
}

impl Release {
    /// Of small stand-ins for the programs of all platforms: a copy of what is made only once.
    pub(crate) fn of_stand_ins() -> Self {
        static MADE: OnceLock<PathBuf> = OnceLock::new();
        let made = MADE.get_or_init(|| {
            let release = Self::new();
            release.add_parts("755");
            let release = release.made(&["archives", "index"]);
            let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("release");
            let _ = fs::remove_dir_all(&place);
            succeed(Command::new("cp").arg("-a").arg(release.directory()).arg(&place));
            place
        });
        let release = Self::new();
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(made.join(".")).arg(release.directory());
        succeed(&mut copy);
        release
    }

    /// Has neither parts nor archives yet.
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a directory"),
            published: PUBLISHED.to_owned(),
        }
    }

    /// The same for downloads from this address.
    fn published_at(mut self, address: &str) -> Self {
        address.clone_into(&mut self.published);
        self.made(&["index"])
    }

    /// The directory with its files.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Adds stand-ins for the programs, with this mode where programs have one.
    fn add_parts(&self, mode: &str) {
        let sboms = self.file("sboms");
        fs::create_dir_all(&sboms).expect("a directory");
        for (os, arch) in PLATFORMS {
            let part = self.file("parts").join(format!("{os}-{arch}"));
            fs::create_dir_all(&part).expect("a directory");
            fs::write(sboms.join(format!("{os}-{arch}.cdx.json")), "{}").expect("a stand-in");
            let file = part.join(program_on(os));
            fs::write(&file, stand_in(os, arch)).expect("a stand-in");
            succeed(Command::new("chmod").arg(mode).arg(file));
        }
    }

    /// The release after these steps.
    fn made(self, steps: &[&str]) -> Self {
        for step in steps {
            succeed(&mut self.step(step));
        }
        self
    }

    fn step(&self, step: &str) -> Command {
        let mut release = Command::new("packaging/release");
        release
            .arg(step)
            .current_dir(CHECKOUT)
            .env("DIST", self.directory.path())
            .env("RELEASES", &self.published)
            .env("SOURCE_DATE_EPOCH", "1700000000");
        release
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Unpacks an archive of this release.
    fn unpack(&self, archive: &str) -> TempDir {
        let place = tempfile::tempdir().expect("a directory");
        let mut tar = Command::new("tar");
        tar.arg("-xzf")
            .arg(self.file(archive))
            .arg("-C")
            .arg(place.path());
        succeed(&mut tar);
        place
    }
}

/// The name of the archive of this version for a platform.
pub(crate) fn archive_on(os: &str, arch: &str) -> String {
    let ending = if os == "windows" { "zip" } else { "tar.gz" };
    format!("kubectl-applyset-{VERSION}-{os}-{arch}.{ending}")
}

/// A program for a platform that runs this one, since each part prints its own manual.
fn stand_in(os: &str, arch: &str) -> String {
    format!("#!/bin/sh\n# of {os} on {arch}\nexec '{PROGRAM}' \"$@\"\n")
}

pub(crate) fn here() -> (&'static str, &'static str) {
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

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("YAML")
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
    let cargo = Files::new().with_script("cargo", "exit 1");

    let made = Command::new("packaging/release")
        .arg("dist")
        .current_dir(CHECKOUT)
        .env("PATH", search_path_behind(&[cargo.directory()]))
        .env("CARGO_TARGET_DIR", place.path().join("built"))
        .env("DIST", place.path().join("dist"))
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output();

    assert_eq!(made.expect("it runs").status.code(), Some(1));
    assert!(!place.path().join("dist").exists());
}

/// Packing the same files at another time makes the same archives, and the same files for package
/// managers.
#[test]
fn archives_of_the_same_files_are_the_same() {
    let other = Release::new();
    other.add_parts("777");
    let files = |release: &Release| {
        let packages = fs::read(release.file("packages.tar.gz")).expect("packages");
        (release.read("SHA256SUMS"), packages)
    };
    let (one, other) = (
        files(&Release::of_stand_ins()),
        files(&other.made(&["archives", "index"])),
    );
    let rpm_packages = 2;
    assert_eq!(one.0.lines().count(), PLATFORMS.len() + rpm_packages);
    assert!(one == other, "{}\n{}", one.0, other.0);
}
