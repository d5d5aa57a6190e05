//! What can keep a control plane from starting or a user from being made.

use std::io;
use std::path::PathBuf;

/// Why there is no control plane, or no user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `KUBEBUILDER_ASSETS` is set, but the directory lacks binaries.
    #[error(
        "KUBEBUILDER_ASSETS is {directory}, which has no {missing}. It must hold `kubectl` and \
         either `controlplane` or all of `etcd`, `kube-apiserver` and `kube-controller-manager` \
         (namespaces would never end without the last). Unset it to build them instead.",
        directory = .directory.display(),
        missing = .missing.join(", no ")
    )]
    AssetsIncomplete {
        /// What `KUBEBUILDER_ASSETS` names.
        directory: PathBuf,
        /// The names of the files that are not there.
        missing: Vec<&'static str>,
    },
    /// The binaries have to be built and there is no Go toolchain.
    #[error(
        "building the throw-away control plane needs Go {at_least} or newer, and `go` was not \
         found. Install it (https://go.dev/dl), or set KUBEBUILDER_ASSETS to a directory with \
         etcd, kube-apiserver, kube-controller-manager and kubectl."
    )]
    GoMissing {
        /// The Go version that the module asks for.
        at_least: String,
    },
    /// A program ran and failed.
    #[error("`{command}` failed ({status}):\n{output}")]
    CommandFailed {
        /// The program and its arguments.
        command: String,
        /// How it ended.
        status: String,
        /// What it wrote, mostly on standard error.
        output: String,
    },
    /// A program could not be run at all.
    #[error("`{command}` cannot be run: {source}")]
    CommandNotRun {
        /// The program and its arguments.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file or directory could not be read or written.
    #[error("{path}: {source}", path = .path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Neither `XDG_CACHE_HOME` nor a home directory is known.
    #[error("there is no place for the built control plane: set HOME or XDG_CACHE_HOME")]
    NoCacheDirectory,
    /// The servers were started and did not get ready.
    #[error("the control plane did not start: {reason}\n{log}")]
    NotStarted {
        /// What it was waited for, or what the server said.
        reason: String,
        /// The ends of the servers' logs.
        log: String,
    },
    /// Only the servers that are one program can be restarted on their data.
    #[error(
        "the programs of KUBEBUILDER_ASSETS cannot be restarted on their data; unset it to build \
         servers that can"
    )]
    NoRestart,
    /// Every ordinary user is taken.
    #[error("all {count} ordinary users of this control plane are taken")]
    NoUserLeft {
        /// How many there are.
        count: usize,
    },
    /// The rights of a user were written, and the API server did not heed them.
    #[error("{user} did not get all of the rights {rights} within {seconds} s")]
    GrantNotHeeded {
        /// The user's name.
        user: String,
        /// A review for each grant: a right that stands for it.
        rights: String,
        /// How long it was waited for.
        seconds: u64,
    },
}

/// Names the file that an [`io::Error`] is about.
pub(crate) trait About<T> {
    fn about(self, path: impl Into<PathBuf>) -> Result<T, Error>;
}

impl<T> About<T> for io::Result<T> {
    fn about(self, path: impl Into<PathBuf>) -> Result<T, Error> {
        self.map_err(|source| Error::File {
            path: path.into(),
            source,
        })
    }
}
