//! Parses the part of a `Preference` that is about credentials plugins.

use serde::Deserialize;
use serde_json::Value;

use super::PluginPolicy;
use crate::cluster::connection::unless_empty;

const GROUP: &str = "kubectl.config.k8s.io/";

/// The fields of preferences about credentials plugins.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preference {
    credential_plugin_policy: Option<String>,
    credential_plugin_allowlist: Option<Vec<AllowlistEntry>>,
}

/// An entry of the list; `name` is the deprecated spelling of `command`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct AllowlistEntry {
    name: Option<String>,
    command: Option<String>,
}

/// Reads the policy of the first document that is a `Preference` of a known version. Without such a document, a file of
/// blank documents allows all plugins, and so does a file in the home directory that does not mention plugins.
///
/// # Errors
///
/// The fault of the file.
pub(super) fn read(text: &str, is_in_home: bool) -> Result<PluginPolicy, String> {
    let mut documents = kubernetes_yaml::documents(text);
    if let Some(preference) = documents.find_map(|document| parse_preference(document.ok()?.to_value())) {
        return preference.into_policy();
    }
    let mentions_plugins = text.to_lowercase().contains("credentialplugin");
    let is_blank = text
        .lines()
        .all(|line| line.trim().is_empty() || line.starts_with("---"));
    if is_blank || (is_in_home && !mentions_plugins) {
        Ok(PluginPolicy::AllowAll)
    } else {
        Err("no valid preferences found".to_owned())
    }
}

/// Returns the preferences in a document; `None` for another document. A field about plugins that the version does not
/// have makes the document invalid, since its author meant some policy by it.
fn parse_preference(document: Value) -> Option<Preference> {
    let version = document["apiVersion"].as_str()?.strip_prefix(GROUP)?;
    let known_fields: &[&str] = match version {
        "v1alpha1" => &[],
        "v1beta1" => &["credentialPluginPolicy", "credentialPluginAllowlist"],
        _ => return None,
    };
    let mut fields = document.as_object()?.keys();
    let has_unknown_field = fields.any(|field| {
        field.to_lowercase().starts_with("credentialplugin") && !known_fields.contains(&field.as_str())
    });
    if document["kind"] != "Preference" || has_unknown_field {
        return None;
    }
    serde_json::from_value(document).ok()
}

impl Preference {
    /// Returns the policy; an error if the preference is ambiguous, so that its author may have meant another policy.
    fn into_policy(self) -> Result<PluginPolicy, String> {
        let policy = self.credential_plugin_policy.unwrap_or_default();
        match (policy.as_str(), self.credential_plugin_allowlist) {
            ("" | "AllowAll", None) => Ok(PluginPolicy::AllowAll),
            ("DenyAll", None) => Ok(PluginPolicy::DenyAll),
            ("Allowlist", Some(entries)) => {
                // An entry without a name matches no program.
                let commands = entries
                    .into_iter()
                    .filter_map(|entry| unless_empty(entry.command).or(entry.name));
                Ok(PluginPolicy::Allowlist(commands.collect()))
            }
            ("" | "AllowAll" | "DenyAll" | "Allowlist", _) => Err(format!(
                "misconfigured credential plugin allowlist: it belongs to the policy \"Allowlist\", and the policy is {policy:?}"
            )),
            _ => Err(format!("unknown plugin policy: {policy:?}")),
        }
    }
}
