//! Interprets the server's answers to dry runs.

use http::StatusCode;
use serde_json::Value;

use crate::cluster::apiserver::{ApiError, Reply, Status};
use crate::execute::members::message_of_rejected_manifest;
use crate::execute::unusable_versions::is_refusal_of_unusable_version;

/// Returns whether the server may report with this error that the object does not match its schema. The codes include
/// 500: the server answers so for a field that server-side apply cannot type.
pub(super) fn may_be_schema_violation(error: &ApiError) -> bool {
    let codes = [
        StatusCode::BAD_REQUEST,
        StatusCode::UNPROCESSABLE_ENTITY,
        StatusCode::INTERNAL_SERVER_ERROR,
    ];
    codes.into_iter().any(|code| error.has_status_code(code))
}

/// Returns whether the error of a dry run says nothing about what the run would do. A refusal says something: the
/// server would refuse the run, too. These say nothing: no answer, a failure of the server, a missing login (401), too
/// many requests (429), and a webhook that does not support dry runs.
pub(super) fn is_inconclusive(error: &ApiError) -> bool {
    let Some(status) = error.status() else {
        return true;
    };
    let is_refused = (400..500).contains(&status.code)
        || message_of_rejected_manifest::is_schema_violation(&status.message)
        || is_refusal_of_unusable_version(error);
    let is_passing = [401, 429].contains(&status.code);
    !is_refused || is_passing || status.message.contains("does not support dry run")
}

/// Returns whether admission denies a write. Two kinds of refusals do not count: a missing permission, because a
/// preview does not need the permission to write; and 404 or 409, because the run judges an object again if it has
/// changed or is gone.
pub fn is_denial_by_admission(error: &ApiError) -> bool {
    let is_denial =
        |status: &Status| !status.is_denied_by_authorization() && ![404, 409].contains(&status.code);
    error.status().is_some_and(is_denial) && !is_inconclusive(error)
}

/// Returns whether the live object and the predicted one have the same resourceVersion. A dry run keeps the
/// resourceVersion, so it was then based on this live object.
pub(super) fn have_same_version(live: Option<&Value>, predicted: Option<&Value>) -> bool {
    let [live, predicted] = [live, predicted].map(|object| object?.pointer("/metadata/resourceVersion"));
    live.is_some() && live == predicted
}

/// Parses the object in an answer; `None` if the answer is not JSON, so that nothing is predicted.
pub(super) fn parse_object(reply: &Reply) -> Option<Value> {
    reply.json().ok()
}

/// Returns the object without the times in its managed fields, which every apply changes.
pub(super) fn without_managed_field_times(object: &Value) -> Value {
    let mut object = object.clone();
    let entries = object
        .pointer_mut("/metadata/managedFields")
        .and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
        entry.remove("time");
    }
    object
}
