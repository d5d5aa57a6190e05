//! The image: what its layouts hold, that they are the same from the same files, and that the
//! programs run in it. No container engine is needed: a layout is files, and `unshare` enters its
//! root as the user of the image.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use controlplane::ControlPlane;
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::packaging::{CHECKOUT, PROGRAM, text};
use crate::support::{cluster, config_map, go_tools, namespace, succeed};

const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];
const TYPE: &str = "application/vnd.oci.image.";
const USER: u32 = 65532;

fn here() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    }
}

/// The directory of a release, with programs for Linux.
struct Release {
    place: TempDir,
}

impl Release {
    /// Stand-ins for all programs.
    fn of_stand_ins() -> Self {
        let release = Self {
            place: tempfile::tempdir().expect("a directory"),
        };
        for arch in ARCHITECTURES {
            release.put("parts", arch, "kubectl-applyset");
            release.put("kubectl", arch, "kubectl");
        }
        release
    }

    fn put(&self, part: &str, arch: &str, name: &str) -> PathBuf {
        let directory = self.place.path().join(part).join(format!("linux-{arch}"));
        fs::create_dir_all(&directory).expect("a directory");
        let file = directory.join(name);
        fs::write(&file, format!("{name} on {arch}")).expect("a stand-in");
        file
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut image = Command::new("packaging/image");
        image.args(arguments).current_dir(CHECKOUT);
        image
            .env("DIST", self.place.path())
            .env("REVISION", "0123456789abcdef0123456789abcdef01234567")
            .env("SOURCE_DATE_EPOCH", "1700000000");
        image
    }

    /// Makes the layouts, and returns the digests that are printed.
    fn layouts(&self) -> Vec<String> {
        let printed = text(&succeed(&mut self.command(&["layouts"])));
        printed.lines().map(str::to_owned).collect()
    }

    fn layout(&self, name: &str) -> Layout {
        Layout {
            root: self.place.path().join(name),
        }
    }
}

struct Layout {
    root: PathBuf,
}

