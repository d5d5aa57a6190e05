//! Writes kubeconfig files. JSON is YAML too, so nothing else can write them.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::Error;
use crate::error::About as _;

/// A user of a server, known by a token.
#[derive(Clone, Copy)]
pub(crate) struct Login<'a> {
    pub(crate) server: &'a str,
    pub(crate) certificate_authority: &'a Path,
    pub(crate) user: &'a str,
    pub(crate) token: &'a str,
}

pub(crate) fn write(path: &Path, login: Login<'_>) -> Result<(), Error> {
    let cluster = "controlplane";
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": cluster,
            "cluster": {
                "server": login.server,
                "certificate-authority": login.certificate_authority,
            },
        }],
        "users": [{"name": login.user, "user": {"token": login.token}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": login.user}}],
        "current-context": cluster,
    });
    fs::write(path, config.to_string()).about(path)
}
