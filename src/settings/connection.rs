//! Reads the flags about the connection.

use super::duration::duration;
use crate::cli::ConnectionFlags;
use crate::cluster::connection::{Certificates, ConnectionOptions, Login};
use crate::error::Error;

/// Reads the flags about the connection.
pub fn connection(flags: &ConnectionFlags) -> Result<ConnectionOptions, Error> {
    Ok(ConnectionOptions {
        kubeconfig: flags.kubeconfig.clone(),
        kuberc: flags.kuberc.clone(),
        context: flags.context.clone(),
        cluster: flags.cluster.clone(),
        user: flags.user.clone(),
        impersonate: flags.impersonate.clone(),
        impersonate_groups: flags.impersonate_groups.clone(),
        impersonate_uid: flags.impersonate_uid.clone(),
        server: flags.server.clone(),
        token: flags.token.clone(),
        username: flags.username.clone(),
        password: flags.password.clone(),
        certificate_authority: flags.certificate_authority.clone(),
        client_certificate: flags.client_certificate.clone(),
        client_key: flags.client_key.clone(),
        tls_server_name: flags.tls_server_name.clone(),
        certificates: if flags.insecure_skip_tls_verify {
            Certificates::Unverified
        } else {
            Certificates::Verified
        },
        request_timeout: flags
            .request_timeout
            .as_deref()
            .map(|text| duration("--request-timeout", text))
            .transpose()?,
        login: Login::Attended,
    })
}
