//! The Go module beside this crate, as the files that decide what is built.

use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::Error;
use crate::error::About as _;

/// The module whose version is the version of the control plane.
pub(super) const KUBERNETES: &str = "k8s.io/kubernetes";

/// The files that decide what is built.
pub(super) struct Module {
    /// Name and content, sorted by name.
    files: Vec<(String, Vec<u8>)>,
}

impl Module {
    pub(super) fn read(directory: &Path) -> Result<Self, Error> {
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
    pub(super) fn hash(&self, toolchain: &[u8]) -> String {
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
    pub(super) fn directive(&self, word: &str) -> String {
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
    pub(super) fn linker_flags(&self) -> String {
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
