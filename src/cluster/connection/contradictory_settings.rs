//! Refuses settings that contradict each other. kubectl refuses the same settings, with the same phrases (client-go,
//! `tools/clientcmd/validation.go` and `transport/transport.go`).

use kube::config::{AuthInfo, Cluster};

use super::error::conflicting_settings;
use crate::error::Error;

/// Refuses a cluster with two certificate authorities.
pub(super) fn check_cluster(cluster: &Cluster, name: &str) -> Result<(), Error> {
    refuse_file_and_data(
        "certificate-authority",
        cluster.certificate_authority.is_some() && cluster.certificate_authority_data.is_some(),
        name,
    )
}

fn refuse_file_and_data(field: &str, has_both: bool, name: &str) -> Result<(), Error> {
    if has_both {
        return Err(conflicting_settings(
            format_args!("{field}-data and {field} are both specified for {name}"),
            "remove either the file or the data from the kubeconfig",
        ));
    }
    Ok(())
}

/// Refuses a user with two ways to log in, or with a part of one, such as a certificate without a key.
pub(super) fn check_user(user: &AuthInfo, name: &str) -> Result<(), Error> {
    if has_certificate(user) {
        let has_both = user.client_certificate.is_some() && user.client_certificate_data.is_some();
        refuse_file_and_data("client-cert", has_both, name)?;
        let has_both = user.client_key.is_some() && user.client_key_data.is_some();
        refuse_file_and_data("client-key", has_both, name)?;
        if !has_key(user) {
            return Err(conflicting_settings(
                format_args!(
                    "client-key-data or client-key must be specified for {name} to use the clientCert authentication method"
                ),
                "add --client-key FILE, or client-key to the kubeconfig",
            ));
        }
    }
    if user.exec.is_some() && user.auth_provider.is_some() {
        return Err(conflicting_settings(
            format_args!("authProvider cannot be provided in combination with an exec plugin for {name}"),
            "remove the auth-provider from the kubeconfig",
        ));
    }
    let has_password = user.username.is_some() || user.password.is_some();
    let has_file_and_name = user.token_file.is_some() && user.username.is_some();
    if user.token.is_some() && has_password || has_file_and_name {
        return Err(conflicting_settings(
            format_args!(
                "more than one authentication method found for {name}; found [token basicAuth], only one is allowed"
            ),
            "remove either the token or the user name, or choose another --user",
        ));
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
        return Err(conflicting_settings(
            format_args!("requesting uid, groups or user-extra for {name} without impersonating a user"),
            "add --as USER",
        ));
    }
    Ok(())
}

/// Returns whether there is a client certificate with its key.
pub(super) fn has_certificate_and_key(user: &AuthInfo) -> bool {
    has_certificate(user) && has_key(user)
}

fn has_certificate(user: &AuthInfo) -> bool {
    user.client_certificate.is_some() || user.client_certificate_data.is_some()
}

fn has_key(user: &AuthInfo) -> bool {
    user.client_key.is_some() || user.client_key_data.is_some()
}
