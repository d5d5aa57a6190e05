//! Rewrites managed fields that name a version which the definition of a custom resource no longer has, so that
//! the object can be applied, and written without losing them.

use http::StatusCode;
use serde_json::Value;

use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::compare::ownership;
use crate::model::resource::Resource;
use crate::read;

/// The refusal of an apply because of such a version, as the server words it (`apiextensions-apiserver`,
/// `pkg/apiserver/conversion/converter.go`, `ConvertToVersion`). Nothing else in its answer distinguishes it from another
/// failure.
const REFUSAL: &str = "request to convert CR to an invalid group/version";

/// Returns whether the server refused an apply because managed fields name a version that the definition no longer
/// has.
pub(crate) fn is_refusal_of_dropped_version(error: &ApiError) -> bool {
    error.is(StatusCode::INTERNAL_SERVER_ERROR)
        && error
            .status()
            .is_some_and(|status| status.message.contains(REFUSAL))
}

/// Reads the definition if managed fields name another version than that of the resource, and returns
/// `metadata.managedFields` without the versions that it no longer has. `None` if there are none, or if the user
/// may not read the definition.
pub(crate) async fn without_dropped_versions(
    server: &ApiServer,
    metadata: &Value,
    resource: &Resource,
) -> Result<Option<Value>, ApiError> {
    if !ownership::names_other_version(metadata, resource) {
        return Ok(None);
    }
    let definition = read::definition(server, resource).await?;
    Ok(
        definition
            .and_then(|definition| ownership::without_dropped_versions(metadata, resource, &definition)),
    )
}
