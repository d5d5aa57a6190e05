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
use std::path::{Path, PathBuf};

use super::home;
use crate::error::Error;
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
    /// Returns why a plugin may not run; `None` if it may. Names on both sides are looked up in `PATH`.
    pub(super) fn find_denial(&self, command: &str) -> Option<String> {
        self.find_denial_with(command, &|name| find_program::find(name).ok())
    }

    fn find_denial_with(&self, command: &str, find: &dyn Fn(&str) -> Option<PathBuf>) -> Option<String> {
        let allowlist = match self {
            Self::AllowAll => return None,
            Self::DenyAll => return Some("is not allowed: policy set to \"DenyAll\"".to_owned()),
            Self::Allowlist(allowlist) => allowlist,
        };
        if allowlist
            .iter()
            .any(|entry| Path::new(entry) == Path::new(command))
        {
            return None;
        }
        let file = find(command);
        let is_listed = file.as_ref().is_some_and(|file| {
            allowlist.iter().any(|entry| {
                Path::new(entry) == file
                    || Path::new(entry).file_name() == file.file_name() && find(entry).as_ref() == Some(file)
            })
        });
        let what = file.map_or_else(
            || "executable file not found in PATH".to_owned(),
            |file| file.display().to_string(),
        );
        (!is_listed).then(|| format!("is not permitted by the credential plugin allowlist: {what}"))
    }
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

/// Reads the policy for credentials plugins.
///
/// # Errors
///
/// The file cannot be read or is not valid, so that its author may have meant another policy. A file of the home
/// directory that kubectl ignores is ignored here, too, unless it mentions plugins.
pub(super) fn read_policy(flag: Option<&Path>) -> Result<PluginPolicy, Error> {
    let (path, is_in_home) =
        match find_preference_file(flag, &|name| std::env::var_os(name), home::find_home())? {
            PreferenceFile::None => return Ok(PluginPolicy::AllowAll),
            PreferenceFile::Named(path) => (path, false),
            PreferenceFile::InHome(path) => (path, true),
        };
    match regular_file::read_any(&path, SMALL) {
        Ok(text) => {
            credential_plugin_preference::read(&String::from_utf8_lossy(&text), is_in_home).map_err(|fault| {
                Error::usage(
                    format!("kuberc {}: {fault}", path.display()),
                    "write it as kind Preference of kubectl.config.k8s.io/v1beta1; or set KUBERC=off to ignore it",
                )
            })
        }
        Err(error) if is_in_home && error.kind() == ErrorKind::NotFound => Ok(PluginPolicy::AllowAll),
        Err(error) => Err(Error::usage(
            format!("kuberc {}: cannot be read: {}", path.display(), format_os_error(&error)),
            "check --kuberc and KUBERC",
        )),
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
) -> Result<PreferenceFile, Error> {
    let flag = flag.filter(|path| !path.as_os_str().is_empty());
    if variable("KUBECTL_KUBERC").is_some_and(|value| value.eq_ignore_ascii_case("false")) {
        return Ok(PreferenceFile::None);
    }
    let kuberc = variable("KUBERC").filter(|value| !value.is_empty());
    match (flag, kuberc) {
        (Some(_), Some(value)) if value == "off" => Err(Error::usage(
            "disabling kuberc via KUBERC=off and passing kuberc flag are mutually exclusive",
            "unset KUBERC, or remove --kuberc",
        )),
        (None, Some(value)) if value == "off" => Ok(PreferenceFile::None),
        (Some(path), _) => Ok(PreferenceFile::Named(path.to_owned())),
        (None, Some(value)) => Ok(PreferenceFile::Named(value.into())),
        (None, None) => Ok(home.map_or(PreferenceFile::None, |home| {
            PreferenceFile::InHome(home.join(".kube").join("kuberc"))
        })),
    }
}

#[cfg(test)]
mod tests;
