//! Webhooks that the API server could not call, read from its answers.

use super::{ApiError, Status};

/// A webhook that could not be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreachableWebhook {
    /// Name in messages, such as `webhook "webhook.cert-manager.io"`.
    pub name: String,
    /// The server's reason.
    pub reason: String,
}

impl UnreachableWebhook {
    /// Reads the error of a write.
    pub fn from_error(error: &ApiError) -> Option<Self> {
        error.status().and_then(Self::from_status)
    }

    /// Reads the server's messages (apiserver, `pkg/util/webhook/error.go`, `pkg/util/proxy/proxy.go` and
    /// `pkg/admission/plugin/webhook`; apiextensions-apiserver, `conversion/webhook_converter.go`). Older
    /// servers write the reason without `failed to call webhook`.
    pub(super) fn from_status(status: &Status) -> Option<Self> {
        if ![500, 503].contains(&status.code) {
            return None;
        }
        let message = &status.message;
        if let Some((_, rest)) = message.split_once("failed calling webhook \"") {
            let (name, reason) = rest.split_once("\": ")?;
            let reason = reason.strip_prefix("failed to call webhook: ").or_else(|| {
                // Only the failure to send the request counts: a webhook that answered badly was reached.
                reason.starts_with("Post ").then_some(reason)
            })?;
            return Some(Self::new(format!("webhook {name:?}"), reason));
        }
        if let Some((_, rest)) = message.split_once("conversion webhook for ") {
            let (kind, reason) = rest.split_once(" failed: ")?;
            let name = format!("conversion webhook for {kind}");
            return reason.starts_with("Post ").then(|| Self::new(name, reason));
        }
        let (_, rest) = message.split_once("no endpoints available for service \"")?;
        let (name, _) = rest.split_once('"')?;
        Some(Self::new(format!("service {name:?}"), "it has no endpoints"))
    }

    pub fn new(name: String, reason: &str) -> Self {
        Self {
            name,
            reason: reason.to_owned(),
        }
    }

    #[cfg(test)]
    pub fn named(name: &str) -> Self {
        Self::new(name.to_owned(), "connection refused")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: u16, message: &str) -> Option<(String, String)> {
        let status = Status {
            code,
            message: message.to_owned(),
            ..Status::default()
        };
        UnreachableWebhook::from_status(&status).map(|found| (found.name, found.reason))
    }

    #[test]
    fn webhooks_that_cannot_be_called_are_read_from_the_servers_messages() {
        let called = "Internal error occurred: failed calling webhook \"webhook.cert-manager.io\": ";
        let post = "Post \"https://cert-manager-webhook.cert-manager.svc:443/validate?timeout=30s\": ";
        let of_cert_manager = Some("webhook \"webhook.cert-manager.io\"");
        let table = [
            (
                500,
                format!(
                    "{called}failed to call webhook: {post}dial tcp 10.0.0.1:443: connect: connection refused"
                ),
                of_cert_manager,
            ),
            (
                500,
                format!(
                    "{called}failed to call webhook: {post}no endpoints available for service \"cert-manager-webhook\""
                ),
                of_cert_manager,
            ),
            (
                500,
                format!("{called}failed to call webhook: {post}service \"cert-manager-webhook\" not found"),
                of_cert_manager,
            ),
            (
                500,
                format!(
                    "{called}failed to call webhook: {post}tls: failed to verify certificate: x509: certificate signed by unknown authority"
                ),
                of_cert_manager,
            ),
            (
                500,
                format!("{called}failed to call webhook: {post}context deadline exceeded"),
                of_cert_manager,
            ),
            (
                500,
                format!(
                    "{called}failed to call webhook: the server is currently unable to handle the request"
                ),
                of_cert_manager,
            ),
            (
                503,
                format!("{called}failed to call webhook: {post}EOF"),
                of_cert_manager,
            ),
            (
                500,
                format!("{called}{post}dial tcp: connection refused"),
                of_cert_manager,
            ),
            (
                500,
                format!("conversion webhook for cert-manager.io/v1, Kind=Certificate failed: {post}EOF"),
                Some("conversion webhook for cert-manager.io/v1, Kind=Certificate"),
            ),
            (
                503,
                "no endpoints available for service \"metrics\"".to_owned(),
                Some("service \"metrics\""),
            ),
            // The webhook has answered, or is misconfigured.
            (
                500,
                format!("{called}received invalid webhook response: expected response.uid=\"a\", got \"\""),
                None,
            ),
            (500, format!("{called}Webhook SideEffects is nil"), None),
            (
                400,
                "admission webhook \"w.example.com\" does not support dry run".to_owned(),
                None,
            ),
            (
                403,
                "admission webhook \"w.example.com\" denied the request: failed to call webhook".to_owned(),
                None,
            ),
            (403, format!("{called}failed to call webhook: {post}EOF"), None),
            (
                500,
                "conversion webhook for a/v1, Kind=B failed: the object is broken".to_owned(),
                None,
            ),
            (500, "etcdserver: leader changed".to_owned(), None),
            (
                503,
                "the server is currently unable to handle the request".to_owned(),
                None,
            ),
        ];
        for (code, message, expected) in table {
            let found = read(code, &message).map(|(name, _)| name);
            assert_eq!(found.as_deref(), expected, "{code} {message}");
        }
        let (_, reason) =
            read(500, &format!("{called}failed to call webhook: {post}EOF")).expect("a webhook");
        assert_eq!(reason, format!("{post}EOF"));
    }
}
