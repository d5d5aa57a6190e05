//! Leaves values out of custom resources that the schemas of their CRDs may forbid: nulls, and the empty metadata of
//! embedded objects.
//!
//! A run reads a CRD only if a manifest of its kind holds such values, and most manifests do not.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::unreadable_crd;
use super::read_crd_if_allowed;
use crate::cluster::apiserver::ApiServer;
use crate::compare::changes::CrdVersion;
use crate::compare::nulls_and_pruned_fields::remove_nulls_and_pruned_fields;
use crate::error::Error;
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::built_in_kinds::is_built_in;
use crate::model::containers::Containers;
use crate::model::identity::ObjectKey;
use crate::model::resource::{Origin, Resource};

/// Leaves the forbidden values out of the custom resources. If the manifests contain the CRD, its schema there applies,
/// because this run is going to apply that CRD.
///
/// # Errors
///
/// A CRD cannot be read. If the CRD does not exist, or this user may not read it, the objects are left as they are: the
/// server then refuses what it does not accept.
pub async fn leave_out_forbidden_values(server: &ApiServer, desired: &mut Desired) -> Result<(), Error> {
    let resources_by_crd: BTreeMap<ObjectKey, Arc<Resource>> = desired
        .members
        .iter()
        .filter(|member| may_hold_forbidden_values(member))
        .map(|member| {
            (
                Containers::crd_key(&member.resource),
                Arc::clone(&member.resource),
            )
        })
        .collect();
    for (crd_key, resource) in resources_by_crd {
        let crd_in_manifests = desired.members.iter().find(|member| member.key == crd_key);
        let crd = match crd_in_manifests {
            Some(member) => Some(member.object.value()),
            None if resource.origin == Origin::Served => read_crd_if_allowed(server, &resource)
                .await
                .map_err(|error| unreadable_crd(&resource, &error))?,
            // The server does not have the CRD yet.
            None => None,
        };
        let Some(crd) = crd else { continue };
        for member in &mut desired.members {
            if may_hold_forbidden_values(member)
                && Containers::crd_key(&member.resource) == crd_key
                && let Some(version) = CrdVersion::from_definition(&crd, &member.resource.version)
                && let Some(object) = remove_nulls_and_pruned_fields(&member.object, &version)
            {
                member.object = object;
            }
        }
    }
    Ok(())
}

/// Returns whether this is a custom resource with nulls, or with empty values and an embedded object, whose metadata
/// may be among these.
fn may_hold_forbidden_values(member: &DesiredObject) -> bool {
    let object = &member.object;
    is_custom(&member.resource)
        && (object.may_hold_null() || (object.may_have_empty_values() && object.may_embed_metadata()))
}

/// Returns whether a CRD may define the kind: CRDs need a group with a dot, which some built-in groups have, too.
fn is_custom(resource: &Resource) -> bool {
    resource.group.contains('.') && !is_built_in(&resource.api_version(), &resource.kind)
}
