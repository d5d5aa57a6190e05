//! Objects of the manifests that are in other sets, and the parents of those sets.

use std::collections::BTreeSet;

use super::super::{Cluster, NamedSet, parents_of_other_sets};
use crate::cluster::apiserver::ApiServer;
use crate::error::Error;
use crate::manifest::desired::Desired;
use crate::model::applyset::PART_OF_LABEL;
use crate::model::list_targets::ListTargets;
use crate::model::live::Live;
use crate::plan::{self, OtherParents};
use crate::read::list::{METADATA_LIST, Selector};
use crate::read::members::members;

/// Finds objects of the manifests that are members of other sets. Sends nothing if all of them are
/// members of this set already.
pub(super) async fn others(
    server: &ApiServer,
    named: &NamedSet,
    desired: &Desired,
    found: &[Live],
    concurrency: usize,
) -> Result<Vec<Live>, Error> {
    let places = plan::scope_of_newcomers(desired, found);
    let selector = Selector {
        labels: format!("{PART_OF_LABEL},{PART_OF_LABEL}!={}", named.set.id),
        accept: METADATA_LIST,
    };
    Ok(members(server, &places, &selector, concurrency, Live::from_object).await?)
}

/// Finds objects of the manifests that are members of any set, for a set without a parent. Returns those of
/// other sets; `None` if this set has members, which have to be read whole. A set without a parent hardly
/// ever has any, so this is one LIST instead of two for each kind and namespace, and nothing is compared.
pub(super) async fn unless_members(
    server: &ApiServer,
    named: &NamedSet,
    desired: &Desired,
    places: &ListTargets,
    concurrency: usize,
) -> Result<Option<Vec<Live>>, Error> {
    if !places.covers(&plan::scope_of_newcomers(desired, &[])) {
        return Ok(None);
    }
    let selector = Selector {
        labels: PART_OF_LABEL.to_owned(),
        accept: METADATA_LIST,
    };
    let found = members(server, places, &selector, concurrency, Live::from_object).await?;
    let mut ids = found.iter().filter_map(|live| live.part_of.as_deref());
    let has_member = ids.any(|id| id == named.set.id.as_str());
    Ok((!has_member).then_some(found))
}

/// Finds the parents of the sets that hold objects of the manifests, so that the refusal can name them.
pub(super) async fn parents(
    cluster: &Cluster,
    named: &NamedSet,
    desired: &Desired,
    others: &[Live],
    concurrency: usize,
    warnings: &mut Vec<String>,
) -> OtherParents {
    let wanted: BTreeSet<_> = desired.members.iter().map(|member| &member.key).collect();
    let ids = others
        .iter()
        .filter(|live| wanted.contains(&live.key))
        .filter_map(|live| live.part_of.as_deref())
        .collect();
    let of_members = wanted.iter().filter_map(|key| key.namespace.clone());
    let namespaces = of_members.chain(named.set.parent.namespace.clone()).collect();
    parents_of_other_sets(cluster, &ids, namespaces, concurrency, warnings).await
}
