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
        fault: PolicyFault,
    },
}

/// The fault of a policy or an allowlist, in kubectl's words.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyFault {
    /// A policy that kubectl does not have.
    #[error("unknown plugin policy: {0:?}")]
    Unknown(String),
    /// A field that is misspelled, or that this version does not have.
    #[error("unknown field {field:?} in {version}")]
    UnknownField {
        field: String,
        /// The version of the preferences.
        version: String,
    },
    /// An allowlist with a policy that uses none.
    #[error("misconfigured credential plugin allowlist: plugin policy is {0:?} but allowlist is non-nil")]
    ListWithoutUse(String),
    /// The policy that needs an allowlist, without one.
    #[error("credential plugin policy set to \"Allowlist\", but allowlist is unspecified")]
    NoList,
    /// An allowlist without entries.
    #[error(
        "credential plugin policy set to \"Allowlist\", but allowlist is empty; use \"DenyAll\" policy instead"
    )]
    EmptyList,
    /// An entry without a name; counted from 1.
    #[error("misconfigured credential plugin allowlist: empty allowlist entry #{0}")]
    EmptyEntry(usize),
    /// An entry with two different names.
    #[error("both `name` and `command` were supplied with different values in allowlist entry #{0}")]
    TwoNames(usize),
    /// A path that is not normalized.
    #[error("non-normalized file path: {written:?} vs {cleaned:?}")]
    NotNormalized {
        /// The path in the file.
        written: String,
        /// The normalized path.
        cleaned: String,
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
