//! Reads the CRDs of custom resources that are compared with their manifests: only a CRD shows which maps and lists are
//! atomic.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cluster::apiserver::ApiServer;
use crate::error::Error;
use crate::manifest::desired::Desired;
use crate::model::built_in_kinds::is_built_in;
use crate::model::identity::GroupKind;
use crate::model::list_targets::ListTargets;
use crate::model::resource::Resource;
use crate::read::definitions::{Definitions, read_crds_by_kind};

/// Reads the CRDs of the custom kinds among the manifests, of which members may exist in these places. They are read
/// one by one, because a cluster may have hundreds of CRDs that are not needed.
pub(super) async fn read_definitions_to_compare(
    server: &ApiServer,
    places: &ListTargets,
    desired: &Desired,
    concurrency: usize,
) -> Result<Definitions, Error> {
    let compared: BTreeSet<&GroupKind> = desired
        .members
        .iter()
        .map(|member| &member.key.group_kind)
        .collect();
    let custom: Vec<&Arc<Resource>> = places
        .resources
        .iter()
        .filter(|resource| compared.contains(&resource.group_kind()))
        .filter(|resource| !is_built_in(&resource.api_version(), &resource.kind))
        .collect();
    read_crds_by_kind(server, &custom, concurrency).await
}
