//! What is wrong with preferences, and why a plugin may not run.

use std::path::PathBuf;

/// Preferences (kuberc) that do not say which plugins may run.
#[derive(Debug, thiserror::Error)]
pub enum KubercError {
    /// A file that cannot be read.
    #[error("kuberc {}: cannot be read: {error}", path.display())]
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
    /// A file is named, and preferences are switched off.
    #[error("disabling kuberc via KUBERC=off and passing kuberc flag are mutually exclusive")]
    SwitchedOff,
    /// A policy, or a list for it, that cannot hold.
    #[error("kuberc {}: {fault}", path.display())]
    Policy {
        /// The file.
        path: PathBuf,
        /// The fault.
        fault: PolicyFault,
    },
}

/// A policy that cannot hold, in kubectl's words.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyFault {
    /// No policy of kubectl's.
    #[error("unknown plugin policy: {0:?}")]
    Unknown(String),
    /// A field that is spelled wrong, or that this version does not have.
    #[error("unknown field {field:?} in {version}")]
    UnknownField {
        /// The field.
        field: String,
        /// The version of the preferences.
        version: String,
    },
    /// A list for a policy that has none.
    #[error("misconfigured credential plugin allowlist: plugin policy is {0:?} but allowlist is non-nil")]
    ListWithoutUse(String),
    /// No list for the policy that needs it.
    #[error("credential plugin policy set to \"Allowlist\", but allowlist is unspecified")]
    NoList,
    /// A list without entries.
    #[error(
        "credential plugin policy set to \"Allowlist\", but allowlist is empty; use \"DenyAll\" policy instead"
    )]
    EmptyList,
    /// An entry that names nothing; counted from 1.
    #[error("misconfigured credential plugin allowlist: empty allowlist entry #{0}")]
    EmptyEntry(usize),
    /// An entry that names two programs.
    #[error("both `name` and `command` were supplied with different values in allowlist entry #{0}")]
    TwoNames(usize),
    /// A path that could be shorter.
    #[error("non-normalized file path: {written:?} vs {cleaned:?}")]
    NotNormalized {
        /// As it is written.
        written: String,
        /// As it has to be written.
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

/// Why a plugin may not run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// No plugin may.
    #[error("is not allowed: policy set to \"DenyAll\"")]
    DenyAll,
    /// Another file than those of the list.
    #[error("is not permitted by the credential plugin allowlist: {}", .0.display())]
    NotListed(PathBuf),
    /// Not in the list by name, and no file to compare with the list.
    #[error("is not permitted by the credential plugin allowlist: executable file not found in PATH")]
    NotFound,
}
