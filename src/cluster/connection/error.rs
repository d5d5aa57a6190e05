//! Errors of kubeconfigs, flags and credentials, with their hints.

use std::path::PathBuf;

use kube::config::KubeconfigError;

use super::exec_credential_plugin::{ExecError, ExecFault};
use super::kubeconfig_validation::Conflict;
use super::kuberc::KubercError;
use crate::cluster::proxy::InvalidProxy;
use crate::error::{Error, ErrorKind};
use crate::model::text::{os_cause, shell_word};

/// An error that prevents a connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The kubeconfig cannot be used.
    #[error("kubeconfig: invalid: {}", os_cause(.0))]
    Kubeconfig(#[from] KubeconfigError),
    /// A kubeconfig that cannot be parsed. Its content is not shown, because it may be a credential.
    #[error("kubeconfig {}{}: cannot be parsed", path.display(), position(*.line_and_column))]
    UnparsableKubeconfig {
        /// The file.
        path: PathBuf,
        /// The position, counted from 1, if it is known.
        line_and_column: Option<(u64, u64)>,
    },
    /// A file named by flag or environment cannot be read.
    #[error("kubeconfig {}: cannot be read: {}", path.display(), os_cause(error))]
    UnreadableKubeconfig {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// Preferences from which no policy for plugins can be read.
    #[error(transparent)]
    Kuberc(#[from] KubercError),
    /// Neither a kubeconfig nor the environment of a Pod.
    #[error("no kubeconfig{}, and not running in a Pod", at(.0))]
    NoConfiguration(Vec<PathBuf>),
    /// Kubeconfigs that exist but name no cluster, context or user.
    #[error("kubeconfig {}: it has no cluster and no context", list(.0))]
    EmptyKubeconfig(Vec<PathBuf>),
    /// A name that is not in the kubeconfig.
    #[error("{what} {name:?} does not exist in the kubeconfig")]
    NotInKubeconfig {
        /// `context`, `cluster` or `user`.
        what: &'static str,
        name: String,
        /// The names that it has.
        known: Vec<String>,
    },
    /// A kubeconfig that names no server.
    #[error("no server configured: the kubeconfig has no current-context")]
    NoServer,
    /// Settings that exclude each other.
    #[error("invalid configuration: {0}")]
    Conflict(#[from] Conflict),
    /// A server address that is not valid.
    #[error("{0:?} is not a valid server URL")]
    InvalidServer(String),
    /// A proxy that cannot be used.
    #[error(transparent)]
    Proxy(#[from] InvalidProxy),
    /// A way to log in that kubectl has removed, too.
    #[error("auth-provider {0:?}: not supported (kubectl removed it too)")]
    AuthProvider(String),
    /// The credentials plugin failed.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A token file that holds no token.
    #[error("token file {path}: cannot be used: {reason}", path = .0.display(), reason = .1)]
    TokenFile(PathBuf, String),
    /// A token with characters that no token has.
    #[error("invalid token: it contains characters that HTTP does not allow")]
    UnusableToken,
    /// Certificates or credentials that cannot be used.
    #[error("client configuration: {}", os_cause(.0))]
    Client(#[from] kube::Error),
    /// A file of a certificate or a key that cannot be read.
    #[error("{what} {}: cannot be read: {}", path.display(), os_cause(error))]
    UnreadableFile {
        /// `client certificate` or `client key`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// A certificate authority file that cannot be read.
    #[error("certificate authority {path}: cannot be used: {reason}", path = .0.display(), reason = .1)]
    CertificateAuthority(PathBuf, String),
}

impl ConnectionError {
    /// Returns whether a flag or the kubeconfig is wrong, rather than what they refer to.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::NoConfiguration(_) | Self::Client(_) => false,
            Self::Exec(error) => error.fault.is_configuration(),
            _ => true,
        }
    }

    /// The hint below the error.
    pub fn hint(&self) -> String {
        match self {
            Self::Kubeconfig(_) | Self::NoServer => {
                "list the contexts with `kubectl config get-contexts`, then set --context, current-context or --server".to_owned()
            }
            Self::NotInKubeconfig { what, known, .. } if known.is_empty() => {
                format!("check --kubeconfig and KUBECONFIG: this kubeconfig has no {what}")
            }
            Self::NotInKubeconfig { known, .. } => format!("use one of: {}", known.join(", ")),
            Self::UnparsableKubeconfig { path, .. } => {
                format!(
                    "fix the YAML; `kubectl config view --kubeconfig {}` reads the same file",
                    shell_word(&path.to_string_lossy())
                )
            }
            Self::UnreadableKubeconfig { .. } => "check --kubeconfig and KUBECONFIG".to_owned(),
            Self::Kuberc(error) => error.hint().to_owned(),
            Self::Conflict(conflict) => conflict.hint().to_owned(),
            Self::EmptyKubeconfig(_) => {
                "add a cluster and a context to it; to use the ServiceAccount of a Pod, unset KUBECONFIG".to_owned()
            }
            Self::NoConfiguration(_) => "set --kubeconfig or KUBECONFIG".to_owned(),
            Self::InvalidServer(_) => "write it as https://HOST:PORT".to_owned(),
            Self::Proxy(_) => {
                "write it as http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT".to_owned()
            }
            Self::AuthProvider(_) => {
                "use the exec plugin of your provider, such as gke-gcloud-auth-plugin or kubelogin".to_owned()
            }
            Self::Exec(error) => exec_hint(error),
            Self::TokenFile(..) | Self::UnusableToken => {
                "replace the token; `kubectl auth whoami` tests it".to_owned()
            }
            Self::Client(_) => "check the user and cluster entries of the kubeconfig".to_owned(),
            Self::CertificateAuthority(..) => "pass a file of PEM certificates".to_owned(),
            Self::UnreadableFile { .. } => {
                "check --client-certificate, --client-key, and the user of the kubeconfig".to_owned()
            }
        }
    }
}

impl From<ConnectionError> for Error {
    fn from(error: ConnectionError) -> Self {
        let kind = if error.is_usage() {
            ErrorKind::Usage
        } else {
            ErrorKind::Cluster
        };
        Self::new(kind, error.to_string()).hinted(error.hint())
    }
}

/// The hint for a credentials plugin; the kubeconfig's own one is put on one line.
fn exec_hint(error: &ExecError) -> String {
    match (&error.fault, &error.install_hint) {
        (ExecFault::NotInstalled, Some(hint)) => hint.split_whitespace().collect::<Vec<_>>().join(" "),
        (ExecFault::NotInstalled, None) => "install it in a directory of PATH".to_owned(),
        (ExecFault::Denied(_), _) => {
            "add it to credentialPluginAllowlist in the kuberc if you trust it".to_owned()
        }
        (ExecFault::CurrentDirectory(_), _) => "remove empty and relative entries from PATH".to_owned(),
        (ExecFault::ApiVersion(_) | ExecFault::OtherVersion { .. }, _) => {
            "update the plugin, then let it rewrite the kubeconfig".to_owned()
        }
        (ExecFault::NoTerminal, _) => {
            "log in at a terminal first, or use credentials that need no prompt".to_owned()
        }
        _ => "log in again; `kubectl auth whoami` runs the same plugin".to_owned(),
    }
}

fn at(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        String::new()
    } else {
        format!(" at {}", join(paths, " or "))
    }
}

fn list(paths: &[PathBuf]) -> String {
    join(paths, " and ")
}

fn join(paths: &[PathBuf], word: &str) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(word)
}

fn position(line_and_column: Option<(u64, u64)>) -> String {
    line_and_column.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"))
}
