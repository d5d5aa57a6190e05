//! Runs the program of a kubeconfig that fetches credentials, and reads its answer.
//!
//! The protocol is the same as in client-go (`plugin/pkg/client/auth/exec`): the info in
//! `KUBERNETES_EXEC_INFO`, an `ExecCredential` on standard output. Standard error of the program
//! is passed through if a user may be present to read it. Its answer, arguments and
//! environment are never shown: all of them may hold secrets.

use std::collections::HashMap;
use std::io::{ErrorKind, IsTerminal as _, Read as _, stdin};
use std::process::{ExitStatus, Stdio};
use std::time::SystemTime;

use k8s_openapi::jiff::Timestamp;
use kube::config::{ExecAuthCluster, ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;

use super::kuberc::{Denial, PluginPolicy};
use super::{PluginPrompts, unless_empty};
use crate::find_program::{self, ProgramError};
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

/// The error of a program that returned no credentials.
#[derive(Debug, thiserror::Error)]
#[error("credentials plugin {command:?} {fault}")]
pub struct ExecError {
    /// The program as the kubeconfig names it.
    pub command: String,
    pub fault: ExecFault,
    /// The kubeconfig's hint for the installation of the program.
    pub install_hint: Option<String>,
}

/// The reason why a program returned no credentials.
#[derive(Debug, thiserror::Error)]
pub enum ExecFault {
    /// `exec` without `command`.
    #[error("has no command in the kubeconfig's exec section")]
    NoCommand,
    /// An API version that kubectl does not speak either.
    #[error("requests unsupported API version {0:?}")]
    ApiVersion(String),
    /// `interactiveMode: Always`, and no terminal.
    #[error("needs a terminal, and standard input is not one")]
    NoTerminal,
    /// kubectl's preferences (kuberc) forbid it.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// There is no such program.
    #[error("is not installed")]
    NotInstalled,
    /// The program was found only by a relative entry of `PATH`.
    #[error("cannot be started: {0}")]
    CurrentDirectory(ProgramError),
    /// The program cannot be started.
    #[error("cannot be started: {}", format_os_error(.0))]
    NotStarted(std::io::Error),
    /// The program failed. Its standard error was shown before.
    #[error("failed: {0}")]
    Failed(ExitStatus),
    /// The program's answer is not an `ExecCredential`.
    #[error("did not return an ExecCredential")]
    Unreadable,
    /// The program answered in another API version than the kubeconfig asks for.
    #[error("returned another API version than {asked:?}")]
    OtherVersion {
        /// The version of the kubeconfig.
        asked: String,
    },
    /// The program answered without credentials, or with half of a certificate and key.
    #[error("returned neither a token nor a certificate with its key")]
    Nothing,
}

impl From<ProgramError> for ExecFault {
    fn from(error: ProgramError) -> Self {
        match error {
            ProgramError::NotFound => Self::NotInstalled,
            ProgramError::CurrentDirectory(_) => Self::CurrentDirectory(error),
        }
    }
}

impl ExecFault {
    /// Returns whether the kubeconfig or the machine is at fault, so that no program was run.
    pub(super) fn is_configuration_fault(&self) -> bool {
        matches!(
            self,
            Self::NoCommand
                | Self::ApiVersion(_)
                | Self::Denied(_)
                | Self::NotInstalled
                | Self::CurrentDirectory(_)
                | Self::NotStarted(_)
        )
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential {
    api_version: Option<String>,
    kind: Option<String>,
    status: Option<ExecStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecStatus {
    expiration_timestamp: Option<Timestamp>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Runs the program, and waits for its answer. If the kubeconfig says that the program wants information about the
/// cluster, `config.cluster` holds it.
pub(super) fn run(
    config: &ExecConfig,
    prompts: PluginPrompts,
    policy: &PluginPolicy,
) -> Result<PluginCredentials, ExecError> {
    let command = config.command.as_deref().unwrap_or_default();
    run_if_allowed(config, command, prompts, policy).map_err(|fault| ExecError {
        command: command.to_owned(),
        fault,
        install_hint: config.install_hint.clone().filter(|hint| !hint.is_empty()),
    })
}

fn run_if_allowed(
    config: &ExecConfig,
    command: &str,
    prompts: PluginPrompts,
    policy: &PluginPolicy,
) -> Result<PluginCredentials, ExecFault> {
    let version = config.api_version.as_deref().unwrap_or_default();
    if command.is_empty() {
        return Err(ExecFault::NoCommand);
    }
    if !API_VERSIONS.contains(&version) {
        return Err(ExecFault::ApiVersion(version.to_owned()));
    }
    policy.check(command)?;
    let is_interactive = prompts == PluginPrompts::AsKubeconfig
        && match config.interactive_mode {
            Some(ExecInteractiveMode::Never) => false,
            Some(ExecInteractiveMode::IfAvailable) | None => stdin().is_terminal(),
            Some(ExecInteractiveMode::Always) if stdin().is_terminal() => true,
            Some(ExecInteractiveMode::Always) => return Err(ExecFault::NoTerminal),
        };
    let mut child = find_program::command_for(command)?
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
            ErrorKind::NotFound => ExecFault::NotInstalled,
            _ => ExecFault::NotStarted(error),
        })?;
    let mut answer = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout
            .take(ANSWER_LIMIT)
            .read_to_end(&mut answer)
            .map_err(ExecFault::NotStarted)?;
    }
    let status = child.wait().map_err(ExecFault::NotStarted)?;
    if !status.success() {
        return Err(ExecFault::Failed(status));
    }
    parse_answer(&answer, version)
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
fn parse_answer(answer: &[u8], version: &str) -> Result<PluginCredentials, ExecFault> {
    let text = str::from_utf8(answer).map_err(|_| ExecFault::Unreadable)?;
    let Some(Ok(document)) = kubernetes_yaml::documents(text).next() else {
        return Err(ExecFault::Unreadable);
    };
    let credential: ExecCredential =
        serde_json::from_value(document.to_value()).map_err(|_| ExecFault::Unreadable)?;
    if credential.kind.as_deref() != Some("ExecCredential") {
        return Err(ExecFault::Unreadable);
    }
    if credential.api_version.as_deref() != Some(version) {
        return Err(ExecFault::OtherVersion {
            asked: version.to_owned(),
        });
    }
    let status = credential.status.ok_or(ExecFault::Nothing)?;
    let certificate = match (
        unless_empty(status.client_certificate_data),
        unless_empty(status.client_key_data),
    ) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err(ExecFault::Nothing),
    };
    let token = unless_empty(status.token);
    if token.is_none() && certificate.is_none() {
        return Err(ExecFault::Nothing);
    }
    Ok(PluginCredentials {
        token,
        certificate,
        until: status.expiration_timestamp.map(SystemTime::from),
    })
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
        assert_eq!(error.install_hint.as_deref(), Some("brew install it"));
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
                .fault
        };
        assert!(matches!(error(config(V1, "")), ExecFault::NoCommand));
        let old = "client.authentication.k8s.io/v1alpha1";
        assert!(matches!(error(config(old, "true")), ExecFault::ApiVersion(_)));
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
