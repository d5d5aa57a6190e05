//! Errors of kubeconfigs, flags and credentials, with their hints.

use std::path::PathBuf;

use kube::config::KubeconfigError;

use super::conflict::Conflict;
use super::exec::{ExecError, ExecFault};
use super::kuberc::KubercError;
use crate::cluster::proxy::InvalidProxy;
use crate::model::text::shell_word;

/// An error that prevents a connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(#[from] KubeconfigError),
    /// A kubeconfig that cannot be parsed. Its content is not shown, because it may be a credential.
    #[error("the kubeconfig {}{} cannot be parsed", path.display(), position(*.line_and_column))]
    UnparsableKubeconfig {
        /// The file.
        path: PathBuf,
        /// The position, counted from 1, if it is known.
        line_and_column: Option<(u64, u64)>,
    },
    /// A file named by flag or environment cannot be read.
    #[error("the kubeconfig {} cannot be read: {error}", path.display())]
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
    #[error("there is no kubeconfig{}, and this is not a Pod of a cluster", at(.0))]
    NoConfiguration(Vec<PathBuf>),
    /// A name that is not in the kubeconfig.
    #[error("the kubeconfig has no {what} {name:?}")]
    NotInKubeconfig {
        /// `context`, `cluster` or `user`.
        what: &'static str,
        /// The name.
        name: String,
        /// The names that it has.
        known: Vec<String>,
    },
    /// A kubeconfig that names no server.
    #[error("the kubeconfig says of no server which one is meant")]
    NoServer,
    /// Settings that exclude each other.
    #[error("invalid configuration: {0}")]
    Conflict(#[from] Conflict),
    /// A server address that is not valid.
    #[error("{0:?} is no address of a server")]
    InvalidServer(String),
    /// A proxy that cannot be used.
    #[error(transparent)]
    Proxy(#[from] InvalidProxy),
    /// A way to log in that kubectl has removed, too.
    #[error("the auth-provider {0:?} of the kubeconfig is not supported, by kubectl neither")]
    AuthProvider(String),
    /// The credentials plugin failed.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A token file that holds no token.
    #[error("the token file {path} cannot be used: {reason}", path = .0.display(), reason = .1)]
    TokenFile(PathBuf, String),
    /// A token with characters that no token has.
    #[error("the token holds characters that cannot be sent")]
    UnusableToken,
    /// Certificates or credentials that cannot be used.
    #[error("the connection cannot be set up: {0}")]
    Client(#[from] kube::Error),
    /// A file of a certificate or a key that cannot be read.
    #[error("the {what} {} cannot be read: {error}", path.display())]
    UnreadableFile {
        /// `client certificate` or `client key`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// A certificate authority file that cannot be read.
    #[error("the certificate authority {path} cannot be used: {reason}", path = .0.display(), reason = .1)]
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
                "`kubectl config get-contexts` shows the contexts that there are".to_owned()
            }
            Self::NotInKubeconfig { what, known, .. } if known.is_empty() => {
                format!("it has no {what} at all; check --kubeconfig and KUBECONFIG")
            }
            Self::NotInKubeconfig { known, .. } => format!("it has {}", known.join(", ")),
            Self::UnparsableKubeconfig { path, .. } => {
                format!(
                    "`kubectl config view --kubeconfig {}` reads the same file",
                    shell_word(&path.to_string_lossy())
                )
            }
            Self::UnreadableKubeconfig { .. } => "check --kubeconfig and KUBECONFIG".to_owned(),
            Self::Kuberc(error) => error.hint().to_owned(),
            Self::Conflict(conflict) => conflict.hint().to_owned(),
            Self::NoConfiguration(_) => "name a file with --kubeconfig or KUBECONFIG".to_owned(),
            Self::InvalidServer(_) => "write it as https://HOST:PORT".to_owned(),
            Self::Proxy(_) => {
                "write it as http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT".to_owned()
            }
            Self::AuthProvider(_) => {
                "use the exec plugin of your provider, such as gke-gcloud-auth-plugin or kubelogin".to_owned()
            }
            Self::Exec(error) => exec_hint(error),
            Self::TokenFile(..) | Self::UnusableToken => {
                "`kubectl auth whoami` shows whether the same token works there".to_owned()
            }
            Self::Client(_) => "`kubectl cluster-info` uses the same kubeconfig".to_owned(),
            Self::CertificateAuthority(..) => "name a file of PEM certificates".to_owned(),
            Self::UnreadableFile { .. } => {
                "check --client-certificate, --client-key, and the user of the kubeconfig".to_owned()
            }
        }
    }
}

/// The hint for a credentials plugin; the kubeconfig's own one is put on one line.
fn exec_hint(error: &ExecError) -> String {
    match (&error.fault, &error.install_hint) {
        (ExecFault::NotInstalled, Some(hint)) => hint.split_whitespace().collect::<Vec<_>>().join(" "),
        (ExecFault::NotInstalled, None) => "install it, or put it on the search path".to_owned(),
        (ExecFault::Denied(_), _) => {
            "check that this is the plugin that you want, then add it to credentialPluginAllowlist in the kuberc".to_owned()
        }
        (ExecFault::CurrentDirectory(_), _) => "remove empty and relative entries from PATH".to_owned(),
        (ExecFault::ApiVersion(_) | ExecFault::OtherVersion { .. }, _) => {
            "update the plugin, and let it write the kubeconfig anew".to_owned()
        }
        (ExecFault::NoTerminal, _) => {
            "log in at a terminal first, or use credentials that ask nothing".to_owned()
        }
        _ => "log in again as the plugin says; `kubectl auth whoami` runs it, too".to_owned(),
    }
}

fn at(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    if paths.is_empty() {
        String::new()
    } else {
        format!(" at {}", paths.join(" or "))
    }
}

fn position(line_and_column: Option<(u64, u64)>) -> String {
    line_and_column.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"))
}
