//! The image: a registry takes its layouts, and what the registry hands out is whole, says what it is,
//! and works on a cluster. No container engine is needed: crane reads images, and `unshare` enters the
//! root of one as its user.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use controlplane::ControlPlane;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::packaging::{CHECKOUT, PROGRAM, text};
use crate::support::{Files, cluster, config_map, eventually, go_tools, namespace, succeed, unused_address};

const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
const REVISION: &str = "0123456789abcdef0123456789abcdef01234567";
const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];
const USER: u32 = 65532;

fn here() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    }
}

/// The directory of a release, with stand-ins for the programs for Linux and for the packages of Debian.
fn release() -> Files {
    let mut files = Files::new();
    files = files.with("package/usr/bin/sh-real", "#!/bin/true\n");
    files = files.with("package/usr/share/doc/shell/copyright", "free");
    files = files.with("package/usr/share/doc/shell/changelog", "long");
    for arch in ARCHITECTURES {
        for (part, name) in [("parts", "kubectl-applyset"), ("kubectl", "kubectl")] {
            files = files.with(
                &format!("{part}/linux-{arch}/{name}"),
                &format!("{name} on {arch}"),
            );
        }
        add_package(&files, arch);
    }
    files
}

/// Builds a Debian package with a shell, which is a link, and with a script that has no effect.
fn add_package(files: &Files, arch: &str) {
    let control = format!(
        "Package: shell\nVersion: 1\nArchitecture: {arch}\nMaintainer: a <a@example.com>\nDescription: a\n"
    );
    let root = files.path("package");
    let link = root.join("usr/bin/sh");
    if fs::symlink_metadata(&link).is_err() {
        std::os::unix::fs::symlink("sh-real", link).expect("a link");
    }
    put(&root, "DEBIAN/control", control.as_bytes());
    put(&root, "DEBIAN/postinst", b"#!/bin/sh\nexit 1\n");
    let place = files.path(&format!("shell/linux-{arch}"));
    fs::create_dir_all(&place).expect("a directory");
    succeed(Command::new("chmod").args(["-R", "755"]).arg(&root));
    let mut build = Command::new("dpkg-deb");
    build
        .args(["--build", "--root-owner-group"])
        .arg(&root)
        .arg(place);
    succeed(build.stdout(Stdio::null()));
}

/// Runs a step, and returns the lines that it prints: digests or references.
fn made(release: &Files, step: &[&str]) -> Vec<String> {
    let mut image = Command::new("packaging/image");
    image
        .args(step)
        .current_dir(CHECKOUT)
        .env("DIST", release.directory())
        .env("REVISION", REVISION)
        .env("SOURCE_DATE_EPOCH", "1700000000");
    let printed = text(&succeed(&mut image));
    printed.lines().map(str::to_owned).collect()
}

#[test]
fn layouts_of_the_same_files_are_the_same() {
    let make = |mode: &str| {
        let release = release();
        let mut chmod = Command::new("chmod");
        succeed(chmod.args(["-R", mode]).arg(release.path("parts")));
        made(&release, &["layouts"])
    };
    let (one, other) = (make("u=rwX,go="), make("a=rwx"));
    assert_eq!(one.iter().collect::<BTreeSet<_>>().len(), 3);
    assert_eq!(one, other);
}

/// A registry in memory, which ends with this value.
struct Registry {
    process: Child,
    crane: PathBuf,
    repository: String,
}

impl Registry {
    fn start() -> Self {
        let crane = go_tools("crane", &["github.com/google/go-containerregistry/cmd/crane"]).join("crane");
        let address = unused_address().to_string();
        let mut serve = Command::new(&crane);
        serve.args(["registry", "serve", "--address", &address]);
        let process = serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let registry = Self {
            process: process.expect("a registry"),
            crane,
            repository: format!("{address}/applyset/kubectl-applyset"),
        };
        eventually("a registry", || std::net::TcpStream::connect(&address).ok());
        registry
    }

