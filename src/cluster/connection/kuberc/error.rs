//! Errors of preferences (kuberc), and the reasons why a plugin may not run.

use std::path::PathBuf;

use crate::model::text::format_os_error;
/// Preferences (kuberc) from which no policy for plugins can be read.
#[derive(Debug, thiserror::Error)]
pub enum KubercError {
    /// A file that cannot be read.
    #[error("kuberc {}: cannot be read: {}", path.display(), format_os_error(error))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// A file without a `Preference` of a known version.
    #[error("kuberc {}: no valid preferences found", path.display())]
    NoPreference {
        /// The file.
        path: PathBuf,
        /// True if it holds the name of a field about plugins.
        mentions_plugins: bool,
    },
    /// A file is named although preferences are switched off.
    #[error("disabling kuberc via KUBERC=off and passing kuberc flag are mutually exclusive")]
    SwitchedOff,
    /// An invalid policy or allowlist.
    #[error("kuberc {}: {fault}", path.display())]
    Policy {
        /// The file.
        path: PathBuf,
        /// The fault, in kubectl's words.
        fault: String,
    },
}

impl KubercError {
    pub(in crate::cluster::connection) fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "check --kuberc and KUBERC",
            Self::NoPreference { .. } => {
                "write it as kind Preference of kubectl.config.k8s.io/v1beta1; or set KUBERC=off to ignore it"
            }
            Self::SwitchedOff => "unset KUBERC, or remove --kuberc",
            Self::Policy { .. } => {
                "set credentialPluginPolicy to AllowAll, DenyAll or Allowlist with a credentialPluginAllowlist"
            }
        }
    }
}

/// The reason why a plugin may not run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// No plugin may run.
    #[error("is not allowed: policy set to \"DenyAll\"")]
    DenyAll,
    /// The file is not in the allowlist.
    #[error("is not permitted by the credential plugin allowlist: {}", .0.display())]
    NotListed(PathBuf),
    /// The name is not in the allowlist, and no file was found to compare with it.
    #[error("is not permitted by the credential plugin allowlist: executable file not found in PATH")]
    NotFound,
}