impl Layout {
    fn json(&self, file: &str) -> Value {
        let content = fs::read(self.root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        serde_json::from_slice(&content).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// The file of a blob, which has the digest and the size that its descriptor names.
    fn file(&self, descriptor: &Value) -> PathBuf {
        let digest = descriptor["digest"].as_str().expect("a digest");
        let name = digest.strip_prefix("sha256:").expect("SHA-256");
        let file = self.root.join("blobs/sha256").join(name);
        let content = fs::read(&file).unwrap_or_else(|error| panic!("{digest}: {error}"));
        assert_eq!(descriptor["size"], content.len());
        assert_eq!(sha256(&content), digest);
        file
    }

    fn blob(&self, descriptor: &Value) -> Value {
        serde_json::from_slice(&fs::read(self.file(descriptor)).expect("a blob")).expect("JSON")
    }

    /// The one image of the layout: an index of platforms.
    fn index(&self) -> (Value, Value) {
        assert_eq!(self.json("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}));
        let outer = self.json("index.json");
        let entries = outer["manifests"].as_array().expect("manifests");
        let [entry] = entries.as_slice() else {
            panic!("{outer}");
        };
        assert_eq!(entry["annotations"]["org.opencontainers.image.ref.name"], VERSION);
        (entry.clone(), self.blob(entry))
    }

    /// The manifest of an architecture.
    fn manifest(&self, arch: &str) -> Value {
        let (_, index) = self.index();
        let manifests = index["manifests"].as_array().expect("manifests");
        let mut of_arch = manifests
            .iter()
            .filter(|manifest| manifest["platform"] == json!({"os": "linux", "architecture": arch}));
        self.blob(of_arch.next().expect("a manifest of the architecture"))
    }

    /// Unpacks the layers of an architecture into a directory.
    fn unpack(&self, arch: &str, root: &Path) {
        for layer in self.manifest(arch)["layers"].as_array().expect("layers") {
            let mut tar = Command::new("tar");
            tar.args(["--extract", "--gzip", "--no-same-owner", "--preserve-permissions"])
                .arg("--directory")
                .arg(root)
                .arg("--file")
                .arg(self.file(layer));
            succeed(&mut tar);
        }
    }
}

fn sha256(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    digest
        .iter()
        .fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

/// Mode, owner and path of what a layer holds.
fn entries(layer: &Path) -> Vec<String> {
    let mut tar = Command::new("tar");
    tar.args(["--list", "--verbose", "--numeric-owner", "--gzip", "--file"])
        .arg(layer);
    let listed = text(&succeed(&mut tar));
    let entry = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        format!("{} {} {}", words[0], words[1], words[words.len() - 1])
    };
    listed.lines().map(entry).collect()
}

/// Every file of the layouts is reached from their index, under its own digest.
#[test]
fn layouts_hold_an_image_for_each_architecture() {
    let release = Release::of_stand_ins();
    let printed = release.layouts();
    for (name, digest, programs) in [
        ("image", &printed[0], &["kubectl-applyset"][..]),
        ("image-kubectl", &printed[1], &["kubectl", "kubectl-applyset"]),
    ] {
        let layout = release.layout(name);
        let (entry, index) = layout.index();
        assert_eq!(entry["digest"], digest.as_str());
        assert_eq!(entry["mediaType"], format!("{TYPE}index.v1+json"));
        let mut reached = BTreeSet::from([layout.file(&entry)]);
        let manifests = index["manifests"].as_array().expect("manifests");
        assert_eq!(manifests.len(), ARCHITECTURES.len());
        for (descriptor, arch) in manifests.iter().zip(ARCHITECTURES) {
            assert_eq!(descriptor["platform"]["architecture"], arch);
            let manifest = layout.blob(descriptor);
            reached.extend([layout.file(descriptor), layout.file(&manifest["config"])]);
            let config = layout.blob(&manifest["config"]);
            assert_eq!(config["architecture"], arch);
            assert_eq!(config["os"], "linux");
            let layers = manifest["layers"].as_array().expect("layers");
            assert_eq!(layers.len(), 1 + programs.len());
            let unpacked = config["rootfs"]["diff_ids"].as_array().expect("digests");
            assert_eq!(unpacked.len(), layers.len());
            for (layer, digest) in layers.iter().zip(unpacked) {
                let file = layout.file(layer);
                let mut content = Vec::new();
                let packed = fs::File::open(&file).expect("a layer");
                GzDecoder::new(packed).read_to_end(&mut content).expect("gzip");
                assert_eq!(*digest, sha256(&content));
                reached.insert(file);
            }
            let last = layers.iter().skip(1).zip(programs);
            for (layer, program) in last {
                let last = entries(&layout.file(layer)).pop().expect("an entry");
                assert_eq!(last, format!("-rwxr-xr-x 0/0 usr/local/bin/{program}"));
            }
        }
        let blobs = fs::read_dir(layout.root.join("blobs/sha256")).expect("blobs");
        let blobs: BTreeSet<_> = blobs.map(|blob| blob.expect("a blob").path()).collect();
        assert_eq!(blobs, reached, "{name}");
    }
}

/// A cluster that wants `runAsNonRoot` reads the number: it knows no names of users.
#[test]
fn images_run_as_a_number_and_say_what_they_are() {
    let release = Release::of_stand_ins();
    release.layouts();
    let layout = release.layout("image");
    let manifest = layout.manifest("amd64");
    let config = &layout.blob(&manifest["config"])["config"];
    assert_eq!(config["User"], format!("{USER}:{USER}"));
    assert_eq!(config["Entrypoint"], json!(["kubectl-applyset"]));
    assert_eq!(
        config["Env"],
        json!(["PATH=/usr/local/bin", "HOME=/home/applyset"])
    );
    assert_eq!(config["WorkingDir"], "/home/applyset");
    let labels = &config["Labels"];
    for (label, value) in [
        ("version", VERSION),
        ("revision", "0123456789abcdef0123456789abcdef01234567"),
        ("created", "2023-11-14T22:13:20Z"),
        ("licenses", "Apache-2.0"),
        ("source", "https://github.com/kubectl-applyset/kubectl-applyset"),
    ] {
        assert_eq!(labels[format!("org.opencontainers.image.{label}")], value);
    }
    assert_eq!(manifest["annotations"], *labels);
    assert_eq!(layout.index().1["annotations"], *labels);

    let base = entries(&layout.file(&manifest["layers"][0]));
    for entry in [
        "drwxrwxrwt 0/0 tmp/".to_owned(),
        format!("drwxr-xr-x {USER}/{USER} home/applyset/"),
        "-rw-r--r-- 0/0 etc/passwd".to_owned(),
        "-rw-r--r-- 0/0 etc/ssl/certs/ca-certificates.crt".to_owned(),
        "-rw-r--r-- 0/0 usr/local/share/doc/kubectl-applyset/LICENSE".to_owned(),
    ] {
        assert!(base.contains(&entry), "{entry}: {base:#?}");
    }
}

#[test]
fn layouts_of_the_same_files_are_the_same() {
    let make = |mode: &str| {
        let release = Release::of_stand_ins();
        for arch in ARCHITECTURES {
            let file = release.put("parts", arch, "kubectl-applyset");
            succeed(Command::new("chmod").arg(mode).arg(file));
        }
        release.layouts()
    };
    let (one, other) = (make("600"), make("777"));
    assert_eq!(one.len(), 2);
    assert_ne!(one[0], one[1]);
    assert_eq!(one, other);
}

/// The root of an image, unpacked, with the files that the test puts into it.
struct Root {
    place: TempDir,
}

impl Root {
    /// The image with kubectl. The program is this build's and kubectl that of the control plane,
    /// both without symbols, which take long to pack.
    fn new() -> Self {
        let release = Release::of_stand_ins();
        for (part, name, program) in [
            ("parts", "kubectl-applyset", Path::new(PROGRAM)),
            ("kubectl", "kubectl", ControlPlane::shared().kubectl()),
        ] {
            let file = release.put(part, here(), name);
            succeed(Command::new("strip").arg("-o").arg(file).arg(program));
        }
        release.layouts();
        let root = Self {
            place: tempfile::tempdir().expect("a directory"),
        };
        release.layout("image-kubectl").unpack(here(), root.place.path());
        root.put_libraries();
        root
    }

    /// A release is linked statically, and a test build is not.
    fn put_libraries(&self) {
        let listed = text(&succeed(Command::new("ldd").arg(PROGRAM)));
        let paths = listed.split_whitespace().filter(|word| word.starts_with('/'));
        for library in paths {
            self.put(library, &fs::read(library).expect("a library"));
            let file = self.place.path().join(&library[1..]);
            succeed(Command::new("chmod").arg("755").arg(file));
        }
    }

    fn put(&self, path: &str, content: &[u8]) {
        let file = self.place.path().join(&path[1..]);
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        fs::write(file, content).expect("a file");
    }

    /// A program of the image with the environment of the image, as its user.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("unshare");
        command
            .args([
                "--user",
                &format!("--map-user={USER}"),
                &format!("--map-group={USER}"),
            ])
            .arg(format!("--root={}", self.place.path().display()))
            .args(["--wd=/home/applyset", program])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", "/home/applyset");
        command
    }
}

#[test]
fn programs_of_the_image_work_on_a_cluster() {
    let root = Root::new();
    let place = namespace("image");
    // Certificates in files of this machine are not in the image.
    let flatten = ["config", "view", "--raw", "--flatten"];
    let kubeconfig = ControlPlane::shared().run_kubectl(flatten);
    root.put("/kubeconfig", &kubeconfig.expect("a kubeconfig").stdout);
    let wanted = config_map(&place, "web", "from the image");
    root.put("/work/web.json", wanted.to_string().as_bytes());

    let version = text(&succeed(root.command("kubectl-applyset").arg("version")));
    assert_eq!(version, format!("kubectl-applyset {VERSION}\n"));
    let mut plugin = root.command("kubectl");
    plugin.args([
        "applyset",
        "apply",
        "web",
        "--kubeconfig=/kubeconfig",
        "-f",
        "/work",
        "-n",
        &place,
    ]);
    succeed(&mut plugin);
    assert!(cluster().live(&wanted).is_some());

    // Plans are written through a temporary file.
    let mut diff = root.command("kubectl-applyset");
    diff.args([
        "diff",
        "web",
        "--kubeconfig=/kubeconfig",
        "-f",
        "/work",
        "-n",
        &place,
    ])
    .args(["--out", "/tmp/plan.json"]);
    succeed(&mut diff);
    let mut delete = root.command("kubectl-applyset");
    delete.args(["delete", "web", "--kubeconfig=/kubeconfig", "-n", &place, "--yes"]);
    succeed(&mut delete);
    assert!(cluster().live(&wanted).is_none());
}

/// A registry in memory, which ends with this value.
struct Registry {
    process: Child,
    address: String,
}

impl Registry {
    fn start(crane: &Path) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let mut serve = Command::new(crane);
        serve.args(["registry", "serve", "--address", &address]);
        let process = serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let registry = Self {
            process: process.expect("a registry"),
            address,
        };
        crate::support::eventually("a registry", || {
            std::net::TcpStream::connect(&registry.address).ok()
        });
        registry
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a registry hands out has the digests of the layouts, under all names.
#[test]
fn a_registry_takes_the_layouts_as_they_are() {
    let crane = go_tools("crane", &["github.com/google/go-containerregistry/cmd/crane"]).join("crane");
    let registry = Registry::start(&crane);
    let release = Release::of_stand_ins();
    let digests = release.layouts();
    let repository = format!("{}/applyset/kubectl-applyset", registry.address);
    let names = || {
        let listed = text(&succeed(Command::new(&crane).args(["ls", &repository])));
        listed.lines().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let with_kubectl = format!("{VERSION}-kubectl");

    let pushed = text(&succeed(&mut release.command(&["push", &repository])));
    let references: Vec<_> = digests
        .iter()
        .map(|digest| format!("{repository}@{digest}"))
        .collect();
    assert_eq!(pushed.lines().collect::<Vec<_>>(), references);
    assert_eq!(names(), [VERSION, &with_kubectl].map(str::to_owned).into());

    succeed(&mut release.command(&["push", &repository, "moving"]));
    let all = [VERSION, &with_kubectl, "latest", "kubectl"];
    assert_eq!(names(), all.map(str::to_owned).into());
    for (name, digest) in [
        (VERSION, &digests[0]),
        ("latest", &digests[0]),
        (&with_kubectl, &digests[1]),
        ("kubectl", &digests[1]),
    ] {
        let mut ask = Command::new(&crane);
        let answer = succeed(ask.arg("digest").arg(format!("{repository}:{name}")));
        assert_eq!(text(&answer).trim(), digest, "{name}");
    }
    let reference = format!("{repository}:latest");
    succeed(Command::new(&crane).args(["validate", "--remote", &reference]));
}
