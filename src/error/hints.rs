//! Hints: the command to type next after an error.

use std::collections::BTreeSet;

use super::Error;
use crate::cluster::apiserver::{ApiError, ApiErrorKind};
use crate::execute::ParentWriteError;
use crate::model::applyset::ApplySetId;
use crate::model::text::counted;
use crate::plan::Refusal;
use crate::read::{ListError, MissingNamespace};

impl Error {
    /// Lists what to type next; a line for each thing, without repetition.
    pub fn hints(&self) -> Vec<String> {
        let hints: Vec<String> = match self {
            Self::Usage { hint, .. } => vec![hint.clone()],
            // Each fault of a manifest is printed with its hint beside it.
            Self::Manifests(_) | Self::InvalidObjects(_) => Vec::new(),
            Self::Interrupted => vec!["the same command does the rest".to_owned()],
            Self::MissingNamespaces(missing) => vec![namespace_hint(missing)],
            Self::Refused(refusals) | Self::NotConfirmed(refusals) | Self::ParentWrite(ParentWriteError::Refused(refusals)) => {
                refusals.iter().map(Refusal::hint).collect()
            }
            Self::Overtaken(_) | Self::Altered(_) => vec![
                "nothing was written; make the plan anew with `kubectl applyset diff SET -f … --out FILE`".to_owned(),
            ],
            Self::NotSaved => vec!["see above what stands against it, and which flag lifts that".to_owned()],
            Self::Connection(error) => vec![error.hint()],
            Self::Discovery(error) => vec![request_hint(error.request())],
            Self::KindUnknowable(_) => vec![
                "`kubectl get apiservices` shows which API is down; nothing is pruned while it cannot be asked".to_owned(),
            ],
            Self::DefinitionTerminating(_) => {
                vec!["wait until it is gone, then run the same command again".to_owned()]
            }
            Self::KindNotServed(_) => vec![
                "look at `kubectl get crds,apiservices` for what is not available, then run the same command again".to_owned(),
            ],
            Self::ParentWrite(ParentWriteError::Request(error)) | Self::Read { error, .. } | Self::List { error: ListError::Request(error), .. } => vec![request_hint(error)],
            Self::GrantedByRbac(_) => vec![
                "`kubectl applyset rbac SET -f …` prints the rights that this set needs".to_owned(),
            ],
            Self::MissingPermissions(_) => vec![ASK_AN_ADMINISTRATOR.to_owned()],
            Self::LabelledElsewhere { .. } => vec![
                "look at who wrote the labels; a user who may delete these objects can run the same command, and --field-manager NAME names another applier".to_owned(),
            ],
            Self::NobodyKnows { parent, .. } => vec![format!(
                "somebody who may list everything can run the same command, or see with `kubectl get KIND -A -l applyset.kubernetes.io/part-of={}`",
                ApplySetId::of(parent)
            )],
            Self::List { .. } | Self::ParentWrite(_) | Self::Unpredicted(_) => vec!["run the same command again".to_owned()],
        };
        let mut seen = BTreeSet::new();
        hints
            .into_iter()
            .filter(|hint| seen.insert(hint.clone()))
            .collect()
    }
}

/// `rbac` prints what applying a set takes. Other commands may look elsewhere, too.
const ASK_AN_ADMINISTRATOR: &str =
    "an administrator of the cluster has to grant this; `kubectl auth can-i --list` shows what you may do";

fn request_hint(error: &ApiError) -> String {
    match &*error.kind {
        ApiErrorKind::Status(status) => match status.code {
            401 => "log in again, or check --token and the user of the kubeconfig's context".to_owned(),
            403 => ASK_AN_ADMINISTRATOR.to_owned(),
            _ => "`kubectl version` shows whether the server answers at all".to_owned(),
        },
        ApiErrorKind::Connection { proxy: Some(proxy), .. } => format!(
            "check that this proxy runs, and that {} is right; NO_PROXY names servers that are asked without one",
            proxy.named_by()
        ),
        ApiErrorKind::Untrusted { .. } => {
            "check certificate-authority of the cluster in the kubeconfig, or --certificate-authority; --tls-server-name \
             says which name the certificate is for"
                .to_owned()
        }
        ApiErrorKind::Connection { .. } | ApiErrorKind::Timeout(_) => {
            "check that the server runs, and --server, --context or KUBECONFIG; `kubectl cluster-info` asks the same server"
                .to_owned()
        }
        ApiErrorKind::Credential(_) => "log in again as the credentials plugin asks, and repeat the command".to_owned(),
        ApiErrorKind::Unreadable(_) => "is this the address of a Kubernetes API server?".to_owned(),
    }
}

fn namespace_hint(missing: &[MissingNamespace]) -> String {
    let names: BTreeSet<&str> = missing.iter().map(|missing| missing.namespace.as_str()).collect();
    let commands: Vec<String> = names
        .iter()
        .map(|name| format!("`kubectl create namespace {name}`"))
        .collect();
    format!(
        "{}, or put the {} among the manifests",
        commands.join(", "),
        counted(names.len(), "Namespace")
            .trim_start_matches(|first: char| first.is_ascii_digit() || first == ' ')
    )
}
