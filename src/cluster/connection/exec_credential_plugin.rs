//! Runs the program of a kubeconfig that fetches credentials, and reads its answer.
//!
//! The protocol is the same as in client-go (`plugin/pkg/client/auth/exec`): the info in
//! `KUBERNETES_EXEC_INFO`, an `ExecCredential` on standard output. Standard error of the program
//! is passed through if a user may be present to read it. Its answer, arguments and
//! environment are never shown: all of them may hold secrets.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _, Read as _, stdin};
use std::process::Stdio;
use std::time::SystemTime;

use k8s_openapi::jiff::Timestamp;
use kube::config::{ExecAuthCluster, ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;

use super::kuberc::PluginPolicy;
use super::{PluginPrompts, unless_empty};
use crate::error::{Error, ErrorKind};
use crate::find_program::{self, ProgramError};
use crate::model::message::Message;
use crate::model::text::format_os_error;

const API_VERSIONS: [&str; 2] = [
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
];

/// The credentials that a program returned.
#[derive(Default)]
pub(super) struct PluginCredentials {
    pub(super) token: Option<String>,
    /// Certificate and key, both PEM.
    pub(super) certificate: Option<(String, String)>,
    /// The time at which the credentials expire, if the program says so.
    pub(super) until: Option<SystemTime>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential {
    api_version: Option<String>,
    kind: Option<String>,
    status: Option<ExecStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecStatus {
    expiration_timestamp: Option<Timestamp>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Runs the program, and waits for its answer. If the kubeconfig says that the program wants information about the
/// cluster, `config.cluster` holds it.
///
/// # Errors
///
/// It is a usage error if the kubeconfig or the machine is at fault, so that no program was run.
pub(super) fn run(
    config: &ExecConfig,
    prompts: PluginPrompts,
    policy: &PluginPolicy,
) -> Result<PluginCredentials, Error> {
    let command = config.command.as_deref().unwrap_or_default();
    run_if_allowed(config, command, prompts, policy).map_err(|mut error| {
        for message in &mut error.messages {
            message
                .text
                .insert_str(0, &format!("credentials plugin {command:?} "));
        }
        error
    })
}

/// Runs the program. The name of the program is missing from the text of an error.
fn run_if_allowed(
    config: &ExecConfig,
    command: &str,
    prompts: PluginPrompts,
    policy: &PluginPolicy,
) -> Result<PluginCredentials, Error> {
    let version = config.api_version.as_deref().unwrap_or_default();
    if command.is_empty() {
        return Err(Error::usage(
            "has no command in the kubeconfig's exec section",
            LOG_IN_AGAIN,
        ));
    }
    if !API_VERSIONS.contains(&version) {
        return Err(Error::usage(
            format!("requests unsupported API version {version:?}"),
            UPDATE_THE_PLUGIN,
        ));
    }
    if let Some(denial) = policy.find_denial(command) {
        return Err(Error::usage(
            denial,
            "add it to credentialPluginAllowlist in the kuberc if you trust it",
        ));
    }
    let is_interactive = prompts == PluginPrompts::AsKubeconfig
        && match config.interactive_mode {
            Some(ExecInteractiveMode::Never) => false,
            Some(ExecInteractiveMode::IfAvailable) | None => stdin().is_terminal(),
            Some(ExecInteractiveMode::Always) if stdin().is_terminal() => true,
            Some(ExecInteractiveMode::Always) => {
                let text = "needs a terminal, and standard input is not one";
                return Err(Error::new(ErrorKind::Cluster, text)
                    .with_hint("log in at a terminal first, or use credentials that need no prompt"));
            }
        };
    let mut child = find_program::command_for(command)
        .map_err(|error| match error {
            ProgramError::NotFound => not_installed(config),
            ProgramError::CurrentDirectory(_) => Error::usage(
                format!("cannot be started: {error}"),
                "remove empty and relative entries from PATH",
            ),
        })?
        .args(config.args.iter().flatten())
        .envs(config.env.iter().flatten().filter_map(read_name_and_value))
        .env(
            "KUBERNETES_EXEC_INFO",
            format_exec_info(version, is_interactive, config.cluster.as_ref()),
        )
        // Standard input may hold manifests, which the program must not read.
        .stdin(if is_interactive {
            Stdio::inherit()
        } else {
            Stdio::null()
        })
        .stderr(match prompts {
            PluginPrompts::AsKubeconfig => Stdio::inherit(),
            PluginPrompts::Forbidden => Stdio::null(),
        })
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => not_installed(config),
            _ => not_started(&error),
        })?;
    let mut answer = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout
            .take(ANSWER_LIMIT)
            .read_to_end(&mut answer)
            .map_err(|error| not_started(&error))?;
    }
    let status = child.wait().map_err(|error| not_started(&error))?;
    if !status.success() {
        return Err(no_credentials(format!("failed: {status}")));
    }
    parse_answer(&answer, version)
}

const LOG_IN_AGAIN: &str = "log in again; `kubectl auth whoami` runs the same plugin";
const UPDATE_THE_PLUGIN: &str = "update the plugin, then let it rewrite the kubeconfig";

/// The error about a program that is not installed. A hint in the kubeconfig (`installHint`) is put on one line.
fn not_installed(config: &ExecConfig) -> Error {
    let words = config
        .install_hint
        .iter()
        .flat_map(|hint| hint.split_whitespace());
    let hint = unless_empty(Some(words.collect::<Vec<_>>().join(" ")));
    Error::usage(
        "is not installed",
        hint.unwrap_or_else(|| "install it in a directory of PATH".to_owned()),
    )
}

fn not_started(error: &io::Error) -> Error {
    Error::usage(
        format!("cannot be started: {}", format_os_error(error)),
        LOG_IN_AGAIN,
    )
}

/// The error about a program that was run, and returned no credentials.
fn no_credentials(text: impl Into<Message>) -> Error {
    Error::new(ErrorKind::Cluster, text).with_hint(LOG_IN_AGAIN)
}

/// Limit of an answer in bytes: a token, or a certificate with its key.
const ANSWER_LIMIT: u64 = 4 << 20;

fn read_name_and_value(entry: &HashMap<String, String>) -> Option<(&String, &String)> {
    Some((entry.get("name")?, entry.get("value")?))
}

fn format_exec_info(version: &str, is_interactive: bool, cluster: Option<&ExecAuthCluster>) -> String {
    let mut info = json!({
        "apiVersion": version,
        "kind": "ExecCredential",
        "spec": {"interactive": is_interactive},
    });
    if let Some(cluster) = cluster {
        info["spec"]["cluster"] = json!(cluster);
    }
    info.to_string()
}

/// Parses an answer in JSON or YAML, as client-go does.
fn parse_answer(answer: &[u8], version: &str) -> Result<PluginCredentials, Error> {
    let credential = parse_credential(answer)
        .filter(|credential| credential.kind.as_deref() == Some("ExecCredential"))
        .ok_or_else(|| no_credentials("did not return an ExecCredential"))?;
    if credential.api_version.as_deref() != Some(version) {
        let text = format!("returned another API version than {version:?}");
        return Err(Error::new(ErrorKind::Cluster, text).with_hint(UPDATE_THE_PLUGIN));
    }
    let status = credential.status.unwrap_or_default();
    let token = unless_empty(status.token);
    let certificate = unless_empty(status.client_certificate_data);
    let key = unless_empty(status.client_key_data);
    if certificate.is_some() != key.is_some() || (token.is_none() && certificate.is_none()) {
        return Err(no_credentials(
            "returned neither a token nor a certificate with its key",
        ));
    }
    Ok(PluginCredentials {
        token,
        certificate: certificate.zip(key),
        until: status.expiration_timestamp.map(SystemTime::from),
    })
}

fn parse_credential(answer: &[u8]) -> Option<ExecCredential> {
    let document = kubernetes_yaml::documents(str::from_utf8(answer).ok()?).next()?;
    serde_json::from_value(document.ok()?.to_value()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "client.authentication.k8s.io/v1";

    #[test]
    fn answers_are_read_in_json_and_yaml() {
        let head = format!("apiVersion: {V1}\nkind: ExecCredential\n");
        let table = [
            (format!("{head}status: {{token: t}}"), Some((true, false, false))),
            (
                format!("{head}status: {{token: t, expirationTimestamp: '2030-01-01T00:00:00Z'}}"),
                Some((true, false, true)),
            ),
            (
                json!({"apiVersion": V1, "kind": "ExecCredential", "spec": {},
                       "status": {"clientCertificateData": "c", "clientKeyData": "k"}})
                .to_string(),
                Some((false, true, false)),
            ),
            (format!("{head}status: {{token: ''}}"), None),
            (format!("{head}status: {{token: t, clientKeyData: k}}"), None),
            (head.clone(), None),
            ("kind: ExecCredential\nstatus: {token: t}".to_owned(), None),
            ("SUPERSECRET".to_owned(), None),
            (
                format!("{head}status: {{expirationTimestamp: SUPERSECRET, token: t}}"),
                None,
            ),
        ];
        for (text, expected) in table {
            let answer = parse_answer(text.as_bytes(), V1);
            if let Err(fault) = &answer {
                assert!(!fault.to_string().contains("SECRET"), "{fault}");
            }
            let parts = answer
                .ok()
                .map(|it| (it.token.is_some(), it.certificate.is_some(), it.until.is_some()));
            assert_eq!(parts, expected, "{text}");
        }
    }

    #[test]
    fn a_missing_program_comes_with_its_install_hint() {
        let config = ExecConfig {
            api_version: Some(V1.to_owned()),
            command: Some("no-such-credentials-plugin".to_owned()),
            args: Some(vec!["SUPERSECRET".to_owned()]),
            install_hint: Some("brew install it".to_owned()),
            ..ExecConfig::default()
        };
        let error = run(&config, PluginPrompts::Forbidden, &PluginPolicy::AllowAll)
            .err()
            .expect("no such program");
        assert_eq!(
            error.to_string(),
            "credentials plugin \"no-such-credentials-plugin\" is not installed"
        );
        assert_eq!(error.hints(), ["brew install it"]);
    }

    #[test]
    fn what_cannot_be_asked_is_not_started() {
        let config = |version: &str, command: &str| ExecConfig {
            api_version: Some(version.to_owned()),
            command: Some(command.to_owned()),
            ..ExecConfig::default()
        };
        let error = |config: ExecConfig| {
            run(&config, PluginPrompts::Forbidden, &PluginPolicy::AllowAll)
                .err()
                .expect("a fault")
                .to_string()
        };
        assert!(error(config(V1, "")).contains("has no command"));
        let old = "client.authentication.k8s.io/v1alpha1";
        assert!(error(config(old, "true")).contains("requests unsupported API version"));
    }

    #[test]
    fn the_program_gets_the_cluster_as_from_kubectl() {
        let cluster = ExecAuthCluster {
            server: Some("https://a".to_owned()),
            tls_server_name: Some("b".to_owned()),
            ..ExecAuthCluster::default()
        };
        let info = format_exec_info(V1, false, Some(&cluster));
        let info: serde_json::Value = serde_json::from_str(&info).expect("JSON");
        assert_eq!(
            info["spec"],
            json!({"interactive": false, "cluster": {"server": "https://a", "tls-server-name": "b"}})
        );
    }
}
