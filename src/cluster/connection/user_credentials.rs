//! Turns the user of a kubeconfig into credentials. Tokens that change, from files and programs, become a `Credential`;
//! `kube` handles all other credentials.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{AuthInfo, ExecConfig};

use super::PluginPrompts;
use super::error::{REPLACE_THE_TOKEN, unusable_token};
use super::exec_credential_plugin::{self, PluginCredentials};
use super::kuberc::{self, PluginPolicy};
use crate::cluster::apiserver::{Credential, Token, TokenSource};
use crate::error::Error;
use crate::model::text::format_os_error;
use crate::regular_file::{self, SMALL};

/// The time after which a token file is read again (client-go, `NewCachedFileTokenSource`).
const TOKEN_FILE_PERIOD: Duration = Duration::from_mins(1);

/// Removes the token file and the program from the user, and returns the credential that they supply. If the program
/// returns a certificate, it replaces the user's certificate. The preferences, which `kuberc` names, say whether the
/// program may run.
pub(super) fn log_in(
    user: &mut AuthInfo,
    prompts: PluginPrompts,
    kuberc: Option<&Path>,
) -> Result<Option<Credential>, Error> {
    if let Some(provider) = &user.auth_provider
        && provider.name != "oidc"
    {
        return Err(Error::usage(
            format!(
                "auth-provider {:?}: not supported (kubectl removed it too)",
                provider.name
            ),
            "use the exec plugin of your provider, such as gke-gcloud-auth-plugin or kubelogin",
        ));
    }
    if let Some(file) = user.token_file.take() {
        return log_in_by_file(&file, user);
    }
    check_token(user)?;
    // If the user has a token or a user name, the program is not needed.
    match user.exec.take() {
        Some(config) if user.token.is_none() && user.username.is_none() => {
            log_in_by_program(config, user, prompts, kuberc::read_policy(kuberc)?)
        }
        _ => Ok(None),
    }
}

/// Checks that a token of the kubeconfig or of a flag fits into a header; otherwise kube would panic. Serializing is
/// the only way to read the token from kube's type.
fn check_token(user: &AuthInfo) -> Result<(), Error> {
    let fields = serde_json::to_value(user).unwrap_or_default();
    match fields["token"].as_str().map(|token| Token::bearer(token, None)) {
        Some(None) => Err(unusable_token()),
        Some(Some(_)) | None => Ok(()),
    }
}

/// Returns the credential of a token file, which takes precedence over a token of the kubeconfig. If the file cannot be
/// read, that token is used (client-go, `rest.Config.BearerTokenFile`).
fn log_in_by_file(file: &str, user: &mut AuthInfo) -> Result<Option<Credential>, Error> {
    let first_token = match read_token(file) {
        Ok(token) => token,
        Err(_) if user.token.is_some() => return Ok(None),
        Err(reason) => {
            let text = format!("token file {file}: cannot be used: {reason}");
            return Err(Error::usage(text, REPLACE_THE_TOKEN));
        }
    };
    user.token = None;
    let file = file.to_owned();
    let last_token = Mutex::new(first_token.clone());
    // If the file disappears later, the last token remains in use.
    let source: Arc<TokenSource> = Arc::new(move || {
        let mut last_token = last_token.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(token) = read_token(&file) {
            *last_token = token;
        }
        Ok(last_token.clone())
    });
    Ok(Some(Credential::new(first_token, source)))
}

fn read_token(file: impl AsRef<Path>) -> Result<Token, String> {
    let text = regular_file::read_text(file.as_ref(), SMALL).map_err(|error| format_os_error(&error))?;
    let until = SystemTime::now() + TOKEN_FILE_PERIOD;
    Some(text.trim())
        .filter(|token| !token.is_empty())
        .and_then(|token| Token::bearer(token, Some(until)))
        .ok_or_else(|| "the file contains no token".to_owned())
}

fn log_in_by_program(
    config: ExecConfig,
    user: &mut AuthInfo,
    prompts: PluginPrompts,
    policy: PluginPolicy,
) -> Result<Option<Credential>, Error> {
    let answer = exec_credential_plugin::run(&config, prompts, &policy)?;
    if let Some((certificate, key)) = &answer.certificate {
        user.client_certificate = None;
        user.client_key = None;
        user.client_certificate_data = Some(STANDARD.encode(certificate));
        user.client_key_data = Some(STANDARD.encode(key).into());
    }
    let Some(first_token) = token_of(&answer) else {
        return match answer.token {
            None => Ok(None),
            Some(_) => Err(unusable_token()),
        };
    };
    let source: Arc<TokenSource> = Arc::new(move || {
        let answer =
            exec_credential_plugin::run(&config, prompts, &policy).map_err(|error| error.to_string())?;
        token_of(&answer).ok_or_else(|| unusable_token().to_string())
    });
    Ok(Some(Credential::new(first_token, source)))
}

fn token_of(answer: &PluginCredentials) -> Option<Token> {
    Token::bearer(answer.token.as_ref()?, answer.until)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user_with_file(file: &Path, token: Option<&str>) -> AuthInfo {
        AuthInfo {
            token_file: Some(file.display().to_string()),
            token: token.map(|token| token.to_owned().into()),
            ..AuthInfo::default()
        }
    }

    #[test]
    fn a_token_file_prevails_and_may_be_late() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("token");
        assert!(log_in(&mut user_with_file(&file, None), PluginPrompts::Forbidden, None).is_err());
        let mut late = user_with_file(&file, Some("inline"));
        assert!(
            log_in(&mut late, PluginPrompts::Forbidden, None)
                .expect("a token")
                .is_none()
        );
        assert!(late.token.is_some());

        std::fs::write(&file, "SUPERSECRET\nSECRET").expect("a file");
        let error = log_in(&mut user_with_file(&file, None), PluginPrompts::Forbidden, None)
            .err()
            .expect("no token");
        assert!(!error.to_string().contains("SECRET"), "{error}");
        std::fs::write(&file, " abc\n").expect("a file");
        let mut user = user_with_file(&file, Some("inline"));
        assert!(
            log_in(&mut user, PluginPrompts::Forbidden, None)
                .expect("a token")
                .is_some()
        );
        assert!(user.token.is_none());
    }

    #[test]
    fn providers_that_kubectl_dropped_are_refused() {
        let provider = |name: &str| {
            let mut user = AuthInfo {
                auth_provider: serde_json::from_value(serde_json::json!({"name": name})).ok(),
                ..AuthInfo::default()
            };
            log_in(&mut user, PluginPrompts::Forbidden, None)
        };
        assert!(provider("gcp").is_err());
        assert!(provider("oidc").is_ok());
    }
}
