//! Builds the Go module beside this crate, once for each state of the module
//! and each Go toolchain, into a cache outside the checkout. Another process
//! that needs the same build waits for it.

use std::env;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use sha2::{Digest as _, Sha256};

use crate::Error;
use crate::error::About as _;

/// The folder of the Go module.
const MODULE: &str = env!("CARGO_MANIFEST_DIR");

/// The module whose version is the version of the control plane.
const KUBERNETES: &str = "k8s.io/kubernetes";

/// The directory that holds `controlplane` and `kubectl`, built now where they
/// have not been built before.
pub(crate) fn directory_of_binaries() -> Result<PathBuf, Error> {
    let module = Module::read(Path::new(MODULE))?;
    let toolchain = go(&["env", "GOVERSION", "GOOS", "GOARCH"], &module)?;
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
        "building the throw-away control plane (etcd, kube-apiserver, kube-controller-manager, \
         kubectl) from Go modules into {}: some minutes (four to seven on two cores), only once",
        into.with_extension("").display()
    ));
    let start = Instant::now();
    let output = format!("{}{}", into.display(), std::path::MAIN_SEPARATOR);
    let flags = module.linker_flags();
    let kubectl = format!("{KUBERNETES}/cmd/kubectl");
    // -buildvcs=false: the version of this checkout is nothing to the binaries,
    // and asking git for it can fail.
    let arguments = ["build", "-trimpath", "-buildvcs=false", "-mod=readonly"];
    go(
        &[
            &arguments[..],
            &["-ldflags", &flags, "-o", &output, ".", &kubectl],
        ]
        .concat(),
        module,
    )?;
    tell(&format!("built in {} s", start.elapsed().as_secs()));
    Ok(())
}

/// Runs the Go command in the module, and fails where it fails.
fn go(arguments: &[&str], module: &Module) -> Result<Output, Error> {
    let command = || format!("go {}", arguments.join(" "));
    let output = Command::new("go")
        .args(arguments)
        .current_dir(MODULE)
        // A C compiler is not needed, and a workspace around us is not ours.
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .output()
        .map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Error::GoMissing {
                at_least: module.directive("go"),
            },
            _ => Error::CommandNotRun {
                command: command(),
                source,
            },
        })?;
    if !output.status.success() {
        return Err(Error::CommandFailed {
            command: command(),
            status: output.status.to_string(),
            output: String::from_utf8_lossy(&output.stderr).into_owned(),
        });
    }
    Ok(output)
}

/// The files that decide what is built.
struct Module {
    /// Name and content, sorted by name.
    files: Vec<(String, Vec<u8>)>,
}

impl Module {
    fn read(directory: &Path) -> Result<Self, Error> {
        let mut files = Vec::new();
        for entry in fs::read_dir(directory).about(directory)? {
            let path = entry.about(directory)?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let is_source = path.extension().is_some_and(|extension| extension == "go");
            if is_source || name == "go.mod" || name == "go.sum" {
                let content = fs::read(&path).about(&path)?;
                files.push((name, content));
            }
        }
        files.sort();
        Ok(Self { files })
    }

    /// 16 hexadecimal digits that change with the files and the toolchain.
    fn hash(&self, toolchain: &[u8]) -> String {
        let mut hasher = Sha256::new();
        hasher.update(toolchain);
        for (name, content) in &self.files {
            // The lengths keep two files from passing for one.
            hasher.update(format!("\0{name}\0{}\0", content.len()));
            hasher.update(content);
        }
        let mut digits = [0; 8];
        digits.copy_from_slice(&hasher.finalize()[..8]);
        format!("{:016x}", u64::from_be_bytes(digits))
    }

    /// What follows this word in go.mod, where it begins a line or a
    /// requirement; empty where nothing does.
    fn directive(&self, word: &str) -> String {
        let go_mod = self.files.iter().find(|(name, _)| name == "go.mod");
        let text = go_mod.map_or_else(String::new, |(_, content)| {
            String::from_utf8_lossy(content).into_owned()
        });
        text.lines()
            .filter_map(|line| {
                let line = line.trim();
                let line = line.strip_prefix("require ").unwrap_or(line);
                line.strip_prefix(word)?.strip_prefix(' ')
            })
            .find_map(|rest| rest.split_whitespace().next())
            .unwrap_or_default()
            .to_owned()
    }

    /// Sets the version that the binaries report, as a release build does;
    /// without it kubectl cannot parse the server's.
    fn linker_flags(&self) -> String {
        let version = self.directive(KUBERNETES);
        let mut numbers = version.trim_start_matches('v').split('.');
        let major = numbers.next().unwrap_or_default();
        let minor = numbers.next().unwrap_or_default();
        let package = "k8s.io/component-base/version";
        format!(
            "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} \
             -X {package}.gitMinor={minor}"
        )
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn module(files: &[(&str, &str)]) -> Module {
        Module {
            files: files
                .iter()
                .map(|(name, content)| ((*name).to_owned(), content.as_bytes().to_vec()))
                .collect(),
        }
    }

    #[test]
    fn the_version_is_that_of_the_requirement() {
        let alone = "module m\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.36.3\n";
        let grouped = "require (\n\tk8s.io/kubernetes-client v9.9.9\n\tk8s.io/kubernetes v1.36.3 // why\n)\n";
        for text in [alone, grouped] {
            let module = module(&[("go.mod", text)]);
            assert_eq!(module.directive(KUBERNETES), "v1.36.3");
            assert!(module.linker_flags().ends_with("gitMinor=36"));
        }
        assert_eq!(module(&[("go.mod", alone)]).directive("go"), "1.26.0");
    }

    #[test]
    fn the_hash_tells_files_contents_and_toolchains_apart() {
        let modules = [
            module(&[("a.go", "x"), ("b.go", "y")]),
            module(&[("a.go", "xb.go"), ("b.go", "")]),
            module(&[("a.go", "x")]),
            module(&[("c.go", "x")]),
        ];
        let mut hashes: Vec<String> = modules.iter().map(|m| m.hash(b"go1.26.0")).collect();
        hashes.push(modules[0].hash(b"go1.26.1"));
        let count = hashes.len();
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), count);
        assert!(hashes.iter().all(|hash| hash.len() == 16));
    }
}
