//! Flags of the connection win over what the kubeconfig says.

use kube::config::{AuthInfo, Cluster};

use super::{Certificates, ConnectionError, ConnectionOptions, given};

/// What is said of the server replaces what the kubeconfig says.
pub(super) fn of_cluster(options: &ConnectionOptions, cluster: &mut Cluster) {
    if let Some(server) = given(options.server.as_ref()) {
        cluster.server = Some(server.to_owned());
    }
    if let Some(path) = &options.certificate_authority {
        cluster.certificate_authority_data = None;
        cluster.certificate_authority = Some(path.display().to_string());
    }
    if options.certificates == Certificates::Unverified {
        cluster.insecure_skip_tls_verify = Some(true);
    }
    if let Some(name) = given(options.tls_server_name.as_ref()) {
        cluster.tls_server_name = Some(name.to_owned());
    }
}

/// A token or a password given by flag replaces whatever way of logging in the
/// kubeconfig has, apart from certificates.
pub(super) fn of_user(options: &ConnectionOptions, user: &mut AuthInfo) -> Result<(), ConnectionError> {
    if options.token.is_some() || options.username.is_some() {
        user.exec = None;
        user.auth_provider = None;
        user.token_file = None;
        user.username.clone_from(&options.username);
        user.password = options.password.clone().map(Into::into);
        user.token = options.token.clone().map(Into::into);
    }
    if user.username.is_some() && user.password.is_none() {
        user.password = Some(String::new().into());
    }
    if let Some(path) = &options.client_certificate {
        user.client_certificate_data = None;
        user.client_certificate = Some(path.display().to_string());
    }
    if let Some(path) = &options.client_key {
        user.client_key_data = None;
        user.client_key = Some(path.display().to_string());
    }
    if let Some(name) = &options.impersonate {
        user.impersonate = Some(name.clone());
    }
    if let Some(uid) = &options.impersonate_uid {
        user.impersonate_uid = Some(uid.clone());
    }
    if !options.impersonate_groups.is_empty() {
        user.impersonate_groups = Some(options.impersonate_groups.clone());
    }
    let is_somebody = user.impersonate.as_ref().is_some_and(|name| !name.is_empty());
    let has_more = user.impersonate_uid.as_ref().is_some_and(|uid| !uid.is_empty())
        || user
            .impersonate_groups
            .as_ref()
            .is_some_and(|groups| !groups.is_empty())
        || user
            .impersonate_user_extra
            .as_ref()
            .is_some_and(|extra| !extra.is_empty());
    if has_more && !is_somebody {
        return Err(ConnectionError::ImpersonatedNobody);
    }
    Ok(())
}

/// Whether the files can be opened that kube will read; its own error names neither file nor flag.
pub(super) fn check_files(user: &AuthInfo) -> Result<(), ConnectionError> {
    let certificate = user
        .client_certificate
        .as_ref()
        .filter(|_| user.client_certificate_data.is_none());
    let key = user
        .client_key
        .as_ref()
        .filter(|_| user.client_key_data.is_none());
    let certificate = certificate.map(|path| ("client certificate", path));
    let key = key.map(|path| ("client key", path));
    for (what, path) in certificate.into_iter().chain(key) {
        std::fs::File::open(path).map_err(|error| ConnectionError::UnreadableFile {
            what,
            path: path.into(),
            error,
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_impersonated_belongs_to_somebody() {
        let groups = ConnectionOptions {
            impersonate_groups: vec!["admins".to_owned()],
            ..ConnectionOptions::default()
        };
        let uid = ConnectionOptions {
            impersonate_uid: Some("1".to_owned()),
            ..ConnectionOptions::default()
        };
        for options in [groups, uid] {
            let nobody = of_user(&options, &mut AuthInfo::default());
            assert!(nobody.expect_err("nobody").is_usage());
            let mut of_kubeconfig = AuthInfo {
                impersonate: Some("me".to_owned()),
                ..AuthInfo::default()
            };
            of_user(&options, &mut of_kubeconfig).expect("somebody");
        }
    }

    #[test]
    fn credentials_given_by_flag_replace_those_of_the_kubeconfig() {
        let of_kubeconfig = || AuthInfo {
            token: Some("t".to_owned().into()),
            token_file: Some("f".to_owned()),
            client_certificate: Some("c".to_owned()),
            ..AuthInfo::default()
        };
        let options = ConnectionOptions {
            username: Some("me".to_owned()),
            ..ConnectionOptions::default()
        };
        let mut user = of_kubeconfig();
        of_user(&options, &mut user).expect("a user");
        assert!(user.token.is_none() && user.token_file.is_none() && user.password.is_some());
        assert_eq!(user.client_certificate.as_deref(), Some("c"));
        let mut user = of_kubeconfig();
        of_user(&ConnectionOptions::default(), &mut user).expect("a user");
        assert!(user.token.is_some() && user.username.is_none());
    }
}
