//! Applies the flags to the kubeconfig's settings, as client-go does (`tools/clientcmd`:
//! `DirectClientConfig.getCluster` and `getAuthInfo`), and refuses contradictions.
//!
//! The parent module reads files and the environment.

use http::Uri;
use http::uri::Scheme;
use kube::config::{AuthInfo, Cluster};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::contradictory_settings;
use super::error::{conflicting_settings, no_server};
use super::kubeconfig::Chosen;
use super::{ConnectionOptions, non_empty, parse_server};
use crate::error::Error;

/// The settings of one connection.
#[derive(Debug)]
pub(super) struct ConnectionSettings {
    pub(super) server: Uri,
    pub(super) cluster: Cluster,
    pub(super) user: AuthInfo,
}

/// Returns the settings for these flags and this part of the kubeconfig.
pub(super) fn resolve(options: &ConnectionOptions, chosen: &Chosen) -> Result<ConnectionSettings, Error> {
    let mut cluster = remove_empty_texts(&chosen.cluster);
    let mut user = remove_empty_texts(&chosen.user);
    override_cluster(options, &mut cluster);
    override_user(options, &mut user);
    let server = parse_server(cluster.server.as_ref().ok_or_else(no_server)?)?;
    contradictory_settings::check_cluster(&cluster, &chosen.cluster_name)?;
    contradictory_settings::check_user(&user, &chosen.user_name)?;
    if is_encrypted(&server) {
        if cluster.insecure_skip_tls_verify == Some(true) && has_certificate_authority(&cluster) {
            return Err(conflicting_settings(
                "specifying a root certificates file with the insecure flag is not allowed",
                "remove insecure-skip-tls-verify, or the certificate authority",
            ));
        }
        remove_unneeded_logins(&mut user);
    } else {
        // client-go: "only try to read the auth information if we are secure".
        user = keep_only_impersonation(user);
    }
    Ok(ConnectionSettings {
        server,
        cluster,
        user,
    })
}

/// Replaces the kubeconfig's fields by the flags about the server.
fn override_cluster(options: &ConnectionOptions, cluster: &mut Cluster) {
    let is_unverified = options.insecure_skip_tls_verify;
    let authority = options
        .certificate_authority
        .as_ref()
        .filter(|path| !path.as_os_str().is_empty());
    // Either flag replaces all settings of the kubeconfig about verification. The flag of an authority switches
    // verification on, and the flag that switches it off removes the authority of the kubeconfig.
    if is_unverified || authority.is_some() {
        cluster.insecure_skip_tls_verify = Some(is_unverified);
        cluster.certificate_authority = authority.map(|path| path.display().to_string());
        cluster.certificate_authority_data = None;
    }
    let server = non_empty(options.server.as_ref());
    let name = non_empty(options.tls_server_name.as_ref());
    // The flag of a server also removes the kubeconfig's TLS server name, which belongs to the kubeconfig's server.
    if name.is_some() || server.is_some() {
        cluster.tls_server_name = name.map(str::to_owned);
    }
    if let Some(server) = server {
        cluster.server = Some(server.to_owned());
    }
}

/// Replaces the kubeconfig's fields by the flags about the user. Unlike in client-go, a token by
/// flag also replaces the kubeconfig's token file.
fn override_user(options: &ConnectionOptions, user: &mut AuthInfo) {
    if let Some(token) = non_empty(options.token.as_ref()) {
        user.token = Some(token.to_owned().into());
        user.token_file = None;
    }
    if let Some(name) = non_empty(options.username.as_ref()) {
        user.username = Some(name.to_owned());
    }
    if let Some(password) = non_empty(options.password.as_ref()) {
        user.password = Some(password.to_owned().into());
    }
    if let Some(path) = &options.client_certificate {
        user.client_certificate_data = None;
        user.client_certificate = Some(path.display().to_string());
    }
    if let Some(path) = &options.client_key {
        user.client_key_data = None;
        user.client_key = Some(path.display().to_string());
    }
    if let Some(name) = non_empty(options.impersonate.as_ref()) {
        user.impersonate = Some(name.to_owned());
    }
    if let Some(uid) = non_empty(options.impersonate_uid.as_ref()) {
        user.impersonate_uid = Some(uid.to_owned());
    }
    if !options.impersonate_groups.is_empty() {
        user.impersonate_groups = Some(options.impersonate_groups.clone());
    }
}

/// Removes the ways to log in that are not needed: a plugin does not run if the user has a token, a password or a
/// certificate (client-go, `UpdateTransportConfig`).
fn remove_unneeded_logins(user: &mut AuthInfo) {
    if user.username.is_none() {
        user.password = None;
    } else if user.password.is_none() {
        user.password = Some(String::new().into());
    }
    let has_header = user.token.is_some() || user.token_file.is_some() || user.username.is_some();
    if has_header || contradictory_settings::has_certificate_and_key(user) {
        user.exec = None;
    }
    if has_header {
        user.auth_provider = None;
    }
}

/// Returns the user with nothing but the settings of impersonation.
fn keep_only_impersonation(user: AuthInfo) -> AuthInfo {
    AuthInfo {
        impersonate: user.impersonate,
        impersonate_uid: user.impersonate_uid,
        impersonate_groups: user.impersonate_groups,
        impersonate_user_extra: user.impersonate_user_extra,
        ..AuthInfo::default()
    }
}

fn is_encrypted(server: &Uri) -> bool {
    server.scheme() == Some(&Scheme::HTTPS)
}

fn has_certificate_authority(cluster: &Cluster) -> bool {
    cluster.certificate_authority.is_some() || cluster.certificate_authority_data.is_some()
}

/// Returns a part of a kubeconfig without its empty texts, which count as unset. Serializing is the only way to see
/// whether a secret of kube's types is empty.
fn remove_empty_texts<T: Clone + Serialize + DeserializeOwned>(part: &T) -> T {
    let mut fields = serde_json::to_value(part).unwrap_or_default();
    if let Some(fields) = fields.as_object_mut() {
        fields.retain(|_, field| field != "");
    }
    serde_json::from_value(fields).unwrap_or_else(|_| part.clone())
}

#[cfg(test)]
mod tests;
