//! Settings that contradict each other. kubectl refuses each of these, and this program does with
//! the same phrases (client-go, `tools/clientcmd/validation.go` and `transport/transport.go`).

use kube::config::{AuthInfo, Cluster};

/// Settings that exclude each other.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// A certificate authority, and no verification.
    #[error("specifying a root certificates file with the insecure flag is not allowed")]
    AuthorityUnverified,
    /// Two certificate authorities.
    #[error("certificate-authority-data and certificate-authority are both specified for {0}")]
    TwoAuthorities(String),
    /// Two client certificates.
    #[error("client-cert-data and client-cert are both specified for {0}")]
    TwoCertificates(String),
    /// Two client keys.
    #[error("client-key-data and client-key are both specified for {0}")]
    TwoKeys(String),
    /// A client certificate without a key.
    #[error(
        "client-key-data or client-key must be specified for {0} to use the clientCert authentication method"
    )]
    NoKey(String),
    /// A token and a password.
    #[error(
        "more than one authentication method found for {0}; found [token basicAuth], only one is allowed"
    )]
    TwoMethods(String),
    /// A plugin and an auth-provider.
    #[error("authProvider cannot be provided in combination with an exec plugin for {0}")]
    TwoPlugins(String),
    /// An impersonated group, uid or extra without a user.
    #[error("requesting uid, groups or user-extra for {0} without impersonating a user")]
    NoImpersonatedUser(String),
}

impl Conflict {
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::AuthorityUnverified => "remove insecure-skip-tls-verify, or the certificate authority",
            Self::TwoAuthorities(_) | Self::TwoCertificates(_) | Self::TwoKeys(_) => {
                "remove either the file or the data from the kubeconfig"
            }
            Self::NoKey(_) => "add --client-key FILE, or client-key to the kubeconfig",
            Self::TwoMethods(_) => "remove either the token or the user name, or choose another --user",
            Self::TwoPlugins(_) => "remove the auth-provider from the kubeconfig",
            Self::NoImpersonatedUser(_) => "add --as USER",
        }
    }
}

/// Refuses a cluster with two certificate authorities.
pub(super) fn check_cluster(cluster: &Cluster, name: &str) -> Result<(), Conflict> {
    if cluster.certificate_authority.is_some() && cluster.certificate_authority_data.is_some() {
        return Err(Conflict::TwoAuthorities(name.to_owned()));
    }
    Ok(())
}

/// Refuses a user with two ways to log in, or half of one.
pub(super) fn check_user(user: &AuthInfo, name: &str) -> Result<(), Conflict> {
    let name = || name.to_owned();
    if names_certificate(user) {
        if user.client_certificate.is_some() && user.client_certificate_data.is_some() {
            return Err(Conflict::TwoCertificates(name()));
        }
        if user.client_key.is_some() && user.client_key_data.is_some() {
            return Err(Conflict::TwoKeys(name()));
        }
        if !names_key(user) {
            return Err(Conflict::NoKey(name()));
        }
    }
    if user.exec.is_some() && user.auth_provider.is_some() {
        return Err(Conflict::TwoPlugins(name()));
    }
    let has_password = user.username.is_some() || user.password.is_some();
    let has_file_and_name = user.token_file.is_some() && user.username.is_some();
    if user.token.is_some() && has_password || has_file_and_name {
        return Err(Conflict::TwoMethods(name()));
    }
    let has_more = user.impersonate_uid.is_some()
        || user
            .impersonate_groups
            .as_ref()
            .is_some_and(|groups| !groups.is_empty())
        || user
            .impersonate_user_extra
            .as_ref()
            .is_some_and(|extra| !extra.is_empty());
    if has_more && user.impersonate.is_none() {
        return Err(Conflict::NoImpersonatedUser(name()));
    }
    Ok(())
}

/// Returns whether there is a client certificate with its key.
pub(super) fn has_certificate(user: &AuthInfo) -> bool {
    names_certificate(user) && names_key(user)
}

fn names_certificate(user: &AuthInfo) -> bool {
    user.client_certificate.is_some() || user.client_certificate_data.is_some()
}

fn names_key(user: &AuthInfo) -> bool {
    user.client_key.is_some() || user.client_key_data.is_some()
}
