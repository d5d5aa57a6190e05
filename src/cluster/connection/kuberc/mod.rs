//! The policy for credentials plugins: `credentialPluginPolicy` and `credentialPluginAllowlist` of
//! kubectl's preferences (kuberc).
//!
//! The rules are the same as in kubectl 1.36 (`pkg/kuberc`, and `checkAllowlistLocked` in client-go's
//! `plugin/pkg/client/auth/exec`), with one exception: a file of the home directory that kubectl
//! ignores with a warning is an error here if it mentions plugins. Aliases and defaults of options
//! are for kubectl's own commands, and are not read.

mod credential_plugin_preference;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use self::credential_plugin_preference::Preference;
use super::home;
use crate::find_program;
use crate::model::text::format_os_error;
use crate::regular_file::{self, SMALL};

/// The credentials plugins that may run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum PluginPolicy {
    /// All plugins.
    #[default]
    AllowAll,
    /// No plugins.
    DenyAll,
    /// The plugins with one of these names or paths.
    Allowlist(Vec<String>),
}

impl PluginPolicy {
    /// Refuses a plugin that may not run. Names on both sides are looked up in `PATH`.
    pub(super) fn check(&self, command: &str) -> Result<(), Denial> {
        self.check_with(command, &|name| find_program::find(name).ok())
    }

    fn check_with(&self, command: &str, find: &dyn Fn(&str) -> Option<PathBuf>) -> Result<(), Denial> {
        let allowlist = match self {
            Self::AllowAll => return Ok(()),
            Self::DenyAll => return Err(Denial::DenyAll),
            Self::Allowlist(allowlist) => allowlist,
        };
        let path = clean_path(command);
        if allowlist.iter().any(|entry| Path::new(entry) == path) {
            return Ok(());
        }
        let file = find(&path.to_string_lossy()).ok_or(Denial::NotFound)?;
        let is_listed = allowlist.iter().any(|entry| {
            Path::new(entry) == file
                || Path::new(entry).file_name() == file.file_name() && find(entry).as_ref() == Some(&file)
        });
        if is_listed {
            Ok(())
        } else {
            Err(Denial::NotListed(file))
        }
    }
}

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
    pub(super) fn hint(&self) -> &'static str {
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

    /// Returns whether this error of the file in the home directory is ignored: kubectl ignores it, and the file does
    /// not mention plugins.
    fn is_ignored_in_home(&self) -> bool {
        match self {
            Self::Unreadable { error, .. } => error.kind() == ErrorKind::NotFound,
            Self::NoPreference { mentions_plugins, .. } => !mentions_plugins,
            _ => false,
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

/// The location of the preferences.
#[derive(Debug, PartialEq, Eq)]
enum PreferenceFile {
    /// Preferences are switched off, or there is no home directory.
    None,
    /// The file that the flag or the environment names.
    Named(PathBuf),
    /// The file in the home directory, which need not exist.
    InHome(PathBuf),
}

/// Reads the policy for credentials plugins. The file of the home directory is read only if the user of the kubeconfig
/// has a `plugin`.
pub(super) fn read_policy(flag: Option<&Path>, plugin: Option<&str>) -> Result<PluginPolicy, KubercError> {
    match find_preference_file(flag, &|name| std::env::var_os(name), home::find_home())? {
        PreferenceFile::None => Ok(PluginPolicy::AllowAll),
        PreferenceFile::Named(path) => match read(&path)? {
            Some(preference) => preference.into_file_policy(&path),
            None => Ok(PluginPolicy::AllowAll),
        },
        PreferenceFile::InHome(_) if plugin.is_none() => Ok(PluginPolicy::AllowAll),
        PreferenceFile::InHome(path) => match read(&path) {
            Ok(Some(preference)) => preference.into_file_policy(&path),
            Ok(None) => Ok(PluginPolicy::AllowAll),
            Err(error) if error.is_ignored_in_home() => Ok(PluginPolicy::AllowAll),
            Err(error) => Err(error),
        },
    }
}

/// Finds the file of preferences. `KUBECTL_KUBERC=false` turns it off. Otherwise, the first of these names it: the
/// flag, the variable `KUBERC` (where `off` means no file), `.kube/kuberc` in the home directory.
///
/// # Errors
///
/// The flag names a file, and `KUBERC` is `off`.
fn find_preference_file(
    flag: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<OsString>,
    home: Option<PathBuf>,
) -> Result<PreferenceFile, KubercError> {
    let flag = flag.filter(|path| !path.as_os_str().is_empty());
    if variable("KUBECTL_KUBERC").is_some_and(|value| value.eq_ignore_ascii_case("false")) {
        return Ok(PreferenceFile::None);
    }
    let kuberc = variable("KUBERC").filter(|value| !value.is_empty());
    match (flag, kuberc) {
        (Some(_), Some(value)) if value == "off" => Err(KubercError::SwitchedOff),
        (None, Some(value)) if value == "off" => Ok(PreferenceFile::None),
        (Some(path), _) => Ok(PreferenceFile::Named(path.to_owned())),
        (None, Some(value)) => Ok(PreferenceFile::Named(value.into())),
        (None, None) => Ok(home.map_or(PreferenceFile::None, |home| {
            PreferenceFile::InHome(home.join(".kube").join("kuberc"))
        })),
    }
}

fn read(path: &Path) -> Result<Option<Preference>, KubercError> {
    let text = regular_file::read_any(path, SMALL).map_err(|error| KubercError::Unreadable {
        path: path.to_owned(),
        error,
    })?;
    credential_plugin_preference::find(&String::from_utf8_lossy(&text), path)
}

/// Returns the shortest spelling of a path, as Go's `filepath.Clean` does.
fn clean_path(path: &str) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match cleaned.components().next_back() {
                Some(Component::Normal(_)) => {
                    cleaned.pop();
                }
                Some(Component::RootDir | Component::Prefix(_)) => {}
                Some(Component::ParentDir | Component::CurDir) | None => cleaned.push(".."),
            },
            component => cleaned.push(component),
        }
    }
    if cleaned.as_os_str().is_empty() {
        cleaned.push(".");
    }
    cleaned
}

#[cfg(test)]
mod tests;
