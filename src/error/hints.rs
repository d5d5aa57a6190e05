//! Hints: the command to type next after an error.

use std::collections::BTreeSet;

use super::Error;
use crate::cluster::apiserver::{ApiError, ApiErrorKind, TooLarge};
use crate::execute::ParentWriteError;
use crate::model::applyset::ApplySetId;
use crate::model::text::counted;
use crate::read::{FailedList, ListError, MissingNamespace};

impl Error {
    /// Returns the hint for the error as a whole: the command to type next. `None` if each of its
    /// messages has its own.
    pub(super) fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Usage { hint, .. } => hint.clone(),
            Self::Manifests(_)
            | Self::InvalidObjects(_)
            | Self::Refused(_)
            | Self::NotConfirmed
            | Self::ParentWrite(ParentWriteError::Refused(_)) => return None,
            Self::Interrupted => "run the same command again to finish".to_owned(),
            Self::MissingNamespaces(missing) => namespace_hint(missing),
            Self::MissingDependencies(_) => {
                "add it to the manifests, create it first, or correct the annotation".to_owned()
            }
            Self::Overtaken(_) | Self::Altered(_) => {
                "make a new plan with `kubectl applyset diff SET -f … --out FILE`".to_owned()
            }
            Self::NotSaved => "resolve the errors above".to_owned(),
            Self::Connection(error) => error.hint(),
            Self::Discovery(error) => request_hint(error.request()),
            Self::KindUnknowable(_) => {
                "restore the API that `kubectl get apiservices` shows as unavailable, then run again"
                    .to_owned()
            }
            Self::DefinitionTerminating(_) => "run the same command again when it is gone".to_owned(),
            Self::KindNotServed(_) => {
                "check `kubectl get crds,apiservices`, then run the same command again".to_owned()
            }
            Self::ParentWrite(ParentWriteError::Request(error))
            | Self::Read { error, .. }
            | Self::List(FailedList {
                error: ListError::Request(error),
                ..
            }) => request_hint(error),
            Self::ParentWrite(ParentWriteError::Changed(_)) => {
                "exempt the ApplySet labels and annotations of the set's parent from the policy or webhook, then run `kubectl applyset verify SET --fix`"
                    .to_owned()
            }
            Self::GrantedByRbac(error) if matches!(**error, Self::List(_)) => {
                "print the permissions that this set needs with `kubectl applyset rbac SET -f …`, and with --include-recorded if no manifest has this kind or namespace".to_owned()
            }
            Self::GrantedByRbac(_) => {
                "print the permissions that this set needs with `kubectl applyset rbac SET -f …`".to_owned()
            }
            Self::MissingPermissions(_) => ASK_AN_ADMINISTRATOR.to_owned(),
            Self::MembersWithoutParent { .. } => {
                "run it as a user who can delete these objects, or remove the labels".to_owned()
            }
            Self::ExportIncomplete(parent) => format!("see `kubectl applyset verify {}`", parent.argument()),
            Self::MembersUnknown { parent, .. } => format!(
                "run it as a user who can list everything, or list members with `kubectl get KIND -A -l applyset.kubernetes.io/part-of={}`",
                ApplySetId::for_parent(parent)
            ),
            Self::List(_) | Self::ParentWrite(_) | Self::Unpredicted(_) => {
                "run the same command again".to_owned()
            }
        })
    }
}

/// `rbac` prints the permissions to apply a set. Other commands may need others.
const ASK_AN_ADMINISTRATOR: &str =
    "ask a cluster administrator for this permission; `kubectl auth can-i --list` shows yours";

fn request_hint(error: &ApiError) -> String {
    match &*error.kind {
        ApiErrorKind::Status(status) if status.is_denied_by_admission() => {
            "change what the policy or webhook objects to, or exempt the object from it".to_owned()
        }
        ApiErrorKind::Status(status) => match status.code {
            401 => "log in again, or check --token and the context's user".to_owned(),
            403 => ASK_AN_ADMINISTRATOR.to_owned(),
            _ => "run the same command again; `kubectl version` tests the server".to_owned(),
        },
        ApiErrorKind::Connection { proxy: Some(proxy), .. } => format!(
            "check {}, or list the server in NO_PROXY",
            proxy.named_by()
        ),
        ApiErrorKind::Untrusted { .. } => {
            "check the cluster's certificate-authority in the kubeconfig, or set --certificate-authority or --tls-server-name"
                .to_owned()
        }
        ApiErrorKind::Connection { .. } | ApiErrorKind::Timeout { .. } | ApiErrorKind::NotSent { .. } => {
            "check --server, --context and KUBECONFIG; `kubectl cluster-info` uses the same server"
                .to_owned()
        }
        ApiErrorKind::LeaseLost(_) => {
            "run the same command again once the server answers and you may patch the set's parent".to_owned()
        },
        ApiErrorKind::Credential(_) => "log in again, then run the same command".to_owned(),
        ApiErrorKind::TooLarge(TooLarge::WithOthers) => {
            "check that --server is the URL of a Kubernetes API server, or lower --concurrency".to_owned()
        }
        ApiErrorKind::TooLarge(_) | ApiErrorKind::Unreadable(_) => {
            "check that --server is the URL of a Kubernetes API server".to_owned()
        }
    }
}

fn namespace_hint(missing: &[MissingNamespace]) -> String {
    let names: BTreeSet<&str> = missing.iter().map(|missing| missing.namespace.as_str()).collect();
    let commands: Vec<String> = names
        .iter()
        .map(|name| format!("`kubectl create namespace {name}`"))
        .collect();
    format!(
        "run {}, or add the {} to the manifests",
        commands.join(", "),
        counted(names.len(), "Namespace")
            .trim_start_matches(|first: char| first.is_ascii_digit() || first == ' ')
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::apiserver::Status;

    #[test]
    fn a_denial_by_admission_is_not_tried_again() {
        let again = "run the same command again";
        for (code, message, is_tried_again) in [
            (
                403,
                "secrets \"s\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
                false,
            ),
            (
                422,
                "secrets \"s\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
                false,
            ),
            (
                400,
                "admission webhook \"w.example.com\" denied the request: no",
                false,
            ),
            (500, "etcdserver: request timed out", true),
        ] {
            let status = Status {
                code,
                message: message.to_owned(),
                ..Status::default()
            };
            let hint = request_hint(&ApiError {
                kind: Box::new(ApiErrorKind::Status(Box::new(status))),
                ..ApiError::unreadable("/api/v1/secrets", "")
            });
            assert_eq!(hint.starts_with(again), is_tried_again, "{hint}");
            assert!(!hint.contains("can-i"), "{hint}");
        }
    }
}
