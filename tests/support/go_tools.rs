//! Programs that tests run beside ours, built from the Go modules of `tests/tools` in the
//! versions that stand there. The control plane has a module of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::succeed;

/// Builds these commands, and returns the directory of this name that they are in. Go knows
/// what it has built already.
pub(crate) fn go_tools(name: &str, packages: &[&str]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&directory).expect("a directory under target");
    let mut build = Command::new("go");
    build
        .args(["build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-o"])
        .arg(&directory)
        .args(packages)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools"))
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off");
    succeed(&mut build);
    directory
}

/// A directory with `jq` in it; another implementation of the language, which Go can build.
pub(crate) fn jq() -> PathBuf {
    static JQ: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let directory = go_tools("jq", &["github.com/itchyny/gojq/cmd/gojq"]);
        fs::copy(directory.join("gojq"), directory.join("jq")).expect("it was built");
        directory
    };
    JQ.get_or_init(build).clone()
}

/// The files of a Go module. `sum` is its checksum, as go.sum writes it.
pub(crate) fn go_module(module: &str, sum: &str) -> PathBuf {
    let empty = tempfile::tempdir().expect("a directory");
    let mut download = Command::new("go");
    download
        .args(["mod", "download", "-json", module])
        .current_dir(empty.path())
        .env("GOFLAGS", "-mod=mod")
        .env("GOWORK", "off");
    let answer = succeed(&mut download).stdout;
    let answer: serde_json::Value = serde_json::from_slice(&answer).expect("JSON");
    assert_eq!(answer["Sum"], sum, "{module}");
    PathBuf::from(answer["Dir"].as_str().expect("a directory"))
}
