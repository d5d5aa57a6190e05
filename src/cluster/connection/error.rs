//! Errors about kubeconfigs, flags and credentials that several files of this module create, with their hints.

use std::fmt;

use kube::config::KubeconfigError;

use crate::cluster::proxy::InvalidProxy;
use crate::error::Error;
use crate::model::text::format_os_error;

/// The error about a kubeconfig that cannot be used.
pub(super) fn invalid_kubeconfig(error: &KubeconfigError) -> Error {
    Error::usage(
        format!("kubeconfig: invalid: {}", format_os_error(error)),
        CHOOSE_A_CONTEXT,
    )
}

const CHOOSE_A_CONTEXT: &str =
    "list the contexts with `kubectl config get-contexts`, then set --context, current-context or --server";

/// The error about settings that name no server.
pub(super) fn no_server() -> Error {
    Error::usage(
        "no server configured: the kubeconfig has no current-context",
        CHOOSE_A_CONTEXT,
    )
}

/// The error about settings that exclude each other. `conflict` is in kubectl's words.
pub(super) fn conflicting_settings(conflict: impl fmt::Display, hint: &str) -> Error {
    Error::usage(format!("invalid configuration: {conflict}"), hint)
}

/// The error about certificates or credentials that cannot be used. `context` is the context of the kubeconfig.
pub(super) fn unusable_credentials(context: Option<&str>, error: &kube::Error) -> Error {
    let place = context.map_or_else(String::new, |name| format!("context {name:?}: "));
    let text = format!("{place}client configuration: {}", format_os_error(error));
    Error::usage(
        text,
        "check --client-certificate, --client-key, and the user and cluster entries of the kubeconfig",
    )
}

/// The error about a token with characters that no token has.
pub(super) fn unusable_token() -> Error {
    Error::usage(
        "invalid token: it contains characters that HTTP does not allow",
        REPLACE_THE_TOKEN,
    )
}

pub(super) const REPLACE_THE_TOKEN: &str = "replace the token; `kubectl auth whoami` tests it";

impl From<InvalidProxy> for Error {
    fn from(error: InvalidProxy) -> Self {
        let hint = "write it as http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT";
        Self::usage(error.to_string(), hint)
    }
}
