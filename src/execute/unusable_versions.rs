//! Replaces each version in the managed fields of a custom resource in which the object cannot be represented. Because
//! of such a version, the server refuses an apply, and drops all managed fields at any other write.

use http::StatusCode;
use serde_json::Value;

use crate::cluster::apiserver::{ApiError, ApiServer};
use crate::compare::ownership;
use crate::execute::members::message_of_rejected_manifest::is_schema_violation;
use crate::model::resource::Resource;
use crate::read;

/// Words in the server's messages for a version that the CRD does not have any more (`apiextensions-apiserver`,
/// `pkg/apiserver/conversion/converter.go`, `ConvertToVersion`), and for an object that does not match the schema of a
/// version (structured-merge-diff). Only these words distinguish the answers from other failures with status 500.
const REFUSALS: [&str; 3] = [
    "request to convert CR to an invalid group/version",
    ": field not declared in schema",
    ": expected ",
];

/// Returns whether the server refused an apply because managed fields name a version that cannot hold the object. The
/// server refuses each apply in this way until the managed fields are rewritten.
pub fn is_refusal_of_unusable_version(error: &ApiError) -> bool {
    error.has_status_code(StatusCode::INTERNAL_SERVER_ERROR)
        && error
            .status()
            .is_some_and(|status| is_message_of_unusable_version(&status.message))
}

fn is_message_of_unusable_version(message: &str) -> bool {
    !is_schema_violation(message) && REFUSALS.iter().any(|words| message.contains(words))
}

/// Returns the managed fields in `metadata`, with the resource's version in place of those in which the server may be
/// unable to read the object. `None` if it can read all versions, or if the user may not read the CRD. The CRD is read
/// only if managed fields name another version than that of the resource.
pub async fn managed_fields_without_unusable_versions(
    server: &ApiServer,
    metadata: &Value,
    resource: &Resource,
) -> Result<Option<Value>, ApiError> {
    if !ownership::may_have_unusable_version(metadata, resource) {
        return Ok(None);
    }
    let definition = read::read_crd_if_allowed(server, resource).await?;
    Ok(definition.and_then(|definition| {
        ownership::managed_fields_with_usable_versions(metadata, resource, &definition)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_for_a_version_are_not_those_of_the_manifest_or_a_webhook() {
        let prune = "failed to prune fields: failed to convert merged object to last applied version: ";
        for (message, expected) in [
            (format!("{prune}.spec.color: field not declared in schema"), true),
            (format!("{prune}.spec.size: expected string, got 1"), true),
            (
                "failed to convert new object: errors:\n  .spec.a: field not declared in schema".to_owned(),
                true,
            ),
            (
                "request to convert CR to an invalid group/version: example.com/v0".to_owned(),
                true,
            ),
            (
                format!("{prune}conversion webhook for example.com/v1, Kind=Gadget failed: Post \"https://x\": EOF"),
                false,
            ),
            (
                "failed to create typed patch object (a/b; example.com/v1, Kind=Gadget): .spec.a: field not declared in schema"
                    .to_owned(),
                false,
            ),
        ] {
            assert_eq!(is_message_of_unusable_version(&message), expected, "{message}");
        }
    }
}
