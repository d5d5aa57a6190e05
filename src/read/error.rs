//! Errors that several reads have in common.

use http::StatusCode;

use super::list::ListError;
use crate::cluster::apiserver::ApiError;
use crate::cluster::discovery::FailedVersion;
use crate::error::{Error, ErrorKind};
use crate::model::applyset::ParentIdentity;
use crate::model::list_targets::ListTarget;
use crate::model::resource::Resource;

/// The error about a set that does not exist.
pub fn no_such_set(parent: &ParentIdentity) -> Error {
    Error::new(ErrorKind::NoSuchSet, format!("set not found: {parent}"))
        .with_hint("list all sets with `kubectl applyset list -A`, or select a namespace with -n")
}

/// The error of a move whose old set does not exist. A move of all members ends the old set, so an earlier run may have
/// finished this move.
pub fn no_set_to_move(parent: &ParentIdentity) -> Error {
    Error::usage(
        format!("set not found: {parent}"),
        "check the new set with `kubectl applyset view`: an earlier move may have finished",
    )
}

/// The error about a parent of a kind that the convention (KEP-3659) does not allow.
pub fn forbidden_parent_kind(kind: &str) -> Error {
    Error::usage(
        format!("{kind} cannot be the parent of a set"),
        "use a Secret (NAME), a ConfigMap (configmap/NAME) or a custom resource whose CRD allows it",
    )
}

/// The error of a list with the label selector `labels` of the command line. It is a usage error if the server refuses
/// the selector.
pub fn failed_selection((place, error): (ListTarget, ListError), labels: Option<&str>) -> Error {
    match (&error, labels) {
        (ListError::Request(request), Some(labels)) if request.has_status_code(StatusCode::BAD_REQUEST) => {
            Error::usage(
                format!("-l {labels:?}: invalid label selector: {}", request.kind),
                "write -l app=web,tier!=cache, as for `kubectl get`",
            )
        }
        _ => (place, error).into(),
    }
}

/// The error about a resource whose group could not be discovered.
pub fn unknowable_kind(argument: &str, failure: &FailedVersion) -> Error {
    Error::for_undiscoverable_kind(format!(
        "resource {argument:?}: cannot determine whether the server has it: {failure}"
    ))
}

/// The error about a definition that could not be read.
pub(super) fn unreadable_crd(resource: &Resource, error: &ApiError) -> Error {
    let name = resource.group_resource();
    error.to_error_while_reading(format_args!("CustomResourceDefinition {name}"))
}
