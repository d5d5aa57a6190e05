//! Interprets the server's answers to dry runs.

use http::StatusCode;
use serde_json::Value;

use crate::cluster::apiserver::{ApiError, Reply, Status};
use crate::execute::members::message_of_rejected_manifest;
use crate::execute::unusable_versions::is_refusal_of_unusable_version;

/// Returns whether the server reports that the object does not match its schema: it also answers 500
/// for a field that server-side apply cannot type.
pub(super) fn is_invalid(error: &ApiError) -> bool {
    let codes = [
        StatusCode::BAD_REQUEST,
        StatusCode::UNPROCESSABLE_ENTITY,
        StatusCode::INTERNAL_SERVER_ERROR,
    ];
    codes.into_iter().any(|code| error.is(code))
}

/// Returns whether the answer does not predict a run. A refusal does: a run would be refused, too. A
/// webhook that does not support dry runs predicts nothing.
pub(super) fn is_unanswered(error: &ApiError) -> bool {
    error.status().is_none_or(|status| {
        let is_refused = (400..500).contains(&status.code)
            || message_of_rejected_manifest::is_schema_violation(&status.message)
            || is_refusal_of_unusable_version(error);
        !is_refused
            || [401, 429].contains(&status.code)
            || status.message.contains("does not support dry run")
    })
}

/// Returns whether admission denies a write. A preview takes no permission to write, and what has changed or is gone by
/// now is judged again by the run.
pub fn is_of_admission(error: &ApiError) -> bool {
    let is_denial =
        |status: &Status| !status.is_denied_by_authorization() && ![404, 409].contains(&status.code);
    error.status().is_some_and(is_denial) && !is_unanswered(error)
}

pub(super) fn is_of_one_moment(live: Option<&Value>, predicted: Option<&Value>) -> bool {
    let [live, predicted] = [live, predicted].map(|object| object?.pointer("/metadata/resourceVersion"));
    live.is_some() && live == predicted
}

/// Returns the object with all fields of the manifest merged in; lists are the manifest's.
pub(super) fn laid_over(live: &Value, manifest: &Value) -> Value {
    let (Value::Object(below), Value::Object(above)) = (live, manifest) else {
        return manifest.clone();
    };
    let mut fields = below.clone();
    for (name, value) in above {
        let laid = below.get(name).map(|live| laid_over(live, value));
        fields.insert(name.clone(), laid.unwrap_or_else(|| value.clone()));
    }
    Value::Object(fields)
}

/// Returns the object in the answer; `None` if it cannot be read, so that nothing is predicted.
pub(super) fn content(reply: &Reply) -> Option<Value> {
    reply.json().ok()
}

/// Returns the object without the times of its field managers, which change in any case.
pub(super) fn timeless(object: &Value) -> Value {
    let mut object = object.clone();
    let entries = object
        .pointer_mut("/metadata/managedFields")
        .and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
        entry.remove("time");
    }
    object
}
