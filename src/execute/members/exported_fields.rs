//! The hint for a manifest that was exported by `kubectl get`: it has fields that bind it to one object, or to one
//! version of that object.

use http::StatusCode;
use serde_json::Value;

use crate::cluster::apiserver::ApiError;
use crate::manifest::desired::DesiredObject;
use crate::model::text::first_names_and_more;

/// The refusal of managed fields in an apply (apimachinery, `managedfields/internal/structuredmerge.go`).
const MANAGED_FIELDS: &str = "metadata.managedFields must be nil";

/// The exported fields of metadata because of which the server may refuse an apply.
const EXPORTED_FIELDS: [&str; 3] = ["managedFields", "resourceVersion", "uid"];

/// Returns the hint to remove exported fields, if the server may have refused the manifest because of one.
pub(super) fn exported_fields_hint(error: &ApiError, object: &DesiredObject) -> Option<String> {
    let status = error.status()?;
    let is_refused = match status.code {
        code if code == StatusCode::BAD_REQUEST.as_u16() => status.message.contains(MANAGED_FIELDS),
        code if code == StatusCode::CONFLICT.as_u16() => !status.is_field_conflict(),
        code if code == StatusCode::UNPROCESSABLE_ENTITY.as_u16() => {
            let mut causes = status.details.causes.iter();
            causes.any(|cause| {
                EXPORTED_FIELDS
                    .iter()
                    .any(|field| cause.field == format!("metadata.{field}"))
            })
        }
        _ => false,
    };
    if !is_refused {
        return None;
    }
    let fields = exported_fields_in(object).into_iter();
    let fields: Vec<String> = fields.map(|field| format!("metadata.{field}")).collect();
    (!fields.is_empty()).then(|| {
        format!(
            "remove {} from the manifest: `kubectl get` exports what only the server may set",
            first_names_and_more(fields)
        )
    })
}

/// Returns the exported fields that the manifest has.
pub(super) fn exported_fields_in(object: &DesiredObject) -> Vec<&'static str> {
    let metadata = object.object.metadata();
    EXPORTED_FIELDS
        .into_iter()
        .filter(|field| metadata.get(*field).is_some_and(|value| *value != Value::Null))
        .collect()
}