    /// What crane prints; NAME stands for the repository and a name in it.
    fn ask(&self, command: &str, name: &str) -> String {
        let reference = format!("{}{name}", self.repository);
        let words = command.split(' ').map(|word| word.replace("NAME", &reference));
        text(&succeed(Command::new(&self.crane).args(words)))
    }

    fn json(&self, command: &str, name: &str) -> Value {
        serde_json::from_str(&self.ask(command, name)).expect("JSON")
    }

    fn names(&self) -> BTreeSet<String> {
        let listed = self.ask("ls NAME", "");
        listed.lines().map(str::to_owned).collect()
    }

    /// Unpacks the image of an architecture, and returns its root with a line for each entry: mode,
    /// owner and path.
    fn unpacked(&self, arch: &str, name: &str) -> (TempDir, Vec<String>) {
        let root = tempfile::tempdir().expect("a directory");
        let files = Files::new();
        let archive = files.path("image.tar").display().to_string();
        self.ask(&format!("export --platform linux/{arch} NAME {archive}"), name);
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--verbose", "--verbose", "--numeric-owner"])
            .args(["--no-same-owner", "--preserve-permissions", "--file", &archive])
            .current_dir(root.path());
        let entries = text(&succeed(&mut tar));
        let words = entries
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        let entries = words.map(|words| format!("{} {} {}", words[0], words[1], words[words.len() - 1]));
        (root, entries.collect())
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_registry_hands_out_images_that_work() {
    let release = release();
    let digests = made(&release, &["layouts"]);
    let registry = Registry::start();
    let pushed = made(&release, &["push", &registry.repository]);
    for (reference, digest) in pushed.iter().zip(&digests) {
        assert_eq!(*reference, format!("{}@{digest}", registry.repository));
    }
    let fixed = ["", "-kubectl", "-shell"].map(|variant| format!("{VERSION}{variant}"));
    assert_eq!(registry.names(), fixed.clone().into());
    made(&release, &["push", &registry.repository, "moving"]);
    let names: Vec<(String, usize)> = (fixed.into_iter().zip(0..))
        .chain(
            ["latest", "kubectl", "shell"]
                .map(str::to_owned)
                .into_iter()
                .zip(0..),
        )
        .chain(names_of_versions())
        .collect();
    let all: BTreeSet<String> = names.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(registry.names(), all);
    for (name, index) in names {
        let name = format!(":{name}");
        assert_eq!(
            registry.ask("digest NAME", &name).trim(),
            digests[index],
            "{name}"
        );
        // All digests and sizes, for each architecture.
        registry.ask("validate --remote NAME", &name);
    }

    assert_says_what_it_is(&registry);
    for arch in ARCHITECTURES {
        assert_holds(&registry.unpacked(arch, ":latest"), arch, &["kubectl-applyset"]);
        assert_has_a_shell(&registry, arch);
        let unpacked = registry.unpacked(arch, ":kubectl");
        assert_holds(&unpacked, arch, &["kubectl", "kubectl-applyset"]);
        if arch == here() {
            assert_works(unpacked.0.path());
        }
    }
}

/// The names that lead to the newest release of a major and of a minor version, each with the number of its image.
fn names_of_versions() -> impl Iterator<Item = (String, usize)> {
    let major = concat!("v", env!("CARGO_PKG_VERSION_MAJOR"));
    let minor = format!("{major}.{}", env!("CARGO_PKG_VERSION_MINOR"));
    let variants = ["", "-kubectl", "-shell"].into_iter().zip(0..);
    variants.flat_map(move |(variant, index)| {
        [major, &minor].map(|version| (format!("{version}{variant}"), index))
    })
}

/// Asserts that the image for pipelines holds what its packages hold, and starts as a CI system wants it.
fn assert_has_a_shell(registry: &Registry, arch: &str) {
    let unpacked = registry.unpacked(arch, ":shell");
    assert_holds(&unpacked, arch, &["kubectl", "kubectl-applyset"]);
    let (root, entries) = unpacked;
    for entry in [
        "-rwxr-xr-x 0/0 usr/bin/sh-real",
        "-rwxr-xr-x 0/0 usr/share/doc/shell/copyright",
        "-rw-r--r-- 0/0 var/lib/dpkg/status.d/shell",
    ] {
        assert!(entries.iter().any(|line| line == entry), "{entry}: {entries:#?}");
    }
    let link = fs::read_link(root.path().join("usr/bin/sh")).expect("a link");
    assert_eq!(link, Path::new("sh-real"));
    assert!(!root.path().join("usr/share/doc/shell/changelog").exists());
    let image = registry.json(&format!("config --platform linux/{arch} NAME"), ":shell");
    let config = &image["config"];
    assert_eq!(
        [&config["Entrypoint"], &config["Cmd"], &config["Env"][0]],
        [
            &Value::Null,
            &json!(["bash"]),
            &json!("PATH=/usr/local/bin:/usr/bin:/bin")
        ]
    );
}

/// What the scripts for GitLab CI, Tekton and Argo run is there, with the libraries that it needs.
#[test]
#[ignore = "downloads packages of Debian: .ci/run debian"]
fn the_image_for_pipelines_runs_its_programs() {
    let release = release();
    made(&release, &["shell"]);
    made(&release, &["layouts"]);
    let registry = Registry::start();
    made(&release, &["push", &registry.repository, "moving"]);
    let (root, _) = registry.unpacked(here(), ":shell");
    // A container engine brings its own.
    put(root.path(), "dev/null", b"");
    succeed(Command::new("chmod").arg("666").arg(root.path().join("dev/null")));
    put(root.path(), "tmp/try", TRY.as_bytes());
    let printed = run(root.path(), "sh /tmp/try");
    assert_eq!(printed.lines().collect::<Vec<_>>(), ["b", "main", "https"]);
    // Without a library, each of its files would fail in a pipeline.
    for program in fs::read_dir(root.path().join("usr/bin")).expect("programs") {
        let name = program
            .expect("a program")
            .file_name()
            .into_string()
            .expect("UTF-8");
        run(root.path(), &format!("bash /tmp/try /usr/bin/{name}"));
    }
}

/// Prints three lines if all programs work, or checks the libraries of one.
const TRY: &str = r#"set -eu
if [ "$#" -eq 1 ]; then
    loader=$(echo /usr/lib*/ld-linux-*)
    if ! "$loader" --verify "$1"; then exit 0; fi
    "$loader" --list "$1" >/tmp/list
    exit
fi
cd "$(mktemp -d)"
printf '{"a": ["x", "b"]}' | jq -r '.a[1]'
git init --quiet --initial-branch=main .
git ls-remote .
git symbolic-ref --short HEAD
printf 'capabilities

' | git remote-https origin https://127.0.0.1:1/ | grep -q fetch
echo https
printf one | sha256sum | cut -d' ' -f1 | awk '{ if (length($1) != 64) exit 1 }'
"#;

/// A cluster that wants `runAsNonRoot` reads the number: it knows no names of users.
fn assert_says_what_it_is(registry: &Registry) {
    for arch in ARCHITECTURES {
        let image = registry.json(&format!("config --platform linux/{arch} NAME"), ":latest");
        assert_eq!(image["architecture"], arch);
        let mut config = image["config"].clone();
        let labels = config["Labels"].take();
        let wanted = json!({
            "User": format!("{USER}:{USER}"),
            "Entrypoint": ["kubectl-applyset"],
            "Env": ["PATH=/usr/local/bin", "HOME=/home/applyset"],
            "WorkingDir": "/home/applyset",
            "Labels": null,
        });
        assert_eq!(config, wanted);
        for (label, value) in [
            ("version", VERSION),
            ("revision", REVISION),
            ("created", "2023-11-14T22:13:20Z"),
            ("licenses", "Apache-2.0"),
            ("source", "https://github.com/kubectl-applyset/kubectl-applyset"),
        ] {
            assert_eq!(labels[format!("org.opencontainers.image.{label}")], value);
        }
        let manifest = registry.json(&format!("manifest --platform linux/{arch} NAME"), ":latest");
        assert_eq!(manifest["annotations"], labels);
        assert_eq!(registry.json("manifest NAME", ":latest")["annotations"], labels);
    }
}

/// Asserts that an image holds these programs, and what they need.
fn assert_holds((root, entries): &(TempDir, Vec<String>), arch: &str, programs: &[&str]) {
    let directory = root.path().join("usr/local/bin");
    let count = fs::read_dir(&directory).expect("programs").count();
    assert_eq!(count, programs.len());
    let mut wanted = vec![
        "drwxrwxrwt 0/0 tmp".to_owned(),
        format!("drwxr-xr-x {USER}/{USER} home/applyset"),
        "-rw-r--r-- 0/0 etc/passwd".to_owned(),
        "-rw-r--r-- 0/0 etc/ssl/certs/ca-certificates.crt".to_owned(),
        "-rw-r--r-- 0/0 usr/local/share/doc/kubectl-applyset/LICENSE".to_owned(),
    ];
    for program in programs {
        wanted.push(format!("-rwxr-xr-x 0/0 usr/local/bin/{program}"));
        let content = fs::read_to_string(directory.join(program)).expect("a program");
        assert_eq!(content, format!("{program} on {arch}"));
    }
    for entry in wanted {
        assert!(entries.contains(&entry), "{entry}: {entries:#?}");
    }
}

fn put(root: &Path, path: &str, content: &[u8]) {
    let file = root.join(path.trim_start_matches('/'));
    fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
    fs::write(file, content).expect("a file");
}

/// Puts real programs in the place of the stand-ins, with the modes of these: this build's and that of the
/// control plane. A release is linked statically, and a test build is not.
fn put_programs(root: &Path) {
    let kubectl = ControlPlane::shared().kubectl();
    for (place, program) in [
        ("usr/local/bin/kubectl-applyset", Path::new(PROGRAM)),
        ("usr/local/bin/kubectl", kubectl),
    ] {
        put(root, place, &fs::read(program).expect("a program"));
    }
    let listed = text(&succeed(Command::new("ldd").arg(PROGRAM)));
    for library in listed.split_whitespace().filter(|word| word.starts_with('/')) {
        put(root, library, &fs::read(library).expect("a library"));
        let file = root.join(library.trim_start_matches('/'));
        succeed(Command::new("chmod").arg("755").arg(file));
    }
}

/// Runs a command in this root, with the environment of the image, as its user.
fn run(root: &Path, command: &str) -> String {
    let mut program = Command::new("unshare");
    program
        .args(["--user", "--map-user=65532", "--map-group=65532"])
        .arg(format!("--root={}", root.display()))
        .arg("--wd=/home/applyset")
        .args(command.split(' '))
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", "/home/applyset");
    text(&succeed(&mut program))
}

/// Asserts that both programs work in this root.
fn assert_works(root: &Path) {
    put_programs(root);
    let place = namespace("image");
    // Certificates in files of this machine are not in the image.
    let flatten = ["config", "view", "--raw", "--flatten"];
    let kubeconfig = ControlPlane::shared().run_kubectl(flatten);
    put(root, "kubeconfig", &kubeconfig.expect("a kubeconfig").stdout);
    let wanted = config_map(&place, "web", "from the image");
    put(root, "work/web.json", wanted.to_string().as_bytes());
    let version = run(root, "kubectl-applyset version");
    assert_eq!(version, format!("kubectl-applyset {VERSION}\n"));
    let set = format!("web --kubeconfig=/kubeconfig -n {place}");
    run(root, &format!("kubectl applyset apply {set} -f /work"));
    assert!(cluster().live(&wanted).is_some());
    // Plans are written through a temporary file.
    let plan = "--out /tmp/plan.json";
    run(root, &format!("kubectl-applyset diff {set} -f /work {plan}"));
    run(root, &format!("kubectl-applyset delete {set} --yes"));
    assert!(cluster().live(&wanted).is_none());
}
