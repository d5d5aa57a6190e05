//! The hint for fields of a manifest that was exported by `kubectl get`: they bind it to one object, or to one version
//! of it.

use http::StatusCode;
use serde_json::Value;

use crate::cluster::apiserver::ApiError;
use crate::manifest::desired::DesiredObject;
use crate::model::text::listed;

/// The refusal of managed fields in an apply (apimachinery, `managedfields/internal/structuredmerge.go`).
const MANAGED_FIELDS: &str = "metadata.managedFields must be nil";

/// The fields of metadata with which the server compares the live object.
const FIELDS: [&str; 3] = ["managedFields", "resourceVersion", "uid"];

/// Returns the hint if the server refuses the manifest because of such a field.
pub(super) fn hint(error: &ApiError, object: &DesiredObject) -> Option<String> {
    let status = error.status()?;
    let is_refused = match status.code {
        code if code == StatusCode::BAD_REQUEST.as_u16() => status.message.contains(MANAGED_FIELDS),
        code if code == StatusCode::CONFLICT.as_u16() => !status.is_field_conflict(),
        code if code == StatusCode::UNPROCESSABLE_ENTITY.as_u16() => {
            let mut causes = status.details.causes.iter();
            causes.any(|cause| {
                FIELDS
                    .iter()
                    .any(|field| cause.field == format!("metadata.{field}"))
            })
        }
        _ => false,
    };
    if !is_refused {
        return None;
    }
    let fields = given(object).into_iter();
    let given: Vec<String> = fields.map(|field| format!("metadata.{field}")).collect();
    (!given.is_empty()).then(|| {
        format!(
            "remove {} from the manifest: `kubectl get` exports what only the server may set",
            listed(given)
        )
    })
}

/// Returns those of the fields that the manifest has.
pub(super) fn given(object: &DesiredObject) -> Vec<&'static str> {
    let metadata = object.object.metadata();
    FIELDS
        .into_iter()
        .filter(|field| metadata.get(*field).is_some_and(|value| *value != Value::Null))
        .collect()
}
