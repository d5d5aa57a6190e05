//! Parses the part of a `Preference` that is about credentials plugins.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::{KubercError, PluginPolicy, clean_path};
use crate::cluster::connection::unless_empty;

const GROUP: &str = "kubectl.config.k8s.io/";
const POLICY: &str = "credentialPluginPolicy";
const LIST: &str = "credentialPluginAllowlist";

/// The fields of preferences about credentials plugins.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Preference {
    credential_plugin_policy: Option<String>,
    credential_plugin_allowlist: Option<Vec<AllowlistEntry>>,
    /// The name of a field about plugins that this version of `Preference` does not have.
    #[serde(skip)]
    unknown: Option<String>,
    #[serde(skip)]
    version: String,
}

/// Returns the first document of a file that is a `Preference` of a known version; `None` for a file of blank
/// documents.
pub(super) fn find(text: &str, path: &Path) -> Result<Option<Preference>, KubercError> {
    let mut documents = kubernetes_yaml::documents(text);
    let preference = documents.find_map(|document| parse_preference(document.ok()?.to_value()));
    let is_blank = |line: &str| line.trim().is_empty() || line.starts_with("---");
    if preference.is_some() || text.lines().all(is_blank) {
        return Ok(preference);
    }
    Err(KubercError::NoPreference {
        path: path.to_owned(),
        mentions_plugins: text.to_lowercase().contains("credentialplugin"),
    })
}

fn parse_preference(document: Value) -> Option<Preference> {
    let version = document["apiVersion"].as_str()?.strip_prefix(GROUP)?.to_owned();
    if document["kind"] != "Preference" {
        return None;
    }
    let known_fields: &[&str] = match version.as_str() {
        "v1alpha1" => &[],
        "v1beta1" => &[POLICY, LIST],
        _ => return None,
    };
    let unknown = document
        .as_object()?
        .keys()
        .filter(|field| field.to_lowercase().starts_with("credentialplugin"))
        .find(|field| !known_fields.contains(&field.as_str()))
        .cloned();
    let preference: Preference = serde_json::from_value(document).ok()?;
    Some(Preference {
        unknown,
        version,
        ..preference
    })
}

impl Preference {
    /// Returns the policy; an error if the preference is ambiguous, so that its author may have meant another policy.
    pub(super) fn into_file_policy(self, path: &Path) -> Result<PluginPolicy, KubercError> {
        self.into_policy().map_err(|fault| KubercError::Policy {
            path: path.to_owned(),
            fault,
        })
    }

    /// Returns the policy, or its fault in kubectl's words.
    fn into_policy(self) -> Result<PluginPolicy, String> {
        if let Some(field) = self.unknown {
            return Err(format!("unknown field {field:?} in {GROUP}{}", self.version));
        }
        let policy = self.credential_plugin_policy.unwrap_or_default();
        match (policy.as_str(), self.credential_plugin_allowlist) {
            ("" | "AllowAll", None) => Ok(PluginPolicy::AllowAll),
            ("DenyAll", None) => Ok(PluginPolicy::DenyAll),
            ("" | "AllowAll" | "DenyAll", Some(_)) => Err(format!(
                "misconfigured credential plugin allowlist: plugin policy is {policy:?} but allowlist is non-nil"
            )),
            ("Allowlist", None) => {
                Err("credential plugin policy set to \"Allowlist\", but allowlist is unspecified".to_owned())
            }
            ("Allowlist", Some(entries)) if entries.is_empty() => Err(
                "credential plugin policy set to \"Allowlist\", but allowlist is empty; use \"DenyAll\" policy instead"
                    .to_owned(),
            ),
            ("Allowlist", Some(entries)) => entries
                .into_iter()
                .enumerate()
                .map(|(index, entry)| entry.into_valid_command(index + 1))
                .collect::<Result<_, _>>()
                .map(PluginPolicy::Allowlist),
            _ => Err(format!("unknown plugin policy: {policy:?}")),
        }
    }
}

/// An entry of the list; `name` is the deprecated spelling of `command`.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct AllowlistEntry {
    name: Option<String>,
    command: Option<String>,
}

impl AllowlistEntry {
    fn into_valid_command(self, entry_number: usize) -> Result<String, String> {
        let command = match (unless_empty(self.name), unless_empty(self.command)) {
            (Some(name), Some(command)) if name != command => {
                return Err(format!(
                    "both `name` and `command` were supplied with different values in allowlist entry #{entry_number}"
                ));
            }
            (_, Some(command)) | (Some(command), None) => command,
            (None, None) => {
                return Err(format!(
                    "misconfigured credential plugin allowlist: empty allowlist entry #{entry_number}"
                ));
            }
        };
        let clean_command = clean_path(&command);
        // Compares texts, because two paths may be equal although their texts differ.
        if clean_command.as_os_str() != command.as_str() {
            let clean_command = clean_command.display().to_string();
            return Err(format!(
                "non-normalized file path: {command:?} vs {clean_command:?}"
            ));
        }
        Ok(command)
    }
}
