//! Reads the CRDs of custom resources whose manifests hold nulls, or empty metadata of an embedded object: only a schema
//! shows which of them mean something.
//!
//! Most manifests hold none, and cost no request here.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::definition;
use super::error::unread_definition;
use crate::cluster::apiserver::ApiServer;
use crate::compare::changes::CrdVersion;
use crate::compare::null_values::without_forbidden_nulls;
use crate::error::Error;
use crate::manifest::desired::Desired;
use crate::model::built_in_kinds::is_built_in;
use crate::model::containers::Containers;
use crate::model::identity::ObjectKey;
use crate::model::object::Object;
use crate::model::resource::{Origin, Resource};

/// Leaves out of custom resources what is null and must not be. The schema of a CRD in the manifests is that of this
/// run.
///
/// # Errors
///
/// A CRD cannot be read. One that does not exist, or that this user may not read, does not count: then nothing is left out.
pub async fn leave_out_forbidden_nulls(server: &ApiServer, desired: &mut Desired) -> Result<(), Error> {
    let custom: BTreeMap<ObjectKey, Arc<Resource>> = desired
        .members
        .iter()
        .filter(|member| is_custom(&member.resource) && may_hold_dropped_values(&member.object))
        .map(|member| {
            (
                Containers::definition_key(&member.resource),
                Arc::clone(&member.resource),
            )
        })
        .collect();
    for (key, resource) in custom {
        let of_manifests = desired.members.iter().find(|member| member.key == key);
        let definition = match of_manifests {
            Some(manifest) => Some(manifest.object.value()),
            None if resource.origin == Origin::Served => definition(server, &resource)
                .await
                .map_err(|error| unread_definition(&resource, &error))?,
            None => None,
        };
        let Some(definition) = definition else { continue };
        for member in &mut desired.members {
            if may_hold_dropped_values(&member.object)
                && Containers::definition_key(&member.resource) == key
                && let Some(version) = CrdVersion::from_definition(&definition, &member.resource.version)
                && let Some(object) = without_forbidden_nulls(&member.object, &version)
            {
                member.object = object;
            }
        }
    }
    Ok(())
}

fn may_hold_dropped_values(object: &Object) -> bool {
    object.may_hold_null() || (object.may_have_empty_values() && object.may_embed_metadata())
}

fn is_custom(resource: &Resource) -> bool {
    resource.group.contains('.') && !is_built_in(&resource.api_version(), &resource.kind)
}
