//! Builds the Go module beside this crate, once for each state of the module
//! and each Go toolchain, into a cache outside the checkout. Another process
//! that needs the same build waits for it.

mod go;
mod module;
mod progress;

use std::env;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::Error;
use crate::error::About as _;
use module::{KUBERNETES, Module};

/// The folder of the Go module.
const MODULE: &str = env!("CARGO_MANIFEST_DIR");

/// The directory that holds `controlplane` and `kubectl`, built now where they
/// have not been built before.
pub(crate) fn directory_of_binaries() -> Result<PathBuf, Error> {
    let module = Module::read(Path::new(MODULE))?;
    let toolchain = go::run(&["env", "GOVERSION", "GOOS", "GOARCH"], &module)?;
    let cache = cache_directory()?.join("kubectl-applyset");
    let name = format!("controlplane-{}", module.hash(&toolchain.stdout));
    let built = cache.join(&name);
    if built.is_dir() {
        return Ok(built);
    }

    fs::create_dir_all(&cache).about(&cache)?;
    let lock_path = cache.join(format!("{name}.lock"));
    let lock = File::create(&lock_path).about(&lock_path)?;
    wait_for(&lock).about(&lock_path)?;
    if !built.is_dir() {
        let building = cache.join(format!("{name}.building"));
        build(&module, &building)?;
        // Only a finished build ever has the name that others look for.
        fs::rename(&building, &built).about(&built)?;
    }
    Ok(built)
}

/// Looks for mistakes in the sources of the Go module.
pub(crate) fn vet() -> Result<(), Error> {
    go::vet(&Module::read(Path::new(MODULE))?)
}

fn wait_for(lock: &File) -> io::Result<()> {
    match lock.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            tell("waiting for another process that builds the throw-away control plane");
            lock.lock()
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn build(module: &Module, into: &Path) -> Result<(), Error> {
    // What is there was left by a build that was killed.
    match fs::remove_dir_all(into) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).about(into)?,
        _ => {}
    }
    fs::create_dir(into).about(into)?;

    tell(&format!(
        "building the throw-away control plane (etcd, kube-apiserver, two controllers, kubectl) from \
         Go modules into {}: only once, some minutes. Programs that you have are used instead if \
         KUBEBUILDER_ASSETS names their directory.",
        into.with_extension("").display()
    ));
    let start = Instant::now();
    let kubectl = format!("{KUBERNETES}/cmd/kubectl");
    go::build(&[".", &kubectl], into, module)?;
    tell(&format!("built in {} s", start.elapsed().as_secs()));
    Ok(())
}

/// The platform's directory for what can be made again.
fn cache_directory() -> Result<PathBuf, Error> {
    let absolute = |name| {
        let path = PathBuf::from(env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let in_home = |path| Some(env::home_dir()?.join(path));
    let of_platform = || match env::consts::OS {
        "windows" => absolute("LOCALAPPDATA"),
        "macos" => in_home("Library/Caches"),
        _ => in_home(".cache"),
    };
    absolute("XDG_CACHE_HOME")
        .or_else(of_platform)
        .ok_or(Error::NoCacheDirectory)
}

/// Written past the capture of the test harness: who runs the tests must learn
/// why nothing happens for minutes.
fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
