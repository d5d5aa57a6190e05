//! Programs that tests run beside ours, from the Python packages in `tests/tools/requirements.txt`.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use super::succeed;

/// Installs the packages into the user's cache unless they are there, and returns the directory of
/// their programs. Each file that is downloaded has a digest in the list.
pub(crate) fn python_tools() -> PathBuf {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/requirements.txt");
    let text = fs::read(&list).unwrap_or_else(|error| panic!("{}: {error}", list.display()));
    let mut digest = String::new();
    for byte in &Sha256::digest(&text)[..8] {
        let _ = write!(digest, "{byte:02x}");
    }
    let home = || PathBuf::from(std::env::var_os("HOME").expect("HOME")).join(".cache");
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from);
    let cache = cache.join("kubectl-applyset");
    fs::create_dir_all(&cache).expect("a cache directory");
    let place = cache.join(format!("python-{digest}"));
    let lock = File::create(cache.join(format!("python-{digest}.lock"))).expect("a lock");
    lock.lock().expect("the lock is free after the others");
    let complete = place.join("complete");
    if !complete.exists() {
        succeed(
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&place),
        );
        let mut install = Command::new(place.join("bin/python"));
        install
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(["--require-hashes", "--only-binary=:all:", "--requirement"])
            .arg(&list);
        succeed(&mut install);
        fs::write(complete, "").expect("a mark");
    }
    place.join("bin")
}
