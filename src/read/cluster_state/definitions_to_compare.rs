//! Reads the CRDs of custom resources that are compared with their manifests: only a CRD shows which maps and lists are
//! atomic.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cluster::apiserver::ApiServer;
use crate::compare::changes::CrdVersion;
use crate::error::Error;
use crate::manifest::desired::Desired;
use crate::model::built_in_kinds::is_built_in;
use crate::model::identity::GroupKind;
use crate::model::list_targets::ListTargets;
use crate::model::resource::Resource;
use crate::read::definitions::{Definitions, read_crds_by_kind};
use crate::read::list::Selector;
use crate::read::list_collections::list_collections;

/// Reads the CRDs of the custom kinds among the manifests, of which members may exist in these places. If several of
/// them are among the manifests, too, they are probably members, and one LIST returns them. The others are read one by
/// one, because a cluster may have hundreds of CRDs that are not needed.
pub(super) async fn read_definitions_to_compare(
    server: &ApiServer,
    members: &Selector,
    places: &ListTargets,
    desired: &Desired,
    concurrency: usize,
) -> Result<Definitions, Error> {
    let keys = desired.members.iter().map(|member| &member.key);
    let compared: BTreeSet<&GroupKind> = keys.clone().map(|key| &key.group_kind).collect();
    let crd = GroupKind::custom_resource_definition();
    let in_manifests = keys.filter(|key| key.group_kind == crd);
    let in_manifests: BTreeSet<&str> = in_manifests.map(|key| &*key.name).collect();
    let mut custom: BTreeMap<String, &Arc<Resource>> = places
        .resources
        .iter()
        .filter(|resource| compared.contains(&resource.group_kind()))
        .filter(|resource| !is_built_in(&resource.api_version(), &resource.kind))
        .map(|resource| (resource.crd_name(), resource))
        .collect();
    let of_manifests = custom.keys().filter(|name| in_manifests.contains(name.as_str()));
    let mut definitions = Definitions::new();
    if of_manifests.count() > 1 {
        let mut crds = places.clone();
        crds.resources.retain(|resource| resource.group_kind() == crd);
        let listed = list_collections(server, &crds, members, concurrency, |item, _| {
            let name = item["metadata"]["name"].as_str()?;
            let reduced = CrdVersion::reduce_definition(item.clone(), &custom.get(name)?.version);
            Some((name.to_owned(), reduced))
        });
        for (name, reduced) in listed.await? {
            if let Some(resource) = custom.remove(&name) {
                definitions.insert(resource.group_kind(), reduced);
            }
        }
    }
    let rest: Vec<_> = custom.into_values().collect();
    definitions.extend(read_crds_by_kind(server, &rest, concurrency).await?);
    Ok(definitions)
}
