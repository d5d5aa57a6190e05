//! A directory of manifests, gone when it is dropped.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Files under a temporary directory.
pub(crate) struct Files {
    directory: TempDir,
}

impl Files {
    /// An empty directory.
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    /// Adds a file; its directories are made.
    pub(crate) fn with(self, name: &str, text: &str) -> Self {
        let path = self.path(name);
        let parent = path.parent().expect("a directory");
        fs::create_dir_all(parent).expect("directories of a file");
        fs::write(path, text).expect("a file");
        self
    }

    /// Adds a shell script that can be run.
    pub(crate) fn with_script(self, name: &str, lines: &str) -> Self {
        use std::os::unix::fs::PermissionsExt as _;

        let files = self.with(name, &format!("#!/bin/sh\n{lines}\n"));
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(files.path(name), mode).expect("a mode");
        files
    }

    /// The path of a file in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The directory.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }
}
